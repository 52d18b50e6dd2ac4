//! A reader that stays, so that those who come and go share its lock.
//!
//! Every statement of a reader takes a lock on the index of SQLite's log and gives it back: two system calls under a mutex that
//! all connections of the file share, a fifth of what a look-up by key costs. Where another connection of the process has the
//! same lock, SQLite counts them instead. One that reads nothing therefore holds it while there is somebody to share it with.
//!
//! Whoever stays keeps the log from starting over, and a checkpoint from copying what is newer than its lock. So it looks up a
//! hundred times a second: where anybody has written since, this process or another, it stays away until nobody has; where the
//! log is to be copied and started over, it stays away until that is done, or a writer whose commits are further apart than its
//! looks would find it there at each of them; and where too few read for that to be worth its looks, it goes.
//!
//! Called by `readers`. What a reader sees does not depend on it: each begins and ends a transaction of its own as before.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rusqlite::Connection;
use tokio::{sync::Notify, task::JoinSet, time::sleep};

use super::Result;

/// How long it stays, or stays away, before it looks again.
const LOOK: Duration = Duration::from_millis(10);

/// For how many reads between two looks.
const MANY: u32 = 16;

/// The reader that stays; it goes when this is dropped.
pub(super) struct Anchor {
    asked: Arc<Asked>,
    keeper: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Asked {
    /// How many have read since the last look, as far as [`MANY`].
    lately: AtomicU32,
    many: Notify,
}

impl Anchor {
    /// `open` makes a connection that cannot write, when it is first needed; from so many `pages` on the log is copied.
    pub fn new(pages: u32, open: impl Fn() -> Result<Connection> + Send + 'static) -> Self {
        let asked = Arc::<Asked>::default();
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(asked.clone(), pages, open));
        Self { asked, keeper: Mutex::new(keeper) }
    }

    /// To be called for each read.
    pub fn read(&self) {
        // Neither counted on nor counted together: a line of memory that all threads write is dear, and one missed is no harm.
        let lately = self.asked.lately.load(Ordering::Relaxed);
        if lately < MANY {
            self.asked.lately.store(lately + 1, Ordering::Relaxed);
            if lately + 1 == MANY {
                self.asked.many.notify_one();
            }
        }
    }

    /// Has it go, for good.
    pub async fn close(&self) {
        let mut keeper = std::mem::take(&mut *self.keeper.lock().unwrap_or_else(PoisonError::into_inner));
        keeper.shutdown().await;
    }
}

async fn keep(asked: Arc<Asked>, pages: u32, open: impl Fn() -> Result<Connection>) {
    let mut connection = None;
    loop {
        asked.many.notified().await;
        let stayed = match connection.take().map_or_else(&open, Ok) {
            Ok(opened) => stay(&asked, pages, opened).await,
            Err(error) => Err(error),
        };
        match stayed {
            Ok(gone) => connection = Some(gone),
            Err(error) => {
                // Whoever reads is told by a connection of their own.
                tracing::debug!(%error, "readers share no lock");
                sleep(LOOK).await;
                asked.lately.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Stays while there are many reads, and nothing is written.
async fn stay(asked: &Asked, pages: u32, connection: Connection) -> Result<Connection> {
    let mut seen = None;
    while asked.lately.swap(0, Ordering::Relaxed) == MANY {
        // What there is of the log, and what of that is copied; nothing is done about it.
        let (log, copied): (u32, u32) =
            connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row((), |row| Ok((row.get(1)?, row.get(2)?)))?;
        connection.execute_batch("BEGIN")?;
        // The version of the file, which changes with each commit of another connection; asking for it takes the lock.
        let version: i64 = connection.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
        let stays = seen.replace(version) == Some(version) && (log < pages || copied == log);
        if !stays {
            connection.execute_batch("COMMIT")?;
        }
        sleep(LOOK).await;
        if stays {
            connection.execute_batch("COMMIT")?;
        }
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn open(path: &Path) -> Result<Connection> {
        let connection = Connection::open(path)?;
        connection.execute_batch("PRAGMA busy_timeout = 0")?;
        Ok(connection)
    }

    /// Reads for a while, as `readers` tells it.
    async fn read(anchor: &Anchor, at_once: u32) {
        for _ in 0..40 {
            (0..at_once).for_each(|_| anchor.read());
            sleep(LOOK / 10).await;
        }
    }

    /// Whether a checkpoint of what is written now has to leave something: nobody else gets to run meanwhile.
    fn is_held(file: &Connection) -> bool {
        file.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0)).unwrap()
    }

    #[tokio::test]
    async fn it_stays_while_there_are_reads_and_no_writes() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let file = open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL)").unwrap();
        assert!(!is_held(&file));
        let anchor = Anchor::new(1000, move || open(&path));
        for _ in 0..2 {
            assert!(!is_held(&file), "nobody reads");
            read(&anchor, 1).await;
            assert!(!is_held(&file), "few read");
            read(&anchor, MANY).await;
            assert!(is_held(&file), "many read");
            sleep(2 * LOOK).await;
            for _ in 0..10 {
                (0..MANY).for_each(|_| anchor.read());
                assert!(!is_held(&file), "somebody writes");
                sleep(LOOK / 2).await;
            }
            read(&anchor, MANY).await;
            sleep(4 * LOOK).await;
        }
        read(&anchor, MANY).await;
        anchor.close().await;
        assert!(!is_held(&file), "it is closed");
    }

    #[tokio::test]
    async fn readers_share_again_once_the_file_can_be_opened() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("folder").join("file.db");
        let later = path.clone();
        let anchor = Anchor::new(1000, move || open(&later));
        read(&anchor, MANY).await;
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let file = open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL)").unwrap();
        read(&anchor, MANY).await;
        assert!(is_held(&file));
    }

    #[tokio::test]
    async fn the_log_starts_over_whatever_the_pace_of_the_writer() {
        const PAGES: u32 = 100;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let log = home.path().join("file.db-wal");
        let file = open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (b BLOB NOT NULL)").unwrap();
        file.execute_batch(&format!("PRAGMA wal_autocheckpoint = {PAGES}")).unwrap();
        let anchor = Anchor::new(PAGES, move || open(&path));
        for _ in 0..40 {
            // Ten pages, further apart than two looks.
            file.execute_batch("INSERT INTO t VALUES (zeroblob(40000))").unwrap();
            for _ in 0..25 {
                (0..MANY).for_each(|_| anchor.read());
                sleep(LOOK / 10).await;
            }
        }
        let size = std::fs::metadata(log).unwrap().len();
        assert!(size < 2 * 4096 * u64::from(PAGES), "{size}");
    }
}
