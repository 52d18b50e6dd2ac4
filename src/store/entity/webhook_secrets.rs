//! Secrets with which deliveries to webhooks are signed.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "webhook_secrets")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub webhook_id: String,
    pub secret: Vec<u8>,
    pub ends_at: Option<i64>,
    pub key_id: Option<String>,
}
