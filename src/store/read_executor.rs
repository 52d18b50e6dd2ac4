//! The executor of reads: runs a statement on the reader pool of SQLite, on a standby, or on the pipelined connections to PostgreSQL.

use sea_orm::{
    ColumnTrait, DbBackend, ExprTrait,
    sea_query::{Expr, Func},
};
use tokio_postgres::Row;

use crate::store::{
    db::{Db, Reads},
    error::{Error, Result},
    parameterised_sql::{RowBound, Sql},
    postgres::{pipelined_clients::PipelinedConnections, pipelined_connection::RowSink},
    row_decoding::Cells,
};

/// A sink for the rows that a statement on PostgreSQL returns. It decodes each row on arrival. Once a row cannot be decoded, the sink keeps
/// only the error.
struct RowDecoder<T, D> {
    decode: D,
    rows: Result<Vec<T>>,
}

impl<T: Send, D: Fn(&mut Cells<'_>) -> Result<T> + Send> RowSink for RowDecoder<T, D> {
    fn begin(&mut self) {
        self.rows = Ok(Vec::new());
    }

    fn take(&mut self, row: Row) {
        let Ok(rows) = &mut self.rows else { return };
        match (self.decode)(&mut Cells::postgres(&row)) {
            Ok(decoded) => rows.push(decoded),
            Err(error) => self.rows = Err(error),
        }
    }
}

impl Db {
    /// Runs a read statement and returns all its rows, decoded.
    pub(in crate::store) async fn all<T, D>(&self, mut sql: Sql, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        if self.statement_limit.as_ref().is_some_and(|limit| limit.all) && matches!(sql.row_bound(), RowBound::Keys) {
            sql.unbounded();
        }
        let permits = self.statement_limit.as_ref().map(|limit| &limit.permits).filter(|_| !matches!(sql.row_bound(), RowBound::Keys));
        let outcome = match &self.reads {
            Reads::Sqlite(readers) => {
                self.count_statement();
                readers.all(sql, permits, decode).await
            }
            // Boxed: this future is large and would enlarge every future that awaits it, also on SQLite. A future is moved several times
            // during a request, and moving a large future costs time.
            Reads::Postgres(lines) => {
                sql = self.with_coordinator_snapshot(sql).await?;
                let mut decoded = RowDecoder { decode, rows: Ok(Vec::new()) };
                let read = async {
                    let _permit = match permits {
                        // `acquire` fails only on a closed semaphore, and nothing closes this one.
                        Some(permits) => permits.acquire().await.ok(),
                        None => None,
                    };
                    self.each_row(lines, &sql, &mut decoded).await
                };
                Box::pin(read).await.and(decoded.rows)
            }
        };
        // The readiness check reads `last_read_failure`. `Unusable` is not recorded, since one damaged page does not make the server
        // unready. The readiness check also runs `prove_usable`, which finds damage that concerns all requests.
        outcome.inspect_err(|error| {
            if matches!(error, Error::Failing(_)) {
                self.last_read_failure.note(error);
            }
        })
    }

    /// Runs a statement on PostgreSQL and passes its rows to `to`. Runs it on the standby first if this handle reads there, and on the
    /// primary if the standby fails.
    pub(in crate::store) async fn each_row(&self, lines: &PipelinedConnections, sql: &Sql, to: &mut dyn RowSink) -> Result<()> {
        self.count_statement();
        let has_answered = match self.replica() {
            Some(replica) => replica.each_row(sql, to).await,
            None => false,
        };
        if has_answered { Ok(()) } else { lines.each_row(sql, to).await }
    }

    fn count_statement(&self) {
        if let Some(on_statement) = &self.on_statement {
            on_statement();
        }
    }

    /// Runs a read statement and returns its first row, decoded.
    pub(in crate::store) async fn first<T, D>(&self, sql: Sql, decode: D) -> Result<Option<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        Ok(self.all(sql, decode).await?.into_iter().next())
    }

    /// Returns the condition that `column` contains `needle` at any position. No character of `needle` is a wildcard.
    pub(in crate::store) fn contains(&self, column: impl ColumnTrait, needle: String) -> Expr {
        let find = if self.backend() == DbBackend::Sqlite { "instr" } else { "strpos" };
        Expr::from(Func::cust(find).arg(Expr::col(column.as_column_ref())).arg(needle)).gt(0_i64)
    }

    /// Appends a condition: `column` contains `needle` at any position. No character of `needle` is a wildcard. Also records that no key
    /// limits the rows that the statement reads ([`RowBound::Rows`]).
    pub(in crate::store) fn push_contains(&self, sql: &mut Sql, column: &str, needle: &str) {
        let find = if self.backend() == DbBackend::Sqlite { "instr(" } else { "strpos(" };
        sql.unbounded().push(find).push(column).push(", ").text(needle).push(") > 0");
    }
}
