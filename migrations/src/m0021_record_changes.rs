//! Log of changed records for the feed of changes, and the state of each store's feed.
//!
//! Triggers write the log, so every writer is covered: requests, imports, maintenance jobs, earlier versions, and manual changes by an
//! operator. They write nothing for a store whose feed is not active: a write of such a store costs only one more look-up, in a table of
//! few rows. On PostgreSQL the triggers fire once for each statement, until `m0026_cheaper_sends` changes the triggers of large tables.
//! The triggers assume that the id of a row's record never changes.
//!
//! During this migration on PostgreSQL, a concurrent writer may fail with a retryable error (deadlock): the writer may hold a lock on one
//! table, and wait for another table that the migration has locked.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::{m0020_former_sort_positions::LISTS, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0021_record_changes"
    }
}

const TABLES: &str = r#"
CREATE TABLE change_feeds (
    store_id {text} NOT NULL PRIMARY KEY REFERENCES stores (id),
    -- Whether changes of the store are recorded.
    active BOOLEAN NOT NULL,
    -- PostgreSQL: the id of a transaction that began to write after the activation had committed; the greatest BIGINT until that id is
    -- known. The changes of a transaction with a lower id are possibly not recorded, because it may have begun before the activation.
    -- 0 on SQLite.
    activated_by BIGINT NOT NULL,
    -- The greatest assigned sequence number.
    last_sequence BIGINT NOT NULL,
    -- The greatest sequence number whose entry may have been deleted.
    forgotten BIGINT NOT NULL,
    -- When the feed was last read, approximately: not every read updates this column.
    used_at BIGINT NOT NULL
) {clustered};

-- The log of changed records. A row is inserted in the transaction of the change. It has no sequence number then: readers number the
-- committed rows. For the reasons see the table `events` in `m0003_events_and_change_log`, which has no foreign key to `stores` either.
CREATE TABLE record_changes (
    position {serial},
    store_id {text} NOT NULL,
    kind {text} NOT NULL,
    record_id {text} NOT NULL,
    sequence BIGINT,
    numbered_at BIGINT
);
CREATE UNIQUE INDEX record_changes_by_sequence ON record_changes (store_id, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX record_changes_to_number ON record_changes (position) WHERE sequence IS NULL
"#;

/// Each table whose rows belong to records, with the kind of the record and the column that has the record's id.
pub const RECORDS: [(&str, &str, &str); 15] = [
    ("roles", "role", "id"),
    ("users", "user", "id"),
    ("teams", "team", "id"),
    ("team_members", "team", "team_id"),
    ("accounts", "account", "id"),
    ("account_users", "account", "account_id"),
    ("templates", "template", "id"),
    ("labels", "label", "id"),
    ("contact_fields", "contactField", "id"),
    ("ticket_fields", "ticketField", "id"),
    ("contacts", "contact", "id"),
    ("conversations", "conversation", "id"),
    ("tickets", "ticket", "id"),
    ("messages", "message", "id"),
    ("comments", "comment", "id"),
];

/// Each trigger event, with the row version (NEW or OLD) that has the record's id.
pub(crate) const EVENTS: [(&str, &str); 3] = [("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")];

pub(crate) fn trigger_of(table: &str, event: &str) -> String {
    format!("{table}_recorded_on_{}", event.to_lowercase())
}

pub(crate) fn function_of(table: &str) -> String {
    format!("{table}_recorded")
}

fn up_on_sqlite() -> Vec<String> {
    let mut statements = Vec::new();
    for (table, kind, id) in RECORDS {
        for (event, row) in EVENTS {
            // An update of `placed_by` (the number of the write that gave the row its sort position) is no change of the record, and is not
            // recorded. The triggers of `m0020_former_sort_positions` and `m0022_cheaper_sort_position_changes_on_sqlite` make such
            // updates.
            let of_record =
                if event == "UPDATE" && LISTS.iter().any(|(list, _)| *list == table) { "OLD.placed_by = NEW.placed_by AND " } else { "" };
            statements.push(format!(
                "CREATE TRIGGER {} AFTER {event} ON {table} \
                 WHEN {of_record}EXISTS (SELECT 1 FROM change_feeds f WHERE f.store_id = {row}.store_id AND f.active = TRUE) \
                 BEGIN INSERT INTO record_changes (store_id, kind, record_id) VALUES ({row}.store_id, '{kind}', {row}.{id}); END",
                trigger_of(table, event)
            ));
        }
    }
    statements
}

/// Returns the statements that create the function and the triggers that record the changed rows of each statement.
pub(crate) fn recorded_on_postgres(table: &str, kind: &str, id: &str) -> Vec<String> {
    // The first condition makes the function skip the changed rows while no store has an active feed.
    let mut statements = vec![format!(
        "CREATE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
         IF EXISTS (SELECT 1 FROM change_feeds WHERE active) THEN \
         INSERT INTO record_changes (store_id, kind, record_id) \
         SELECT DISTINCT c.store_id, '{kind}', c.{id} FROM changed c JOIN change_feeds f ON f.store_id = c.store_id AND f.active; \
         END IF; RETURN NULL; END$$",
        function_of(table)
    )];
    for (event, row) in EVENTS {
        statements.push(format!(
            "CREATE TRIGGER {} AFTER {event} ON {table} REFERENCING {row} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {}()",
            trigger_of(table, event),
            function_of(table)
        ));
    }
    statements
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        crate::run(manager, TABLES).await?;
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        let on_postgres = || RECORDS.into_iter().flat_map(|(table, kind, id)| recorded_on_postgres(table, kind, id)).collect();
        run_all(manager, if sqlite { up_on_sqlite() } else { on_postgres() }).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        let mut statements = Vec::new();
        for (table, _, _) in RECORDS {
            for (event, _) in EVENTS {
                let on = if sqlite { String::new() } else { format!(" ON {table}") };
                statements.push(format!("DROP TRIGGER {}{on}", trigger_of(table, event)));
            }
            if !sqlite {
                statements.push(format!("DROP FUNCTION {}()", function_of(table)));
            }
        }
        run_all(manager, statements).await?;
        crate::drop_all(manager, &["change_feeds", "record_changes"]).await
    }
}
