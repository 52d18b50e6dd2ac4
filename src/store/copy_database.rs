//! The database of the command `counterpart copy`, in SQLite or PostgreSQL: a copy of the records of stores. The command keeps the copy up
//! to date with a server's change feed, which lists changed records. No server uses this database. Its two tables are created here and not
//! by migrations.
//!
//! Guarantees: the records and the copy's position in the feed commit together. If two processes write to the same copy at the same time,
//! the later write is refused.

use sea_orm::DbBackend;

use crate::{
    domain::{ids::StoreId, ndjson_records::RecordKind},
    store::{
        Db, Error, Result,
        sql::{Param, Sql},
    },
};

/// The most rows of one INSERT.
const ROWS: usize = 200;

/// How far the copy of a store has followed the change feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPosition {
    /// The sequence number in the feed after which the copy continues.
    pub sequence: i64,
    /// During the initial copy of all records: the kind that is read, and the id after which the next page begins. `None` after the initial
    /// copy.
    pub walk: Option<(RecordKind, Option<String>)>,
    /// Incremented with each change of the position, for optimistic locking.
    version: i64,
}

impl CopyPosition {
    /// Returns a later position, to be stored in place of this one. It has the same version, which [`Db::apply_to_copy`] compares with the
    /// stored version.
    #[must_use]
    pub fn moved(&self, sequence: i64, walk: Option<(RecordKind, Option<String>)>) -> Self {
        Self { sequence, walk, version: self.version }
    }
}

/// A record of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedRecord {
    pub kind: RecordKind,
    pub id: String,
    /// The record as JSON, byte for byte as an export writes it. `None`, in a change of the source: the record was deleted there, and is
    /// removed from the copy.
    pub record: Option<String>,
    /// Whether the record breaks a rule that was introduced after the record was stored. An export marks such a record.
    pub as_stored: bool,
}

impl Db {
    /// Creates the tables of a copy if they do not exist.
    pub async fn prepare_copy(&self) -> Result<()> {
        let text = if self.backend() == DbBackend::Sqlite { "TEXT" } else { "TEXT COLLATE \"C\"" };
        let tx = self.begin().await?;
        for table in [
            format!(
                "CREATE TABLE IF NOT EXISTS counterpart_records (store_id {text} NOT NULL, kind {text} NOT NULL, id {text} NOT NULL, \
                 record TEXT NOT NULL, as_stored BOOLEAN NOT NULL, PRIMARY KEY (store_id, kind, id))"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS counterpart_copies (store_id {text} NOT NULL PRIMARY KEY, sequence BIGINT NOT NULL, \
                 walked_kind TEXT, walked_id TEXT, version BIGINT NOT NULL)"
            ),
        ] {
            tx.run(&Sql::fixed(&table)).await?;
        }
        tx.commit().await
    }

    /// Returns the stores of which this database has a copy.
    pub async fn copied_stores(&self) -> Result<Vec<StoreId>> {
        self.all(Sql::fixed("SELECT store_id FROM counterpart_copies ORDER BY store_id"), |cells| cells.id()).await
    }

    /// Returns the position of the copy of a store. `None` if there is no copy of it.
    pub async fn copy_position(&self, store: &StoreId) -> Result<Option<CopyPosition>> {
        let sql = Sql::of(store, "SELECT sequence, walked_kind, walked_id, version FROM counterpart_copies WHERE store_id = $1");
        self.first(sql, |cells| {
            let (sequence, kind, id): (i64, Option<String>, Option<String>) = (cells.take()?, cells.take()?, cells.take()?);
            let unknown = |kind: String| Error::Damaged(format!("`counterpart_copies` names the unknown kind `{kind}`"));
            let kind = kind.map(|name| RecordKind::of(&name).ok_or_else(|| unknown(name))).transpose()?;
            Ok(CopyPosition { sequence, walk: kind.map(|kind| (kind, id)), version: cells.take()? })
        })
        .await
    }

    /// Deletes the copied records of a store, and sets the copy's position to the beginning of a new initial copy. `sequence` is the
    /// sequence number in the feed when the initial copy begins; after the initial copy, the feed is read from this number on.
    pub async fn restart_copy(&self, store: &StoreId, sequence: i64) -> Result<()> {
        let tx = self.begin().await?;
        tx.run(&Sql::of(store, "DELETE FROM counterpart_records WHERE store_id = $1")).await?;
        let mut sql = Sql::of(store, "INSERT INTO counterpart_copies (store_id, sequence, walked_kind, walked_id, version) VALUES ($1, ");
        sql.integer(sequence).push(", ").text(RecordKind::ALL[0].name()).push(
            ", NULL, 0) ON CONFLICT (store_id) DO UPDATE SET sequence = excluded.sequence, walked_kind = excluded.walked_kind, \
             walked_id = NULL, version = counterpart_copies.version + 1",
        );
        tx.run(&sql).await?;
        tx.commit().await
    }

    /// Writes a page of records to the copy and stores the new position, in one transaction. Returns `false` if another process has changed
    /// the position since it was read; then nothing was written.
    pub async fn apply_to_copy(&self, store: &StoreId, page: &[CopiedRecord], position: &CopyPosition) -> Result<bool> {
        let tx = self.begin().await?;
        let (kind, id) = position.walk.as_ref().map_or((None, None), |(kind, id)| (Some(kind.name()), id.as_deref()));
        let mut moved = Sql::of(store, "UPDATE counterpart_copies SET sequence = ");
        moved.integer(position.sequence).push(", walked_kind = ").optional_text(kind).push(", walked_id = ").optional_text(id);
        moved.push(", version = version + 1 WHERE store_id = $1 AND version = ").integer(position.version);
        if tx.run(&moved).await? == 0 {
            return Ok(false);
        }
        let deleted: Vec<&CopiedRecord> = page.iter().filter(|one| one.record.is_none()).collect();
        for one in deleted {
            let sql = Sql::of(store, "DELETE FROM counterpart_records WHERE store_id = $1 AND kind = $2 AND id = $3");
            tx.run(&sql.with(Param::Text(one.kind.name().to_owned())).with(Param::Text(one.id.clone()))).await?;
        }
        let written: Vec<(&CopiedRecord, &str)> = page.iter().filter_map(|one| Some((one, one.record.as_deref()?))).collect();
        for rows in written.chunks(ROWS) {
            let mut sql = Sql::of(store, "INSERT INTO counterpart_records (store_id, kind, id, record, as_stored) VALUES ");
            for (number, (one, record)) in rows.iter().enumerate() {
                sql.push(if number == 0 { "($1, " } else { ", ($1, " }).text(one.kind.name()).push(", ").text(&one.id).push(", ");
                sql.text(record).push(", ").flag(one.as_stored).push(")");
            }
            sql.push(" ON CONFLICT (store_id, kind, id) DO UPDATE SET record = excluded.record, as_stored = excluded.as_stored");
            tx.run(&sql).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Returns at most `limit` records of a kind after an id, in the order of ids, as in an export.
    pub async fn copied_records(&self, store: &StoreId, kind: RecordKind, after: Option<&str>, limit: i64) -> Result<Vec<CopiedRecord>> {
        let mut sql = Sql::of(store, "SELECT id, record, as_stored FROM counterpart_records WHERE store_id = $1 AND kind = ");
        sql.text(kind.name()).push(" AND id > ").text(after.unwrap_or_default()).push(" ORDER BY id").limit(limit);
        self.all(sql, move |cells| {
            let (id, record): (String, String) = (cells.take()?, cells.take()?);
            Ok(CopiedRecord { kind, id, record: Some(record), as_stored: cells.flag()? })
        })
        .await
    }
}
