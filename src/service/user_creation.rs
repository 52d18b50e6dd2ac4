//! Creates and lists the users of a store, with their roles. Called by `cli`.

use super::{
    Error, Result,
    import::{self, ImportError, Options, RereadableInput},
};
use crate::{
    domain::{
        clock::ClocksAndIds,
        contacts::is_email,
        ids::{RoleId, SeatId, StoreId, UserId},
        ndjson_records::{RecordKind, Role, User},
        users_teams_labels::{self, RoleKind},
    },
    store::Db,
};

/// The properties of a new user.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub name: String,
    pub email: String,
    pub role: RoleKind,
}

impl NewUser {
    /// Refuses a blank name and an invalid e-mail address.
    pub fn check(&self) -> Result<()> {
        if self.name.trim().is_empty() {
            return Err(Error::invalid("name", "must not be blank"));
        }
        if !is_email(&self.email) {
            return Err(Error::invalid("email", format!("`{}` is not an e-mail address", self.email)));
        }
        Ok(())
    }
}

/// Creates a user who has accepted the invitation, and the role if the store has none of this kind.
pub async fn create(db: &Db, clocks_and_ids: &ClocksAndIds, store: &StoreId, new: NewUser) -> Result<UserId> {
    new.check()?;
    if db.users(store, None).await?.iter().any(|(user, _)| user.email.as_deref() == Some(&new.email)) {
        return Err(Error::conflict("email", format!("`{}` belongs to another user of the store already", new.email)));
    }
    let mut lines = Vec::new();
    let role_id = match db.role_of_kind(store, new.role).await? {
        Some(id) => id,
        None => {
            let role =
                Role { id: RoleId::from(clocks_and_ids.ids.fresh()), name: new.role.title().to_owned(), kind: new.role.name().to_owned() };
            lines.push(line(RecordKind::Role, &role));
            role.id
        }
    };
    let user_id = UserId::from(clocks_and_ids.ids.fresh());
    let user = User {
        id: SeatId::from(clocks_and_ids.ids.fresh()),
        user_id: Some(user_id.clone()),
        name: Some(new.name),
        email: Some(new.email),
        role_id: Some(role_id),
        created_at: Some(clocks_and_ids.now()),
    };
    lines.push(line(RecordKind::User, &user));
    let spool = RereadableInput::of_lines(lines).map_err(|error| Error::Internal(error.to_string()))?;
    match import::run(db, clocks_and_ids, store, spool, Options::default()).await {
        Ok(_) => Ok(user_id),
        Err(ImportError::NoStore(store)) => Err(no_store(&store)),
        Err(ImportError::Store(error)) => Err(error.into()),
        Err(failure) => Err(Error::Internal(failure.to_string())),
    }
}

/// Returns a store's users, oldest first, each with the role if it is known.
pub async fn list(db: &Db, store: &StoreId) -> Result<Vec<(users_teams_labels::User, Option<users_teams_labels::Role>)>> {
    if !db.store_exists(store).await? {
        return Err(no_store(store));
    }
    Ok(db.users(store, None).await?)
}

fn no_store(store: &StoreId) -> Error {
    Error::not_found("store", format!("there is no store `{store}`"))
}

/// Returns a line of an import file with this record.
fn line(kind: RecordKind, record: &impl serde::Serialize) -> String {
    serde_json::json!({ "kind": kind.name(), "record": record }).to_string()
}
