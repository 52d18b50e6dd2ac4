//! Long polling: a request that waits until there are records to return, or until the waiting time that its caller chose (`wait`) is over.
//!
//! Guarantees: between two database queries a waiting request uses no database connection and no thread. The request ends when its caller
//! closes the connection, and it stops waiting when the server stops. The waiting time does not count as the duration of the request in the
//! metrics, and a waiting request has a longer time limit than other requests (`middleware`). A caller has a limited number of waiting
//! requests.
//!
//! While a request waits, its query is repeated at an interval, since other processes may write to the same database. After a commit of
//! this process the query is repeated earlier.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use poem::http::StatusCode;
use tokio::{
    sync::{Notify, futures::Notified, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    context::{Context, Recipient},
    error_responses::ApiError,
};

/// The longest time that a request waits, in seconds.
pub const MAX_WAIT: u64 = 30;

/// The pause between two queries if this process commits nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The shortest pause between two queries, so that a burst of commits causes only a few queries.
const MIN_POLL_PAUSE: Duration = Duration::from_millis(20);

/// The largest number of requests of one caller that wait at the same time.
const MAX_WAITING_PER_CALLER: usize = 16;

/// Counts the waiting requests of this process by caller, and ends their waiting when the server stops.
#[derive(Debug)]
pub struct LongPolls {
    waiting: Arc<Mutex<HashMap<Recipient, usize>>>,
    stopping: watch::Sender<bool>,
}

impl Default for LongPolls {
    fn default() -> Self {
        Self { waiting: Arc::default(), stopping: watch::Sender::new(false) }
    }
}

/// A guard that counts one waiting request until the guard is dropped.
struct WaitingRequest {
    of: Recipient,
    all: Arc<Mutex<HashMap<Recipient, usize>>>,
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if let Some(count) = all.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.of);
            }
        }
    }
}

/// Locks the map of waiting requests by caller. The map only holds numbers, so it is valid even if its mutex is poisoned.
fn lock(all: &Mutex<HashMap<Recipient, usize>>) -> MutexGuard<'_, HashMap<Recipient, usize>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LongPolls {
    /// Ends the waiting of every request, and prevents later requests from waiting. Called when the server stops.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Begins a long-poll request, which waits for at most `wait`. `commits` is notified of each commit of this process.
    pub fn begin<'a>(&'a self, context: &'a Context, wait: Duration, commits: &'a Notify) -> LongPoll<'a> {
        let (stopping, next) = (self.stopping.subscribe(), Box::pin(commits.notified()));
        LongPoll { polls: self, context, end: Instant::now() + wait, commits, next, stopping, waiting: None }
    }

    fn one_more(&self, of: Recipient) -> Result<WaitingRequest, ApiError> {
        let mut all = lock(&self.waiting);
        let count = all.entry(of.clone()).or_default();
        if *count >= MAX_WAITING_PER_CALLER {
            let reason =
                format!("{MAX_WAITING_PER_CALLER} requests of this caller wait already (`wait`); end one of them, or send `wait=0`");
            return Err(ApiError { retry_after: Some(1), ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, reason) });
        }
        *count += 1;
        drop(all);
        Ok(WaitingRequest { of, all: self.waiting.clone() })
    }
}

/// A long-poll request. Its handler repeats a query until the query returns records. This type waits between two queries.
pub struct LongPoll<'a> {
    polls: &'a LongPolls,
    context: &'a Context,
    end: Instant,
    commits: &'a Notify,
    /// The next notification of a commit. It is created before each query, so that a commit during the query is noticed.
    next: Pin<Box<Notified<'a>>>,
    stopping: watch::Receiver<bool>,
    /// Counts this request among the waiting requests. Absent until the request begins to wait.
    waiting: Option<WaitingRequest>,
}

impl LongPoll<'_> {
    /// Waits until it is time to repeat the query. To be called after a query that returned no records. Returns `false` if the waiting time
    /// is over or the server stops, so that no further query is needed. Returns an error if the caller has reached the limit on waiting
    /// requests.
    pub async fn look_again(&mut self) -> Result<bool, ApiError> {
        if Instant::now() >= self.end || *self.stopping.borrow() {
            return Ok(false);
        }
        if let (None, Some(caller)) = (&self.waiting, self.context.recipient()) {
            self.waiting = Some(self.polls.one_more(caller.clone())?);
            self.context.may_wait();
        }
        let begun = Instant::now();
        let woken = async {
            _ = timeout(POLL_INTERVAL, self.next.as_mut()).await;
            sleep(MIN_POLL_PAUSE.saturating_sub(begun.elapsed())).await;
        };
        tokio::select! {
            () = woken => {}
            () = sleep_until(self.end) => {}
            _ = self.stopping.wait_for(|stopping| *stopping) => {}
        }
        self.context.waited(begun.elapsed());
        self.next = Box::pin(self.commits.notified());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use poem::http::HeaderMap;

    use super::*;
    use crate::domain::{clock::ClocksAndIds, revision_rules::ReceivedAt};

    fn context() -> Context {
        let context = Context::arrive(&HeaderMap::new(), &ClocksAndIds::real(), ReceivedAt::Timestamp);
        context.authenticated(Recipient::Manager("s".into(), "u".into()), None, true);
        context
    }

    /// Polls until there have been `enough` queries, or for `wait` seconds. Returns the number of queries, and the waiting time that was
    /// counted.
    async fn polled(polls: &LongPolls, wait: u64, commits: &Notify, enough: usize) -> Result<(usize, Duration), ApiError> {
        let context = context();
        let (mut poll, mut looks) = (polls.begin(&context, Duration::from_secs(wait), commits), 1);
        while looks < enough && poll.look_again().await? {
            looks += 1;
        }
        Ok((looks, context.waiting_time()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_request_ends_with_a_result_or_at_its_time_limit() {
        let (polls, commits) = (LongPolls::default(), Notify::new());
        assert_eq!(polled(&polls, 0, &commits, 9).await.unwrap(), (1, Duration::ZERO));
        assert_eq!(polled(&polls, 30, &commits, 1).await.unwrap(), (1, Duration::ZERO));
        let (looks, waited) = polled(&polls, 30, &commits, 5).await.unwrap();
        assert!(looks == 5 && waited >= 4 * POLL_INTERVAL && waited < 5 * POLL_INTERVAL, "{looks} {waited:?}");
        let (_, waited) = polled(&polls, 2, &commits, usize::MAX).await.unwrap();
        assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(3), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_wakes_a_waiting_request_and_frequent_commits_are_combined() {
        let (polls, commits) = (LongPolls::default(), Notify::new());
        let begun = Instant::now();
        let many = async {
            loop {
                sleep(Duration::from_millis(1)).await;
                commits.notify_waiters();
            }
        };
        let (looks, _) = tokio::select! {
            done = polled(&polls, 30, &commits, 10) => done.unwrap(),
            () = many => unreachable!(),
        };
        let took = begun.elapsed();
        assert!(looks == 10 && took >= 9 * MIN_POLL_PAUSE && took < 9 * POLL_INTERVAL, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_server_answers_every_waiting_request() {
        let (polls, commits) = (LongPolls::default(), Notify::new());
        let mut waits = Box::pin(polled(&polls, 30, &commits, usize::MAX));
        assert!(waits.as_mut().now_or_never().is_none());
        polls.stop();
        assert_eq!(waits.await.unwrap().0, 2);
        assert_eq!(polled(&polls, 30, &commits, usize::MAX).await.unwrap().0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_a_bounded_number_of_waiting_requests() {
        let (polls, commits) = (LongPolls::default(), Notify::new());
        let mut waits: Vec<_> = (0..MAX_WAITING_PER_CALLER).map(|_| Box::pin(polled(&polls, 30, &commits, usize::MAX))).collect();
        for wait in &mut waits {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        let refused = polled(&polls, 1, &commits, 2).await.unwrap_err();
        assert_eq!((refused.status, refused.retry_after), (StatusCode::TOO_MANY_REQUESTS, Some(1)));
        // A request is dropped when its caller closes the connection. Another request may then wait in its place.
        waits.pop();
        assert_eq!(polled(&polls, 1, &commits, 2).await.unwrap().0, 2);
        drop(waits);
        assert!(lock(&polls.waiting).is_empty());
    }
}
