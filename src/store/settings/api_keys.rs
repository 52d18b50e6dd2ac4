//! API keys: their creation, changes, rotation and deletion. The look-up of a caller by its secret is in `api_key_auth`.

use std::collections::HashMap;

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::Expr,
};

use crate::{
    domain::{
        api_key_scopes::ScopeSet,
        api_keys::{ApiKey, SecretHash},
        ids::{KeyId, StoreId, UserId},
        time::Timestamp,
    },
    store::{
        Db, Result,
        entity::{api_key_secrets, api_keys},
        sql_from_entities::model,
        transaction::store_transaction::Write,
    },
};

fn key(row: api_keys::Model, last_four: Option<String>) -> ApiKey {
    ApiKey {
        id: row.id.into(),
        name: row.name,
        scopes: ScopeSet::from_stored(&row.scopes),
        active: row.active,
        owner: row.owner_user_id.map(UserId::from),
        created_at: Timestamp::from_millis(row.created_at),
        expires_at: Timestamp::from_millis(row.expires_at),
        last_used_at: row.last_used_at.map(Timestamp::from_millis),
        last_four: last_four.unwrap_or_default(),
    }
}

impl Db {
    /// Returns every key of the store, the oldest first.
    pub async fn keys(&self, store: &StoreId) -> Result<Vec<ApiKey>> {
        let keys = self.find_all(
            api_keys::Entity::find()
                .filter(api_keys::Column::StoreId.eq(store))
                .order_by_asc(api_keys::Column::CreatedAt)
                .order_by_asc(api_keys::Column::Id),
        );
        let secrets = self.find_all(
            api_key_secrets::Entity::find()
                .filter(api_key_secrets::Column::StoreId.eq(store))
                .order_by_asc(api_key_secrets::Column::ExpiresAt),
        );
        // The secrets are sorted by the time at which they expire. So if a key has several secrets, `last_four` has the one that expires
        // last.
        let (keys, secrets) = (keys.await?, secrets.await?);
        let mut last_four: HashMap<String, String> = secrets.into_iter().map(|secret| (secret.key_id, secret.last_four)).collect();
        Ok(keys.into_iter().map(|row| (last_four.remove(&row.id), row)).map(|(last_four, row)| key(row, last_four)).collect())
    }
}

impl Write {
    /// Stores a new key; it has no secret yet.
    pub async fn insert_key(&self, key: &ApiKey) -> Result<()> {
        let row = api_keys::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(key.id.to_string()),
            name: Set(key.name.clone()),
            scopes: Set(key.scopes.to_string()),
            active: Set(true),
            owner_user_id: Set(key.owner.as_ref().map(UserId::to_string)),
            created_at: Set(key.created_at.millis()),
            updated_at: Set(key.created_at.millis()),
            expires_at: Set(key.expires_at.millis()),
            last_used_at: NotSet,
        };
        self.insert(row).await
    }

    /// Returns a key, and locks its row until the end of the transaction.
    pub async fn key(&self, id: &KeyId) -> Result<Option<ApiKey>> {
        let found = api_keys::Entity::find().filter(self.of_key(id));
        let Some(row) = self.select_for_update(found, model::<api_keys::Entity>).await?.pop() else { return Ok(None) };
        // The secret is read after the key is locked: the transaction that held the lock before may have added another secret.
        let newest = api_key_secrets::Entity::find()
            .filter(api_key_secrets::Column::StoreId.eq(self.store()))
            .filter(api_key_secrets::Column::KeyId.eq(id))
            .order_by_desc(api_key_secrets::Column::ExpiresAt)
            .limit(1);
        let last_four = self.select(newest, model::<api_key_secrets::Entity>).await?.pop().map(|secret| secret.last_four);
        Ok(Some(key(row, last_four)))
    }

    /// Saves the properties of a key that can be changed.
    pub async fn save_key(&self, key: &ApiKey) -> Result<()> {
        let changed = api_keys::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(key.id.to_string()),
            name: Set(key.name.clone()),
            scopes: Set(key.scopes.to_string()),
            active: Set(key.active),
            expires_at: Set(key.expires_at.millis()),
            updated_at: Set(self.now().millis()),
            ..Default::default()
        };
        self.update(changed).await
    }

    /// Adds a secret to a key. The other secrets of the key expire at `others_end`, unless they expire earlier. `others_end` is `None` for
    /// a new key, which has no other secrets.
    pub async fn add_key_secret(&self, key: &ApiKey, hash: &SecretHash, others_end: Option<Timestamp>) -> Result<()> {
        if let Some(others_end) = others_end {
            let shortened = api_key_secrets::Entity::update_many()
                .col_expr(api_key_secrets::Column::ExpiresAt, Expr::value(others_end))
                .filter(api_key_secrets::Column::StoreId.eq(self.store()))
                .filter(api_key_secrets::Column::KeyId.eq(&key.id))
                .filter(api_key_secrets::Column::ExpiresAt.gt(others_end));
            self.execute(&shortened).await?;
        }
        let secret = api_key_secrets::ActiveModel {
            hash: Set(hash.as_str().to_owned()),
            store_id: Set(self.store().to_string()),
            key_id: Set(key.id.to_string()),
            last_four: Set(key.last_four.clone()),
            created_at: Set(self.now().millis()),
            expires_at: Set(key.expires_at.millis()),
        };
        self.insert(secret).await
    }

    /// Removes a key. Its secrets are removed with it (`ON DELETE CASCADE`).
    pub async fn delete_key(&self, id: &KeyId) -> Result<()> {
        self.execute(&api_keys::Entity::delete_many().filter(self.of_key(id))).await.map(|_| ())
    }

    /// Stores when API keys were last used.
    pub async fn save_key_uses(&self, uses: &[(KeyId, Timestamp)]) -> Result<()> {
        let last_used = api_keys::Column::LastUsedAt;
        for (id, at) in uses {
            let noted = api_keys::Entity::update_many()
                .col_expr(last_used, Expr::value(*at))
                .filter(self.of_key(id))
                .filter(Condition::any().add(last_used.is_null()).add(last_used.lt(*at)));
            self.execute(&noted).await?;
        }
        Ok(())
    }

    fn of_key(&self, id: &KeyId) -> Condition {
        Condition::all().add(api_keys::Column::StoreId.eq(self.store())).add(api_keys::Column::Id.eq(id))
    }
}
