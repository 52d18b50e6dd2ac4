//! Bulk statements: SQL for many rows, in the form that each database runs fastest. Called by the other modules of the import.
//!
//! On SQLite a statement for one row runs once for each row. On PostgreSQL that would take a round trip for each row. So on PostgreSQL
//! every column is sent as one array: for any number of rows, the statement has the same short text, and is prepared and run once.

use std::fmt::Write as _;

use sea_orm::{DbBackend, Value};

use crate::store::import::list;

/// SQL text, and the values of its parameters (`?`) for each run.
pub(super) struct Bulk {
    pub sql: String,
    pub runs: Vec<Vec<Value>>,
}

/// Returns the condition that a column has one of these ids, as text that may follow the column's name. On SQLite each run tests one id.
pub(super) fn among<'a>(backend: DbBackend, ids: impl Iterator<Item = &'a str>) -> Bulk {
    if backend == DbBackend::Postgres {
        let mut array = Array::default();
        ids.for_each(|id| array.text(id));
        let runs = if array.is_empty() { vec![] } else { vec![vec![array.end()]] };
        return Bulk { sql: "= ANY (?::text::text[])".to_owned(), runs };
    }
    Bulk { sql: "= ?".to_owned(), runs: ids.map(|id| vec![id.into()]).collect() }
}

/// Returns rows as a query that may follow `INSERT INTO …`; each row has as many values as the first.
pub(super) fn rows(backend: DbBackend, rows: Vec<Vec<Value>>) -> Bulk {
    let width = rows.first().map_or(0, Vec::len);
    if backend != DbBackend::Postgres || rows.is_empty() {
        return Bulk { sql: format!("VALUES ({})", list(width)), runs: rows };
    }
    // Each column has its own `UNNEST` in the select list. One `UNNEST` of all columns in the FROM clause costs more: PostgreSQL would
    // materialise all rows before it returns the first.
    let column = |(value, number)| format!("UNNEST(?::text::{}[]) AS column{number}", type_of(value));
    let selected: Vec<String> = rows.first().into_iter().flatten().zip(1..).map(column).collect();
    let mut columns: Vec<Array> = (0..width).map(|_| Array::default()).collect();
    for row in &rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.value(value);
        }
    }
    Bulk { sql: format!("SELECT {}", selected.join(", ")), runs: vec![columns.into_iter().map(Array::end).collect()] }
}

/// Returns the query of [`rows`] as a table `v` with the columns `column1`, `column2`, ….
pub(super) fn table(backend: DbBackend, rows: Vec<Vec<Value>>) -> Bulk {
    let Bulk { sql, runs } = self::rows(backend, rows);
    Bulk { sql: format!("({sql}) AS v"), runs }
}

/// Returns the statement that sets columns of records of one store. Each row consists of the new values, followed by the id of the record.
/// The id of the store is the last parameter; the caller gives its value.
pub(super) fn update(backend: DbBackend, table: &str, columns: &[&str], rows: Vec<Vec<Value>>) -> Bulk {
    if backend != DbBackend::Postgres {
        let set: Vec<String> = columns.iter().map(|column| format!("{column} = ?")).collect();
        return Bulk { sql: format!("UPDATE {table} SET {} WHERE id = ? AND store_id = ?", set.join(", ")), runs: rows };
    }
    let set: Vec<String> = columns.iter().zip(1..).map(|(column, number)| format!("{column} = v.column{number}")).collect();
    let Bulk { sql, runs } = self::table(backend, rows);
    let id = columns.len() + 1;
    let sql = format!("UPDATE {table} SET {} FROM {sql} WHERE {table}.id = v.column{id} AND {table}.store_id = ?", set.join(", "));
    Bulk { sql, runs }
}

/// Returns PostgreSQL's name for the type of a value. A value that is NULL has the type of its variant.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::BigInt(_) | Value::Int(_) => "bigint",
        Value::Double(_) => "double precision",
        _ => "text",
    }
}

/// An array in PostgreSQL's text format.
struct Array(String);

impl Default for Array {
    fn default() -> Self {
        Self("{".to_owned())
    }
}

impl Array {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(Some(text)) => self.text(text),
            Value::BigInt(Some(number)) => self.plain(number),
            Value::Int(Some(number)) => self.plain(number),
            Value::Double(Some(number)) => self.plain(number),
            Value::Bool(Some(flag)) => self.plain(flag),
            _ => self.plain("NULL"),
        }
    }

    fn text(&mut self, text: &str) {
        self.0.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(['"', '\\']) {
            let (plain, quoted) = rest.split_at(at);
            self.0.push_str(plain);
            self.0.push('\\');
            let mut quoted = quoted.chars();
            self.0.extend(quoted.next());
            rest = quoted.as_str();
        }
        self.0.push_str(rest);
        self.0.push_str("\",");
    }

    fn plain(&mut self, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        _ = write!(self.0, "{value},");
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    fn end(mut self) -> Value {
        if self.0.ends_with(',') {
            self.0.pop();
        }
        self.0.push('}');
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_quoted_as_postgres_reads_it() {
        let rows = vec![
            vec![Value::from("a\"b\\,{}"), Value::from(-5_i64), Value::from(true), Value::Double(None)],
            vec![Value::from("NULL"), Value::BigInt(None), Value::from(false), Value::from(0.1)],
            vec![Value::String(None), Value::from(7_i64), Value::Bool(None), Value::from(1e300)],
        ];
        let bulk = super::rows(DbBackend::Postgres, rows);
        let types = ["text", "bigint", "boolean", "double precision"];
        let selected: Vec<String> =
            types.iter().zip(1..).map(|(name, number)| format!("UNNEST(?::text::{name}[]) AS column{number}")).collect();
        assert_eq!(bulk.sql, format!("SELECT {}", selected.join(", ")));
        let huge = format!("{}", 1e300);
        let expected: Vec<Value> = vec![
            r#"{"a\"b\\,{}","NULL",NULL}"#.into(),
            "{-5,NULL,7}".into(),
            "{true,false,NULL}".into(),
            format!("{{NULL,0.1,{huge}}}").into(),
        ];
        assert_eq!(bulk.runs, [expected]);
    }

    #[test]
    fn sqlite_runs_once_for_each_row() {
        let rows: Vec<Vec<Value>> = vec![vec!["a".into(), 1_i64.into()], vec!["b".into(), 2_i64.into()]];
        let bulk = table(DbBackend::Sqlite, rows.clone());
        assert_eq!((bulk.sql.as_str(), bulk.runs), ("(VALUES (?,?)) AS v", rows));
        assert_eq!(update(DbBackend::Sqlite, "t", &["a", "b"], vec![]).sql, "UPDATE t SET a = ?, b = ? WHERE id = ? AND store_id = ?");
        let ids = || ["a", "b"].into_iter();
        assert_eq!(among(DbBackend::Sqlite, ids()).runs, [["a".into()], ["b".into()]] as [[Value; 1]; 2]);
        assert_eq!(among(DbBackend::Postgres, ids()).runs, [[r#"{"a","b"}"#.into()]] as [[Value; 1]; 1]);
    }
}
