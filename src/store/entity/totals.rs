//! Counters of records, which triggers maintain, for the totals of unfiltered lists.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "totals")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// A number that identifies one row of a total. Only on PostgreSQL, where a total is the sum of several rows, so that writers do not
    /// wait for each other.
    #[sea_orm(primary_key)]
    pub part: i64,
    pub value: i64,
}
