//! Replay protection: a row for each accepted request of a bridge, so that no request is accepted twice. A bridge is an endpoint that
//! connects a channel to this server, and signs its requests.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "accepted_signatures")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub digest: String,
    pub expires_at: i64,
}
