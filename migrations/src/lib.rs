//! Database schema migrations for SQLite and PostgreSQL, up and down.
//!
//! Rules of the schema:
//! - The primary key of a table of records begins with `store_id`, so that the records of a store are one contiguous range of keys and can
//!   be sharded by store. Some other tables have a primary key without `store_id`: queues and logs are numbered across stores, and
//!   credentials are found by the hash of their secret.
//! - No table or column depends on a revision of the API contract: a database that was written under one revision can be used under another
//!   revision.
//! - Instants are Unix milliseconds (`BIGINT`), exactly the precision of the API contract.
//! - Text keys compare bytewise on both databases, so that both return the same keyset pages.
//! - JSON is stored as text: `JSONB` would reorder keys.
//!
//! Each migration runs in one transaction on both databases. A database records it under its `name()`, which stays the same if a file is
//! renamed.
//!
//! A new migration is a file, whose first line says what it adds or changes, its `mod` below, and its entry in `Migrator::migrations`.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

mod m0001_records;
mod m0002_api_keys_and_secrets;
mod m0003_events_and_change_log;
mod m0004_outbound;
mod m0005_webhooks;
mod m0006_settings_access_and_audit_log;
mod m0007_bridges;
mod m0008_totals;
mod m0009_open_tickets_by_label;
mod m0010_version_of_cached_totals;
mod m0011_recount_totals;
mod m0012_narrow_conversation_index;
mod m0013_write_probe;
mod m0014_encrypted_secrets;
mod m0015_drop_version_of_cached_totals;
mod m0016_channel_sent_at;
mod m0017_drafts;
mod m0018_restricted_tokens;
mod m0019_sandbox_database;
mod m0020_former_sort_positions;
mod m0021_record_changes;
mod m0022_cheaper_sort_position_changes_on_sqlite;
mod m0023_email_address_of_sign_in_links;
mod m0024_endpoint_answers;
mod m0025_failed_messages;
mod m0026_cheaper_sends;
mod m0027_indexes_of_unnumbered_rows;

pub use m0020_former_sort_positions::LISTS as SORTED_LISTS;
pub use m0021_record_changes::RECORDS as RECORD_TABLES;
pub use m0026_cheaper_sends::LARGE as LARGE_RECORD_TABLES;
pub use sea_orm_migration::{MigrationStatus, MigratorTrait};

/// All migrations, oldest first.
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_records::Migration),
            Box::new(m0002_api_keys_and_secrets::Migration),
            Box::new(m0003_events_and_change_log::Migration),
            Box::new(m0004_outbound::Migration),
            Box::new(m0005_webhooks::Migration),
            Box::new(m0006_settings_access_and_audit_log::Migration),
            Box::new(m0007_bridges::Migration),
            Box::new(m0008_totals::Migration),
            Box::new(m0009_open_tickets_by_label::Migration),
            Box::new(m0010_version_of_cached_totals::Migration),
            Box::new(m0011_recount_totals::Migration),
            Box::new(m0012_narrow_conversation_index::Migration),
            Box::new(m0013_write_probe::Migration),
            Box::new(m0014_encrypted_secrets::Migration),
            Box::new(m0015_drop_version_of_cached_totals::Migration),
            Box::new(m0016_channel_sent_at::Migration),
            Box::new(m0017_drafts::Migration),
            Box::new(m0018_restricted_tokens::Migration),
            Box::new(m0019_sandbox_database::Migration),
            Box::new(m0020_former_sort_positions::Migration),
            Box::new(m0021_record_changes::Migration),
            Box::new(m0022_cheaper_sort_position_changes_on_sqlite::Migration),
            Box::new(m0023_email_address_of_sign_in_links::Migration),
            Box::new(m0024_endpoint_answers::Migration),
            Box::new(m0025_failed_messages::Migration),
            Box::new(m0026_cheaper_sends::Migration),
            Box::new(m0027_indexes_of_unnumbered_rows::Migration),
        ]
    }
}

/// Runs a script in an SQL dialect that is common to both databases. `;` ends a statement, and a line that starts with `--` is a comment.
/// Words in braces are placeholders for SQL that differs between the databases. `APPEND ONLY table` makes the database refuse to change or
/// delete the table's rows.
pub(crate) async fn run(manager: &SchemaManager<'_>, script: &str) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    let words: [(&str, &str); 5] = match connection.get_database_backend() {
        DbBackend::Sqlite => [
            ("{text}", "TEXT"),
            ("{bytes}", "BLOB"),
            ("{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
            // Small rows are stored in their primary key (clustered index): one search instead of two.
            ("{clustered}", "WITHOUT ROWID"),
            // Bloom filters (sets of bits) that follow the sort key in the index of a list, so that SQLite can test them without reading
            // the table (covering index). PostgreSQL would read the table nevertheless.
            ("{marks}", ", label_marks, field_marks, text_marks"),
        ],
        _ => [
            ("{text}", "TEXT COLLATE \"C\""),
            ("{bytes}", "BYTEA"),
            ("{serial}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
            ("{clustered}", ""),
            ("{marks}", ""),
        ],
    };
    let script = words.iter().fold(script.to_owned(), |text, (from, to)| text.replace(from, to));
    let script: String = script.lines().filter(|line| !line.trim_start().starts_with("--")).map(|line| format!("{line}\n")).collect();
    for statement in script.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        match statement.strip_prefix("APPEND ONLY ") {
            Some(table) => append_only(manager, table).await?,
            None => {
                connection.execute_unprepared(statement).await?;
            }
        }
    }
    Ok(())
}

/// Runs statements that are written in the SQL dialect of the database.
pub(crate) async fn run_all(manager: &SchemaManager<'_>, statements: Vec<String>) -> Result<(), DbErr> {
    for statement in statements {
        manager.get_connection().execute_unprepared(&statement).await?;
    }
    Ok(())
}

/// Creates triggers that make the database refuse to change or delete the rows of a table.
async fn append_only(manager: &SchemaManager<'_>, table: &str) -> Result<(), DbErr> {
    let refusal = format!("rows of {table} stay as they are");
    let statements = match manager.get_database_backend() {
        // `INSERT OR REPLACE` does not fire the delete trigger for the replaced row, so a trigger on INSERT refuses it.
        DbBackend::Sqlite => [
            ("UPDATE", ""),
            ("DELETE", ""),
            ("INSERT", "WHEN EXISTS (SELECT 1 FROM {table} WHERE position = NEW.position) "),
        ]
        .map(|(event, when)| {
            let when = when.replace("{table}", table);
            format!("CREATE TRIGGER {table}_stays_on_{event} BEFORE {event} ON {table} {when}BEGIN SELECT RAISE(ABORT, '{refusal}'); END")
        })
        .to_vec(),
        _ => vec![
            format!("CREATE FUNCTION {table}_stays() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION '{refusal}'; END$$"),
            format!("CREATE TRIGGER {table}_stays BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_stays()"),
            format!("CREATE TRIGGER {table}_is_not_emptied BEFORE TRUNCATE ON {table} EXECUTE FUNCTION {table}_stays()"),
        ],
    };
    run_all(manager, statements).await
}

/// Drops tables in reverse order of their creation.
pub(crate) async fn drop_all(manager: &SchemaManager<'_>, tables: &[&str]) -> Result<(), DbErr> {
    for table in tables.iter().rev() {
        manager.get_connection().execute_unprepared(&format!("DROP TABLE {table}")).await?;
        if manager.get_database_backend() == DbBackend::Postgres {
            // The function of the append-only triggers is not dropped with the table.
            manager.get_connection().execute_unprepared(&format!("DROP FUNCTION IF EXISTS {table}_stays()")).await?;
        }
    }
    Ok(())
}

/// Defines a migration by its script and by what reverts it: the tables that the script creates and `down` drops, or a script. The
/// migration runs in one transaction on both databases.
macro_rules! migration {
    ($name:literal, tables: [$($table:literal),* $(,)?], $script:literal) => {
        $crate::migration!(@define $name, manager, $crate::run(manager, $script), $crate::drop_all(manager, &[$($table),*]));
    };
    ($name:literal, up: $up:literal, down: $down:literal) => {
        $crate::migration!(@define $name, manager, $crate::run(manager, $up), $crate::run(manager, $down));
    };
    (@define $name:literal, $manager:ident, $up:expr, $down:expr) => {
        pub struct Migration;

        impl sea_orm_migration::MigrationName for Migration {
            fn name(&self) -> &str {
                $name
            }
        }

        #[sea_orm_migration::async_trait::async_trait]
        impl sea_orm_migration::MigrationTrait for Migration {
            fn use_transaction(&self) -> Option<bool> {
                Some(true)
            }

            async fn up(&self, $manager: &sea_orm_migration::SchemaManager) -> Result<(), sea_orm_migration::DbErr> {
                $up.await
            }

            async fn down(&self, $manager: &sea_orm_migration::SchemaManager) -> Result<(), sea_orm_migration::DbErr> {
                $down.await
            }
        }
    };
}
pub(crate) use migration;
