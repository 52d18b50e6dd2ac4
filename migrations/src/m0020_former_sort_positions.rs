//! Table of the former sort positions of rows, for as-of cursors: a client that pages through a list sees each row at the position that the
//! row had when the client got the first page (snapshot).
//!
//! The sort position of a row is the instant by which its list is ordered. The column `placed_by` of a row has the number of the write that
//! gave the row its current position. An entry of `former_places` is a former position of a row. It has the numbers of two writes: the
//! write that gave the row this position (`placed_by`), and the write that moved the row away (`left_by`). If a client got its first page
//! between the two writes, its next pages have the row at the former position.
//!
//! On PostgreSQL the number of a write is the id of its transaction. On SQLite it is the value of a counter of the store, which each insert
//! and each move of a row increments (`m0022_cheaper_sort_position_changes_on_sqlite` changes this).
//!
//! Triggers write `placed_by` and `former_places`, so every writer is covered: requests, imports, an older server process, and manual
//! changes by an operator. In existing rows `placed_by` is 0: their positions are older than the first page of any client.
//!
//! During this migration on PostgreSQL, a concurrent writer may fail with a retryable error (deadlock): the writer may hold a lock on one
//! table, and wait for another table that the migration has locked.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::{run, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0020_former_places"
    }
}

/// The lists whose rows change their sort position, each with its sort column.
pub const LISTS: [(&str, &str); 3] = [("tickets", "sort_at"), ("conversations", "sort_at"), ("contacts", "updated_at")];

// No foreign keys: a former position may outlive its row. The server deletes former positions when they are too old for any cursor.
pub(crate) const TABLE: &str = "
CREATE TABLE former_places (
    store_id {text} NOT NULL,
    -- The table of the list.
    list {text} NOT NULL,
    -- The write that moved the row away from this sort position: its number on SQLite, its transaction on PostgreSQL.
    left_by BIGINT NOT NULL,
    row_id {text} NOT NULL,
    place_at BIGINT NOT NULL,
    -- The write that had given the row this sort position.
    placed_by BIGINT NOT NULL,
    -- When the row left this sort position, by the clock of the database.
    left_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, list, left_by, row_id)
) {clustered}";

const ORIGIN: &str = "
-- At most one row: the PostgreSQL server and database that assigned the transaction ids in `placed_by` and `left_by`. The program writes
-- the row at its first start. If a database was restored from a dump, the row names another server, and the program then discards those
-- ids. Empty on SQLite, where the counters are in the database file.
CREATE TABLE transaction_numbers (
    origin TEXT NOT NULL
)";

pub(crate) fn triggers_on_sqlite() -> Vec<String> {
    let count = "INSERT INTO counters (store_id, name, value) VALUES (NEW.store_id, 'moves', 1) \
                 ON CONFLICT (store_id, name) DO UPDATE SET value = value + 1;";
    let number = "(SELECT value FROM counters WHERE store_id = NEW.store_id AND name = 'moves')";
    let triggers = |(table, place): (&str, &str)| {
        let placed = format!("UPDATE {table} SET placed_by = {number} WHERE rowid = NEW.rowid;");
        [
            format!("CREATE TRIGGER {table}_placed AFTER INSERT ON {table} BEGIN {count} {placed} END"),
            format!(
                "CREATE TRIGGER {table}_moved AFTER UPDATE OF {place} ON {table} WHEN OLD.{place} <> NEW.{place} BEGIN {count} \
                 INSERT INTO former_places (store_id, list, left_by, row_id, place_at, placed_by, left_at) \
                 VALUES (NEW.store_id, '{table}', {number}, NEW.id, OLD.{place}, OLD.placed_by, unixepoch() * 1000); {placed} END"
            ),
        ]
    };
    LISTS.into_iter().flat_map(triggers).collect()
}

fn up_on_sqlite() -> Vec<String> {
    let columns = LISTS.map(|(table, _)| format!("ALTER TABLE {table} ADD COLUMN placed_by BIGINT NOT NULL DEFAULT 0"));
    columns.into_iter().chain(triggers_on_sqlite()).collect()
}

const TRANSACTION: &str = "pg_current_xact_id()::text::bigint";

/// Returns the statement that creates the trigger function which records the former sort position of a row. `now` is the SQL for the
/// current time in milliseconds.
pub(crate) fn moved_on_postgres(table: &str, place: &str, now: &str) -> String {
    // A transaction that moves a row twice records one former position, the first.
    format!(
        "CREATE OR REPLACE FUNCTION {table}_moved() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.placed_by := {TRANSACTION}; \
         IF OLD.placed_by <> NEW.placed_by THEN \
         INSERT INTO former_places (store_id, list, left_by, row_id, place_at, placed_by, left_at) \
         VALUES (NEW.store_id, '{table}', NEW.placed_by, NEW.id, OLD.{place}, OLD.placed_by, {now}); END IF; RETURN NEW; END$$"
    )
}

fn up_on_postgres() -> Vec<String> {
    let triggers = |(table, place): (&str, &str)| {
        [
            format!("ALTER TABLE {table} ADD COLUMN placed_by BIGINT NOT NULL DEFAULT 0"),
            // Existing rows keep the value 0. This default applies only to rows that are inserted later.
            format!("ALTER TABLE {table} ALTER COLUMN placed_by SET DEFAULT ({TRANSACTION})"),
            moved_on_postgres(table, place, "(extract(epoch FROM now()) * 1000)::bigint"),
            format!(
                "CREATE TRIGGER {table}_moved BEFORE UPDATE OF {place} ON {table} FOR EACH ROW WHEN (OLD.{place} <> NEW.{place}) \
                 EXECUTE FUNCTION {table}_moved()"
            ),
        ]
    };
    LISTS.into_iter().flat_map(triggers).collect()
}

fn down_on(backend: DbBackend) -> Vec<String> {
    let undo = |(table, _): (&str, &str)| match backend {
        DbBackend::Sqlite => vec![
            format!("DROP TRIGGER {table}_placed"),
            format!("DROP TRIGGER {table}_moved"),
            format!("ALTER TABLE {table} DROP COLUMN placed_by"),
        ],
        _ => vec![
            format!("DROP TRIGGER {table}_moved ON {table}"),
            format!("DROP FUNCTION {table}_moved()"),
            format!("ALTER TABLE {table} DROP COLUMN placed_by"),
        ],
    };
    let mut statements: Vec<String> = LISTS.into_iter().flat_map(undo).collect();
    statements.extend(["former_places", "transaction_numbers"].map(|table| format!("DROP TABLE {table}")));
    statements.push("DELETE FROM counters WHERE name = 'moves'".to_owned());
    statements
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run(manager, TABLE).await?;
        run(manager, ORIGIN).await?;
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        run_all(manager, if sqlite { up_on_sqlite() } else { up_on_postgres() }).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, down_on(manager.get_database_backend())).await
    }
}
