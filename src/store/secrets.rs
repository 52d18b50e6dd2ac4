//! What deliveries are signed with, in one table for each sort of endpoint that has secrets.

use super::{Result, write::Write};
use crate::domain::{time::Timestamp, webhooks::SigningSecret};

/// A table of secrets.
#[derive(Clone, Copy)]
pub(super) struct Secrets {
    pub table: &'static str,
    /// The column that says whose they are.
    pub owner: &'static str,
}

impl Write {
    /// A new secret; those before it sign until `ends_at` at the latest.
    pub(super) async fn supersede(&self, of: Secrets, owner: &str, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        let mut sql = self.sql("DELETE FROM ");
        sql.push(of.table).push(" WHERE store_id = $1 AND ").push(of.owner).push(" = ").text(owner);
        sql.push(" AND ends_at <= ").integer(self.now().millis());
        self.run(sql).await?;
        let mut sql = self.sql("UPDATE ");
        sql.push(of.table).push(" SET ends_at = ").integer(ends_at.millis());
        sql.push(" WHERE store_id = $1 AND ends_at IS NULL AND ").push(of.owner).push(" = ").text(owner);
        self.run(sql).await?;
        self.insert_secret(of, owner, secret).await
    }

    pub(super) async fn insert_secret(&self, of: Secrets, owner: &str, secret: &SigningSecret) -> Result<()> {
        let mut sql = self.sql("INSERT INTO ");
        sql.push(of.table).push(" (store_id, ").push(of.owner).push(", secret) VALUES ($1, ");
        sql.text(owner).push(", ").bytes(secret.0.clone()).push(")");
        self.run(sql).await?;
        Ok(())
    }
}
