//! Counts the totals of `m0008_totals` once more, on PostgreSQL: that migration used to count before its triggers were there, and what
//! others wrote in between was in no total for good. On SQLite nobody writes beside a migration.
//!
//! A writer that runs meanwhile may be told to try again, as by `m0010_changed`.

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
        // Of totals too: who puts parts together meanwhile would leave a sum that is neither seen nor removed here.
        let alone = "LOCK TABLE tickets, contacts, totals IN SHARE ROW EXCLUSIVE MODE";
        // What was changed how often is no count of rows.
        let former = "DELETE FROM totals WHERE name <> 'tickets.changed'";
        run_all(manager, vec![alone.to_owned(), former.to_owned(), of_stored()]).await
    }

    /// The counts are right with or without it.
    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Ok(())
    }
}
