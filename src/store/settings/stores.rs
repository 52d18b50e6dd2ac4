//! Queries of stores (tenants): creation, changes of their settings, and the list of all stores.

use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::{
    domain::{ids::StoreId, stores_and_accounts::Store, time::Timestamp},
    store::{Db, Error, Result, entity::stores},
};

impl Db {
    /// Creates a store. Returns `false` if a store with this id exists.
    pub async fn insert_store(&self, store: &Store) -> Result<bool> {
        let row = stores::ActiveModel {
            id: Set(store.id.to_string()),
            name: Set(store.name.clone()),
            currency: Set(store.currency.clone()),
            reopen_window_hours: Set(store.reopen_window_hours),
            created_at: Set(store.created_at.millis()),
        };
        match self.execute(&stores::Entity::insert(row)).await {
            Ok(_) => Ok(true),
            Err(Error::Unique(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes a store's settings; a setting that is `None` stays. Returns the changed store, or `None` if there is no such store.
    pub async fn edit_store(
        &self,
        id: &StoreId,
        name: Option<String>,
        currency: Option<String>,
        reopen_window_hours: Option<i64>,
    ) -> Result<Option<Store>> {
        let mut row = <stores::ActiveModel as ActiveModelTrait>::default();
        if let Some(name) = name {
            row.name = Set(name);
        }
        if let Some(currency) = currency {
            row.currency = Set(currency);
        }
        if let Some(hours) = reopen_window_hours {
            row.reopen_window_hours = Set(hours);
        }
        if row.is_changed() {
            self.execute(&stores::Entity::update_many().set(row).filter(stores::Column::Id.eq(id.as_str()))).await?;
        }
        Ok(self.find_one(stores::Entity::find_by_id(id.as_str())).await?.map(Into::into))
    }

    /// Returns every store of the database, in the order of ids.
    pub async fn stores(&self) -> Result<Vec<Store>> {
        let rows = self.find_all(stores::Entity::find().order_by_asc(stores::Column::Id)).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}

impl From<stores::Model> for Store {
    fn from(row: stores::Model) -> Self {
        Self {
            id: row.id.into(),
            name: row.name,
            currency: row.currency,
            reopen_window_hours: row.reopen_window_hours,
            created_at: Timestamp::from_millis(row.created_at),
        }
    }
}
