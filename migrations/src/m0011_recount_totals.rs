//! Recount of the totals of `m0008_totals` on PostgreSQL: that migration used to count before its triggers existed, so changes that were
//! made in between are permanently missing from the totals. SQLite needs no recount, because it has no concurrent writers.
//!
//! A concurrent writer may fail with a retryable error, as in `m0010_version_of_cached_totals`.

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
        // Without the lock on `totals`, the server could replace partial totals by their sum while the statements below run. The DELETE
        // would not see the row of that sum, so the sum would remain in addition to the new count.
        let alone = "LOCK TABLE tickets, contacts, totals IN SHARE ROW EXCLUSIVE MODE";
        // `tickets.changed` counts changes and not rows, so it cannot be counted again.
        let former = "DELETE FROM totals WHERE name <> 'tickets.changed'";
        run_all(manager, vec![alone.to_owned(), former.to_owned(), of_stored()]).await
    }

    /// Does nothing: the totals that this migration has corrected stay correct.
    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Ok(())
    }
}
