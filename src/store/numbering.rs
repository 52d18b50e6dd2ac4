//! Sequence numbers of rows that are numbered after their commit: events, and entries of the change feed.
//!
//! A write inserts such a row without a number. Each reader, before it reads, numbers the committed rows that have no number, one store at
//! a time; one process at a time does that. So once a reader has seen a number, no smaller number of the same store appears later. Since
//! writers assign no numbers, they do not wait for each other to do so.

use sea_orm::{
    DbBackend, ExprTrait,
    sea_query::{Expr, Func, IntoIden, Order, Query, SelectStatement, TableRef, UpdateStatement},
};

use crate::{
    domain::ids::StoreId,
    store::{
        Db, Result, entity::events::Column, parameterised_sql::Sql, postgres::advisory_locks::AdvisoryLock, row_decoding::Cells,
        sql_from_entities::one_of,
    },
};

/// The most rows that are numbered in one transaction.
const BATCH: u64 = 500;

/// A table whose rows are numbered after their commit.
#[derive(Clone, Copy)]
pub(in crate::store) struct NumberedTable {
    pub name: &'static str,
    pub lock: AdvisoryLock,
}

impl NumberedTable {
    /// Returns the query for the rows without a number, of one store or of all stores. All numbered tables have the same column names as
    /// `events`.
    fn unnumbered(self, column: Column, of: Option<&StoreId>) -> SelectStatement {
        let mut query = Query::select();
        query.column(column).from(self.name).and_where(Expr::col(Column::Sequence).is_null()).order_by(column, Order::Asc);
        query.and_where_option(of.map(|store| Expr::col(Column::StoreId).eq(store)));
        query
    }

    /// Returns the query for the next store with a row that has no number: the first such store, in the order of ids, after the id `last`.
    /// An empty `last` comes before all ids.
    fn next_store(self, last: &str, of: Option<&StoreId>) -> SelectStatement {
        self.unnumbered(Column::StoreId, of).and_where(Expr::col(Column::StoreId).gt(last)).limit(1).to_owned()
    }

    /// Returns the statement that numbers those rows of a store whose column `position` has one of these values, in ascending order. The
    /// query `last` returns the greatest number so far.
    pub fn number(self, store: &StoreId, positions: &[i64], last: SelectStatement) -> UpdateStatement {
        let place = Expr::cust("ROW_NUMBER() OVER (ORDER BY position)");
        let sequence = place.add(Func::coalesce([last.into(), Expr::Constant(0_i64.into())]));
        let mut numbered = Query::select();
        numbered.column(Column::Position).expr_as(sequence, Column::Sequence).from(self.name);
        numbered.and_where(Expr::col(Column::StoreId).eq(store)).and_where(one_of(Expr::col(Column::Position), positions.iter().copied()));
        Query::update()
            .table(self.name)
            .value(Column::Sequence, Expr::col(("numbered", Column::Sequence)))
            .from(TableRef::SubQuery(Box::new(numbered), "numbered".into_iden()))
            .and_where(Expr::col((self.name, Column::StoreId)).eq(store))
            .and_where(Expr::col((self.name, Column::Position)).equals(("numbered", Column::Position)))
            .to_owned()
    }
}

impl Db {
    /// Assigns sequence numbers to the committed rows that have none, of one store or of all stores. `number` gets a store and the values
    /// of the column `position` of such rows, in ascending order. It returns the statements that number these rows.
    pub(in crate::store) async fn number_rows(
        &self,
        table: NumberedTable,
        of: Option<&StoreId>,
        number: impl Fn(&StoreId, &[i64]) -> Result<Vec<Sql>>,
    ) -> Result<()> {
        let (mut last, mut failed) = (String::new(), None);
        loop {
            let read = |cells: &mut Cells<'_>| cells.take::<String>();
            let next = match of {
                Some(store) => self.select(table.next_store(&last, Some(store)), read).await?,
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
        number: impl Fn(&StoreId, &[i64]) -> Result<Vec<Sql>>,
    ) -> Result<()> {
        loop {
            let tx = self.begin().await?;
            if self.backend() == DbBackend::Postgres {
                tx.all(&Sql::fixed(&table.lock.of_transaction()), |_| Ok(())).await?;
            }
            let next = table.unnumbered(Column::Position, Some(store)).limit(BATCH).to_owned();
            let positions: Vec<i64> = tx.select(next, |cells| cells.take()).await?;
            if !positions.is_empty() {
                for statement in number(store, &positions)? {
                    tx.run(&statement).await?;
                }
            }
            tx.commit().await?;
            if (positions.len() as u64) < BATCH {
                return Ok(());
            }
        }
    }
}
