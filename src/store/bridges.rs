//! Bridges of channel accounts, and the secrets that messages over them are signed with.

use super::{
    Db, Result,
    secrets::Secrets,
    sql::{Cells, Row, Sql},
    write::Write,
};
use crate::domain::{
    bridges::{Bridge, Endpoint},
    ids::{AccountId, StoreId},
    store::Account,
    time::Timestamp,
    webhooks::SigningSecret,
};

const SECRETS: Secrets = Secrets { table: "bridge_secrets", owner: "account_id" };

impl Row for Bridge {
    const COLUMNS: &'static str = "account_id, url, created_at, updated_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self { account_id: cells.id()?, url: cells.take()?, created_at: cells.time()?, updated_at: cells.time()? })
    }
}

impl Write {
    /// An account whose bridge is to be changed, held until the end of the transaction: of two who begin one at once the
    /// second finds what the first did.
    pub async fn account_to_bridge(&self, id: &AccountId) -> Result<Option<Account>> {
        self.held("accounts", id.as_str()).await
    }

    /// The bridge of an account, held until the end of the transaction.
    pub async fn bridge(&self, account: &AccountId) -> Result<Option<Bridge>> {
        let mut sql = self.sql("SELECT ");
        sql.push(Bridge::COLUMNS).push(" FROM bridges WHERE store_id = $1 AND account_id = ").text(account.as_str());
        self.hold(&mut sql);
        self.first(sql, Bridge::decode).await
    }

    pub async fn insert_bridge(&self, bridge: &Bridge, secret: &SigningSecret) -> Result<()> {
        let mut sql = self.sql("INSERT INTO bridges (store_id, account_id, url, created_at, updated_at) VALUES ($1, ");
        sql.text(bridge.account_id.as_str()).push(", ").text(&bridge.url).push(", ");
        sql.integer(bridge.created_at.millis()).push(", ").integer(bridge.updated_at.millis()).push(")");
        self.run(sql).await?;
        self.insert_secret(SECRETS, bridge.account_id.as_str(), secret).await
    }

    /// Writes what can be changed of a bridge.
    pub async fn save_bridge(&self, bridge: &Bridge) -> Result<()> {
        let mut sql = self.sql("UPDATE bridges SET url = ");
        sql.text(&bridge.url).push(", updated_at = ").integer(bridge.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND account_id = ").text(bridge.account_id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// A new secret; those before it sign until `ends_at` at the latest.
    pub async fn supersede_bridge_secrets(&self, account: &AccountId, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        self.supersede(SECRETS, account.as_str(), secret, ends_at).await
    }

    /// Removes a bridge with its secrets. False: there is none.
    pub async fn delete_bridge(&self, account: &AccountId) -> Result<bool> {
        if self.bridge(account).await?.is_none() {
            return Ok(false);
        }
        for table in ["bridge_secrets", "bridges"] {
            let mut sql = self.sql("DELETE FROM ");
            sql.push(table).push(" WHERE store_id = $1 AND account_id = ").text(account.as_str());
            self.run(sql).await?;
        }
        Ok(true)
    }
}

impl Db {
    /// The bridges of a store, by account.
    pub async fn bridges(&self, store: &StoreId) -> Result<Vec<Bridge>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(Bridge::COLUMNS).push(" FROM bridges WHERE store_id = $1 ORDER BY account_id");
        self.all(sql, Bridge::decode).await
    }

    /// Where the messages of an account go, and what signs them now. None: it has no bridge.
    pub async fn bridge_endpoint(&self, store: &StoreId, account: &AccountId, now: Timestamp) -> Result<Option<Endpoint>> {
        let mut sql = Sql::of(
            store,
            "SELECT b.url, s.secret FROM bridges b JOIN bridge_secrets s ON s.store_id = b.store_id AND s.account_id = b.account_id \
             WHERE b.store_id = $1 AND b.account_id = ",
        );
        sql.text(account.as_str()).push(" AND (s.ends_at IS NULL OR s.ends_at > ").integer(now.millis()).push(") ORDER BY s.position DESC");
        let rows = self.all(sql, |cells| Ok((cells.take::<String>()?, SigningSecret(cells.bytes()?)))).await?;
        Ok(rows.into_iter().fold(None, |endpoint: Option<Endpoint>, (url, secret)| {
            let mut endpoint = endpoint.unwrap_or(Endpoint { url, secrets: Vec::new() });
            endpoint.secrets.push(secret);
            Some(endpoint)
        }))
    }
}
