//! The origin of the transaction numbers that rows of lists carry on PostgreSQL; one row.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "transaction_numbers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub origin: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
