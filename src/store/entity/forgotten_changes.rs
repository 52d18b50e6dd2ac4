//! One row: the highest transaction id (on SQLite: position) among the entries that were deleted from the change log, the table `changes`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "forgotten_changes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub through: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
