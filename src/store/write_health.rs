//! Health of the database: a small write and a look at every table, and when a request last failed for want of disk or right.

use std::time::Duration;

use sea_orm::{
    ActiveValue::Set,
    DbBackend, EntityTrait, IdenStatic, IntoSimpleExpr, Iterable,
    sea_query::{Expr, OnConflict, Query, SelectStatement},
};

use crate::{
    domain::time::Timestamp,
    store::{
        Db, Result,
        db::Writes,
        entity::{
            for_each_entity, is_there,
            write_probes::{ActiveModel, Column, Entity},
        },
        sql::Sql,
    },
};

/// The one row.
const ROW: i64 = 1;

/// A statement that fails unless every table has every column, and reads no row.
fn look_at_every_table(backend: DbBackend) -> String {
    let mut all = Query::select();
    for table in for_each_entity!(nothing_of, backend).into_iter().flatten() {
        all.expr(Expr::exists(table));
    }
    backend.build(&all).to_string()
}

/// Every column of no row; nothing where the database does not have the table.
fn nothing_of<E: EntityTrait>(backend: DbBackend) -> Option<SelectStatement> {
    let table = E::default();
    let columns: Vec<E::Column> = E::Column::iter().filter(|column| is_there(backend, table.table_name(), column.as_str())).collect();
    // Each with its table: SQLite would take the quoted name of a column that is not there for a text.
    let columns = columns.into_iter().map(|column| column.into_simple_expr()).collect::<Vec<_>>();
    (!columns.is_empty()).then(|| Query::select().exprs(columns).from(table).limit(0).take())
}

impl Db {
    /// Whether the database could not do its work for a request of this process within this time.
    pub fn failed_within(&self, time: Duration) -> bool {
        let last_write = match self.writes() {
            Writes::Sqlite(writer) => writer.last_failure(),
            Writes::Postgres(kept) => kept.last_failure(),
        };
        last_write.is_within(time) || self.last_read_failure().is_within(time)
    }

    /// How often the disk refused what a SQLite file's log was copied to. From the first time on the log grows until a restart.
    pub fn refused_log_copies(&self) -> u64 {
        match self.writes() {
            Writes::Sqlite(writer) => writer.refused_copies(),
            Writes::Postgres(_) => 0,
        }
    }

    /// Answers once the database has shown that it has every table and column, the way requests ask it, and has made a write durable the
    /// way requests write.
    pub async fn prove_usable(&self, now: Timestamp) -> Result<()> {
        // It counts as one that its keys bound, so that it waits for none that may take long.
        self.first(Sql::fixed(&look_at_every_table(self.backend())), |_| Ok(())).await?;
        let tx = self.begin().await?;
        let row = ActiveModel { id: Set(ROW), written_at: Set(now.millis()) };
        let conflict = OnConflict::column(Column::Id).update_column(Column::WrittenAt).to_owned();
        tx.execute(&Entity::insert(row).on_conflict(conflict)).await?;
        tx.commit().await
    }

    /// Whether writers stand in one line, also those of other processes, so that one of them may have to wait.
    pub fn is_one_writer(&self) -> bool {
        self.backend() == DbBackend::Sqlite
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Error, fixture::Fixture};

    #[tokio::test]
    async fn a_table_or_a_column_that_is_missing_is_noticed() {
        let fixture = Fixture::alone().await;
        let usable = async || fixture.db.prove_usable(Timestamp::from_millis(1)).await;
        usable().await.unwrap();
        for (away, back) in [
            ("ALTER TABLE templates RENAME TO templates_aside", "ALTER TABLE templates_aside RENAME TO templates"),
            ("ALTER TABLE webhooks RENAME COLUMN url TO address", "ALTER TABLE webhooks RENAME COLUMN address TO url"),
        ] {
            let change = async |text: &str| {
                let tx = fixture.db.begin().await.unwrap();
                tx.script(text).await.unwrap();
                tx.commit().await.unwrap();
            };
            change(away).await;
            assert!(matches!(usable().await, Err(Error::Unusable(_))), "{away}: {:?}", usable().await);
            change(back).await;
            usable().await.unwrap();
        }
    }
}
