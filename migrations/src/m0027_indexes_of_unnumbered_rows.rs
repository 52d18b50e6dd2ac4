//! Indexes for numbering the rows of one store at a time: events, and entries of the feed of changes.
//!
//! Each index has only the rows that have no number yet, so it is small. The former indexes order these rows by position, across all
//! stores. The new indexes order them by store and then by position. Building an index reads the whole table, and writers of the table
//! wait for that. A process of an earlier version can keep running at the same time as a new process: its statements use the new indexes,
//! and sort a few rows more.

use sea_orm_migration::prelude::*;

use crate::run_all;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0027_numbering_by_store"
    }
}

/// The tables whose rows get a number after their commit.
const NUMBERED: [&str; 2] = ["events", "record_changes"];

/// Returns the statements that replace the index of the rows without a number by an index on these columns.
fn index_on(columns: &str) -> Vec<String> {
    let of_table = |table: &str| {
        [format!("DROP INDEX {table}_to_number"), format!("CREATE INDEX {table}_to_number ON {table} ({columns}) WHERE sequence IS NULL")]
    };
    NUMBERED.into_iter().flat_map(of_table).collect()
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, index_on("store_id, position")).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, index_on("position")).await
    }
}
