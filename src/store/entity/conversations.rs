//! Conversations with their counters and last message.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "conversations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub channel: String,
    pub account_id: String,
    pub contact_id: String,
    pub display_name: String,
    pub reference_id: String,
    pub label_ids: String,
    pub is_spam: bool,
    pub unread_count: i64,
    pub message_count: i64,
    pub email_subject: Option<String>,
    pub label_marks: i64,
    pub last_inbound_at: Option<i64>,
    pub last_message_at: Option<i64>,
    pub last_message_snippet: Option<String>,
    pub last_message_inbound: Option<bool>,
    pub sort_at: i64,
    pub created_at: i64,
    pub updated_at: i64,
    /// On PostgreSQL, the id of the transaction that gave the row its current sort position. On SQLite, the sequence number that the row
    /// got at its insert, which does not change. As-of cursors need this column: with them a client that pages through a list sees each
    /// row at the position that the row had when the client read the first page. Only the database sets the column, by triggers and, on
    /// PostgreSQL, by a default (migrations `m0020_former_sort_positions` and `m0022_cheaper_sort_position_changes_on_sqlite`).
    pub placed_by: i64,
}
