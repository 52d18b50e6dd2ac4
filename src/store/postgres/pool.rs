//! Connection pool for PostgreSQL: exclusive connections, each checked out for one statement or transaction at a time. The library
//! `deadpool` keeps the pool.
//!
//! The pool is for transactions, and for reads that may take long (short reads use `pipelined_clients`).
//!
//! Guarantees:
//! - There are never more connections than allowed, apart from connections that the server is about to close.
//! - A connection whose statement failed, or whose caller stopped waiting, is checked in the background. If it responds, it returns to the
//!   pool; otherwise it is closed.
//! - A connection that was not checked out for some time is checked before its next use, so that no request fails because the server was
//!   restarted.

use std::{
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use deadpool::managed::{Manager, Metrics, Object, Pool, PoolConfig, PoolError, QueueMode, RecycleError, RecycleResult};
use scopeguard::{ScopeGuard, guard};
use tokio::time::timeout;

use crate::store::{
    Error, Result,
    error::is_lost,
    last_failure::LastFailure,
    parameterised_sql::Sql,
    postgres::{
        connect_to_primary::Server,
        pipelined_connection::{Connection, NOTHING, RowLength, RowSink},
        pooler_detection,
    },
};

// In this pool, these times count from the last check-out of a connection, so they include its last transaction.

/// How long a connection may be unused before it is checked at its next use.
pub(in crate::store) const IDLE_BEFORE_CHECK: Duration = Duration::from_secs(5);
/// How long a connection may be unused before it is closed.
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
    pool: Pool<ConnectionManager>,
    /// How long a statement waits for a connection.
    patience: Duration,
    last_failure: LastFailure,
    /// The statement that each transaction begins with, after BEGIN, if there is one.
    opening: OnceLock<Sql>,
}

/// Opens the connections of the pool, and checks whether they can be used again.
struct ConnectionManager {
    server: Arc<Server>,
    idle_before_check: Duration,
}

impl Manager for ConnectionManager {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection> {
        // Boxed, so that the futures of requests do not contain this large future.
        Box::pin(self.server.connect_with_retry(RowLength::Long)).await
    }

    async fn recycle(&self, connection: &mut Connection, metrics: &Metrics) -> RecycleResult<Error> {
        let is_usable = !connection.is_closed()
            && !has_expired(metrics)
            && (metrics.last_used() < self.idle_before_check || connection.answers().await);
        if is_usable { Ok(()) } else { Err(RecycleError::message("it is closed, too old, or does not answer")) }
    }
}

/// Returns whether a connection of the pool is too old, or has not been checked out for too long.
fn has_expired(metrics: &Metrics) -> bool {
    metrics.age() >= MAX_CONNECTION_AGE || metrics.last_used() >= MAX_IDLE_TIME
}

/// A connection that is checked out. It returns to the pool when it is dropped; no statement may be in flight on it then.
pub(in crate::store) struct CheckedOutConnection(Object<ConnectionManager>);

impl CheckedOutConnection {
    pub fn connection(&self) -> &Connection {
        &self.0
    }

    /// Returns whether the connection had been checked out before.
    pub fn has_served(&self) -> bool {
        Object::metrics(&self.0).recycle_count > 0
    }

    /// Closes the connection.
    pub fn discard(self) {
        drop(Object::take(self.0));
    }

    /// Sends the command `last` on a connection whose statement failed or whose caller no longer waits. If the command succeeds, the
    /// connection returns to the pool; otherwise it is closed. Until then the server may still run the statement, so the connection stays
    /// checked out and counts towards the limit.
    pub fn recover(self, last: &'static str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.discard() };
        runtime.spawn(async move {
            // If the runtime is shut down meanwhile, the connection is closed, too.
            let checked_out = guard(self, Self::discard);
            if checked_out.connection().command(last).await.is_ok() {
                drop(ScopeGuard::into_inner(checked_out));
            }
        });
    }
}

impl ConnectionPool {
    /// Creates a pool of at most `connections` connections. A connection is opened only when it is needed.
    pub fn new(server: Arc<Server>, connections: u32, patience: Duration) -> Self {
        Self::with_check_after(server, connections, patience, IDLE_BEFORE_CHECK)
    }

    fn with_check_after(server: Arc<Server>, connections: u32, patience: Duration, idle_before_check: Duration) -> Self {
        // The connection that was used last is used first, so that connections beyond the load become idle and are closed.
        let config = PoolConfig { queue_mode: QueueMode::Lifo, ..PoolConfig::new(connections.max(1) as usize) };
        let pool = Pool::builder(ConnectionManager { server, idle_before_check }).config(config).build();
        let pool = pool.unwrap_or_else(|error| unreachable!("only a pool with time-outs of its own can be refused: {error}"));
        Self(Arc::new(PoolState { pool, patience, last_failure: LastFailure::default(), opening: OnceLock::new() }))
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
        self.0.pool.manager().server.connections()
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
            let checked_out = guard(self.check_out().await?, |checked_out| checked_out.recover(NOTHING));
            match checked_out.connection().each_row(sql, to).await {
                Ok(()) => {
                    drop(ScopeGuard::into_inner(checked_out));
                    return Ok(());
                }
                // The connection was idle and turned out to be lost: the statement is repeated on another connection.
                Err(error) if is_lost(&error) && checked_out.has_served() => ScopeGuard::into_inner(checked_out).discard(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks out a connection. Fails if none becomes available within the pool's `patience`. Also closes the idle
    /// connections that have expired ([`has_expired`]).
    pub async fn check_out(&self) -> Result<CheckedOutConnection> {
        let checked_out = match timeout(self.0.patience, self.0.pool.get()).await {
            Ok(Ok(connection)) => Ok(CheckedOutConnection(connection)),
            Ok(Err(PoolError::Backend(error))) => Err(error),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(pool_timeout_error()),
        };
        drop(self.0.pool.retain(|_, metrics| !has_expired(&metrics)));
        checked_out
    }

    /// Closes the idle connections. A connection in use is closed when it is returned. Later check-outs fail.
    pub async fn close(&self) {
        let idle = self.0.pool.retain(|_, _| false).removed;
        self.0.pool.close();
        for connection in idle {
            connection.close().await;
        }
    }
}

/// Tests that a server accepts connections, and that its database has the encoding UTF8, which can store every text. Waits for a server
/// that is starting: for [`SAID`], and then for up to `patience`. Finds out whether a connection pooler is in front of the server, and
/// records the result in `server`.
pub(in crate::store) async fn check_reachable(server: &Server, patience: Duration) -> Result<()> {
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
            let found = async {
                let encoding = pooler_detection::shown(&connection, "server_encoding").await?.unwrap_or_default();
                Ok::<_, Error>((encoding, pooler_detection::is_pooled(&connection).await?))
            }
            .await;
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
    use std::{str::FromStr, time::Instant};

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
        let server = Arc::new(Server::of(&ServerAddress::from_str(&fixture.url).unwrap()));
        let kept = ConnectionPool::new(server.clone(), 2, Duration::from_secs(5));
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
        assert_ne!(process().await, one);
        kept.close().await;
        assert!(matches!(kept.rows(&Sql::fixed("SELECT 1")).await, Err(Error::Unavailable(_))));
    }

    #[tokio::test]
    async fn a_connection_that_was_idle_for_some_time_is_checked_before_its_next_use() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let server = Server::of(&ServerAddress::from_str(&fixture.url).unwrap());
        let kept = ConnectionPool::with_check_after(server.into(), 1, Duration::from_secs(5), Duration::ZERO);
        let process = async || {
            let checked_out = kept.check_out().await.unwrap();
            let rows = checked_out.connection().rows(&Sql::fixed("SELECT pg_backend_pid()")).await.unwrap();
            rows[0].get::<_, i32>(0)
        };
        let one = process().await;
        assert_eq!(process().await, one);
        fixture.execute(&format!("SELECT pg_terminate_backend({one})")).await.unwrap();
        // A statement is not repeated here, so it would fail on the terminated connection.
        assert_ne!(process().await, one);
    }

    #[test]
    fn a_pool_closes_connections_that_are_too_old_or_unused_for_too_long() {
        let ago = |duration| Instant::now().checked_sub(duration).unwrap();
        let of = |created, recycled| Metrics { created: ago(created), recycled: Some(ago(recycled)), recycle_count: 1 };
        let moment = Duration::from_secs(1);
        assert!(!has_expired(&of(MAX_CONNECTION_AGE - moment, MAX_IDLE_TIME - moment)));
        assert!(has_expired(&of(MAX_CONNECTION_AGE, moment)));
        assert!(has_expired(&of(MAX_IDLE_TIME, MAX_IDLE_TIME)));
    }
}
