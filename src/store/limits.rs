//! The time-out of writers, which the SQLite driver and the PostgreSQL driver share.

use std::time::Duration;

/// How long a writer waits for another writer before it fails with [`Error::Busy`](crate::store::Error::Busy).
pub(in crate::store) const WRITE_WAIT: Duration = Duration::from_secs(10);
