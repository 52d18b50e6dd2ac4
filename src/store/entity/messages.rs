//! Customer-facing messages: those that a store received from a contact or sent to a contact.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub conversation_id: String,
    pub account_id: String,
    pub inbound: bool,
    /// The sort key of messages: see [`crate::domain::messages::Message::sort_at`].
    pub sent_at: i64,
    /// The property `sentAt` of the message, if it differs from the column `sent_at`.
    pub channel_sent_at: Option<i64>,
    pub text: Option<String>,
    pub images: Option<String>,
    pub kind: Option<String>,
    pub author_user_id: Option<String>,
    pub is_sent_from_app: Option<bool>,
    pub sender: Option<String>,
    pub payload: Option<String>,
    pub external_id: Option<String>,
    pub delivery: Option<String>,
    pub failure: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
}
