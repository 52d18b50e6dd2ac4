//! Turns of requests that read: a store's share of the process.
//!
//! The requests of one store that read run a few at a time, and the others wait in the order in which they came. So another store's
//! request waits for those few, however many connections the first one has. A request whose answer is expected to be long has the
//! share of its store alone, and a thread is kept free of such requests: rows and text of a long answer are in memory while it is
//! made. An answer is expected to be long where one of the same store and scope was so lately, or where there was none yet.
//!
//! Called by `auth`, once a request is known to be sound, and by `edge`, which ends the turn when the answer is made.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use poem::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use crate::domain::{ids::StoreId, scopes::Scope};

/// Bytes from which on an answer is long.
const LONG: usize = 512 * 1024;

/// How long the next answers are expected to be long, too.
const LATELY: Duration = Duration::from_secs(30);

/// The longest that a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Seconds to wait after a refusal.
const PAUSE: u32 = 1;

/// The turns of this process.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Requests of one store at a time.
    share: u32,
    /// Turns with long answers at a time, of all stores.
    long: Arc<Semaphore>,
    stores: Mutex<HashMap<StoreId, Arc<OfStore>>>,
}

#[derive(Debug)]
struct OfStore {
    turns: Arc<Semaphore>,
    lately: Mutex<HashMap<Scope, Lately>>,
}

/// What is known of the answers of a store and scope.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    /// The longest one, where it was long.
    longest: usize,
    until: Option<Instant>,
}

/// A turn, which ends when it is dropped.
#[derive(Debug)]
pub struct Turn {
    store: Arc<OfStore>,
    scope: Scope,
    /// The length that its answer is expected to have, where that is long.
    pub expected: Option<usize>,
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl Turns {
    /// So many turns of each store at a time, and so many with long answers in all.
    pub fn new(share: usize, long: usize) -> Self {
        let share = u32::try_from(share.max(1)).unwrap_or(u32::MAX);
        Self(Arc::new(Inner { share, long: Arc::new(Semaphore::new(long.max(1))), stores: Mutex::default() }))
    }

    /// Waits for a turn.
    pub async fn take(&self, store: &StoreId, scope: Scope) -> Result<Turn, ApiError> {
        let store = self.store(store);
        let expected = store.expected(scope);
        let permits = async {
            let (turns, long) = (store.turns.clone(), self.0.long.clone());
            let Some(_) = expected else { return Ok([Some(turns.acquire_owned().await?), None]) };
            let own = turns.acquire_many_owned(self.0.share).await?;
            Ok::<_, tokio::sync::AcquireError>([Some(own), Some(long.acquire_owned().await?)])
        };
        match tokio::time::timeout(PATIENCE, permits).await {
            Ok(Ok(permits)) => Ok(Turn { store, scope, expected, _permits: permits }),
            // Nothing closes them.
            Ok(Err(_)) => Err(ApiError::internal()),
            Err(_) => Err(ApiError {
                retry_after: Some(PAUSE),
                ..ApiError::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    format!(
                        "the requests of this store that read are served in turns, and this one has waited for {} seconds; send fewer at a \
                         time, and wait for `Retry-After` seconds",
                        PATIENCE.as_secs()
                    ),
                )
            }),
        }
    }

    fn store(&self, id: &StoreId) -> Arc<OfStore> {
        let mut stores = lock(&self.0.stores);
        if let Some(store) = stores.get(id) {
            return store.clone();
        }
        let turns = Arc::new(Semaphore::new(self.0.share as usize));
        stores.entry(id.clone()).or_insert(Arc::new(OfStore { turns, lately: Mutex::default() })).clone()
    }
}

impl OfStore {
    /// The length that the next answer is expected to have, where that is long.
    fn expected(&self, scope: Scope) -> Option<usize> {
        match lock(&self.lately).get(&scope) {
            Some(Lately { until: None, .. }) => None,
            Some(Lately { until: Some(until), longest }) => (*until > Instant::now()).then_some(*longest),
            // Nothing is known.
            None => Some(0),
        }
    }
}

impl Turn {
    /// Ends the turn with an answer of so many bytes.
    pub fn end(self, bytes: usize) {
        let mut lately = lock(&self.store.lately);
        if bytes >= LONG {
            let longest = self.expected.unwrap_or_default().max(bytes);
            lately.insert(self.scope, Lately { longest, until: Some(Instant::now() + LATELY) });
        } else {
            lately.entry(self.scope).or_default();
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

    const SCOPE: Scope = Scope::MessagesRead;

    fn at_once(turns: &Turns, store: &str) -> Option<Turn> {
        turns.take(&store.into(), SCOPE).now_or_never().map(Result::unwrap)
    }

    #[tokio::test]
    async fn a_store_has_its_share_and_leaves_others_theirs() {
        let turns = Turns::new(2, 1);
        at_once(&turns, "a").unwrap().end(10);
        let mut taken: Vec<_> = (0..2).map(|_| at_once(&turns, "a").unwrap()).collect();
        assert!(at_once(&turns, "a").is_none());
        assert!(at_once(&turns, "b").is_some());
        taken.pop();
        assert!(at_once(&turns, "a").is_some());
    }

    #[tokio::test]
    async fn what_may_be_long_is_alone() {
        let turns = Turns::new(3, 1);
        let first = at_once(&turns, "a").unwrap();
        assert_eq!(first.expected, Some(0), "nothing is known of the first one");
        assert!(at_once(&turns, "a").is_none());
        assert!(at_once(&turns, "b").is_none(), "one that may be long at a time");
        first.end(LONG);
        let second = at_once(&turns, "a").unwrap();
        assert_eq!(second.expected, Some(LONG));
        assert!(at_once(&turns, "a").is_none());
        drop(second);
        at_once(&turns, "b").unwrap().end(LONG - 1);
        let taken: Vec<_> = (0..3).map(|_| at_once(&turns, "b").unwrap().expected).collect();
        assert_eq!(taken, [None; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_waits_too_long_is_told_so() {
        let turns = Turns::new(1, 1);
        let _first = at_once(&turns, "a").unwrap();
        let refused = turns.take(&"a".into(), SCOPE).await.unwrap_err();
        assert_eq!((refused.status, refused.retry_after), (StatusCode::TOO_MANY_REQUESTS, Some(PAUSE)));
        assert!(refused.message.contains("in turns"), "{}", refused.message);
    }
}
