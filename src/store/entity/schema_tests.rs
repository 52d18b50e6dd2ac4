//! Tests of each entity against its migrated table: columns, types, and whether a column is nullable, on both databases.

use std::collections::BTreeMap;

use sea_orm::{ColumnTrait, ColumnType, DbBackend, EntityTrait, IdenStatic, Iterable};

use super::exists_on;
use crate::store::{fixture::Fixture, parameterised_sql::Sql};

/// The columns of a table by name, each with its type and whether it is nullable.
type Columns = BTreeMap<String, (&'static str, bool)>;

/// Returns the name of an entity's table, and its columns on this database.
fn columns<E: EntityTrait>(backend: DbBackend) -> (String, Columns) {
    let described = E::Column::iter().filter(|column| exists_on(backend, E::default().table_name(), column.as_str())).map(|column| {
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

/// Returns the name that [`kind`] gives to the column type with this name in SQLite or PostgreSQL.
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

fn described(backend: DbBackend) -> BTreeMap<String, Columns> {
    for_each_entity!(columns, backend).into_iter().filter(|(_, columns)| !columns.is_empty()).collect()
}

async fn migrated(fixture: &Fixture) -> BTreeMap<String, Columns> {
    // SQLite reports a primary key column as nullable if it is declared without `NOT NULL`. No row lacks its key, so a primary key column
    // counts as not nullable here.
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
        .all(Sql::fixed(columns), |cells| Ok((cells.take::<String>()?, cells.take::<String>()?, cells.take::<String>()?, cells.take()?)));
    for (table, column, kind, is_null) in rows.await.unwrap() {
        // The table in which SeaORM records the migrations has no entity.
        if table != "seaql_migrations" {
            tables.entry(table).or_default().insert(column, (migrated_kind(&kind), is_null));
        }
    }
    tables
}

#[tokio::test]
async fn every_table_has_an_entity_with_its_columns() {
    let fixture = Fixture::new().await;
    let (described, migrated) = (described(fixture.db.backend()), migrated(&fixture).await);
    for (table, columns) in &migrated {
        let entity = described.get(table).unwrap_or_else(|| panic!("`{table}` has no entity in the list of entity/mod.rs"));
        assert_eq!(entity, columns, "the entity of `{table}` (left) and its migrated table (right)");
    }
    for table in described.keys() {
        assert!(migrated.contains_key(table), "no migration creates the table `{table}` of an entity");
    }
}
