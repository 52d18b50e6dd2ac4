//! Who is calling, and the server's own secrets.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, sea_query::OnConflict};

use super::{
    Db, Error, Result,
    entity::server_secrets,
    replica::Transaction,
    sql::{Cells, Sought, Sql},
};
use crate::domain::{
    ids::StoreId,
    keys::{Caller, SecretHash},
    scopes::ScopeSet,
    time::Timestamp,
};

/// Nearly every request looks its caller up, so this is written by hand.
const CALLERS: &str = " FROM api_key_secrets s \
     JOIN api_keys k ON k.store_id = s.store_id AND k.id = s.key_id \
     WHERE k.active = TRUE AND s.hash IN ";

/// What [`CALLERS`] tells besides where there is a replica: the newest transaction that changed the store.
const NEWEST: &str = "COALESCE((SELECT c.transaction_id FROM changes c WHERE c.store_id = k.store_id AND c.transaction_id > 0 \
     ORDER BY c.transaction_id DESC LIMIT 1), 0)";

/// A caller, and what his look-up told besides.
#[derive(Debug)]
pub struct Known {
    pub caller: Caller,
    /// Where there is a replica: up to which transaction it has to show what the caller's store wrote.
    pub newest: Option<Transaction>,
}

/// Those behind secrets with these hashes, at least one, whether or not they are expired.
pub(super) fn callers_sql<'a>(with_newest: bool, hashes: impl Iterator<Item = &'a str>) -> Sql {
    let mut sql = Sql::fixed("SELECT s.hash, s.expires_at, k.expires_at, k.store_id, k.id, k.scopes, k.owner_user_id");
    if with_newest {
        sql.push(", ").push(NEWEST);
    }
    sql.push(CALLERS).texts(hashes);
    sql
}

/// A caller, and until when he is one.
fn decode(cells: &mut Cells<'_>) -> Result<(Timestamp, Caller)> {
    let until = cells.time()?.min(cells.time()?);
    let (store_id, key_id) = (cells.id()?, cells.id()?);
    Ok((until, Caller { store_id, key_id, scopes: ScopeSet::from_stored(&cells.take::<String>()?), owner: cells.optional_id()? }))
}

impl Db {
    /// The caller behind a secret; `None` when it is unknown, superseded, expired or its key inactive at `now`. Every request asks, so
    /// that a changed key counts at once in every process.
    pub async fn find_caller(&self, hash: &SecretHash, now: Timestamp) -> Result<Option<Known>> {
        let with_newest = self.has_replica();
        let found = self.by_key(Sought::Callers { with_newest }, hash.as_str(), move |cells| {
            cells.skip();
            let (until, caller) = decode(cells)?;
            let newest = if with_newest { Some(Transaction(cells.take()?)) } else { None };
            Ok((until, Known { caller, newest }))
        });
        Ok(found.await?.filter(|(until, _)| *until > now).map(|(_, known)| known))
    }

    /// The secret of that name; `fresh` becomes it when there is none yet. Every process on a database gets the same.
    pub async fn server_secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let find = || server_secrets::Entity::find().filter(server_secrets::Column::Name.eq(name)).one(self.read());
        if let Some(row) = find().await? {
            return Ok(row.value);
        }
        let tx = self.begin().await?;
        let row = server_secrets::ActiveModel { name: Set(name.to_owned()), value: Set(fresh) };
        let fresh = server_secrets::Entity::insert(row);
        tx.execute(&fresh.on_conflict(OnConflict::column(server_secrets::Column::Name).do_nothing().to_owned())).await?;
        tx.commit().await?;
        find().await?.map(|row| row.value).ok_or_else(|| Error::Damaged(format!("the server secret {name} is gone")))
    }

    pub async fn store_exists(&self, store: &StoreId) -> Result<bool> {
        let sql = Sql::of(store, "SELECT id FROM stores WHERE id = $1");
        Ok(self.first(sql, |cells| cells.take::<String>()).await?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::Fixture;

    #[tokio::test]
    async fn a_changed_key_counts_at_once() {
        let fixture = Fixture::new().await;
        let (key, hash) = fixture.key("valid", true, 1000).await;
        let at = async |now: i64| fixture.db.find_caller(&hash, Timestamp::from_millis(now)).await.unwrap().is_some();
        for _ in 0..5 {
            assert_eq!((at(999).await, at(1000).await), (true, false));
        }
        // As another process does, by connections of its own.
        let other = Db::open(&fixture.url, 1, None).await.unwrap();
        for active in [false, true, false, true] {
            let tx = other.begin().await.unwrap();
            tx.run(&Sql::fixed(&format!("UPDATE api_keys SET active = {active} WHERE id = '{}'", key.as_str()))).await.unwrap();
            assert_eq!(at(1).await, !active, "not committed");
            tx.commit().await.unwrap();
            for _ in 0..3 {
                assert_eq!(at(1).await, active);
            }
        }
        fixture.execute(&format!("DELETE FROM api_key_secrets WHERE hash = '{}'", hash.as_str())).await.unwrap();
        assert!(!at(1).await);
        other.close().await.unwrap();
        // Nor by whoever has closed the file.
        fixture.db.clone().close().await.unwrap();
        assert!(fixture.db.find_caller(&hash, Timestamp::from_millis(1)).await.is_err());
    }
}
