//! Contacts: the customers that a store exchanges messages with.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "contacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub full_name: String,
    pub first_name: String,
    pub last_name: Option<String>,
    pub email: Option<String>,
    pub email_key: Option<String>,
    pub phone: Option<String>,
    pub secondary_phones: Option<String>,
    pub secondary_emails: Option<String>,
    pub addresses: Option<String>,
    pub note: Option<String>,
    pub custom_fields: Option<String>,
    pub custom_fields_updated_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    /// On PostgreSQL, the id of the transaction that gave the row its current sort position. On SQLite, the sequence number that the row
    /// got at its insert, which does not change. As-of cursors need this column: with them a client that pages through a list sees each row
    /// at the position that the row had when the client read the first page. Only the database sets the column, by triggers and, on
    /// PostgreSQL, by a default (migrations `m0020_former_sort_positions` and `m0022_cheaper_sort_position_changes_on_sqlite`).
    pub placed_by: i64,
}
