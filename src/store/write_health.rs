//! Health of writes: a small write that proves what a read cannot, and when a write last failed for want of disk or right.

use std::time::Duration;

use sea_orm::{ActiveValue::Set, DbBackend, EntityTrait, sea_query::OnConflict};

use crate::{
    domain::time::Timestamp,
    store::{
        Db, Result,
        db::Writes,
        entity::write_probes::{ActiveModel, Column, Entity},
    },
};

/// The one row.
const ROW: i64 = 1;

impl Db {
    /// Whether the database could not do its work for a write of this process within this time.
    pub fn failed_a_write_within(&self, time: Duration) -> bool {
        match self.writes() {
            Writes::Sqlite(writer) => writer.last_failure().is_within(time),
            Writes::Postgres(kept) => kept.last_failure().is_within(time),
        }
    }

    /// Answers once the database has answered a read the way requests ask it, and has made a write durable the way requests write.
    pub async fn prove_writable(&self, now: Timestamp) -> Result<()> {
        self.ping().await?;
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
