//! Change counter of each store, by which cached totals of ticket filters were validated. `m0015_drop_version_of_cached_totals` removes it,
//! since totals are no longer cached. The counter was a row of the table `totals` (`m0008_totals`). Triggers increased its value at each
//! change of a ticket, label or field value.
//!
//! The triggers ignored two columns of a ticket that every message changes: `sort_at`, which no filter tests, and `waiting_since`, since
//! totals of filters on it were not cached. They also ignored primary keys, which never change.
//!
//! During this migration on PostgreSQL, a concurrent writer may fail with a retryable error (deadlock): the writer may hold a lock on one
//! table, and wait for another table that the migration has locked.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::run_all;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0010_changed"
    }
}

/// The columns of a ticket that filters read, without those that every message changes.
const COLUMNS: [&str; 10] = [
    "is_open",
    "is_spam",
    "is_follow_up",
    "snoozed_until",
    "conversation_id",
    "account_id",
    "assignee_user_id",
    "handled_by",
    "resolution_status",
    "opened_at",
];

/// Other tables that filters read.
const TABLES: [&str; 2] = ["conversation_labels", "ticket_field_values"];

/// Returns the event and the condition of a trigger: an update of a ticket that may change the result of a filter. Tickets without an
/// account are left out. An import inserts tickets without an account, and later sets the account of many tickets in one statement. On
/// PostgreSQL, each of them would add a row to `totals`. `differ` is the SQL operator that tests whether two values differ, even if one of
/// them is NULL.
fn of_ticket(differ: &str) -> String {
    let columns = COLUMNS.join(", ");
    let differs = COLUMNS.map(|column| format!("OLD.{column} {differ} NEW.{column}")).join(" OR ");
    format!("UPDATE OF {columns} ON tickets FOR EACH ROW WHEN (OLD.account_id <> '' AND ({differs}))")
}

/// Returns the triggers for inserted and deleted rows of all tables, and for updated rows of [`TABLES`]. `trigger` gets the name of the
/// trigger, its event, and the row version (NEW or OLD) from which the trigger reads the id of the store.
fn of_rows(trigger: impl Fn(&str, &str, &str) -> String) -> Vec<String> {
    let of = |table: &str| {
        [("come", "INSERT", "NEW"), ("go", "DELETE", "OLD")]
            .map(|(end, event, row)| trigger(&format!("{table}_changed_{end}"), &format!("{event} ON {table}"), row))
    };
    let updates = TABLES.map(|table| trigger(&format!("{table}_changed"), &format!("UPDATE ON {table}"), "NEW"));
    ["tickets"].iter().chain(&TABLES).flat_map(|table| of(table)).chain(updates).collect()
}

fn up_on_sqlite() -> Vec<String> {
    let trigger = |name: &str, event: &str, row: &str| {
        format!(
            "CREATE TRIGGER {name} AFTER {event} BEGIN \
             INSERT INTO totals (store_id, name, value) VALUES ({row}.store_id, 'tickets.changed', 1) \
             ON CONFLICT (store_id, name) DO UPDATE SET value = value + 1; END"
        )
    };
    [vec![trigger("tickets_changed", &of_ticket("IS NOT"), "NEW")], of_rows(trigger)].concat()
}

fn up_on_postgres() -> Vec<String> {
    let function = |name: &str, rows: &str| {
        format!(
            "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             INSERT INTO totals (store_id, name, value) {rows}; RETURN NULL; END$$"
        )
    };
    let trigger = |name: &str, event: &str, rows: &str| {
        format!(
            "CREATE TRIGGER {name} AFTER {event} REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_changed()"
        )
    };
    let mut statements = vec![
        function("rows_changed", "SELECT store_id, 'tickets.changed', COUNT(*) FROM changed GROUP BY 1"),
        function("ticket_changed", "VALUES (NEW.store_id, 'tickets.changed', 1)"),
        format!("CREATE TRIGGER tickets_changed AFTER {} EXECUTE FUNCTION ticket_changed()", of_ticket("IS DISTINCT FROM")),
    ];
    statements.extend(of_rows(trigger));
    statements
}

/// Creates the triggers that maintain the change counter.
pub(crate) async fn keep(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
    run_all(manager, if sqlite { up_on_sqlite() } else { up_on_postgres() }).await
}

/// Drops the triggers and deletes the change counter.
pub(crate) async fn drop(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    run_all(manager, down_on(manager.get_database_backend())).await
}

fn down_on(backend: DbBackend) -> Vec<String> {
    let sqlite = backend == DbBackend::Sqlite;
    let mut statements = Vec::new();
    for table in ["tickets"].iter().chain(&TABLES) {
        for trigger in ["changed", "changed_come", "changed_go"] {
            let on = if sqlite { String::new() } else { format!(" ON {table}") };
            statements.push(format!("DROP TRIGGER {table}_{trigger}{on}"));
        }
    }
    if !sqlite {
        statements.extend(["rows_changed", "ticket_changed"].map(|function| format!("DROP FUNCTION {function}()")));
    }
    statements.push("DELETE FROM totals WHERE name = 'tickets.changed'".to_owned());
    statements
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        keep(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop(manager).await
    }
}
