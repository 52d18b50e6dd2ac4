//! API keys and the server's own secrets.

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder,
    sea_query::{Expr, OnConflict},
};

use super::{
    Db, Error, Result,
    entity::{api_key_secrets, api_keys, server_secrets, stores, users},
    sql::{Param, Sql},
};
use crate::domain::{
    ids::{KeyId, StoreId, UserId},
    keys::{ApiKey, Caller, SecretHash},
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
        let sql = Sql::fixed(FIND_CALLER).with(Param::Text(hash.as_str().to_owned())).with(Param::Integer(now.millis()));
        self.first(sql, |cells| {
            Ok(Caller {
                store_id: cells.id()?,
                key_id: cells.id()?,
                scopes: ScopeSet::from_stored(&cells.take::<String>()?),
                owner: cells.optional_id()?,
            })
        })
        .await
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
}

impl Db {
    pub async fn store_exists(&self, store: &StoreId) -> Result<bool> {
        Ok(stores::Entity::find_by_id(store.as_str()).one(self.read()).await?.is_some())
    }

    /// Whether a user of the store has that `userId`.
    pub async fn is_user(&self, store: &StoreId, user: &UserId) -> Result<bool> {
        let found = users::Entity::find()
            .filter(users::Column::StoreId.eq(store.as_str()))
            .filter(users::Column::UserId.eq(user.as_str()))
            .one(self.read())
            .await?;
        Ok(found.is_some())
    }

    /// Stores a new key with its first secret.
    pub async fn insert_key(&self, store: &StoreId, key: &ApiKey, hash: &SecretHash) -> Result<()> {
        let tx = self.begin().await?;
        let row = api_keys::ActiveModel {
            store_id: Set(store.to_string()),
            id: Set(key.id.to_string()),
            name: Set(key.name.clone()),
            scopes: Set(key.scopes.to_string()),
            active: Set(key.active),
            owner_user_id: Set(key.owner.as_ref().map(ToString::to_string)),
            created_at: Set(key.created_at.millis()),
            updated_at: Set(key.created_at.millis()),
            expires_at: Set(key.expires_at.millis()),
            last_used_at: Set(None),
        };
        api_keys::Entity::insert(row).exec_without_returning(&*tx).await?;
        insert_secret(&*tx, store, &key.id, hash, &key.last_four, key.created_at, key.expires_at).await?;
        tx.commit().await
    }

    /// A key of the store.
    pub async fn key(&self, store: &StoreId, id: &KeyId) -> Result<Option<ApiKey>> {
        let Some(row) = find_key(store, id).one(self.read()).await? else { return Ok(None) };
        Ok(Some(with_last_four(self.read(), row).await?))
    }

    /// Every key of the store, oldest first.
    pub async fn keys(&self, store: &StoreId) -> Result<Vec<ApiKey>> {
        let rows = api_keys::Entity::find()
            .filter(api_keys::Column::StoreId.eq(store.as_str()))
            .order_by_asc(api_keys::Column::CreatedAt)
            .order_by_asc(api_keys::Column::Id)
            .all(self.read())
            .await?;
        let secrets = api_key_secrets::Entity::find()
            .filter(api_key_secrets::Column::StoreId.eq(store.as_str()))
            .order_by_asc(api_key_secrets::Column::CreatedAt)
            .all(self.read())
            .await?;
        // The newest secret of a key comes last and stays.
        let newest: std::collections::HashMap<String, String> = secrets.into_iter().map(|row| (row.key_id, row.last_four)).collect();
        Ok(rows
            .into_iter()
            .map(|row| {
                let last_four = newest.get(&row.id).cloned().unwrap_or_default();
                api_key(row, last_four)
            })
            .collect())
    }

    /// Changes a key; what is `None` stays. `None` when the store has no such key.
    pub async fn edit_key(
        &self,
        store: &StoreId,
        id: &KeyId,
        name: Option<String>,
        scopes: Option<ScopeSet>,
        active: Option<bool>,
        now: Timestamp,
    ) -> Result<Option<ApiKey>> {
        let tx = self.begin().await?;
        let Some(row) = find_key(store, id).one(&*tx).await? else { return Ok(None) };
        let mut row: api_keys::ActiveModel = row.into();
        row.updated_at = Set(now.millis());
        if let Some(name) = name {
            row.name = Set(name);
        }
        if let Some(scopes) = scopes {
            row.scopes = Set(scopes.to_string());
        }
        if let Some(active) = active {
            row.active = Set(active);
        }
        let key = with_last_four(&*tx, row.update(&*tx).await?).await?;
        tx.commit().await?;
        Ok(Some(key))
    }

    /// Puts a new secret beside those that a key has, which end at `overlap_end` unless they end before.
    #[expect(clippy::too_many_arguments, reason = "the new secret's columns, each of its own type")]
    pub async fn rotate_key(
        &self,
        store: &StoreId,
        id: &KeyId,
        hash: &SecretHash,
        last_four: &str,
        now: Timestamp,
        expires_at: Timestamp,
        overlap_end: Timestamp,
    ) -> Result<Option<ApiKey>> {
        let tx = self.begin().await?;
        let Some(row) = find_key(store, id).one(&*tx).await? else { return Ok(None) };
        let mut row: api_keys::ActiveModel = row.into();
        row.updated_at = Set(now.millis());
        row.expires_at = Set(expires_at.millis());
        let row = row.update(&*tx).await?;
        api_key_secrets::Entity::update_many()
            .col_expr(api_key_secrets::Column::ExpiresAt, Expr::value(overlap_end.millis()))
            .filter(api_key_secrets::Column::StoreId.eq(store.as_str()))
            .filter(api_key_secrets::Column::KeyId.eq(id.as_str()))
            .filter(api_key_secrets::Column::ExpiresAt.gt(overlap_end.millis()))
            .exec(&*tx)
            .await?;
        insert_secret(&*tx, store, id, hash, last_four, now, expires_at).await?;
        tx.commit().await?;
        Ok(Some(api_key(row, last_four.to_owned())))
    }

    /// Removes a key and its secrets; `false` when the store has no such key.
    pub async fn delete_key(&self, store: &StoreId, id: &KeyId) -> Result<bool> {
        let tx = self.begin().await?;
        let done = api_keys::Entity::delete_many()
            .filter(api_keys::Column::StoreId.eq(store.as_str()))
            .filter(api_keys::Column::Id.eq(id.as_str()))
            .exec(&*tx)
            .await?;
        tx.commit().await?;
        Ok(done.rows_affected > 0)
    }
}

fn find_key(store: &StoreId, id: &KeyId) -> sea_orm::Select<api_keys::Entity> {
    api_keys::Entity::find().filter(api_keys::Column::StoreId.eq(store.as_str())).filter(api_keys::Column::Id.eq(id.as_str()))
}

async fn with_last_four(connection: &impl ConnectionTrait, row: api_keys::Model) -> Result<ApiKey> {
    let newest = api_key_secrets::Entity::find()
        .filter(api_key_secrets::Column::StoreId.eq(row.store_id.as_str()))
        .filter(api_key_secrets::Column::KeyId.eq(row.id.as_str()))
        .order_by_desc(api_key_secrets::Column::CreatedAt)
        .one(connection)
        .await?;
    Ok(api_key(row, newest.map(|secret| secret.last_four).unwrap_or_default()))
}

fn api_key(row: api_keys::Model, last_four: String) -> ApiKey {
    ApiKey {
        id: row.id.into(),
        name: row.name,
        scopes: ScopeSet::from_stored(&row.scopes),
        active: row.active,
        owner: row.owner_user_id.map(Into::into),
        last_four,
        created_at: Timestamp::from_millis(row.created_at),
        expires_at: Timestamp::from_millis(row.expires_at),
    }
}

async fn insert_secret(
    connection: &impl ConnectionTrait,
    store: &StoreId,
    key: &KeyId,
    hash: &SecretHash,
    last_four: &str,
    created_at: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    let row = api_key_secrets::ActiveModel {
        hash: Set(hash.as_str().to_owned()),
        store_id: Set(store.to_string()),
        key_id: Set(key.to_string()),
        last_four: Set(last_four.to_owned()),
        created_at: Set(created_at.millis()),
        expires_at: Set(expires_at.millis()),
    };
    api_key_secrets::Entity::insert(row).exec_without_returning(connection).await?;
    Ok(())
}
