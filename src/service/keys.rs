//! API key management (create, edit, rotate, delete), and the record of when each key was last used (API contract, sections 3.2 and 5).
//! Called by `http` and `cli`.
//!
//! [`Service::authenticate`] hashes the secret of a request and notes the use. `store::api_key_auth` decides whether the key is valid.
//!
//! The last use of a key is kept in memory and written periodically (write-behind), since a write per request would cost more than most
//! requests do.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Error, Result, Service};
use crate::{
    domain::{
        api_key_scopes::ScopeSet,
        api_keys::{ApiKey, Caller, OVERLAP_MILLIS, PREFIX, Secret, SecretHash, expiry},
        ids::{KeyId, StoreId, UserId},
        settings_access::{Editor, Entry, FormerSecrets, Subject},
        time::Timestamp,
        unicode_text::is_name,
    },
    store::{Write, api_key_auth::LookedUpCaller},
};

/// The maximum length of a key's name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// The properties of a new key.
#[derive(Debug)]
pub struct NewKey {
    pub name: String,
    pub scopes: ScopeSet,
    /// The user for whom the key acts. If absent, the key acts for the store's oldest owner, but a key that an admin creates acts for this
    /// admin.
    pub owner: Option<UserId>,
}

/// Last uses of keys that have not been written to the database yet.
#[derive(Clone, Default)]
pub(super) struct PendingKeyUses(Arc<Mutex<HashMap<KeyId, (StoreId, Timestamp)>>>);

impl PendingKeyUses {
    fn note(&self, caller: &Caller, now: Timestamp) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match uses.get_mut(&caller.key_id) {
            Some((_, last)) => *last = now.max(*last),
            None => {
                uses.insert(caller.key_id.clone(), (caller.store_id.clone(), now));
            }
        }
    }

    fn last(&self, key: &KeyId) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(|(_, at)| *at)
    }

    fn take(&self) -> HashMap<KeyId, (StoreId, Timestamp)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds uses to the pending uses again, after writing them to the database has failed.
    fn put_back(&self, store: &StoreId, uses: Vec<(KeyId, Timestamp)>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, at) in uses {
            let last = &mut all.entry(key).or_insert_with(|| (store.clone(), at)).1;
            *last = at.max(*last);
        }
    }
}

impl Service {
    /// Looks up the caller of an API key by the hash of its secret, and notes the use. Returns `None` if no valid key has this secret.
    /// Every call looks the key up in the database, so all processes see a change of a key immediately. On PostgreSQL, concurrent look-ups
    /// are batched.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<LookedUpCaller>> {
        let now = self.clocks_and_ids().now();
        let found = self.db().find_caller(&SecretHash::of(secret), now).await?;
        if let Some(known) = &found {
            self.uses.note(&known.caller, now);
        }
        Ok(found)
    }

    /// Returns a secret of the server itself, such as the secret with which pagination cursors are signed. Generates it on first use.
    pub async fn server_secret(&self, name: &str) -> Result<Vec<u8>> {
        let mut fresh = vec![0_u8; 32];
        getrandom::fill(&mut fresh).map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
        Ok(self.db().server_secret(name, fresh).await?)
    }

    /// Creates a key. Its secret is returned only here.
    pub async fn create_key(&self, editor: &Editor, new: NewKey) -> Result<(ApiKey, Secret)> {
        check(Some(&new.name), Some(new.scopes))?;
        self.must_exist(&editor.store_id).await?;
        let secret = fresh_secret(PREFIX)?;
        let mut change = self.begin_edit(editor).await?;
        Self::must_be_below_limit("keys", "--max-keys", change.count_keys().await?, self.bounds.keys)?;
        // A key without a user acts for an owner. An admin must not grant the rights of an owner, so a key that an admin creates without a
        // user acts for the admin.
        let owner = new.owner.or_else(|| editor.user_id.clone().filter(|_| !editor.is_owner));
        if let Some(user) = &owner {
            if change.known_users(&[user]).await?.is_empty() {
                return Err(Error::invalid("userId", format!("`{user}` is not the userId of a user of the store")));
            }
            if !editor.is_owner && change.is_owner(user).await? {
                return Err(Error::forbidden("userId", "names an owner of the store, in whose name only an owner may make a key"));
            }
        }
        let now = change.now();
        let key = ApiKey {
            id: KeyId::from(self.clocks_and_ids().ids.fresh()),
            name: new.name,
            scopes: new.scopes,
            active: true,
            owner,
            last_four: secret.last_four().to_owned(),
            created_at: now,
            expires_at: expiry(now),
            last_used_at: None,
        };
        change.insert_key(&key).await?;
        change.add_key_secret(&key, &secret.hash(), None).await?;
        change.audit(changed("key.created", &key));
        change.end().await?;
        Ok((key, secret))
    }

    /// Returns every key of a store, oldest first.
    pub async fn keys(&self, store: &StoreId) -> Result<Vec<ApiKey>> {
        self.must_exist(store).await?;
        let mut keys = self.db().keys(store).await?;
        for key in &mut keys {
            key.last_used_at = key.last_used_at.max(self.uses.last(&key.id));
        }
        Ok(keys)
    }

    /// Changes name or scopes; `None` leaves a property unchanged. The secret stays the same.
    pub async fn edit_key(&self, editor: &Editor, id: &KeyId, name: Option<String>, scopes: Option<ScopeSet>) -> Result<ApiKey> {
        check(name.as_deref(), scopes)?;
        let mut change = self.begin_edit(editor).await?;
        let mut key = known(&change, id).await?;
        let former = key.clone();
        key.name = name.unwrap_or(key.name);
        key.scopes = scopes.unwrap_or(key.scopes);
        if key != former {
            change.save_key(&key).await?;
            change.audit(changed("key.edited", &key));
        }
        change.end().await?;
        Ok(key)
    }

    /// Suspends a key, or ends its suspension. The expiry of the key does not change.
    pub async fn set_key_active(&self, editor: &Editor, id: &KeyId, active: bool) -> Result<ApiKey> {
        let mut change = self.begin_edit(editor).await?;
        let mut key = known(&change, id).await?;
        if key.active != active {
            key.active = active;
            change.save_key(&key).await?;
            change.audit(changed(if active { "key.activated" } else { "key.deactivated" }, &key));
        }
        change.end().await?;
        Ok(key)
    }

    /// Gives a key a new secret, which expires in six months. With [`FormerSecrets::Overlap`], former secrets stay valid for two hours,
    /// unless they expire earlier.
    pub async fn rotate_key(&self, editor: &Editor, id: &KeyId, former: FormerSecrets) -> Result<(ApiKey, Secret)> {
        let secret = fresh_secret(PREFIX)?;
        let mut change = self.begin_edit(editor).await?;
        let mut key = known(&change, id).await?;
        let now = change.now();
        let refuse = |status: &str, remedy: &str| Err(Error::conflict("keyId", format!("names a key that is {status}; {remedy}")));
        match key.status(now) {
            "inactive" => return refuse("inactive", "activate it before rotating it"),
            "expired" => return refuse("expired", "create a new one"),
            _ => {}
        }
        key.expires_at = expiry(now);
        key.last_four = secret.last_four().to_owned();
        change.save_key(&key).await?;
        change.add_key_secret(&key, &secret.hash(), Some(former.end(now, OVERLAP_MILLIS))).await?;
        change.audit(former.noted(changed("key.rotated", &key)));
        change.end().await?;
        Ok((key, secret))
    }

    /// Deletes a key with all its secrets, immediately and permanently.
    pub async fn delete_key(&self, editor: &Editor, id: &KeyId) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        let key = known(&change, id).await?;
        change.delete_key(id).await?;
        change.audit(changed("key.deleted", &key));
        change.end().await
    }

    /// Writes the pending last uses. After a failure the next call writes them.
    pub async fn save_key_uses(&self) -> Result<()> {
        let mut stores: HashMap<StoreId, Vec<(KeyId, Timestamp)>> = HashMap::new();
        for (key, (store, at)) in self.uses.take() {
            stores.entry(store).or_default().push((key, at));
        }
        let mut outcome = Ok(());
        for (store, mut uses) in stores {
            // A fixed order prevents deadlocks with another process that writes the same keys.
            uses.sort();
            if let Err(error) = self.save_uses(&store, &uses).await {
                self.uses.put_back(&store, uses);
                outcome = Err(error);
            }
        }
        outcome
    }

    async fn save_uses(&self, store: &StoreId, uses: &[(KeyId, Timestamp)]) -> Result<()> {
        let write = self.db().write(store, &self.clocks_and_ids().clock).await?;
        write.save_key_uses(uses).await?;
        Ok(write.commit().await?)
    }
}

async fn known(change: &Write, id: &KeyId) -> Result<ApiKey> {
    change.key(id).await?.ok_or_else(|| Error::missing("keyId", "key", id))
}

fn changed(action: &'static str, key: &ApiKey) -> Entry {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let detail = serde_json::json!({ "name": key.name, "scopes": scopes, "masked": key.masked(), "expiresAt": key.expires_at });
    Entry { action, subject: Subject::Key, subject_id: key.id.to_string(), detail }
}

/// Generates a random secret.
pub(super) fn fresh_secret(prefix: &str) -> Result<Secret> {
    Secret::generate(prefix, getrandom::fill).map_err(|error| Error::Internal(format!("the system gives no random bytes: {error}")))
}

fn check(name: Option<&str>, scopes: Option<ScopeSet>) -> Result<()> {
    if name.is_some_and(|name| !is_name(name, MAX_NAME_CHARS)) {
        return Err(Error::invalid("name", format!("must have 1 to {MAX_NAME_CHARS} printable characters and not be blank")));
    }
    if scopes.is_some_and(ScopeSet::is_empty) {
        return Err(Error::invalid("scopes", "must name at least one scope"));
    }
    Ok(())
}
