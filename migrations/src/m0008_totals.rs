//! Counters of tickets and contacts per store (materialised totals), so that the total of a list is read and not counted.
//!
//! Triggers maintain the counters, so every writer is covered: requests, imports, and manual changes by an operator. On SQLite each total
//! is one row. On PostgreSQL each change adds a row, because writers that update the same row wait for each other's commits. The total is
//! the sum of its rows. The server periodically replaces these rows by one row.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::run_all;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0008_totals"
    }
}

/// Returns the SQL expression for the name of the total to which a row of `tickets` belongs.
fn of_ticket(row: &str) -> String {
    format!(
        "CASE WHEN {row}is_open = TRUE THEN 'tickets.open' ELSE 'tickets.closed' END || \
         CASE WHEN {row}is_spam = TRUE THEN '.spam' ELSE '' END"
    )
}

/// Returns the statement that inserts the totals of the existing rows.
pub(crate) fn of_stored() -> String {
    format!(
        "INSERT INTO totals (store_id, name, value) SELECT store_id, {}, COUNT(*) FROM tickets GROUP BY 1, 2 \
         UNION ALL SELECT store_id, 'contacts', COUNT(*) FROM contacts GROUP BY 1, 2",
        of_ticket("")
    )
}

/// Partial index of snoozed tickets. Snoozed tickets have no counter, since a snooze ends without a write that could fire a trigger. They
/// are counted when a list is read, which is cheap because they are few.
const SNOOZED: &str =
    "CREATE INDEX tickets_snoozed ON tickets (store_id, is_spam, snoozed_until) WHERE is_open = TRUE AND snoozed_until IS NOT NULL";

const MOVED: &str = "WHEN (OLD.is_open <> NEW.is_open OR OLD.is_spam <> NEW.is_spam)";

fn up_on_sqlite() -> Vec<String> {
    let add = |row: &str, name: &str, value: i64| {
        format!(
            "INSERT INTO totals (store_id, name, value) VALUES ({row}.store_id, {name}, {value}) \
             ON CONFLICT (store_id, name) DO UPDATE SET value = value + excluded.value;"
        )
    };
    let ticket = |row: &str, value| add(row, &of_ticket(&format!("{row}.")), value);
    let trigger = |name: &str, event: &str, body: String| format!("CREATE TRIGGER {name} AFTER {event} BEGIN {body} END");
    vec![
        "CREATE TABLE totals (store_id TEXT NOT NULL, name TEXT NOT NULL, value BIGINT NOT NULL, PRIMARY KEY (store_id, name)) WITHOUT ROWID"
            .to_owned(),
        of_stored(),
        trigger("tickets_come", "INSERT ON tickets", ticket("NEW", 1)),
        trigger("tickets_go", "DELETE ON tickets", ticket("OLD", -1)),
        trigger("tickets_move", &format!("UPDATE OF is_open, is_spam ON tickets {MOVED}"), ticket("OLD", -1) + &ticket("NEW", 1)),
        trigger("contacts_come", "INSERT ON contacts", add("NEW", "'contacts'", 1)),
        trigger("contacts_go", "DELETE ON contacts", add("OLD", "'contacts'", -1)),
        SNOOZED.to_owned(),
    ]
}

fn up_on_postgres() -> Vec<String> {
    // Creates the function of a trigger that runs once for each statement. A statement that inserts or deletes many tickets or contacts
    // adds only one row for each total to `totals`.
    let many = |function: &str, name: &str, rows: &str, sign: &str| {
        format!(
            "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             INSERT INTO totals (store_id, name, value) SELECT store_id, {name}, {sign}COUNT(*) FROM {rows} GROUP BY 1, 2; \
             RETURN NULL; END$$"
        )
    };
    let come = |table: &str| {
        format!(
            "CREATE TRIGGER {table}_come AFTER INSERT ON {table} REFERENCING NEW TABLE AS came \
             FOR EACH STATEMENT EXECUTE FUNCTION {table}_come()"
        )
    };
    let go = |table: &str| {
        format!(
            "CREATE TRIGGER {table}_go AFTER DELETE ON {table} REFERENCING OLD TABLE AS gone \
             FOR EACH STATEMENT EXECUTE FUNCTION {table}_go()"
        )
    };
    vec![
        "CREATE TABLE totals (store_id TEXT COLLATE \"C\" NOT NULL, name TEXT COLLATE \"C\" NOT NULL, value BIGINT NOT NULL, \
         part BIGINT GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (store_id, name, part))"
            .to_owned(),
        many("tickets_come", &of_ticket(""), "came", ""),
        many("tickets_go", &of_ticket(""), "gone", "-"),
        many("contacts_come", "'contacts'", "came", ""),
        many("contacts_go", "'contacts'", "gone", "-"),
        format!(
            "CREATE FUNCTION tickets_move() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             INSERT INTO totals (store_id, name, value) VALUES (OLD.store_id, {}, -1), (NEW.store_id, {}, 1); RETURN NULL; END$$",
            of_ticket("OLD."),
            of_ticket("NEW.")
        ),
        come("tickets"),
        go("tickets"),
        // A row trigger with a condition. Nearly every update of a ticket keeps the values of `is_open` and `is_spam`, and then the
        // trigger's function is not called.
        format!(
            "CREATE TRIGGER tickets_move AFTER UPDATE OF is_open, is_spam ON tickets FOR EACH ROW {MOVED} EXECUTE FUNCTION tickets_move()"
        ),
        come("contacts"),
        go("contacts"),
        // Rows are counted after the triggers are created. Their creation waits for other writers and blocks new writers until the commit,
        // so no row is missed.
        of_stored(),
        SNOOZED.to_owned(),
    ]
}

const TRIGGERS: [(&str, &str); 5] = [
    ("tickets_come", "tickets"),
    ("tickets_go", "tickets"),
    ("tickets_move", "tickets"),
    ("contacts_come", "contacts"),
    ("contacts_go", "contacts"),
];

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        run_all(manager, if sqlite { up_on_sqlite() } else { up_on_postgres() }).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        let mut statements = vec!["DROP INDEX tickets_snoozed".to_owned()];
        for (trigger, table) in TRIGGERS {
            if sqlite {
                statements.push(format!("DROP TRIGGER {trigger}"));
            } else {
                statements.push(format!("DROP TRIGGER {trigger} ON {table}"));
                statements.push(format!("DROP FUNCTION {trigger}()"));
            }
        }
        statements.push("DROP TABLE totals".to_owned());
        run_all(manager, statements).await
    }
}
