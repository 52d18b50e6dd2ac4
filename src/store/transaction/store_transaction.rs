//! The write transaction of a store ([`Write`]). Every use case that changes records of a store (tenant) runs in it.
//!
//! Guarantees: no other transaction changes the rows that this transaction has locked, until this transaction ends. Events and the change
//! log (the list of changed records, which the search index follows) commit with the change or not at all. If the transaction is dropped
//! without [`Write::commit`], it is rolled back.
//!
//! On PostgreSQL a frequent write, such as sending a message, needs only two pipelined batches of statements: first BEGIN and the SELECTs
//! that lock its rows, then all its changes and COMMIT. All writes lock rows in one order, which prevents deadlocks: the advisory lock of
//! the seats (memberships of users), then users, then accounts, then existing conversations, then their tickets, then contacts, then the
//! counter of tickets.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, DbBackend, EntityTrait, QueryFilter, QuerySelect,
    sea_query::OnConflict,
};

use crate::{
    domain::{
        clock::Clock,
        events::Event,
        ids::{ContactId, MessageId, StoreId},
        messages::Message,
        time::Timestamp,
    },
    store::{
        Db, Result,
        change_log::{
            own_change_queue::{InsertedRecord, OwnChangeQueue, WriteChangeLog},
            searchable_message::searchable,
        },
        db::OnStatement,
        entity::{change_log_entries, events, idempotency_keys},
        mutex::lock,
        parameterised_sql::{Param, Sql},
        postgres::{pipelined_connection::QueryResult, pipelined_transaction::BegunTransaction},
        row_decoding::{Cells, Row},
        settings::encryption_keys::SecretKeys,
        sql_from_entities::insert_all,
        transaction::system_transaction::TransactionConnection,
    },
};

/// The most rows of one INSERT, since the databases limit the number of values in a statement.
const ROWS_MAX: usize = 500;

/// A write transaction on one store.
pub struct Write {
    on: TransactionConnection,
    store: StoreId,
    clock: Arc<dyn Clock>,
    /// The time of the change, in milliseconds.
    now: AtomicI64,
    /// The records that the commit adds to the change log.
    log: Mutex<WriteChangeLog>,
    /// The epoch in which this transaction began: the value of the counter [`Db::own_epoch`]. The search index increments the counter after
    /// it has read records without the change log. These may include a message that this transaction inserted, in a newer state. So if the
    /// counter has been incremented since, the index ignores the content that this transaction passes to it, and reads the message from the
    /// database.
    epoch: u64,
    /// On PostgreSQL: statements that are held back until the next statement and sent in one batch with it.
    later: Mutex<Vec<Sql>>,
    /// Whether rows may have changed, that is, whether [`Write::run`], [`Write::run_deferred`] or [`Write::run_returning`] was called.
    wrote: AtomicBool,
    own: Arc<OwnChangeQueue>,
    on_statement: Option<OnStatement>,
    secret_keys: SecretKeys,
}

/// A changed record that derived data, such as the search index, has to follow.
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

/// The kind of a change log entry that names no record. On PostgreSQL every write leaves a row in the change log, even if it changed no
/// record that derived data follows ([`Changed`]): the log names the newest transaction of each store, and a standby is read only once it
/// shows that transaction (see `postgres::replica`).
pub(in crate::store) const UNTRACKED_KIND: &str = "other";

/// The response that is stored with an idempotency key and sent again if the client repeats the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    pub request_hash: String,
    pub body: Vec<u8>,
}

impl Db {
    /// Begins a write transaction on a store. On SQLite it waits for the writers that came before it.
    pub async fn write(&self, store: &StoreId, clock: &Arc<dyn Clock>) -> Result<Write> {
        let on = self.begin_write().await?;
        Ok(Write {
            on,
            store: store.clone(),
            clock: clock.clone(),
            now: AtomicI64::new(clock.now().millis()),
            log: Mutex::default(),
            epoch: self.own_epoch(),
            later: Mutex::default(),
            wrote: AtomicBool::new(false),
            own: self.own_changes.clone(),
            on_statement: self.on_statement.clone(),
            secret_keys: self.secret_keys().clone(),
        })
    }
}

impl Write {
    pub fn store(&self) -> &StoreId {
        &self.store
    }

    pub(in crate::store) fn secret_keys(&self) -> &SecretKeys {
        &self.secret_keys
    }

    /// Returns the time of the change. It is read after this transaction has waited for the writers before it (SQLite) or has locked rows
    /// (PostgreSQL). So it is not earlier than the changes that it waited for, as far as the clocks of the processes agree.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    /// Begins a statement whose `$1` is the id of the store.
    pub(in crate::store) fn sql(&self, text: &str) -> Sql {
        Sql::of(&self.store, text)
    }

    fn count_statement(&self) {
        if let Some(on_statement) = &self.on_statement {
            on_statement();
        }
    }

    pub(in crate::store) async fn all<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.count_statement();
        match &self.on {
            TransactionConnection::Sqlite(turn) => turn.all(&sql, &decode),
            TransactionConnection::Postgres(begun) => {
                let rows = self.send_pipelined(begun, vec![sql]).await?.pop().unwrap_or_default().rows;
                rows.iter().map(|row| decode(&mut Cells::postgres(row))).collect()
            }
        }
    }

    /// Runs a statement that changes rows, and returns the rows of its `RETURNING` clause.
    pub(in crate::store) async fn run_returning<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.wrote.store(true, Ordering::Relaxed);
        self.all(sql, decode).await
    }

    pub(in crate::store) async fn first<T>(&self, sql: Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Option<T>> {
        Ok(self.all(sql, decode).await?.into_iter().next())
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(in crate::store) async fn run(&self, sql: Sql) -> Result<u64> {
        self.wrote.store(true, Ordering::Relaxed);
        self.count_statement();
        match &self.on {
            TransactionConnection::Sqlite(turn) => turn.run(&sql),
            TransactionConnection::Postgres(begun) => Ok(self.send_pipelined(begun, vec![sql]).await?.pop().unwrap_or_default().affected),
        }
    }

    /// Runs a statement whose result is not needed. On PostgreSQL the statement is held back and sent in one batch with the next statement,
    /// in the order of the calls. If the held-back statement fails, the next statement fails too, with the same error.
    pub(in crate::store) fn run_deferred(&self, sql: Sql) -> Result<()> {
        self.wrote.store(true, Ordering::Relaxed);
        self.count_statement();
        match &self.on {
            TransactionConnection::Sqlite(turn) => turn.run(&sql).map(|_| ()),
            TransactionConnection::Postgres(_) => {
                lock(&self.later).push(sql);
                Ok(())
            }
        }
    }

    fn waiting(&self) -> Vec<Sql> {
        std::mem::take(&mut *lock(&self.later))
    }

    /// Sends one pipelined batch: the statements that were held back, then `statements`. Returns the results of `statements` only.
    async fn send_pipelined(&self, begun: &BegunTransaction, statements: Vec<Sql>) -> Result<Vec<QueryResult>> {
        let locks = statements.iter().any(Sql::locks_rows);
        let mut flight = self.waiting();
        let before = flight.len();
        flight.extend(statements);
        let answers = begun.run_pipelined(&flight).await?;
        if locks {
            self.now.store(self.clock.now().millis(), Ordering::Relaxed);
        }
        Ok(answers.into_iter().skip(before).collect())
    }

    pub(in crate::store) fn on_postgres(&self) -> bool {
        self.backend() == DbBackend::Postgres
    }

    pub(in crate::store) fn backend(&self) -> DbBackend {
        self.on.backend()
    }

    /// Reads the first record that a query finds. Locks all records that it finds until the end of the transaction.
    pub(in crate::store) async fn first_locked<T: Row>(&self, sql: Sql) -> Result<Option<T>> {
        self.first(self.locking(sql), T::decode).await
    }

    /// Reads the first record that the first query finds, and the first row that the second one finds. Locks all rows that they find, those
    /// of the first query first, until the end of the transaction. On PostgreSQL both queries are sent in one batch. `None`: the first query
    /// finds no record.
    pub(in crate::store) async fn first_locked_with<T: Row, U>(
        &self,
        first: Sql,
        second: Sql,
        decode: impl Fn(&mut Cells<'_>) -> Result<U>,
    ) -> Result<Option<(T, Option<U>)>> {
        let TransactionConnection::Postgres(begun) = &self.on else {
            let Some(record) = self.first(first, T::decode).await? else { return Ok(None) };
            return Ok(Some((record, self.first(second, decode).await?)));
        };
        let statements = vec![self.locking(first), self.locking(second)];
        statements.iter().for_each(|_| self.count_statement());
        let mut answers = self.send_pipelined(begun, statements).await?.into_iter();
        let (mut records, mut rows) = (answers.next().unwrap_or_default().rows, answers.next().unwrap_or_default().rows);
        let Some(record) = records.pop() else { return Ok(None) };
        let row = rows.pop().map(|row| decode(&mut Cells::postgres(&row))).transpose()?;
        Ok(Some((T::decode(&mut Cells::postgres(&record))?, row)))
    }

    /// Makes a SELECT lock the rows that it finds. SQLite needs no row locks, since it has only one writer at a time.
    pub(in crate::store) fn locking(&self, mut sql: Sql) -> Sql {
        if self.on_postgres() {
            sql.lock_rows();
        }
        sql
    }

    /// Adds a changed record to the change log. The entry is written with the commit.
    pub fn changed(&self, record: Changed<'_>) {
        let (kind, id) = record.parts();
        lock(&self.log).insert((kind, id.to_owned()), None);
    }

    /// Adds an inserted message to the change log. If its texts are short, the commit also gives the message to the search index of this
    /// process, which then need not read it from the database. `subject`: the subject of the message's conversation.
    pub fn inserted(&self, message: &Message, subject: Option<&str>) {
        let (kind, id) = Changed::Message(&message.id).parts();
        let texts = [message.text.as_deref(), message.payload.as_deref(), subject];
        let got = self.own.tells(texts.into_iter().flatten().map(str::len).sum());
        let inserted = got.then(|| InsertedRecord { record: searchable(&self.store, message, subject), epoch: self.epoch });
        lock(&self.log).insert((kind, id.to_owned()), inserted);
    }

    /// Returns the statements that write the change log. On PostgreSQL each of them returns the positions of its rows in the log.
    fn log_statements(&self, log: &WriteChangeLog) -> Result<Vec<Sql>> {
        let transaction = self.on_postgres().then_some((change_log_entries::Column::TransactionId, "pg_current_xact_id()::text::bigint"));
        let log: Vec<_> = log.keys().collect();
        let insert = |rows: &[&(&'static str, String)]| {
            let rows = rows.iter().map(|(kind, id)| change_log_entries::ActiveModel {
                store_id: Set(self.store.to_string()),
                kind: Set((*kind).to_owned()),
                record_ids: Set(id.clone()),
                changed_at: Set(self.now().millis()),
                transaction_id: if transaction.is_some() { NotSet } else { Set(0) },
                ..Default::default()
            });
            let mut sql = insert_all(rows, transaction, self.backend())?;
            if self.on_postgres() {
                sql.push(" RETURNING position");
            }
            Ok(sql)
        };
        log.chunks(ROWS_MAX).map(insert).collect()
    }

    /// Stores events with their rendered bodies. The events get their sequence numbers after the commit.
    pub async fn record(&self, events: &[(Event, Vec<u8>)]) -> Result<()> {
        for rows in events.chunks(ROWS_MAX) {
            let rows = rows.iter().map(|(event, body)| events::ActiveModel {
                store_id: Set(self.store.to_string()),
                id: Set(event.id.clone()),
                kind: Set(event.fact.kind().to_owned()),
                account_id: Set(event.fact.account().map(ToString::to_string)),
                occurred_at: Set(event.at.millis()),
                body: Set(body.clone()),
                ..Default::default()
            });
            self.run_deferred(insert_all(rows, None, self.backend())?)?;
        }
        Ok(())
    }

    /// Returns the response that was stored for this idempotency key, if it was stored after `since`.
    pub async fn kept(&self, operation: &str, key: &str, since: Timestamp) -> Result<Option<StoredResponse>> {
        let query = idempotency_keys::Entity::find_by_id((self.store.to_string(), operation.to_owned(), key.to_owned()))
            .select_only()
            .columns([idempotency_keys::Column::RequestHash, idempotency_keys::Column::Body])
            .filter(idempotency_keys::Column::CreatedAt.gt(since));
        Ok(self.select(query, |cells| Ok(StoredResponse { request_hash: cells.take()?, body: cells.take()? })).await?.pop())
    }

    /// Stores the response to this request under its idempotency key. It replaces an older response with the same key.
    pub fn keep(&self, operation: &str, key: &str, kept: StoredResponse) -> Result<()> {
        use idempotency_keys::Column::{Body, CreatedAt, Key, Operation, RequestHash, StoreId};
        let row = idempotency_keys::ActiveModel {
            store_id: Set(self.store.to_string()),
            operation: Set(operation.to_owned()),
            key: Set(key.to_owned()),
            request_hash: Set(kept.request_hash),
            status: Set(Some(200)),
            body: Set(Some(kept.body)),
            created_at: Set(self.now().millis()),
        };
        let replaced = OnConflict::columns([StoreId, Operation, Key]).update_columns([RequestHash, Body, CreatedAt]).to_owned();
        self.execute_deferred(&idempotency_keys::Entity::insert(row).on_conflict(replaced))
    }

    /// Takes the store's advisory lock with this name, and keeps it until the end of the transaction. Waits while another transaction has
    /// this lock. Does nothing on SQLite, which has one writer at a time.
    pub async fn named_lock(&self, name: &str) -> Result<()> {
        if self.on_postgres() {
            // `IS NULL` gives the row a boolean, since no decoder reads the result type `void` of the function.
            let sql = Sql::fixed("SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) IS NULL").with(self.lock_name(name));
            self.first(sql, |_| Ok(())).await?;
        }
        Ok(())
    }

    fn lock_name(&self, name: &str) -> Param {
        Param::Text(format!("{}\u{1f}{name}", self.store))
    }

    /// Tries to take the store's advisory lock with this name, and keeps it until the end of the transaction. `false`: another transaction
    /// has this lock. Always `true` on SQLite, which has one writer at a time.
    pub async fn try_named_lock(&self, name: &str) -> Result<bool> {
        if !self.on_postgres() {
            return Ok(true);
        }
        let sql = Sql::fixed("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))").with(self.lock_name(name));
        Ok(self.first(sql, |cells| cells.take()).await?.unwrap_or(false))
    }

    /// Sends the statements that were held back (see `run_deferred`) and returns an error if one of them fails.
    pub async fn run_waiting(&self) -> Result<()> {
        let TransactionConnection::Postgres(begun) = &self.on else { return Ok(()) };
        let waiting = self.waiting();
        if !waiting.is_empty() {
            begun.run_pipelined(&waiting).await?;
        }
        Ok(())
    }

    /// Writes the transaction's change log and commits the transaction. On SQLite it waits until the commit group (the writes that are
    /// committed together) is durable, even if this transaction changed nothing: it may have read changes of the group that are not durable
    /// yet.
    pub async fn commit(self) -> Result<()> {
        let mut log = std::mem::take(&mut *lock(&self.log));
        // On PostgreSQL a transaction that wrote something always leaves an entry in the change log: see `UNTRACKED_KIND`.
        if log.is_empty() && self.wrote.load(Ordering::Relaxed) && self.on_postgres() {
            log.insert((UNTRACKED_KIND, self.store.to_string()), None);
        }
        let logging = self.log_statements(&log)?;
        logging.iter().for_each(|_| self.count_statement());
        let mut positions: Vec<i64> = Vec::with_capacity(log.len());
        let mut flight = self.waiting();
        match self.on {
            TransactionConnection::Sqlite(turn) => {
                for sql in &logging {
                    positions.extend(turn.insert(sql)?);
                }
                turn.commit().await?;
            }
            TransactionConnection::Postgres(begun) => {
                let before = flight.len();
                flight.extend(logging);
                for answer in begun.commit(&flight).await?.iter().skip(before) {
                    for row in &answer.rows {
                        positions.push(Cells::postgres(row).take()?);
                    }
                }
            }
        }
        self.own.add(&self.store, positions, log);
        Ok(())
    }
}
