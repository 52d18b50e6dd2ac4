//! On PostgreSQL, the server and the database that assigned the transaction ids in the columns `placed_by` and `left_by` of other tables.
//! By this row a server notices that the ids come from another server, as after a restore from a dump.

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
