//! One write transaction of a store: what every use-case that changes something goes through.
//!
//! Called by `service`. Guarantees: a row that was read for a change stays as it is until the end of the transaction, or, where
//! [`at_once`] looked at it, nothing is written; the events and the change log commit with the change or not at all; dropped
//! without [`Write::commit`], nothing is left.

mod at_once;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use self::at_once::AtOnce;
use super::{
    Db, Error, Result,
    begun::Begun,
    changelog::{Inserted, Noted, Own},
    connect::{OnStatement, Writes},
    lock::lock,
    search::searchable,
    secret_keys::SecretKeys,
    sql::{Cells, Param, Row, Sql},
    writer::Turn,
};
use crate::domain::{
    clock::Clock,
    conversations::Conversation,
    events::Event,
    ids::{AccountId, ContactId, ConversationId, MessageId, StoreId, TicketId},
    messages::Message,
    time::Timestamp,
};

/// Rows of one statement: the databases bound how many values one may have.
const ROWS_MAX: usize = 500;

/// A write transaction on one store.
pub struct Write {
    on: On,
    store: StoreId,
    clock: Arc<dyn Clock>,
    /// Milliseconds.
    now: AtomicI64,
    /// What goes into the change log with the commit.
    log: Mutex<Noted>,
    /// Of the change log, when this began.
    epoch: u64,
    /// On PostgreSQL: statements that wait for the next one.
    later: Mutex<Vec<Sql>>,
    /// Whether rows were changed, as far as statements tell.
    wrote: AtomicBool,
    own: Arc<Own>,
    on_statement: Option<OnStatement>,
    secret_keys: SecretKeys,
}

/// Where the statements run.
enum On {
    Sqlite(Turn),
    Postgres(Begun),
    /// Also PostgreSQL.
    AtOnce(AtOnce),
}

/// A record that derived data follows.
#[derive(Clone, Copy, Debug)]
pub enum Changed<'a> {
    Contact(&'a ContactId),
    Message(&'a MessageId),
}

impl<'a> Changed<'a> {
    fn parts(self) -> (&'static str, &'a str) {
        match self {
            Self::Contact(id) => ("contact", id.as_str()),
            Self::Message(id) => ("message", id.as_str()),
        }
    }
}

/// The kind of a change that no derived data follows. It is logged on PostgreSQL, where no other is, since a standby is read
/// only once it shows the newest transaction of a store (see `replica`).
pub(super) const OTHER: &str = "other";

/// What a kept answer says of a repeated request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub request_hash: String,
    pub body: Vec<u8>,
}

impl Db {
    /// Begins to write. On SQLite this waits for the writers before.
    pub async fn write(&self, store: &StoreId, clock: &Arc<dyn Clock>) -> Result<Write> {
        let on = match self.writes() {
            Writes::Sqlite(writer) => On::Sqlite(writer.turn().await?),
            Writes::Postgres(kept) => On::Postgres(kept.begin().await?),
        };
        Ok(self.write_on(on, store, clock))
    }

    /// [`Db::write`] for what changes one conversation and what follows from it: on PostgreSQL the conversation is looked at and not
    /// held. [`Error::Raced`] tells that another change came between, or that more is read than can be; nothing is written then,
    /// and [`Db::write`] does it.
    pub async fn write_at_once(&self, store: &StoreId, clock: &Arc<dyn Clock>) -> Result<Write> {
        match self.writes() {
            Writes::Sqlite(_) => self.write(store, clock).await,
            Writes::Postgres(kept) => Ok(self.write_on(On::AtOnce(AtOnce::new(kept)), store, clock)),
        }
    }

    fn write_on(&self, on: On, store: &StoreId, clock: &Arc<dyn Clock>) -> Write {
        let now = AtomicI64::new(clock.now().millis());
        Write {
            on,
            store: store.clone(),
            clock: clock.clone(),
            now,
            log: Mutex::default(),
            epoch: self.own_epoch(),
            later: Mutex::default(),
            wrote: AtomicBool::new(false),
            own: self.own().clone(),
            on_statement: self.on_statement().cloned(),
            secret_keys: self.secret_keys().clone(),
        }
    }
}

impl Write {
    pub fn store(&self) -> &StoreId {
        &self.store
    }

    pub(super) fn secret_keys(&self) -> &SecretKeys {
        &self.secret_keys
    }

    /// When the change happens: not before anything that it waited for, or that changed what it looked at.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    /// A statement whose `$1` is the store.
    pub(super) fn sql(&self, text: &str) -> Sql {
        Sql::of(&self.store, text)
    }

    fn count_statement(&self) {
        if let Some(on_statement) = &self.on_statement {
            on_statement();
        }
    }

    pub(super) async fn all<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.count_statement();
        match &self.on {
            On::Sqlite(turn) => turn.all(&sql, &decode),
            On::AtOnce(_) => Err(Error::Raced),
            On::Postgres(begun) => {
                self.run_waiting(begun).await?;
                let rows = begun.rows(&sql).await?;
                if sql.holds() {
                    self.now.store(self.clock.now().millis(), Ordering::Relaxed);
                }
                rows.iter().map(|row| decode(&mut Cells::postgres(row))).collect()
            }
        }
    }

    pub(super) async fn first<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Option<T>> {
        Ok(self.all(sql, decode).await?.into_iter().next())
    }

    /// The number of rows that were changed.
    pub(super) async fn run(&self, sql: Sql) -> Result<u64> {
        self.wrote.store(true, Ordering::Relaxed);
        self.count_statement();
        match &self.on {
            On::Sqlite(turn) => turn.run(&sql),
            On::AtOnce(_) => Err(Error::Raced),
            On::Postgres(begun) => {
                self.run_waiting(begun).await?;
                begun.run(&sql).await
            }
        }
    }

    /// Runs a statement whose outcome nobody asks for, at the latest before the next other one; what it violates is told
    /// by that. Those that follow each other go to PostgreSQL as one: no two of them may touch the same row.
    pub(super) fn run_along(&self, sql: Sql) -> Result<()> {
        self.wrote.store(true, Ordering::Relaxed);
        match &self.on {
            On::Sqlite(turn) => {
                self.count_statement();
                turn.run(&sql).map(|_| ())
            }
            On::Postgres(_) | On::AtOnce(_) => {
                lock(&self.later).push(sql);
                Ok(())
            }
        }
    }

    fn waiting(&self) -> Vec<Sql> {
        std::mem::take(&mut *lock(&self.later))
    }

    async fn run_waiting(&self, begun: &Begun) -> Result<()> {
        if let Some(sql) = Sql::together(self.waiting()) {
            self.count_statement();
            begun.run(&sql).await?;
        }
        Ok(())
    }

    pub(super) fn on_postgres(&self) -> bool {
        matches!(self.on, On::Postgres(_) | On::AtOnce(_))
    }

    /// A conversation, as it stays until the end.
    pub async fn conversation(&self, id: &ConversationId) -> Result<Option<Conversation>> {
        match &self.on {
            On::AtOnce(one) => self.look_at_conversation(one, id).await,
            On::Sqlite(_) | On::Postgres(_) => self.held("conversations", id.as_str()).await,
        }
    }

    /// Runs an update of the conversation whose outcome nobody asks for; see [`Write::run_along`].
    pub(super) fn update_conversation(&self, update: Sql) -> Result<()> {
        match &self.on {
            On::AtOnce(one) => self.update_conversation_seen(one, update),
            On::Sqlite(_) | On::Postgres(_) => self.run_along(update),
        }
    }

    /// Runs an update of the open ticket of the conversation; which ticket that is.
    pub(super) async fn update_open_ticket(&self, conversation: &ConversationId, mut update: Sql) -> Result<Option<TicketId>> {
        let open = |sql: &mut Sql| {
            sql.push(" WHERE store_id = $1 AND is_open = TRUE AND conversation_id = ").text(conversation.as_str());
        };
        open(&mut update);
        match &self.on {
            On::AtOnce(one) => self.update_ticket_seen(one, update),
            On::Postgres(_) => {
                update.push(" RETURNING id");
                self.first(update, |cells| cells.id()).await
            }
            // To return what an update changes costs SQLite more than to ask before.
            On::Sqlite(_) => {
                let mut asked = self.sql("SELECT id FROM tickets");
                open(&mut asked);
                let found = self.first(asked, |cells| cells.id()).await?;
                if found.is_some() {
                    self.run_along(update)?;
                }
                Ok(found)
            }
        }
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
        if self.on_postgres() {
            sql.hold();
        }
    }

    /// Keeps the rows that a SELECT finds from being changed or removed by others, who may do the same.
    pub(super) fn share(&self, sql: &mut Sql) {
        if self.on_postgres() {
            sql.share();
        }
    }

    /// Notes a changed record for whoever follows the change log.
    pub fn changed(&self, record: Changed<'_>) {
        let (kind, id) = record.parts();
        lock(&self.log).insert((kind, id.to_owned()), None);
    }

    /// Notes a message that this write inserts, for whoever follows the change log: nobody needs to read it again. `subject`: of its
    /// conversation.
    pub fn inserted(&self, message: &Message, subject: Option<&str>) {
        let (kind, id) = Changed::Message(&message.id).parts();
        let texts = [message.text.as_deref(), message.payload.as_deref(), subject];
        let told = self.own.tells(texts.into_iter().flatten().map(str::len).sum());
        let inserted = told.then(|| Inserted { record: searchable(&self.store, message, subject), epoch: self.epoch });
        lock(&self.log).insert((kind, id.to_owned()), inserted);
    }

    /// Writes the change log, and whatever waits along with its end; the positions of the log.
    async fn write_log(&self, log: &Noted) -> Result<Vec<i64>> {
        let transaction = if self.on_postgres() { ", pg_current_xact_id()::text::bigint)" } else { ", 0)" };
        let log: Vec<_> = log.keys().collect();
        let mut positions: Vec<i64> = Vec::with_capacity(log.len());
        for rows in log.chunks(ROWS_MAX) {
            let mut sql = self.sql("INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) VALUES ");
            for (i, (kind, id)) in rows.iter().enumerate() {
                sql.push(if i == 0 { "($1, " } else { ", ($1, " }).text(kind).push(", ").text(id).push(", ").integer(self.now().millis());
                sql.push(transaction);
            }
            if let On::Sqlite(turn) = &self.on {
                self.count_statement();
                positions.extend(turn.insert(&sql)?);
                continue;
            }
            sql.push(" RETURNING position");
            if let On::AtOnce(one) = &self.on {
                if rows.len() < log.len() {
                    return Err(Error::Raced);
                }
                positions.extend(self.write_at_once(one, sql).await?);
                continue;
            }
            let mut whole = self.waiting();
            whole.push(sql);
            if let Some(sql) = Sql::together(whole) {
                positions.extend(self.all(sql, |cells| cells.take::<i64>()).await?);
            }
        }
        Ok(positions)
    }

    /// Records events, rendered. They get their numbers after the commit.
    pub async fn record(&self, events: &[(Event, Vec<u8>)]) -> Result<()> {
        for rows in events.chunks(ROWS_MAX) {
            let mut sql = self.sql("INSERT INTO events (store_id, id, type, account_id, occurred_at, body) VALUES ");
            for (i, (event, body)) in rows.iter().enumerate() {
                sql.push(if i == 0 { "($1, " } else { ", ($1, " }).text(&event.id).push(", ").text(event.fact.kind());
                sql.push(", ")
                    .optional_text(event.fact.account().map(AccountId::as_str))
                    .push(", ")
                    .integer(event.at.millis())
                    .push(", ")
                    .bytes(body.clone())
                    .push(")");
            }
            if events.len() > ROWS_MAX {
                // Of statements that go together none is sure to come before another, and these tell the order.
                self.run(sql).await?;
            } else {
                self.run_along(sql)?;
            }
        }
        Ok(())
    }

    /// The answer that was kept for this request, unless it is older than `since`.
    pub async fn kept(&self, operation: &str, key: &str, since: Timestamp) -> Result<Option<Kept>> {
        let mut sql = self.sql("SELECT request_hash, body FROM idempotency_keys WHERE store_id = $1 AND operation = ");
        sql.text(operation).push(" AND key = ").text(key).push(" AND created_at > ").integer(since.millis());
        self.first(sql, |cells| Ok(Kept { request_hash: cells.take()?, body: cells.bytes()? })).await
    }

    /// Keeps the answer to this request, in the place of one that is too old.
    pub fn keep(&self, operation: &str, key: &str, kept: Kept) -> Result<()> {
        let mut sql =
            self.sql("INSERT INTO idempotency_keys (store_id, operation, key, request_hash, status, body, created_at) VALUES ($1, ");
        sql.text(operation).push(", ").text(key).push(", ").text(&kept.request_hash).push(", 200, ").bytes(kept.body);
        sql.push(", ").integer(self.now().millis());
        sql.push(
            ") ON CONFLICT (store_id, operation, key) DO UPDATE SET request_hash = excluded.request_hash, body = excluded.body, \
             created_at = excluded.created_at",
        );
        self.run_along(sql)
    }

    /// Whether no other transaction holds this name; it is then held until the end of this one. SQLite has one writer.
    pub async fn try_name(&self, name: &str) -> Result<bool> {
        if !self.on_postgres() {
            return Ok(true);
        }
        let sql = Sql::fixed("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))")
            .with(Param::Text(format!("{}\u{1f}{name}", self.store)));
        Ok(self.first(sql, |cells| cells.flag()).await?.unwrap_or(false))
    }

    /// Commits everything. Without a change there is still something to wait for: on SQLite, that what was read is durable.
    pub async fn commit(self) -> Result<()> {
        let mut log = std::mem::take(&mut *lock(&self.log));
        // So there is a log for whatever waits to go along with.
        if log.is_empty() && self.wrote.load(Ordering::Relaxed) && self.on_postgres() {
            log.insert((OTHER, self.store.to_string()), None);
        }
        let positions = self.write_log(&log).await?;
        match self.on {
            On::Sqlite(turn) => turn.commit().await,
            On::Postgres(begun) => begun.commit().await,
            // With its log.
            On::AtOnce(_) => Ok(()),
        }?;
        self.own.add(&self.store, positions, log);
        Ok(())
    }
}
