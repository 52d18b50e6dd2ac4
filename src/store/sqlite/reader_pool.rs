//! The reader pool: read-only SQLite connections whose statements run inline, on the calling thread.
//!
//! sqlx gives each SQLite connection a thread of its own; switching to that thread and back costs several times as much as a look-up by
//! key. A statement whose work is not bounded by keys ([`RowBound::Rows`]) may take a limited number of steps inline, which is enough for
//! most pages of a list. Beyond that number it starts again on one of the runtime's blocking threads, and is stopped there once no caller
//! waits for it.
//!
//! As a rule each thread uses one connection (`per_thread_slots`). If threads shared connections, the memory that SQLite writes at each
//! statement would move between the caches of the cores, and so would the lock of the list of connections.
//!
//! Guarantees: a connection cannot write, and sees every change that was committed before the statement began.

use std::{
    path::Path,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::store::{
    Error, Result,
    mutex::lock,
    parameterised_sql::{RowBound, Sql},
    row_decoding::Cells,
    sqlite::{
        connection::{open as open_file, read},
        file_identity::FileIdentity,
        per_thread_slots::{PerThread, ThreadSlot},
    },
};

/// The pool of read-only connections to one database file.
pub(in crate::store) struct Readers {
    file: Arc<FileIdentity>,
    /// Idle connections for statements that run inline, a list for each thread.
    inline_idle: PerThread<Vec<ReadConnection>>,
    /// Idle connections for statements that run on a blocking thread.
    blocking_idle: IdleReaders,
    /// Limits the number of statements on blocking threads, so that they cannot take every blocking thread. A statement counts until it has
    /// ended, whether or not a caller waits for it.
    unbounded: Arc<Semaphore>,
    inline_limit: Duration,
}

/// Connections that are open and not in use. There are never more of these connections than there are threads that read.
type IdleReaders = ThreadSlot<Vec<ReadConnection>>;

/// A connection that cannot write.
struct ReadConnection {
    connection: Connection,
    /// How much longer the current statement may run. `None`: until it has ended.
    left: Arc<Mutex<Option<ReadBudget>>>,
}

/// How much longer a statement may run.
enum ReadBudget {
    /// Inline: how many more progress checks the statement may row_bound, and the time at which it is stopped.
    Checks(u32, Instant),
    /// On a blocking thread: as long as a caller waits for the statement.
    WhileAwaited(Weak<()>),
}

impl ReadBudget {
    fn is_none(&self) -> bool {
        match self {
            Self::Checks(checks, _) => *checks == 0,
            Self::WhileAwaited(by) => by.strong_count() == 0,
        }
    }

    fn count_check(&mut self) {
        if let Self::Checks(checks, until) = self {
            *checks = if Instant::now() < *until { checks.saturating_sub(1) } else { 0 };
        }
    }
}

/// The number of progress checks (calls of SQLite's progress handler) at which an inline statement is stopped. It is reached after about a
/// quarter of a millisecond, in which a statement can find and read a long page of a list.
const PROGRESS_CHECKS: u32 = 50;

/// The longest time that a statement runs inline. A statement reaches this limit if the pages that it reads have to come from a disk.
const INLINE_TIME_LIMIT: Duration = Duration::from_millis(1);

/// The number of steps of SQLite's virtual machine from one progress check to the next. A step takes some ten nanoseconds.
const STEPS: i32 = 500;

/// The page cache of each connection, in KiB.
const CACHE_KIB: u32 = 16 * 1024;

/// How many prepared statements each connection keeps.
const STATEMENTS: usize = 256;

impl Readers {
    pub fn new(file: Arc<FileIdentity>, unbounded: u32) -> Arc<Self> {
        Arc::new(Self {
            file,
            inline_idle: PerThread::default(),
            blocking_idle: IdleReaders::default(),
            unbounded: Arc::new(Semaphore::new(unbounded.max(1) as usize)),
            inline_limit: INLINE_TIME_LIMIT,
        })
    }

    /// Runs a statement and returns its rows, each decoded by `decode`. A statement that exceeds its inline limit, or reads a whole table,
    /// runs on a blocking thread. There it needs a permit of the semaphore `unbounded`, and also one of `permits` if the caller
    /// passes it.
    pub async fn all<T, D>(self: &Arc<Self>, sql: Sql, permits: Option<&Arc<Semaphore>>, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        let closed = || Error::Unavailable("the database was closed".to_owned());
        if self.unbounded.is_closed() {
            return Err(closed());
        }
        let inline = match sql.row_bound() {
            RowBound::Keys => self.run(self.inline_idle.here(), &sql, &decode, None)?,
            RowBound::Rows => self.run(
                self.inline_idle.here(),
                &sql,
                &decode,
                Some(ReadBudget::Checks(PROGRESS_CHECKS, Instant::now() + self.inline_limit)),
            )?,
            RowBound::Table => None,
        };
        if let Some(rows) = inline {
            return Ok(rows);
        }
        let part = match permits {
            // Nothing closes this semaphore, so the call never fails.
            Some(permits) => permits.clone().acquire_owned().await.ok(),
            None => None,
        };
        let permit = self.unbounded.clone().acquire_owned().await.map_err(|_| closed())?;
        let waiting = Arc::new(());
        let (readers, left) = (self.clone(), ReadBudget::WhileAwaited(Arc::downgrade(&waiting)));
        let request = tracing::Span::current();
        let read = tokio::task::spawn_blocking(move || {
            let _request = request.enter();
            let rows = readers.run(&readers.blocking_idle, &sql, &decode, Some(left));
            drop((permit, part));
            rows
        });
        let read = read.await;
        drop(waiting);
        read.map_err(|error| Error::Unavailable(error.to_string()))??.ok_or_else(closed)
    }

    /// Runs a statement on an idle or a new connection; returns `None` if it was stopped because it needs more than `left` allows.
    fn run<T>(
        &self,
        idle: &IdleReaders,
        sql: &Sql,
        decode: &impl Fn(&mut Cells<'_>) -> Result<T>,
        left: Option<ReadBudget>,
    ) -> Result<Option<Vec<T>>> {
        // The connection is taken from the list before the `match`: inside the `match`, the lock would be held while a connection is
        // opened.
        let reader = idle.lock().pop();
        let reader = match reader {
            Some(reader) => reader,
            None => self.open()?,
        };
        *lock(&reader.left) = left;
        let rows = match read(&reader.connection, sql, decode) {
            Err(_) if lock(&reader.left).as_ref().is_some_and(ReadBudget::is_none) => None,
            // A connection whose statement failed is not used again, since the connection itself may be damaged.
            rows => Some(rows?),
        };
        idle.lock().push(reader);
        Ok(rows)
    }

    fn open(&self) -> Result<ReadConnection> {
        // Fails if the path leads to another file by now, which would have other records.
        self.file.check()?;
        let connection = open(self.file.path())?;
        let left = Arc::<Mutex<Option<ReadBudget>>>::default();
        let counted = left.clone();
        let is_used_up = move || {
            lock(&counted).as_mut().is_some_and(|left| {
                left.count_check();
                left.is_none()
            })
        };
        connection.progress_handler(STEPS, Some(is_used_up))?;
        Ok(ReadConnection { connection, left })
    }

    /// Closes the pool: later statements fail, and connections that are not in use are closed. A connection in use is closed when the pool
    /// is dropped.
    pub async fn close(&self) {
        self.unbounded.close();
        for idle in self.inline_idle.all().chain([&self.blocking_idle]) {
            idle.lock().clear();
        }
    }
}

/// Opens a read-only connection, still without the progress handler that limits its statements.
fn open(path: &Path) -> Result<Connection> {
    let connection = open_file(path)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // No memory mapping is set up: with one, a read error of the disk, or a file that was cut short, would end the process.
    connection.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA busy_timeout = 10000;"))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::store::{parameterised_sql::Param, sqlite::file_identity::opened};

    #[tokio::test]
    async fn long_reads_run_on_a_blocking_thread_and_short_ones_inline() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").unwrap();
        let bounded = |inline_limit: Duration| {
            let readers = Readers::new(opened(&path), 1);
            Arc::new(Readers { inline_limit, ..Arc::into_inner(readers).unwrap() })
        };
        // Inline time limits of an hour and of zero, so that the result does not depend on the load of the machine.
        let (readers, hurried) = (bounded(Duration::from_secs(3600)), bounded(Duration::ZERO));
        let here = current().id();
        // Reads this many rows; returns on which threads they were read.
        let up_to = async |readers: &Arc<Readers>, number: i64, row_bound: RowBound| -> Result<Vec<ThreadId>> {
            let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n";
            let mut sql = Sql::fixed(numbers).with(Param::Integer(number));
            match row_bound {
                RowBound::Keys => {}
                RowBound::Rows => _ = sql.unbounded(),
                RowBound::Table => _ = sql.of_a_table(),
            }
            let rows = readers.all(sql, None, |cells| Ok((cells.take::<i64>()?, current().id()))).await?;
            // Each row arrives once, even if the statement was started again.
            assert!(rows.iter().map(|(number, _)| *number).eq(1..=number));
            let mut threads: Vec<ThreadId> = rows.into_iter().map(|(_, thread)| thread).collect();
            threads.dedup();
            Ok(threads)
        };
        for _ in 0..3 {
            assert_eq!(up_to(&readers, 1_000, RowBound::Rows).await.unwrap(), [here]);
            assert_eq!(up_to(&readers, 100_000, RowBound::Keys).await.unwrap(), [here], "its keys bound it");
            for (readers, number, row_bound) in
                [(&readers, 100_000, RowBound::Rows), (&readers, 1_000, RowBound::Table), (&hurried, 1_000, RowBound::Rows)]
            {
                let threads = up_to(readers, number, row_bound).await.unwrap();
                assert!(threads.len() == 1 && threads[0] != here, "{threads:?}");
            }
        }
        // One connection ran all inline statements, and one ran those of the blocking threads. Both are idle again.
        assert_eq!((readers.inline_idle.here().lock().len(), readers.blocking_idle.lock().len()), (1, 1));
        hurried.close().await;
        readers.close().await;
        for row_bound in [RowBound::Keys, RowBound::Rows, RowBound::Table] {
            assert!(up_to(&readers, 1, row_bound).await.is_err());
        }
    }

    #[tokio::test]
    async fn an_abandoned_read_ends_and_counts_against_the_limit_until_then() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").unwrap();
        let readers = Readers::new(opened(&path), 2);
        // A statement that never ends.
        let endless = || {
            let mut sql = Sql::fixed("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n");
            sql.of_a_table();
            readers.all(sql, None, |cells| cells.take::<i64>())
        };
        for _ in 0..5 {
            let many = futures_util::future::join_all((0..4).map(|_| endless()));
            assert!(timeout(Duration::from_millis(20), many).await.is_err());
        }
        let ended = async {
            while readers.unbounded.available_permits() < 2 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(60), ended).await.expect("they end");
        // The number of connections shows that no more statements ran at the same time than were allowed.
        let connections = readers.blocking_idle.lock().len();
        assert!((1..=2).contains(&connections), "{connections}");
    }

    #[test]
    fn each_thread_keeps_to_its_connection() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let readers = Readers::new(opened(&path), 1);
        let read = || {
            readers.run(readers.inline_idle.here(), &Sql::fixed("SELECT 1"), &|cells| cells.take::<i64>(), None).unwrap();
            let idle = readers.inline_idle.here().lock();
            assert_eq!(idle.len(), 1);
            // SAFETY: only the address is compared; the handle is not used.
            let connection = unsafe { idle[0].connection.handle() as usize };
            (std::ptr::from_ref(readers.inline_idle.here()) as usize, connection)
        };
        let mine = read();
        let mut others = 0;
        for _ in 0..3 {
            let (first, again) = std::thread::scope(|scope| scope.spawn(|| (read(), read())).join().unwrap());
            assert_eq!(first, again);
            assert_eq!(first.1 == mine.1, first.0 == mine.0);
            assert_eq!(read(), mine);
            others += usize::from(first != mine);
        }
        // `others` is the number of new threads that got another slot than this thread. A new thread gets the same slot only if other tests
        // started exactly as many threads in between as there are other slots. That does not happen three times in a row.
        assert!(others > 0);
    }
}
