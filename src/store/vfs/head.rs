//! What state a database is in, by what the head of its log's index says.
//!
//! Whoever commits, in this process or another, writes there how many pages the log has, a sum over all of them, and two numbers that
//! are drawn anew for each log, before the commit has ended; SQLite itself tells by these 48 bytes whether what a connection knows of
//! the file still holds. Where they are what they were, nobody has committed since. To look at them is to read memory, a hundredth of
//! the least statement.
//!
//! They stand there twice, and whoever writes them begins with the second. Where the two differ somebody is writing, or was killed when
//! he did: what holds then a statement finds out. And where a log that has nothing was put in order after such a death, both are what
//! they were at every other time that this was done; so they tell nothing before the first commit to a log.

use std::{
    ffi::{c_int, c_void},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering, fence},
};

use libsqlite3_sys as ffi;
use rusqlite::Connection;

/// The words of the head of the index (`WalIndexHdr` in SQLite's wal.c), of 48 bytes.
const WORDS: usize = 6;
/// The one that has both numbers of a log (`aSalt`), zeros before there is one.
const LOG: usize = 4;
/// The bytes of the pieces in which SQLite maps the index, the first of which begins with the two heads (`WALINDEX_PGSZ`).
const PIECE: c_int = 32_768;
/// What a head begins with (`WALINDEX_MAX_VERSION`).
const VERSION: u32 = 3_007_000;

/// A state of a database that has been committed to. Each commit makes another, which none before was equal to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct State([u64; WORDS]);

/// Where the state of a connection's database is to be seen.
pub(in crate::store) struct Head(NonNull<[[AtomicU64; WORDS]; 2]>);

// SAFETY: it is memory that all connections of all processes share, and read by whole numbers.
unsafe impl Send for Head {}

impl Head {
    /// Of a connection whose database has a log and that has read it, which is when SQLite maps the index. (One without would be given
    /// an index that nobody takes away again.)
    pub fn of(connection: &Connection) -> Option<Self> {
        let mut file = ptr::null_mut::<ffi::sqlite3_file>();
        let mut piece = ptr::null_mut::<c_void>();
        // SAFETY: the connection is open, and hands out its file, whose methods stay as long as it does. The piece is there already, so
        // that this gives its address, and it is not mapped elsewhere before the connection is closed.
        unsafe {
            let told = (&raw mut file).cast();
            if ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER, told) != ffi::SQLITE_OK {
                return None;
            }
            let map = file.as_ref()?.pMethods.as_ref()?.xShmMap?;
            if map(file, 0, PIECE, 0, &raw mut piece) != ffi::SQLITE_OK {
                return None;
            }
        }
        NonNull::new(piece.cast()).map(Self)
    }

    /// `None`: the database is in no state that could be told from others.
    ///
    /// SAFETY: the connection is open.
    pub unsafe fn state(&self) -> Option<State> {
        // SAFETY: mapped as long as the connection is open, and at the beginning of a page.
        let heads = unsafe { self.0.as_ref() };
        let words = |head: &[AtomicU64; WORDS]| head.each_ref().map(|word| word.load(Ordering::Acquire));
        // What whoever committed did before he said so is seen behind this.
        fence(Ordering::SeqCst);
        let first = words(&heads[0]);
        fence(Ordering::SeqCst);
        let second = words(&heads[1]);
        let version = first[0].to_ne_bytes().first_chunk().map(|version| u32::from_ne_bytes(*version));
        (first == second && version == Some(VERSION) && first[LOG] != 0).then_some(State(first))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::{Path, PathBuf},
        process::Command,
    };

    use super::*;
    use crate::store::fixture::setting;

    /// A file with a table of one row.
    fn file(path: &Path, journal: &str) -> Connection {
        let connection = Connection::open(path).unwrap();
        let table = format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (n INTEGER NOT NULL); INSERT INTO t VALUES (0)");
        connection.execute_batch(&table).unwrap();
        connection
    }

    fn number(connection: &Connection) -> i64 {
        connection.query_row("SELECT n FROM t", (), |row| row.get(0)).unwrap()
    }

    /// A reader with the VFS of this project, which has read.
    fn reader(path: &Path) -> Connection {
        let reader = crate::store::sqlite::open(path).unwrap();
        number(&reader);
        reader
    }

    fn state_or_none(head: &Head) -> Option<State> {
        // SAFETY: the tests keep their connections open.
        unsafe { head.state() }
    }

    fn state(head: &Head) -> State {
        state_or_none(head).unwrap()
    }

    #[test]
    fn a_state_is_another_after_each_commit_and_the_same_without() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let writer = file(&path, "WAL");
        let (reader, other) = (reader(&path), reader(&path));
        let (head, others) = (Head::of(&reader).unwrap(), Head::of(&other).unwrap());
        let (mut seen, mut read) = (vec![state(&head)], 0);
        let mut random = 7_u64;
        for step in 0..2_000 {
            let before = *seen.last().unwrap();
            assert_eq!(state(&head), before);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (commits, statements) = match random >> 61 {
                0..3 => (true, "UPDATE t SET n = n + 1"),
                3 => (true, "INSERT INTO t SELECT 0 FROM t LIMIT 1; DELETE FROM t WHERE rowid > 1"),
                4 => (false, "BEGIN; UPDATE t SET n = n + 1; ROLLBACK"),
                5 => (false, "PRAGMA wal_checkpoint(PASSIVE)"),
                6 => (false, "SELECT * FROM t"),
                _ => (false, "PRAGMA wal_checkpoint(NOOP)"),
            };
            writer.execute_batch(statements).unwrap();
            let now = state(&head);
            assert_eq!(now, state(&others), "{step} {statements}");
            assert_eq!(now != before, commits, "{step} {statements}");
            assert!(!commits || !seen.contains(&now), "{step} {statements}");
            seen.push(now);
            let then = std::mem::replace(&mut read, number(&reader));
            assert!(then == read || commits);
        }
        // What changes the file and not what it says may be another state, and is none that was.
        for statements in ["PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"] {
            for _ in 0..3 {
                writer.execute_batch(statements).unwrap();
                writer.execute_batch("UPDATE t SET n = n + 1").unwrap();
                let now = state(&head);
                assert!(!seen.contains(&now), "{statements}");
                seen.push(now);
                assert_eq!(number(&reader), number(&writer));
                assert_eq!(state(&head), now);
            }
        }
    }

    const FILE: &str = "COUNTERPART_TEST_FILE";
    const STATEMENTS: &str = "COUNTERPART_TEST_STATEMENTS";

    /// The other process is this test once more, told what to do. It ends without closing the file, as one that is killed.
    #[test]
    fn another_process_changes_the_state_and_so_does_one_that_ended_within_its_write() {
        if let (Some(path), Some(statements)) = (setting(FILE), setting(STATEMENTS)) {
            let connection = Connection::open(path).unwrap();
            connection.execute_batch(&statements).unwrap();
            std::process::exit(0);
        }
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let writer = file(&path, "WAL");
        let reader = reader(&path);
        let head = Head::of(&reader).unwrap();
        let another = |statements: &str| {
            let (_, tests) = module_path!().split_once("::").unwrap();
            let this = format!("{tests}::another_process_changes_the_state_and_so_does_one_that_ended_within_its_write");
            let mut process = Command::new(std::env::current_exe().unwrap());
            process.args(["--exact", &this, "--nocapture"]).env(FILE, &path).env(STATEMENTS, statements);
            let told = process.output().unwrap();
            assert!(told.status.success(), "{told:?}");
        };
        let first = state(&head);
        another("UPDATE t SET n = 5");
        let second = state(&head);
        assert_ne!(first, second);
        assert_eq!(number(&reader), 5);
        // Pages of a transaction go to the log before it ends, since few are kept.
        let log = || std::fs::metadata(PathBuf::from(format!("{}-wal", path.display()))).unwrap().len();
        let before = log();
        another(
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE t SET n = 6; CREATE TABLE u AS SELECT randomblob(100000) AS b",
        );
        assert!(log() > before + 50_000);
        assert_eq!(state(&head), second);
        assert_eq!(number(&reader), 5);
        // Over what it left.
        writer.execute_batch("UPDATE t SET n = 7").unwrap();
        assert!(![first, second].contains(&state(&head)));
        assert_eq!(number(&reader), 7);
    }

    #[test]
    fn heads_that_differ_or_are_of_no_log_tell_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        drop(file(&path, "WAL"));
        let reader = reader(&path);
        let head = Head::of(&reader).unwrap();
        assert_eq!(state_or_none(&head), None, "nobody has written since the file was closed");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("UPDATE t SET n = 1").unwrap();
        let written = state(&head);
        // SAFETY: as when it is read. What stands there meanwhile nobody else looks at.
        let heads = unsafe { head.0.as_ref() };
        for word in &heads[1] {
            // As by one who has written the second head, or so much of the first.
            let was = word.fetch_add(1, Ordering::SeqCst);
            assert_eq!(state_or_none(&head), None);
            word.store(was, Ordering::SeqCst);
            assert_eq!(state(&head), written);
        }
        // Killed there: whoever reads next puts it in order.
        heads[0][2].fetch_add(1, Ordering::SeqCst);
        assert_eq!(state_or_none(&head), None);
        assert_eq!(number(&reader), 1);
        assert!(state_or_none(&head).is_some());
    }
}
