//! The change log of searchable records, which the search index follows.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "changes")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub kind: String,
    pub record_ids: String,
    pub changed_at: i64,
    pub transaction_id: i64,
}
