//! The executor of reads: runs a statement on the readers of SQLite, on a standby, or on the clients of PostgreSQL.

use std::sync::Arc;

use sea_orm::{
    ColumnTrait, DbBackend, ExprTrait,
    sea_query::{Expr, Func},
};
use tokio::sync::Semaphore;

use crate::store::{
    db::{Db, Reads},
    error::{Error, Result},
    postgres::pipelined_clients::Lines,
    rows::Cells,
    sql::{Reach, Sql},
};

impl Db {
    /// Every row of a statement, each through `decode`.
    pub(in crate::store) async fn all<T, D>(&self, mut sql: Sql, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        if self.share().is_some_and(|share| share.all) && matches!(sql.reach(), Reach::Keys) {
            sql.unbounded();
        }
        let share = self.share().map(|share| &share.permits).filter(|_| !matches!(sql.reach(), Reach::Keys));
        let outcome = match self.reads() {
            Reads::Sqlite(readers) => {
                self.count_statement();
                readers.all(sql, share, decode).await
            }
            // In a box since it is large, and every future around it is moved as a whole several times a request, on SQLite too.
            // Each row is given back as soon as it was decoded: a long answer is not in memory twice.
            Reads::Postgres(lines) => Box::pin(self.rows_within(share, lines, &sql))
                .await
                .and_then(|rows| rows.into_iter().map(|row| decode(&mut Cells::postgres(&row))).collect()),
        };
        // A damaged page is no reason to turn every request away: what all need is seen by a look at the database.
        outcome.inspect_err(|error| {
            if matches!(error, Error::Failing(_)) {
                self.last_read_failure().note(error);
            }
        })
    }

    /// [`Self::rows`] once its store's share has room.
    async fn rows_within(&self, share: Option<&Arc<Semaphore>>, lines: &Lines, sql: &Sql) -> Result<Vec<tokio_postgres::Row>> {
        let _permit = match share {
            // Nothing closes it.
            Some(share) => share.acquire().await.ok(),
            None => None,
        };
        self.rows(lines, sql).await
    }

    /// The rows of a statement on PostgreSQL.
    pub(in crate::store) async fn rows(&self, lines: &Lines, sql: &Sql) -> Result<Vec<tokio_postgres::Row>> {
        self.count_statement();
        let read = match self.replica() {
            Some(replica) => replica.rows(sql).await,
            None => None,
        };
        match read {
            Some(rows) => Ok(rows),
            None => lines.rows(sql).await,
        }
    }

    fn count_statement(&self) {
        if let Some(on_statement) = self.on_statement() {
            on_statement();
        }
    }

    /// The first row of a statement.
    pub(in crate::store) async fn first<T, D>(&self, sql: Sql, decode: D) -> Result<Option<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        Ok(self.all(sql, decode).await?.into_iter().next())
    }

    /// A test that `column` contains `needle`, wherever and whatever its characters are.
    pub(in crate::store) fn contains(&self, column: impl ColumnTrait, needle: String) -> Expr {
        let find = if self.backend() == DbBackend::Sqlite { "instr" } else { "strpos" };
        Expr::from(Func::cust(find).arg(Expr::col(column.as_column_ref())).arg(needle)).gt(0_i64)
    }

    /// Pushes a test that `column` contains `needle`, wherever and whatever its characters are.
    pub(in crate::store) fn push_contains(&self, sql: &mut Sql, column: &str, needle: &str) {
        let find = if self.backend() == DbBackend::Sqlite { "instr(" } else { "strpos(" };
        sql.unbounded().push(find).push(column).push(", ").text(needle).push(") > 0");
    }
}
