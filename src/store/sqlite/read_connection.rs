//! A read-only SQLite connection, whose statements stop when they take longer than their caller allows.

use std::{
    path::Path,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use rusqlite::Connection;

use crate::store::{
    Result,
    mutex::lock,
    parameterised_sql::Sql,
    row_decoding::Cells,
    sqlite::{
        connection::{open, read},
        file_identity::FileIdentity,
    },
};

/// The number of steps of SQLite's virtual machine from one progress check (call of SQLite's progress handler) to the next. A step takes
/// some ten nanoseconds.
const STEPS: i32 = 500;

/// The page cache of each connection, in KiB.
const CACHE_KIB: u32 = 16 * 1024;

/// How many prepared statements each connection keeps.
const STATEMENTS: usize = 256;

/// A connection that cannot write.
pub(super) struct ReadConnection {
    connection: Connection,
    /// How much longer the current statement may run. `None`: until it has ended.
    left: Arc<Mutex<Option<ReadBudget>>>,
}

/// How much longer a statement may run.
pub(super) enum ReadBudget {
    /// Inline: how many more progress checks the statement may reach, and the time at which it is stopped.
    Asks(u32, Instant),
    /// On a blocking thread: as long as a caller waits for the statement.
    WhileWanted(Weak<()>),
}

impl ReadBudget {
    fn is_none(&self) -> bool {
        match self {
            Self::Asks(asks, _) => *asks == 0,
            Self::WhileWanted(by) => by.strong_count() == 0,
        }
    }

    fn asked(&mut self) {
        if let Self::Asks(asks, until) = self {
            *asks = if Instant::now() < *until { asks.saturating_sub(1) } else { 0 };
        }
    }
}

impl ReadConnection {
    pub fn open(file: &FileIdentity) -> Result<Self> {
        // Fails if the path leads to another file by now, which would have other records.
        file.check()?;
        let connection = open_read_only(file.path())?;
        let left = Arc::<Mutex<Option<ReadBudget>>>::default();
        let asked = left.clone();
        let is_enough = move || {
            lock(&asked).as_mut().is_some_and(|left| {
                left.asked();
                left.is_none()
            })
        };
        connection.progress_handler(STEPS, Some(is_enough))?;
        Ok(Self { connection, left })
    }

    /// Runs a statement; returns `None` if it was stopped because it needs more than `left` allows.
    pub fn run<T>(&self, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>, left: Option<ReadBudget>) -> Result<Option<Vec<T>>> {
        *lock(&self.left) = left;
        match read(&self.connection, sql, decode) {
            Err(_) if lock(&self.left).as_ref().is_some_and(ReadBudget::is_none) => Ok(None),
            rows => rows.map(Some),
        }
    }

    /// Begins a transaction, whose statements all see one state of the database.
    pub fn begin(&self) -> Result<()> {
        self.connection.prepare_cached("BEGIN")?.execute(())?;
        Ok(())
    }

    pub fn end(&self) -> Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute(())?;
        Ok(())
    }

    #[cfg(test)]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Opens a read-only connection, still without the progress handler that limits its statements.
fn open_read_only(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // No memory mapping is set up: with one, a read error of the disk, or a file that was cut short, would end the process.
    connection.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA busy_timeout = 10000;"))?;
    Ok(connection)
}
