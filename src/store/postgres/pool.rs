//! Connection pool for PostgreSQL: exclusive connections, each lent to one statement or transaction at a time.
//!
//! The pool serves transactions, and reads that may take long (`pipelined_clients` serves the others).
//!
//! Guarantees: there are never more connections than allowed, beside those that the server is about to close. A connection whose
//! statement failed or was given up is checked in the background; it serves again once it has answered, or it is closed. A connection
//! that was idle is checked before it is lent, so that a restart of the server costs no request its answer.

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use scopeguard::{ScopeGuard, guard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_postgres::Row;

use crate::store::{
    Error, Result,
    error::{is_lost, lets_nobody_in_yet},
    last_failure::LastFailure,
    lock::lock,
    postgres::connection::{Connection, NOTHING, RowSink, Rows, Server},
    sql::Sql,
};

/// How long a connection may be idle before it is checked.
pub(in crate::store) const RESTED: Duration = Duration::from_secs(5);
/// How long a connection may be idle before it is closed.
pub(in crate::store) const FORGOTTEN: Duration = Duration::from_secs(600);
/// The greatest age of a connection: its process in the server keeps everything that it has cached.
pub(in crate::store) const OLD: Duration = Duration::from_secs(1800);
/// The pause between two tries to connect to a server that accepts no connection.
const AGAIN: Duration = Duration::from_millis(100);

/// After how long a wait at the start is logged.
const SAID: Duration = Duration::from_secs(1);

/// The connections to one server.
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
}

struct IdleConnection {
    connection: Connection,
    made: Instant,
    since: Instant,
    /// Whether the connection has answered a statement before.
    used: bool,
}

/// A connection that is lent, and the permit for it.
pub(in crate::store) struct Lent {
    idle: IdleConnection,
    permit: OwnedSemaphorePermit,
}

impl Lent {
    pub fn connection(&self) -> &Connection {
        &self.idle.connection
    }

    /// Whether the connection had answered a statement before it was lent.
    pub fn has_served(&self) -> bool {
        self.idle.used
    }
}

impl ConnectionPool {
    /// A pool of at most `connections` connections. None is made before it is needed.
    pub fn new(server: Arc<Server>, connections: u32, patience: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(connections.max(1) as usize));
        Self(Arc::new(PoolState { server, idle: Mutex::default(), permits, patience, last_failure: LastFailure::default() }))
    }

    /// The number of connections.
    pub fn connections(&self) -> u64 {
        self.0.server.connections()
    }

    /// When a transaction on these connections last failed.
    pub fn last_failure(&self) -> &LastFailure {
        &self.0.last_failure
    }

    /// The rows of a statement that only reads, or may be run twice.
    pub async fn rows(&self, sql: &Sql) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each_row(sql, &mut rows).await?;
        Ok(rows)
    }

    /// Runs a statement that only reads, or may be run twice, and hands over its rows one by one.
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> Result<()> {
        loop {
            let lent = guard(self.lend().await?, |lent| self.recover(lent, NOTHING));
            match lent.connection().each_row(sql, to).await {
                Ok(()) => {
                    self.put_back(ScopeGuard::into_inner(lent));
                    return Ok(());
                }
                // A connection that was idle turns out to be lost: the statement is repeated on another.
                Err(error) if is_lost(&error) && lent.idle.used => drop(ScopeGuard::into_inner(lent)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Lends a connection, or fails once it has taken too long.
    pub async fn lend(&self) -> Result<Lent> {
        timeout(self.0.patience, self.lend_one()).await.unwrap_or_else(|_| Err(late()))
    }

    async fn lend_one(&self) -> Result<Lent> {
        let permit = self.0.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        Ok(Lent { idle: self.take().await?, permit })
    }

    async fn take(&self) -> Result<IdleConnection> {
        // A closure: the same call in the head of the loop would hold the lock through the body.
        let next = || self.lock().pop();
        while let Some(idle) = next() {
            let rested = idle.since.elapsed();
            if idle.connection.is_closed() || rested >= FORGOTTEN {
                continue;
            }
            if rested < RESTED || idle.connection.answers().await {
                return Ok(idle);
            }
        }
        Ok(IdleConnection { connection: made(&self.0.server, Rows::Long).await?, made: Instant::now(), since: Instant::now(), used: false })
    }

    /// Takes back a connection on which no statement is under way.
    pub fn put_back(&self, Lent { mut idle, permit }: Lent) {
        if self.0.permits.is_closed() || idle.made.elapsed() > OLD {
            // The connection closes once it is dropped. Its successor waits if the server has no room for both.
            return;
        }
        (idle.since, idle.used) = (Instant::now(), true);
        let mut others = self.lock();
        others.retain(|other| other.since.elapsed() < FORGOTTEN);
        others.push(idle);
        // The permit is released last, so that its next holder finds the connection in the list.
        drop(others);
        drop(permit);
    }

    /// Takes back a connection whose statement failed, or whose caller no longer waits, once it has answered the command `last`. Until then
    /// the server may still run the statement, so the connection keeps its permit and counts towards the limit.
    pub fn recover(&self, lent: Lent, last: &'static str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let kept = self.clone();
        runtime.spawn(async move {
            if lent.connection().command(last).await.is_ok() {
                kept.put_back(lent);
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<IdleConnection>> {
        lock(&self.0.idle)
    }

    /// Closes the connections; later requests for one are refused.
    pub async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.lock());
        for IdleConnection { connection, .. } in idle {
            connection.close().await;
        }
    }
}

/// A new connection, as soon as the server accepts one. Without these retries a caller that can wait would give up.
pub(in crate::store) async fn made(server: &Server, rows: Rows) -> Result<Connection> {
    loop {
        match server.connect(rows).await? {
            Err(error) if lets_nobody_in_yet(&error) => sleep(AGAIN).await,
            other => return Ok(other?),
        }
    }
}

/// Proves that a server accepts connections, and that its database can store every text. Waits up to `patience` for a server that is
/// starting.
pub(in crate::store) async fn reach(server: &Server, patience: Duration) -> Result<()> {
    let mut connecting = pin!(made(server, Rows::Short));
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
            let encoding = encoding(&connection).await;
            connection.close().await;
            match encoding?.as_str() {
                "UTF8" => Ok(()),
                other => Err(Error::Unavailable(format!(
                    "the PostgreSQL database has the encoding {other}, which cannot store every text; name one that was made with \
                     `CREATE DATABASE counterpart ENCODING 'UTF8' TEMPLATE template0`"
                ))),
            }
        }
        Err(Error::Unavailable(reason)) => Err(Error::Unavailable(format!("the PostgreSQL server at `{}`: {reason}", server.address()))),
        Err(error) => Err(error),
    }
}

async fn encoding(connection: &Connection) -> Result<String> {
    let mut rows = Vec::new();
    connection.each_row(&Sql::fixed("SHOW server_encoding"), &mut rows).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}

/// The error once no connection is lent any more.
pub(in crate::store) fn closed() -> Error {
    Error::Unavailable("the database is being closed".to_owned())
}

/// The error if no connection became available in time.
pub(in crate::store) fn late() -> Error {
    Error::Unavailable("none became free, or could be made, in time".to_owned())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use futures_util::future::join_all;
    use sea_orm::DbBackend;
    use sqlx::postgres::PgConnectOptions;

    use super::*;
    use crate::store::{Error, fixture::Fixture};

    #[tokio::test]
    async fn connections_are_used_again_and_bad_ones_are_not() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let server = Server::of(&PgConnectOptions::from_str(&fixture.url).unwrap());
        let kept = ConnectionPool::new(server.into(), 2, Duration::from_secs(5));
        // Long enough that a second connection is needed beside this one.
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
        // Connections whose statements no caller waits for any more are in use until these statements end, and no others are made in
        // their place.
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
        kept.lock().iter_mut().for_each(|idle| idle.since -= RESTED);
        assert_ne!(process().await, other);
        kept.close().await;
        assert!(matches!(kept.rows(&Sql::fixed("SELECT 1")).await, Err(Error::Unavailable(_))));
    }
}
