//! Signing secrets of endpoints (webhooks and bridges), in one table for each kind of endpoint. They are encrypted at rest
//! (`encryption_keys`).

use crate::{
    domain::{time::Timestamp, webhooks::SigningSecret},
    store::{
        Result,
        row_decoding::Cells,
        settings::encryption_keys::{EncryptedSecret, SecretKeys, SecretRow},
        transaction::store_transaction::Write,
    },
};

/// The description of a table of secrets: its name and columns.
#[derive(Clone, Copy)]
pub(in crate::store) struct SecretTable {
    pub table: &'static str,
    /// The column with the owner of a secret: the id of an endpoint, or the name of a secret of the server itself.
    pub owner: &'static str,
    pub value: &'static str,
    /// The column with the id of the store (tenant), if the secrets belong to a store.
    pub store: Option<&'static str>,
}

/// A secret of an endpoint, or why it cannot be read.
pub(in crate::store) type Read = std::result::Result<SigningSecret, String>;

impl SecretTable {
    /// Returns the description of a table with signing secrets of endpoints.
    pub const fn of_endpoints(table: &'static str, owner: &'static str) -> Self {
        Self { table, owner, value: "secret", store: Some("store_id") }
    }

    /// Reads and decrypts the secret in the columns `secret, key_id`.
    pub fn read(self, cells: &mut Cells<'_>, keys: &SecretKeys, store: &str, owner: &str) -> Result<Read> {
        let stored = EncryptedSecret { bytes: cells.bytes()?, key_id: cells.take()? };
        Ok(keys.open(stored, SecretRow { table: self.table, store, owner }).map(SigningSecret))
    }
}

/// Returns the secrets that can be read. `Err`: there are secrets, but none can be read; contains the reason for the first secret.
pub(in crate::store) fn readable(secrets: impl IntoIterator<Item = Read>) -> std::result::Result<Vec<SigningSecret>, String> {
    let (mut readable, mut reason) = (Vec::new(), None);
    for secret in secrets {
        match secret {
            Ok(secret) => readable.push(secret),
            Err(because) => reason = reason.or(Some(because)),
        }
    }
    match reason {
        Some(reason) if readable.is_empty() => Err(reason),
        _ => Ok(readable),
    }
}

impl Write {
    /// Adds a new signing secret of an endpoint. Messages are also signed with the endpoint's earlier secrets until `ends_at` at the
    /// latest. Deletes the secrets that have expired.
    pub(in crate::store) async fn supersede(&self, of: SecretTable, owner: &str, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        let mut sql = self.sql("DELETE FROM ");
        sql.push(of.table).push(" WHERE store_id = $1 AND ").push(of.owner).push(" = ").text(owner);
        sql.push(" AND ends_at <= ").integer(self.now().millis());
        self.run(sql).await?;
        let mut sql = self.sql("UPDATE ");
        sql.push(of.table).push(" SET ends_at = ").integer(ends_at.millis());
        sql.push(" WHERE store_id = $1 AND (ends_at IS NULL OR ends_at > ").integer(ends_at.millis());
        sql.push(") AND ").push(of.owner).push(" = ").text(owner);
        self.run(sql).await?;
        self.insert_secret(of, owner, secret).await
    }

    pub(in crate::store) async fn insert_secret(&self, of: SecretTable, owner: &str, secret: &SigningSecret) -> Result<()> {
        let sealed = self.secret_keys().seal(&secret.0, SecretRow { table: of.table, store: self.store().as_str(), owner })?;
        let mut sql = self.sql("INSERT INTO ");
        sql.push(of.table).push(" (store_id, ").push(of.owner).push(", secret, key_id) VALUES ($1, ");
        sql.text(owner).push(", ").bytes(sealed.bytes).push(", ").optional_text(sealed.key_id.as_deref()).push(")");
        self.run(sql).await?;
        Ok(())
    }
}
