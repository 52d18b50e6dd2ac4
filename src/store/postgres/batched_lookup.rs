//! Batching of look-ups by key: requests that arrive while a look-up is in flight share the next look-up.
//!
//! A look-up by key costs the server a few microseconds. The switch to the server's process and back costs ten times as much. A batch needs
//! one such switch for all its requests. If no look-up is in flight, a request starts one immediately.
//!
//! A batch runs as a task of its own and wakes each waiting request once. If one of the requests polled the look-up for all of them, each
//! step of the look-up would wake every waiting request.
//!
//! Guarantees:
//! - A batch begins after all its requests have arrived, so that no request gets an older row than it would get alone.
//! - No request waits longer than [`BATCH_WAIT`] for the previous batch. After that time, the batch of the request runs concurrently with
//!   the previous batch.
//! - A request that is dropped does not affect the others. If all requests of a batch are dropped before it begins, the batch does not run.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex},
    time::Duration,
};

use scopeguard::guard;
use tokio::{sync::oneshot, time::timeout};

use crate::store::mutex::lock;

/// How long a batch waits for the previous batch to end: much longer than a look-up takes, and too short for a person to notice.
const BATCH_WAIT: Duration = Duration::from_millis(5);

/// The most requests of one batch.
const MAX_BATCH_REQUESTS: usize = 100;

/// Collects look-ups into batches. Look-ups of the same kind `K` share a batch and its result `A`.
pub(in crate::store) struct LookupBatcher<K, A> {
    newest: Mutex<HashMap<K, LookupBatch<A>>>,
}

/// The newest batch of look-ups of one kind. It waits to begin, or is in flight.
struct LookupBatch<A> {
    asked: Arc<OpenLookupBatch<A>>,
    /// Resolves once the batch has ended.
    ended: oneshot::Receiver<()>,
}

/// The requests of a batch. `None` once the batch has begun: no request can join it any more.
struct OpenLookupBatch<A>(Mutex<Option<Vec<LookupRequest<A>>>>);

struct LookupRequest<A> {
    key: String,
    to_caller: oneshot::Sender<A>,
}

impl<A> OpenLookupBatch<A> {
    /// Adds a request to the batch. If the batch has begun or is full, returns the request instead.
    fn add(&self, one: LookupRequest<A>) -> Option<LookupRequest<A>> {
        match &mut *lock(&self.0) {
            Some(all) if all.len() < MAX_BATCH_REQUESTS => {
                all.push(one);
                None
            }
            _ => Some(one),
        }
    }

    /// Closes the batch to further requests; returns the requests whose callers still wait.
    fn begin(&self) -> Vec<LookupRequest<A>> {
        let mut all = lock(&self.0).take().unwrap_or_default();
        all.retain(|one| !one.to_caller.is_closed());
        all
    }
}

impl<K, A> Default for LookupBatcher<K, A> {
    fn default() -> Self {
        Self { newest: Mutex::default() }
    }
}

impl<K, A> LookupBatcher<K, A>
where
    K: Clone + Eq + Hash + Send + 'static,
    A: Clone + Send + 'static,
{
    /// Looks a key up, in one batch with the keys of requests of the same kind that arrive at the same time; returns the result of the
    /// whole batch. The first request of a batch provides the function `look_up` that runs the batch. `None` if the look-up panicked or the
    /// runtime has shut down.
    pub async fn ask<F>(self: &Arc<Self>, kind: K, key: &str, look_up: impl FnOnce(BTreeSet<String>) -> F + Send + 'static) -> Option<A>
    where
        F: Future<Output = A> + Send + 'static,
    {
        let (to_caller, answer) = oneshot::channel();
        self.add(kind, LookupRequest { key: key.to_owned(), to_caller }, look_up);
        answer.await.ok()
    }

    fn add<F>(self: &Arc<Self>, kind: K, one: LookupRequest<A>, look_up: impl FnOnce(BTreeSet<String>) -> F + Send + 'static)
    where
        F: Future<Output = A> + Send + 'static,
    {
        let mut newest = lock(&self.newest);
        let one = match newest.get(&kind) {
            Some(there) => match there.asked.add(one) {
                Some(late) => late,
                None => return,
            },
            None => one,
        };
        let former = newest.remove(&kind).map(|former| former.ended);
        let asked = Arc::new(OpenLookupBatch(Mutex::new(Some(vec![one]))));
        let (ending, ended) = oneshot::channel();
        newest.insert(kind.clone(), LookupBatch { asked: asked.clone(), ended });
        drop(newest);
        // This guard removes the batch from `newest`, however the batch's task ends, and takes the lock on `newest` for that. On a runtime
        // that has shut down, `spawn` immediately drops the task and the guard. So the lock is released above: otherwise the guard would
        // wait for it forever.
        let forgotten = guard((self.clone(), kind, asked, ending), |(gather, kind, asked, _)| gather.forget(&kind, &asked));
        tokio::spawn(async move {
            let (_, _, asked, _) = &*forgotten;
            if let Some(former) = former {
                // The batch begins when the former batch has ended, but after `BATCH_WAIT` at the latest.
                _ = timeout(BATCH_WAIT, former).await;
            }
            let (keys, to_caller): (BTreeSet<_>, Vec<_>) = asked.begin().into_iter().map(|one| (one.key, one.to_caller)).unzip();
            if to_caller.is_empty() {
                return;
            }
            let answer = look_up(keys).await;
            for one in to_caller {
                // Fails if the caller no longer waits.
                _ = one.send(answer.clone());
            }
        });
    }

    fn forget(&self, kind: &K, asked: &Arc<OpenLookupBatch<A>>) {
        let mut newest = lock(&self.newest);
        if newest.get(kind).is_some_and(|newest| Arc::ptr_eq(&newest.asked, asked)) {
            newest.remove(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, pin::Pin};

    use futures_util::{FutureExt, future::join_all, poll};
    use tokio::task::yield_now;

    use super::*;

    type AskedKeys = Arc<Mutex<VecDeque<(Vec<String>, oneshot::Sender<u32>)>>>;
    type PendingLookup = Pin<Box<dyn Future<Output = Option<u32>> + Send>>;

    /// Starts a request for a key and returns it as a pending future. Its look-up waits in `asked` until the test sends a result, and
    /// panics if the test drops the sender instead.
    async fn ask(
        gather: &Arc<LookupBatcher<&'static str, u32>>,
        asked: &AskedKeys,
        kind: &'static str,
        key: &'static str,
    ) -> PendingLookup {
        let (gather, asked) = (gather.clone(), asked.clone());
        let answer = async move {
            let look_up = move |keys: BTreeSet<String>| async move {
                let (answer, answered) = oneshot::channel();
                lock(&asked).push_back((keys.into_iter().collect(), answer));
                answered.await.expect("on purpose")
            };
            gather.ask(kind, key, look_up).await
        };
        let mut answer = answer.boxed();
        assert!(poll!(&mut answer).is_pending());
        yield_to_lookups().await;
        answer
    }

    /// Yields until every look-up that can begin or end at this time has done so.
    async fn yield_to_lookups() {
        for _ in 0..10 {
            yield_now().await;
        }
    }

    fn next(asked: &AskedKeys) -> (Vec<String>, oneshot::Sender<u32>) {
        lock(asked).pop_front().expect("nothing is looked up")
    }

    #[tokio::test(start_paused = true)]
    async fn requests_during_a_lookup_share_the_next_lookup() {
        let (gather, asked) = (Arc::new(LookupBatcher::default()), AskedKeys::default());
        let first = ask(&gather, &asked, "k", "a").await;
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["a"]);
        // A request for the same key waits too: the look-up in flight may have begun before the row was written.
        let mut others = vec![];
        for key in ["a", "b", "a"] {
            others.push(ask(&gather, &asked, "k", key).await);
        }
        assert!(lock(&asked).is_empty());
        // A look-up of another kind begins immediately, while these look-ups wait.
        let another = ask(&gather, &asked, "l", "a").await;
        next(&asked).1.send(9).unwrap();
        assert_eq!(another.await, Some(9));
        answer.send(1).unwrap();
        assert_eq!(first.await, Some(1));
        yield_to_lookups().await;
        for other in &mut others {
            assert!(poll!(other).is_pending());
        }
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["a", "b"]);
        answer.send(2).unwrap();
        assert_eq!(join_all(others).await, [Some(2); 3]);
        yield_to_lookups().await;
        assert!(lock(&asked).is_empty() && lock(&gather.newest).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_lookup_delays_the_next_only_for_a_limited_time() {
        let (gather, asked) = (Arc::new(LookupBatcher::default()), AskedKeys::default());
        let stuck = ask(&gather, &asked, "k", "a").await;
        let (_, never) = next(&asked);
        let second = ask(&gather, &asked, "k", "b").await;
        assert!(lock(&asked).is_empty());
        tokio::time::sleep(BATCH_WAIT * 2).await;
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["b"]);
        answer.send(2).unwrap();
        assert_eq!(second.await, Some(2));
        never.send(1).unwrap();
        assert_eq!(stuck.await, Some(1));
        yield_to_lookups().await;
        assert!(lock(&gather.newest).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_request_is_not_looked_up_and_does_not_affect_others() {
        let (gather, asked) = (Arc::new(LookupBatcher::default()), AskedKeys::default());
        // The request that began a look-up is dropped while others wait for the look-up to end.
        let first = ask(&gather, &asked, "k", "a").await;
        let (_, answer) = next(&asked);
        let (second, third) = (ask(&gather, &asked, "k", "b").await, ask(&gather, &asked, "k", "c").await);
        drop((first, second));
        answer.send(1).unwrap();
        yield_to_lookups().await;
        // The key of a request that was dropped before its batch began is not looked up.
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["c"]);
        answer.send(2).unwrap();
        assert_eq!(third.await, Some(2));
        // If all requests of a batch were dropped, there is nothing to look up.
        let under_way = ask(&gather, &asked, "k", "a").await;
        let (_, answer) = next(&asked);
        drop(ask(&gather, &asked, "k", "b").await);
        answer.send(3).unwrap();
        assert_eq!(under_way.await, Some(3));
        yield_to_lookups().await;
        assert!(lock(&asked).is_empty() && lock(&gather.newest).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_lookup_fails_its_requests_and_the_next_one_runs() {
        let (gather, asked) = (Arc::new(LookupBatcher::default()), AskedKeys::default());
        let (first, second) = (ask(&gather, &asked, "k", "a").await, ask(&gather, &asked, "k", "b").await);
        drop(next(&asked));
        assert_eq!(first.await, None);
        yield_to_lookups().await;
        next(&asked).1.send(2).unwrap();
        assert_eq!(second.await, Some(2));
        drop(ask(&gather, &asked, "k", "a").await);
        drop(next(&asked));
        yield_to_lookups().await;
        assert!(lock(&gather.newest).is_empty());
    }

    #[test]
    fn a_lookup_after_the_end_of_the_runtime_fails_without_waiting() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ended = runtime.handle().clone();
        drop(runtime);
        let (tell, got) = std::sync::mpsc::channel();
        // Runs on another thread, since a mistake would be a deadlock: the call would hold a lock that it waits for.
        std::thread::spawn(move || {
            let _within = ended.enter();
            let gather = Arc::new(LookupBatcher::<&str, u32>::default());
            let answer = gather.ask("k", "a", |_| async { 1 }).now_or_never();
            tell.send((answer, lock(&gather.newest).len())).unwrap();
        });
        assert_eq!(got.recv_timeout(Duration::from_secs(30)), Ok((Some(None), 0)));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_batch_limit_go_into_the_following_lookup() {
        let (gather, asked) = (Arc::new(LookupBatcher::default()), AskedKeys::default());
        let mut all = vec![ask(&gather, &asked, "k", "first").await];
        for _ in 0..=MAX_BATCH_REQUESTS {
            all.push(ask(&gather, &asked, "k", "key").await);
        }
        for got in 1..=3 {
            assert!(lock(&asked).len() == 1);
            next(&asked).1.send(got).unwrap();
            yield_to_lookups().await;
        }
        let expected: Vec<_> =
            [(1, 1), (2, MAX_BATCH_REQUESTS), (3, 1)].into_iter().flat_map(|(got, times)| vec![Some(got); times]).collect();
        assert_eq!(join_all(all).await, expected);
    }
}
