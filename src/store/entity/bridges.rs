//! Bridges: HTTP endpoints that receive the messages of a channel account and deliver them to the channel.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "bridges")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    pub url: String,
    pub created_at: i64,
    pub updated_at: i64,
}
