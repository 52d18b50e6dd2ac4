//! Queue worker, shared by the message queue and the event queue: claims due items for a limited time (lease), attempts to deliver them
//! concurrently, and records the outcome of each attempt.
//!
//! Each item has a destination ([`Queue::Place`]), which is an account or a webhook endpoint. Each destination has at most
//! [`MAX_ATTEMPTS_PER_DESTINATION`] attempts at a time (bulkhead), so a destination that hangs delays only its own items. When a process
//! dies, its claims expire with their leases, and the worker of another process, or of the restarted process, claims the items again.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::mpsc::UnboundedReceiver,
    task::{Id, JoinError, JoinSet},
};

use crate::{
    domain::{clock::ClocksAndIds, delivery_outcome::DeliveryOutcome, ids::StoreId, time::Timestamp},
    service::{
        Error, Result,
        sandbox_clock::{Attempts, DrainOrder, DrainOrders},
    },
    store::queues::concurrency::AttemptLimits,
    supervisor::TaskReporter,
};

/// The limit of concurrent attempts of one worker.
const MAX: usize = 512;

/// The limit of concurrent attempts per destination (account or endpoint).
pub const MAX_ATTEMPTS_PER_DESTINATION: usize = 16;

/// The interval at which the worker polls the queue for items that other processes have queued. For items that its own process has queued,
/// the worker is notified.
pub(super) const QUEUE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a database error.
const DATABASE_ERROR_PAUSE: Duration = Duration::from_secs(5);

/// A queue of due items.
pub trait Queue: Clone + Send + Sync + 'static {
    type Claimed: Send + 'static;
    /// The destination of an attempt, by which concurrency is limited: a store's account or endpoint.
    type Place: Clone + Eq + Hash + Send + Sync + 'static;

    /// Resolves when this process has queued an item.
    fn filled(&self) -> impl Future<Output = ()> + Send;

    /// Returns the time at which the next item is due; `None` if no item is queued. The event queue first queues the newly recorded events.
    fn next_at(&self) -> impl Future<Output = Result<Option<Timestamp>>> + Send;

    fn now(&self) -> Timestamp;

    /// Claims due items. `room` limits their number in total and for each destination.
    fn claim(&self, room: AttemptLimits<'_, Self::Place>) -> impl Future<Output = Result<Vec<Self::Claimed>>> + Send;

    fn place(claimed: &Self::Claimed) -> Self::Place;

    fn store(place: &Self::Place) -> &StoreId;

    /// Makes an attempt and records its outcome.
    fn attempt(&self, claimed: Self::Claimed) -> impl Future<Output = ()> + Send;
}

/// The worker of one queue.
pub struct Worker<Q: Queue> {
    queue: Q,
    /// The attempts in flight.
    pub(super) attempts: JoinSet<()>,
    places: HashMap<Id, Q::Place>,
    busy: HashMap<Q::Place, usize>,
    /// The channel of drain orders, in a sandbox (a test database whose clock can be advanced). A drain order tells the worker to make all
    /// due attempts while the clock is stopped.
    orders: Option<DrainOrders>,
    /// For each store, the number of attempts that ended since the last drain order. `None` while the worker follows no orders.
    ended_attempts: Option<Attempts>,
}

impl<Q: Queue> Worker<Q> {
    pub fn new(queue: Q) -> Self {
        let (attempts, ended_attempts) = (JoinSet::new(), None);
        Self { queue, attempts, places: HashMap::new(), busy: HashMap::new(), orders: None, ended_attempts }
    }

    /// Sets the channel of drain orders; only a sandbox has one.
    #[must_use]
    pub fn ordered_by(self, orders: Option<DrainOrders>) -> Self {
        Self { orders, ..self }
    }

    /// Runs until `stop` resolves, then waits for the attempts in flight.
    pub async fn run(mut self, stop: impl Future<Output = ()>, reporter: TaskReporter) {
        let mut stop = std::pin::pin!(stop);
        let mut orders = match self.orders.clone() {
            Some(orders) => Some(orders.lock_owned().await),
            None => None,
        };
        loop {
            reporter.beat();
            let rest = match self.begin_due().await {
                Ok(rest) => {
                    reporter.succeeded();
                    rest
                }
                Err(error) => {
                    tracing::error!(%error, "claiming due deliveries failed");
                    reporter.failed();
                    DATABASE_ERROR_PAUSE
                }
            };
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = self.attempts.join_next_with_id() => self.ended(ended),
                () = self.queue.filled() => {}
                Some(order) = next_order(orders.as_deref_mut()), if orders.is_some() => {
                    let Some(orders) = orders.as_deref_mut() else { continue };
                    tokio::select! {
                        () = &mut stop => break,
                        () = self.execute_orders(order, orders, &reporter) => {}
                    }
                }
                () = tokio::time::sleep(rest) => {}
            }
        }
        while let Some(ended) = self.attempts.join_next_with_id().await {
            self.ended(ended);
        }
    }

    /// Executes drain orders until an order releases the worker.
    async fn execute_orders(&mut self, first: DrainOrder, orders: &mut UnboundedReceiver<DrainOrder>, reporter: &TaskReporter) {
        self.ended_attempts = Some(Attempts::new());
        let mut order = first;
        while let DrainOrder::Drain { until, done } = order {
            let drained = self.drain_until(Some(until), reporter).await;
            // The send fails if the request that advances the clock has already ended, which is no error.
            _ = done.send(drained.map(|()| self.ended_attempts.replace(Attempts::new()).unwrap_or_default()));
            order = loop {
                reporter.beat();
                match tokio::time::timeout(QUEUE_POLL_INTERVAL, orders.recv()).await {
                    Ok(Some(next)) => break next,
                    Ok(None) => break DrainOrder::Release,
                    Err(_) => {}
                }
            };
        }
        self.ended_attempts = None;
    }

    /// Makes all due attempts, including attempts that become due during this call.
    #[cfg(test)]
    pub async fn drain(&mut self) -> Result<()> {
        self.drain_until(None, &TaskReporter::unheard()).await
    }

    /// Makes all due attempts, including attempts that become due during this call. Fails if attempts are left at the time `until`.
    async fn drain_until(&mut self, until: Option<Instant>, reporter: &TaskReporter) -> Result<()> {
        loop {
            reporter.beat();
            if until.is_some_and(|until| Instant::now() >= until) {
                let reason = format!("what was due at {} did not run in time; advance the clock again to go on", self.queue.now());
                return Err(Error::Unavailable { reason, retry_after: 5 });
            }
            self.begin_due().await?;
            match self.attempts.join_next_with_id().await {
                Some(ended) => self.ended(ended),
                None => return Ok(()),
            }
        }
    }

    /// Starts the due attempts; returns how long to sleep unless something wakes the worker.
    pub(super) async fn begin_due(&mut self) -> Result<Duration> {
        let next = self.queue.next_at().await?;
        // This loop runs after the query, since attempts that ended during the query make room for others.
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.ended(ended);
        }
        let Some(next) = next else { return Ok(QUEUE_POLL_INTERVAL) };
        let wait = next.millis().saturating_sub(self.queue.now().millis());
        if wait > 0 {
            return Ok(Duration::from_millis(u64::try_from(wait).unwrap_or(0)).clamp(Duration::from_millis(1), QUEUE_POLL_INTERVAL));
        }
        let room = MAX.saturating_sub(self.attempts.len());
        if room == 0 {
            // No slot is free. The end of an attempt wakes the worker.
            return Ok(QUEUE_POLL_INTERVAL);
        }
        let claimed = self.queue.claim(AttemptLimits { all: room, each: MAX_ATTEMPTS_PER_DESTINATION, busy: &self.busy }).await?;
        // If nothing could be claimed, each due item is blocked (by a limit of concurrent attempts, or by an older message of its
        // conversation), or another process has claimed it. The end of an attempt in this process wakes the worker; attempts of other
        // processes do not, so the worker polls.
        let rest = if claimed.is_empty() { QUEUE_POLL_INTERVAL } else { Duration::ZERO };
        for one in claimed {
            let place = Q::place(&one);
            *self.busy.entry(place.clone()).or_default() += 1;
            let queue = self.queue.clone();
            let attempt = self.attempts.spawn(async move { queue.attempt(one).await });
            self.places.insert(attempt.id(), place);
        }
        Ok(rest)
    }

    pub(super) fn ended(&mut self, ended: std::result::Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            // No outcome was recorded: the lease of the item expires, and the item is claimed again.
            Err(error) => {
                tracing::error!(%error, "a delivery attempt panicked or was cancelled");
                error.id()
            }
        };
        let Some(place) = self.places.remove(&id) else { return };
        if let Some(ended) = &mut self.ended_attempts {
            *ended.entry(Q::store(&place).clone()).or_default() += 1;
        }
        if let Some(attempts) = self.busy.get_mut(&place) {
            *attempts -= 1;
            if *attempts == 0 {
                self.busy.remove(&place);
            }
        }
    }
}

/// Returns the next order, or `None` if there is no channel or its sender is dropped.
async fn next_order(orders: Option<&mut UnboundedReceiver<DrainOrder>>) -> Option<DrainOrder> {
    match orders {
        Some(orders) => orders.recv().await,
        None => None,
    }
}

/// Returns a random number from 0 to 1, which spreads retries over time. With `has_even_pauses`, returns 0.5, which leaves the retry
/// schedule unchanged.
pub fn jitter(clocks_and_ids: &ClocksAndIds) -> f64 {
    if clocks_and_ids.has_even_pauses {
        return 0.5;
    }
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

/// The pauses between the tries to record an outcome while the database fails. Without the record, a delivered item would be sent a second
/// time. The pauses end before the lease (the time limit of the claim) expires, even if the attempt took its whole time-out. So the lease
/// expires before the last try only if the writes themselves are slow.
const OUTCOME_WRITE_BACKOFF: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(500), Duration::from_secs(3), Duration::from_secs(10)];

/// A callback that gets the outcome of each attempt.
pub type OnOutcome = Arc<dyn Fn(DeliveryOutcome) + Send + Sync>;

/// Returns a callback that does nothing, for a queue without a metric that counts the outcomes of its attempts.
pub fn uncounted() -> OnOutcome {
    Arc::new(|_| ())
}

/// Records the outcome of an attempt, with retries. Returns `None` if the outcome could not be recorded.
pub async fn settle<F: Future<Output = Result<DeliveryOutcome>>>(what: &str, write: impl Fn() -> F) -> Option<DeliveryOutcome> {
    let mut pauses = OUTCOME_WRITE_BACKOFF.iter();
    loop {
        let error = match write().await {
            Ok(outcome) => return Some(outcome),
            Err(error) => error,
        };
        let Some(pause) = pauses.next() else {
            tracing::error!(%error, what, "the outcome of an attempt could not be recorded; the attempt will be repeated");
            return None;
        };
        tracing::warn!(%error, what, "the outcome of an attempt could not be recorded yet");
        tokio::time::sleep(*pause).await;
    }
}
