//! Each entity against its migrated table: columns, kinds of values, and whether a column may be absent, on both databases.

use std::collections::BTreeMap;

use sea_orm::{ColumnTrait, ColumnType, DbBackend, EntityTrait, IdenStatic, Iterable};

use super::*;
use crate::store::{fixture::Fixture, sql::Sql};

/// A column's kind of values, and whether it may be absent.
type Columns = BTreeMap<String, (&'static str, bool)>;

fn columns<E: EntityTrait>() -> (String, Columns) {
    let described = E::Column::iter().map(|column| {
        let definition = column.def();
        (column.as_str().to_owned(), (kind(definition.get_column_type()), definition.is_null()))
    });
    (E::default().table_name().to_owned(), described.collect())
}

fn kind(column_type: &ColumnType) -> &'static str {
    match column_type {
        ColumnType::String(_) | ColumnType::Text => "text",
        ColumnType::BigInteger => "integer",
        ColumnType::Boolean => "flag",
        ColumnType::Double => "number",
        ColumnType::VarBinary(_) | ColumnType::Blob => "bytes",
        other => panic!("no column has the type {other:?}"),
    }
}

/// What the databases call the kinds.
fn migrated_kind(name: &str) -> &'static str {
    match name.to_lowercase().as_str() {
        "text" => "text",
        "bigint" | "integer" => "integer",
        "boolean" => "flag",
        "double precision" => "number",
        "blob" | "bytea" => "bytes",
        other => panic!("no entity has a column of the type `{other}`"),
    }
}

fn described() -> BTreeMap<String, Columns> {
    macro_rules! entities {
        ($($table:ident)*) => { [$(columns::<$table::Entity>()),*].into() };
    }
    entities! {
        account_users accounts api_key_secrets api_keys attempts audit bridge_secrets bridges changes comments
        contact_fields contacts conversation_labels conversations counters deliveries events forgotten_changes grants
        idempotency_keys labelled_tickets labels messages outbound roles server_secrets stores team_members teams
        templates ticket_field_values ticket_fields tickets totals users webhook_kinds webhook_secrets webhooks
        write_probes
    }
}

async fn migrated(fixture: &Fixture) -> BTreeMap<String, Columns> {
    // SQLite lets the key of a rowid table be absent where the column is not `NOT NULL`; the row has a number all the same.
    let columns = if fixture.db.backend() == DbBackend::Sqlite {
        "SELECT t.name, c.name, c.type, c.\"notnull\" = 0 AND c.pk = 0 FROM pragma_table_list t, pragma_table_info(t.name) c \
         WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%'"
    } else {
        "SELECT c.table_name::text, c.column_name::text, c.data_type::text, c.is_nullable = 'YES' FROM information_schema.columns c \
         JOIN information_schema.tables t USING (table_schema, table_name) WHERE c.table_schema = current_schema() \
         AND t.table_type = 'BASE TABLE'"
    };
    let mut tables: BTreeMap<String, Columns> = BTreeMap::new();
    let rows = fixture
        .db
        .all(Sql::fixed(columns), |cells| Ok((cells.take::<String>()?, cells.take::<String>()?, cells.take::<String>()?, cells.flag()?)));
    for (table, column, kind, is_null) in rows.await.unwrap() {
        // SeaORM's own.
        if table != "seaql_migrations" {
            tables.entry(table).or_default().insert(column, (migrated_kind(&kind), is_null));
        }
    }
    tables
}

#[tokio::test]
async fn every_table_has_an_entity_with_its_columns() {
    let fixture = Fixture::new().await;
    let (mut described, migrated) = (described(), migrated(&fixture).await);
    // What one of the databases does not need: SQLite has one writer, so that a total is one row; PostgreSQL has statistics.
    if fixture.db.backend() == DbBackend::Postgres {
        described.remove("labelled_tickets");
    } else {
        described.entry("totals".to_owned()).and_modify(|columns| _ = columns.remove("part"));
    }
    for (table, columns) in &migrated {
        assert_eq!(described.get(table), Some(columns), "the entity of `{table}` (left) and its migrated table (right)");
    }
    let tables = |of: &BTreeMap<String, Columns>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(tables(&described), tables(&migrated), "entities (left) and migrated tables (right)");
}
