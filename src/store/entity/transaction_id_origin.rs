//! On PostgreSQL, the server and the database that assigned the transaction ids in the columns `placed_by` and `left_by` of other tables.
//! If the row names another server or database, as after a restore from a dump, these ids are invalid.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "transaction_numbers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub origin: String,
}
