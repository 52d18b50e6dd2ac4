//! The kinds of events that a webhook subscribes to.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_kinds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub webhook_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub kind: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
