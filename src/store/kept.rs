//! Reads on PostgreSQL, over connections that are kept.
//!
//! sqlx's pool asks every connection that it gets back whether it still lives: a second round trip for each statement, which
//! costs both sides as much as a look-up by key. The statements of `sql` therefore run over connections that are not in its
//! hands, each prepared once on each; SeaORM keeps entities, writes and migrations.
//!
//! Called by `sql` and `replica`. Guarantees: never more connections than allowed; one whose statement failed or was given up
//! half-way is not used again, whatever was wrong with it; one that has rested is asked first, so that a server that was
//! restarted costs nobody an answer.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sea_orm::QueryResult;
use sqlx::{
    AssertSqlSafe, Connection,
    postgres::{PgConnectOptions, PgConnection},
};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Result,
    sql::{Param, Sql},
};

/// How long a connection may rest before it is asked whether it lives, and before it is closed.
const RESTED: Duration = Duration::from_secs(5);
const FORGOTTEN: Duration = Duration::from_secs(600);
/// How old a connection gets: its process in the server keeps what it has learnt.
const OLD: Duration = Duration::from_secs(1800);

/// The connections to one server.
pub(super) struct Kept {
    options: PgConnectOptions,
    /// Those that are not in use, the one that rested the longest first.
    idle: Mutex<Vec<Idle>>,
    permits: Semaphore,
    /// How long a statement waits for a connection.
    patience: Duration,
}

struct Idle {
    connection: PgConnection,
    made: Instant,
    since: Instant,
}

impl Kept {
    /// None is made before it is needed.
    pub fn new(options: PgConnectOptions, connections: u32, patience: Duration) -> Self {
        Self { options, idle: Mutex::default(), permits: Semaphore::new(connections.max(2) as usize), patience }
    }

    /// The rows of a statement.
    pub async fn rows(&self, sql: &Sql) -> Result<Vec<QueryResult>> {
        let (_permit, mut lent) = timeout(self.patience, async {
            let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
            Ok::<_, sqlx::Error>((permit, self.take().await?))
        })
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        let mut query = sqlx::query(AssertSqlSafe(sql.as_str().to_owned()));
        for param in sql.params() {
            query = match param {
                Param::Text(text) => query.bind(text),
                Param::Integer(number) => query.bind(number),
                Param::Number(number) => query.bind(number),
                Param::Bytes(bytes) => query.bind(bytes),
                Param::Null => query.bind(None::<&str>),
                Param::NoInteger => query.bind(None::<i64>),
                Param::NoNumber => query.bind(None::<f64>),
            };
        }
        let rows = query.fetch_all(&mut lent.connection).await?;
        self.put_back(lent);
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }

    async fn take(&self) -> std::result::Result<Idle, sqlx::Error> {
        // Not in the loop's head, which would hold the lock through its body.
        let next = || self.lock().pop();
        while let Some(mut idle) = next() {
            if idle.since.elapsed() < RESTED || idle.connection.ping().await.is_ok() {
                return Ok(idle);
            }
        }
        let connection = PgConnection::connect_with(&self.options).await?;
        Ok(Idle { connection, made: Instant::now(), since: Instant::now() })
    }

    fn put_back(&self, mut lent: Idle) {
        if self.permits.is_closed() || lent.made.elapsed() > OLD {
            return;
        }
        lent.since = Instant::now();
        let mut idle = self.lock();
        if idle.first().is_some_and(|first| first.since.elapsed() > FORGOTTEN) {
            idle.remove(0);
        }
        idle.push(lent);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connections; whoever asks for one afterwards is refused.
    pub async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.lock());
        for Idle { connection, .. } in idle {
            if let Err(error) = connection.close().await {
                tracing::debug!(%error, "a connection could not be closed in order");
            }
        }
    }
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
        let process = async || {
            let rows = kept.rows(&Sql::fixed("SELECT pg_backend_pid()")).await.unwrap();
            rows[0].try_get_by_index::<i32>(0).unwrap()
        };
        let first = process().await;
        assert_eq!(process().await, first);
        let many: std::collections::BTreeSet<i32> = join_all((0..20).map(|_| process())).await.into_iter().collect();
        assert!(many.len() <= 2, "{many:?}");
        for _ in 0..many.len() {
            assert!(kept.rows(&Sql::fixed("SELECT 1 / 0")).await.is_err());
        }
        assert!(!many.contains(&process().await));
        let given_up = tokio::time::timeout(Duration::from_millis(50), kept.rows(&Sql::fixed("SELECT pg_sleep(60)"))).await;
        assert!(given_up.is_err());
        let one = process().await;
        kept.lock()[0].since -= RESTED;
        fixture.execute(&format!("SELECT pg_terminate_backend({one})")).await.unwrap();
        assert_ne!(process().await, one);
        kept.close().await;
        assert!(matches!(kept.rows(&Sql::fixed("SELECT 1")).await, Err(Error::Unavailable(_))));
    }
}
