//! Who may change a store's settings, and the changes that no other noun has: seats, access to accounts, the log of changes
//! (section 5; decisions, section 7).
//!
//! A grant is proved by its secret, of which only the hash is stored. Role and seat are looked up on every request, so that
//! whoever loses one of them loses the settings at once.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use super::{Error, Result, Service, change::Change, keys::fresh_secret};
use crate::domain::{
    events::Fact,
    ids::{AccountId, SeatId, StoreId, TicketId, UserId},
    keys::{Secret, SecretHash},
    settings::{Audited, Editor, Entry, GRANT_PREFIX, GrantKind, Manager, OWNER, Subject, Via},
    store::Account,
    team::User,
};

/// The most users that an account lists.
const MAX_ACCOUNT_USERS: usize = 1000;

/// A channel account with the users that it lists; none: everybody.
#[derive(Debug)]
pub struct AccountAccess {
    pub account: Account,
    pub users: Vec<UserId>,
}

/// What a change took from users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Tickets that lost their assignee.
    pub unassigned: usize,
}

impl Service {
    /// A link or a token for a user of the store. The secret is told here and never again.
    pub async fn grant(&self, editor: &Editor, user: &UserId, kind: GrantKind) -> Result<(Secret, Manager)> {
        self.must_exist(&editor.store_id).await?;
        let secret = fresh_secret(GRANT_PREFIX)?;
        let mut change = self.begin_edit(editor).await?;
        if change.known_users(&[user]).await?.is_empty() {
            return Err(Error::invalid("userId", format!("`{user}` is not the userId of a user of the store")));
        }
        let expires_at = change.now().plus_millis(kind.lifetime());
        change.insert_grant(&secret.hash(), user, kind, expires_at).await?;
        let detail = json!({ "kind": kind.name(), "expiresAt": expires_at });
        change.audit(Entry { action: "session.granted", subject: Subject::Session, subject_id: user.to_string(), detail });
        change.end().await?;
        let found = self.db().find_manager(&secret.hash(), kind, self.world().now()).await?;
        Ok((secret, found.ok_or_else(|| Error::Internal("a grant that was made is gone".to_owned()))?))
    }

    /// Who presents the secret of a grant of that kind.
    pub async fn manager(&self, secret: &str, kind: GrantKind) -> Result<Option<Manager>> {
        Ok(self.db().find_manager(&SecretHash::of(secret), kind, self.world().now()).await?)
    }

    /// Uses a link up. Of two who come with the same one, one opens a session.
    pub async fn open_session(&self, link: &str, manager: &Manager, request_id: &str) -> Result<Option<(Secret, Manager)>> {
        let secret = fresh_secret(GRANT_PREFIX)?;
        let editor = Editor {
            store_id: manager.store_id.clone(),
            user_id: Some(manager.user_id.clone()),
            via: Via::Session,
            is_owner: manager.is_owner(),
            request_id: Some(request_id.to_owned()),
        };
        let mut change = self.begin_edit(&editor).await?;
        // Kept as it is, or whoever ends all of the user's grants at this moment would not see the session.
        if change.known_users(&[&manager.user_id]).await?.is_empty() {
            return Ok(None);
        }
        if !change.delete_grant(&SecretHash::of(link)).await? {
            return Ok(None);
        }
        let expires_at = change.now().plus_millis(GrantKind::Session.lifetime());
        change.insert_grant(&secret.hash(), &manager.user_id, GrantKind::Session, expires_at).await?;
        let detail = json!({ "expiresAt": expires_at });
        change.audit(Entry { action: "session.opened", subject: Subject::Session, subject_id: manager.user_id.to_string(), detail });
        change.end().await?;
        Ok(Some((secret, Manager { expires_at, ..manager.clone() })))
    }

    /// Ends the grant that is presented.
    pub async fn end_session(&self, editor: &Editor, secret: &str) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        change.delete_grant(&SecretHash::of(secret)).await?;
        let subject_id = editor.user_id.as_ref().map(ToString::to_string).unwrap_or_default();
        change.audit(Entry { action: "session.ended", subject: Subject::Session, subject_id, detail: json!({}) });
        change.end().await
    }

    /// Ends every link, session and token of a user; how many there were.
    pub async fn revoke_grants(&self, editor: &Editor, user: &UserId) -> Result<u64> {
        self.must_exist(&editor.store_id).await?;
        let mut change = self.begin_edit(editor).await?;
        change.hold_user(user).await?;
        let count = change.delete_grants(user).await?;
        if count > 0 {
            let detail = json!({ "count": count });
            change.audit(Entry { action: "session.revoked", subject: Subject::Session, subject_id: user.to_string(), detail });
        }
        change.end().await?;
        Ok(count)
    }

    /// At most `limit` changes of settings before a position, the newest first.
    pub async fn audited(&self, store: &StoreId, subject: Option<Subject>, before: Option<i64>, limit: i64) -> Result<Vec<Audited>> {
        Ok(self.db().audited(store, subject, before, limit).await?)
    }

    /// Removes a seat. The tickets of who sat there lose their assignee, the keys act in the name of the oldest owner from
    /// now on, and sessions and tokens end. The last owner stays.
    pub async fn remove_user(&self, editor: &Editor, id: &SeatId) -> Result<Taken> {
        let mut change = self.begin_edit(editor).await?;
        let seats = change.seat_and_owners(id).await?;
        let (user, role) = seats.iter().find(|(user, _)| user.id == *id).ok_or_else(|| Error::missing("id", "user", id))?.clone();
        if !editor.is_owner && role.as_deref() == Some(OWNER) {
            return Err(Error::forbidden("id", "names an owner of the store, whom only an owner may remove"));
        }
        let is_owner = |(user, role): &&(User, Option<String>)| user.user_id.is_some() && role.as_deref() == Some(OWNER);
        let mut owners = seats.iter().filter(is_owner);
        if owners.next().is_some_and(|(owner, _)| owner.id == *id) && owners.next().is_none() {
            return Err(Error::conflict("id", "names the store's last owner; make somebody else one first"));
        }
        let mut taken = Taken::default();
        let mut detail = json!({ "userId": user.user_id, "name": user.name, "role": role });
        if let Some(user_id) = &user.user_id {
            let tickets = change.tickets_of_assignee(user_id).await?;
            taken.unassigned = unassign(&mut change, tickets, |assignee| assignee == user_id).await?;
            detail["unassigned"] = taken.unassigned.into();
            detail["keys"] = change.disown_keys(user_id).await?.into();
            change.delete_grants(user_id).await?;
        }
        change.delete_seat(id).await?;
        change.audit(Entry { action: "user.removed", subject: Subject::User, subject_id: id.to_string(), detail });
        change.end().await?;
        Ok(taken)
    }

    /// Every channel account, the disconnected ones too, with the users that it lists, oldest first.
    pub async fn account_access(&self, store: &StoreId) -> Result<Vec<AccountAccess>> {
        let mut users: HashMap<AccountId, Vec<UserId>> = HashMap::new();
        for (account, user) in self.db().all_account_users(store).await? {
            users.entry(account).or_default().push(user);
        }
        let accounts = self.db().every_account(store).await?;
        Ok(accounts.into_iter().map(|account| AccountAccess { users: users.remove(&account.id).unwrap_or_default(), account }).collect())
    }

    /// Opens an account to these users alone, or to all when there are none. Tickets on it that belong to anybody else lose
    /// their assignee.
    pub async fn set_account_users(&self, editor: &Editor, id: &AccountId, users: Vec<UserId>) -> Result<(AccountAccess, Taken)> {
        if users.len() > MAX_ACCOUNT_USERS {
            return Err(Error::invalid("body.userIds", format!("must hold at most {MAX_ACCOUNT_USERS} ids")));
        }
        let mut seen = HashSet::new();
        if let Some(i) = users.iter().position(|user| !seen.insert(user)) {
            return Err(Error::invalid(format!("body.userIds[{i}]"), "is named twice"));
        }
        let mut change = self.begin_edit(editor).await?;
        let known: HashSet<UserId> = change.known_users(&users.iter().collect::<Vec<_>>()).await?.into_iter().collect();
        let account = change.held_account(id).await?.ok_or_else(|| Error::missing("body.accountId", "account", id))?;
        if let Some(i) = users.iter().position(|user| !known.contains(user)) {
            return Err(Error::invalid(format!("body.userIds[{i}]"), "names nobody in this store"));
        }
        let former: HashSet<UserId> = change.account_users(&[id]).await?.into_iter().map(|(_, user)| user).collect();
        change.save_account_users(id, &users).await?;
        let mut taken = Taken::default();
        if !users.is_empty() {
            let tickets = change.tickets_of_others(id).await?;
            taken.unassigned = unassign(&mut change, tickets, |assignee| !users.contains(assignee)).await?;
        }
        if former != users.iter().cloned().collect() || taken.unassigned > 0 {
            let detail = json!({ "userIds": users, "unassigned": taken.unassigned });
            change.audit(Entry { action: "account.users_set", subject: Subject::Account, subject_id: id.to_string(), detail });
        }
        change.end().await?;
        Ok((AccountAccess { account, users }, taken))
    }
}

/// Takes tickets from those of their assignees who are to lose them; how many. Whoever got one since it was looked for keeps
/// it. Conversations are held before their tickets, as a message that comes in holds them.
async fn unassign(change: &mut Change<'_>, tickets: Vec<TicketId>, loses: impl Fn(&UserId) -> bool) -> Result<usize> {
    change.hold_conversations_of(&tickets).await?;
    let mut count = 0;
    for id in tickets {
        let Some(mut ticket) = change.ticket(&id).await? else { continue };
        if !ticket.assignee_user_id.as_ref().is_some_and(&loses) {
            continue;
        }
        if let Some(previous) = ticket.unassign(change.now()) {
            change.save_ticket(&ticket).await?;
            change.note(Fact::TicketUnassigned { ticket, previous: Some(previous) });
            count += 1;
        }
    }
    Ok(count)
}
