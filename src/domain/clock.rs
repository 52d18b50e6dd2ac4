//! Clock and id generator, injected so that tests control both.

use std::sync::Arc;

use super::time::Timestamp;

/// The source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// The current instant, in whole milliseconds.
    fn now(&self) -> Timestamp;
}

/// The source of new ids.
pub trait Ids: Send + Sync + 'static {
    /// A fresh id: a UUIDv7 in its hyphenated form.
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

/// Shared handles to both, passed on by the composition root.
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
