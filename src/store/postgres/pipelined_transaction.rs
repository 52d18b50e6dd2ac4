//! Transactions on PostgreSQL: batches of pipelined statements on a connection of the pool.
//!
//! The statements of a batch are sent one after the other, without waiting for results. BEGIN is sent with the first batch and COMMIT with
//! the last one. Each round trip that is saved also saves a process switch on both sides.
//!
//! Guarantees:
//! - A transaction that is dropped without [`BegunTransaction::commit`] leaves nothing behind. Its connection returns to the pool once the
//!   server has rolled the transaction back; if the rollback fails, the connection is closed.
//! - A transaction of which a statement failed is never committed.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::sync::Mutex;
use tokio_postgres::Row;

use crate::store::{
    Error, Result,
    error::{is_lost, is_outdated},
    parameterised_sql::Sql,
    postgres::{
        pipelined_connection::{PostgresResult, QueryResult},
        pool::{CheckedOutConnection, ConnectionPool},
    },
};

pub(in crate::store) struct BegunTransaction {
    kept: ConnectionPool,
    /// The connection, behind a lock so that the batches of one transaction run one after the other. `None` once the transaction has ended.
    checked_out: Mutex<Option<CheckedOutConnection>>,
    /// Whether BEGIN was sent.
    begun: AtomicBool,
    /// Whether a statement failed. PostgreSQL reports no error for the COMMIT of such a transaction, although it rolls the transaction
    /// back.
    failed: AtomicBool,
}

const BEGIN: &str = "BEGIN";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

fn ended() -> Error {
    Error::Unavailable("the transaction has ended".to_owned())
}

impl ConnectionPool {
    /// Checks out a connection for a transaction. BEGIN is sent with the first statements.
    pub async fn begin(&self) -> Result<BegunTransaction> {
        let checked_out = Mutex::new(Some(self.check_out().await?));
        Ok(BegunTransaction { kept: self.clone(), checked_out, begun: AtomicBool::new(false), failed: AtomicBool::new(false) })
    }
}

impl BegunTransaction {
    fn noted<T>(&self, outcome: PostgresResult<T>) -> Result<T> {
        outcome.map_err(|error| {
            let error = error.into();
            self.failed.store(true, Ordering::Relaxed);
            self.kept.last_failure().note(&error);
            error
        })
    }

    /// Sends statements in one pipelined batch; returns their results in order. The first batch is repeated if its connection was idle and
    /// turns out to be lost, and once if the schema has changed since its statements were prepared. In both cases the failed attempt
    /// changed nothing.
    pub async fn run_pipelined(&self, statements: &[Sql]) -> Result<Vec<QueryResult>> {
        let mut place = self.checked_out.lock().await;
        let mut prepared_anew = false;
        loop {
            let checked_out = place.as_mut().ok_or_else(ended)?;
            let is_first = !self.begun.swap(true, Ordering::Relaxed);
            let opening = self.kept.opening().filter(|_| is_first);
            let batch = match opening {
                Some(opening) => Cow::from_iter(std::iter::once(opening).chain(statements).cloned()),
                None => Cow::Borrowed(statements),
            };
            match checked_out.connection().run_pipelined(is_first.then_some(BEGIN), &batch, None).await {
                Err(error) if is_first && is_lost(&error) && checked_out.has_served() => {
                    place.take().into_iter().for_each(CheckedOutConnection::discard);
                }
                Err(error) if is_first && is_outdated(&error) && !prepared_anew => {
                    prepared_anew = true;
                    checked_out.connection().command(ROLLBACK).await?;
                }
                outcome => {
                    let mut answers = self.noted(outcome)?;
                    answers.drain(..usize::from(opening.is_some()));
                    return Ok(answers);
                }
            }
            self.begun.store(false, Ordering::Relaxed);
            if place.is_none() {
                *place = Some(self.kept.check_out().await?);
            }
        }
    }

    pub async fn rows(&self, sql: &Sql) -> Result<Vec<Row>> {
        Ok(self.run_pipelined(std::slice::from_ref(sql)).await?.pop().unwrap_or_default().rows)
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub async fn run(&self, sql: &Sql) -> Result<u64> {
        Ok(self.run_pipelined(std::slice::from_ref(sql)).await?.pop().unwrap_or_default().affected)
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub async fn script(&self, statements: &str) -> Result<()> {
        self.run_pipelined(&[]).await?;
        let place = self.checked_out.lock().await;
        self.noted(place.as_ref().ok_or_else(ended)?.connection().script(statements).await)
    }

    /// Runs the last statements and commits the transaction; returns the results of these statements.
    pub async fn commit(self, statements: &[Sql]) -> Result<Vec<QueryResult>> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Damaged("a transaction was to be committed of which a statement had failed".to_owned()));
        }
        if !self.begun.load(Ordering::Relaxed) {
            if statements.is_empty() {
                return Ok(Vec::new());
            }
            self.run_pipelined(&[]).await?;
        }
        let mut place = self.checked_out.lock().await;
        let checked_out = place.as_ref().ok_or_else(ended)?;
        let answers = self.noted(checked_out.connection().run_pipelined(None, statements, Some(COMMIT)).await)?;
        drop(place.take());
        Ok(answers)
    }

    /// Rolls the transaction back, and waits until that is done.
    pub async fn rollback(self) -> Result<()> {
        let mut place = self.checked_out.lock().await;
        if self.begun.load(Ordering::Relaxed) {
            place.as_ref().ok_or_else(ended)?.connection().command(ROLLBACK).await?;
        }
        drop(place.take());
        Ok(())
    }
}

impl Drop for BegunTransaction {
    fn drop(&mut self) {
        let Some(checked_out) = self.checked_out.get_mut().take() else { return };
        if self.begun.load(Ordering::Relaxed) {
            checked_out.recover(ROLLBACK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{str::FromStr, time::Duration};

    use sea_orm::DbBackend;
    use tokio::time::timeout;

    use super::*;
    use crate::store::{
        fixture::Fixture,
        postgres::{address::ServerAddress, connect_to_primary::Server},
    };

    fn pool(fixture: &Fixture, connections: u32) -> ConnectionPool {
        let server = Server::of(&ServerAddress::from_str(&fixture.url).unwrap());
        ConnectionPool::new(server.into(), connections, Duration::from_secs(5))
    }

    #[tokio::test]
    async fn an_uncommitted_transaction_is_rolled_back_and_its_connection_is_reused() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let kept = pool(&fixture, 2);
        let process = async |begun: &BegunTransaction| {
            let rows = begun.rows(&Sql::fixed("SELECT pg_backend_pid()")).await.unwrap();
            rows[0].get::<_, i32>(0)
        };
        let rename = async |begun: &BegunTransaction, name: &str| {
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
        // The connection of the dropped transaction may still be rolling back, and is then not the next one from the pool. So the test
        // checks out both connections of the pool.
        let both = [kept.begin().await.unwrap(), kept.begin().await.unwrap()];
        let mut seen = [process(&both[0]).await, process(&both[1]).await];
        seen.sort_unstable();
        assert!(seen.contains(&first), "{first} is none of {seen:?}");
        assert_eq!(name().await, "Shop");
        let [one, other] = both;
        one.commit(&[]).await.unwrap();
        rename(&other, "Taken back").await;
        other.rollback().await.unwrap();
        assert_eq!(name().await, "Shop");
        // Tests a transaction whose statement failed, and a transaction whose caller stopped waiting.
        let [failed, left] = [kept.begin().await.unwrap(), kept.begin().await.unwrap()];
        rename(&failed, "Failed").await;
        assert!(failed.rows(&Sql::fixed("SELECT 1 / 0")).await.is_err());
        assert!(failed.commit(&[]).await.is_err());
        assert!(timeout(Duration::from_millis(50), left.rows(&Sql::fixed("SELECT pg_sleep(0.5)"))).await.is_err());
        drop(left);
        let begun = kept.begin().await.unwrap();
        assert!(seen.contains(&process(&begun).await));
        assert_eq!(rename(&begun, "Renamed").await, 1);
        begun.commit(&[]).await.unwrap();
        assert_eq!(name().await, "Renamed");
        kept.close().await;
        assert!(matches!(kept.begin().await, Err(Error::Unavailable(_))));
    }

    /// Simulates a connection pooler that keeps no prepared statements: each run fails with the error of a missing prepared statement.
    #[tokio::test]
    async fn a_first_batch_whose_prepared_statements_are_always_missing_is_repeated_once() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let kept = pool(&fixture, 1);
        let begun = kept.begin().await.unwrap();
        begun.script("CREATE SEQUENCE pg_temp.runs").await.unwrap();
        let gone = "CREATE FUNCTION pg_temp.gone() RETURNS bigint LANGUAGE plpgsql AS \
                    'BEGIN PERFORM nextval(''pg_temp.runs''); RAISE EXCEPTION ''gone'' USING ERRCODE = ''26000''; END'";
        begun.script(gone).await.unwrap();
        begun.commit(&[]).await.unwrap();
        let begun = kept.begin().await.unwrap();
        let flight = timeout(Duration::from_secs(20), begun.rows(&Sql::fixed("SELECT pg_temp.gone()"))).await;
        assert!(matches!(flight, Ok(Err(Error::Unavailable(_)))), "{flight:?}");
        begun.rollback().await.unwrap();
        let runs = kept.begin().await.unwrap().rows(&Sql::fixed("SELECT last_value FROM pg_temp.runs")).await.unwrap();
        assert_eq!(runs[0].get::<_, i64>(0), 2);
    }
}
