//! The delivery log of webhooks: every attempt to deliver an event.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "attempts")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub webhook_id: String,
    pub event_id: String,
    pub kind: String,
    pub url: String,
    pub attempt: i64,
    pub started_at: i64,
    pub took: i64,
    pub status: Option<i64>,
    pub reason: Option<String>,
    pub outcome: String,
    pub next_at: Option<i64>,
    pub answer: Option<String>,
}
