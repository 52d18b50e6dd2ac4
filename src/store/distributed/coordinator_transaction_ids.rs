//! Gives the transaction id and the snapshot of the coordinator (the node that programs connect to) to statements that run on other nodes.
//! `distributed` explains why.

use crate::store::{
    Db, Result,
    db::{Reads, Writes},
    parameterised_sql::{Param, Sql},
};

/// The first statement of a write transaction in a distributed database. The function exists only in such a database.
pub(in crate::store) const BEGIN_WRITE: &str = "SELECT begin_distributed_write()::text";

const IS_DISTRIBUTED: &str = "SELECT to_regproc('begin_distributed_write') IS NOT NULL";

/// The SQL for the snapshot of the node that runs a statement. [`Db::with_coordinator_snapshot`] replaces it.
const SNAPSHOT: &str = "pg_current_snapshot()";

impl Db {
    /// Finds out whether the tables are distributed over the nodes of a cluster. If so, prepares the connections for writes.
    pub(in crate::store) async fn detect_distribution(&self) -> Result<bool> {
        let Writes::Postgres(writes) = &self.writes else { return Ok(false) };
        let is_distributed = self.uncounted().first(Sql::fixed(IS_DISTRIBUTED), |cells| cells.take()).await? == Some(true);
        if is_distributed {
            writes.begin_with(BEGIN_WRITE);
        }
        Ok(is_distributed)
    }

    /// If the database is distributed and the statement reads a snapshot, returns the statement with the coordinator's snapshot as a bound
    /// value. Without this value, the statement would read the snapshot of the node that runs it.
    pub(in crate::store) async fn with_coordinator_snapshot(&self, mut sql: Sql) -> Result<Sql> {
        if let Reads::Postgres(coordinator) = &self.reads
            && self.is_distributed()
            && sql.text.contains(SNAPSHOT)
        {
            let rows = coordinator.rows(&Sql::fixed("SELECT pg_current_snapshot()::text")).await?;
            let snapshot = rows.first().map_or(Ok(String::new()), |row| row.try_get(0))?;
            sql.values.push(Param::Text(snapshot));
            sql.text = sql.text.replace(SNAPSHOT, &format!("${}::text::pg_snapshot", sql.values.len()));
        }
        Ok(sql)
    }
}
