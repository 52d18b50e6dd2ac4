//! Table `grants`: credentials for a store's settings (sign-in links, sessions and tokens), each with the hash of its secret.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "grants")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
    pub store_id: String,
    pub user_id: String,
    pub kind: String,
    pub created_at: i64,
    pub expires_at: i64,
    pub can: String,
    pub sent_to: Option<String>,
}
