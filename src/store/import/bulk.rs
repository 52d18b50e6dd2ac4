//! Many values as one statement takes them fastest. Called by the rest of the import.
//!
//! SQLite binds each value. PostgreSQL would parse a variable for each and plan anew for each number of rows: there every
//! column goes as one array, so that a batch of any size is the same short statement, prepared once.

use std::fmt::Write as _;

use sea_orm::{DbBackend, Value};

use super::{list, values_list};

/// SQL text and its variables.
pub(super) struct Bulk {
    pub sql: String,
    pub values: Vec<Value>,
}

/// `= ANY(…)` or `IN (…)`: a test that a column has one of these ids.
pub(super) fn among<'a>(backend: DbBackend, ids: impl ExactSizeIterator<Item = &'a str>) -> Bulk {
    if backend == DbBackend::Postgres {
        let mut array = Array::default();
        ids.for_each(|id| array.text(id));
        return Bulk { sql: "= ANY (?::text::text[])".to_owned(), values: vec![array.end()] };
    }
    Bulk { sql: format!("IN ({})", list(ids.len())), values: ids.map(Value::from).collect() }
}

/// Rows as a query that may follow `INSERT INTO …`; at least one row, each with as many values as the first.
pub(super) fn rows(backend: DbBackend, rows: Vec<Vec<Value>>) -> Bulk {
    let width = rows.first().map_or(0, Vec::len);
    if backend != DbBackend::Postgres {
        return Bulk { sql: format!("VALUES {}", values_list(rows.len(), width)), values: rows.into_iter().flatten().collect() };
    }
    let casts: Vec<String> = rows.first().into_iter().flatten().map(|value| format!("?::text::{}[]", type_of(value))).collect();
    let names: Vec<String> = (1..=width).map(|number| format!("column{number}")).collect();
    let mut columns: Vec<Array> = (0..width).map(|_| Array::default()).collect();
    for row in &rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.value(value);
        }
    }
    let sql = format!("SELECT * FROM UNNEST({}) AS r ({})", casts.join(", "), names.join(", "));
    Bulk { sql, values: columns.into_iter().map(Array::end).collect() }
}

/// [`rows`] as a table `v` with the columns `column1`, `column2`, ….
pub(super) fn table(backend: DbBackend, rows: Vec<Vec<Value>>) -> Bulk {
    let Bulk { sql, values } = self::rows(backend, rows);
    Bulk { sql: format!("({sql}) AS v"), values }
}

/// What PostgreSQL calls the type of a value; it has one where the value is absent, too.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::BigInt(_) | Value::Int(_) => "bigint",
        Value::Double(_) => "double precision",
        _ => "text",
    }
}

/// An array as PostgreSQL reads it.
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
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                self.0.push('\\');
            }
            self.0.push(c);
        }
        self.0.push_str("\",");
    }

    fn plain(&mut self, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        _ = write!(self.0, "{value},");
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
        let types = "UNNEST(?::text::text[], ?::text::bigint[], ?::text::boolean[], ?::text::double precision[])";
        assert_eq!(bulk.sql, format!("SELECT * FROM {types} AS r (column1, column2, column3, column4)"));
        let huge = format!("{}", 1e300);
        let expected: Vec<Value> = vec![
            r#"{"a\"b\\,{}","NULL",NULL}"#.into(),
            "{-5,NULL,7}".into(),
            "{true,false,NULL}".into(),
            format!("{{NULL,0.1,{huge}}}").into(),
        ];
        assert_eq!(bulk.values, expected);
    }

    #[test]
    fn sqlite_binds_each_value() {
        let bulk = table(DbBackend::Sqlite, vec![vec!["a".into(), 1_i64.into()], vec!["b".into(), 2_i64.into()]]);
        assert_eq!(bulk.sql, "(VALUES (?,?),(?,?)) AS v");
        assert_eq!(bulk.values.len(), 4);
        assert_eq!(among(DbBackend::Sqlite, ["a", "b"].into_iter()).sql, "IN (?,?)");
        assert_eq!(among(DbBackend::Postgres, ["a", "b"].into_iter()).values, [Value::from(r#"{"a","b"}"#)]);
    }
}
