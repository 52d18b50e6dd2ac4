//! Reads on SQLite, without a thread in between.
//!
//! sqlx gives each SQLite connection a thread of its own, and a statement crosses to it and back: measured, that costs
//! five times what a look-up by key does. The statements of `sql` therefore run on connections of our own, on the spot. Those whose
//! keys do not bound the work ([`Reach::Rows`]) may take so many steps there, which most pages do with; where that is not enough,
//! they begin again on one of the runtime's blocking threads.
//!
//! Called by `sql`. Guarantees: a connection cannot write, and sees every change that was committed before it is asked.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};
use tokio::sync::Semaphore;

use super::{
    Error, Result,
    anchor::Anchor,
    connect::{LOG_PAGES, MAPPED},
    lock::lock,
    sql::{Cells, Reach, Sql},
    writer::read,
};

/// The readers of one database file.
pub(super) struct Readers {
    path: PathBuf,
    /// Open and not in use. There are never more than threads that read.
    idle: Mutex<Vec<Reader>>,
    anchor: Anchor,
    /// Holds unbounded statements to a number, so that they cannot take every blocking thread.
    unbounded: Semaphore,
    on_the_spot: Duration,
}

/// A connection that cannot write.
struct Reader {
    connection: Connection,
    /// What its statement may take yet, if not whatever it takes.
    left: Arc<Mutex<Option<Left>>>,
}

/// Of a statement on the spot.
struct Left {
    /// How many times it is asked whether it goes on.
    asks: u32,
    until: Instant,
}

/// How many times it is asked: that is a quarter of a millisecond, which is what a long page of a list takes and its bytes.
const ASKS: u32 = 50;

/// For how long at most, where what it reads has to come from a disk.
const ON_THE_SPOT: Duration = Duration::from_millis(1);

/// After how many steps of SQLite's machine, of some ten nanoseconds each, a statement is asked.
const STEPS: i32 = 500;

/// Prepared statements that each connection keeps.
const STATEMENTS: usize = 256;

impl Readers {
    pub fn new(path: PathBuf, unbounded: u32) -> Arc<Self> {
        let file = path.clone();
        let anchor = Anchor::new(LOG_PAGES, move || open(&file));
        Arc::new(Self {
            path,
            idle: Mutex::default(),
            anchor,
            unbounded: Semaphore::new(unbounded.max(1) as usize),
            on_the_spot: ON_THE_SPOT,
        })
    }

    /// Runs a statement, each row through `decode`.
    pub async fn all<T, D>(self: &Arc<Self>, sql: Sql, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        let on_the_spot = match sql.reach() {
            Reach::Keys => self.run(&sql, &decode, None)?,
            Reach::Rows => self.run(&sql, &decode, Some(Left { asks: ASKS, until: Instant::now() + self.on_the_spot }))?,
            Reach::Table => None,
        };
        if let Some(rows) = on_the_spot {
            return Ok(rows);
        }
        let closed = || Error::Unavailable("the database was closed".to_owned());
        let _permit = self.unbounded.acquire().await.map_err(|_| closed())?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || readers.run(&sql, &decode, None));
        read.await.map_err(|error| Error::Unavailable(error.to_string()))??.ok_or_else(closed)
    }

    /// `None`: it takes more than that.
    fn run<T>(&self, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>, left: Option<Left>) -> Result<Option<Vec<T>>> {
        self.anchor.read();
        let reader = self.take()?;
        *lock(&reader.left) = left;
        let rows = match read(&reader.connection, sql, decode) {
            Err(_) if lock(&reader.left).as_ref().is_some_and(|left| left.asks == 0) => None,
            // One that failed is not used again: whatever was wrong with it goes with it.
            rows => Some(rows?),
        };
        lock(&self.idle).push(reader);
        Ok(rows)
    }

    fn take(&self) -> Result<Reader> {
        if let Some(reader) = lock(&self.idle).pop() {
            return Ok(reader);
        }
        let connection = open(&self.path)?;
        let left = Arc::<Mutex<Option<Left>>>::default();
        let asked = left.clone();
        let is_enough = move || match &mut *lock(&asked) {
            None => false,
            Some(left) => {
                left.asks = if Instant::now() < left.until { left.asks.saturating_sub(1) } else { 0 };
                left.asks == 0
            }
        };
        connection.progress_handler(STEPS, Some(is_enough))?;
        Ok(Reader { connection, left })
    }

    /// Closes the connections that are not in use.
    pub async fn close(&self) {
        self.unbounded.close();
        self.anchor.close().await;
        lock(&self.idle).clear();
    }
}

/// A connection that cannot write, without a bound on what is done on it.
fn open(path: &Path) -> Result<Connection> {
    // The file is there: whoever made these readers opened it for writing first.
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let settings = format!("PRAGMA query_only = ON; PRAGMA mmap_size = {MAPPED}; PRAGMA busy_timeout = 10000;");
    connection.execute_batch(&settings)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use super::{super::sql::Param, *};

    #[tokio::test]
    async fn what_takes_long_gets_a_thread() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").unwrap();
        let bounded = |on_the_spot: Duration| {
            let readers = Readers::new(path.clone(), 1);
            Arc::new(Readers { on_the_spot, ..Arc::into_inner(readers).unwrap() })
        };
        // However busy the machine is.
        let (readers, hurried) = (bounded(Duration::from_secs(3600)), bounded(Duration::ZERO));
        let here = current().id();
        // On which threads the rows were read.
        let up_to = async |readers: &Arc<Readers>, number: i64, reach: Reach| -> Result<Vec<ThreadId>> {
            let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n";
            let mut sql = Sql::fixed(numbers).with(Param::Integer(number));
            match reach {
                Reach::Keys => {}
                Reach::Rows => _ = sql.unbounded(),
                Reach::Table => _ = sql.of_a_table(),
            }
            let rows = readers.all(sql, |cells| Ok((cells.take::<i64>()?, current().id()))).await?;
            // Whatever was begun, each row once.
            assert!(rows.iter().map(|(number, _)| *number).eq(1..=number));
            let mut threads: Vec<ThreadId> = rows.into_iter().map(|(_, thread)| thread).collect();
            threads.dedup();
            Ok(threads)
        };
        for _ in 0..3 {
            assert_eq!(up_to(&readers, 1_000, Reach::Rows).await.unwrap(), [here]);
            assert_eq!(up_to(&readers, 100_000, Reach::Keys).await.unwrap(), [here], "its keys bound it");
            for (readers, number, reach) in
                [(&readers, 100_000, Reach::Rows), (&readers, 1_000, Reach::Table), (&hurried, 1_000, Reach::Rows)]
            {
                let threads = up_to(readers, number, reach).await.unwrap();
                assert!(threads.len() == 1 && threads[0] != here, "{threads:?}");
            }
        }
        // It was one connection, which is as good as before.
        assert_eq!(readers.idle.lock().unwrap().len(), 1);
        hurried.close().await;
        readers.close().await;
        assert!(up_to(&readers, 100_000, Reach::Rows).await.is_err());
    }
}
