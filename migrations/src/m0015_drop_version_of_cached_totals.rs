//! Removal of the change counter of `m0010_version_of_cached_totals`: the total of a filter is no longer cached but counted for each first
//! page.
//!
//! A concurrent process of an earlier version no longer notices changes, and may return a total of a filter that is up to a minute old.

use sea_orm_migration::prelude::*;

use crate::m0010_version_of_cached_totals;

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
        m0010_version_of_cached_totals::drop(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        m0010_version_of_cached_totals::keep(manager).await
    }
}
