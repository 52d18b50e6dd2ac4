//! Health check of the database: a small write, a check that every table and column exists, and when a request last failed because the
//! database could not do its work.

use std::time::Duration;

use sea_orm::{
    ActiveValue::Set,
    DbBackend, EntityTrait,
    sea_query::{Expr, OnConflict, Query, SelectStatement},
};

use crate::{
    domain::time::Timestamp,
    store::{
        Db, Error, Result,
        db::Writes,
        entity::{
            tables,
            write_probes::{ActiveModel, Column, Entity},
        },
        parameterised_sql::Sql,
    },
};

/// The id of the only row of the table `write_probes`.
const ROW: i64 = 1;

/// Returns a query for SQLite that fails if a table or a column is missing. It reads no rows.
fn look_at_every_table() -> SelectStatement {
    let mut all = Query::select();
    for (table, columns) in tables(DbBackend::Sqlite) {
        // Each column is qualified with its table: SQLite would otherwise take the quoted name of a missing column for a string literal.
        let columns = columns.iter().map(|column| Expr::col((table, *column)));
        all.expr(Expr::exists(Query::select().exprs(columns).from(table).limit(0).take()));
    }
    all
}

/// Returns a statement for PostgreSQL that finds a missing column. It reads the system catalogue and not the tables, since a table may be
/// locked.
fn find_missing_column() -> String {
    let wanted: Vec<String> = tables(DbBackend::Postgres)
        .into_iter()
        .flat_map(|(table, columns)| columns.into_iter().map(move |column| format!("('{table}', '{column}')")))
        .collect();
    format!(
        "SELECT t || '.' || c FROM (VALUES {}) AS wanted (t, c) WHERE NOT EXISTS (SELECT 1 FROM pg_attribute \
         WHERE attrelid = to_regclass(t) AND attname = c AND NOT attisdropped) LIMIT 1",
        wanted.join(", ")
    )
}

impl Db {
    /// Returns whether a statement of this process failed, within the last `time`, because the database could not do its work.
    pub fn failed_within(&self, time: Duration) -> bool {
        let last_write = match &self.writes {
            Writes::Sqlite(writer) => writer.last_failure(),
            Writes::Postgres(kept) => kept.last_failure(),
        };
        last_write.is_within(time) || self.last_read_failure.is_within(time)
    }

    /// Returns how often the disk refused to sync the SQLite file after a checkpoint copied pages of the WAL into it. After the first
    /// refusal the WAL grows until a restart.
    pub fn refused_log_copies(&self) -> u64 {
        match &self.writes {
            Writes::Sqlite(writer) => writer.refused_copies(),
            Writes::Postgres(_) => 0,
        }
    }

    /// Checks that every table and column exists, then commits a small write. The check and the write use the connections that requests
    /// use. Returns once the write is durable.
    pub async fn prove_usable(&self, now: Timestamp) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            self.select(look_at_every_table(), |_| Ok(())).await?;
        } else if let Some(column) = self.first(Sql::fixed(&find_missing_column()), |cells| cells.take::<String>()).await? {
            return Err(Error::Unusable(format!("there is no column `{column}`")));
        }
        let tx = self.begin().await?;
        let row = ActiveModel { id: Set(ROW), written_at: Set(now.millis()) };
        let conflict = OnConflict::column(Column::Id).update_column(Column::WrittenAt).to_owned();
        tx.execute(&Entity::insert(row).on_conflict(conflict)).await?;
        if let Some(file) = &self.file {
            tx.run(&Sql::fixed(&file.name_in_log())).await?;
        }
        tx.commit().await
    }

    /// Returns whether the database has only one writer at a time, across all processes, so that a write may have to wait for others. True
    /// on SQLite.
    pub fn is_one_writer(&self) -> bool {
        self.backend() == DbBackend::Sqlite
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::Fixture;

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

    #[tokio::test]
    async fn a_locked_table_does_not_delay_the_health_check() {
        let fixture = Fixture::alone().await;
        if fixture.db.backend() == DbBackend::Postgres {
            let tx = fixture.db.begin().await.unwrap();
            tx.script("LOCK TABLE templates IN ACCESS EXCLUSIVE MODE").await.unwrap();
            let looked = tokio::time::timeout(Duration::from_secs(5), fixture.db.prove_usable(Timestamp::from_millis(1))).await;
            looked.unwrap().unwrap();
            drop(tx);
        }
    }
}
