//! Reads on SQLite, without a thread in between.
//!
//! sqlx gives each SQLite connection a thread of its own, and a statement crosses to it and back: measured, that costs
//! five times what a look-up by key does. The statements of `sql` therefore run on connections of our own: on the spot
//! where their keys bound the work, and on the runtime's blocking threads where filters do not (`Sql::unbounded`).
//!
//! Called by `sql`. Guarantees: a connection cannot write, and sees every change that was committed before it is asked.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};
use tokio::sync::Semaphore;

use super::{
    Error, Result,
    anchor::Anchor,
    connect::{LOG_PAGES, MAPPED},
    sql::{Cells, Sql},
    writer::read,
};

/// The readers of one database file.
pub(super) struct Readers {
    path: PathBuf,
    /// Open and not in use. There are never more than threads that read.
    idle: Mutex<Vec<Connection>>,
    anchor: Anchor,
    /// Holds unbounded statements to a number, so that they cannot take every blocking thread.
    unbounded: Semaphore,
}

/// Prepared statements that each connection keeps.
const STATEMENTS: usize = 256;

impl Readers {
    pub fn new(path: PathBuf, unbounded: u32) -> Arc<Self> {
        let file = path.clone();
        let anchor = Anchor::new(LOG_PAGES, move || open(&file));
        Arc::new(Self { path, idle: Mutex::default(), anchor, unbounded: Semaphore::new(unbounded.max(1) as usize) })
    }

    /// Runs a statement, each row through `decode`.
    pub async fn all<T, D>(self: &Arc<Self>, sql: Sql, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        if !sql.is_unbounded() {
            return self.run(&sql, &decode);
        }
        let _permit = self.unbounded.acquire().await.map_err(|_| Error::Unavailable("the database was closed".to_owned()))?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || readers.run(&sql, &decode));
        read.await.map_err(|error| Error::Unavailable(error.to_string()))?
    }

    fn run<T>(&self, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.anchor.read();
        let connection = self.take()?;
        let rows = read(&connection, sql, decode);
        // One that failed is not used again: whatever was wrong with it goes with it.
        if rows.is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        rows
    }

    fn take(&self) -> Result<Connection> {
        if let Some(connection) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(connection);
        }
        open(&self.path)
    }

    /// Closes the connections that are not in use.
    pub async fn close(&self) {
        self.unbounded.close();
        self.anchor.close().await;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A connection that cannot write.
fn open(path: &Path) -> Result<Connection> {
    // The file is there: whoever made these readers opened it for writing first.
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let settings = format!("PRAGMA query_only = ON; PRAGMA mmap_size = {MAPPED}; PRAGMA busy_timeout = 10000;");
    connection.execute_batch(&settings)?;
    Ok(connection)
}
