//! Drafts: messages that an assistant proposes and that a user approves (releases) or discards. Exports and imports do not contain drafts:
//! a draft expires within days, and new messages in its conversation may make it obsolete sooner.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "drafts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub key_id: String,
    pub key_name: String,
    pub operation: String,
    pub content: String,
    pub conversation_id: Option<String>,
    pub account_id: Option<String>,
    pub seen_message_id: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub expires_at: i64,
    pub state: String,
    pub settled_at: Option<i64>,
    pub settled_by: Option<String>,
}
