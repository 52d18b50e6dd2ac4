//! The places in lists that rows have left, for cursors of walks that began before. On SQLite `left_by` alone identifies an entry, and
//! `placed_by` is 0.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "former_places")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub list: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub left_by: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub row_id: String,
    pub place_at: i64,
    pub placed_by: i64,
    pub left_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
