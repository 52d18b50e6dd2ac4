//! Recount of the totals of `m0008_totals` on PostgreSQL: that migration used to count before its triggers existed, so changes that were
//! made in between are permanently missing from the totals. SQLite needs no recount, because it has no concurrent writers.
//!
//! A concurrent writer may fail with a retryable error, as in `m0010_change_counter`.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::{m0008_totals::of_stored, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0011_recounted"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Sqlite {
            return Ok(());
        }
        // The lock on `totals` keeps the server from replacing partial totals by their sum at the same time: the statements below would
        // neither see nor delete that sum.
        let alone = "LOCK TABLE tickets, contacts, totals IN SHARE ROW EXCLUSIVE MODE";
        // `tickets.changed` counts changes and not rows, so it cannot be counted again.
        let former = "DELETE FROM totals WHERE name <> 'tickets.changed'";
        run_all(manager, vec![alone.to_owned(), former.to_owned(), of_stored()]).await
    }

    /// Does nothing: the counts stay correct without this migration.
    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Ok(())
    }
}
