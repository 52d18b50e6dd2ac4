//! The audit log: changes to a store's settings, append-only.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub position: i64,
    pub store_id: String,
    pub at: i64,
    pub user_id: Option<String>,
    pub via: String,
    pub request_id: Option<String>,
    pub action: String,
    pub subject_kind: String,
    pub subject_id: String,
    pub detail: String,
}
