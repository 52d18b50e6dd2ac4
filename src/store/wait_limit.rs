//! The limit on waiting for the database: for the other writers of a SQLite file, or for a connection to PostgreSQL.

use std::time::Duration;

/// How long a writer of SQLite waits for another writer before it fails with [`Error::Busy`](crate::store::Error::Busy), and how long a
/// statement on PostgreSQL waits for a connection. The readiness check waits as long before it reports that the SQLite database does not
/// answer.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);
