//! The write probe: a small write that proves what a read cannot, that the database takes writes.

use sea_orm::{ActiveValue::Set, DbBackend, EntityTrait, sea_query::OnConflict};

use super::{
    Db, Result,
    entity::write_probes::{ActiveModel, Column, Entity},
};
use crate::domain::time::Timestamp;

/// The one row.
const ROW: i64 = 1;

impl Db {
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
