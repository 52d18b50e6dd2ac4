//! Tickets: requests of contacts, each with its conversation, assignee and state.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "tickets")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub ticket_number: String,
    pub is_open: bool,
    pub is_spam: bool,
    pub is_follow_up: bool,
    pub channel: String,
    pub contact_id: String,
    pub account_id: String,
    pub conversation_id: String,
    pub opened_at: i64,
    pub closed_at: Option<i64>,
    pub reopened_at: Option<i64>,
    pub snoozed_until: Option<i64>,
    pub assignee_user_id: Option<String>,
    pub handled_by: Option<String>,
    pub resolution_status: Option<String>,
    pub ticket_fields: String,
    pub ticket_fields_updated_at: Option<i64>,
    pub label_marks: i64,
    pub field_marks: i64,
    pub text_marks: i64,
    pub sort_at: i64,
    pub waiting_since: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    /// On PostgreSQL, the id of the transaction that gave the row its current sort position. On SQLite, the sequence number that the row
    /// got at its insert, which does not change. As-of cursors need this column: with them a client that pages through a list sees each row
    /// at the position that the row had when the client read the first page. Only the database sets the column, by triggers and, on
    /// PostgreSQL, by a default (migrations `m0020_former_sort_positions` and `m0022_cheaper_sort_position_changes_on_sqlite`).
    pub placed_by: i64,
}
