//! Labels that a store defines for its conversations, each with a color.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "labels")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub label: String,
    pub folded: String,
    pub color: String,
    pub created_at: i64,
    pub updated_at: i64,
}
