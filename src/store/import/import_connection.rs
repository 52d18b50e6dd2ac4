//! Statement executor: runs the statements of an import, on a connection of its own to SQLite or in a transaction on PostgreSQL. Called by
//! the other modules of the import.
//!
//! On SQLite an import has a connection of its own, which keeps every other writer out and has a larger cache than a request needs. A
//! statement is prepared once, and run once for each row: for one statement with many rows, SQLite would keep the former content of every
//! changed page, to undo the statement if it fails. The statements run on the caller's thread, since sqlx would copy each value three times
//! on its way to another thread. On PostgreSQL an import has a transaction, in which one statement takes many rows (see `bulk_statements`).

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use sea_orm::{DbBackend, Value};

use crate::store::{
    Db, Result,
    db::Writes,
    import::numbered,
    parameterised_sql::{Param, Sql},
    postgres::pipelined_transaction::BegunTransaction,
    row_decoding::Cells,
    sql_from_entities::param,
    sqlite::{
        connection::bind,
        group_commit::{ExclusiveTransaction, Writer},
    },
};

/// How many prepared statements are cached: two for each table, and the statements of `release_unique_values`, `clear` and `touch`.
const STATEMENTS: usize = 64;

/// PRAGMAs that set the size of the page caches, in KiB (as a negative number). A page cache holds the pages that the transaction has
/// changed and not written yet: the indexes of a large import outgrow the default of 2 MB. It also holds the pages that an import into a
/// large file reads again and again.
const PAGES: &str = "PRAGMA cache_size = -65536; PRAGMA temp.cache_size = -8192";

/// The PRAGMA that sets the size of the page cache before an index is built, and for the rest of the import. The cache is smaller, since
/// the sorter of the index may take as much memory again.
pub(super) const SORTING: &str = "PRAGMA cache_size = -32768";

pub(super) enum ImportConnection {
    /// In a mutex: a SQLite connection is not `Sync`, but a future that holds a reference to the import must be `Send`.
    Sqlite(Mutex<ExclusiveTransaction>),
    Postgres(BegunTransaction),
}

impl ImportConnection {
    pub async fn open(db: &Db) -> Result<Self> {
        match &db.writes {
            Writes::Sqlite(writer) => Self::sqlite(writer).await,
            Writes::Postgres(kept) => {
                let begun = kept.begin().await?;
                // The pooled connections for writes keep one generic plan for each statement. An import uses the default mode instead: a
                // plan that was made while a table had few rows would be kept while the import fills the table.
                begun.run(&Sql::fixed("SET LOCAL plan_cache_mode = auto")).await?;
                Ok(Self::Postgres(begun))
            }
        }
    }

    async fn sqlite(writer: &Writer) -> Result<Self> {
        let alone = writer.alone(PAGES).await?;
        alone.connection().set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Self::Sqlite(Mutex::new(alone)))
    }

    pub fn backend(&self) -> DbBackend {
        match self {
            Self::Sqlite(_) => DbBackend::Sqlite,
            Self::Postgres(_) => DbBackend::Postgres,
        }
    }

    /// Runs a statement once for each of `runs`. The bound values are `before`, then those of the run, then `after`.
    pub async fn run(&self, sql: &str, before: &[Value], runs: Vec<Vec<Value>>, after: &[Value]) -> Result<()> {
        if runs.is_empty() {
            return Ok(());
        }
        match self {
            Self::Sqlite(alone) => with(alone, |connection| {
                let mut statement = connection.prepare_cached(sql)?;
                for run in runs {
                    bind(&mut statement, &params(before, run, after)?)?;
                    statement.raw_execute()?;
                }
                Ok(())
            }),
            Self::Postgres(begun) => {
                let mut statement = Sql::fixed(&numbered(sql));
                for run in runs {
                    statement.values = params(before, run, after)?;
                    begun.run(&statement).await?;
                }
                Ok(())
            }
        }
    }

    /// Runs a statement as [`ImportConnection::run`] does, and returns the rows of all runs.
    pub async fn all<T>(
        &self,
        sql: &str,
        before: &[Value],
        runs: Vec<Vec<Value>>,
        after: &[Value],
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut decoded = Vec::new();
        if runs.is_empty() {
            return Ok(decoded);
        }
        match self {
            Self::Sqlite(alone) => with(alone, |connection| {
                let mut statement = connection.prepare_cached(sql)?;
                for run in runs {
                    bind(&mut statement, &params(before, run, after)?)?;
                    let mut rows = statement.raw_query();
                    while let Some(row) = rows.next()? {
                        decoded.push(decode(&mut Cells::sqlite(row))?);
                    }
                }
                Ok(())
            })?,
            Self::Postgres(begun) => {
                let mut statement = Sql::fixed(&numbered(sql));
                for run in runs {
                    statement.values = params(before, run, after)?;
                    for row in &begun.rows(&statement).await? {
                        decoded.push(decode(&mut Cells::postgres(row))?);
                    }
                }
            }
        }
        Ok(decoded)
    }

    pub async fn commit(self) -> Result<()> {
        match self {
            Self::Sqlite(alone) => alone.into_inner().unwrap_or_else(PoisonError::into_inner).commit().await,
            Self::Postgres(begun) => begun.commit(&[]).await.map(|_| ()),
        }
    }

    /// Rolls the transaction back.
    pub async fn rollback(self) -> Result<()> {
        match self {
            Self::Sqlite(alone) => alone.into_inner().unwrap_or_else(PoisonError::into_inner).rollback().await,
            Self::Postgres(begun) => begun.rollback().await,
        }
    }
}

fn with<T>(alone: &Mutex<ExclusiveTransaction>, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    work(alone.lock().unwrap_or_else(PoisonError::into_inner).connection())
}

/// Returns the values of one run as parameters.
fn params(before: &[Value], run: Vec<Value>, after: &[Value]) -> Result<Vec<Param>> {
    before.iter().cloned().chain(run).chain(after.iter().cloned()).map(param).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::Fixture;

    #[tokio::test]
    async fn an_import_does_not_force_generic_plans() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let mode = "SELECT current_setting('plan_cache_mode')";
        let Writes::Postgres(kept) = &fixture.db.writes else { unreachable!("of PostgreSQL") };
        let begun = kept.begin().await.unwrap();
        assert_eq!(begun.rows(&Sql::fixed(mode)).await.unwrap()[0].get::<_, String>(0), "force_generic_plan");
        begun.commit(&[]).await.unwrap();
        let way = ImportConnection::open(&fixture.db).await.unwrap();
        let found = way.all(mode, &[], vec![vec![]], &[], |cells| cells.take::<String>()).await.unwrap();
        assert_eq!(found, ["auto"]);
        way.rollback().await.unwrap();
    }
}
