//! One write transaction of a store: what every use-case that changes something goes through.
//!
//! Called by `service`. Guarantees: a row that was read for a change stays as it is until the end of the transaction; the
//! events and the change log commit with the change or not at all; dropped without [`Write::commit`], nothing is left.

use sea_orm::{ConnectionTrait, DbBackend};

use super::{
    Db, Result, Tx,
    sql::{Cells, Param, Row, Sql},
};
use crate::domain::{
    events::Event,
    ids::{ContactId, ConversationId, MessageId, StoreId, TicketId},
    time::Timestamp,
};

/// A write transaction on one store.
pub struct Write {
    tx: Tx,
    backend: DbBackend,
    store: StoreId,
    now: Timestamp,
}

/// A record that derived data follows.
#[derive(Clone, Copy, Debug)]
pub enum Changed<'a> {
    Contact(&'a ContactId),
    Conversation(&'a ConversationId),
    Message(&'a MessageId),
    Ticket(&'a TicketId),
}

impl Changed<'_> {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Contact(id) => ("contact", id.as_str()),
            Self::Conversation(id) => ("conversation", id.as_str()),
            Self::Message(id) => ("message", id.as_str()),
            Self::Ticket(id) => ("ticket", id.as_str()),
        }
    }
}

/// What a kept answer says of a repeated request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub request_hash: String,
    pub body: Vec<u8>,
}

impl Db {
    /// Begins to write. On SQLite this waits for the writer before.
    pub async fn write(&self, store: &StoreId, now: Timestamp) -> Result<Write> {
        Ok(Write { tx: self.begin().await?, backend: self.backend(), store: store.clone(), now })
    }
}

impl Write {
    pub fn store(&self) -> &StoreId {
        &self.store
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// A statement whose `$1` is the store.
    pub(super) fn sql(&self, text: &str) -> Sql {
        Sql::of(&self.store, text)
    }

    pub(super) async fn all<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        let rows = self.tx.query_all_raw(sql.statement(self.backend)).await?;
        rows.iter().map(|row| decode(&mut Cells::orm(row))).collect()
    }

    pub(super) async fn first<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Option<T>> {
        let row = self.tx.query_one_raw(sql.statement(self.backend)).await?;
        row.map(|row| decode(&mut Cells::orm(&row))).transpose()
    }

    /// The number of rows that were changed.
    pub(super) async fn run(&self, sql: Sql) -> Result<u64> {
        Ok(self.tx.execute_raw(sql.statement(self.backend)).await?.rows_affected())
    }

    /// The row of a table with this id, held until the end of the transaction.
    pub(super) async fn held<T: Row>(&self, table: &str, id: &str) -> Result<Option<T>> {
        let mut sql = self.sql("SELECT ");
        sql.push(T::COLUMNS).push(" FROM ").push(table).push(" WHERE store_id = $1 AND id = ").text(id);
        self.hold(&mut sql);
        self.first(sql, T::decode).await
    }

    /// Holds the rows that a SELECT finds. SQLite's one writer holds all there are.
    pub(super) fn hold(&self, sql: &mut Sql) {
        if self.backend == DbBackend::Postgres {
            sql.push(" FOR UPDATE");
        }
    }

    /// Notes a changed record for whoever follows the change log.
    pub async fn changed(&self, record: Changed<'_>) -> Result<()> {
        let (kind, id) = record.parts();
        let mut sql = self.sql("INSERT INTO changes (store_id, kind, record_id, changed_at, transaction_id) VALUES ($1, ");
        sql.text(kind).push(", ").text(id).push(", ").integer(self.now.millis());
        sql.push(if self.backend == DbBackend::Postgres { ", pg_current_xact_id()::text::bigint)" } else { ", 0)" });
        self.run(sql).await?;
        Ok(())
    }

    /// Records an event, rendered. It gets its number after the commit.
    pub async fn record(&self, event: &Event, body: Vec<u8>) -> Result<()> {
        let mut sql = self.sql("INSERT INTO events (store_id, id, type, occurred_at, body) VALUES ($1, ");
        sql.text(&event.id).push(", ").text(event.fact.kind()).push(", ").integer(event.at.millis()).push(", ").bytes(body).push(")");
        self.run(sql).await?;
        Ok(())
    }

    /// The answer that was kept for this request, unless it is older than `since`.
    pub async fn kept(&self, operation: &str, key: &str, since: Timestamp) -> Result<Option<Kept>> {
        let mut sql = self.sql("SELECT request_hash, body FROM idempotency_keys WHERE store_id = $1 AND operation = ");
        sql.text(operation).push(" AND key = ").text(key).push(" AND created_at > ").integer(since.millis());
        self.first(sql, |cells| Ok(Kept { request_hash: cells.take()?, body: cells.bytes()? })).await
    }

    /// Keeps the answer to this request, in the place of one that is too old.
    pub async fn keep(&self, operation: &str, key: &str, kept: Kept) -> Result<()> {
        let mut sql =
            self.sql("INSERT INTO idempotency_keys (store_id, operation, key, request_hash, status, body, created_at) VALUES ($1, ");
        sql.text(operation).push(", ").text(key).push(", ").text(&kept.request_hash).push(", 200, ").bytes(kept.body);
        sql.push(", ").integer(self.now.millis());
        sql.push(
            ") ON CONFLICT (store_id, operation, key) DO UPDATE SET request_hash = excluded.request_hash, body = excluded.body, \
             created_at = excluded.created_at",
        );
        self.run(sql).await?;
        Ok(())
    }

    /// Whether no other transaction holds this name; it is then held until the end of this one. SQLite has one writer.
    pub async fn try_name(&self, name: &str) -> Result<bool> {
        if self.backend == DbBackend::Sqlite {
            return Ok(true);
        }
        let sql = Sql::fixed("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))")
            .with(Param::Text(format!("{}\u{1f}{name}", self.store)));
        Ok(self.first(sql, |cells| cells.flag()).await?.unwrap_or(false))
    }

    /// Commits everything.
    pub async fn commit(self) -> Result<()> {
        Ok(self.tx.commit().await?)
    }
}
