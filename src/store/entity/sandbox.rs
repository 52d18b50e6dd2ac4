//! A row in this table marks the database as a sandbox: a database for tests whose clock can be advanced.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "sandbox")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    /// The milliseconds by which the sandbox's clock is ahead of real time.
    pub ahead: i64,
}
