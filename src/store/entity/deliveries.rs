//! The outbox of webhooks: events to deliver. While a worker attempts to deliver an event, `claim` identifies the attempt, and `due_at` is
//! the time after which another worker may claim the event. The row of an event that was delivered or given up stays, for replays; its
//! `due_at` is NULL.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "deliveries")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub webhook_id: String,
    pub event_id: String,
    pub kind: String,
    pub sequence: Option<i64>,
    pub body: Option<Vec<u8>>,
    pub attempts: i64,
    pub due_at: Option<i64>,
    pub claim: Option<String>,
    pub delivered_at: Option<i64>,
}
