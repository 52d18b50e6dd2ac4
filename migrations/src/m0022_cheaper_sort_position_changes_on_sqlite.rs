//! Fewer writes on SQLite when a row's sort position changes: the row gets one entry in `former_places`, and is not written a second time.
//!
//! With `m0020_former_sort_positions`, one counter of a store numbered both the moves and the inserts of rows, and each move wrote its
//! number into the row. Now SQLite numbers the entries of `former_places` (`left_by`), and the counter `arrivals` numbers only inserts. The
//! column `placed_by` gets the number of the row's insert, and a move does not change it. If a row moved after a client got its first
//! page, the row has entries that are newer than this page. The oldest of them has the position that the row had when the client got the
//! page.
//!
//! PostgreSQL keeps the form of `m0020_former_sort_positions`.
//!
//! Cursors from before this migration are refused afterwards, since their layout differs. An older process may run at the same time as a
//! new process, but a client that pages through a list of the older process may get moved rows twice or not at all.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::{
    m0020_former_sort_positions::{LISTS, TABLE as TABLE_BEFORE, triggers_on_sqlite},
    run, run_all,
};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0022_moves_on_sqlite"
    }
}

// AUTOINCREMENT: numbers are not used again after the newest entries were deleted.
const TABLE: &str = "
CREATE TABLE former_places (
    store_id TEXT NOT NULL,
    list TEXT NOT NULL,
    left_by INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    row_id TEXT NOT NULL,
    place_at BIGINT NOT NULL,
    placed_by BIGINT NOT NULL DEFAULT 0,
    left_at BIGINT NOT NULL
)";

fn up_on_sqlite() -> Vec<String> {
    let mut statements = vec![
        "INSERT INTO counters (store_id, name, value) SELECT store_id, 'arrivals', value FROM counters WHERE name = 'moves'".to_owned(),
    ];
    for (table, place) in LISTS {
        statements.extend([
            format!("DROP TRIGGER {table}_placed"),
            format!("DROP TRIGGER {table}_moved"),
            format!(
                "CREATE TRIGGER {table}_placed AFTER INSERT ON {table} BEGIN \
                 INSERT INTO counters (store_id, name, value) VALUES (NEW.store_id, 'arrivals', 1) \
                 ON CONFLICT (store_id, name) DO UPDATE SET value = value + 1; \
                 UPDATE {table} SET placed_by = (SELECT value FROM counters WHERE store_id = NEW.store_id AND name = 'arrivals') \
                 WHERE rowid = NEW.rowid; END"
            ),
            format!(
                "CREATE TRIGGER {table}_moved AFTER UPDATE OF {place} ON {table} WHEN OLD.{place} <> NEW.{place} BEGIN \
                 INSERT INTO former_places (store_id, list, row_id, place_at, left_at) \
                 VALUES (NEW.store_id, '{table}', NEW.id, OLD.{place}, unixepoch() * 1000); END"
            ),
        ]);
    }
    // The table is replaced, since SQLite cannot change the primary key of a table. The triggers above refer to it by name, so they use the
    // new table.
    statements.extend(
        ["DROP TABLE former_places", TABLE, "CREATE INDEX former_places_of_list ON former_places (store_id, list, left_by)"]
            .map(str::to_owned),
    );
    statements
}

fn down_on_sqlite() -> Vec<String> {
    let triggers = LISTS.into_iter().flat_map(|(table, _)| [format!("DROP TRIGGER {table}_placed"), format!("DROP TRIGGER {table}_moved")]);
    let statements = [
        "DROP TABLE former_places",
        // After the rollback, the counter `moves` numbers inserts and moves again. It continues after the last number of `arrivals`.
        "INSERT INTO counters (store_id, name, value) SELECT store_id, 'moves', value FROM counters WHERE name = 'arrivals' \
         ON CONFLICT (store_id, name) DO UPDATE SET value = MAX(value, excluded.value)",
        "DELETE FROM counters WHERE name = 'arrivals'",
    ];
    triggers.chain(statements.map(str::to_owned)).collect()
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Sqlite { run_all(manager, up_on_sqlite()).await } else { Ok(()) }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Sqlite {
            run_all(manager, down_on_sqlite()).await?;
            run(manager, TABLE_BEFORE).await?;
            run_all(manager, triggers_on_sqlite()).await
        } else {
            Ok(())
        }
    }
}
