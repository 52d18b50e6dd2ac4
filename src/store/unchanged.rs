//! What was read of a SQLite file, told again while nobody has committed to the file since.
//!
//! Every request looks up who calls, and most look the same caller up as the one before; behind a statement of SQLite that was a tenth
//! of what one ticket costs, and to look up what kinds of fields a filter names was a twentieth of its page. A state of the file that was
//! seen before the look-up (`Readers::state`) and still is the state says that the look-up would find the same again: that is as good as
//! another look-up, whichever process writes. On PostgreSQL nobody in this process can tell, and nothing is kept.
//!
//! Called by `access` and `fields`. Guarantee: what is told is what a statement would find that began when it was asked for. (Not where
//! somebody writes over the file and leaves SQLite out, which no process that has it open is safe from.)

use std::{collections::HashMap, hash::Hash};

use super::{Db, connect::Reads, readers::Readers, spots::Spots, vfs::State};

/// By thread, as the connections that it was read on.
pub(super) struct Unchanged<K, T>(Spots<Kept<K, T>>);

struct Kept<K, T> {
    /// The state that all of it was found in.
    state: Option<State>,
    found: HashMap<K, T>,
}

/// Of how many keys something is kept by a thread.
const MOST: usize = 1_000;

impl Db {
    /// What was read of a kind, if it is kept, and the state to look it up in and to keep it by: before a look-up, which so tells what
    /// holds in this state or in a later one.
    pub(super) fn unchanged<K, T>(&self, of: impl Fn(&Readers) -> &Unchanged<K, T>) -> Option<(State, &Unchanged<K, T>)> {
        match self.reads() {
            Reads::Sqlite(readers) => readers.state().map(|state| (state, of(readers))),
            Reads::Postgres(_) => None,
        }
    }
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self { state: None, found: HashMap::new() }
    }
}

impl<K, T> Default for Unchanged<K, T> {
    fn default() -> Self {
        Self(Spots::default())
    }
}

impl<K: Eq + Hash, T: Clone> Unchanged<K, T> {
    /// What was found by this key in this state, by this thread.
    pub fn in_state(&self, state: State, key: &K) -> Option<T> {
        let kept = self.0.here().lock();
        kept.found.get(key).filter(|_| kept.state == Some(state)).cloned()
    }

    /// Keeps what was found by a look-up that began after the state was seen.
    pub fn keep(&self, state: State, key: K, found: T) {
        let mut kept = self.0.here().lock();
        if kept.state != Some(state) || kept.found.len() >= MOST {
            kept.found.clear();
            kept.state = Some(state);
        }
        kept.found.insert(key, found);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicI64, AtomicU64, Ordering},
        thread,
        time::{Duration, Instant},
    };

    use rusqlite::Connection;

    use super::*;
    use crate::store::{file_identity::opened, readers::Readers, sql::Sql};

    #[test]
    fn it_is_told_in_its_state_alone_and_of_so_many_keys() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let readers = Readers::new(opened(&path), 1);
            let read = async || readers.all(Sql::fixed("SELECT COUNT(*) FROM t"), |cells| cells.take::<i64>()).await.unwrap();
            assert_eq!(readers.state(), None, "nothing was read");
            read().await;
            let first = readers.state().unwrap();
            let unchanged = Unchanged::<usize, usize>::default();
            unchanged.keep(first, 1, 11);
            assert_eq!((unchanged.in_state(first, &1), unchanged.in_state(first, &2)), (Some(11), None));
            writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
            let second = readers.state().unwrap();
            assert_eq!(unchanged.in_state(second, &1), None);
            unchanged.keep(second, 2, 22);
            // What was looked up before the other commit, and ends behind it.
            assert_eq!([1, 2].map(|key| unchanged.in_state(second, &key)), [None, Some(22)]);
            unchanged.keep(first, 1, 11);
            assert_eq!([1, 2].map(|key| unchanged.in_state(second, &key)), [None, None]);
            for key in 0..3 * MOST {
                unchanged.keep(second, key, key);
                assert_eq!(unchanged.in_state(second, &key), Some(key));
                assert!(unchanged.0.here().lock().found.len() <= MOST);
            }
            readers.close().await;
            assert_eq!(readers.state(), None);
        });
    }

    #[test]
    fn nothing_is_told_that_was_before_a_commit() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0)")
            .unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let readers = Readers::new(opened(&path), 1);
        let (unchanged, committed) = (Unchanged::<(), i64>::default(), AtomicI64::new(0));
        let (told, looked_up) = (AtomicU64::new(0), AtomicU64::new(0));
        // As long as it takes to see enough of both.
        let (begun, enough) = (Instant::now(), 100);
        let goes_on = || {
            let seen = told.load(Ordering::Relaxed).min(looked_up.load(Ordering::Relaxed));
            begun.elapsed() < if seen < enough { Duration::from_secs(60) } else { Duration::from_secs(1) }
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    while goes_on() {
                        let least = committed.load(Ordering::SeqCst);
                        let state = readers.state();
                        let found = match state.and_then(|state| unchanged.in_state(state, &())) {
                            Some(found) => {
                                told.fetch_add(1, Ordering::Relaxed);
                                found
                            }
                            None => {
                                looked_up.fetch_add(1, Ordering::Relaxed);
                                let read = readers.all(Sql::fixed("SELECT n FROM t"), |cells| cells.take::<i64>());
                                let found = runtime.block_on(read).unwrap()[0];
                                if let Some(state) = state {
                                    unchanged.keep(state, (), found);
                                }
                                found
                            }
                        };
                        assert!(found >= least, "{found} was told where {least} was committed");
                    }
                });
            }
            let mut n = 0;
            while goes_on() {
                n += 1;
                writer.execute("UPDATE t SET n = ?1", [n]).unwrap();
                committed.store(n, Ordering::SeqCst);
                if n % 50 == 0 {
                    writer.execute_batch("PRAGMA wal_checkpoint(RESTART)").ok();
                }
                thread::sleep(Duration::from_micros(50));
            }
        });
        let (told, looked_up) = (told.into_inner(), looked_up.into_inner());
        assert!(told >= enough && looked_up >= enough, "{told} told, {looked_up} looked up");
    }
}
