//! API keys (sections 3.2 and 5; decisions, section 7). Called by `http`, `cli` and the settings.

use super::{Error, Result, Service};
use crate::{
    domain::{
        clock::World,
        ids::{KeyId, StoreId, UserId},
        keys::{ApiKey, Caller, OVERLAP_MILLIS, Secret, SecretHash, expiry},
        scopes::ScopeSet,
    },
    store::Db,
};

impl Service {
    /// Who presents this secret. Looked up on every call, so that a change of a key is seen at once by every process.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>> {
        Ok(self.db().find_caller(&SecretHash::of(secret), self.world().now()).await?)
    }

    /// A secret of the server itself, made when it is first asked for.
    pub async fn server_secret(&self, name: &str) -> Result<Vec<u8>> {
        let mut fresh = vec![0_u8; 32];
        getrandom::fill(&mut fresh).map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
        Ok(self.db().server_secret(name, fresh).await?)
    }
}

/// The longest name of a key, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Makes a key. The secret is told here and never again.
pub async fn create(
    db: &Db,
    world: &World,
    store: &StoreId,
    name: String,
    scopes: ScopeSet,
    owner: Option<UserId>,
) -> Result<(ApiKey, Secret)> {
    check(Some(&name), Some(scopes))?;
    if !db.store_exists(store).await? {
        return Err(Error::NotFound(format!("there is no store `{store}`")));
    }
    if let Some(user) = &owner
        && !db.is_user(store, user).await?
    {
        return Err(Error::invalid("user", format!("`{user}` is not the userId of a user of the store")));
    }
    let (secret, now) = (fresh_secret()?, world.now());
    let key = ApiKey {
        id: KeyId::from(world.ids.fresh()),
        name,
        scopes,
        active: true,
        owner,
        last_four: secret.last_four().to_owned(),
        created_at: now,
        expires_at: expiry(now),
    };
    db.insert_key(store, &key, &secret.hash()).await?;
    Ok((key, secret))
}

/// Every key of a store, oldest first.
pub async fn list(db: &Db, store: &StoreId) -> Result<Vec<ApiKey>> {
    if !db.store_exists(store).await? {
        return Err(Error::NotFound(format!("there is no store `{store}`")));
    }
    Ok(db.keys(store).await?)
}

/// Changes name or scopes; what is `None` stays. The secret stays too.
pub async fn edit(db: &Db, world: &World, store: &StoreId, id: &KeyId, name: Option<String>, scopes: Option<ScopeSet>) -> Result<ApiKey> {
    check(name.as_deref(), scopes)?;
    db.edit_key(store, id, name, scopes, None, world.now()).await?.ok_or_else(|| unknown(id))
}

/// Suspends a key, or lifts the suspension. Its expiry runs on.
pub async fn set_active(db: &Db, world: &World, store: &StoreId, id: &KeyId, active: bool) -> Result<ApiKey> {
    db.edit_key(store, id, None, None, Some(active), world.now()).await?.ok_or_else(|| unknown(id))
}

/// Gives a key a new secret and six more months; the former one stays valid for two hours, its own expiry permitting.
pub async fn rotate(db: &Db, world: &World, store: &StoreId, id: &KeyId) -> Result<(ApiKey, Secret)> {
    let (secret, now) = (fresh_secret()?, world.now());
    let key = db.key(store, id).await?.ok_or_else(|| unknown(id))?;
    let refuse = |status: &str, remedy: &str| Err(Error::Conflict(format!("the key `{id}` is {status}; {remedy}")));
    match key.status(now) {
        "inactive" => return refuse("inactive", "activate it before rotating it"),
        "expired" => return refuse("expired", "create a new one"),
        _ => {}
    }
    let rotated = db.rotate_key(store, id, &secret.hash(), secret.last_four(), now, expiry(now), now.plus_millis(OVERLAP_MILLIS)).await?;
    Ok((rotated.ok_or_else(|| unknown(id))?, secret))
}

/// Removes a key and every secret of it, at once and for good.
pub async fn delete(db: &Db, store: &StoreId, id: &KeyId) -> Result<()> {
    if db.delete_key(store, id).await? { Ok(()) } else { Err(unknown(id)) }
}

fn unknown(id: &KeyId) -> Error {
    Error::NotFound(format!("there is no key `{id}` in the store"))
}

fn fresh_secret() -> Result<Secret> {
    Secret::generate(getrandom::fill).map_err(|error| Error::Internal(format!("the system gives no random bytes: {error}")))
}

fn check(name: Option<&str>, scopes: Option<ScopeSet>) -> Result<()> {
    if name.is_some_and(|name| name.trim().is_empty() || name.chars().count() > MAX_NAME_CHARS) {
        return Err(Error::invalid("name", format!("must have 1 to {MAX_NAME_CHARS} characters and not be blank")));
    }
    if scopes.is_some_and(ScopeSet::is_empty) {
        return Err(Error::invalid("scopes", "must name at least one scope"));
    }
    Ok(())
}
