//! A SQLite file without SeaORM in between: how it is opened, and how a statement runs on it where it is called.
//!
//! Called by `writer` and `readers`, which say what that is worth, and by the tests that count visits.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Statement, config::DbConfig};

use super::{
    Result,
    sql::{Cells, Param, Sql},
};

/// A connection to a file that is there: whoever opens it here had SeaORM open it for writing first.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Runs a statement that returns rows.
pub(super) fn read<T>(connection: &Connection, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(&sql.for_sqlite())?;
    bind(&mut statement, sql.params())?;
    let mut rows = statement.raw_query();
    let mut decoded = Vec::new();
    while let Some(row) = rows.next()? {
        decoded.push(decode(&mut Cells::sqlite(row))?);
    }
    Ok(decoded)
}

pub(super) fn bind(statement: &mut Statement<'_>, params: &[Param]) -> Result<()> {
    for (i, param) in params.iter().enumerate() {
        match param {
            Param::Text(text) => statement.raw_bind_parameter(i + 1, text.as_str())?,
            Param::Integer(number) => statement.raw_bind_parameter(i + 1, number)?,
            Param::Number(number) => statement.raw_bind_parameter(i + 1, number)?,
            Param::Bytes(bytes) => statement.raw_bind_parameter(i + 1, bytes)?,
            Param::Flag(flag) => statement.raw_bind_parameter(i + 1, flag)?,
            Param::Null | Param::NoInteger | Param::NoNumber | Param::NoFlag => {
                statement.raw_bind_parameter(i + 1, rusqlite::types::Null)?
            }
        }
    }
    Ok(())
}
