//! API key authentication: finds the caller of a request by the hash of its API key's secret. Also stores the server's own secrets, such as
//! the key with which the server authenticates (signs) pagination cursors.

use std::sync::LazyLock;

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityName, EntityTrait, IdenStatic, QueryFilter, QuerySelect, sea_query::OnConflict};

use crate::{
    domain::{
        api_key_scopes::ScopeSet,
        api_keys::{Caller, SecretHash},
        ids::StoreId,
        time::Timestamp,
    },
    store::{
        Db, Error, Result,
        entity::{server_secrets, stores},
        postgres::replica::Transaction,
        row_decoding::Cells,
        settings::{
            encryption_keys::{EncryptedSecret, SecretRow},
            signing_secrets::SecretTable,
        },
        statement::key_lookup_types::LookupTarget,
    },
};

/// The table of the server's own secrets. Each secret has a name.
pub(in crate::store) static SECRETS: LazyLock<SecretTable> = LazyLock::new(|| SecretTable {
    table: server_secrets::Entity.table_name(),
    owner: server_secrets::Column::Name.as_str(),
    value: server_secrets::Column::Value.as_str(),
    key_id: server_secrets::Column::KeyId.as_str(),
    store: None,
});

fn secret_row_of_server(name: &str) -> SecretRow<'_> {
    SecretRow { table: SECRETS.table, store: "", owner: name }
}

/// The SQL that finds callers by the hashes of their secrets. The batched look-up appends the list of hashes. The SQL also finds callers
/// whose secret or key has expired; `Db::find_caller` leaves these out. The SQL is a constant and is not built by the ORM, since nearly
/// every request runs it. `$newest` is the column for the newest transaction that changed the caller's store, or empty if the server has no
/// standby (a replica of the database for reads).
macro_rules! callers {
    ($newest:literal) => {
        concat!(
            "SELECT s.hash, s.expires_at, k.expires_at, k.store_id, k.id, k.name, k.scopes, k.owner_user_id",
            $newest,
            " FROM api_key_secrets s JOIN api_keys k ON k.store_id = s.store_id AND k.id = s.key_id WHERE k.active = TRUE AND s.hash IN "
        )
    };
}

const CALLERS: &str = callers!("");
const CALLERS_AND_NEWEST: &str = callers!(
    ", COALESCE((SELECT c.transaction_id FROM changes c WHERE c.store_id = k.store_id AND c.transaction_id > 0 \
     ORDER BY c.transaction_id DESC LIMIT 1), 0)"
);

/// A caller and, from the same look-up, the newest transaction that changed the caller's store.
#[derive(Debug)]
pub struct LookedUpCaller {
    pub caller: Caller,
    /// If there is a standby: the newest transaction that changed the caller's store. The request may read from the standby only once the
    /// standby shows this transaction.
    pub newest: Option<Transaction>,
}

/// Decodes a row into the caller, and the time at which the caller's secret or API key expires, whichever is earlier.
fn decode(cells: &mut Cells<'_>) -> Result<(Timestamp, Caller)> {
    let until = cells.take::<Timestamp>()?.min(cells.take()?);
    let (store_id, key_id, key_name) = (cells.take()?, cells.take()?, cells.take()?);
    let scopes = ScopeSet::from_stored(&cells.take::<String>()?);
    Ok((until, Caller { store_id, key_id, key_name, scopes, owner: cells.take()? }))
}

impl Db {
    /// Looks up the caller that a secret belongs to. `None`: the secret is unknown, the secret or its key has expired at `now`, or the key
    /// is inactive. Every authenticated request runs this look-up, so that a change of a key takes effect immediately in every process.
    pub async fn find_caller(&self, hash: &SecretHash, now: Timestamp) -> Result<Option<LookedUpCaller>> {
        let with_newest = self.has_replica();
        let found =
            self.by_key(LookupTarget::Listed(if with_newest { CALLERS_AND_NEWEST } else { CALLERS }), hash.as_str(), move |cells| {
                cells.skip();
                let (until, caller) = decode(cells)?;
                let newest = if with_newest { Some(Transaction(cells.take()?)) } else { None };
                Ok((until, LookedUpCaller { caller, newest }))
            });
        Ok(found.await?.filter(|(until, _)| *until > now).map(|(_, known)| known))
    }

    /// Returns the server's secret of that name. If there is none yet, stores `fresh` as the secret. So all processes on a database use the
    /// same secret. The only exception is a process that lacks the encryption key of the secret: it gets back the `fresh` that it passed.
    /// Such a process cannot verify the cursors of other processes. It also rebuilds its search index, since the secret named `search`
    /// identifies the database of an index.
    pub async fn server_secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let find = || self.find_one(server_secrets::Entity::find().filter(server_secrets::Column::Name.eq(name)));
        let mut found = find().await?;
        if found.is_none() {
            let sealed = self.secret_keys().seal(&fresh, secret_row_of_server(name))?;
            let row = server_secrets::ActiveModel { name: Set(name.to_owned()), value: Set(sealed.bytes), key_id: Set(sealed.key_id) };
            let insert = server_secrets::Entity::insert(row);
            self.execute(&insert.on_conflict(OnConflict::column(server_secrets::Column::Name).do_nothing().to_owned())).await?;
            found = find().await?;
        }
        let row = found.ok_or_else(|| Error::Damaged(format!("the server secret {name} is gone")))?;
        let secret = self.secret_keys().open(EncryptedSecret { bytes: row.value, key_id: row.key_id }, secret_row_of_server(name));
        Ok(secret.unwrap_or_else(|reason| {
            tracing::error!(name, reason, "a secret of the server cannot be read; this process uses one of its own until the key is back");
            fresh
        }))
    }

    pub async fn store_exists(&self, store: &StoreId) -> Result<bool> {
        let query = stores::Entity::find_by_id(store.as_str()).select_only().column(stores::Column::Id);
        Ok(!self.select(query, |_| Ok(())).await?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::sea_query::Expr;

    use super::*;
    use crate::store::{entity::api_keys, fixture::Fixture};

    #[tokio::test]
    async fn a_key_changed_by_another_process_takes_effect_immediately() {
        let fixture = Fixture::new().await;
        let (key, hash) = fixture.key("valid", true, 1000).await;
        let at = async |now: i64| fixture.db.find_caller(&hash, Timestamp::from_millis(now)).await.unwrap().is_some();
        for _ in 0..5 {
            assert_eq!((at(999).await, at(1000).await), (true, false));
        }
        // `other` stands for another process: it changes the key through its own connections.
        let other = Db::open(&fixture.url, 1, None).await.unwrap();
        for active in [false, true, false, true] {
            let tx = other.begin().await.unwrap();
            let changed = api_keys::Entity::update_many()
                .col_expr(api_keys::Column::Active, Expr::value(active))
                .filter(api_keys::Column::Id.eq(&key));
            tx.execute(&changed).await.unwrap();
            assert_eq!(at(1).await, !active, "not committed");
            tx.commit().await.unwrap();
            for _ in 0..3 {
                assert_eq!(at(1).await, active);
            }
        }
        fixture.execute(&format!("DELETE FROM api_key_secrets WHERE hash = '{}'", hash.as_str())).await.unwrap();
        assert!(!at(1).await);
        other.close().await.unwrap();
        // After the database was closed, the look-up fails.
        fixture.db.clone().close().await.unwrap();
        assert!(fixture.db.find_caller(&hash, Timestamp::from_millis(1)).await.is_err());
    }
}
