//! Time and new ids, passed in so that tests can move the one and foresee the other.

use std::sync::Arc;

use super::time::Timestamp;

/// Where "now" comes from.
pub trait Clock: Send + Sync + 'static {
    /// The current instant, in whole milliseconds.
    fn now(&self) -> Timestamp;
}

/// Where new ids come from.
pub trait Ids: Send + Sync + 'static {
    /// A fresh id: a UUIDv7 in its hyphenated form.
    fn fresh(&self) -> String;
}

/// The clock of the machine.
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

/// Shared handles on both, as the composition root hands them out.
#[derive(Clone)]
pub struct World {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl World {
    /// The real clock and real ids.
    pub fn real() -> Self {
        Self { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
