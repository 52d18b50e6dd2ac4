//! The time-out of writers that wait for each other on SQLite, and of statements that wait for a connection to PostgreSQL.

use std::time::Duration;

/// How long a writer of SQLite waits for another writer before it fails with [`Error::Busy`](crate::store::Error::Busy), and how long a
/// statement on PostgreSQL waits for a connection.
pub(in crate::store) const WRITE_WAIT: Duration = Duration::from_secs(10);
