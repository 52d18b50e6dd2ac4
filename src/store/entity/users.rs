//! Seats of a store: its users (teammates), and persons who were invited and have not joined yet.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: Option<String>,
    pub name: Option<String>,
    pub email: Option<String>,
    pub role_id: Option<String>,
    pub created_at: i64,
}
