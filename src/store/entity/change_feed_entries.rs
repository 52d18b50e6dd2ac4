//! The entries of the change feeds: a log of changed records, by which clients keep copies of stores up to date. Triggers write the log.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "record_changes")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub kind: String,
    pub record_id: String,
    pub sequence: Option<i64>,
    pub numbered_at: Option<i64>,
}
