//! Internal comments of users on a conversation, which are never sent to the contact.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "comments")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub conversation_id: String,
    pub text: String,
    pub created_by: String,
    pub sent_at: i64,
    pub created_at: i64,
    pub updated_at: i64,
}
