//! Use-cases that add, change and remove the seats of a store. A seat is the membership of a user in a store, with the user's role. `http`
//! and `cli` call these use-cases.

use serde_json::json;

use super::{
    Error, Result, Service,
    credentials_account_access_audit::{RemovedAccess, unassign},
};
use crate::domain::{
    contacts::is_email,
    ids::{RoleId, SeatId, StoreId, UserId},
    settings_access::{Editor, Entry, OWNER, Subject, manages},
    unicode_text::is_name,
    users_teams_labels::{Role, RoleKind, User, UserView},
};

/// A seat can be added only to a store with fewer seats than this. An import may exceed the limit.
const MAX_SEATS: usize = 1000;
/// The maximum length of a new user's name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// The properties of a new user.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub name: String,
    pub email: String,
    pub role: RoleKind,
}

impl NewUser {
    /// Refuses a blank or long name and an invalid e-mail address.
    pub fn check(&self) -> Result<()> {
        if !is_name(self.name.trim(), MAX_NAME_CHARS) {
            return Err(Error::invalid("name", format!("must have 1 to {MAX_NAME_CHARS} printable characters and not be blank")));
        }
        if !is_email(&self.email) {
            return Err(Error::invalid("email", format!("`{}` is not an e-mail address", super::error::shown(&self.email))));
        }
        Ok(())
    }
}

/// A user, with the kind of the user's role (`None`: the user has no role).
type SeatWithRole = (User, Option<String>);

fn is_owner((_, role): &SeatWithRole) -> bool {
    role.as_deref() == Some(OWNER)
}

/// Refuses a change to the seat `id` if this seat belongs to the store's last owner. An owner who was invited and has not joined does not
/// count.
fn must_keep_an_owner(seats: &[SeatWithRole], id: &SeatId) -> Result<()> {
    let mut owners = seats.iter().filter(|seat| is_owner(seat) && seat.0.user_id.is_some());
    if owners.next().is_some_and(|(owner, _)| owner.id == *id) && owners.next().is_none() {
        return Err(Error::conflict("id", "names the store's last owner; make somebody else one first"));
    }
    Ok(())
}

/// Returns whether the editor is an owner. The editor's role is read from the locked seats, since the role may have changed after the
/// request was authenticated. Refuses an editor who is no longer an owner or admin.
fn is_by_owner(seats: &[SeatWithRole], editor: &Editor, field: &str) -> Result<bool> {
    let Some(user) = &editor.user_id else { return Ok(editor.is_owner) };
    let role = seats.iter().find(|(seat, _)| seat.user_id.as_ref() == Some(user)).and_then(|(_, role)| role.as_deref());
    if !manages(role) {
        return Err(Error::forbidden(field, "was sent by a user who is no longer an owner or admin of the store"));
    }
    Ok(role == Some(OWNER))
}

fn may_give(by_owner: bool, role: RoleKind) -> Result<()> {
    if role == RoleKind::Owner && !by_owner {
        return Err(Error::forbidden("role", "is `owner`, which only an owner may give"));
    }
    Ok(())
}

fn seat<'s>(seats: &'s [SeatWithRole], id: &SeatId) -> Result<&'s SeatWithRole> {
    seats.iter().find(|(user, _)| user.id == *id).ok_or_else(|| Error::missing("id", "user", id))
}

impl Service {
    /// Adds a user, who counts as joined without an invitation. If the store has no role of the kind `new.role`, adds such a role, too.
    /// Only an owner may add an owner.
    pub async fn add_user(&self, editor: &Editor, new: NewUser) -> Result<(UserId, UserView)> {
        new.check()?;
        self.must_exist(&editor.store_id).await?;
        let mut change = self.begin_edit(editor).await?;
        let seats = change.seats_for_update().await?;
        may_give(is_by_owner(&seats, editor, "role")?, new.role)?;
        let has_address = |(user, _): &SeatWithRole| user.email.as_deref().is_some_and(|email| email.eq_ignore_ascii_case(&new.email));
        if seats.iter().any(has_address) {
            return Err(Error::conflict("email", format!("`{}` belongs to another user of the store already", new.email)));
        }
        if seats.len() >= MAX_SEATS {
            return Err(Error::Full(format!("the store has {} users, and {MAX_SEATS} are the most; remove one first", seats.len())));
        }
        let ids = &self.clocks_and_ids().ids;
        let role = change.role_of_kind(new.role, RoleId::from(ids.fresh())).await?;
        let user_id = UserId::from(ids.fresh());
        let user = User {
            id: SeatId::from(ids.fresh()),
            user_id: Some(user_id.clone()),
            name: Some(new.name.trim().to_owned()),
            email: Some(new.email),
            role_id: Some(role.id.clone()),
            created_at: change.now(),
        };
        change.insert_seat(&user).await?;
        let detail = json!({ "userId": user.user_id, "name": user.name, "email": user.email, "role": new.role.name() });
        change.audit(Entry { action: "user.added", subject: Subject::User, subject_id: user.id.to_string(), detail });
        change.end().await?;
        Ok((user_id, UserView { user, role: Some(role) }))
    }

    /// Gives a user a role of the kind `kind`. If the store has no role of this kind, adds one. Only an owner may change the role of an
    /// owner, or make a user an owner. The last owner stays an owner. If the user is then neither owner nor admin, the user's links,
    /// sessions and tokens for the settings are deleted.
    pub async fn set_role(&self, editor: &Editor, id: &SeatId, kind: RoleKind) -> Result<UserView> {
        let mut change = self.begin_edit(editor).await?;
        let seats = change.seats_for_update().await?;
        let by_owner = is_by_owner(&seats, editor, "id")?;
        let found = seat(&seats, id)?;
        if !by_owner && is_owner(found) {
            return Err(Error::forbidden("id", "names an owner of the store, whose role only an owner may change"));
        }
        may_give(by_owner, kind)?;
        let (mut user, former) = found.clone();
        if former.as_deref() == Some(kind.name()) {
            let role = match &user.role_id {
                Some(id) => change.role(id).await?,
                None => None,
            };
            return Ok(UserView { user, role });
        }
        must_keep_an_owner(&seats, id)?;
        let role = change.role_of_kind(kind, RoleId::from(self.clocks_and_ids().ids.fresh())).await?;
        change.set_role_of_seat(id, &role.id).await?;
        let mut detail = json!({ "userId": user.user_id, "role": kind.name(), "former": former });
        if let Some(user_id) = user.user_id.as_ref().filter(|_| !manages(Some(kind.name()))) {
            detail["ended"] = change.delete_credentials(user_id).await?.into();
        }
        change.audit(Entry { action: "user.role_set", subject: Subject::User, subject_id: id.to_string(), detail });
        change.end().await?;
        user.role_id = Some(role.id.clone());
        Ok(UserView { user, role: Some(role) })
    }

    /// Removes a user's seat in the store. The user's tickets lose their assignee, the user's keys act for the oldest owner from then on,
    /// and the user's links, sessions and tokens end. Only an owner may remove an owner, and the last owner cannot be removed.
    pub async fn remove_user(&self, editor: &Editor, id: &SeatId) -> Result<RemovedAccess> {
        let mut change = self.begin_edit(editor).await?;
        let seats = change.seats_for_update().await?;
        let found = seat(&seats, id)?;
        if !is_by_owner(&seats, editor, "id")? && is_owner(found) {
            return Err(Error::forbidden("id", "names an owner of the store, whom only an owner may remove"));
        }
        must_keep_an_owner(&seats, id)?;
        let (user, role) = found;
        let mut taken = RemovedAccess::default();
        let mut detail = json!({ "userId": user.user_id, "name": user.name, "role": role });
        if let Some(user_id) = &user.user_id {
            let tickets = change.tickets_of_assignee(user_id).await?;
            taken.unassigned = unassign(&mut change, tickets, |assignee| assignee == user_id).await?;
            detail["unassigned"] = taken.unassigned.into();
            detail["keys"] = change.reassign_keys_to_owner(user_id).await?.into();
            change.delete_credentials(user_id).await?;
        }
        change.delete_seat(id).await?;
        change.audit(Entry { action: "user.removed", subject: Subject::User, subject_id: id.to_string(), detail });
        change.end().await?;
        Ok(taken)
    }

    /// Returns the users of a store, oldest first, each with the role if it is known. Fails if there is no such store.
    pub async fn users_of_store(&self, store: &StoreId) -> Result<Vec<(User, Option<Role>)>> {
        self.must_exist(store).await?;
        Ok(self.db().users(store, None).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{fake_clock_and_test_rules::MovableClock, settings_access::Via},
        service::test_service::{Silent, service},
        store::fixture::Fixture,
    };

    /// Simulates a request that was authenticated before its sender lost the role, and that waited for the lock of the seats meanwhile.
    #[tokio::test]
    async fn a_request_is_refused_if_its_editor_lost_the_role_meanwhile() {
        let fixture = Fixture::new().await;
        let service = service(fixture.db.clone(), MovableClock::at(0), Silent);
        let by_command = Editor::command_line(fixture.store.clone());
        let add = async |editor: &Editor, email: &str, role| {
            let new = NewUser { name: "Noi".to_owned(), email: email.to_owned(), role };
            service.add_user(editor, new).await
        };
        add(&by_command, "owner@shop.example", RoleKind::Owner).await.unwrap();
        let (user_id, seat) = add(&by_command, "noi@shop.example", RoleKind::Owner).await.unwrap();
        let editor = Editor { user_id: Some(user_id), via: Via::Session, ..by_command.clone() };
        for role in [RoleKind::Admin, RoleKind::Agent] {
            service.set_role(&by_command, &seat.user.id, role).await.unwrap();
            let before = service.users_of_store(&fixture.store).await.unwrap();
            let owner = before.iter().find(|(user, _)| user.email.as_deref() == Some("owner@shop.example")).unwrap().0.id.clone();
            let refused = [
                add(&editor, "new@shop.example", RoleKind::Owner).await.err(),
                service.set_role(&editor, &seat.user.id, RoleKind::Owner).await.err(),
                service.remove_user(&editor, &owner).await.err(),
            ];
            assert!(refused.iter().all(|error| matches!(error, Some(Error::Forbidden { .. }))), "{refused:?}");
            assert_eq!(service.users_of_store(&fixture.store).await.unwrap(), before);
        }
    }
}
