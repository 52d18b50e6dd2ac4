//! What state a database is in, by what the head of its log's index says.
//!
//! Whoever commits, in this process or another, writes there how many pages the log has, a sum over all of them, and a number that
//! grows, before the commit has ended; SQLite itself tells by these 48 bytes whether what a connection knows of the file still holds.
//! Where they are what they were, nobody has committed since. To look at them is to read memory, a hundredth of the least statement.
//!
//! They are written twice, and the copy that is looked at here last. Whoever has it torn in two has one that was in no state: that
//! is equal to none, and what is kept under it is never told.

use std::{
    ffi::{c_int, c_void},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering, fence},
};

use libsqlite3_sys as ffi;
use rusqlite::Connection;

/// The size of the head of the index (`WalIndexHdr` in SQLite's wal.c), of which the second copy follows.
const HEAD: usize = 48;
/// Of the pieces in which SQLite maps the index, the first of which begins with the head (`WALINDEX_PGSZ`).
const PIECE: c_int = 32_768;
/// What the head begins with (`WALINDEX_MAX_VERSION`). A file that has no log has no index, or one of zeros.
const VERSION: u32 = 3_007_000;

/// A state of a database, equal to itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct State([u64; HEAD / size_of::<u64>()]);

/// Where the state of a connection's database is to be seen.
pub(in crate::store) struct Head(NonNull<[AtomicU64; HEAD / size_of::<u64>()]>);

// SAFETY: it is memory that all connections of all processes share, and read by whole numbers.
unsafe impl Send for Head {}

impl Head {
    /// Of a connection that has read its database, which is when SQLite maps the index. `None`: it has none.
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
            // Nothing is made where there is nothing.
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
        // What whoever committed did before he said so is seen behind this.
        fence(Ordering::SeqCst);
        // SAFETY: mapped as long as the connection is open, and at the begin of a page.
        let words = unsafe { self.0.as_ref() }.each_ref().map(|word| word.load(Ordering::Acquire));
        let version = words[0].to_ne_bytes().first_chunk().map(|version| u32::from_ne_bytes(*version));
        (version == Some(VERSION)).then_some(State(words))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

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

    /// It ends without closing the file, which a process that was killed does not either.
    const ANOTHER: &str = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); os._exit(0)";

    #[test]
    fn another_process_changes_the_state_and_so_does_one_that_ended_within_its_write() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let writer = file(&path, "WAL");
        let reader = reader(&path);
        let head = Head::of(&reader).unwrap();
        let another = |script: &str| {
            let ended = Command::new("python3").args(["-c", ANOTHER, path.to_str().unwrap(), script]).status().unwrap();
            assert!(ended.success());
        };
        let first = state(&head);
        another("UPDATE t SET n = 5");
        let second = state(&head);
        assert_ne!(first, second);
        assert_eq!(number(&reader), 5);
        // Pages of the open transaction go to the log, since nothing is kept.
        another(
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE t SET n = 6; CREATE TABLE u AS SELECT randomblob(100000) AS b",
        );
        assert_eq!(state(&head), second);
        assert_eq!(number(&reader), 5);
        // Over what it left.
        writer.execute_batch("UPDATE t SET n = 7").unwrap();
        assert!(![first, second].contains(&state(&head)));
        assert_eq!(number(&reader), 7);
    }

    #[test]
    fn a_file_without_a_log_is_in_no_state() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let writer = file(&path, "DELETE");
        let reader = reader(&path);
        let state = Head::of(&reader).map(|head| state_or_none(&head));
        assert!(matches!(state, None | Some(None)), "{state:?}");
        drop((reader, writer));
    }
}
