//! The state of each store's change feed, the log of changed records by which clients keep a copy of the store.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "change_feeds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    pub active: bool,
    pub activated_by: i64,
    pub last_sequence: i64,
    pub forgotten: i64,
    pub used_at: i64,
}
