//! The queue of webhook deliveries, and the log of delivery attempts. A delivery is one event for one webhook subscription.
//!
//! A worker claims a due delivery before it attempts to send it: the claim is stored in the row, and `due_at` becomes the end of the
//! worker's lease. If the worker dies, another worker can claim the delivery after that time. The due deliveries are looked up for each
//! subscription separately, so that the long queue of one subscription does not hide the queue of another.

use std::collections::BTreeSet;

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::Expr,
};

use crate::{
    domain::{
        events::numbered,
        ids::{EventId, StoreId, WebhookId},
        time::Timestamp,
        webhooks::{AttemptLogPage, Attempted, EndpointAnswer, LoggedAttempt, Replay, WebhookDelivery},
    },
    store::{
        Db, Result,
        entity::{attempts, deliveries, events},
        events::SUBSCRIPTION_MATCHES,
        queues::concurrency::{Allotment, AttemptLimits},
        row_decoding::Cells,
        settings::{signing_secrets::readable, webhooks::SECRETS},
        sql::{Param, Sql},
        transaction::store_transaction::Write,
    },
};

/// A webhook subscription: its store and its id.
pub type StoreWebhook = (StoreId, WebhookId);

/// An event that a worker has claimed, in order to send it to an endpoint.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    pub position: i64,
    pub claim: String,
    /// The number of attempts, including the attempt of this claim.
    pub attempts: i64,
    pub webhook_delivery: WebhookDelivery,
}

impl From<attempts::Model> for LoggedAttempt {
    fn from(row: attempts::Model) -> Self {
        Self {
            position: row.position,
            event_id: row.event_id,
            kind: row.kind,
            url: row.url,
            attempt: row.attempt,
            started_at: Timestamp::from_millis(row.started_at),
            took: row.took,
            status: row.status,
            reason: row.reason,
            outcome: row.outcome,
            next_at: row.next_at.map(Timestamp::from_millis),
            answer: row.answer,
        }
    }
}

impl Write {
    /// Deletes at most `limit` logged attempts of a subscription, whatever their age, and at most `limit` of its deliveries that have no
    /// further attempt. Returns the number of deleted rows. To delete a subscription, the service first calls this function until it
    /// returns 0.
    pub async fn prune_attempts(&self, id: &WebhookId, limit: u64) -> Result<u64> {
        // Each outer statement names the store for a distributed database (Citus). SQLite would then read all rows of the store.
        let settled = deliveries::Entity::find()
            .select_only()
            .column(deliveries::Column::Position)
            .filter(deliveries::Column::StoreId.eq(self.store()))
            .filter(deliveries::Column::WebhookId.eq(id))
            .filter(deliveries::Column::DueAt.is_null())
            .limit(limit);
        let settled = Condition::all()
            .add_option(self.on_postgres().then(|| deliveries::Column::StoreId.eq(self.store())))
            .add(deliveries::Column::Position.in_subquery(settled.into_query()));
        let logged = attempts::Entity::find()
            .select_only()
            .column(attempts::Column::Position)
            .filter(attempts::Column::StoreId.eq(self.store()))
            .filter(attempts::Column::WebhookId.eq(id))
            .limit(limit);
        let logged = Condition::all()
            .add_option(self.on_postgres().then(|| attempts::Column::StoreId.eq(self.store())))
            .add(attempts::Column::Position.in_subquery(logged.into_query()));
        let forgotten = self.execute(&deliveries::Entity::delete_many().filter(settled)).await?;
        Ok(forgotten + self.execute(&attempts::Entity::delete_many().filter(logged)).await?)
    }

    /// Queues an event that was made to test the endpoint.
    pub async fn queue_test(&self, webhook: &WebhookId, event_id: &str, kind: &str, body: Vec<u8>) -> Result<()> {
        self.insert(deliveries::ActiveModel {
            position: NotSet,
            store_id: Set(self.store().to_string()),
            webhook_id: Set(webhook.to_string()),
            event_id: Set(event_id.to_owned()),
            kind: Set(kind.to_owned()),
            sequence: NotSet,
            body: Set(Some(body)),
            attempts: Set(0),
            due_at: Set(Some(self.now().millis())),
            claim: NotSet,
            delivered_at: NotSet,
        })
        .await
    }

    /// Queues recorded events again for a replay (a request to deliver events again): the events that match both the subscription and the
    /// replay, with sequence numbers in `range` (the end is exclusive). Their attempts are counted from 0 again. Skips an event with an
    /// attempt in progress, and test events (see [`Write::queue_test_replay`]). Returns the number of queued events.
    pub async fn queue_replay(&self, webhook: &WebhookId, replay: &Replay, range: (i64, i64)) -> Result<u64> {
        let now = self.now().millis();
        let mut sql = self.sql("INSERT INTO deliveries (store_id, webhook_id, event_id, kind, sequence, attempts, due_at) ");
        sql.push("SELECT e.store_id, w.id, e.id, e.type, e.sequence, 0, ").integer(now);
        sql.push(" FROM events e JOIN webhooks w ON w.store_id = e.store_id AND w.id = ");
        push_replay_of_recorded(&mut sql, webhook, replay, now);
        sql.push(" AND e.sequence >= ").integer(range.0).push(" AND e.sequence < ").integer(range.1);
        sql.push(" ON CONFLICT (store_id, webhook_id, event_id) DO UPDATE SET attempts = 0, claim = NULL, due_at = excluded.due_at");
        // Leaves a row as it is if a worker has begun an attempt since the `SELECT` above read the row.
        sql.push(" WHERE deliveries.claim IS NULL OR deliveries.due_at <= excluded.due_at");
        self.run(sql).await
    }

    /// If the replay names a test event, queues that event again. Returns the number of queued events.
    pub async fn queue_test_replay(&self, webhook: &WebhookId, replay: &Replay) -> Result<u64> {
        let now = self.now().millis();
        let mut sql = self.sql("UPDATE deliveries SET attempts = 0, claim = NULL, due_at = ");
        sql.integer(now).push(" WHERE store_id = $1 AND ");
        push_replay_of_tests(&mut sql, webhook, replay, now);
        self.run(sql).await
    }

    /// Records the end of an attempt. `arrived`: the event was delivered. `next_at`: when the next attempt is due, if there is one. Returns
    /// false, and records nothing, if the claim is no longer that of this worker.
    pub async fn settle_delivery(&self, claimed: &ClaimedDelivery, arrived: bool, next_at: Option<Timestamp>) -> Result<bool> {
        let mut settled = deliveries::Entity::update_many()
            .col_expr(deliveries::Column::Claim, Expr::value(None::<String>))
            .col_expr(deliveries::Column::DueAt, Expr::value(next_at.map(Timestamp::millis)));
        if arrived {
            settled = settled.col_expr(deliveries::Column::DeliveredAt, Expr::value(self.now()));
        }
        let settled = settled.filter(self.of_delivery(claimed)).filter(deliveries::Column::Claim.eq(&claimed.claim));
        Ok(self.execute(&settled).await? == 1)
    }

    /// Records that a worker delivered an event after its claim was lost. So a replay of undelivered events (`Replay::missing`) leaves out
    /// the event.
    pub async fn record_late_delivery(&self, claimed: &ClaimedDelivery) -> Result<()> {
        let arrived = deliveries::Entity::update_many()
            .col_expr(deliveries::Column::DeliveredAt, Expr::value(self.now()))
            .filter(self.of_delivery(claimed));
        self.execute(&arrived).await?;
        Ok(())
    }

    fn of_delivery(&self, claimed: &ClaimedDelivery) -> Condition {
        Condition::all().add(deliveries::Column::StoreId.eq(self.store())).add(deliveries::Column::Position.eq(claimed.position))
    }

    pub async fn log_attempt(
        &self,
        claimed: &ClaimedDelivery,
        attempted: &Attempted,
        outcome: &str,
        next_at: Option<Timestamp>,
    ) -> Result<()> {
        let (status, reason) = match &attempted.answer {
            EndpointAnswer::Status(status, _) => (Some(i64::from(*status)), None),
            EndpointAnswer::None(reason) => (None, Some(reason.as_str())),
        };
        let webhook_delivery = &claimed.webhook_delivery;
        self.insert(attempts::ActiveModel {
            position: NotSet,
            store_id: Set(self.store().to_string()),
            webhook_id: Set(webhook_delivery.webhook_id.to_string()),
            event_id: Set(webhook_delivery.event_id.clone()),
            kind: Set(webhook_delivery.kind.clone()),
            url: Set(webhook_delivery.url.clone()),
            attempt: Set(claimed.attempts),
            started_at: Set(attempted.started_at.millis()),
            took: Set(attempted.ended_at.millis().saturating_sub(attempted.started_at.millis())),
            status: Set(status),
            reason: Set(reason.map(str::to_owned)),
            outcome: Set(outcome.to_owned()),
            next_at: Set(next_at.map(Timestamp::millis)),
            answer: Set(attempted.body.clone()),
        })
        .await
    }
}

/// Returns the query for the recorded event with this id.
fn recorded_event(store: &StoreId, event: &str) -> Select<events::Entity> {
    events::Entity::find().filter(events::Column::StoreId.eq(store)).filter(events::Column::Id.eq(event))
}

/// Returns the query for the test event with this id that was made for a subscription.
fn test_event(store: &StoreId, webhook: &WebhookId, event: &str) -> Select<deliveries::Entity> {
    deliveries::Entity::find()
        .filter(deliveries::Column::StoreId.eq(store))
        .filter(deliveries::Column::WebhookId.eq(webhook))
        .filter(deliveries::Column::EventId.eq(event))
        .filter(deliveries::Column::Body.is_not_null())
}

/// Appends the conditions for the recorded events of a replay to a statement that ends with `… w.id = `.
fn push_replay_of_recorded(sql: &mut Sql, webhook: &WebhookId, replay: &Replay, now: i64) {
    sql.text(webhook.as_str()).push(SUBSCRIPTION_MATCHES).push(" WHERE e.store_id = $1 AND e.sequence IS NOT NULL");
    if let Some(event) = &replay.event {
        sql.push(" AND e.id = ").text(event);
    }
    if let Some(since) = replay.since {
        sql.push(" AND e.occurred_at >= ").integer(since.millis());
    }
    if let Some(until) = replay.until {
        sql.push(" AND e.occurred_at < ").integer(until.millis());
    }
    sql.push(" AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.store_id = e.store_id AND d.store_id = $1 AND d.webhook_id = w.id")
        .push(" AND d.event_id = e.id AND (");
    if replay.missing {
        sql.push("d.delivered_at IS NOT NULL OR d.due_at IS NOT NULL))");
    } else {
        sql.push("d.claim IS NOT NULL AND d.due_at > ").integer(now).push("))");
    }
}

/// Appends the conditions for the test event with the id `replay.event`. No row fulfils them if the replay names no event.
fn push_replay_of_tests(sql: &mut Sql, webhook: &WebhookId, replay: &Replay, now: i64) {
    sql.push("body IS NOT NULL AND webhook_id = ").text(webhook.as_str());
    sql.push(" AND event_id = ").optional_text(replay.event.as_deref());
    if replay.missing {
        sql.push(" AND delivered_at IS NULL AND due_at IS NULL");
    } else {
        sql.push(" AND (claim IS NULL OR due_at <= ").integer(now).push(")");
    }
}

impl Db {
    /// Returns the highest sequence number of the store's events; 0 if no event has a number.
    pub async fn last_sequence(&self, store: &StoreId) -> Result<i64> {
        let newest = events::Entity::find()
            .select_only()
            .column(events::Column::Sequence)
            .filter(events::Column::StoreId.eq(store))
            .filter(events::Column::Sequence.is_not_null())
            .order_by_desc(events::Column::Sequence)
            .limit(1);
        Ok(self.select(newest, |cells| cells.take()).await?.pop().unwrap_or_default())
    }

    /// Returns whether the store recorded an event with this id, or a test event with this id was made for the subscription.
    pub async fn knows_event(&self, store: &StoreId, webhook: &WebhookId, event: &str) -> Result<bool> {
        Ok(self.find_one(recorded_event(store, event)).await?.is_some()
            || self.find_one(test_event(store, webhook, event)).await?.is_some())
    }

    /// Returns the body of an event as the subscription receives it. `None`: there is no such event, it has no sequence number yet, or its
    /// stored body is damaged.
    pub async fn sent_body(&self, store: &StoreId, webhook: &WebhookId, event: &EventId) -> Result<Option<Vec<u8>>> {
        if let Some(test) = self.find_one(test_event(store, webhook, event.as_str())).await? {
            return Ok(test.body);
        }
        let event = self.find_one(recorded_event(store, event.as_str())).await?;
        Ok(event.and_then(|event| numbered(event.sequence?, &event.body)))
    }

    /// Returns how many events a replay would queue.
    pub async fn count_replay(&self, store: &StoreId, webhook: &WebhookId, replay: &Replay, now: Timestamp) -> Result<i64> {
        let mut recorded = Sql::of(store, "SELECT COUNT(*) FROM events e JOIN webhooks w ON w.store_id = e.store_id AND w.id = ");
        push_replay_of_recorded(&mut recorded, webhook, replay, now.millis());
        let mut tests = Sql::of(store, "SELECT COUNT(*) FROM deliveries WHERE store_id = $1 AND ");
        push_replay_of_tests(&mut tests, webhook, replay, now.millis());
        let mut count = 0;
        for mut sql in [recorded, tests] {
            sql.unbounded();
            count += self.first(sql, |cells| cells.take::<i64>()).await?.unwrap_or(0);
        }
        Ok(count)
    }

    /// Returns at most `limit` logged attempts of a subscription: those after a position, the oldest first, or those before a position (or
    /// all), the newest first.
    pub async fn attempts(&self, store: &StoreId, webhook: &WebhookId, along: AttemptLogPage, limit: i64) -> Result<Vec<LoggedAttempt>> {
        let position = attempts::Column::Position;
        let query = attempts::Entity::find()
            .filter(attempts::Column::StoreId.eq(store))
            .filter(attempts::Column::WebhookId.eq(webhook))
            .limit(u64::try_from(limit).unwrap_or_default());
        let query = match along {
            AttemptLogPage::After(behind) => query.filter(position.gt(behind)).order_by_asc(position),
            AttemptLogPage::Before(Some(before)) => query.filter(position.lt(before)).order_by_desc(position),
            AttemptLogPage::Before(None) => query.order_by_desc(position),
        };
        Ok(self.find_all(query).await?.into_iter().map(Into::into).collect())
    }

    /// Returns the earliest time at which an attempt to deliver an event is due, in any store.
    pub async fn next_delivery_at(&self) -> Result<Option<Timestamp>> {
        let next = |of: Option<&StoreId>| {
            let mut sql = Sql::fixed("SELECT due_at FROM deliveries WHERE due_at IS NOT NULL");
            sql.and_of_store("store_id", of).push(" ORDER BY due_at").limit(1);
            sql
        };
        Ok(self.across_stores(next, |cells| cells.time()).await?.into_iter().min())
    }

    /// Claims due deliveries under a lease that ends at `lease`, at most `room.each` of one subscription. Leaves out the subscriptions and
    /// stores that have reached their limit of concurrent attempts.
    pub async fn claim_deliveries(
        &self,
        now: Timestamp,
        lease: Timestamp,
        claim: &str,
        room: AttemptLimits<'_, StoreWebhook>,
    ) -> Result<Vec<ClaimedDelivery>> {
        let backend = self.backend();
        let rows: Vec<StoreWebhook> = self.across_stores(|of| due(backend, now, room, of), |cells| Ok((cells.id()?, cells.id()?))).await?;
        let (mut busy, mut due) = (room.busy.clone(), Vec::with_capacity(rows.len()));
        for place in rows {
            let attempts = busy.entry(place.clone()).or_default();
            *attempts += 1;
            due.push((*attempts, place));
        }
        // The limits may not permit all attempts. So the deliveries of subscriptions with few attempts in progress come first.
        due.sort_by_key(|(attempts, _)| *attempts);
        let allotted = room.allotted(due.into_iter().map(|(_, place)| place));
        let mut claimed =
            self.claim_by_store(allotted, |store, allotted| self.claim_deliveries_of(store, allotted, now, lease, claim)).await?;
        claimed.sort_by_key(|one| one.position);
        Ok(claimed)
    }

    /// Claims due deliveries of a store, as many for each subscription as are allotted.
    async fn claim_deliveries_of(
        &self,
        store: StoreId,
        allotted: Allotment<StoreWebhook>,
        now: Timestamp,
        lease: Timestamp,
        claim: &str,
    ) -> Result<Vec<ClaimedDelivery>> {
        let tx = self.begin().await?;
        let mut chosen: Vec<i64> = Vec::new();
        for ((_, webhook), attempts) in allotted.each() {
            let mut sql = Sql::of(&store, "SELECT position FROM deliveries WHERE store_id = $1 AND webhook_id = ");
            sql.text(webhook.as_str()).push(" AND due_at IS NOT NULL AND due_at <= ").integer(now.millis());
            sql.push(" ORDER BY due_at, position").limit(i64::try_from(attempts).unwrap_or(i64::MAX));
            if self.backend() == DbBackend::Postgres {
                sql.push(" FOR UPDATE SKIP LOCKED");
            }
            chosen.extend(tx.all(&sql, |cells| cells.take::<i64>()).await?);
        }
        if chosen.is_empty() {
            tx.commit().await?;
            return Ok(Vec::new());
        }
        let mut sql =
            Sql::of(&store, "UPDATE deliveries SET claim = $2, attempts = attempts + 1, due_at = $3 WHERE store_id = $1 AND position IN ");
        sql = sql.with(Param::Text(claim.to_owned())).with(Param::Integer(lease.millis()));
        sql.integers(&chosen).push(
            " RETURNING position, claim, attempts, store_id, webhook_id, event_id, kind, \
             (SELECT w.url FROM webhooks w WHERE w.store_id = $1 AND w.id = deliveries.webhook_id), sequence, \
             COALESCE(body, (SELECT e.body FROM events e WHERE e.store_id = $1 AND e.id = deliveries.event_id))",
        );
        let (mut claimed, mut damaged) = (Vec::new(), Vec::new());
        for (one, whole) in tx.all(&sql, decode_claimed).await? {
            if whole {
                claimed.push(one);
            } else {
                damaged.push(one);
            }
        }
        // Ends the attempts for an event whose stored body is missing or damaged. Otherwise later calls would claim the event again and
        // again.
        for one in damaged {
            tracing::error!(%store, event = one.webhook_delivery.event_id, "the recorded event is damaged; it is not delivered");
            let mut sql = Sql::of(&store, "UPDATE deliveries SET claim = NULL, due_at = NULL WHERE store_id = $1 AND position = ");
            sql.integer(one.position);
            tx.run(&sql).await?;
        }
        let webhooks: BTreeSet<WebhookId> = claimed.iter().map(|one: &ClaimedDelivery| one.webhook_delivery.webhook_id.clone()).collect();
        for webhook in webhooks {
            let mut sql = Sql::of(&store, "SELECT secret, key_id FROM webhook_secrets WHERE store_id = $1 AND webhook_id = ");
            sql.text(webhook.as_str()).push(" AND (ends_at IS NULL OR ends_at > ").integer(now.millis()).push(") ORDER BY position DESC");
            let read = tx.all(&sql, |cells| SECRETS.read(cells, self.secret_keys(), store.as_str(), webhook.as_str())).await?;
            let secrets = readable(read);
            for one in claimed.iter_mut().filter(|one| one.webhook_delivery.webhook_id == webhook) {
                one.webhook_delivery.secrets.clone_from(&secrets);
            }
        }
        tx.commit().await?;
        Ok(claimed)
    }
}

/// Returns the SQL for the due deliveries of the subscriptions of one store or of all stores, at most `room.each` of one subscription, the
/// longest due first.
fn due(backend: DbBackend, now: Timestamp, room: AttemptLimits<'_, StoreWebhook>, of: Option<&StoreId>) -> Sql {
    let mut sql = Sql::fixed("SELECT w.store_id, w.id FROM webhooks w JOIN ");
    // The join has two forms. With `IN`, PostgreSQL would run the inner query for every row of `deliveries`. SQLite has no `LATERAL`.
    let lateral = backend == DbBackend::Postgres;
    sql.push(if lateral { "LATERAL (SELECT x.position, x.due_at" } else { "deliveries d ON d.position IN (SELECT x.position" });
    sql.push(" FROM deliveries x WHERE x.store_id = w.store_id AND x.webhook_id = w.id AND x.due_at IS NOT NULL AND x.due_at <= ");
    sql.integer(now.millis())
        .and_of_store("x.store_id", of)
        .push(" ORDER BY x.due_at, x.position")
        .limit(i64::try_from(room.each).unwrap_or(i64::MAX));
    sql.push(if lateral { ") d ON TRUE" } else { ")" });
    sql.push(" WHERE w.enabled = TRUE").and_of_store("w.store_id", of);
    for store in room.full_stores() {
        sql.push(" AND w.store_id <> ").text(store.as_str());
    }
    for (store, webhook) in room.full() {
        sql.push(" AND NOT (w.store_id = ").text(store.as_str()).push(" AND w.id = ").text(webhook.as_str()).push(")");
    }
    sql.push(" ORDER BY d.due_at, d.position");
    sql
}

/// Decodes a claimed delivery. Returns the delivery, and whether its body is there and undamaged.
fn decode_claimed(cells: &mut Cells<'_>) -> Result<(ClaimedDelivery, bool)> {
    let (position, claim, attempts) = (cells.take()?, cells.take()?, cells.take()?);
    let (store_id, webhook_id, event_id, kind, url) = (cells.id()?, cells.id()?, cells.take()?, cells.take()?, cells.take()?);
    let sequence: Option<i64> = cells.take()?;
    let body: Option<Vec<u8>> = cells.take()?;
    let body = match sequence {
        Some(sequence) => body.and_then(|body| numbered(sequence, &body)),
        None => body,
    };
    let whole = body.is_some();
    let webhook_delivery =
        WebhookDelivery { store_id, webhook_id, event_id, kind, url, body: body.unwrap_or_default(), secrets: Ok(Vec::new()) };
    Ok((ClaimedDelivery { position, claim, attempts, webhook_delivery }, whole))
}
