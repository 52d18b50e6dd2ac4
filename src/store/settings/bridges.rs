//! Queries of the bridges of channel accounts, and of their signing secrets. A bridge is an HTTP endpoint that delivers the messages of an
//! account. Messages to the endpoint and its requests to this server are signed.

use std::{collections::HashMap, sync::LazyLock};

use sea_orm::{
    ActiveValue::NotSet,
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Order, Query},
};

use crate::{
    domain::{
        channel_bridges::{Bridge, BridgeEndpoint},
        ids::{AccountId, StoreId},
        time::Timestamp,
        webhooks::SigningSecret,
    },
    store::{
        Db, Result,
        entity::{bridge_secrets, bridges, outbound},
        row_decoding::{Row, StoredRecord, stored_record},
        settings::{
            encryption_keys::SecretKeys,
            signing_secrets::{Read, SecretTable, readable},
        },
        sql_from_entities::{among, equal_columns, find},
        transaction::{store_transaction::Write, system_transaction::SystemTransaction},
    },
};

pub(in crate::store) static SECRETS: LazyLock<SecretTable> =
    LazyLock::new(|| SecretTable::of_endpoints(bridge_secrets::Entity, bridge_secrets::Column::AccountId));

stored_record! {
    Bridge in bridges: account_id, url, created_at, updated_at
}

impl Write {
    /// Returns the bridge of an account, and locks its row until the end of the transaction.
    pub async fn bridge(&self, account: &AccountId) -> Result<Option<Bridge>> {
        let bridge = find::<Bridge>().filter(bridges::Column::StoreId.eq(self.store())).filter(bridges::Column::AccountId.eq(account));
        Ok(self.select_for_update(bridge, Bridge::decode).await?.pop())
    }

    pub async fn insert_bridge(&self, bridge: &Bridge, secret: &SigningSecret) -> Result<()> {
        self.insert(bridge.row(self.store())).await?;
        self.insert_secret(*SECRETS, bridge.account_id.as_str(), secret).await
    }

    /// Saves the properties of a bridge that can be changed.
    pub async fn save_bridge(&self, bridge: &Bridge) -> Result<()> {
        self.update(bridges::ActiveModel { created_at: NotSet, ..bridge.row(self.store()) }).await
    }

    /// Adds a new signing secret of a bridge. Messages are also signed with the bridge's earlier secrets until `ends_at` at the latest.
    pub async fn supersede_bridge_secrets(&self, account: &AccountId, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        self.supersede(*SECRETS, account.as_str(), secret, ends_at).await
    }

    /// Deletes a bridge with its secrets. Returns false if the account has no bridge.
    pub async fn delete_bridge(&self, account: &AccountId) -> Result<bool> {
        if self.bridge(account).await?.is_none() {
            return Ok(false);
        }
        let secrets = bridge_secrets::Entity::delete_many()
            .filter(bridge_secrets::Column::StoreId.eq(self.store()))
            .filter(bridge_secrets::Column::AccountId.eq(account));
        self.execute(&secrets).await?;
        let bridge =
            bridges::Entity::delete_many().filter(bridges::Column::StoreId.eq(self.store())).filter(bridges::Column::AccountId.eq(account));
        self.execute(&bridge).await?;
        Ok(true)
    }
}

impl Db {
    /// Returns the bridges of a store, in the order of account ids.
    pub async fn bridges(&self, store: &StoreId) -> Result<Vec<Bridge>> {
        let query = find::<Bridge>().filter(bridges::Column::StoreId.eq(store)).order_by_asc(bridges::Column::AccountId);
        self.select(query, Bridge::decode).await
    }
}

impl Db {
    /// Returns the signing secrets of the bridge of an account that are valid at the time `now`, to verify a request that the bridge
    /// signed; no secrets if the account has no bridge. `Err`: why no secret can be decrypted.
    pub async fn bridge_secrets(
        &self,
        store: &StoreId,
        account: &AccountId,
        now: Timestamp,
    ) -> Result<std::result::Result<Vec<SigningSecret>, String>> {
        let query = bridge_secrets::Entity::find()
            .select_only()
            .columns([bridge_secrets::Column::Secret, bridge_secrets::Column::KeyId])
            .filter(bridge_secrets::Column::StoreId.eq(store))
            .filter(bridge_secrets::Column::AccountId.eq(account))
            .filter(in_force(now));
        let (keys, store, account) = (self.secret_keys().clone(), store.clone(), account.clone());
        let read = self.select(query, move |cells| SECRETS.read(cells, &keys, store.as_str(), account.as_str()));
        Ok(readable(read.await?))
    }
}

/// Returns the condition for the secrets that sign messages at the time `now`.
fn in_force(now: Timestamp) -> Condition {
    Condition::any().add(bridge_secrets::Column::EndsAt.is_null()).add(bridge_secrets::Column::EndsAt.gt(now))
}

/// Returns the bridges, by account, for those outbox entries of a store whose column `position` has one of these values. Each bridge has
/// the secrets that sign its messages at the time `now`. One statement reads bridges and secrets, so that no bridge is read without its
/// secrets.
pub(in crate::store) async fn endpoints(
    tx: &SystemTransaction,
    keys: &SecretKeys,
    store: &StoreId,
    positions: &[i64],
    now: Timestamp,
) -> Result<HashMap<AccountId, BridgeEndpoint>> {
    let accounts = Query::select()
        .column(outbound::Column::AccountId)
        .from(outbound::Entity)
        .and_where(outbound::Column::StoreId.eq(store))
        .and_where(among(outbound::Column::Position, positions.iter().copied()))
        .take();
    let own = Condition::all()
        .add(equal_columns(bridges::Column::StoreId, bridge_secrets::Column::StoreId))
        .add(equal_columns(bridges::Column::AccountId, bridge_secrets::Column::AccountId))
        .add(in_force(now));
    let query = Query::select()
        .columns([bridges::Column::AccountId, bridges::Column::Url].map(|column| (bridges::Entity, column)))
        .columns([bridge_secrets::Column::Secret, bridge_secrets::Column::KeyId].map(|column| (bridge_secrets::Entity, column)))
        .from(bridges::Entity)
        .inner_join(bridge_secrets::Entity, own)
        .and_where(bridges::Column::StoreId.eq(store))
        .and_where(bridges::Column::AccountId.in_subquery(accounts))
        .order_by((bridge_secrets::Entity, bridge_secrets::Column::Position), Order::Desc)
        .take();
    let mut endpoints: HashMap<AccountId, (String, Vec<Read>)> = HashMap::new();
    let rows = tx.select(query, |cells| {
        let (account, url): (AccountId, String) = (cells.take()?, cells.take()?);
        let secret = SECRETS.read(cells, keys, store.as_str(), account.as_str())?;
        Ok((account, url, secret))
    });
    for (account, url, secret) in rows.await? {
        endpoints.entry(account).or_insert((url, Vec::new())).1.push(secret);
    }
    Ok(endpoints.into_iter().map(|(account, (url, read))| (account, BridgeEndpoint { url, secrets: readable(read) })).collect())
}
