//! Transactions on PostgreSQL, over the connections of `kept`: what `write` and `import` run on there.
//!
//! Guarantees: dropped without [`Begun::commit`], a transaction leaves nothing behind, and its connection serves again once the
//! server has taken it back, or is closed; one of whose statements failed is never told to be committed.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use tokio_postgres::Row;

use super::{
    Error, Result,
    kept::{Kept, Lent},
    postgres::Outcome,
    sql::Sql,
};

pub(super) struct Begun {
    kept: Kept,
    /// Behind a lock since statements of one transaction follow each other. Empty once it has ended.
    lent: Mutex<Option<Lent>>,
    /// PostgreSQL answers the commit of a transaction that failed as if nothing were wrong.
    failed: AtomicBool,
}

const ROLLBACK: &str = "ROLLBACK";

impl Kept {
    pub async fn begin(&self) -> Result<Begun> {
        let (lent, _) = self.first(&Sql::fixed("BEGIN"), ROLLBACK).await?;
        Ok(Begun { kept: self.clone(), lent: Mutex::new(Some(lent)), failed: AtomicBool::new(false) })
    }
}

impl Begun {
    async fn lent(&self) -> Result<MappedMutexGuard<'_, Lent>> {
        MutexGuard::try_map(self.lent.lock().await, Option::as_mut).map_err(|_| Error::Unavailable("the transaction has ended".to_owned()))
    }

    fn noted<T>(&self, outcome: Outcome<T>) -> Result<T> {
        if outcome.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        Ok(outcome?)
    }

    pub async fn rows(&self, sql: &Sql) -> Result<Vec<Row>> {
        self.noted(self.lent().await?.connection().rows_within(sql).await)
    }

    /// The number of rows that a statement changed.
    pub async fn run(&self, sql: &Sql) -> Result<u64> {
        self.noted(self.lent().await?.connection().run_within(sql).await)
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub async fn script(&self, statements: &str) -> Result<()> {
        self.noted(self.lent().await?.connection().script(statements).await)
    }

    pub async fn commit(self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Damaged("a transaction was to be committed of which a statement had failed".to_owned()));
        }
        self.end("COMMIT").await
    }

    /// Takes everything back, and waits for that.
    pub async fn rollback(self) -> Result<()> {
        self.end(ROLLBACK).await
    }

    async fn end(self, how: &'static str) -> Result<()> {
        self.lent().await?.connection().command(how).await?;
        if let Some(lent) = self.lent.lock().await.take() {
            self.kept.put_back(lent);
        }
        Ok(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(lent) = self.lent.get_mut().take() {
            self.kept.recover(lent, ROLLBACK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{str::FromStr, time::Duration};

    use sea_orm::DbBackend;
    use sqlx::postgres::PgConnectOptions;
    use tokio::time::timeout;

    use super::*;
    use crate::store::{fixture::Fixture, postgres::Server};

    #[tokio::test]
    async fn what_was_not_committed_is_gone_and_its_connection_serves_again() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let server = Server::of(&PgConnectOptions::from_str(&fixture.url).unwrap());
        let kept = Kept::new(server.into(), 2, Duration::from_secs(5));
        let process = async |begun: &Begun| {
            let rows = begun.rows(&Sql::fixed("SELECT pg_backend_pid()")).await.unwrap();
            rows[0].get::<_, i32>(0)
        };
        let rename = async |begun: &Begun, name: &str| {
            let mut sql = Sql::of(&fixture.store, "UPDATE stores SET name = ");
            sql.text(name).push(" WHERE id = $1");
            begun.run(&sql).await.unwrap()
        };
        let name = async || {
            let sql = Sql::of(&fixture.store, "SELECT name FROM stores WHERE id = $1");
            fixture.db.first(sql, |cells| cells.take::<String>()).await.unwrap().unwrap()
        };
        let begun = kept.begin().await.unwrap();
        let first = process(&begun).await;
        assert_eq!(rename(&begun, "Dropped").await, 1);
        drop(begun);
        // Of two connections one may still be at it.
        let both = [kept.begin().await.unwrap(), kept.begin().await.unwrap()];
        let mut seen = [process(&both[0]).await, process(&both[1]).await];
        seen.sort_unstable();
        assert!(seen.contains(&first), "{first} is none of {seen:?}");
        assert_eq!(name().await, "Shop");
        let [one, other] = both;
        one.commit().await.unwrap();
        rename(&other, "Taken back").await;
        other.rollback().await.unwrap();
        assert_eq!(name().await, "Shop");
        // One whose statement failed, and one that nobody waits for any more.
        let [failed, left] = [kept.begin().await.unwrap(), kept.begin().await.unwrap()];
        rename(&failed, "Failed").await;
        assert!(failed.rows(&Sql::fixed("SELECT 1 / 0")).await.is_err());
        assert!(failed.commit().await.is_err());
        assert!(timeout(Duration::from_millis(50), left.rows(&Sql::fixed("SELECT pg_sleep(0.5)"))).await.is_err());
        drop(left);
        let begun = kept.begin().await.unwrap();
        assert!(seen.contains(&process(&begun).await));
        assert_eq!(rename(&begun, "Renamed").await, 1);
        begun.commit().await.unwrap();
        assert_eq!(name().await, "Renamed");
        kept.close().await;
        assert!(matches!(kept.begin().await, Err(Error::Unavailable(_))));
    }
}
