//! The kinds of events that a webhook subscribes to.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "webhook_kinds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub webhook_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub kind: String,
}
