//! A connection to PostgreSQL: pipelining, and a cache of prepared statements.
//!
//! sqlx runs one statement at a time on a connection and waits for its result. Each wait is a switch to the server's process and back,
//! which costs at least as much as a look-up by key (see `batched_lookup`). `tokio-postgres` sends a statement without waiting for earlier
//! results. SeaORM has connections of its own, made from the same options, for migrations and exports.
//!
//! Guarantees:
//! - A statement stays prepared while it is among the [`STATEMENTS`] most recently used statements of its connection. If two tasks use a
//!   new statement at the same time, it is prepared twice.
//! - A caller that stops waiting leaves the connection usable.
//!
//! Behind a connection pooler in transaction mode (`pooler_detection`) no statement stays prepared.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{
    TryStreamExt,
    future::{BoxFuture, maybe_done},
    poll,
};
use hashlink::LruCache;
use tokio::{
    task::{JoinHandle, consume_budget},
    time::timeout,
};
use tokio_postgres::{
    Client, Row, RowStream, Statement,
    types::{ToSql, Type},
};

use crate::store::{
    error::{is_outdated, reason},
    mutex::lock,
    parameterised_sql::{Param, Sql},
    slow_statements::StatementTimer,
};

/// How many statements a connection keeps prepared.
const STATEMENTS: usize = 256;
/// The time-out for an idle connection to respond, and for a connection to close.
const PROMPT: Duration = Duration::from_secs(1);

/// A command that does nothing.
pub(in crate::store) const NOTHING: &str = "";

pub(in crate::store) type PostgresResult<T> = std::result::Result<T, tokio_postgres::Error>;

/// Whether the rows that a connection returns may be long. If so, the connection does fewer reads and writes in one poll (`IO_PER_POLL`).
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum RowLength {
    Short,
    /// The rows contain stored texts, which may be long.
    Long,
}

/// The most reads and writes in one poll of a connection whose rows may be long. The runtime allows 128, whatever their size. With long
/// rows, so many would occupy the runtime's thread for too long.
const IO_PER_POLL: usize = 4;

/// The number of operations that Tokio allows a task in one poll (its cooperative budget).
const COOP_BUDGET: usize = 128;

/// Runs `work` so that each poll has only `IO_PER_POLL` operations of Tokio's budget: the rest of the budget is consumed before the poll.
async fn few_reads_at_a_time<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|task| {
        for _ in IO_PER_POLL..COOP_BUDGET {
            _ = pin!(consume_budget()).poll(task);
        }
        work.as_mut().poll(task)
    })
    .await
}

/// A connection on which several statements can be in flight, with its prepared statements.
pub(in crate::store) struct Connection {
    client: Client,
    known: Mutex<PreparedStatements>,
    outdated: Arc<AtomicU64>,
    /// Whether a connection pooler lends sessions of the server to several connections, so that a named statement could be missing in a
    /// session, or be another connection's.
    is_pooled: bool,
    served: JoinHandle<()>,
    /// The server counts its open connections by the clones of this handle.
    _counted: Arc<()>,
}

/// Receives the rows of a statement as they arrive. A sink can decode each row at once, and so need not keep all rows in their wire format.
pub(in crate::store) trait RowSink: Send {
    /// Called when the statement begins, or begins again after its connection was lost.
    fn begin(&mut self);
    fn take(&mut self, row: Row);
}

impl RowSink for Vec<Row> {
    fn begin(&mut self) {
        self.clear();
    }

    fn take(&mut self, row: Row) {
        self.push(row);
    }
}

/// The result of a statement: its rows, and how many rows it changed.
#[derive(Default)]
pub(in crate::store) struct QueryResult {
    pub rows: Vec<Row>,
    pub affected: u64,
}

/// Awaits futures and returns their outcomes in order. The futures are polled for the first time in the same order, since the first poll of
/// a future sends its statement.
async fn in_order<T>(flying: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut begun: Vec<_> = flying.into_iter().map(maybe_done).collect();
    for one in &mut begun {
        _ = poll!(&mut *one);
    }
    let mut outcomes = Vec::with_capacity(begun.len());
    for mut one in begun {
        (&mut one).await;
        outcomes.extend(Pin::new(&mut one).take_output());
    }
    outcomes
}

/// How a statement is prepared.
enum Preparation<'a> {
    /// As a named statement of the session, which later uses of the same text share.
    Named(Statement),
    /// As the unnamed statement, sent together with its execution. Nothing stays in the session.
    WithEachUse(&'a str),
}

/// The prepared statements of a connection.
struct PreparedStatements {
    /// The statements by their text.
    statements: LruCache<String, Statement>,
    /// The count of outdated statements (`Server::outdated`) when this cache was last emptied. If that count has become higher, the cache
    /// is emptied at its next use.
    outdated: u64,
}

impl Connection {
    /// Takes over a connection that was opened, and runs its protocol in a task. `outdated` is the count `Server::outdated` of the
    /// connection's server.
    pub(super) fn new(
        client: Client,
        serving: BoxFuture<'static, PostgresResult<()>>,
        rows: RowLength,
        outdated: &Arc<AtomicU64>,
        is_pooled: bool,
        counted: Arc<()>,
    ) -> Self {
        let served = tokio::spawn(async move {
            let ended = match rows {
                RowLength::Short => serving.await,
                RowLength::Long => few_reads_at_a_time(serving).await,
            };
            if let Err(error) = ended {
                tracing::debug!(error = reason(&error), "a connection to PostgreSQL ended");
            }
        });
        let known = PreparedStatements { statements: LruCache::new(STATEMENTS), outdated: outdated.load(Ordering::Relaxed) };
        Self { client, known: Mutex::new(known), outdated: outdated.clone(), is_pooled, served, _counted: counted }
    }

    /// Runs a statement outside of a transaction and passes its rows to `to`. If the schema has changed since the statement was prepared,
    /// it is prepared and run once more.
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> PostgresResult<()> {
        let _watch = StatementTimer::one(sql);
        match self.noted(self.send(sql, to).await) {
            Err(error) if is_outdated(&error) => self.noted(self.send(sql, to).await),
            outcome => outcome,
        }
    }

    /// Runs a statement outside of a transaction and returns its rows.
    pub async fn rows(&self, sql: &Sql) -> PostgresResult<Vec<Row>> {
        let mut rows = Vec::new();
        self.each_row(sql, &mut rows).await?;
        Ok(rows)
    }

    /// Like [`Connection::rows`], but leaves no named statement in the session.
    pub async fn rows_unnamed(&self, sql: &Sql) -> PostgresResult<Vec<Row>> {
        self.rows_of(&Preparation::WithEachUse(sql.as_str()), sql.params()).await?.try_collect().await
    }

    async fn send(&self, sql: &Sql, to: &mut dyn RowSink) -> PostgresResult<()> {
        to.begin();
        let statement = self.prepared(sql).await?;
        let mut stream = pin!(self.rows_of(&statement, sql.params()).await?);
        while let Some(row) = stream.as_mut().try_next().await? {
            to.take(row);
        }
        Ok(())
    }

    /// Sends one pipelined batch of a transaction: the command `begin`, statements, and the command `end`. Returns the results of the
    /// statements in order. PostgreSQL runs them one after the other. The first failure is returned: PostgreSQL runs nothing after it,
    /// and treats a COMMIT as a ROLLBACK.
    pub async fn run_pipelined(
        &self,
        begin: Option<&'static str>,
        statements: &[Sql],
        end: Option<&'static str>,
    ) -> PostgresResult<Vec<QueryResult>> {
        let _watch = StatementTimer::several(statements);
        self.noted(self.send_pipelined(begin, statements, end).await)
    }

    async fn send_pipelined(
        &self,
        begin: Option<&'static str>,
        statements: &[Sql],
        end: Option<&'static str>,
    ) -> PostgresResult<Vec<QueryResult>> {
        // All statements are prepared first: otherwise the command `end` could be sent before a statement that is still being prepared.
        let mut prepared = Vec::with_capacity(statements.len());
        for sql in statements {
            prepared.push((self.prepared(sql).await?, sql.params()));
        }
        let command = |text| -> BoxFuture<'_, PostgresResult<Option<QueryResult>>> {
            Box::pin(async move { self.command(text).await.map(|()| None) })
        };
        let mut flying: Vec<BoxFuture<'_, PostgresResult<Option<QueryResult>>>> = begin.into_iter().map(command).collect();
        for (statement, params) in &prepared {
            flying.push(Box::pin(async move { self.answer(statement, params).await.map(Some) }));
        }
        flying.extend(end.into_iter().map(command));
        let mut answers = Vec::with_capacity(statements.len());
        for outcome in in_order(flying).await {
            answers.extend(outcome?);
        }
        Ok(answers)
    }

    async fn answer(&self, statement: &Preparation<'_>, params: &[Param]) -> PostgresResult<QueryResult> {
        let mut stream = pin!(self.rows_of(statement, params).await?);
        let mut rows = Vec::new();
        while let Some(row) = stream.as_mut().try_next().await? {
            rows.push(row);
        }
        Ok(QueryResult { rows, affected: stream.rows_affected().unwrap_or(0) })
    }

    /// Returns the outcome unchanged. If it is the error of a prepared statement that no longer fits the schema, every connection to the
    /// server prepares its statements anew.
    fn noted<T>(&self, outcome: PostgresResult<T>) -> PostgresResult<T> {
        if outcome.as_ref().is_err_and(is_outdated) {
            let seen = lock(&self.known).outdated;
            // If another connection has counted the same schema change already, the count stays.
            _ = self.outdated.compare_exchange(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        outcome
    }

    /// Runs a command without values or rows.
    pub async fn command(&self, text: &'static str) -> PostgresResult<()> {
        self.client.batch_execute(text).await
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub async fn script(&self, statements: &str) -> PostgresResult<()> {
        self.client.batch_execute(statements).await
    }

    async fn rows_of(&self, statement: &Preparation<'_>, params: &[Param]) -> PostgresResult<RowStream> {
        match statement {
            Preparation::Named(statement) => self.client.query_raw(statement, params.iter().map(value)).await,
            Preparation::WithEachUse(text) => {
                self.client.query_typed_raw(text, params.iter().map(|param| (value(param), type_of(param)))).await
            }
        }
    }

    async fn prepared<'a>(&self, sql: &'a Sql) -> PostgresResult<Preparation<'a>> {
        if self.is_pooled {
            return Ok(Preparation::WithEachUse(sql.as_str()));
        }
        let known = {
            let mut known = lock(&self.known);
            let outdated = self.outdated.load(Ordering::Relaxed);
            if known.outdated != outdated {
                known.statements.clear();
                known.outdated = outdated;
            }
            known.statements.get(sql.as_str()).cloned()
        };
        if let Some(statement) = known {
            return Ok(Preparation::Named(statement));
        }
        let types: Vec<Type> = sql.params().iter().map(type_of).collect();
        let statement = self.client.prepare_typed(sql.as_str(), &types).await?;
        lock(&self.known).statements.insert(sql.as_str().to_owned(), statement.clone());
        Ok(Preparation::Named(statement))
    }

    /// Returns whether an idle connection responds in time.
    pub async fn answers(&self) -> bool {
        matches!(timeout(PROMPT, self.command(NOTHING)).await, Ok(Ok(())))
    }

    /// Returns whether the connection is known to be lost.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Closes the connection once the statements in flight have completed. Waits for that no longer than `PROMPT`.
    pub async fn close(self) {
        drop((self.client, self.known));
        if timeout(PROMPT, self.served).await.is_err() {
            tracing::debug!("a connection could not be closed in order");
        }
    }
}

fn type_of(param: &Param) -> Type {
    match param {
        Param::Text(_) | Param::Null => Type::TEXT,
        Param::Integer(_) | Param::NoInteger => Type::INT8,
        Param::Number(_) | Param::NoNumber => Type::FLOAT8,
        Param::Bytes(_) => Type::BYTEA,
        Param::Flag(_) | Param::NoFlag => Type::BOOL,
    }
}

fn value(param: &Param) -> &(dyn ToSql + Sync) {
    match param {
        Param::Text(text) => text,
        Param::Integer(number) => number,
        Param::Number(number) => number,
        Param::Bytes(bytes) => bytes,
        Param::Null => &None::<&str>,
        Param::NoInteger => &None::<i64>,
        Param::NoNumber => &None::<f64>,
        Param::Flag(flag) => flag,
        Param::NoFlag => &None::<bool>,
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use sea_orm::DbBackend;

    use super::*;
    use crate::store::{
        fixture::Fixture,
        postgres::{address::ServerAddress, connect_to_primary::Server},
    };

    #[tokio::test]
    async fn values_round_trip_and_the_number_of_prepared_statements_is_limited() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let server = Server::of(&ServerAddress::from_str(&fixture.url).unwrap());
        let connection = server.connect(RowLength::Short).await.unwrap().unwrap();
        let params = [
            Param::Text("ü'\\".to_owned()),
            Param::Integer(i64::MIN),
            Param::Number(-0.1),
            Param::Bytes(vec![0, 255]),
            Param::Null,
            Param::NoInteger,
            Param::NoNumber,
        ];
        let sql = params.into_iter().fold(Sql::fixed("SELECT $1, $2, $3, $4, $5, $6, $7"), Sql::with);
        for _ in 0..2 {
            let rows = connection.rows(&sql).await.unwrap();
            let row = &rows[0];
            assert_eq!((row.get::<_, String>(0), row.get::<_, i64>(1), row.get::<_, f64>(2)), ("ü'\\".to_owned(), i64::MIN, -0.1));
            assert_eq!(row.get::<_, Vec<u8>>(3), [0, 255]);
            assert_eq!((row.get(4), row.get(5), row.get(6)), (None::<String>, None::<i64>, None::<f64>));
        }
        for i in 0..STATEMENTS + 10 {
            connection.rows(&Sql::fixed(&format!("SELECT {i}"))).await.unwrap();
        }
        let kept = connection.rows(&Sql::fixed("SELECT COUNT(*) FROM pg_prepared_statements")).await.unwrap()[0].get::<_, i64>(0);
        assert_eq!(usize::try_from(kept).unwrap(), STATEMENTS);
        connection.close().await;
    }
}
