//! Use-cases that read and advance the clock of a sandbox. A sandbox is a test database with a clock of its own, which can be advanced.
//!
//! An advance moves the clock to each instant at which a message or a delivery to a webhook is due, and finally to the requested time. The
//! clock stops at each of these instants until the delivery workers have made all due attempts. So no attempt is in progress when the clock
//! moves on. State that depends on the clock alone, such as the end of a ticket's snooze or the expiry of a key, needs no work.
//!
//! Guarantees: of several concurrent advances, one runs, and the others are refused. Each instant is stored before the clock shows it. So a
//! server that is killed continues from the stored instant when it restarts, and never from an earlier instant.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::{Error, Result, Service};
use crate::{
    domain::{
        clock::SandboxClock,
        ids::StoreId,
        settings_access::{Editor, Entry, Subject},
        time::Timestamp,
    },
    store::sandbox_database::DueCounts,
};

/// How far the clock may be ahead of real time, in milliseconds: two years, one of them a leap year.
pub const LONGEST_AHEAD: i64 = 731 * 24 * 60 * 60 * 1000;

/// How long an advance may take in real time. After this time the advance fails, and the clock runs on from the instant that the advance
/// has reached.
const LONGEST_ADVANCE: Duration = Duration::from_secs(600);

/// An order to one of the two delivery workers: the worker of messages, or the worker of webhooks.
pub enum DrainOrder {
    /// Make all due attempts, until this instant of real time at the latest. Then wait for the next order.
    Drain { until: Instant, done: oneshot::Sender<Result<Attempts>> },
    /// Return to normal work without orders.
    Release,
}

/// The number of attempts for each store.
pub type Attempts = HashMap<StoreId, u64>;

/// The channel of orders to one worker. A restarted worker takes the channel over from its predecessor.
pub type DrainOrders = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<DrainOrder>>>;

/// A sandbox that this process serves.
pub struct Sandbox {
    clock: Arc<SandboxClock>,
    messages: mpsc::UnboundedSender<DrainOrder>,
    webhooks: mpsc::UnboundedSender<DrainOrder>,
    /// How far the clock is ahead of real time, in milliseconds, as this process last wrote it to the database.
    stored: AtomicI64,
    /// The time to which an advance in progress moves the clock.
    advancing_to: Mutex<Option<Timestamp>>,
}

impl Sandbox {
    /// Makes a sandbox with this clock, which is `stored` milliseconds ahead of real time according to the database. Also returns the
    /// channels of orders to the workers of messages and of webhooks.
    pub fn new(clock: Arc<SandboxClock>, stored: i64) -> (Arc<Self>, [DrainOrders; 2]) {
        let ((messages, message_orders), (webhooks, webhook_orders)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let orders = [message_orders, webhook_orders].map(|orders| Arc::new(tokio::sync::Mutex::new(orders)));
        (Arc::new(Self { clock, messages, webhooks, stored: stored.into(), advancing_to: Mutex::default() }), orders)
    }

    fn advancing_to(&self) -> std::sync::MutexGuard<'_, Option<Timestamp>> {
        self.advancing_to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time that the clock shows, and whether the clock is being advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownClock {
    pub now: Timestamp,
    pub is_sandbox: bool,
    /// The time to which an advance in progress moves the clock.
    pub advancing_to: Option<Timestamp>,
}

/// The result of an advance of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advanced {
    pub from: Timestamp,
    pub now: Timestamp,
    /// The number of attempts to send messages of the store, made during the advance.
    pub message_attempts: u64,
    /// The number of attempts to deliver events of the store to webhooks, made during the advance.
    pub webhook_attempts: u64,
    pub due_counts: DueCounts,
}

/// Guard of an advance. When the guard is dropped, the stopped clock runs on, and the workers return to normal work.
struct ClockStopGuard(Arc<Sandbox>);

impl Drop for ClockStopGuard {
    fn drop(&mut self) {
        self.0.clock.run_on();
        for queue in [&self.0.messages, &self.0.webhooks] {
            // The send fails only if the worker has ended, and such a worker needs no release.
            _ = queue.send(DrainOrder::Release);
        }
        *self.0.advancing_to() = None;
    }
}

impl Service {
    /// Returns a copy that can advance the clock of a sandbox.
    #[must_use]
    pub fn in_sandbox(self, sandbox: Option<Arc<Sandbox>>) -> Self {
        Self { sandbox, ..self }
    }

    pub fn shown_clock(&self) -> ShownClock {
        let advancing_to = self.sandbox.as_ref().and_then(|sandbox| *sandbox.advancing_to());
        ShownClock { now: self.clocks_and_ids().now(), is_sandbox: self.sandbox.is_some(), advancing_to }
    }

    /// Advances the clock of the sandbox; returns once all attempts that fell due have been made. The advance continues if the caller
    /// disconnects.
    pub async fn advance_clock(&self, editor: &Editor, to: Timestamp) -> Result<Advanced> {
        let Some(sandbox) = self.sandbox.clone() else {
            let reason = "cannot be reached: this server's clock shows real time, since its database is no sandbox; `counterpart serve \
                          --sandbox` on a new database serves one";
            return Err(Error::conflict("to", reason));
        };
        self.may_advance(&sandbox, to)?;
        let standstill = {
            let mut advancing_to = sandbox.advancing_to();
            if let Some(other) = *advancing_to {
                let reason =
                    format!("cannot be reached now: the clock is being advanced to {other}; wait until `getClock` shows no `advancingTo`");
                return Err(Error::conflict("to", reason));
            }
            *advancing_to = Some(to);
            ClockStopGuard(sandbox.clone())
        };
        let (service, editor) = (self.clone(), editor.clone());
        let advance = tokio::spawn(async move { service.advance(&standstill, &editor, to).await });
        advance.await.map_err(|error| Error::Internal(format!("an advance of the clock ended early: {error}")))?
    }

    fn may_advance(&self, sandbox: &Sandbox, to: Timestamp) -> Result<()> {
        let now = self.clocks_and_ids().now();
        if to < now {
            return Err(Error::invalid("to", format!("is in the past of the sandbox, whose clock shows {now}; the clock never goes back")));
        }
        if sandbox.clock.ahead_at(to) > LONGEST_AHEAD {
            let last = self.clocks_and_ids().real.now().plus_millis(LONGEST_AHEAD);
            return Err(Error::invalid("to", format!("is more than two years ahead of real time; it must be at most {last}")));
        }
        Ok(())
    }

    async fn advance(&self, standstill: &ClockStopGuard, editor: &Editor, to: Timestamp) -> Result<Advanced> {
        let sandbox = &standstill.0;
        let until = Instant::now() + LONGEST_ADVANCE;
        let mut attempts = [Attempts::new(), Attempts::new()];
        let from = sandbox.clock.stop();
        // The running clock may have passed `to` since `to` was checked.
        let to = to.max(from);
        let mut change = self.begin_edit(editor).await?;
        let detail = json!({ "from": from, "to": to });
        change.audit(Entry { action: "clock.advanced", subject: Subject::Clock, subject_id: "clock".to_owned(), detail });
        change.end().await?;
        loop {
            self.drain(sandbox, until, &mut attempts).await?;
            let now = sandbox.clock.stop();
            if now >= to {
                break;
            }
            let next = self.db().next_due_after(now).await?.map_or(to, |next| next.min(to));
            self.store_clock(sandbox, next).await?;
            sandbox.clock.put_forward(next);
        }
        let due_counts = self.db().count_due(&editor.store_id, from, to).await?;
        let [message_attempts, webhook_attempts] = attempts.map(|attempts| attempts.get(&editor.store_id).copied().unwrap_or_default());
        // The clock runs on from `to`, however long the advance took.
        self.store_clock(sandbox, to).await?;
        Ok(Advanced { from, now: to, message_attempts, webhook_attempts, due_counts })
    }

    async fn store_clock(&self, sandbox: &Sandbox, at: Timestamp) -> Result<()> {
        let ahead = sandbox.clock.ahead_at(at);
        self.db().move_sandbox(sandbox.stored.load(Ordering::SeqCst), ahead).await?;
        sandbox.stored.store(ahead, Ordering::SeqCst);
        Ok(())
    }

    /// Drains the queues of messages and of webhooks in turn, until no attempt is due. One pass is not enough: a message that was sent
    /// causes an event for webhooks, and the receiver of the event may send messages.
    async fn drain(&self, sandbox: &Sandbox, until: Instant, [messages, events]: &mut [Attempts; 2]) -> Result<()> {
        loop {
            drain_queue(&sandbox.messages, until, messages).await?;
            if drain_queue(&sandbox.webhooks, until, events).await? == 0 {
                return Ok(());
            }
        }
    }
}

/// Orders one worker to drain its queue. Returns the number of attempts that the worker made, and adds these attempts to `total`.
async fn drain_queue(worker: &mpsc::UnboundedSender<DrainOrder>, until: Instant, total: &mut Attempts) -> Result<u64> {
    let ended = |what: &str| Error::Unavailable { reason: format!("the advance of the clock ended early: {what}"), retry_after: 5 };
    let (done, drained) = oneshot::channel();
    worker.send(DrainOrder::Drain { until, done }).map_err(|_| ended("the server is being stopped"))?;
    let made = drained.await.map_err(|_| ended("a delivery worker was stopped; advance the clock again to go on"))??;
    let count = made.values().sum();
    for (store, attempts) in made {
        *total.entry(store).or_default() += attempts;
    }
    Ok(count)
}
