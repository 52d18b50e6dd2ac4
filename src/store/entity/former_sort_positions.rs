//! The former sort positions of rows in lists, for as-of cursors: a client that pages through a list sees each row at the position that the
//! row had when the client read the first page. On PostgreSQL `placed_by` and `left_by` are the ids of the transactions that gave the row
//! the position and moved the row away. On SQLite `left_by` is a sequence number of the rows of this table, and `placed_by` is 0.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
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
