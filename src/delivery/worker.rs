//! The worker that empties a queue: what both queues, of messages and of events, have in common.
//!
//! It claims what is due, makes the attempts, and lets each write down how it ended. What belongs to one place, an account
//! or an endpoint, has at most [`PLACE_MAX`] attempts at a time, so that a place that hangs delays its own alone. A process
//! that dies leaves its claims to the others, or to its successor, for when they run out.

use std::{collections::HashMap, future::Future, hash::Hash, time::Duration};

use tokio::task::{Id, JoinError, JoinSet};

use crate::{domain::time::Timestamp, service::Result, store::queues::room::Room, supervisor::Pulse};

/// Attempts at a time.
const MAX: usize = 512;

/// Attempts at a time with one place.
pub const PLACE_MAX: usize = 16;

/// How long the worker rests when nothing wakes it: another process may have put something into the queue.
pub(super) const REST: Duration = Duration::from_secs(1);

/// How long it rests after the database failed it.
const RECOVERY: Duration = Duration::from_secs(5);

/// What is emptied.
pub trait Queue: Clone + Send + Sync + 'static {
    type Claimed: Send + 'static;
    /// Where an attempt leads: a store's account or endpoint.
    type Place: Clone + Eq + Hash + Send + Sync + 'static;

    /// Resolves when something was put in by this process.
    fn filled(&self) -> impl Future<Output = ()> + Send;

    /// When there is something to be tried next.
    fn next_at(&self) -> impl Future<Output = Result<Option<Timestamp>>> + Send;

    fn now(&self) -> Timestamp;

    /// What is due, as much as there is room for.
    fn claim(&self, room: Room<'_, Self::Place>) -> impl Future<Output = Result<Vec<Self::Claimed>>> + Send;

    fn place(claimed: &Self::Claimed) -> Self::Place;

    /// Makes an attempt and writes down how it ended.
    fn attempt(&self, claimed: Self::Claimed) -> impl Future<Output = ()> + Send;
}

/// Empties a queue.
pub struct Worker<Q: Queue> {
    queue: Q,
    /// Attempts that go on, and the place of each.
    pub(super) attempts: JoinSet<()>,
    places: HashMap<Id, Q::Place>,
    busy: HashMap<Q::Place, usize>,
}

impl<Q: Queue> Worker<Q> {
    pub fn new(queue: Q) -> Self {
        Self { queue, attempts: JoinSet::new(), places: HashMap::new(), busy: HashMap::new() }
    }

    /// Works until `stop` resolves, then ends what it began.
    pub async fn run(mut self, stop: impl Future<Output = ()>, pulse: Pulse) {
        let mut stop = std::pin::pin!(stop);
        loop {
            pulse.beat();
            let rest = match self.begin_due().await {
                Ok(rest) => {
                    pulse.succeeded();
                    rest
                }
                Err(error) => {
                    tracing::error!(%error, "nothing can be claimed for delivery");
                    pulse.failed();
                    RECOVERY
                }
            };
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = self.attempts.join_next_with_id() => self.ended(ended),
                () = self.queue.filled() => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
        while let Some(ended) = self.attempts.join_next_with_id().await {
            self.ended(ended);
        }
    }

    /// Makes every attempt that is due, and those that become due with them, until there is none.
    #[cfg(test)]
    pub async fn drain(&mut self) -> Result<()> {
        loop {
            self.begin_due().await?;
            match self.attempts.join_next_with_id().await {
                Some(ended) => self.ended(ended),
                None => return Ok(()),
            }
        }
    }

    /// Begins what is due; how long to rest if nothing happens.
    pub(super) async fn begin_due(&mut self) -> Result<Duration> {
        let next = self.queue.next_at().await?;
        // After the look, which takes its time: what ended meanwhile makes room.
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.ended(ended);
        }
        let Some(next) = next else { return Ok(REST) };
        let wait = next.millis().saturating_sub(self.queue.now().millis());
        if wait > 0 {
            return Ok(Duration::from_millis(u64::try_from(wait).unwrap_or(0)).clamp(Duration::from_millis(1), REST));
        }
        let room = MAX.saturating_sub(self.attempts.len());
        if room == 0 {
            // Until an attempt ends.
            return Ok(REST);
        }
        let claimed = self.queue.claim(Room { all: room, each: PLACE_MAX, busy: &self.busy }).await?;
        // What is due and cannot be claimed waits for an attempt that goes on, here or elsewhere.
        let rest = if claimed.is_empty() { REST } else { Duration::ZERO };
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
            // Its claim runs out, and it is made again.
            Err(error) => {
                tracing::error!(%error, "an attempt broke off");
                error.id()
            }
        };
        let Some(place) = self.places.remove(&id) else { return };
        if let Some(attempts) = self.busy.get_mut(&place) {
            *attempts -= 1;
            if *attempts == 0 {
                self.busy.remove(&place);
            }
        }
    }
}

/// A number in 0..1.
pub fn jitter() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

/// Pauses after which an end is written down that could not be at first: what has arrived would be sent a second time.
/// Together they are shorter than what is left of a lease, but for writes that the database itself keeps waiting.
const SETTLING: [Duration; 4] = [Duration::from_millis(20), Duration::from_millis(500), Duration::from_secs(3), Duration::from_secs(10)];

/// Writes down an end, again where the database refuses it.
pub async fn settle<F: Future<Output = Result<()>>>(what: &str, write: impl Fn() -> F) {
    let mut pauses = SETTLING.iter();
    while let Err(error) = write().await {
        let Some(pause) = pauses.next() else {
            tracing::error!(%error, what, "the end of an attempt could not be written down; it is made again");
            return;
        };
        tracing::warn!(%error, what, "the end of an attempt could not be written down yet");
        tokio::time::sleep(*pause).await;
    }
}
