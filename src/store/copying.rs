//! Copying the log of a SQLite file into it, beside the writer.
//!
//! Left to itself, SQLite copies a log that has become long within the commit that made it so, and all who write wait until the
//! disk has what was copied: 25 ms, eight times a second where many conversations are written to. Here a connection of its own
//! copies, in rounds, each of which leaves what was written meanwhile, and at last the writer itself copies the rest, which is
//! little. The next to write finds a log that is copied to its end, and starts it over.
//!
//! Called by `writer`. Guarantees: nothing counts as copied before it is synced, which SQLite sees to; a log that a reader keeps
//! from starting over is tried again whenever it has become so much longer; one that could not be copied here is copied by
//! SQLite, within commits, once it is [`LAST`] times as long.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use libsqlite3_sys as ffi;
use rusqlite::Connection;
use scopeguard::defer;

use super::{
    Error, Result,
    writer::{Seat, Writer, open},
};

/// How many rounds there are at most beside the writers, and how many pages are little.
const ROUNDS: u32 = 4;
const LITTLE: i64 = 200;

/// By how much a log may outgrow its pages before SQLite sees to it, and what is left of it on the disk when it starts over.
pub(super) const LAST: u32 = 4;

/// When a log is to be copied.
pub(super) struct Copying {
    pages: u32,
    /// At how many of them the next time.
    next: i64,
    underway: Arc<AtomicBool>,
}

/// What there is of a log, in pages, and what of that is copied.
struct Log {
    pages: i64,
    copied: i64,
}

impl Copying {
    pub fn new(pages: u32) -> Self {
        Self { pages, next: pages.into(), underway: Arc::default() }
    }

    /// For a connection that writes.
    pub fn settings(&self) -> String {
        let last = LAST * self.pages;
        format!("PRAGMA wal_autocheckpoint = {last}; PRAGMA journal_size_limit = {};", 4096 * last)
    }

    /// Whether it is time. To be asked after a commit.
    fn is_due(&mut self, connection: &Connection) -> bool {
        let Ok(Log { pages, .. }) = log(connection, "NOOP") else { return false };
        if pages < self.pages.into() {
            self.next = self.pages.into();
        }
        let due = pages >= self.next && !self.underway.swap(true, Ordering::Relaxed);
        if due {
            self.next = pages + i64::from(self.pages);
        }
        due
    }
}

impl Writer {
    pub fn copy_if_due(&self, seat: &mut Seat) {
        if !seat.connection.as_ref().is_some_and(|connection| seat.copying.is_due(connection)) {
            return;
        }
        let (writer, path, underway) = (self.clone(), seat.path.clone(), seat.copying.underway.clone());
        tokio::spawn(async move {
            defer!(underway.store(false, Ordering::Relaxed));
            if let Err(error) = writer.copy(path).await {
                tracing::warn!(%error, "the log of the database could not be copied into it, and becomes longer");
            }
        });
    }

    async fn copy(&self, path: PathBuf) -> Result<()> {
        let broke_off = |error: tokio::task::JoinError| Error::Unavailable(error.to_string());
        tokio::task::spawn_blocking(|| rounds(path)).await.map_err(broke_off)??;
        let sole = self.sole().await?;
        tokio::task::spawn_blocking(move || sole.with(|connection| log(connection, "PASSIVE"))).await.map_err(broke_off)??;
        Ok(())
    }
}

/// Copies until little is left, or nothing more can be copied.
fn rounds(path: PathBuf) -> Result<()> {
    let connection = open(&path)?;
    let mut copied = -1;
    for _ in 0..ROUNDS {
        log(&connection, "PASSIVE")?;
        sync(&connection)?;
        let log = log(&connection, "NOOP")?;
        if log.pages - log.copied <= LITTLE || log.copied == copied {
            break;
        }
        copied = log.copied;
    }
    Ok(())
}

/// Waits until the disk has what was copied. A checkpoint does so only where it came to the end of the log, which it does not
/// beside writers; the one that does would wait for all that those before it left.
fn sync(connection: &Connection) -> Result<()> {
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the handle belongs to a connection that is borrowed for the length of the calls, whose file stays open for as long;
    // no other thread uses this connection, and the file's own methods are called as SQLite calls them.
    let code = unsafe {
        let told = ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER, (&raw mut file).cast());
        match file.as_ref().and_then(|file| file.pMethods.as_ref()).and_then(|methods| methods.xSync) {
            Some(sync) if told == ffi::SQLITE_OK => sync(file, ffi::SQLITE_SYNC_NORMAL),
            _ => ffi::SQLITE_MISUSE,
        }
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()) }
}

/// The log as it is after this kind of checkpoint. Where another connection is at one, nothing is done.
fn log(connection: &Connection, checkpoint: &str) -> Result<Log> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({checkpoint})"))?;
    Ok(statement.query_row((), |row| Ok(Log { pages: row.get(1)?, copied: row.get(2)? }))?)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::store::sql::{Param, Sql};

    const PAGES: u32 = 100;

    fn file(path: &Path) -> Connection {
        let file = Connection::open(path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER NOT NULL, b BLOB NOT NULL)")
            .unwrap();
        file
    }

    /// Commits ten pages and a little, as one writer.
    async fn write(writer: &Writer, n: i64) {
        let turn = writer.turn().await.unwrap();
        turn.run(&Sql::fixed("INSERT INTO t VALUES ($1, $2)").with(Param::Integer(n)).with(Param::Bytes(vec![7; 40_000]))).unwrap();
        turn.commit().await.unwrap();
    }

    /// Commits until the log is so long.
    async fn fill(writer: &Writer, file: &Connection, pages: u32) {
        for n in 0.. {
            if log(file, "NOOP").unwrap().pages >= pages.into() {
                return;
            }
            write(writer, n).await;
        }
    }

    async fn comes_true(what: impl Fn() -> bool) -> bool {
        let wait = async {
            while !what() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(10), wait).await.is_ok()
    }

    fn is_whole(file: &Connection) -> bool {
        log(file, "NOOP").is_ok_and(|log| log.pages == log.copied)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_long_log_is_copied_and_starts_over() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        let writer = Writer::new(path, PAGES);
        fill(&writer, &file, PAGES / 2).await;
        sleep(Duration::from_millis(50)).await;
        assert!(!is_whole(&file), "a short one is left");
        for _ in 0..3 {
            fill(&writer, &file, PAGES).await;
            assert!(comes_true(|| is_whole(&file)).await, "nobody writes any more, and it is copied all the same");
            write(&writer, -1).await;
            assert!(log(&file, "NOOP").unwrap().pages < PAGES.into(), "it starts over");
        }
        writer.close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_log_of_many_writers_stays_short() {
        const EACH: i64 = 150;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        let writer = Writer::new(path.clone(), PAGES);
        let writers = (0..8).map(|_| {
            let writer = writer.clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    write(&writer, n).await;
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        // Some thirteen thousand pages went through it.
        let size = std::fs::metadata(home.path().join("file.db-wal")).unwrap().len();
        assert!(size < 2 * 4096 * u64::from(LAST * PAGES), "{size}");
        writer.close().await;
        drop(file);
        let file = Connection::open(path).unwrap();
        assert_eq!(file.query_row("SELECT COUNT(*) FROM t", (), |row| row.get::<_, i64>(0)).unwrap(), 8 * EACH);
        assert_eq!(file.query_row("PRAGMA integrity_check", (), |row| row.get::<_, String>(0)).unwrap(), "ok");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_reader_keeps_is_copied_once_it_has_gone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        let writer = Writer::new(path.clone(), PAGES);
        write(&writer, -1).await;
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        let count = || reader.query_row("SELECT COUNT(*) FROM t", (), |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count(), 1);
        fill(&writer, &file, 2 * PAGES).await;
        rounds(path).unwrap();
        assert!(!is_whole(&file), "it would be lost to the reader");
        assert_eq!(count(), 1);
        reader.execute_batch("COMMIT").unwrap();
        let mut commits = 0;
        while log(&file, "NOOP").unwrap().pages >= PAGES.into() {
            commits += 1;
            // Ten pages each.
            assert!(commits < 2 * PAGES / 10, "it is tried again");
            write(&writer, -1).await;
            sleep(Duration::from_millis(20)).await;
        }
        writer.close().await;
    }
}
