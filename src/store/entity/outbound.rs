//! The outbox of messages that still have to be sent to channels. While a worker attempts to send a message, `claim` identifies the
//! attempt, and `due_at` is the time after which another worker may claim the message.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "outbound")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub message_id: String,
    pub conversation_id: String,
    pub account_id: String,
    pub parcel: String,
    pub attempts: i64,
    pub due_at: i64,
    pub claim: Option<String>,
    pub reason: Option<String>,
}
