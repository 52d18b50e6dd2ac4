//! The slow query log: a slow statement is logged with its SQL and its duration. Bound values are not logged, since they contain what users
//! wrote.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::store::parameterised_sql::Sql;

/// A statement that takes at least this many milliseconds is logged. The value is global to the process, as the log is.
static SLOW: AtomicU64 = AtomicU64::new(500);

/// Sets the duration that a statement must reach to be logged.
pub fn log_from(slow: Duration) {
    SLOW.store(slow.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Measures the duration of statements that run together. When the timer is dropped, it logs the statements if they were slow.
pub(in crate::store) struct StatementTimer<'a> {
    statements: &'a [Sql],
    started: Instant,
}

impl<'a> StatementTimer<'a> {
    pub fn one(statement: &'a Sql) -> Self {
        Self::several(std::slice::from_ref(statement))
    }

    pub fn several(statements: &'a [Sql]) -> Self {
        Self { statements, started: Instant::now() }
    }
}

impl Drop for StatementTimer<'_> {
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
