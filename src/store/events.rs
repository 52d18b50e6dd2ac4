//! The event log: sequence numbers of recorded events, and pages of events. Numbering an event also queues it for webhooks.
//!
//! A write records its events without a number; `numbering` explains when they get one.

use sea_orm::{
    ColumnTrait, Condition, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, InsertStatement, Order, Query, SelectStatement},
};

use crate::{
    domain::{ids::StoreId, time::Timestamp},
    store::{
        Db, Error, Result,
        entity::{deliveries, events, webhook_kinds, webhooks},
        numbering::NumberedTable,
        postgres::advisory_locks::AdvisoryLock,
        row_decoding::Cells,
        sql_from_entities::{among, change_sql, equal_columns, is, select_sql},
    },
};

const EVENTS: NumberedTable = NumberedTable { name: "events", lock: AdvisoryLock::EventNumbers };

/// The most events that one statement scans. If a client requests only rare kinds of events, a page may need several such statements.
const MAX_SCANNED: i64 = 10_000;

/// A recorded event with its number.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub sequence: i64,
    pub body: Vec<u8>,
}

impl Db {
    /// Assigns sequence numbers to the committed events that have none, of one store or of all stores. The same transaction queues each of
    /// these events for the webhooks that subscribe to it, so that every event with a number has been queued.
    pub async fn number_events(&self, of: Option<&StoreId>, now: Timestamp) -> Result<()> {
        let backend = self.backend();
        let number = |store: &StoreId, positions: &[i64]| {
            let lock = (backend == DbBackend::Postgres).then(|| select_sql(enabled_webhooks(store), backend));
            let mut numbered = subscribed_events(store);
            numbered.and_where(is(webhooks::Column::Enabled, true));
            numbered.and_where(among(events::Column::Position, positions.iter().copied()));
            numbered.order_by((events::Entity, events::Column::Position), Order::Asc);
            let last = events::Entity::find().select_only().expr(events::Column::Sequence.max()).filter(events::Column::StoreId.eq(store));
            let last = last.filter(events::Column::Sequence.is_not_null()).into_query();
            let queue = queue(numbered, now).and_then(|queue| change_sql(&queue, backend));
            lock.into_iter().chain([change_sql(&EVENTS.number(store, positions, last), backend), queue]).collect()
        };
        self.number_rows(EVENTS, of, number).await
    }

    /// Returns at most `limit` events after a sequence number, in the order of numbers.
    pub async fn events_after(&self, store: &StoreId, after: i64, limit: i64) -> Result<Vec<Recorded>> {
        self.select(numbered_after(store, after).limit(u64::try_from(limit).unwrap_or_default()), recorded).await
    }

    /// Returns at most `limit` events of these kinds after a sequence number, in the order of numbers. Also returns the sequence number up
    /// to which all events were searched, after which the next page begins.
    pub async fn events_of_kinds(&self, store: &StoreId, after: i64, kinds: &[&str], limit: i64) -> Result<(Vec<Recorded>, i64)> {
        let last = self.last_sequence(store).await?;
        let mut reached = after;
        while reached < last {
            let end = reached.saturating_add(MAX_SCANNED).min(last);
            let query = numbered_after(store, reached)
                .filter(events::Column::Sequence.lte(end))
                .filter(among(events::Column::Kind, kinds.iter().copied()))
                .limit(u64::try_from(limit).unwrap_or_default());
            let found = self.select(query, recorded).await?;
            let full = i64::try_from(found.len()).is_ok_and(|found| found >= limit);
            reached = found.last().filter(|_| full).map_or(end, |last| last.sequence);
            if !found.is_empty() {
                return Ok((found, reached));
            }
        }
        Ok((Vec::new(), reached))
    }
}

/// Returns the query for the events of a store after a sequence number, for [`recorded`].
fn numbered_after(store: &StoreId, after: i64) -> Select<events::Entity> {
    events::Entity::find()
        .select_only()
        .columns([events::Column::Sequence, events::Column::Body])
        .filter(events::Column::StoreId.eq(store))
        .filter(events::Column::Sequence.is_not_null())
        .filter(events::Column::Sequence.gt(after))
        .order_by_asc(events::Column::Sequence)
}

fn recorded(cells: &mut Cells<'_>) -> Result<Recorded> {
    Ok(Recorded { sequence: cells.take()?, body: cells.take()? })
}

/// Returns the query that locks the enabled webhooks of a store until the end of the transaction, on PostgreSQL. Without the lock, another
/// transaction could disable or delete a webhook while this one queues events for it, and these events would remain in the queue.
fn enabled_webhooks(store: &StoreId) -> Select<webhooks::Entity> {
    webhooks::Entity::find()
        .select_only()
        .column(webhooks::Column::Id)
        .filter(webhooks::Column::StoreId.eq(store))
        .filter(is(webhooks::Column::Enabled, true))
        .order_by_asc(webhooks::Column::Id)
        .lock_shared()
}

/// Returns a query for the events of a store, each joined with the webhooks that subscribe to its account and its kind.
pub(super) fn subscribed_events(store: &StoreId) -> SelectStatement {
    let kinds = Query::select()
        .expr(Expr::Constant(1.into()))
        .from(webhook_kinds::Entity)
        .and_where(webhook_kinds::Column::StoreId.eq(store))
        // Citus runs an `INSERT … SELECT` of this query on the node of the store only if the `store_id` columns are compared, too.
        .and_where(equal_columns(webhook_kinds::Column::StoreId, webhooks::Column::StoreId))
        .and_where(equal_columns(webhook_kinds::Column::WebhookId, webhooks::Column::Id))
        .to_owned();
    let kind = kinds.clone().and_where(equal_columns(webhook_kinds::Column::Kind, events::Column::Kind)).to_owned();
    let of_account = Condition::any()
        .add(webhooks::Column::AccountId.is_null())
        .add(equal_columns(webhooks::Column::AccountId, events::Column::AccountId));
    Query::select()
        .from(events::Entity)
        .inner_join(webhooks::Entity, equal_columns(webhooks::Column::StoreId, events::Column::StoreId))
        .and_where(events::Column::StoreId.eq(store))
        .cond_where(of_account)
        .cond_where(Condition::any().add(Expr::not_exists(kinds)).add(Expr::exists(kind)))
        .to_owned()
}

/// Returns the statement that queues the events of a query of [`subscribed_events`] for their webhooks.
pub(super) fn queue(mut subscribed: SelectStatement, now: Timestamp) -> Result<InsertStatement> {
    use deliveries::Column;
    subscribed
        .column(events::Column::StoreId.as_column_ref())
        .column(webhooks::Column::Id.as_column_ref())
        .columns([events::Column::Id, events::Column::Kind, events::Column::Sequence].map(|column| column.as_column_ref()))
        .exprs([Expr::Constant(0_i64.into()), Expr::val(now)]);
    let columns = [Column::StoreId, Column::WebhookId, Column::EventId, Column::Kind, Column::Sequence, Column::Attempts, Column::DueAt];
    let mut insert = Query::insert();
    insert.into_table(deliveries::Entity).columns(columns);
    insert.select_from(subscribed).map_err(|error| Error::Damaged(error.to_string()))?;
    Ok(insert)
}
