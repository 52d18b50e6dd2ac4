//! Definitions of contact fields: the custom fields that a store adds to its contacts.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "contact_fields")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub name: String,
    pub display_type: String,
    pub data_type: String,
    pub sort_order: i64,
    pub active: bool,
    pub description: Option<String>,
    pub select_options: Option<String>,
    pub regex: Option<String>,
    pub max_items: Option<i64>,
}
