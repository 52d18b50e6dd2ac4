//! API keys and the server's own secrets.

use sea_orm::{ActiveValue::Set, ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, Statement, sea_query::OnConflict};

use super::{Db, Error, Result, entity::server_secrets};
use crate::domain::{
    ids::KeyId,
    keys::{Caller, SecretHash},
    scopes::ScopeSet,
    time::Timestamp,
};

/// Every request runs this one, so it is written by hand: one statement, prepared once.
const FIND_CALLER: &str = "SELECT k.store_id, k.id, k.scopes, k.owner_user_id FROM api_key_secrets s \
     JOIN api_keys k ON k.store_id = s.store_id AND k.id = s.key_id \
     WHERE s.hash = $1 AND s.expires_at > $2 AND k.expires_at > $2 AND k.active = TRUE";

impl Db {
    /// The caller behind a secret; `None` when it is unknown, superseded, expired or its key inactive at `now`.
    pub async fn find_caller(&self, hash: &SecretHash, now: Timestamp) -> Result<Option<Caller>> {
        let statement = Statement::from_sql_and_values(self.backend(), FIND_CALLER, [hash.as_str().into(), now.millis().into()]);
        let Some(row) = self.read().query_one_raw(statement).await? else { return Ok(None) };
        Ok(Some(Caller {
            store_id: row.try_get_by_index::<String>(0)?.into(),
            key_id: KeyId::from(row.try_get_by_index::<String>(1)?),
            scopes: ScopeSet::from_stored(&row.try_get_by_index::<String>(2)?),
            owner: row.try_get_by_index::<Option<String>>(3)?.map(Into::into),
        }))
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
            .exec_without_returning(&tx)
            .await?;
        tx.commit().await?;
        find().await?.map(|row| row.value).ok_or_else(|| Error::Damaged(format!("the server secret {name} is gone")))
    }
}
