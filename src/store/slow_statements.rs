//! Slow statements: each is logged with its text and its time. The values, which are what people wrote, are not.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::store::sql::Sql;

/// A statement that takes this many milliseconds is logged. There is one value for the process, as there is one log.
static SLOW: AtomicU64 = AtomicU64::new(500);

/// From now on, logs statements that take at least this long.
pub fn log_from(slow: Duration) {
    SLOW.store(slow.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Times statements that run together, until it is dropped.
pub(in crate::store) struct Watch<'a> {
    statements: &'a [Sql],
    started: Instant,
}

impl<'a> Watch<'a> {
    pub fn one(statement: &'a Sql) -> Self {
        Self::several(std::slice::from_ref(statement))
    }

    pub fn several(statements: &'a [Sql]) -> Self {
        Self { statements, started: Instant::now() }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        note(self.started.elapsed(), || self.statements.iter().map(Sql::as_str).collect::<Vec<_>>().join("; "));
    }
}

/// Logs a statement if it was slow.
pub(in crate::store) fn note(took: Duration, text: impl FnOnce() -> String) {
    let milliseconds = took.as_millis() as u64;
    if milliseconds >= SLOW.load(Ordering::Relaxed) {
        tracing::warn!(milliseconds, statement = text(), "a slow statement");
    }
}
