//! Signing secrets of bridges, the endpoints that connect channels to this server. The server signs messages to a bridge with them, and a
//! bridge signs its requests to the server with them.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "bridge_secrets")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub account_id: String,
    pub secret: Vec<u8>,
    pub ends_at: Option<i64>,
    pub key_id: Option<String>,
}
