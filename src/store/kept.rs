//! Statements on PostgreSQL, over connections that are kept.
//!
//! sqlx's pool asks every connection that it gets back whether it still lives: a second round trip for each statement, which
//! costs both sides as much as a look-up by key. The statements of `sql` therefore run over connections that are not in its
//! hands, each prepared once on each; SeaORM keeps entities, chores and migrations.
//!
//! Called by `sql` and `replica` for what is read, by `begun` for transactions, by `write` for what is written at once.
//! Guarantees: never more connections than allowed, nor more statements at work in the server: where one failed, or nobody waits
//! for it any more, its connection is asked in the background, and serves again once it has answered or is closed. One that has
//! rested is asked first, so that a server that was restarted meanwhile costs nobody an answer.

use std::{
    io::ErrorKind,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use scopeguard::{ScopeGuard, guard};
use sea_orm::QueryResult;
use sqlx::{
    AssertSqlSafe, Connection, Postgres,
    postgres::{PgArguments, PgConnectOptions, PgConnection},
    query::Query,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use super::{
    Result,
    error::is_lost,
    lock::lock,
    sql::{Param, Sql},
};

/// How long a connection may rest before it is asked whether it lives, and before it is closed.
pub(super) const RESTED: Duration = Duration::from_secs(5);
const FORGOTTEN: Duration = Duration::from_secs(600);
/// How old a connection gets: its process in the server keeps what it has learnt.
const OLD: Duration = Duration::from_secs(1800);
/// How long one that has rested may take to answer, or to be closed.
const PROMPT: Duration = Duration::from_secs(1);
/// How often a server that lets nobody in is tried.
const AGAIN: Duration = Duration::from_millis(100);

/// A command that does nothing.
pub(super) const NOTHING: &str = "";

/// The connections to one server.
#[derive(Clone)]
pub(super) struct Kept(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    /// Those that are not in use, the one that rested the longest first.
    idle: Mutex<Vec<Idle>>,
    permits: Arc<Semaphore>,
    /// How long a statement waits for a connection.
    patience: Duration,
}

struct Idle {
    connection: PgConnection,
    made: Instant,
    since: Instant,
    /// Whether it has served before.
    used: bool,
}

/// A connection at work, and the right to have it.
pub(super) struct Lent {
    idle: Idle,
    permit: OwnedSemaphorePermit,
}

impl Lent {
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.idle.connection
    }
}

impl Kept {
    /// None is made before it is needed.
    pub fn new(options: PgConnectOptions, connections: u32, patience: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(connections.max(2) as usize));
        Self(Arc::new(Shared { options, idle: Mutex::default(), permits, patience }))
    }

    /// The rows of a statement that only reads, or may be run twice.
    pub async fn rows(&self, sql: &Sql) -> Result<Vec<QueryResult>> {
        let (lent, rows) = self.first(sql, NOTHING).await?;
        self.put_back(lent);
        Ok(rows)
    }

    /// A connection, and the rows of its first statement, which changes nothing: where the connection had rested and turns out to
    /// be lost, the statement is repeated on another. `last` ends what the statement may have begun when nobody waits for it any
    /// more.
    pub async fn first(&self, sql: &Sql, last: &'static str) -> Result<(Lent, Vec<QueryResult>)> {
        loop {
            let lent = timeout(self.0.patience, self.lend()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
            let mut lent = guard(lent, |lent| self.recover(lent, last));
            match rows(&mut lent.idle.connection, sql).await {
                Ok(rows) => return Ok((ScopeGuard::into_inner(lent), rows)),
                Err(error) if is_lost(&error) && lent.idle.used => drop(ScopeGuard::into_inner(lent)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn lend(&self) -> sqlx::Result<Lent> {
        let permit = self.0.permits.clone().acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        Ok(Lent { idle: self.take().await?, permit })
    }

    async fn take(&self) -> sqlx::Result<Idle> {
        // Not in the loop's head, which would hold the lock through its body.
        let next = || self.lock().pop();
        while let Some(mut idle) = next() {
            let rested = idle.since.elapsed();
            if rested < RESTED {
                return Ok(idle);
            }
            if rested < FORGOTTEN && matches!(timeout(PROMPT, idle.connection.ping()).await, Ok(Ok(()))) {
                return Ok(idle);
            }
        }
        loop {
            match PgConnection::connect_with(&self.0.options).await {
                Ok(connection) => return Ok(Idle { connection, made: Instant::now(), since: Instant::now(), used: false }),
                // It starts, or has as many as it takes: that passes, or whoever waits loses patience.
                Err(sqlx::Error::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => sleep(AGAIN).await,
                Err(sqlx::Error::Database(error)) if error.is_transient_in_connect_phase() => sleep(AGAIN).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a connection back that nothing goes on upon.
    pub fn put_back(&self, Lent { mut idle, permit }: Lent) {
        if self.0.permits.is_closed() || idle.made.elapsed() > OLD {
            // Before another may be made.
            drop(idle);
            return;
        }
        (idle.since, idle.used) = (Instant::now(), true);
        let mut others = self.lock();
        others.retain(|other| other.since.elapsed() < FORGOTTEN);
        others.push(idle);
        // Whoever has the right to one finds it there.
        drop(others);
        drop(permit);
    }

    /// Takes a connection back whose statement failed, or that nobody waits for any more, once it has answered a last command. The
    /// server may still be at work for it; until that has ended it counts as one of those that are allowed.
    pub fn recover(&self, mut lent: Lent, last: &'static str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let kept = self.clone();
        runtime.spawn(async move {
            if command(&mut lent.idle.connection, last).await.is_ok() {
                kept.put_back(lent);
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        lock(&self.0.idle)
    }

    /// Closes the connections; whoever asks for one afterwards is refused.
    pub async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.lock());
        for Idle { connection, .. } in idle {
            if !matches!(timeout(PROMPT, connection.close()).await, Ok(Ok(()))) {
                tracing::debug!("a connection could not be closed in order");
            }
        }
    }
}

/// Runs a command without values or rows.
pub(super) async fn command(connection: &mut PgConnection, text: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(text).execute(connection).await.map(|_| ())
}

pub(super) async fn rows(connection: &mut PgConnection, sql: &Sql) -> sqlx::Result<Vec<QueryResult>> {
    Ok(bound(sql).fetch_all(connection).await?.into_iter().map(QueryResult::from).collect())
}

/// A statement with its values, prepared once on each connection.
pub(super) fn bound(sql: &Sql) -> Query<'_, Postgres, PgArguments> {
    sql.params().iter().fold(sqlx::query(AssertSqlSafe(sql.as_str().to_owned())), |query, param| match param {
        Param::Text(text) => query.bind(text),
        Param::Integer(number) => query.bind(number),
        Param::Number(number) => query.bind(number),
        Param::Bytes(bytes) => query.bind(bytes),
        Param::Null => query.bind(None::<&str>),
        Param::NoInteger => query.bind(None::<i64>),
        Param::NoNumber => query.bind(None::<f64>),
    })
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use futures_util::future::join_all;
    use sea_orm::DbBackend;

    use super::*;
    use crate::store::{Error, fixture::Fixture};

    #[tokio::test]
    async fn connections_are_used_again_and_bad_ones_are_not() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let kept = Kept::new(PgConnectOptions::from_str(&fixture.url).unwrap(), 2, Duration::from_secs(5));
        // Long enough that a second one is needed beside it.
        let process = async || {
            let rows = kept.rows(&Sql::fixed("SELECT pg_backend_pid() FROM pg_sleep(0.02)")).await.unwrap();
            rows[0].try_get_by_index::<i32>(0).unwrap()
        };
        let first = process().await;
        assert_eq!(process().await, first);
        let many: std::collections::BTreeSet<i32> = join_all((0..20).map(|_| process())).await.into_iter().collect();
        assert_eq!(many.len(), 2, "{many:?}");
        for _ in 0..3 {
            assert!(kept.rows(&Sql::fixed("SELECT 1 / 0")).await.is_err());
        }
        // Those that nobody waits for any more are at work until they end, and no others are made for that.
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
