//! Clocks and the id generator. They are parameters of the code that uses them, so that tests control them. A sandbox is a test database
//! whose clock can be put forward.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::time::Timestamp;

/// The source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current instant, in whole milliseconds.
    fn now(&self) -> Timestamp;
}

/// The source of new ids.
pub trait Ids: Send + Sync + 'static {
    /// Generates an id: a UUIDv7 in its hyphenated form.
    fn fresh(&self) -> String;
}

/// The system clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(chrono::Utc::now().timestamp_millis())
    }
}

/// Random, time-ordered ids.
#[derive(Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
    fn fresh(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

/// The clock of a sandbox: real time plus an offset. It runs like the real clock, except while it is stopped ([`SandboxClock::stop`]). It
/// never goes back, unless the real clock does.
pub struct SandboxClock {
    real: Arc<dyn Clock>,
    hands: Mutex<SandboxClockState>,
}

/// The state of a sandbox's clock.
enum SandboxClockState {
    /// The clock runs, this many milliseconds ahead of real time.
    Ahead(i64),
    /// The clock is stopped at this instant.
    At(Timestamp),
}

impl SandboxClock {
    pub fn new(real: Arc<dyn Clock>, ahead: i64) -> Arc<Self> {
        Arc::new(Self { real, hands: Mutex::new(SandboxClockState::Ahead(ahead)) })
    }

    /// Stops the clock and returns the instant that it shows from now on.
    pub fn stop(&self) -> Timestamp {
        let mut hands = self.lock();
        let at = self.shown(&hands);
        *hands = SandboxClockState::At(at);
        at
    }

    /// Puts a stopped clock forward to an instant. Does nothing if the clock runs, or if the clock shows a later instant already.
    pub fn put_forward(&self, to: Timestamp) {
        let mut hands = self.lock();
        if let SandboxClockState::At(at) = &mut *hands {
            *at = to.max(*at);
        }
    }

    /// Lets the clock run again, from the instant that it shows.
    pub fn run_on(&self) {
        let mut hands = self.lock();
        *hands = SandboxClockState::Ahead(self.ahead_at(self.shown(&hands)));
    }

    /// Returns by how many milliseconds an instant is ahead of real time.
    pub fn ahead_at(&self, at: Timestamp) -> i64 {
        at.millis().saturating_sub(self.real.now().millis())
    }

    fn shown(&self, hands: &SandboxClockState) -> Timestamp {
        match hands {
            SandboxClockState::Ahead(ahead) => self.real.now().plus_millis(*ahead),
            SandboxClockState::At(at) => *at,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SandboxClockState> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SandboxClock {
    fn now(&self) -> Timestamp {
        self.shown(&self.lock())
    }
}

/// Shared handles to the clocks and the id generator. The start-up code passes them to the other modules.
#[derive(Clone)]
pub struct ClocksAndIds {
    /// The clock for all purposes except those that the comment on the field `real` lists.
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    /// The clock that shows real time, as people and other machines know it. It is used for the expiry of links, sessions and tokens of the
    /// settings API, for the time in the signatures of requests, and for a date in the `Retry-After` of an endpoint. It differs from
    /// `clock` in a sandbox only.
    pub real: Arc<dyn Clock>,
    /// Present in a sandbox: the clock of the sandbox, which is the same clock as in the field `clock`.
    pub sandbox: Option<Arc<SandboxClock>>,
    /// Whether retries keep exactly to their schedule. If not, the pauses between attempts have jitter, so that retries are spread
    /// over time.
    pub has_even_pauses: bool,
}

impl ClocksAndIds {
    /// Returns the system clock and the generator of random ids.
    pub fn real() -> Self {
        Self::of(Arc::new(SystemClock), Arc::new(RandomIds))
    }

    /// Returns handles to this clock and this id generator, without a sandbox: `clock` is also the real clock.
    pub fn of(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self { real: clock.clone(), clock, ids, sandbox: None, has_even_pauses: false }
    }

    /// Returns the clocks and the id generator of a sandbox, whose clock is `ahead` milliseconds ahead of real time. Retries in a sandbox
    /// keep exactly to their schedule, so that tests can be repeated.
    #[must_use]
    pub fn in_sandbox(self, ahead: i64) -> Self {
        let clock = SandboxClock::new(self.real.clone(), ahead);
        Self { clock: clock.clone(), sandbox: Some(clock), has_even_pauses: true, ..self }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns by how many milliseconds the clock is ahead of real time: 0 without a sandbox.
    pub fn ahead(&self) -> i64 {
        self.sandbox.as_ref().map_or(0, |clock| clock.ahead_at(clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fake_clock_and_test_rules::MovableClock;

    #[test]
    fn a_sandbox_s_clock_runs_ahead_of_real_time_and_never_goes_back() {
        let real = MovableClock::at(1_000);
        let clock = SandboxClock::new(real.clone(), 500);
        let shown = || clock.now().millis();
        assert_eq!(shown(), 1_500);
        real.pass(10);
        assert_eq!(shown(), 1_510);
        clock.put_forward(Timestamp::from_millis(9_000));
        assert_eq!(shown(), 1_510, "a clock that runs is not put forward");
        assert_eq!(clock.stop().millis(), 1_510);
        real.pass(10);
        assert_eq!(shown(), 1_510, "it stands still");
        for (to, then) in [(2_000, 2_000), (1_900, 2_000), (7_000, 7_000)] {
            clock.put_forward(Timestamp::from_millis(to));
            assert_eq!(shown(), then);
        }
        assert_eq!(clock.ahead_at(clock.now()), 7_000 - 1_020);
        clock.run_on();
        real.pass(5);
        assert_eq!(shown(), 7_005);
    }

    #[test]
    fn only_the_clock_of_a_sandbox_differs_from_real_time() {
        let real = MovableClock::at(1_000);
        let clocks_and_ids = ClocksAndIds::of(real, Arc::new(RandomIds));
        assert_eq!((clocks_and_ids.now(), clocks_and_ids.ahead()), (clocks_and_ids.real.now(), 0));
        let sandbox = clocks_and_ids.in_sandbox(60_000);
        assert_eq!((sandbox.now().millis(), sandbox.real.now().millis(), sandbox.ahead()), (61_000, 1_000, 60_000));
    }
}
