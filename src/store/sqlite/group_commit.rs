//! Group commit: the single writer of a SQLite file, with one commit for several write transactions, and what happens if a commit fails.
//!
//! SQLite lets one connection write at a time, and a commit waits for the disk. Therefore writers take turns on one connection, in the
//! order in which they came, and commit together as a group. The first writer of a group opens the transaction, and each writer has a
//! savepoint of its own. When all writers that queued up have had their turns, one commit makes the whole group durable. A writer is
//! notified that its work is durable after that commit, never before. A writer that fails, or whose caller stops waiting, rolls back only
//! its own savepoint. Statements run on the calling thread: the library sqlx would run them on another thread, and the switch costs several
//! times as much as a statement.
//!
//! When the disk is full or fails, SQLite may roll the whole transaction back by itself. The writer then closes its connection, fails every
//! member of the group, and refuses further statements of the current turn: outside of a transaction, SQLite would commit each of them at
//! once. The same happens if the disk refuses the sync of a commit. The next writer opens another connection and continues, without a
//! restart: everything that was acknowledged had been synced before, and its commit overwrites what the failed commit left in the
//! write-ahead log (WAL). If the process is killed or the machine crashes before that, a write that was answered with an error may appear
//! nevertheless.
//!
//! A writer sees what the earlier writers of its group did. They share one commit: if it fails, all their writes fail, so that no
//! acknowledged write depends on a lost write. A writer whose statement fails gets its error without waiting for the commit, since an error
//! does not claim that anything was stored.
//!
//! For a savepoint SQLite keeps the former content of each page that a turn changes, some twenty pages for a message. By default, once
//! these pages are more than 64 KB, all of them go through a temporary file, with two system calls a page; `sqlite_ffi` raises that limit.
//! `.cargo/config.toml` compiles SQLite with `fdatasync` instead of `fsync`, so that a commit does not wait for the time stamps of the WAL.
//! It also compiles SQLite without a page pool for all connections, since these would wait for each other at the lock of the pool.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::{
    sync::{Mutex as Queue, OwnedMutexGuard, oneshot},
    task::JoinHandle,
};

use crate::store::{
    Error, Result,
    last_failure::LastFailure,
    parameterised_sql::Sql,
    row_decoding::Cells,
    slow_statements::StatementTimer,
    sqlite::{
        checkpoint::CheckpointTrigger,
        connection::{bind, open_writer, read},
        file_identity::FileIdentity,
        sqlite_ffi,
    },
    wait_limit::WAIT_LIMIT,
};

/// How many prepared statements the connection keeps.
const STATEMENTS: usize = 256;

/// The most pages that the connection's page cache keeps from one group to the next. The number is small, since at some commits SQLite
/// searches the whole cache for pages after the end of the file. In a file of less than a gigabyte, that happens at each commit that
/// reordered pages of a B-tree. During the reordering, a page temporarily gets the number of the page at the offset of one gigabyte, which
/// is after the end of the file.
const KEPT_PAGES: u32 = 2000;

/// How many pages a group may change before SQLite writes them to the WAL ahead of the commit (cache spill). If such a page is then changed
/// again, the commit has to read back everything after it in the WAL. The number is not a multiple of 256: SQLite also reads the last byte
/// of the number as a switch, and a zero would turn spilling off.
const GROUP_PAGES: u32 = 8000;

/// The maximum number of checks whether a group still grows, and the number of turns at which a group is committed without a further check.
const MAX_GROUP_CHECKS: u32 = 8;
const FULL_GROUP: usize = 64;

/// The pause between two attempts to get SQLite's write lock while another process holds it.
const LOCK_POLL_PAUSE: Duration = Duration::from_millis(1);

/// A process that writes without a pause for `MAX_UNYIELDED` releases the write lock for `YIELD_PAUSE`: other processes poll for the lock,
/// and would starve otherwise.
const MAX_UNYIELDED: Duration = Duration::from_millis(200);
const YIELD_PAUSE: Duration = Duration::from_millis(3);

/// The state of the writer. The task that holds the lock on it (the writer lock) may write.
pub(in crate::store) struct WriterState {
    pub(in crate::store) file: Arc<FileIdentity>,
    pub(in crate::store) connection: Option<Connection>,
    pub(in crate::store) copying: CheckpointTrigger,
    /// Whether the writer is closed for good.
    pub(in crate::store) closed: bool,
    group: Option<Group>,
    /// The task that commits the group. If it has ended and there is still a group, it panicked.
    ending: Option<JoinHandle<()>>,
    /// When the current series of groups without a pause between them began, and when its latest group ended.
    stretch: Option<(Instant, Instant)>,
    last_failure: LastFailure,
}

/// The turns that wait for one commit. Each is notified of the outcome through its channel.
#[derive(Default)]
struct Group {
    waiting: Vec<oneshot::Sender<Result<()>>>,
}

/// The single writer of a file: its state, behind a lock that is also the queue of waiting writers.
#[derive(Clone)]
pub(in crate::store) struct Writer {
    writer_state: Arc<Queue<WriterState>>,
    last_failure: LastFailure,
    /// How often the disk refused to sync pages that a checkpoint had copied from the WAL.
    pub(super) refused_copies: Arc<AtomicU64>,
}

/// The writer lock while it is held.
type WriterLockGuard = OwnedMutexGuard<WriterState>;

/// Exclusive use of the file for writing, without a transaction: this value holds the writer lock until it is dropped.
///
/// The guard of the writer lock is in a mutex, so that threads can share this value: see [`GroupMember`].
pub(in crate::store) struct ExclusiveWriter(Mutex<WriterLockGuard>);

/// A transaction on its own connection that keeps all other writers out. If it is dropped without [`ExclusiveTransaction::commit`], it is
/// rolled back.
pub(in crate::store) struct ExclusiveTransaction {
    connection: Connection,
    file: Arc<FileIdentity>,
    _sole: ExclusiveWriter,
}

/// One writer's turn: its savepoint in the group, and the writer lock. If it is dropped without [`GroupMember::commit`], its savepoint is
/// rolled back.
pub(in crate::store) struct GroupMember {
    /// In a mutex, so that threads can share a `GroupMember`: they cannot share the connection in the writer state without a mutex.
    writer_state: Mutex<WriterLockGuard>,
    ended: bool,
}

impl Writer {
    /// Creates the writer of a file. Once the WAL has `pages` pages, a checkpoint copies it into the file.
    pub fn new(file: Arc<FileIdentity>, pages: u32) -> Self {
        let (copying, last_failure) = (CheckpointTrigger::new(pages), LastFailure::default());
        let writer_state = WriterState {
            file,
            connection: None,
            copying,
            closed: false,
            group: None,
            ending: None,
            stretch: None,
            last_failure: last_failure.clone(),
        };
        Self { writer_state: Arc::new(Queue::new(writer_state)), last_failure, refused_copies: Arc::default() }
    }

    /// Returns the record of when a write last failed because the database could not do its work ([`LastFailure`]). Does not wait for the
    /// writer lock.
    pub fn last_failure(&self) -> &LastFailure {
        &self.last_failure
    }

    pub fn refused_copies(&self) -> u64 {
        self.refused_copies.load(Ordering::Relaxed)
    }

    async fn lock_writer_until(&self, until: Instant) -> Result<WriterLockGuard> {
        tokio::time::timeout_at(until.into(), self.writer_state.clone().lock_owned()).await.map_err(|_| Error::Busy)
    }

    pub(in crate::store) async fn lock_writer(&self) -> Result<WriterLockGuard> {
        self.lock_writer_until(Instant::now() + WAIT_LIMIT).await
    }

    /// Waits for the writer lock and begins a turn: a savepoint in the open group, or in a new group if there is none.
    pub async fn turn(&self) -> Result<GroupMember> {
        let until = Instant::now() + WAIT_LIMIT;
        let mut writer_state = self.lock_writer_until(until).await?;
        writer_state.is_open()?;
        if writer_state.group.is_some() && writer_state.ending.as_ref().is_none_or(JoinHandle::is_finished) {
            tracing::error!("the task that commits writes ended without committing; its writes are taken back");
            writer_state.abandon();
        }
        if writer_state.group.is_none() {
            writer_state.begin(until).await?;
            writer_state.ending = Some(tokio::spawn(self.clone().end_group()));
        }
        writer_state.step("SAVEPOINT turn")?;
        Ok(GroupMember { writer_state: Mutex::new(writer_state), ended: false })
    }

    /// Takes the writer lock, for work outside of a group: a transaction on another connection, or the last part of a checkpoint. Commits
    /// the open group first.
    pub async fn sole(&self) -> Result<ExclusiveWriter> {
        let mut writer_state = self.lock_writer().await?;
        writer_state.is_open()?;
        self.commit_group(&mut writer_state);
        Ok(ExclusiveWriter(Mutex::new(writer_state)))
    }

    /// Commits the group that was just opened; runs as a task of its own. The task queues up for the writer lock behind all writers that
    /// already wait for this lock: these writers are the group. While the group grows, the commit is postponed, so that writers that arrive
    /// later join the group and share the cost of the commit.
    async fn end_group(self) {
        let mut before = 0;
        for look in 1.. {
            let mut writer_state = self.writer_state.clone().lock_owned().await;
            // There is no group if `sole` or `close` took the writer lock first and committed the group, or if a failed turn abandoned it.
            let Some(Group { waiting }) = &writer_state.group else { return };
            if waiting.len() == before || waiting.len() >= FULL_GROUP || look == MAX_GROUP_CHECKS {
                return self.commit_group(&mut writer_state);
            }
            before = waiting.len();
            drop(writer_state);
            // Without this yield, the task would queue up before the writers that are just arriving.
            tokio::task::yield_now().await;
        }
    }

    /// Commits the group, if there is one, notifies every writer in it of the outcome, and starts a checkpoint if one is due. The calling
    /// thread itself waits for the disk: switching to a blocking thread and back would take a considerable part of the time of a group. For
    /// this reason the runtime has one thread more than processors (`cli::thread_count`).
    fn commit_group(&self, writer_state: &mut WriterState) {
        if writer_state.group.is_some() {
            wake_another();
            writer_state.commit();
            self.checkpoint_if_due(writer_state);
        }
    }

    /// Begins a transaction on a new connection, to which the PRAGMAs `settings` are applied. The transaction keeps all other writers out.
    pub async fn alone(&self, settings: &str) -> Result<ExclusiveTransaction> {
        let until = Instant::now() + WAIT_LIMIT;
        let sole = self.sole().await?;
        let file = sole.with(|writer_state| writer_state.file.clone());
        file.check()?;
        let mut connection = open_writer(file.path())?;
        connection.execute_batch(settings)?;
        // A mutable reference, since a shared reference to the connection cannot be sent to another thread.
        let own = &mut connection;
        begin(until, move || Ok(own.execute_batch("BEGIN IMMEDIATE")?)).await?;
        Ok(ExclusiveTransaction { connection, file, _sole: sole })
    }

    /// Commits the open group and closes the connection. Later writes fail.
    pub async fn close(&self) {
        let mut writer_state = self.writer_state.clone().lock_owned().await;
        self.commit_group(&mut writer_state);
        (writer_state.connection, writer_state.closed) = (None, true);
    }
}

/// Returns the error for a turn whose group SQLite has rolled back by itself.
fn taken_back() -> Error {
    Error::Unavailable("the database took the transaction back".to_owned())
}

fn closed() -> Error {
    Error::Unavailable("the database was closed".to_owned())
}

impl WriterState {
    /// Fails once the writer is closed, so that nothing is written after the last checkpoint.
    fn is_open(&self) -> Result<()> {
        if self.closed { Err(closed()) } else { Ok(()) }
    }

    fn connection(&mut self) -> Result<&Connection> {
        self.is_open()?;
        if self.connection.is_none() {
            self.file.check()?;
            let connection = open_writer(self.file.path())?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS);
            let settings = format!("PRAGMA cache_size = {KEPT_PAGES}; PRAGMA cache_spill = {GROUP_PAGES}; {}", self.copying.settings());
            connection.execute_batch(&settings)?;
            self.connection = Some(connection);
        }
        self.connection.as_ref().ok_or_else(closed)
    }

    /// Runs a statement without values or rows. It is prepared once for each connection.
    fn step(&mut self, sql: &str) -> Result<()> {
        Ok(self.connection()?.prepare_cached(sql)?.raw_execute().map(|_| ())?)
    }

    /// Opens the transaction of a group. Retries until `until` while another process holds SQLite's write lock.
    async fn begin(&mut self, until: Instant) -> Result<()> {
        let now = Instant::now();
        match &mut self.stretch {
            Some((since, last)) if now.duration_since(*last) < YIELD_PAUSE => {
                if now.duration_since(*since) > MAX_UNYIELDED {
                    self.stretch = None;
                    tokio::time::sleep(YIELD_PAUSE).await;
                }
            }
            _ => self.stretch = Some((now, now)),
        }
        let begun = begin(until, || self.step("BEGIN IMMEDIATE")).await.and_then(|()| self.file.check());
        match &begun {
            Ok(()) => self.group = Some(Group::default()),
            // The connection stays open: its only failure was that it did not get SQLite's write lock.
            Err(Error::Busy) => {}
            Err(error) => {
                self.last_failure.note(error);
                self.abandon();
            }
        }
        begun
    }

    /// Closes the connection, whatever its state. SQLite then rolls back what is not committed. The next writer opens another connection.
    /// Writers that wait for the commit get an error, since their channels close.
    fn abandon(&mut self) {
        (self.connection, self.group) = (None, None);
    }

    /// Commits the transaction of the group and sends the outcome to its writers.
    fn commit(&mut self) {
        let Some(group) = self.group.take() else { return };
        // The database files are checked after the commit: a commit to files that were deleted or replaced is not acknowledged.
        let outcome = self.step("COMMIT").and_then(|()| self.file.check());
        if let Err(error) = &outcome {
            tracing::error!(%error, writers = group.waiting.len(), "a commit failed; its writes are not acknowledged");
            self.last_failure.note(error);
            self.abandon();
        }
        for waiting in group.waiting {
            // Sending fails if the request stopped waiting.
            _ = waiting.send(match &outcome {
                Ok(()) => Ok(()),
                Err(error) => Err(error.of_the_database().unwrap_or_else(|| Error::Unavailable(error.to_string()))),
            });
        }
        if let Some((_, last)) = &mut self.stretch {
            *last = Instant::now();
        }
    }

    /// Returns whether every foreign key written so far refers to an existing row. SQLite itself checks this only at the commit, where one
    /// writer's missing row would make the whole group fail.
    fn references_hold(&mut self) -> Result<bool> {
        Ok(sqlite_ffi::open_references(self.connection()?)? == 0)
    }
}

impl ExclusiveWriter {
    pub fn with<T>(&self, work: impl FnOnce(&mut WriterState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ExclusiveTransaction {
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub async fn commit(self) -> Result<()> {
        self.end("COMMIT").await
    }

    pub async fn rollback(self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    /// Ends the transaction on a blocking thread, since a commit waits for the disk.
    async fn end(self, sql: &'static str) -> Result<()> {
        let ended = tokio::task::spawn_blocking(move || {
            self.connection.execute_batch(sql)?;
            self.file.check()
        });
        ended.await.map_err(|error| Error::Unavailable(error.to_string()))?
    }
}

impl GroupMember {
    fn with<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut writer_state = self.writer_state.lock().unwrap_or_else(PoisonError::into_inner);
        if writer_state.group.is_none() {
            return Err(taken_back());
        }
        let connection = writer_state.connection()?;
        let outcome = work(connection);
        let ended = connection.is_autocommit();
        if let Err(error) = &outcome {
            writer_state.last_failure.note(error);
            if ended {
                // SQLite has rolled back the transaction, including the earlier turns of the group.
                writer_state.abandon();
            }
        }
        outcome
    }

    /// Runs a statement and returns its rows, each decoded by `decode`.
    pub fn all<T>(&self, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.with(|connection| read(connection, sql, decode))
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub fn script(&self, statements: &str) -> Result<()> {
        self.with(|connection| Ok(connection.execute_batch(statements)?))
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub fn run(&self, sql: &Sql) -> Result<u64> {
        self.with(|connection| {
            let _watch = StatementTimer::one(sql);
            let mut statement = connection.prepare_cached(&sql.for_sqlite())?;
            bind(&mut statement, sql.params())?;
            Ok(statement.raw_execute()? as u64)
        })
    }

    /// Inserts rows into a table that gives new rows consecutive row ids; returns these row ids. `RETURNING` would also return them, but
    /// SQLite sets up a temporary table for its result, which costs more than the insertion.
    pub fn insert(&self, sql: &Sql) -> Result<RangeInclusive<i64>> {
        let rows = self.run(sql)? as i64;
        let last = self.with(|connection| Ok(connection.last_insert_rowid()))?;
        Ok(last - rows + 1..=last)
    }

    /// Ends the turn, and waits until the group's commit has made its changes durable.
    pub async fn commit(mut self) -> Result<()> {
        let kept = {
            let writer_state = self.writer_state.get_mut().unwrap_or_else(PoisonError::into_inner);
            if writer_state.group.is_none() {
                return Err(taken_back());
            }
            if !writer_state.references_hold()? {
                return Err(Error::ForeignKey("a row refers to one that is not there".to_owned()));
            }
            writer_state.step("RELEASE turn")?;
            let (sender, kept) = oneshot::channel();
            writer_state.group.as_mut().ok_or_else(taken_back)?.waiting.push(sender);
            kept
        };
        self.ended = true;
        drop(self);
        kept.await.unwrap_or_else(|_| Err(Error::Unavailable("the commit broke off".to_owned())))
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let writer_state = self.writer_state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if writer_state.group.is_none() {
            return;
        }
        let undone = writer_state.connection().and_then(|connection| Ok(connection.execute_batch("ROLLBACK TO turn; RELEASE turn")?));
        if let Err(error) = undone {
            tracing::error!(%error, "a write could not be taken back; its whole group is");
            writer_state.abandon();
        }
    }
}

/// Wakes another thread of the runtime, so that it serves sockets and timers while this thread waits for the disk. The runtime does not
/// wake a second thread for a single task. Without this call, requests could wait until the sync of this thread ends.
fn wake_another() {
    // The first task stays with this thread until the second task takes its place; only then is the first task offered to other threads.
    for _ in 0..2 {
        tokio::spawn(std::future::ready(()));
    }
}

/// Tries to begin a transaction until that succeeds or the time `until` has come: another process may hold SQLite's write lock.
async fn begin(until: Instant, mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        match attempt() {
            Err(Error::Busy) if Instant::now() < until => tokio::time::sleep(LOCK_POLL_PAUSE).await,
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use tokio::sync::Notify;

    use super::{Arc, FULL_GROUP, GROUP_PAGES, Writer};
    use crate::store::{
        parameterised_sql::{Param, Sql},
        sqlite::file_identity::opened,
    };

    #[tokio::test(flavor = "multi_thread")]
    async fn a_group_member_may_change_more_pages_than_are_kept_in_memory() {
        const ROWS: i64 = GROUP_PAGES as i64 + 1000;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = Connection::open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL, b BLOB NOT NULL)").unwrap();
        let count = |n: i64| file.query_row("SELECT COUNT(*) FROM t WHERE n = ?1", [n], |row| row.get::<_, i64>(0)).unwrap();
        let writer = Writer::new(opened(&path), 1000);
        let turn = writer.turn().await.unwrap();
        let got = turn.all(&Sql::fixed("PRAGMA cache_spill"), &|cells| cells.take::<i64>());
        assert_eq!(got.unwrap(), [i64::from(GROUP_PAGES)]);
        for _ in 0..ROWS {
            turn.run(&Sql::fixed("INSERT INTO t VALUES (0, $1)").with(Param::Bytes(vec![7; 3000]))).unwrap();
        }
        turn.commit().await.unwrap();
        for n in [1, 2] {
            let turn = writer.turn().await.unwrap();
            turn.run(&Sql::fixed("UPDATE t SET n = $1").with(Param::Integer(n))).unwrap();
            if n == 1 {
                turn.commit().await.unwrap();
            }
        }
        writer.close().await;
        assert_eq!((count(1), count(2)), (ROWS, 0));
        assert!(writer.turn().await.is_err() && writer.sole().await.is_err() && writer.alone("").await.is_err());
    }

    /// While the table has few rows, each commit writes the table's only page into the WAL. So the number of pages in the WAL is the number
    /// of commits.
    #[tokio::test]
    async fn a_commit_group_accepts_further_writers_up_to_a_limit() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = Connection::open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL)").unwrap();
        let pages = || file.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1)).unwrap();
        let writer = Writer::new(opened(&path), 1000);
        for (turns, commits) in [(1, 1..=1), (20, 1..=1), (10 * FULL_GROUP, 2..=20)] {
            let before = pages();
            let came = (0..=turns).map(|_| Arc::new(Notify::new())).collect::<Vec<_>>();
            came[0].notify_one();
            let each_brings_the_next = came.windows(2).map(|pair| {
                let (writer, own, next) = (writer.clone(), pair[0].clone(), pair[1].clone());
                tokio::spawn(async move {
                    own.notified().await;
                    let turn = writer.turn().await.unwrap();
                    turn.run(&Sql::fixed("INSERT INTO t VALUES (1)")).unwrap();
                    next.notify_one();
                    turn.commit().await.unwrap();
                })
            });
            for turn in each_brings_the_next.collect::<Vec<_>>() {
                turn.await.unwrap();
            }
            let made = pages() - before;
            assert!(commits.contains(&made), "{made} commits of {turns} turns");
        }
        writer.close().await;
    }
}
