//! Connection pool for PostgreSQL: exclusive connections, each checked out for one statement or transaction at a time.
//!
//! The pool is for transactions, and for reads that may take long (short reads use `pipelined_clients`).
//!
//! Guarantees:
//! - There are never more connections than allowed, apart from connections that the server is about to close.
//! - A connection whose statement failed, or whose caller stopped waiting, is checked in the background. If it responds, it returns to the
//!   pool; otherwise it is closed.
//! - A connection that was idle for some time is checked before it is checked out, so that no request fails because the server was
//!   restarted.

use std::{
    pin::pin,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use scopeguard::{ScopeGuard, guard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::store::{
    Error, Result,
    error::is_lost,
    last_failure::LastFailure,
    mutex::lock,
    parameterised_sql::Sql,
    postgres::{
        connect_to_primary::Server,
        pipelined_connection::{Connection, NOTHING, RowLength, RowSink},
        pooler_detection,
    },
};

/// How long a connection may be idle before it is checked at its next use.
pub(in crate::store) const IDLE_BEFORE_CHECK: Duration = Duration::from_secs(5);
/// How long a connection may be idle before it is closed.
pub(in crate::store) const MAX_IDLE_TIME: Duration = Duration::from_secs(600);
/// The greatest age of a connection. An older connection is closed, since its server process never frees what it has cached, such as the
/// descriptions of tables.
pub(in crate::store) const MAX_CONNECTION_AGE: Duration = Duration::from_secs(1800);

/// When the program starts: how long it waits for the PostgreSQL server before it logs that it is waiting.
const SAID: Duration = Duration::from_secs(1);

/// A pool of connections to one server.
#[derive(Clone)]
pub(in crate::store) struct ConnectionPool(Arc<PoolState>);

struct PoolState {
    server: Arc<Server>,
    /// The connections that are not in use, the longest idle one first.
    idle: Mutex<Vec<IdleConnection>>,
    permits: Arc<Semaphore>,
    /// How long a statement waits for a connection.
    patience: Duration,
    last_failure: LastFailure,
    /// The statement that each transaction begins with, after BEGIN, if there is one.
    opening: OnceLock<Sql>,
}

struct IdleConnection {
    connection: Connection,
    made: Instant,
    since: Instant,
    /// Whether the connection has run a statement before.
    used: bool,
}

/// A connection that is checked out, and its permit. The pool has one permit for each allowed connection.
pub(in crate::store) struct CheckedOutConnection {
    idle: IdleConnection,
    permit: OwnedSemaphorePermit,
}

impl CheckedOutConnection {
    pub fn connection(&self) -> &Connection {
        &self.idle.connection
    }

    /// Returns whether the connection had run a statement before it was checked out.
    pub fn has_served(&self) -> bool {
        self.idle.used
    }
}

impl ConnectionPool {
    /// Creates a pool of at most `connections` connections. A connection is opened only when it is needed.
    pub fn new(server: Arc<Server>, connections: u32, patience: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(connections.max(1) as usize));
        Self(Arc::new(PoolState {
            server,
            idle: Mutex::default(),
            permits,
            patience,
            last_failure: LastFailure::default(),
            opening: OnceLock::new(),
        }))
    }

    /// Makes each later transaction begin with this statement.
    pub fn begin_with(&self, statement: &str) {
        // A second call would set the same statement.
        _ = self.0.opening.set(Sql::fixed(statement));
    }

    /// Returns the statement that each transaction begins with.
    pub fn opening(&self) -> Option<&Sql> {
        self.0.opening.get()
    }

    /// Returns the number of open connections to the server.
    pub fn connections(&self) -> u64 {
        self.0.server.connections()
    }

    /// Returns the record of when a transaction of this pool last failed because the database could not do its work ([`LastFailure`]).
    pub fn last_failure(&self) -> &LastFailure {
        &self.0.last_failure
    }

    /// Runs a statement and returns its rows, for tests. The statement only reads, or can be run twice without harm.
    #[cfg(test)]
    pub async fn rows(&self, sql: &Sql) -> Result<Vec<tokio_postgres::Row>> {
        let mut rows = Vec::new();
        self.each_row(sql, &mut rows).await?;
        Ok(rows)
    }

    /// Runs a statement and passes its rows to `to`, one by one. The statement only reads, or can be run twice without harm: it is repeated
    /// if its connection was idle and turns out to be lost.
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> Result<()> {
        loop {
            let checked_out = guard(self.check_out().await?, |checked_out| self.recover(checked_out, NOTHING));
            match checked_out.connection().each_row(sql, to).await {
                Ok(()) => {
                    self.put_back(ScopeGuard::into_inner(checked_out));
                    return Ok(());
                }
                // The connection was idle and turned out to be lost: the statement is repeated on another connection.
                Err(error) if is_lost(&error) && checked_out.idle.used => drop(ScopeGuard::into_inner(checked_out)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks out a connection. Fails if none becomes available within the pool's `patience`.
    pub async fn check_out(&self) -> Result<CheckedOutConnection> {
        timeout(self.0.patience, self.check_out_one()).await.unwrap_or_else(|_| Err(pool_timeout_error()))
    }

    async fn check_out_one(&self) -> Result<CheckedOutConnection> {
        let permit = self.0.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        Ok(CheckedOutConnection { idle: self.take().await?, permit })
    }

    async fn take(&self) -> Result<IdleConnection> {
        // A closure: the same call in the head of the loop would hold the lock through the body.
        let next = || self.lock().pop();
        while let Some(idle) = next() {
            let rested = idle.since.elapsed();
            if idle.connection.is_closed() || rested >= MAX_IDLE_TIME {
                continue;
            }
            if rested < IDLE_BEFORE_CHECK || idle.connection.answers().await {
                return Ok(idle);
            }
        }
        Ok(IdleConnection {
            connection: self.0.server.connect_with_retry(RowLength::Long).await?,
            made: Instant::now(),
            since: Instant::now(),
            used: false,
        })
    }

    /// Returns a connection to the pool. No statement may be in flight on it.
    pub fn put_back(&self, CheckedOutConnection { mut idle, permit }: CheckedOutConnection) {
        if self.0.permits.is_closed() || idle.made.elapsed() > MAX_CONNECTION_AGE {
            // Dropping the connection closes it. If the server can accept no other connection before that, `connect_with_retry` waits.
            return;
        }
        (idle.since, idle.used) = (Instant::now(), true);
        let mut others = self.lock();
        others.retain(|other| other.since.elapsed() < MAX_IDLE_TIME);
        others.push(idle);
        // The permit is released last, so that its next holder finds this connection among the idle ones.
        drop(others);
        drop(permit);
    }

    /// Sends the command `last` on a connection whose statement failed or whose caller no longer waits. If the command succeeds, the
    /// connection returns to the pool; otherwise it is closed. Until then the server may still run the statement, so the connection keeps
    /// its permit and counts towards the limit.
    pub fn recover(&self, checked_out: CheckedOutConnection, last: &'static str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let kept = self.clone();
        runtime.spawn(async move {
            if checked_out.connection().command(last).await.is_ok() {
                kept.put_back(checked_out);
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<IdleConnection>> {
        lock(&self.0.idle)
    }

    /// Closes the idle connections. A connection in use is closed when it is returned. Later check-outs fail.
    pub async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.lock());
        for IdleConnection { connection, .. } in idle {
            connection.close().await;
        }
    }
}

/// Tests that a server accepts connections, and that its database has the encoding UTF8, which can store every text. Waits for a server
/// that is starting: for [`SAID`], and then for up to `patience`. Finds out whether a connection pooler is in front of the server, and
/// records the result in `server`.
pub(in crate::store) async fn reach(server: &Server, patience: Duration) -> Result<()> {
    let mut connecting = pin!(server.connect_with_retry(RowLength::Short));
    let reached = match timeout(SAID, &mut connecting).await {
        Ok(reached) => reached,
        Err(_) => {
            let seconds = patience.as_secs();
            tracing::warn!(server = %server.address(), seconds, "the PostgreSQL server does not accept connections yet; waiting for it");
            timeout(patience, connecting).await.unwrap_or_else(|_| {
                Err(Error::Unavailable("it does not run, or does not accept connections; start it, or name another".to_owned()))
            })
        }
    };
    match reached {
        Ok(connection) => {
            let found = async { Ok::<_, Error>((encoding(&connection).await?, pooler_detection::is_pooled(&connection).await?)) }.await;
            connection.close().await;
            let (encoding, is_pooled) = found?;
            server.set_pooled(is_pooled);
            match encoding.as_str() {
                "UTF8" => Ok(()),
                other => Err(Error::Unavailable(format!(
                    "the PostgreSQL database has the encoding {other}, which cannot store every text; name one that was made with \
                     `CREATE DATABASE counterpart ENCODING 'UTF8' TEMPLATE template0`"
                ))),
            }
        }
        Err(Error::Unavailable(reason)) => {
            let pooler = if reason.contains("unsupported startup parameter") {
                "; a connection pooler refuses it: for PgBouncer, add `ignore_startup_parameters = options` to pgbouncer.ini"
            } else {
                ""
            };
            Err(Error::Unavailable(format!("the PostgreSQL server at `{}`: {reason}{pooler}", server.address())))
        }
        Err(error) => Err(error),
    }
}

async fn encoding(connection: &Connection) -> Result<String> {
    let rows = connection.rows_unnamed(&Sql::fixed("SHOW server_encoding")).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}

/// Returns the error for a request after the pool was closed.
pub(in crate::store) fn closed() -> Error {
    Error::Unavailable("the database is being closed".to_owned())
}

/// Returns the error for a request for which no connection became available in time.
pub(in crate::store) fn pool_timeout_error() -> Error {
    Error::Unavailable("none became free, or could be made, in time".to_owned())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use futures_util::future::join_all;
    use sea_orm::DbBackend;
    use tokio::time::sleep;

    use super::*;
    use crate::store::{Error, fixture::Fixture, postgres::address::ServerAddress};

    #[tokio::test]
    async fn working_connections_are_reused_and_broken_ones_are_not() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let server = Server::of(&ServerAddress::from_str(&fixture.url).unwrap());
        let kept = ConnectionPool::new(server.into(), 2, Duration::from_secs(5));
        // The statement takes long enough that concurrent calls need a second connection.
        let process = async || {
            let rows = kept.rows(&Sql::fixed("SELECT pg_backend_pid() FROM pg_sleep(0.02)")).await.unwrap();
            rows[0].get::<_, i32>(0)
        };
        let first = process().await;
        assert_eq!(process().await, first);
        let many: std::collections::BTreeSet<i32> = join_all((0..20).map(|_| process())).await.into_iter().collect();
        assert_eq!(many.len(), 2, "{many:?}");
        for _ in 0..3 {
            assert!(kept.rows(&Sql::fixed("SELECT 1 / 0")).await.is_err());
        }
        // A connection stays in use until its statement ends, even if the caller no longer waits. No other connection is made in its place.
        let long = Sql::fixed("SELECT pg_sleep(1)");
        for _ in 0..2 {
            assert!(timeout(Duration::from_millis(50), kept.rows(&long)).await.is_err());
        }
        let begun = Instant::now();
        let after = process().await;
        assert!(begun.elapsed() > Duration::from_millis(500), "{:?}", begun.elapsed());
        assert!(many.contains(&after), "{after} is none of {many:?}");
        let one = process().await;
        fixture.execute(&format!("SELECT pg_terminate_backend({one})")).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        let other = process().await;
        assert_ne!(other, one);
        fixture.execute(&format!("SELECT pg_terminate_backend({other})")).await.unwrap();
        kept.lock().iter_mut().for_each(|idle| idle.since -= IDLE_BEFORE_CHECK);
        assert_ne!(process().await, other);
        kept.close().await;
        assert!(matches!(kept.rows(&Sql::fixed("SELECT 1")).await, Err(Error::Unavailable(_))));
    }
}
