//! The database of the command `counterpart copy`, in SQLite or PostgreSQL: a copy of the records of stores. The command keeps the copy up
//! to date with a server's change feed, which lists changed records. No server uses this database. Its two tables are created here and not
//! by migrations.
//!
//! Guarantees: the records and the copy's position in the feed commit together. If two processes write to the same copy at the same time,
//! the later write is refused.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, DbBackend, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, OnConflict},
};

use crate::{
    domain::{ids::StoreId, ndjson_records::RecordKind},
    store::{Db, Error, Result, parameterised_sql::Sql},
};

/// The position of the copy of each store.
mod copies {
    use crate::store::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
    #[sea_orm(table_name = "counterpart_copies")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: String,
        pub sequence: i64,
        pub walked_kind: Option<String>,
        pub walked_id: Option<String>,
        pub version: i64,
    }
}

/// The copied records.
mod records {
    use crate::store::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
    #[sea_orm(table_name = "counterpart_records")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub record: String,
        pub as_stored: bool,
    }
}

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
    /// The record as JSON, byte for byte as an export writes it. `None`: the feed reports that the record was deleted; it is removed
    /// from the copy.
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
        let query = copies::Entity::find().select_only().column(copies::Column::StoreId).order_by_asc(copies::Column::StoreId);
        self.select(query, |cells| cells.take()).await
    }

    /// Returns the position of the copy of a store. `None` if there is no copy of it.
    pub async fn copy_position(&self, store: &StoreId) -> Result<Option<CopyPosition>> {
        let Some(row) = self.find_one(copies::Entity::find_by_id(store.as_str())).await? else { return Ok(None) };
        let unknown = |kind: String| Error::Damaged(format!("`counterpart_copies` names the unknown kind `{kind}`"));
        let kind = row.walked_kind.map(|name| RecordKind::of(&name).ok_or_else(|| unknown(name))).transpose()?;
        Ok(Some(CopyPosition { sequence: row.sequence, walk: kind.map(|kind| (kind, row.walked_id)), version: row.version }))
    }

    /// Deletes the copied records of a store, and sets the copy's position to the beginning of a new initial copy. `sequence` is the
    /// sequence number in the feed when the initial copy begins; after the initial copy, the feed is read from this number on.
    pub async fn restart_copy(&self, store: &StoreId, sequence: i64) -> Result<()> {
        use copies::Column::{Sequence, StoreId, Version, WalkedId, WalkedKind};
        let tx = self.begin().await?;
        tx.execute(&records::Entity::delete_many().filter(records::Column::StoreId.eq(store))).await?;
        let row = copies::ActiveModel {
            store_id: Set(store.to_string()),
            sequence: Set(sequence),
            walked_kind: Set(Some(RecordKind::ALL[0].name().to_owned())),
            walked_id: Set(None),
            version: Set(0),
        };
        let next = Expr::col((copies::Entity, Version)).add(1_i64);
        let conflict = OnConflict::column(StoreId).update_columns([Sequence, WalkedKind, WalkedId]).value(Version, next).to_owned();
        tx.execute(&copies::Entity::insert(row).on_conflict(conflict)).await?;
        tx.commit().await
    }

    /// Writes a page of records to the copy and stores the new position, in one transaction. Returns `false` if another process has changed
    /// the position since it was read; then nothing was written.
    pub async fn apply_to_copy(&self, store: &StoreId, page: &[CopiedRecord], position: &CopyPosition) -> Result<bool> {
        use records::Column::{AsStored, Id, Kind, Record, StoreId};
        let tx = self.begin().await?;
        let (kind, id) = position.walk.as_ref().map_or((None, None), |(kind, id)| (Some(kind.name()), id.as_deref()));
        let moved = copies::Entity::update_many()
            .col_expr(copies::Column::Sequence, Expr::value(position.sequence))
            .col_expr(copies::Column::WalkedKind, Expr::value(kind))
            .col_expr(copies::Column::WalkedId, Expr::value(id))
            .col_expr(copies::Column::Version, Expr::col(copies::Column::Version).add(1_i64))
            .filter(copies::Column::StoreId.eq(store))
            .filter(copies::Column::Version.eq(position.version));
        if tx.execute(&moved).await? == 0 {
            return Ok(false);
        }
        for one in page.iter().filter(|one| one.record.is_none()) {
            let record = records::Entity::delete_many().filter(StoreId.eq(store)).filter(Kind.eq(one.kind.name())).filter(Id.eq(&one.id));
            tx.execute(&record).await?;
        }
        let written: Vec<(&CopiedRecord, &str)> = page.iter().filter_map(|one| Some((one, one.record.as_deref()?))).collect();
        for rows in written.chunks(ROWS) {
            let rows = rows.iter().map(|(one, record)| records::ActiveModel {
                store_id: Set(store.to_string()),
                kind: Set(one.kind.name().to_owned()),
                id: Set(one.id.clone()),
                record: Set((*record).to_owned()),
                as_stored: Set(one.as_stored),
            });
            let conflict = OnConflict::columns([StoreId, Kind, Id]).update_columns([Record, AsStored]).to_owned();
            tx.execute(&records::Entity::insert_many(rows).on_conflict(conflict).into_query()).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Returns at most `limit` records of a kind after an id, in the order of ids, as in an export.
    pub async fn copied_records(&self, store: &StoreId, kind: RecordKind, after: Option<&str>, limit: i64) -> Result<Vec<CopiedRecord>> {
        let page = self.find_all(
            records::Entity::find()
                .filter(records::Column::StoreId.eq(store))
                .filter(records::Column::Kind.eq(kind.name()))
                .filter(records::Column::Id.gt(after.unwrap_or_default()))
                .order_by_asc(records::Column::Id)
                .limit(u64::try_from(limit).unwrap_or_default()),
        );
        let copied = |row: records::Model| CopiedRecord { kind, id: row.id, record: Some(row.record), as_stored: row.as_stored };
        Ok(page.await?.into_iter().map(copied).collect())
    }
}
