//! The transactional outbox of events: each write stores its events here in its own transaction.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "events")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub id: String,
    pub sequence: Option<i64>,
    #[sea_orm(column_name = "type")]
    pub kind: String,
    pub account_id: Option<String>,
    pub occurred_at: i64,
    pub body: Vec<u8>,
}
