//! Bridges of channel accounts, and the secrets that messages over them are signed with.

use std::collections::HashMap;

use crate::{
    domain::{
        bridges::{Bridge, Endpoint},
        ids::{AccountId, StoreId},
        time::Timestamp,
        webhooks::SigningSecret,
    },
    store::{
        Db, Result,
        rows::{Cells, Row},
        settings::{
            endpoint_secrets::{Read, Secrets, readable},
            secret_keys::SecretKeys,
        },
        sql::Sql,
        transaction::{chore::Tx, write::Write},
    },
};

pub(in crate::store) const SECRETS: Secrets = Secrets::of_endpoints("bridge_secrets", "account_id");

impl Row for Bridge {
    const COLUMNS: &'static str = "account_id, url, created_at, updated_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self { account_id: cells.id()?, url: cells.take()?, created_at: cells.time()?, updated_at: cells.time()? })
    }
}

impl Write {
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
}

/// Where these messages on their way go that go over a bridge, by account, and what signs them now. In one statement, so
/// that no bridge is seen without its secrets.
pub(in crate::store) async fn endpoints(
    tx: &Tx,
    keys: &SecretKeys,
    positions: &[i64],
    now: Timestamp,
) -> Result<HashMap<(StoreId, AccountId), Endpoint>> {
    let mut sql = Sql::fixed(
        "SELECT b.store_id, b.account_id, b.url, s.secret, s.key_id FROM bridges b \
         JOIN bridge_secrets s ON s.store_id = b.store_id AND s.account_id = b.account_id AND (s.ends_at IS NULL OR s.ends_at > ",
    );
    sql.integer(now.millis())
        .push(") WHERE (b.store_id, b.account_id) IN (SELECT o.store_id, o.account_id FROM outbound o WHERE o.position IN ");
    sql.integers(positions).push(") ORDER BY s.position DESC");
    let mut endpoints: HashMap<(StoreId, AccountId), (String, Vec<Read>)> = HashMap::new();
    let rows = tx.all(&sql, |cells| {
        let place: (StoreId, AccountId) = (cells.id()?, cells.id()?);
        let url = cells.take()?;
        let secret = SECRETS.read(cells, keys, place.0.as_str(), place.1.as_str())?;
        Ok((place, url, secret))
    });
    for (place, url, secret) in rows.await? {
        endpoints.entry(place).or_insert((url, Vec::new())).1.push(secret);
    }
    Ok(endpoints.into_iter().map(|(place, (url, read))| (place, Endpoint { url, secrets: readable(read) })).collect())
}
