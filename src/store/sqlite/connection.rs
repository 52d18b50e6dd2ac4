//! SQLite connections without SeaORM: opening a connection, and running a statement inline (on the calling thread).

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Statement, config::DbConfig};

use crate::store::{
    Result,
    parameterised_sql::{Param, Sql},
    row_decoding::Cells,
    slow_statements::StatementTimer,
};

/// The page size of a new SQLite file, in bytes. An existing file keeps its own page size. The write-ahead log (WAL) stores whole pages,
/// but sending a message changes only a small part of each page that it touches. So with larger pages fewer messages could be sent per
/// second. Reads would not become cheaper.
pub(in crate::store) const PAGE_BYTES: u32 = 2048;

/// The suffixes that SQLite appends to the name of a database: for its write-ahead log (WAL), and for the WAL's index.
pub(in crate::store) const LOG: &str = "-wal";
pub(in crate::store) const INDEX: &str = "-shm";

/// Returns the path of a database with `suffix` appended to its file name.
pub(in crate::store) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Opens a connection to a database file. Fails if the file does not exist.
pub(in crate::store) fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Opens a connection for writing.
pub(in crate::store) fn open_writer(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    // `busy_timeout = 0`: SQLite does not wait for its write lock, since that would block a thread. Instead the writer tries again after a
    // pause.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 0;")?;
    Ok(connection)
}

/// The length of the WAL, in pages, and how many of these pages are copied into the database.
pub(in crate::store) struct Log {
    pub pages: i64,
    pub copied: i64,
}

impl Log {
    /// Returns whether the WAL has at least `pages` pages and is not copied to its end. While another connection runs a checkpoint, SQLite
    /// reports a negative length, and the WAL counts as not copied.
    pub fn is_left(&self, pages: u32) -> bool {
        self.pages < 0 || (self.pages >= pages.into() && self.copied < self.pages)
    }
}

/// Runs a checkpoint of the kind `checkpoint` (such as `PASSIVE`) and returns the state of the WAL after it; the kind `NOOP` copies
/// nothing. While another connection runs a checkpoint, this checkpoint does nothing.
pub(in crate::store) fn log(connection: &Connection, checkpoint: &str) -> Result<Log> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({checkpoint})"))?;
    Ok(statement.query_row((), |row| Ok(Log { pages: row.get(1)?, copied: row.get(2)? }))?)
}

/// Runs a statement and returns its rows, each decoded by `decode`.
pub(in crate::store) fn read<T>(connection: &Connection, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
    let _watch = StatementTimer::one(sql);
    let mut statement = connection.prepare_cached(&sql.for_sqlite())?;
    bind(&mut statement, sql.params())?;
    let mut rows = statement.raw_query();
    let mut decoded = Vec::new();
    while let Some(row) = rows.next()? {
        decoded.push(decode(&mut Cells::sqlite(row))?);
    }
    Ok(decoded)
}

pub(in crate::store) fn bind(statement: &mut Statement<'_>, params: &[Param]) -> Result<()> {
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
