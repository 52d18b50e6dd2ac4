//! Turns of requests that read many records: a store's share of the process.
//!
//! A few such requests of one store run at a time, and the others wait in the order in which they came. So another store's request waits
//! for those few, however many connections the first one has.
//!
//! A request whose answer may be long has the share of its store alone, since rows and text of a long answer are in memory at once. It
//! shares neither a thread of the runtime (`Context::beside`) nor a connection (`Db::apart`) with others. An answer may be long where one
//! of the same store and scope was so lately, or where there was none yet.
//!
//! Called by `auth`, once a request is known to be sound, and by `edge`, which knows how long the answer is. A turn ends with its request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use crate::domain::{ids::StoreId, scopes::Scope};

/// Bytes from which on an answer is long.
const LONG: usize = 1024 * 1024;

/// For how long the next answers may be long, too.
const LATELY: Duration = Duration::from_secs(30);

/// The turns of this process.
#[derive(Debug)]
pub struct Turns {
    /// Requests of one store at a time.
    share: u32,
    stores: Mutex<HashMap<StoreId, Arc<OfStore>>>,
}

#[derive(Debug)]
struct OfStore {
    turns: Arc<Semaphore>,
    /// Until when the answers of a scope may be long, where one was.
    long: Mutex<HashMap<Scope, Option<Instant>>>,
}

/// A turn, which ends when it is dropped.
#[derive(Debug)]
pub struct Turn {
    store: Arc<OfStore>,
    scope: Scope,
    /// Whether the answer may be long.
    pub alone: bool,
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    /// So many turns of each store at a time.
    pub fn new(share: usize) -> Self {
        Self { share: u32::try_from(share.max(1)).unwrap_or(u32::MAX), stores: Mutex::default() }
    }

    /// Waits for a turn.
    pub async fn take(&self, store: &StoreId, scope: Scope) -> Result<Turn, ApiError> {
        let store = self.store(store);
        let alone = store.may_be_long(scope);
        let part = if alone { self.share } else { 1 };
        // Nothing closes them.
        let permit = store.turns.clone().acquire_many_owned(part).await.map_err(|_| ApiError::internal())?;
        Ok(Turn { store, scope, alone, _permit: permit })
    }

    fn store(&self, id: &StoreId) -> Arc<OfStore> {
        let mut stores = lock(&self.stores);
        if let Some(store) = stores.get(id) {
            return store.clone();
        }
        let turns = Arc::new(Semaphore::new(self.share as usize));
        stores.entry(id.clone()).or_insert(Arc::new(OfStore { turns, long: Mutex::default() })).clone()
    }
}

impl OfStore {
    fn may_be_long(&self, scope: Scope) -> bool {
        lock(&self.long).get(&scope).is_none_or(|until| until.is_some_and(|until| until > Instant::now()))
    }
}

impl Turn {
    /// Says how long the answer is.
    pub fn answered(&self, bytes: usize) {
        let mut long = lock(&self.store.long);
        if bytes >= LONG {
            long.insert(self.scope, Some(Instant::now() + LATELY));
        } else {
            long.entry(self.scope).or_default();
        }
    }
}

/// A poisoned map is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at_once(turns: &Turns, store: &str) -> Option<Turn> {
        turns.take(&store.into(), Scope::MessagesRead).now_or_never().map(Result::unwrap)
    }

    #[tokio::test]
    async fn a_store_has_its_share_and_leaves_others_theirs() {
        let turns = Turns::new(2);
        at_once(&turns, "a").unwrap().answered(10);
        let mut taken: Vec<_> = (0..2).map(|_| at_once(&turns, "a").unwrap()).collect();
        assert!(at_once(&turns, "a").is_none());
        assert!(at_once(&turns, "b").is_some());
        taken.pop();
        assert!(at_once(&turns, "a").is_some());
    }

    #[tokio::test]
    async fn what_may_be_long_is_alone() {
        let turns = Turns::new(3);
        for (length, next) in [(LONG, 1), (LONG - 1, 1), (LONG, 1)] {
            let alone = at_once(&turns, "a").unwrap();
            assert!(at_once(&turns, "a").is_none(), "nothing is known of the first one, and the others come behind a long one");
            alone.answered(length);
            drop(alone);
            assert_eq!((0..3).map_while(|_| at_once(&turns, "a")).collect::<Vec<_>>().len(), next);
        }
        at_once(&turns, "b").unwrap().answered(LONG - 1);
        assert_eq!((0..4).map_while(|_| at_once(&turns, "b")).collect::<Vec<_>>().len(), 3);
    }
}
