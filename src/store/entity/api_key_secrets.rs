//! Hashes of the secrets of API keys.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "api_key_secrets")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
    pub store_id: String,
    pub key_id: String,
    pub last_four: String,
    pub created_at: i64,
    pub expires_at: i64,
}
