//! Group commit: the one writer of a SQLite file.
//!
//! SQLite lets one connection write at a time, and a commit waits for the disk. Writers therefore take turns on one connection, in the
//! order in which they came, and commit together: the first of a group opens the transaction, each has a savepoint of its own, and when
//! those who were waiting meanwhile have had their turns, one commit makes the whole group durable. A writer learns that its work is
//! durable after that commit, never before; a writer that is refused, or given up half-way, rolls back its own savepoint alone.
//! Statements run inline: crossing to sqlx's thread and back costs several times what they do.
//!
//! When the disk is full or fails, SQLite may roll the whole transaction back by itself. The writer notices: it closes its connection,
//! fails every writer of the group, and refuses further statements of the turn, which would otherwise commit on their own.
//!
//! A writer sees what the earlier writers of its group did. If their commit fails, its own fails with them, so that nothing acknowledged
//! rests on something lost. A refusal does not wait for the commit: it promises nothing.
//!
//! For a savepoint SQLite keeps the former content of each page that a turn changes, some twenty for a message. By default, once these
//! are more than 64 KB, they all go through a temporary file, with two system calls a page; `library` raises that bound.
//! `.cargo/config.toml` compiles SQLite with `fdatasync` instead of `fsync` (the log is written over in place, so that there is seldom
//! more to sync than its pages), and without the one pool of pages, and its lock, for all connections.

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
    limits::WRITE_WAIT,
    rows::Cells,
    slow_statements::Watch,
    sql::Sql,
    sqlite::{
        checkpoint::Copying,
        connection::{bind, open_writer, read},
        file_identity::FileIdentity,
        library,
    },
};

/// Prepared statements that the connection keeps.
const STATEMENTS: usize = 256;

/// The page cache that the connection keeps from one group to the next, in pages. In a file of less than a gigabyte SQLite walks through
/// the whole cache at each commit in which pages of a B-tree were put in order: for that it uses, for a moment, the number that the page
/// at one gigabyte would have, and then takes the cache to hold pages from behind the end of the file.
const KEPT_PAGES: u32 = 2000;

/// How many pages a group may change before they go to the log ahead of its commit. If a page that is in the log already was changed
/// again, the commit has to read back all that lies behind it. Not a multiple of 256: SQLite also takes the last byte of the number for a
/// switch.
const GROUP_PAGES: u32 = 8000;

/// The most checks whether a group still grows, and the number of turns at which it is committed without further checks.
const LOOKS: u32 = 8;
const ENOUGH: usize = 64;

/// How long to wait before asking again for the lock that another process has.
const POLL: Duration = Duration::from_millis(1);

/// A process that writes without a pause lets others have the lock for a moment, this often and this long: they poll
/// for it, and would starve otherwise.
const STRETCH: Duration = Duration::from_millis(200);
const BREATH: Duration = Duration::from_millis(3);

/// The writer's seat: whoever holds its lock may write.
pub(in crate::store) struct WriterSeat {
    pub(in crate::store) file: Arc<FileIdentity>,
    pub(in crate::store) connection: Option<Connection>,
    pub(in crate::store) copying: Copying,
    /// Whether the writer is closed for good.
    pub(in crate::store) closed: bool,
    group: Option<Group>,
    /// The task that commits the group. If it has ended and there is still a group, it panicked.
    ending: Option<JoinHandle<()>>,
    /// When the current series of groups without a pause between them began, and when the latest group in it ended.
    stretch: Option<(Instant, Instant)>,
    last_failure: LastFailure,
}

/// Turns that wait for one commit.
#[derive(Default)]
struct Group {
    waiting: Vec<oneshot::Sender<Result<()>>>,
}

/// The seat and the queue before it.
#[derive(Clone)]
pub(in crate::store) struct Writer {
    seat: Arc<Queue<WriterSeat>>,
    last_failure: LastFailure,
    /// How often the disk refused to sync what was copied from the log.
    pub(super) refused_copies: Arc<AtomicU64>,
}

/// The seat while it is taken.
type TakenSeat = OwnedMutexGuard<WriterSeat>;

/// Sole use of the file for writing, until it is dropped.
///
/// The seat is behind a lock for the same reason as in a turn.
pub(in crate::store) struct Sole(Mutex<TakenSeat>);

/// A transaction alone on the file, on its own connection. Dropped without [`Alone::commit`], it leaves nothing behind.
pub(in crate::store) struct Alone {
    connection: Connection,
    file: Arc<FileIdentity>,
    _sole: Sole,
}

/// One writer's turn. Dropped without [`WriterTurn::commit`], it leaves nothing behind.
pub(in crate::store) struct WriterTurn {
    /// Behind a lock: a connection cannot be shared between threads, but a value that holds a turn must be.
    seat: Mutex<TakenSeat>,
    ended: bool,
}

impl Writer {
    /// `pages`: the length from which on the log is copied into the file.
    pub fn new(file: Arc<FileIdentity>, pages: u32) -> Self {
        let (copying, last_failure) = (Copying::new(pages), LastFailure::default());
        let seat = WriterSeat {
            file,
            connection: None,
            copying,
            closed: false,
            group: None,
            ending: None,
            stretch: None,
            last_failure: last_failure.clone(),
        };
        Self { seat: Arc::new(Queue::new(seat)), last_failure, refused_copies: Arc::default() }
    }

    /// When a write last failed. This does not wait for a turn.
    pub fn last_failure(&self) -> &LastFailure {
        &self.last_failure
    }

    pub fn refused_copies(&self) -> u64 {
        self.refused_copies.load(Ordering::Relaxed)
    }

    async fn sit_until(&self, until: Instant) -> Result<TakenSeat> {
        tokio::time::timeout_at(until.into(), self.seat.clone().lock_owned()).await.map_err(|_| Error::Busy)
    }

    pub(in crate::store) async fn sit(&self) -> Result<TakenSeat> {
        self.sit_until(Instant::now() + WRITE_WAIT).await
    }

    /// Begins the next turn, once the earlier writers have had theirs.
    pub async fn turn(&self) -> Result<WriterTurn> {
        let until = Instant::now() + WRITE_WAIT;
        let mut seat = self.sit_until(until).await?;
        seat.is_open()?;
        if seat.group.is_some() && seat.ending.as_ref().is_none_or(JoinHandle::is_finished) {
            tracing::error!("the task that commits writes ended without committing; its writes are taken back");
            seat.abandon();
        }
        if seat.group.is_none() {
            seat.begin(until).await?;
            seat.ending = Some(tokio::spawn(self.clone().end_group()));
        }
        seat.step("SAVEPOINT turn")?;
        Ok(WriterTurn { seat: Mutex::new(seat), ended: false })
    }

    /// Takes the seat without a transaction, for a transaction that runs on another connection.
    pub async fn sole(&self) -> Result<Sole> {
        let mut seat = self.sit().await?;
        seat.is_open()?;
        self.commit_group(&mut seat);
        Ok(Sole(Mutex::new(seat)))
    }

    /// Commits the group that was just opened. Queues up behind all writers that wait by then: they are the group. As long as the group
    /// grows, the writers that arrive meanwhile belong to it too, since they share the cost of the commit.
    async fn end_group(self) {
        let mut before = 0;
        for look in 1.. {
            let mut seat = self.seat.clone().lock_owned().await;
            // There is no group if somebody who takes the seat without a transaction came first: that commits the group.
            let Some(Group { waiting }) = &seat.group else { return };
            if waiting.len() == before || waiting.len() >= ENOUGH || look == LOOKS {
                return self.commit_group(&mut seat);
            }
            before = waiting.len();
            drop(seat);
            // Otherwise this task would queue up before the writers that are just arriving.
            tokio::task::yield_now().await;
        }
    }

    /// Commits the group, if there is one, and tells every writer in it the outcome. This thread itself waits for the disk: crossing to a
    /// blocking thread and back takes a sixth of the time that a group of sixteen has. The runtime has one more thread for it (`cli`).
    fn commit_group(&self, seat: &mut WriterSeat) {
        if seat.group.is_some() {
            wake_another();
            seat.commit();
            self.copy_if_due(seat);
        }
    }

    /// Begins a transaction on a connection of its own, which is set up as `settings` say and keeps all others from writing.
    pub async fn alone(&self, settings: &str) -> Result<Alone> {
        let until = Instant::now() + WRITE_WAIT;
        let sole = self.sole().await?;
        let file = sole.with(|seat| seat.file.clone());
        file.check()?;
        let mut connection = open_writer(file.path())?;
        connection.execute_batch(settings)?;
        // A shared reference to the connection could not be sent to another thread.
        let own = &mut connection;
        begin(until, move || Ok(own.execute_batch("BEGIN IMMEDIATE")?)).await?;
        Ok(Alone { connection, file, _sole: sole })
    }

    /// Closes the connection once everything is committed.
    pub async fn close(&self) {
        let mut seat = self.seat.clone().lock_owned().await;
        self.commit_group(&mut seat);
        (seat.connection, seat.closed) = (None, true);
    }
}

/// SQLite ended the transaction of the group by itself.
fn taken_back() -> Error {
    Error::Unavailable("the database took the transaction back".to_owned())
}

fn closed() -> Error {
    Error::Unavailable("the database was closed".to_owned())
}

impl WriterSeat {
    /// Fails once the writer is closed: nothing is written after the last checkpoint.
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

    /// Runs a statement without values or rows, prepared once.
    fn step(&mut self, sql: &str) -> Result<()> {
        Ok(self.connection()?.prepare_cached(sql)?.raw_execute().map(|_| ())?)
    }

    /// Opens the transaction of a group. Until then another process may hold the lock.
    async fn begin(&mut self, until: Instant) -> Result<()> {
        let now = Instant::now();
        match &mut self.stretch {
            Some((since, last)) if now.duration_since(*last) < BREATH => {
                if now.duration_since(*since) > STRETCH {
                    self.stretch = None;
                    tokio::time::sleep(BREATH).await;
                }
            }
            _ => self.stretch = Some((now, now)),
        }
        let begun = begin(until, || self.step("BEGIN IMMEDIATE")).await.and_then(|()| self.file.check());
        match &begun {
            Ok(()) => self.group = Some(Group::default()),
            // The connection stays open: it only could not get the lock.
            Err(Error::Busy) => {}
            Err(error) => {
                self.last_failure.note(error);
                self.abandon();
            }
        }
        begun
    }

    /// Closes the connection, whatever its state, which takes back what is not committed; the next writer opens another. Writers that
    /// wait for the group notice by the end of their channels.
    fn abandon(&mut self) {
        (self.connection, self.group) = (None, None);
    }

    /// Commits the transaction of the group and tells its writers the outcome.
    fn commit(&mut self) {
        let Some(group) = self.group.take() else { return };
        // The files are checked once the commit is in them: a commit that went to a file without a name is not acknowledged.
        let outcome = self.step("COMMIT").and_then(|()| self.file.check());
        if let Err(error) = &outcome {
            tracing::error!(%error, writers = group.waiting.len(), "a commit failed; its writes are not acknowledged");
            self.last_failure.note(error);
            self.abandon();
        }
        for waiting in group.waiting {
            // There is no receiver where the request was given up meanwhile.
            _ = waiting.send(match &outcome {
                Ok(()) => Ok(()),
                Err(error) => Err(error.of_the_database().unwrap_or_else(|| Error::Unavailable(error.to_string()))),
            });
        }
        if let Some((_, last)) = &mut self.stretch {
            *last = Instant::now();
        }
    }

    /// Whether every foreign key written so far refers to a row that is there. SQLite itself checks this at the commit, when the whole
    /// group would fail for one writer.
    fn references_hold(&mut self) -> Result<bool> {
        Ok(library::open_references(self.connection()?)? == 0)
    }
}

impl Sole {
    pub fn with<T>(&self, work: impl FnOnce(&mut WriterSeat) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Alone {
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub async fn commit(self) -> Result<()> {
        self.end("COMMIT").await
    }

    pub async fn rollback(self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    /// Runs on a blocking thread, since it waits for the disk.
    async fn end(self, sql: &'static str) -> Result<()> {
        let ended = tokio::task::spawn_blocking(move || {
            self.connection.execute_batch(sql)?;
            self.file.check()
        });
        ended.await.map_err(|error| Error::Unavailable(error.to_string()))?
    }
}

impl WriterTurn {
    fn with<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        if seat.group.is_none() {
            return Err(taken_back());
        }
        let connection = seat.connection()?;
        let outcome = work(connection);
        let ended = connection.is_autocommit();
        if let Err(error) = &outcome {
            seat.last_failure.note(error);
            if ended {
                // SQLite has ended the transaction, and with it the turns before this one.
                seat.abandon();
            }
        }
        outcome
    }

    /// Runs a statement, each row through `decode`.
    pub fn all<T>(&self, sql: &Sql, decode: &impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.with(|connection| read(connection, sql, decode))
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub fn script(&self, statements: &str) -> Result<()> {
        self.with(|connection| Ok(connection.execute_batch(statements)?))
    }

    /// The number of rows that a statement changed.
    pub fn run(&self, sql: &Sql) -> Result<u64> {
        self.with(|connection| {
            let _watch = Watch::one(sql);
            let mut statement = connection.prepare_cached(&sql.for_sqlite())?;
            bind(&mut statement, sql.params())?;
            Ok(statement.raw_execute()? as u64)
        })
    }

    /// Inserts rows into a table that numbers its rows one after the other, whatever rows are there; returns their numbers. `RETURNING`
    /// would return them too, but for that SQLite sets up a table, which costs more than the insertion.
    pub fn insert(&self, sql: &Sql) -> Result<RangeInclusive<i64>> {
        let rows = self.run(sql)? as i64;
        let last = self.with(|connection| Ok(connection.last_insert_rowid()))?;
        Ok(last - rows + 1..=last)
    }

    /// Ends the turn, and waits until it is durable.
    pub async fn commit(mut self) -> Result<()> {
        let kept = {
            let seat = self.seat.get_mut().unwrap_or_else(PoisonError::into_inner);
            if seat.group.is_none() {
                return Err(taken_back());
            }
            if !seat.references_hold()? {
                return Err(Error::ForeignKey("a row refers to one that is not there".to_owned()));
            }
            seat.step("RELEASE turn")?;
            let (sender, kept) = oneshot::channel();
            seat.group.as_mut().ok_or_else(taken_back)?.waiting.push(sender);
            kept
        };
        self.ended = true;
        drop(self);
        kept.await.unwrap_or_else(|_| Err(Error::Unavailable("the commit broke off".to_owned())))
    }
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let seat = self.seat.get_mut().unwrap_or_else(PoisonError::into_inner);
        if seat.group.is_none() {
            return;
        }
        let undone = seat.connection().and_then(|connection| Ok(connection.execute_batch("ROLLBACK TO turn; RELEASE turn")?));
        if let Err(error) = undone {
            tracing::error!(%error, "a write could not be taken back; its whole group is");
            seat.abandon();
        }
    }
}

/// Has another thread of the runtime look after sockets and timers. The runtime does not wake a second thread for a single task, so that
/// requests could wait until this thread's sync ends.
fn wake_another() {
    // The first task stays with this thread until the second takes its place; only then is it offered to the other threads.
    for _ in 0..2 {
        tokio::spawn(std::future::ready(()));
    }
}

/// Tries to begin a transaction until it succeeds, or this time has come: other processes may hold the lock.
async fn begin(until: Instant, mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        match attempt() {
            Err(Error::Busy) if Instant::now() < until => tokio::time::sleep(POLL).await,
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use tokio::sync::Notify;

    use super::{Arc, ENOUGH, GROUP_PAGES, Writer};
    use crate::store::{
        sql::{Param, Sql},
        sqlite::file_identity::opened,
    };

    #[tokio::test(flavor = "multi_thread")]
    async fn a_turn_may_change_more_than_is_kept_in_memory() {
        const ROWS: i64 = GROUP_PAGES as i64 + 1000;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = Connection::open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL, b BLOB NOT NULL)").unwrap();
        let count = |n: i64| file.query_row("SELECT COUNT(*) FROM t WHERE n = ?1", [n], |row| row.get::<_, i64>(0)).unwrap();
        let writer = Writer::new(opened(&path), 1000);
        let turn = writer.turn().await.unwrap();
        let told = turn.all(&Sql::fixed("PRAGMA cache_spill"), &|cells| cells.take::<i64>());
        assert_eq!(told.unwrap(), [i64::from(GROUP_PAGES)]);
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

    /// Each commit of these turns writes one and the same page, as long as few rows are in it.
    #[tokio::test]
    async fn a_group_grows_as_long_as_others_come_and_not_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = Connection::open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL)").unwrap();
        let pages = || file.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1)).unwrap();
        let writer = Writer::new(opened(&path), 1000);
        for (turns, commits) in [(1, 1..=1), (20, 1..=1), (10 * ENOUGH, 2..=20)] {
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
