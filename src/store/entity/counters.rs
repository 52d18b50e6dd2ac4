//! Counters of each store: the last ticket number and, on SQLite, the number of rows inserted into the tables of tickets, conversations and
//! contacts (`arrivals`).

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "counters")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub value: i64,
}
