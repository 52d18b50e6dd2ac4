//! API keys as they are made and changed. Who a secret belongs to is looked up in `access`.

use super::{
    Db, Result,
    sql::{Cells, Sql},
    write::Write,
};
use crate::domain::{
    ids::{KeyId, StoreId, UserId},
    keys::{ApiKey, SecretHash},
    scopes::ScopeSet,
    time::Timestamp,
};

const COLUMNS: &str = "k.id, k.name, k.scopes, k.active, k.owner_user_id, k.created_at, k.expires_at, k.last_used_at, ";

const LAST_FOUR: &str =
    "(SELECT s.last_four FROM api_key_secrets s WHERE s.store_id = k.store_id AND s.key_id = k.id ORDER BY s.expires_at DESC LIMIT 1)";

const KEYS: &str = " FROM api_keys k WHERE k.store_id = $1";

fn decode(cells: &mut Cells<'_>) -> Result<ApiKey> {
    Ok(ApiKey {
        id: cells.id()?,
        name: cells.take()?,
        scopes: ScopeSet::from_stored(&cells.take::<String>()?),
        active: cells.take()?,
        owner: cells.optional_id()?,
        created_at: cells.time()?,
        expires_at: cells.time()?,
        last_used_at: cells.optional_time()?,
        last_four: cells.take::<Option<String>>()?.unwrap_or_default(),
    })
}

impl Db {
    /// Every key of the store, oldest first.
    pub async fn keys(&self, store: &StoreId) -> Result<Vec<ApiKey>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(COLUMNS).push(LAST_FOUR).push(KEYS).push(" ORDER BY k.created_at, k.id");
        self.all(sql, decode).await
    }
}

impl Write {
    /// Stores a new key; it has no secret yet.
    pub async fn insert_key(&self, key: &ApiKey) -> Result<()> {
        let mut sql = self.sql(
            "INSERT INTO api_keys (store_id, id, name, scopes, active, owner_user_id, created_at, updated_at, expires_at) VALUES ($1, ",
        );
        sql.text(key.id.as_str()).push(", ").text(&key.name).push(", ").text(&key.scopes.to_string()).push(", TRUE, ");
        sql.optional_text(key.owner.as_ref().map(UserId::as_str));
        for at in [key.created_at, key.created_at, key.expires_at] {
            sql.push(", ").integer(at.millis());
        }
        sql.push(")");
        self.run(sql).await?;
        Ok(())
    }

    /// The key, held until the end of the transaction.
    pub async fn key(&self, id: &KeyId) -> Result<Option<ApiKey>> {
        let mut sql = self.sql("SELECT k.id");
        sql.push(KEYS).push(" AND k.id = ").text(id.as_str());
        self.hold(&mut sql);
        if self.first(sql, |cells| cells.id::<KeyId>()).await?.is_none() {
            return Ok(None);
        }
        // Only once it is held: whoever held it may have given it another secret.
        let mut sql = self.sql("SELECT ");
        sql.push(COLUMNS).push(LAST_FOUR).push(KEYS).push(" AND k.id = ").text(id.as_str());
        self.first(sql, decode).await
    }

    /// Writes what can be changed of a key.
    pub async fn save_key(&self, key: &ApiKey) -> Result<()> {
        let mut sql = self.sql("UPDATE api_keys SET name = ");
        sql.text(&key.name).push(", scopes = ").text(&key.scopes.to_string());
        sql.push(if key.active { ", active = TRUE" } else { ", active = FALSE" });
        sql.push(", expires_at = ").integer(key.expires_at.millis()).push(", updated_at = ").integer(self.now().millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(key.id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// A secret of a key beside those that it has, which end at `others_end` unless they end before.
    pub async fn add_key_secret(&self, key: &ApiKey, hash: &SecretHash, others_end: Timestamp) -> Result<()> {
        let mut sql = self.sql("UPDATE api_key_secrets SET expires_at = ");
        sql.integer(others_end.millis()).push(" WHERE store_id = $1 AND key_id = ").text(key.id.as_str());
        sql.push(" AND expires_at > ").integer(others_end.millis());
        self.run(sql).await?;
        let mut sql = self.sql("INSERT INTO api_key_secrets (store_id, hash, key_id, last_four, created_at, expires_at) VALUES ($1, ");
        sql.text(hash.as_str()).push(", ").text(key.id.as_str()).push(", ").text(&key.last_four);
        sql.push(", ").integer(self.now().millis()).push(", ").integer(key.expires_at.millis()).push(")");
        self.run(sql).await?;
        Ok(())
    }

    /// Removes a key and its secrets.
    pub async fn delete_key(&self, id: &KeyId) -> Result<()> {
        let mut sql = self.sql("DELETE FROM api_keys WHERE store_id = $1 AND id = ");
        sql.text(id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// Notes when keys were last used.
    pub async fn save_key_uses(&self, uses: &[(KeyId, Timestamp)]) -> Result<()> {
        for (id, at) in uses {
            let mut sql = self.sql("UPDATE api_keys SET last_used_at = ");
            sql.integer(at.millis()).push(" WHERE store_id = $1 AND id = ").text(id.as_str());
            sql.push(" AND (last_used_at IS NULL OR last_used_at < ").integer(at.millis()).push(")");
            self.run(sql).await?;
        }
        Ok(())
    }
}
