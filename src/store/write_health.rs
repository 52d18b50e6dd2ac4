//! Health of the database: a small write, a look at every table, and when a request last failed because of the disk or of missing
//! permissions.

use std::time::Duration;

use sea_orm::{
    ActiveValue::Set,
    DbBackend, EntityTrait, IdenStatic, Iterable,
    sea_query::{Expr, OnConflict, Query, SqliteQueryBuilder},
};

use crate::{
    domain::time::Timestamp,
    store::{
        Db, Error, Result,
        db::Writes,
        entity::{
            for_each_entity, is_there,
            write_probes::{ActiveModel, Column, Entity},
        },
        sql::Sql,
    },
};

/// The id of the table's one row.
const ROW: i64 = 1;

/// A statement that fails unless every table of SQLite has every column, and reads no row.
fn look_at_every_table() -> String {
    let mut all = Query::select();
    for (table, columns) in tables(DbBackend::Sqlite) {
        // Each column is named with its table: SQLite would otherwise take the quoted name of a missing column for a text.
        let columns = columns.iter().map(|column| Expr::col((table, *column)));
        all.expr(Expr::exists(Query::select().exprs(columns).from(table).limit(0).take()));
    }
    all.to_string(SqliteQueryBuilder)
}

/// A statement that finds a column that PostgreSQL lacks. It reads the catalogue: reading a table would mean waiting for whatever locks
/// it.
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

/// Tables and their columns.
fn tables(backend: DbBackend) -> Vec<(&'static str, Vec<&'static str>)> {
    for_each_entity!(columns, backend).into_iter().filter(|(_, columns)| !columns.is_empty()).collect()
}

fn columns<E: EntityTrait>(backend: DbBackend) -> (&'static str, Vec<&'static str>) {
    let table = E::default().table_name();
    (table, E::Column::iter().map(|column| column.as_str()).filter(|column| is_there(backend, table, column)).collect())
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

    /// How often the disk refused to sync the database file after a checkpoint copied pages of the log into it. After the first refusal the log grows until a restart.
    pub fn refused_log_copies(&self) -> u64 {
        match self.writes() {
            Writes::Sqlite(writer) => writer.refused_copies(),
            Writes::Postgres(_) => 0,
        }
    }

    /// Answers once the database has shown that it has every table and column, the way requests ask it, and has made a write durable the
    /// way requests write.
    pub async fn prove_usable(&self, now: Timestamp) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            self.first(Sql::fixed(&look_at_every_table()), |_| Ok(())).await?;
        } else if let Some(column) = self.first(Sql::fixed(&find_missing_column()), |cells| cells.take::<String>()).await? {
            return Err(Error::Unusable(format!("there is no column `{column}`")));
        }
        let tx = self.begin().await?;
        let row = ActiveModel { id: Set(ROW), written_at: Set(now.millis()) };
        let conflict = OnConflict::column(Column::Id).update_column(Column::WrittenAt).to_owned();
        tx.execute(&Entity::insert(row).on_conflict(conflict)).await?;
        if let Some(file) = self.file() {
            tx.run(&Sql::fixed(&file.name_in_log())).await?;
        }
        tx.commit().await
    }

    /// Whether all writers, also those of other processes, wait in one line, so that a writer may have to wait.
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
    async fn a_table_that_is_locked_does_not_hold_the_look_up() {
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
