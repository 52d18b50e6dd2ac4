//! One row: up to which point entries were deleted from the change log (the table `changes`), which the search index follows. The point is
//! the highest transaction id (on SQLite: position) of a deleted entry. With it, a reader of the log finds out whether entries that it has
//! not read yet were deleted.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "forgotten_changes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub through: i64,
}
