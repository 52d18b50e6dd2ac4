//! A first commit in the log of a SQLite file.
//!
//! How many pages there are a reader learns from the log's last commit. As long as the log holds none, which is so from when a file
//! is opened until somebody writes, SQLite asks the system how long the file is, with each statement: a twelfth of what a ticket by
//! its id costs. A server writes down when keys were used, a minute after it began to serve; for the reads before that it commits
//! something that changes nothing.
//!
//! Called by `app`.

use super::{Db, Result, connect::Writes, sql::Sql, writer::Writer};

impl Db {
    /// Sees to it that the log holds a commit. On PostgreSQL there is nothing to do.
    pub async fn first_commit(&self) -> Result<()> {
        match self.writes() {
            Writes::Sqlite(writer) => commit(writer).await,
            Writes::Postgres(_) => Ok(()),
        }
    }
}

/// The number is whoever's who put one there, and stays.
async fn commit(writer: &Writer) -> Result<()> {
    let turn = writer.turn().await?;
    for version in turn.all(&Sql::fixed("PRAGMA user_version"), &|cells| cells.take::<i64>())? {
        turn.run(&Sql::fixed(&format!("PRAGMA user_version = {version}")))?;
    }
    turn.commit().await
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::store::file_identity::opened;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_log_holds_a_commit_that_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; PRAGMA user_version = 7").unwrap();
        let reader = Connection::open(&path).unwrap();
        let number = |pragma: &str, column: usize| reader.query_row(pragma, (), |row| row.get::<_, i64>(column)).unwrap();
        let logged = || number("PRAGMA wal_checkpoint(NOOP)", 1);
        assert_eq!((number("PRAGMA user_version", 0), logged()), (7, 0));
        let writer = Writer::new(opened(&path), 1000);
        commit(&writer).await.unwrap();
        assert_eq!((number("PRAGMA user_version", 0), logged()), (7, 1));
        writer.close().await;
    }
}
