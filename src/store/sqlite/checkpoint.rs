//! Checkpoints: copying the write-ahead log (WAL) into the SQLite file concurrently with the writer, and what happens if a sync of
//! a checkpoint fails. `group_commit` handles a failed sync of a commit.
//!
//! By default SQLite runs the checkpoint within the commit that made the WAL long, and all writers wait until the copied pages are on disk.
//! Here a separate connection runs the checkpoint in rounds. Pages that are written during a round are left to the next round. After the
//! last round the writer itself copies the remaining pages, which are few unless the disk is slower than the writes. Now the WAL is copied
//! to its end, so at the next write SQLite overwrites the WAL from its beginning (the WAL starts over). While a reader still needs an old
//! snapshot, the checkpoint is tried again until that reader has ended.
//!
//! Guarantees:
//! - The WAL starts over only once every page that was copied from it is on disk.
//! - If a sync that this module makes failed, the WAL does not start over while this process runs. Once no process has the file open, the
//!   next process that opens it copies the WAL from its beginning.
//! - If the rounds cannot copy the WAL for another reason, SQLite copies it within a commit, once the WAL has [`WAL_HARD_LIMIT_FACTOR`]
//!   times the length at which a checkpoint is due. The WAL of an import is copied within the commits of the import.

use std::time::Duration;

use rusqlite::Connection;

use crate::store::{
    Result,
    sqlite::{
        connection::{PAGE_BYTES, log, open_writer},
        file_identity::FileIdentity,
        sqlite_ffi,
    },
};

/// The maximum number of rounds of a checkpoint, and the number of uncopied pages at or below which no further round is run. Writers
/// continue during the rounds.
const ROUNDS: u32 = 4;
const FEW_PAGES: i64 = 400;

/// The WAL may become this many times as long as [`CheckpointTrigger::pages`], the length at which a checkpoint is due. After that, SQLite
/// copies the WAL within a commit. When the WAL starts over, SQLite truncates a longer WAL file to this length.
pub(in crate::store) const WAL_HARD_LIMIT_FACTOR: u32 = 2;

/// The first and the longest pause between two attempts of a checkpoint that cannot be completed yet, for example because of a reader.
pub(in crate::store) const PAUSE: Duration = Duration::from_millis(20);
pub(in crate::store) const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Decides when a checkpoint is due: once the WAL has `pages` pages, unless a checkpoint is in progress (`underway`).
pub(in crate::store) struct CheckpointTrigger {
    pub pages: u32,
    pub underway: bool,
}

impl CheckpointTrigger {
    pub fn new(pages: u32) -> Self {
        Self { pages, underway: false }
    }

    /// Returns the PRAGMAs that limit the WAL, for a connection that writes (see [`WAL_HARD_LIMIT_FACTOR`]).
    pub fn settings(&self) -> String {
        let last = WAL_HARD_LIMIT_FACTOR * self.pages;
        format!("PRAGMA wal_autocheckpoint = {last}; PRAGMA journal_size_limit = {};", PAGE_BYTES * last)
    }

    pub fn is_due(&self, connection: &Connection) -> bool {
        !self.underway && log(connection, "NOOP").is_ok_and(|log| log.pages >= self.pages.into())
    }
}

/// The outcome of an attempt to copy the WAL to its end.
pub(in crate::store) enum CheckpointOutcome {
    Done,
    Incomplete,
    /// The disk refused a sync. The operating system reports such an error only once: afterwards it treats the pages that are missing on
    /// the disk as written.
    SyncFailed,
}

/// Copies the WAL in rounds, until few pages are left or nothing more can be copied. Returns `false` if the disk refused a sync; then the
/// WAL is kept from starting over.
pub(in crate::store) fn rounds(file: &FileIdentity, sync: impl Fn(&Connection) -> Result<()>) -> Result<bool> {
    let (connection, keeper) = (open_writer(file.path())?, open_writer(file.path())?);
    // Fails if the path, by which both connections were opened, leads to another file by now.
    file.check()?;
    let mut copied = -1;
    for _ in 0..ROUNDS {
        // Opens a read transaction before any page is copied: it keeps the WAL from starting over if the disk refuses a sync.
        keeper.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
        // First syncs the pages that an earlier checkpoint copied without a sync. SQLite does not copy these pages again, so after a
        // failure of this sync no further checkpoint may run. A failure of SQLite's own sync within the checkpoint is harmless: SQLite
        // copies the pages of that checkpoint again at the next attempt.
        let refused = sync(&connection).is_err() || {
            log(&connection, "PASSIVE")?;
            sync(&connection).is_err()
        };
        if refused {
            std::mem::forget(keeper);
            return Ok(false);
        }
        keeper.execute_batch("COMMIT")?;
        let log = log(&connection, "NOOP")?;
        if log.pages - log.copied <= FEW_PAGES || log.copied == copied {
            break;
        }
        copied = log.copied;
    }
    Ok(true)
}

/// Waits until the copied pages are on disk. A checkpoint syncs only if it reaches the end of the WAL, which it does not reach while
/// writers add pages. Without this call, the checkpoint that does reach the end would wait for everything that earlier checkpoints left
/// unsynced.
pub(in crate::store) fn sync(connection: &Connection) -> Result<()> {
    sqlite_ffi::sync_file(connection)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::store::{
        parameterised_sql::{Param, Sql},
        sqlite::{file_identity::opened, group_commit::Writer},
    };

    const PAGES: u32 = 100;

    fn file(path: &Path) -> Connection {
        let file = Connection::open(path).unwrap();
        file.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER NOT NULL, b BLOB NOT NULL)",
        )
        .unwrap();
        file
    }

    /// Commits slightly more than ten pages, in one transaction.
    async fn write(writer: &Writer, n: i64) {
        let turn = writer.turn().await.unwrap();
        turn.run(&Sql::fixed("INSERT INTO t VALUES ($1, $2)").with(Param::Integer(n)).with(Param::Bytes(vec![7; 40_000]))).unwrap();
        turn.commit().await.unwrap();
    }

    fn pages(file: &Connection) -> i64 {
        log(file, "NOOP").unwrap().pages
    }

    /// Commits until the WAL has at least `long` pages.
    async fn fill(writer: &Writer, file: &Connection, long: u32) {
        while pages(file) < long.into() {
            write(writer, 0).await;
        }
    }

    /// Waits for a checkpoint, without another write; returns whether the WAL is copied to its end in time.
    async fn is_copied(file: &Connection) -> bool {
        let wait = async {
            while log(file, "NOOP").unwrap().is_left(1) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(20), wait).await.is_ok()
    }

    /// Writes until the WAL starts over. Usually that happens at the next write. If the checkpoint is still using the WAL, as on a busy
    /// machine, it happens at a later write.
    async fn starts_over(writer: &Writer, file: &Connection) {
        for _ in 0..100 {
            write(writer, 0).await;
            if pages(file) < PAGES.into() {
                return;
            }
            sleep(PAUSE).await;
        }
        panic!("it starts over");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_long_wal_is_checkpointed_and_restarts() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        let writer = Writer::new(opened(&path), PAGES);
        fill(&writer, &file, PAGES / 2).await;
        sleep(2 * PAUSE).await;
        assert!(log(&file, "NOOP").unwrap().is_left(1), "a short one is left");
        for _ in 0..3 {
            fill(&writer, &file, PAGES).await;
            assert!(is_copied(&file).await);
            starts_over(&writer, &file).await;
        }
        writer.close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_writers_lose_no_rows_to_checkpoints() {
        const EACH: i64 = 150;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        let writer = Writer::new(opened(&path), PAGES);
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
        fill(&writer, &file, PAGES).await;
        assert!(is_copied(&file).await);
        // Without checkpoints the WAL would contain some thirteen thousand pages.
        let size = std::fs::metadata(home.path().join("file.db-wal")).unwrap().len();
        assert!(size < 4096 * 13_000 / 4, "{size}");
        writer.close().await;
        drop(file);
        let file = Connection::open(path).unwrap();
        let counted: i64 = file.query_row("SELECT COUNT(*) FROM t WHERE n > 0", (), |row| row.get(0)).unwrap();
        assert_eq!(counted, 8 * (EACH - 1));
        assert_eq!(file.query_row("PRAGMA integrity_check", (), |row| row.get::<_, String>(0)).unwrap(), "ok");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wal_pages_held_by_a_reader_are_checkpointed_after_it_ends() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        let writer = Writer::new(opened(&path), PAGES);
        write(&writer, 0).await;
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        let count = || reader.query_row("SELECT COUNT(*) FROM t", (), |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count(), 1);
        fill(&writer, &file, PAGES * 3 / 2).await;
        sleep(2 * PAUSE).await;
        assert!(log(&file, "NOOP").unwrap().is_left(1), "it would be lost to the reader");
        assert_eq!(count(), 1);
        reader.execute_batch("COMMIT").unwrap();
        assert!(is_copied(&file).await);
        starts_over(&writer, &file).await;
        writer.close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn pages_that_a_checkpoint_failed_to_sync_stay_in_the_wal() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = file(&path);
        // This writer runs no checkpoint itself: the WAL never reaches the writer's limit.
        let writer = Writer::new(opened(&path), 100 * PAGES);
        fill(&writer, &file, PAGES).await;
        let synced = std::cell::Cell::new(0);
        let refuses = |_: &Connection| {
            synced.set(synced.get() + 1);
            if synced.get() == 1 { Ok(()) } else { Err(crate::store::Error::Damaged("input/output error".to_owned())) }
        };
        // A checkpoint that reaches the end of the WAL syncs the file by itself, and does not call the failing function `refuses`. The open
        // snapshot of the reader keeps the checkpoint below from reaching the end, as concurrent writers would.
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        write(&writer, 0).await;
        assert!(!rounds(&opened(&path), refuses).unwrap());
        reader.execute_batch("COMMIT").unwrap();
        for _ in 0..3 {
            let before = pages(&file);
            write(&writer, 0).await;
            assert!(rounds(&opened(&path), sync).unwrap());
            assert!(log(&file, "PASSIVE").unwrap().copied <= before, "what is behind the keeper");
            assert!(pages(&file) > before, "it starts over");
        }
        writer.close().await;
    }
}
