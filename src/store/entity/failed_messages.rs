//! Dead letters: messages that could not be sent, each with the outbox entry that a further attempt needs. An export contains neither dead
//! letters nor the delivery state of messages.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "failed_messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub message_id: String,
    pub parcel: Option<String>,
    pub attempts: Option<i64>,
    pub failed_at: i64,
}
