//! A table that is a covering index of open tickets by label. Triggers maintain it. It exists only on SQLite.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "labelled_tickets")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub label_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub is_spam: bool,
    #[sea_orm(primary_key, auto_increment = false)]
    pub sort_at: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub ticket_id: String,
    pub field_marks: i64,
    pub text_marks: i64,
}
