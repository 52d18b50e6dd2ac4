//! The event log: sequence numbers of recorded events, and pages of events. Numbering an event also queues it for webhooks.
//!
//! A write records its events without a number; `numbering` explains when they get one.

use sea_orm::DbBackend;

use crate::{
    domain::{ids::StoreId, time::Timestamp},
    store::{Db, Result, numbering::NumberedTable, postgres::advisory_locks::AdvisoryLock, sql::Sql},
};

/// A condition in SQL, to be appended to other conditions: the webhook `w` subscribes to the account and the kind of the event `e`. `$1` is
/// the store of both.
pub(super) const SUBSCRIPTION_MATCHES: &str = " AND (w.account_id IS NULL OR w.account_id = e.account_id) \
     AND (NOT EXISTS (SELECT 1 FROM webhook_kinds k WHERE k.store_id = w.store_id AND k.store_id = $1 AND k.webhook_id = w.id) \
          OR EXISTS (SELECT 1 FROM webhook_kinds k WHERE k.store_id = w.store_id AND k.store_id = $1 AND k.webhook_id = w.id \
                     AND k.kind = e.type))";

/// Locks the webhooks of a store until the end of the transaction, on PostgreSQL. Without the lock, another transaction could disable or
/// delete a webhook while this one queues events for it, and these events would remain in the queue.
const LOCKED_WEBHOOKS: &str = "SELECT id FROM webhooks WHERE store_id = $1 AND enabled = TRUE ORDER BY id FOR SHARE";

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
        let locked = (self.backend() == DbBackend::Postgres).then_some(LOCKED_WEBHOOKS);
        let number = |store: &StoreId, positions: &[i64]| {
            let lock = locked.map(|locked| Sql::of(store, locked));
            lock.into_iter().chain([number(store, positions), queue(store, positions, now)]).collect()
        };
        self.number_rows(EVENTS, of, number).await
    }

    /// Returns at most `limit` events after a sequence number, in the order of numbers.
    pub async fn events_after(&self, store: &StoreId, after: i64, limit: i64) -> Result<Vec<Recorded>> {
        let mut sql = Sql::of(store, "SELECT sequence, body FROM events WHERE store_id = $1 AND sequence IS NOT NULL AND sequence > ");
        sql.integer(after).push(" ORDER BY sequence").limit(limit);
        self.all(sql, |cells| Ok(Recorded { sequence: cells.take()?, body: cells.bytes()? })).await
    }

    /// Returns at most `limit` events of these kinds after a sequence number, in the order of numbers. Also returns the sequence number up
    /// to which all events were searched, after which the next page begins.
    pub async fn events_of_kinds(&self, store: &StoreId, after: i64, kinds: &[&str], limit: i64) -> Result<(Vec<Recorded>, i64)> {
        let last = Sql::of(store, "SELECT COALESCE(MAX(sequence), 0) FROM events WHERE store_id = $1 AND sequence IS NOT NULL");
        let last = self.first(last, |cells| cells.take::<i64>()).await?.unwrap_or(0);
        let mut reached = after;
        while reached < last {
            let end = reached.saturating_add(MAX_SCANNED).min(last);
            let mut sql = Sql::of(store, "SELECT sequence, body FROM events WHERE store_id = $1 AND sequence IS NOT NULL AND sequence > ");
            sql.integer(reached).push(" AND sequence <= ").integer(end).push(" AND type IN ").texts(kinds.iter().copied());
            sql.push(" ORDER BY sequence").limit(limit);
            let found = self.all(sql, |cells| Ok(Recorded { sequence: cells.take()?, body: cells.bytes()? })).await?;
            let full = i64::try_from(found.len()).is_ok_and(|found| found >= limit);
            reached = found.last().filter(|_| full).map_or(end, |last| last.sequence);
            if !found.is_empty() {
                return Ok((found, reached));
            }
        }
        Ok((Vec::new(), reached))
    }
}

/// Returns the statement that numbers the events of a store at these positions.
fn number(store: &StoreId, positions: &[i64]) -> Sql {
    let mut sql = Sql::of(
        store,
        "UPDATE events SET sequence = numbered.sequence FROM (\
         SELECT e.position, ROW_NUMBER() OVER (ORDER BY e.position) \
             + COALESCE((SELECT MAX(m.sequence) FROM events m WHERE m.store_id = $1 AND m.sequence IS NOT NULL), 0) AS sequence \
         FROM events e WHERE e.store_id = $1 AND e.position IN ",
    );
    sql.integers(positions).push(") AS numbered WHERE events.store_id = $1 AND events.position = numbered.position");
    sql
}

/// Returns the statement that queues the events of a store at these positions for the webhooks that subscribe to them.
fn queue(store: &StoreId, positions: &[i64], now: Timestamp) -> Sql {
    let mut sql = Sql::of(store, "INSERT INTO deliveries (store_id, webhook_id, event_id, kind, sequence, attempts, due_at) ");
    sql.push("SELECT e.store_id, w.id, e.id, e.type, e.sequence, 0, ").integer(now.millis());
    sql.push(" FROM events e JOIN webhooks w ON w.store_id = e.store_id AND w.enabled = TRUE")
        .push(SUBSCRIPTION_MATCHES)
        .push(" WHERE e.store_id = $1 AND e.position IN ");
    sql.integers(positions).push(" ORDER BY e.position");
    sql
}
