//! Sequence numbers of rows that are numbered after their commit: events, and entries of the change feed.
//!
//! A write inserts such a row without a number. Each reader, before it reads, numbers the committed rows that have no number, one store at
//! a time; one process at a time does that. So once a reader has seen a number, no smaller number of the same store appears later. Since
//! writers assign no numbers, they do not wait for each other to do so.

use sea_orm::DbBackend;

use crate::{
    domain::ids::StoreId,
    store::{Db, Result, postgres::advisory_locks::AdvisoryLock, row_decoding::Cells, sql::Sql},
};

/// The most rows that are numbered in one transaction.
const BATCH: usize = 500;

/// A table whose rows are numbered after their commit.
#[derive(Clone, Copy)]
pub(in crate::store) struct NumberedTable {
    pub name: &'static str,
    pub lock: AdvisoryLock,
}

impl NumberedTable {
    /// Returns the statement that finds the first store after the store `last` (all stores if empty) with a row that has no number.
    fn next_store(self, last: &str, of: Option<&StoreId>) -> Sql {
        let mut sql = Sql::fixed("SELECT store_id FROM ");
        sql.push(self.name).push(" WHERE sequence IS NULL AND store_id > ").text(last);
        sql.and_of_store("store_id", of).push(" ORDER BY store_id").limit(1);
        sql
    }

    /// Returns the statement that finds the next rows of a store to be numbered, by position.
    fn unnumbered(self, store: &StoreId) -> Sql {
        let mut sql = Sql::of(store, "SELECT position FROM ");
        sql.push(self.name).push(" WHERE store_id = $1 AND sequence IS NULL ORDER BY position").limit(BATCH as i64);
        sql
    }
}

impl Db {
    /// Numbers the committed rows without a number, of one store or of all stores. `number` returns the statements that number the rows of
    /// a store at these positions, which are in ascending order.
    pub(in crate::store) async fn number_rows(
        &self,
        table: NumberedTable,
        of: Option<&StoreId>,
        number: impl Fn(&StoreId, &[i64]) -> Vec<Sql>,
    ) -> Result<()> {
        let (mut last, mut failed) = (String::new(), None);
        loop {
            let read = |cells: &mut Cells<'_>| cells.take::<String>();
            let next = match of {
                Some(store) => self.all(table.next_store(&last, Some(store)), read).await?,
                None => self.across_stores(|of| table.next_store(&last, of), read).await?,
            };
            let Some(store) = next.into_iter().min() else { return failed.map_or(Ok(()), Err) };
            match self.number_rows_of_store(table, &StoreId::from(store.clone()), &number).await {
                // In a distributed database, the next stores may be on nodes that answer, so the loop continues.
                Err(error) if self.is_distributed() => failed = Some(error),
                outcome => outcome?,
            }
            last = store;
        }
    }

    async fn number_rows_of_store(
        &self,
        table: NumberedTable,
        store: &StoreId,
        number: impl Fn(&StoreId, &[i64]) -> Vec<Sql>,
    ) -> Result<()> {
        loop {
            let tx = self.begin().await?;
            if self.backend() == DbBackend::Postgres {
                tx.all(&Sql::fixed(&table.lock.of_transaction()), |_| Ok(())).await?;
            }
            let positions: Vec<i64> = tx.all(&table.unnumbered(store), |cells| cells.take()).await?;
            if !positions.is_empty() {
                for sql in number(store, &positions) {
                    tx.run(&sql).await?;
                }
            }
            tx.commit().await?;
            if positions.len() < BATCH {
                return Ok(());
            }
        }
    }
}
