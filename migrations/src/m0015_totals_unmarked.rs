//! Drops the triggers of `m0010_changed`, which counted changes of tickets: the total of a filter is counted for each first page.
//!
//! A process of an earlier version beside this one does not notice changes any more, and may show a filter's total that is up to a
//! minute old.

use sea_orm_migration::prelude::*;

use crate::m0010_changed;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0015_totals_unmarked"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        m0010_changed::drop(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        m0010_changed::keep(manager).await
    }
}
