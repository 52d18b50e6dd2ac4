//! Encryption of plaintext secrets at start, re-encryption after a key rotation, and the number of secrets for each encryption key.
//!
//! Called by `app` at each start and by `counterpart secrets`. A secret that cannot be decrypted stays as it is.

use std::collections::BTreeMap;

use sea_orm::{
    DbBackend,
    sea_query::{Asterisk, Expr, ExprTrait, Func, Order, Query},
};

use crate::store::{
    Db, Result, api_key_auth,
    parameterised_sql::Sql,
    settings::{
        bridges,
        encryption_keys::{EncryptedSecret, SecretRow},
        signing_secrets::SecretTable,
        webhooks,
    },
    transaction::system_transaction::SystemTransaction,
};

/// Returns the description of every table of secrets.
fn tables() -> [SecretTable; 3] {
    [*webhooks::SECRETS, *bridges::SECRETS, *api_key_auth::SECRETS]
}

/// The greatest number of secrets that one transaction encrypts.
const REENCRYPTION_BATCH: usize = 200;

/// The result of a re-encryption of secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReencryptionResult {
    /// The number of secrets that were encrypted.
    pub sealed: u64,
    /// The number of secrets that no key of this process decrypts.
    pub unreadable: u64,
}

struct StoredSecretRow {
    of: SecretTable,
    store: String,
    owner: String,
    stored: EncryptedSecret,
}

/// Sets `secure_delete` of SQLite to `mode`. While it is on, SQLite overwrites replaced bytes with zeros, so that a secret that was stored
/// in plaintext does not stay in the file. Does nothing on PostgreSQL, which has no such setting and keeps a replaced row until VACUUM
/// removes it.
async fn set_secure_delete(tx: &SystemTransaction, mode: &str) -> Result<()> {
    if tx.backend() == DbBackend::Sqlite {
        tx.all(&Sql::fixed(&format!("PRAGMA secure_delete = {mode}")), |_| Ok(())).await?;
    }
    Ok(())
}

impl Db {
    /// Encrypts the secrets that are stored unencrypted, if there is a key; returns how many.
    pub async fn encrypt_plain(&self) -> Result<u64> {
        if self.secret_keys().current_id().is_none() {
            return Ok(0);
        }
        Ok(self.reencrypt_where(|key_id| key_id.is_none()).await?.sealed)
    }

    /// Encrypts with the current key every secret that is not encrypted with it.
    pub async fn reencrypt_all(&self) -> Result<ReencryptionResult> {
        self.secret_keys().refresh()?;
        let current = self.secret_keys().current_id();
        self.reencrypt_where(|key_id| key_id != current.as_deref()).await
    }

    /// Returns the number of secrets for each encryption key. In the returned map, `None` stands for secrets that are not encrypted.
    pub async fn secrets_by_key(&self) -> Result<BTreeMap<Option<String>, i64>> {
        let mut counts = BTreeMap::new();
        for of in tables() {
            let by_key =
                Query::select().column(of.key_id).expr(Func::count(Expr::col(Asterisk))).from(of.table).group_by_col(of.key_id).take();
            for (key_id, count) in self.select(by_key, |cells| Ok((cells.take::<Option<String>>()?, cells.take::<i64>()?))).await? {
                *counts.entry(key_id).or_default() += count;
            }
        }
        Ok(counts)
    }

    async fn reencrypt_where(&self, wanted: impl Fn(Option<&str>) -> bool) -> Result<ReencryptionResult> {
        let mut resealed = ReencryptionResult::default();
        for of in tables() {
            let found = self.secrets_in(of).await?;
            let found: Vec<StoredSecretRow> = found.into_iter().filter(|found| wanted(found.stored.key_id.as_deref())).collect();
            for some in found.chunks(REENCRYPTION_BATCH) {
                let tx = self.begin().await?;
                set_secure_delete(&tx, "ON").await?;
                let done = self.reencrypt_batch(&tx, some, &mut resealed).await;
                // The setting is switched off even after a failure, since later writes use the same connection.
                set_secure_delete(&tx, "OFF").await?;
                done?;
                tx.commit().await?;
            }
        }
        Ok(resealed)
    }

    async fn reencrypt_batch(&self, tx: &SystemTransaction, batch: &[StoredSecretRow], resealed: &mut ReencryptionResult) -> Result<()> {
        for StoredSecretRow { of, store, owner, stored } in batch {
            let place = SecretRow { table: of.table, store, owner };
            let former = EncryptedSecret { bytes: stored.bytes.clone(), key_id: stored.key_id.clone() };
            let Ok(secret) = self.secret_keys().open(former, place) else {
                resealed.unreadable += 1;
                continue;
            };
            let sealed = self.secret_keys().seal(&secret, place)?;
            let update = Query::update()
                .table(of.table)
                .value(of.key_id, sealed.key_id)
                .value(of.value, sealed.bytes)
                .cond_where(of.of_owner(store, owner))
                // Skips the secret if another process has encrypted it since it was read.
                .and_where(Expr::col(of.value).eq(stored.bytes.clone()))
                .take();
            resealed.sealed += tx.execute(&update).await?;
        }
        Ok(())
    }

    async fn secrets_in(&self, of: SecretTable) -> Result<Vec<StoredSecretRow>> {
        let mut all = Query::select();
        for column in of.store.into_iter().chain([of.owner]) {
            all.column(column).order_by(column, Order::Asc);
        }
        all.columns([of.value, of.key_id]).from(of.table);
        self.select(all, move |cells| {
            let store = if of.store.is_some() { cells.take()? } else { String::new() };
            let owner = cells.take()?;
            Ok(StoredSecretRow { of, store, owner, stored: EncryptedSecret { bytes: cells.take()?, key_id: cells.take()? } })
        })
        .await
    }
}
