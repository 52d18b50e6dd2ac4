//! Cheaper writes of messages: fewer index entries, and on PostgreSQL triggers that cost next to nothing until a feed of changes is first
//! read.
//!
//! On SQLite:
//!
//! - The table `former_places` (former sort positions of rows, for cursors) loses its index by store and list. Each time a row changed its
//!   sort position (a move), maintaining this index cost more than the other writes of the move. Without it, a page after a cursor reads
//!   all moves since the client's first page, also the moves in other stores and lists.
//!
//! On PostgreSQL:
//!
//! - `former_places` loses its primary key and gets an index with half the columns. The primary key is not needed: a transaction writes at
//!   most one entry for each row, and entries are found by the store and the transaction. Logical replication then identifies a deleted
//!   entry by all its columns.
//! - The index of a contact's conversations no longer contains the sort key, which each message changes. On SQLite it lost the sort key in
//!   `m0012_narrow_conversation_index`. Now a message's update of its conversation changes no index, if the disk page of the row has
//!   room for the new version (a HOT update). In return, a request for a page of a contact's conversations sorts all conversations of the
//!   contact, as on SQLite.
//! - The triggers that record changes of large tables run for each row, and are disabled until a feed of changes is first activated in this
//!   database. The activation enables them table by table, each table in a transaction of its own, so that it waits for the writers of only
//!   one table at a time. A process of an earlier version activates a feed without enabling the triggers. For this case, a trigger on
//!   `change_feeds` enables the triggers that are still disabled.
//!
//! While the migration builds the index of conversations on PostgreSQL, writers of conversations wait; at the end readers wait for a
//! moment, too. A concurrent request may fail with a retryable error, as in `m0021_record_changes`. A process of an earlier version can
//! keep running at the same time as a new process.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::{
    m0020_former_sort_positions::{LISTS, moved_on_postgres},
    m0021_record_changes::{EVENTS, RECORDS, function_of, recorded_on_postgres, trigger_of},
    run_all,
};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0026_cheaper_sends"
    }
}

/// The tables that grow with each message or ticket. Each has one row for each record, with the record's id in the column `id`.
pub const LARGE: [&str; 5] = ["contacts", "conversations", "tickets", "messages", "comments"];

fn large() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    RECORDS.into_iter().filter(|(table, ..)| LARGE.contains(table))
}

/// Returns the statement that builds the new index of a contact's conversations next to the old index. Readers do not wait for the
/// statement.
fn built(columns: &str) -> String {
    format!("CREATE INDEX conversations_by_contact_new ON conversations ({columns})")
}

/// Returns the statements that drop the old index and give its name to the new index.
fn exchanged() -> [String; 2] {
    ["DROP INDEX conversations_by_contact", "ALTER INDEX conversations_by_contact_new RENAME TO conversations_by_contact"]
        .map(str::to_owned)
}

const UP_ON_SQLITE: &str = "DROP INDEX former_places_of_list";
const DOWN_ON_SQLITE: &str = "CREATE INDEX former_places_of_list ON former_places (store_id, list, left_by)";

fn up_on_postgres() -> Vec<String> {
    let mut statements = vec![built("store_id, contact_id")];
    statements.extend(
        [
            "ALTER TABLE former_places DROP CONSTRAINT former_places_pkey",
            "ALTER TABLE former_places REPLICA IDENTITY FULL",
            "CREATE INDEX former_places_of_store ON former_places (store_id, left_by)",
        ]
        .map(str::to_owned),
    );
    // Leaves room on each page for new versions of its rows, so that an update can be a HOT update.
    statements.push("ALTER TABLE conversations SET (fillfactor = 90)".to_owned());
    statements
        .extend(LISTS.into_iter().map(|(table, place)| moved_on_postgres(table, place, "(date_part('epoch', now()) * 1000)::bigint")));
    statements.extend(
        [
            // `SECURITY DEFINER` makes the function run with the permissions of the role that owns the tables. Only this role may enable
            // their triggers, and the server may be connected as another role.
            "CREATE FUNCTION record_changes_of(recorded text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS \
             $$BEGIN \
             IF EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = recorded::regclass AND tgname = recorded || '_recorded_on_insert' \
             AND tgenabled = 'D') THEN \
             EXECUTE format('ALTER TABLE %I ENABLE TRIGGER %I, ENABLE TRIGGER %I, ENABLE TRIGGER %I', recorded, \
             recorded || '_recorded_on_insert', recorded || '_recorded_on_update', recorded || '_recorded_on_delete'); \
             END IF; END$$",
            &format!(
                "CREATE FUNCTION feed_activated() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
                 PERFORM record_changes_of(recorded) FROM unnest(ARRAY['{}']) recorded; RETURN NULL; END$$",
                LARGE.join("', '")
            ),
            "CREATE TRIGGER change_feeds_activated AFTER INSERT OR UPDATE OF active ON change_feeds FOR EACH ROW WHEN (NEW.active) \
             EXECUTE FUNCTION feed_activated()",
            "CREATE FUNCTION row_recorded() RETURNS trigger LANGUAGE plpgsql AS $$DECLARE changed record; BEGIN \
             IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF; \
             IF EXISTS (SELECT 1 FROM change_feeds f WHERE f.store_id = changed.store_id AND f.active) THEN \
             INSERT INTO record_changes (store_id, kind, record_id) VALUES (changed.store_id, TG_ARGV[0], changed.id); END IF; \
             RETURN NULL; END$$",
        ]
        .map(str::to_owned),
    );
    for (table, kind, _) in large() {
        for (event, _) in EVENTS {
            let trigger = trigger_of(table, event);
            statements.push(format!("DROP TRIGGER {trigger} ON {table}"));
            statements.push(format!(
                "CREATE TRIGGER {trigger} AFTER {event} ON {table} FOR EACH ROW \
                 EXECUTE FUNCTION row_recorded('{kind}')"
            ));
            statements.push(format!("ALTER TABLE {table} DISABLE TRIGGER {trigger}"));
        }
        statements.push(format!("DROP FUNCTION {}()", function_of(table)));
    }
    statements.push("UPDATE change_feeds SET active = active WHERE active".to_owned());
    statements.extend(exchanged());
    statements
}

fn down_on_postgres() -> Vec<String> {
    let mut statements = vec![built("store_id, contact_id, sort_at, id")];
    for (table, kind, id) in large() {
        statements.extend(EVENTS.map(|(event, _)| format!("DROP TRIGGER {} ON {table}", trigger_of(table, event))));
        statements.extend(recorded_on_postgres(table, kind, id));
    }
    statements.extend(
        [
            "DROP FUNCTION row_recorded()",
            "DROP TRIGGER change_feeds_activated ON change_feeds",
            "DROP FUNCTION feed_activated()",
            "DROP FUNCTION record_changes_of(text)",
            "ALTER TABLE conversations RESET (fillfactor)",
            "DROP INDEX former_places_of_store",
            "ALTER TABLE former_places REPLICA IDENTITY DEFAULT",
            "ALTER TABLE former_places ADD PRIMARY KEY (store_id, list, left_by, row_id)",
        ]
        .map(str::to_owned),
    );
    statements.extend(exchanged());
    statements
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        run_all(manager, if sqlite { vec![UP_ON_SQLITE.to_owned()] } else { up_on_postgres() }).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        run_all(manager, if sqlite { vec![DOWN_ON_SQLITE.to_owned()] } else { down_on_postgres() }).await
    }
}
