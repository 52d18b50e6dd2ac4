//! Fair scheduling between stores (tenants): limits how many expensive reads of one store run at the same time.
//!
//! An SQL statement is called unbounded if its conditions do not list the keys of rows, so that it may read any number of rows. Only a few
//! unbounded statements of one store run at a time (`store::db::StatementLimit`); further ones wait in order of arrival. So a request of
//! another store waits for those few statements at most, however many connections the first store opens.
//!
//! A request whose response may be long first waits for the store's only permit for such requests, since a long response is in memory
//! twice: as rows, and as JSON. Such a request shares neither a thread of the runtime (`Context::beside`) nor a database connection with
//! other requests. A response counts as possibly long in two cases: the last long response of the same store and scope (permission of the
//! API key) is at most 30 seconds old, or no request of that store and scope has succeeded yet.
//!
//! Called by `auth` once the request has passed all checks, and by `middleware` once the length of the response is known. A permit
//! ([`StorePermit`]) ends with its request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error_responses::ApiError;
use crate::{
    domain::{api_key_scopes::Scope, ids::StoreId},
    service::StatementLimit,
};

/// A response of at least this many bytes counts as long.
const LONG: usize = 1024 * 1024;

/// For how long after a long response further responses of the same store and scope are expected to be long.
const LONG_RESPONSE_MEMORY: Duration = Duration::from_secs(30);

/// Gives the requests of this process their permits, separately for each store.
#[derive(Debug)]
pub struct FairScheduler {
    /// The largest number of unbounded statements of one store that run at the same time.
    share: usize,
    stores: Mutex<HashMap<StoreId, Arc<StoreFairness>>>,
}

#[derive(Debug)]
struct StoreFairness {
    share: Arc<Semaphore>,
    alone: Arc<Semaphore>,
    /// For each scope: until when the next response is expected to be long (at least [`LONG`] bytes). This is [`LONG_RESPONSE_MEMORY`]
    /// after the last long response. `None`: requests with the scope have succeeded, and no response was long. A scope without an entry has
    /// no successful request yet, so its first response may be long, too.
    long: Mutex<HashMap<Scope, Option<Instant>>>,
}

/// The permit under which one request runs its expensive reads. The permit ends when this value is dropped.
#[derive(Debug)]
pub struct StorePermit {
    store: Arc<StoreFairness>,
    scope: Scope,
    /// The store's only permit for long responses. Present if the response was expected to be long when the request began.
    alone: Option<OwnedSemaphorePermit>,
}

impl FairScheduler {
    /// Makes the scheduler. `share` is the largest number of unbounded statements of each store that run at the same time.
    pub fn new(share: usize) -> Self {
        Self { share: share.max(1), stores: Mutex::default() }
    }

    /// Returns the permit of a request. If the response may be long, the call first waits until no other such request of the store runs.
    pub async fn take(&self, store: &StoreId, scope: Scope) -> Result<StorePermit, ApiError> {
        let store = self.store(store);
        let alone = if store.may_be_long(scope) {
            // The semaphore is never closed, so this error does not occur.
            Some(store.alone.clone().acquire_owned().await.map_err(|_| ApiError::internal())?)
        } else {
            None
        };
        Ok(StorePermit { store, scope, alone })
    }

    fn store(&self, id: &StoreId) -> Arc<StoreFairness> {
        let mut stores = lock(&self.stores);
        if let Some(store) = stores.get(id) {
            return store.clone();
        }
        let (share, alone) = (Arc::new(Semaphore::new(self.share)), Arc::new(Semaphore::new(1)));
        stores.entry(id.clone()).or_insert(Arc::new(StoreFairness { share, alone, long: Mutex::default() })).clone()
    }
}

impl StoreFairness {
    fn may_be_long(&self, scope: Scope) -> bool {
        lock(&self.long).get(&scope).is_none_or(|until| until.is_some_and(|until| until > Instant::now()))
    }
}

impl StorePermit {
    /// Returns whether the response may be long. If so, the request holds the store's only permit for long responses.
    pub fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Returns the store's limit on concurrent statements. The limit applies to the unbounded statements of the request or, if the response
    /// may be long, to all of its statements.
    pub fn share(&self) -> StatementLimit {
        StatementLimit { permits: self.store.share.clone(), all: self.is_alone() }
    }

    /// Records the length of the response, which decides whether the next responses of the same store and scope may be long.
    pub fn answered(&self, bytes: usize) {
        let mut long = lock(&self.store.long);
        if bytes >= LONG {
            long.insert(self.scope, Some(Instant::now() + LONG_RESPONSE_MEMORY));
        } else {
            long.entry(self.scope).or_default();
        }
    }
}

/// Locks a map. No panic can leave the map half-changed, so the map is valid even if its mutex is poisoned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at_once(turns: &FairScheduler, store: &str) -> Option<StorePermit> {
        turns.take(&store.into(), Scope::MessagesRead).now_or_never().map(Result::unwrap)
    }

    #[tokio::test]
    async fn a_store_cannot_exceed_its_share_or_use_the_share_of_another() {
        let turns = FairScheduler::new(2);
        let [a, again, b] = ["a", "a", "b"].map(|store| at_once(&turns, store));
        let share = |turn: Option<StorePermit>| turn.unwrap().share().permits;
        assert!(again.is_none(), "nothing is known of the first one, and the others come behind");
        a.as_ref().unwrap().answered(10);
        let (a, b) = (share(a), share(b));
        let _two = a.try_acquire_many(2).unwrap();
        assert!(share(at_once(&turns, "a")).try_acquire().is_err() && b.try_acquire().is_ok());
    }

    #[tokio::test]
    async fn a_request_with_a_possibly_long_response_runs_alone_in_its_store() {
        let turns = FairScheduler::new(3);
        for (length, long) in [(LONG, true), (LONG - 1, true), (LONG, true)] {
            let alone = at_once(&turns, "a").unwrap();
            assert!(alone.is_alone() && at_once(&turns, "a").is_none());
            alone.answered(length);
            drop(alone);
            assert_eq!(at_once(&turns, "a").unwrap().is_alone(), long);
        }
        at_once(&turns, "b").unwrap().answered(LONG - 1);
        let turns: Vec<StorePermit> = (0..4).map_while(|_| at_once(&turns, "b")).collect();
        assert!(turns.len() == 4 && turns.iter().all(|turn| !turn.is_alone() && !turn.share().all));
    }
}
