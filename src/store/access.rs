//! Who is calling, and the server's own secrets.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, sea_query::OnConflict};

use super::{
    Db, Error, Result,
    entity::server_secrets,
    replica::Transaction,
    sql::{Sought, Sql},
};
use crate::domain::{
    ids::StoreId,
    keys::{Caller, SecretHash},
    scopes::ScopeSet,
    time::Timestamp,
};

/// Every request looks its caller up, so this is written by hand.
const CALLERS: &str = " FROM api_key_secrets s \
     JOIN api_keys k ON k.store_id = s.store_id AND k.id = s.key_id \
     WHERE k.active = TRUE AND s.hash IN ";

/// What [`CALLERS`] tells besides where there is a replica: the newest transaction that changed the store.
const NEWEST: &str = "COALESCE((SELECT c.transaction_id FROM changes c WHERE c.store_id = k.store_id AND c.transaction_id > 0 \
     ORDER BY c.transaction_id DESC LIMIT 1), 0)";

/// Those behind secrets with these hashes, at least one, whether or not they are expired.
pub(super) fn callers_sql<'a>(with_newest: bool, hashes: impl Iterator<Item = &'a str>) -> Sql {
    let mut sql = Sql::fixed("SELECT s.hash, s.expires_at, k.expires_at, k.store_id, k.id, k.scopes, k.owner_user_id");
    if with_newest {
        sql.push(", ").push(NEWEST);
    }
    sql.push(CALLERS).texts(hashes);
    sql
}

impl Db {
    /// The caller behind a secret; `None` when it is unknown, superseded, expired or its key inactive at `now`. Where there is
    /// a replica, also up to which transaction it has to show what the caller's store wrote.
    pub async fn find_caller(&self, hash: &SecretHash, now: Timestamp) -> Result<Option<(Caller, Option<Transaction>)>> {
        let with_newest = self.has_replica();
        let found = self.by_key(Sought::Callers { with_newest }, hash.as_str(), move |cells| {
            let _hash: String = cells.take()?;
            let until = cells.time()?.min(cells.time()?);
            let caller = Caller {
                store_id: cells.id()?,
                key_id: cells.id()?,
                scopes: ScopeSet::from_stored(&cells.take::<String>()?),
                owner: cells.optional_id()?,
            };
            Ok((until, caller, if with_newest { Some(Transaction(cells.take()?)) } else { None }))
        });
        Ok(found.await?.filter(|(until, ..)| *until > now).map(|(_, caller, newest)| (caller, newest)))
    }

    /// The secret of that name; `fresh` becomes it when there is none yet. Every process on a database gets the same.
    pub async fn server_secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let find = || server_secrets::Entity::find().filter(server_secrets::Column::Name.eq(name)).one(self.read());
        if let Some(row) = find().await? {
            return Ok(row.value);
        }
        let tx = self.begin().await?;
        let row = server_secrets::ActiveModel { name: Set(name.to_owned()), value: Set(fresh) };
        server_secrets::Entity::insert(row)
            .on_conflict(OnConflict::column(server_secrets::Column::Name).do_nothing().to_owned())
            .exec_without_returning(&*tx)
            .await?;
        tx.commit().await?;
        find().await?.map(|row| row.value).ok_or_else(|| Error::Damaged(format!("the server secret {name} is gone")))
    }

    pub async fn store_exists(&self, store: &StoreId) -> Result<bool> {
        let sql = Sql::of(store, "SELECT id FROM stores WHERE id = $1");
        Ok(self.first(sql, |cells| cells.take::<String>()).await?.is_some())
    }
}
