//! Shared snapshots: the reads of one request on SQLite share one read transaction, as far as they run without a pause in between.
//!
//! Each read transaction locks and unlocks the WAL index of the database, by system calls under a mutex of the process. This costs as much
//! as a look-up by key. So the statements of a request do not begin a transaction each.
//!
//! A request is a future. During one poll of the future, its statements run on one thread, and nothing is awaited. [`in_scope`] wraps one
//! poll. The first statement in it that may share a snapshot begins a transaction, and the further ones join the transaction. The
//! transaction ends at the end of the poll, so no transaction is open while a request waits. It also ends before a statement that may not
//! share: such a statement must see all commits.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use crate::store::{
    Result,
    sqlite::{per_thread_slots::PerThread, read_connection::ReadConnection},
};

/// The idle connections of a pool, a list for each thread.
pub(super) type ThreadConnections = PerThread<Vec<ReadConnection>>;

thread_local! {
    /// Whether the thread is inside of [`in_scope`].
    static SCOPE: Cell<bool> = const { Cell::new(false) };
    /// The connection whose transaction is open, and the pool to which it belongs. `None` outside of [`in_scope`], and while a statement
    /// runs.
    static OPEN: RefCell<Option<(Arc<ThreadConnections>, ReadConnection)>> = const { RefCell::new(None) };
}

/// Calls `poll`, in which statements may share a snapshot. The snapshot ends with the call. A call within a call has a snapshot of its own.
pub(in crate::store) fn in_scope<T>(poll: impl FnOnce() -> T) -> T {
    /// Ends the scope, also if `poll` panics. Contains whether the scope is inside of another one.
    struct EndOfScope(bool);

    impl Drop for EndOfScope {
        fn drop(&mut self) {
            end();
            SCOPE.set(self.0);
        }
    }

    end();
    let _end = EndOfScope(SCOPE.replace(true));
    poll()
}

/// Returns whether a statement that runs now on this thread can share a snapshot.
pub(super) fn is_in_scope() -> bool {
    SCOPE.get()
}

/// Returns the connection of the open snapshot. If there is none, takes one from `idle` and begins a transaction on it.
pub(super) fn take(pool: &Arc<ThreadConnections>, idle: impl FnOnce() -> Result<ReadConnection>) -> Result<ReadConnection> {
    match OPEN.take() {
        Some((of, reader)) if Arc::ptr_eq(&of, pool) => Ok(reader),
        other => {
            close(other);
            let reader = idle()?;
            reader.begin()?;
            Ok(reader)
        }
    }
}

/// Keeps the connection that [`take`] returned, so that the next statement can use its transaction.
pub(super) fn keep(pool: &Arc<ThreadConnections>, reader: ReadConnection) {
    close(OPEN.replace(Some((pool.clone(), reader))));
}

/// Ends the snapshot of this thread, if there is one. The next statement sees all commits.
pub(super) fn end() {
    close(OPEN.take());
}

/// Ends the transaction of a connection, and returns the connection to its pool. A connection on which this fails is closed.
fn close(open: Option<(Arc<ThreadConnections>, ReadConnection)>) {
    let Some((pool, reader)) = open else { return };
    match reader.end() {
        Ok(()) => pool.here().lock().push(reader),
        Err(error) => tracing::warn!(%error, "a read transaction could not be ended; its connection is closed"),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use futures_util::FutureExt;
    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::*;
    use crate::store::{
        Error,
        parameterised_sql::Sql,
        sqlite::{connection::log, file_identity::opened, reader_pool::Readers},
    };

    /// A file with a table, a writer and a pool.
    struct File {
        _home: TempDir,
        writer: Connection,
        readers: Arc<Readers>,
    }

    impl File {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("file.db");
            let writer = Connection::open(&path).unwrap();
            writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").unwrap();
            Self { readers: Readers::new(opened(&path), 1), _home: home, writer }
        }

        fn insert(&self) {
            self.writer.execute("INSERT INTO t VALUES (1)", ()).unwrap();
        }

        fn count(&self, in_snapshot: bool) -> Result<i64> {
            let sql = Sql::fixed("SELECT COUNT(*) FROM t");
            let rows = self.readers.all(sql, None, in_snapshot, |cells| cells.take::<i64>());
            rows.now_or_never().expect("runs inline").map(|rows| rows[0])
        }

        fn shared(&self) -> i64 {
            self.count(true).unwrap()
        }

        /// Copies the WAL, and returns whether no reader prevents that the whole WAL is emptied.
        fn is_unread(&self) -> bool {
            log(&self.writer, "TRUNCATE").unwrap().pages == 0
        }
    }

    #[test]
    fn the_statements_of_a_scope_see_one_state() {
        let file = File::new();
        in_scope(|| {
            assert_eq!(file.shared(), 0);
            file.insert();
            assert_eq!(file.shared(), 0);
            assert!(!file.is_unread());
            assert_eq!(file.count(false).unwrap(), 1, "a statement that does not share sees every commit");
            assert!(file.is_unread(), "and has ended the snapshot");
            assert_eq!(file.shared(), 1);
            file.insert();
            in_scope(|| assert_eq!(file.shared(), 2, "a scope in a scope has a snapshot of its own"));
            file.insert();
            assert_eq!(file.shared(), 3);
            file.insert();
            assert_eq!(file.shared(), 3);
        });
        assert!(file.is_unread(), "the snapshot ended with its scope");
        assert_eq!(file.shared(), 4);
        file.insert();
        assert_eq!(file.shared(), 5, "nothing is shared outside of a scope");
        assert!(file.is_unread());
    }

    #[test]
    fn a_snapshot_is_of_one_file() {
        let (one, other) = (File::new(), File::new());
        other.insert();
        in_scope(|| {
            assert_eq!((one.shared(), other.shared()), (0, 1));
            one.insert();
            assert_eq!((one.shared(), other.shared()), (1, 1));
        });
        assert!(one.is_unread() && other.is_unread());
    }

    #[test]
    fn a_failed_statement_and_a_panic_end_the_snapshot() {
        let file = File::new();
        in_scope(|| {
            assert_eq!(file.shared(), 0);
            file.insert();
            let failed = file.readers.all(Sql::fixed("SELECT n FROM t"), None, true, |_| -> Result<()> { Err(Error::Busy) });
            assert!(failed.now_or_never().unwrap().is_err());
            assert!(file.is_unread());
            assert_eq!(file.shared(), 1);
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            in_scope(|| {
                assert_eq!(file.shared(), 1);
                panic!("a panic of a handler");
            })
        }));
        assert!(panicked.is_err() && !is_in_scope() && file.is_unread());
    }
}
