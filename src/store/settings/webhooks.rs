//! Webhooks: subscriptions, the outbox of their deliveries, and the log of attempts.
//!
//! A delivery is claimed for an attempt under a lease, as in `queues::outbound`. Each subscription is claimed for by itself, so that the
//! long queue of one does not hide another's.

use sea_orm::DbBackend;

use crate::{
    domain::{
        events::numbered,
        ids::{StoreId, WebhookId},
        time::Timestamp,
        webhooks::{Along, Answer, Attempted, Logged, Replay, Shipment, SigningSecret, Webhook},
    },
    store::{
        Db, Result,
        events::OF_INTEREST,
        queues::room::Room,
        rows::{Cells, Row},
        settings::endpoint_secrets::{Secrets, readable},
        sql::{Param, Sql},
        transaction::write::Write,
    },
};

pub(in crate::store) const SECRETS: Secrets = Secrets::of_endpoints("webhook_secrets", "webhook_id");

impl Row for Webhook {
    const COLUMNS: &'static str = "id, url, account_id, enabled, disabled_reason, failing_since, created_at, updated_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.id()?,
            url: cells.take()?,
            kinds: Vec::new(),
            account_id: cells.optional_id()?,
            enabled: cells.take()?,
            disabled_reason: cells.take()?,
            failing_since: cells.optional_time()?,
            created_at: cells.time()?,
            updated_at: cells.time()?,
        })
    }
}

/// A subscription of a store.
pub type Place = (StoreId, WebhookId);

/// An event that somebody is trying to hand to an endpoint.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub position: i64,
    pub claim: String,
    /// With this one.
    pub attempts: i64,
    pub shipment: Shipment,
}

impl Write {
    pub async fn insert_webhook(&self, webhook: &Webhook, secret: &SigningSecret) -> Result<()> {
        let mut sql = self.sql("INSERT INTO webhooks (store_id, id, url, account_id, enabled, created_at, updated_at) VALUES ($1, ");
        sql.text(webhook.id.as_str()).push(", ").text(&webhook.url).push(", ");
        sql.optional_text(webhook.account_id.as_ref().map(|id| id.as_str())).push(", TRUE, ");
        sql.integer(webhook.created_at.millis()).push(", ").integer(webhook.updated_at.millis()).push(")");
        self.run(sql).await?;
        self.save_kinds(webhook).await?;
        self.insert_secret(SECRETS, webhook.id.as_str(), secret).await
    }

    /// The subscription, held until the end of the transaction.
    pub async fn webhook(&self, id: &WebhookId) -> Result<Option<Webhook>> {
        let Some(mut webhook) = self.held::<Webhook>("webhooks", id.as_str()).await? else { return Ok(None) };
        let mut sql = self.sql("SELECT kind FROM webhook_kinds WHERE store_id = $1 AND webhook_id = ");
        sql.text(id.as_str()).push(" ORDER BY kind");
        webhook.kinds = self.all(sql, |cells| cells.take()).await?;
        Ok(Some(webhook))
    }

    /// Writes what can be changed of a subscription. One that is not enabled keeps nothing in its queue.
    pub async fn save_webhook(&self, webhook: &Webhook) -> Result<()> {
        let mut sql = self.sql("UPDATE webhooks SET url = ");
        sql.text(&webhook.url).push(", account_id = ").optional_text(webhook.account_id.as_ref().map(|id| id.as_str()));
        sql.push(", enabled = ").flag(webhook.enabled);
        sql.push(", disabled_reason = ").optional_text(webhook.disabled_reason.as_deref());
        sql.push(", failing_since = ").optional_integer(webhook.failing_since.map(|at| at.millis()));
        sql.push(", updated_at = ").integer(webhook.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(webhook.id.as_str());
        self.run(sql).await?;
        if !webhook.enabled {
            let mut sql =
                self.sql("UPDATE deliveries SET due_at = NULL, claim = NULL WHERE store_id = $1 AND due_at IS NOT NULL AND webhook_id = ");
            sql.text(webhook.id.as_str());
            self.run(sql).await?;
        }
        self.save_kinds(webhook).await
    }

    async fn save_kinds(&self, webhook: &Webhook) -> Result<()> {
        let mut sql = self.sql("DELETE FROM webhook_kinds WHERE store_id = $1 AND webhook_id = ");
        sql.text(webhook.id.as_str());
        self.run(sql).await?;
        for kind in &webhook.kinds {
            let mut sql = self.sql("INSERT INTO webhook_kinds (store_id, webhook_id, kind) VALUES ($1, ");
            sql.text(webhook.id.as_str()).push(", ").text(kind).push(")");
            self.run(sql).await?;
        }
        Ok(())
    }

    /// A new secret; those before it sign until `ends_at` at the latest.
    pub async fn supersede_secrets(&self, id: &WebhookId, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        self.supersede(SECRETS, id.as_str(), secret, ends_at).await
    }

    /// Removes at most so many attempts of a subscription, and deliveries that wait for nothing; how many.
    pub async fn forget_attempts(&self, id: &WebhookId, limit: i64) -> Result<u64> {
        let mut forgotten = 0;
        for (table, settled) in [("deliveries", " AND due_at IS NULL"), ("attempts", "")] {
            let mut sql = self.sql("DELETE FROM ");
            sql.push(table).push(" WHERE position IN (SELECT position FROM ").push(table);
            sql.push(" WHERE store_id = $1 AND webhook_id = ").text(id.as_str()).push(settled).limit(limit).push(")");
            forgotten += self.run(sql).await?;
        }
        Ok(forgotten)
    }

    /// Removes a subscription with all that belongs to it; it is held.
    pub async fn delete_webhook(&self, id: &WebhookId) -> Result<()> {
        // Attempts behind deliveries: whoever ends one just now logs it before its delivery can go.
        for table in ["deliveries", "attempts", "webhook_secrets", "webhook_kinds"] {
            let mut sql = self.sql("DELETE FROM ");
            sql.push(table).push(" WHERE store_id = $1 AND webhook_id = ").text(id.as_str());
            self.run(sql).await?;
        }
        let mut sql = self.sql("DELETE FROM webhooks WHERE store_id = $1 AND id = ");
        sql.text(id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// Queues an event that was made to test the endpoint.
    pub async fn queue_test(&self, webhook: &WebhookId, event_id: &str, kind: &str, body: Vec<u8>) -> Result<()> {
        let mut sql = self.sql("INSERT INTO deliveries (store_id, webhook_id, event_id, kind, body, attempts, due_at) VALUES ($1, ");
        sql.text(webhook.as_str()).push(", ").text(event_id).push(", ").text(kind).push(", ").bytes(body);
        sql.push(", 0, ").integer(self.now().millis()).push(")");
        self.run(sql).await?;
        Ok(())
    }

    /// Queues events of interest to a subscription again, as if they had not been tried, of those whose numbers lie in
    /// `range`; how many. One that is being tried is left alone.
    pub async fn queue_again(&self, webhook: &WebhookId, replay: &Replay, range: (i64, i64)) -> Result<u64> {
        let now = self.now().millis();
        let mut sql = self.sql("INSERT INTO deliveries (store_id, webhook_id, event_id, kind, sequence, attempts, due_at) ");
        sql.push("SELECT e.store_id, w.id, e.id, e.type, e.sequence, 0, ").integer(now);
        sql.push(" FROM events e JOIN webhooks w ON w.store_id = e.store_id AND w.id = ");
        recorded_again(&mut sql, webhook, replay, now);
        sql.push(" AND e.sequence >= ").integer(range.0).push(" AND e.sequence < ").integer(range.1);
        sql.push(" ON CONFLICT (store_id, webhook_id, event_id) DO UPDATE SET attempts = 0, claim = NULL, due_at = ").integer(now);
        // Somebody may have begun since the look.
        sql.push(" WHERE deliveries.claim IS NULL OR deliveries.due_at <= ").integer(now);
        self.run(sql).await
    }

    /// The same for the test event that a replay names, if it names one.
    pub async fn queue_test_again(&self, webhook: &WebhookId, replay: &Replay) -> Result<u64> {
        let now = self.now().millis();
        let mut sql = self.sql("UPDATE deliveries SET attempts = 0, claim = NULL, due_at = ");
        sql.integer(now).push(" WHERE store_id = $1 AND ");
        tests_again(&mut sql, webhook, replay, now);
        self.run(sql).await
    }

    /// Ends an attempt: the event arrived, is tried again at `next_at`, or is given up. False: the claim was lost.
    pub async fn settle_delivery(&self, claimed: &Claimed, arrived: bool, next_at: Option<Timestamp>) -> Result<bool> {
        let mut sql = self.sql("UPDATE deliveries SET claim = NULL, due_at = ");
        sql.optional_integer(next_at.map(|at| at.millis()));
        if arrived {
            sql.push(", delivered_at = ").integer(self.now().millis());
        }
        sql.push(" WHERE store_id = $1 AND position = ").integer(claimed.position).push(" AND claim = ").text(&claimed.claim);
        Ok(self.run(sql).await? == 1)
    }

    /// Notes that an event arrived although its claim was lost: it is not missing.
    pub async fn note_arrival(&self, claimed: &Claimed) -> Result<()> {
        let mut sql = self.sql("UPDATE deliveries SET delivered_at = ");
        sql.integer(self.now().millis()).push(" WHERE store_id = $1 AND position = ").integer(claimed.position);
        self.run(sql).await?;
        Ok(())
    }

    /// Where an enabled subscription is delivered to, and since when nothing but failures came from there. It is not held.
    pub async fn health(&self, webhook: &WebhookId) -> Result<Option<(String, Option<Timestamp>)>> {
        let mut sql = self.sql("SELECT url, failing_since FROM webhooks WHERE store_id = $1 AND enabled = TRUE AND id = ");
        sql.text(webhook.as_str());
        self.first(sql, |cells| Ok((cells.take()?, cells.optional_time()?))).await
    }

    /// Notes whether the endpoint of a delivery answers; it is written only when that changes, and not of one that was moved.
    pub async fn note_health(&self, shipment: &Shipment, failing_since: Option<Timestamp>) -> Result<()> {
        let mut sql = self.sql("UPDATE webhooks SET failing_since = ");
        sql.optional_integer(failing_since.map(|at| at.millis())).push(" WHERE store_id = $1 AND id = ").text(shipment.webhook_id.as_str());
        sql.push(" AND url = ").text(&shipment.url);
        sql.push(if failing_since.is_some() { " AND failing_since IS NULL" } else { " AND failing_since IS NOT NULL" });
        self.run(sql).await?;
        Ok(())
    }

    pub async fn log_attempt(&self, claimed: &Claimed, attempted: &Attempted, outcome: &str, next_at: Option<Timestamp>) -> Result<()> {
        let (status, reason) = match &attempted.answer {
            Answer::Status(status, _) => (Some(i64::from(*status)), None),
            Answer::None(reason) => (None, Some(reason.as_str())),
        };
        let took = attempted.ended_at.millis().saturating_sub(attempted.started_at.millis());
        let mut sql = self.sql(
            "INSERT INTO attempts (store_id, webhook_id, event_id, kind, url, attempt, started_at, took, status, reason, outcome, next_at) \
             VALUES ($1, ",
        );
        let shipment = &claimed.shipment;
        sql.text(shipment.webhook_id.as_str());
        for text in [&shipment.event_id, &shipment.kind, &shipment.url] {
            sql.push(", ").text(text);
        }
        sql.push(", ").integer(claimed.attempts).push(", ").integer(attempted.started_at.millis()).push(", ").integer(took);
        sql.push(", ").optional_integer(status).push(", ").optional_text(reason).push(", ").text(outcome);
        sql.push(", ").optional_integer(next_at.map(|at| at.millis())).push(")");
        self.run(sql).await?;
        Ok(())
    }
}

/// Behind `… w.id = `: the recorded events that a replay is about.
fn recorded_again(sql: &mut Sql, webhook: &WebhookId, replay: &Replay, now: i64) {
    sql.text(webhook.as_str()).push(OF_INTEREST).push(" WHERE e.store_id = $1 AND e.sequence IS NOT NULL");
    if let Some(event) = &replay.event {
        sql.push(" AND e.id = ").text(event);
    }
    if let Some(since) = replay.since {
        sql.push(" AND e.occurred_at >= ").integer(since.millis());
    }
    if let Some(until) = replay.until {
        sql.push(" AND e.occurred_at < ").integer(until.millis());
    }
    sql.push(
        " AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.store_id = e.store_id AND d.webhook_id = w.id AND d.event_id = e.id AND (",
    );
    if replay.missing {
        sql.push("d.delivered_at IS NOT NULL OR d.due_at IS NOT NULL))");
    } else {
        sql.push("d.claim IS NOT NULL AND d.due_at > ").integer(now).push("))");
    }
}

/// The test event that a replay names, if it names one.
fn tests_again(sql: &mut Sql, webhook: &WebhookId, replay: &Replay, now: i64) {
    sql.push("body IS NOT NULL AND webhook_id = ").text(webhook.as_str());
    sql.push(" AND event_id = ").optional_text(replay.event.as_deref());
    if replay.missing {
        sql.push(" AND delivered_at IS NULL AND due_at IS NULL");
    } else {
        sql.push(" AND (claim IS NULL OR due_at <= ").integer(now).push(")");
    }
}

impl Db {
    /// The greatest number of the store's events; 0 where there are none.
    pub async fn last_sequence(&self, store: &StoreId) -> Result<i64> {
        let sql = Sql::of(store, "SELECT COALESCE(MAX(sequence), 0) FROM events WHERE store_id = $1 AND sequence IS NOT NULL");
        Ok(self.first(sql, |cells| cells.take()).await?.unwrap_or(0))
    }

    /// Whether the store recorded an event of this id, or a test event of it was made for the subscription.
    pub async fn knows_event(&self, store: &StoreId, webhook: &WebhookId, event: &str) -> Result<bool> {
        let mut recorded = Sql::of(store, "SELECT 1 FROM events WHERE store_id = $1 AND id = ");
        recorded.text(event).push(" LIMIT 1");
        let mut tests = Sql::of(store, "SELECT 1 FROM deliveries WHERE store_id = $1 AND body IS NOT NULL AND webhook_id = ");
        tests.text(webhook.as_str()).push(" AND event_id = ").text(event).push(" LIMIT 1");
        for sql in [recorded, tests] {
            if self.first(sql, |cells| cells.take::<i32>()).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many events a replay would queue.
    pub async fn count_again(&self, store: &StoreId, webhook: &WebhookId, replay: &Replay, now: Timestamp) -> Result<i64> {
        let mut recorded = Sql::of(store, "SELECT COUNT(*) FROM events e JOIN webhooks w ON w.store_id = e.store_id AND w.id = ");
        recorded_again(&mut recorded, webhook, replay, now.millis());
        let mut tests = Sql::of(store, "SELECT COUNT(*) FROM deliveries WHERE store_id = $1 AND ");
        tests_again(&mut tests, webhook, replay, now.millis());
        let mut count = 0;
        for mut sql in [recorded, tests] {
            sql.unbounded();
            count += self.first(sql, |cells| cells.take::<i64>()).await?.unwrap_or(0);
        }
        Ok(count)
    }

    /// The subscriptions of a store, the oldest first.
    pub async fn webhooks(&self, store: &StoreId) -> Result<Vec<Webhook>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(Webhook::COLUMNS).push(" FROM webhooks WHERE store_id = $1 ORDER BY created_at, id");
        let mut webhooks = self.all(sql, Webhook::decode).await?;
        let sql = Sql::of(store, "SELECT webhook_id, kind FROM webhook_kinds WHERE store_id = $1 ORDER BY webhook_id, kind");
        let kinds: Vec<(WebhookId, String)> = self.all(sql, |cells| Ok((cells.id()?, cells.take()?))).await?;
        for webhook in &mut webhooks {
            webhook.kinds = kinds.iter().filter(|(id, _)| *id == webhook.id).map(|(_, kind)| kind.clone()).collect();
        }
        Ok(webhooks)
    }

    /// At most `limit` attempts.
    pub async fn attempts(&self, store: &StoreId, webhook: &WebhookId, along: Along, limit: i64) -> Result<Vec<Logged>> {
        let mut sql = Sql::of(
            store,
            "SELECT position, event_id, kind, url, attempt, started_at, took, status, reason, outcome, next_at FROM attempts \
             WHERE store_id = $1 AND webhook_id = ",
        );
        sql.text(webhook.as_str());
        match along {
            Along::After(position) => sql.push(" AND position > ").integer(position).push(" ORDER BY position"),
            Along::Before(Some(position)) => sql.push(" AND position < ").integer(position).push(" ORDER BY position DESC"),
            Along::Before(None) => sql.push(" ORDER BY position DESC"),
        };
        sql.limit(limit);
        self.all(sql, |cells| {
            Ok(Logged {
                position: cells.take()?,
                event_id: cells.take()?,
                kind: cells.take()?,
                url: cells.take()?,
                attempt: cells.take()?,
                started_at: cells.time()?,
                took: cells.take()?,
                status: cells.take()?,
                reason: cells.take()?,
                outcome: cells.take()?,
                next_at: cells.optional_time()?,
            })
        })
        .await
    }

    /// Whether any store has a subscription that is enabled.
    pub async fn is_subscribed_to(&self) -> Result<bool> {
        let sql = Sql::fixed("SELECT 1 FROM webhooks WHERE enabled = TRUE LIMIT 1");
        Ok(self.first(sql, |cells| cells.take::<i32>()).await?.is_some())
    }

    /// When the next event is to be tried.
    pub async fn next_delivery_at(&self) -> Result<Option<Timestamp>> {
        let sql = Sql::fixed("SELECT due_at FROM deliveries WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1");
        self.first(sql, |cells| cells.time()).await
    }

    /// Claims until `lease` what is due, of every subscription by itself but those that have all they can do.
    pub async fn claim_deliveries(&self, now: Timestamp, lease: Timestamp, claim: &str, room: Room<'_, Place>) -> Result<Vec<Claimed>> {
        let tx = self.begin().await?;
        let rows: Vec<(i64, Place)> =
            tx.all(&due(self.backend(), now, room), |cells| Ok((cells.take()?, (cells.id()?, cells.id()?)))).await?;
        let (mut busy, mut due) = (room.busy.clone(), Vec::with_capacity(rows.len()));
        for (position, place) in rows {
            let attempts = busy.entry(place.clone()).or_default();
            *attempts += 1;
            due.push((*attempts, position, place));
        }
        // Where there is not room for all, the subscription that has the least going on comes first.
        due.sort_by_key(|(attempts, _, _)| *attempts);
        let mut picker = room.picker();
        let chosen: Vec<i64> = due.into_iter().filter(|(_, _, place)| picker.take(place)).map(|(_, position, _)| position).collect();
        if chosen.is_empty() {
            tx.commit().await?;
            return Ok(Vec::new());
        }
        let mut sql = Sql::fixed("UPDATE deliveries SET claim = $1, attempts = attempts + 1, due_at = $2 WHERE position IN ");
        sql = sql.with(Param::Text(claim.to_owned())).with(Param::Integer(lease.millis()));
        sql.integers(&chosen).push(
            " RETURNING position, claim, attempts, store_id, webhook_id, event_id, kind, \
             (SELECT w.url FROM webhooks w WHERE w.store_id = deliveries.store_id AND w.id = deliveries.webhook_id), sequence, \
             COALESCE(body, (SELECT e.body FROM events e WHERE e.store_id = deliveries.store_id AND e.id = deliveries.event_id))",
        );
        let (mut claimed, mut damaged) = (Vec::new(), Vec::new());
        for (one, whole) in tx.all(&sql, decode_claimed).await? {
            if whole {
                claimed.push(one);
            } else {
                damaged.push(one);
            }
        }
        // One event that cannot be sent must not keep all others from being claimed, now and the next time.
        for one in damaged {
            tracing::error!(store = %one.shipment.store_id, event = one.shipment.event_id, "the recorded event is damaged; it is not delivered");
            let mut sql = Sql::fixed("UPDATE deliveries SET claim = NULL, due_at = NULL WHERE position = ");
            sql.integer(one.position);
            tx.run(&sql).await?;
        }
        let mut places: Vec<Place> = claimed.iter().map(|one| (one.shipment.store_id.clone(), one.shipment.webhook_id.clone())).collect();
        places.sort();
        places.dedup();
        for (store, webhook) in places {
            let mut sql = Sql::of(&store, "SELECT secret, key_id FROM webhook_secrets WHERE store_id = $1 AND webhook_id = ");
            sql.text(webhook.as_str()).push(" AND (ends_at IS NULL OR ends_at > ").integer(now.millis()).push(") ORDER BY position DESC");
            let read = tx.all(&sql, |cells| SECRETS.read(cells, self.secret_keys(), store.as_str(), webhook.as_str())).await?;
            let secrets = readable(read);
            for one in claimed.iter_mut().filter(|one| one.shipment.store_id == store && one.shipment.webhook_id == webhook) {
                one.shipment.secrets.clone_from(&secrets);
            }
        }
        tx.commit().await?;
        claimed.sort_by_key(|one| one.position);
        Ok(claimed)
    }
}

/// At least what each subscription has room for of what is due to it, the longest due first.
fn due(backend: DbBackend, now: Timestamp, room: Room<'_, Place>) -> Sql {
    let mut sql = Sql::fixed("SELECT d.position, w.store_id, w.id FROM webhooks w JOIN ");
    // PostgreSQL would ask the inner query of the one form for every row of `deliveries`; SQLite does not know the other.
    let lateral = backend == DbBackend::Postgres;
    sql.push(if lateral { "LATERAL (SELECT x.position, x.due_at" } else { "deliveries d ON d.position IN (SELECT x.position" });
    sql.push(" FROM deliveries x WHERE x.store_id = w.store_id AND x.webhook_id = w.id AND x.due_at IS NOT NULL AND x.due_at <= ");
    sql.integer(now.millis()).push(" ORDER BY x.due_at, x.position").limit(i64::try_from(room.each).unwrap_or(i64::MAX));
    sql.push(if lateral { " FOR UPDATE SKIP LOCKED) d ON TRUE" } else { ")" }).push(" WHERE w.enabled = TRUE");
    for store in room.full_stores() {
        sql.push(" AND w.store_id <> ").text(store.as_str());
    }
    for (store, webhook) in room.full() {
        sql.push(" AND NOT (w.store_id = ").text(store.as_str()).push(" AND w.id = ").text(webhook.as_str()).push(")");
    }
    sql.push(" ORDER BY d.due_at, d.position");
    sql
}

/// What was claimed, and whether its body is whole.
fn decode_claimed(cells: &mut Cells<'_>) -> Result<(Claimed, bool)> {
    let (position, claim, attempts) = (cells.take()?, cells.take()?, cells.take()?);
    let (store_id, webhook_id, event_id, kind, url) = (cells.id()?, cells.id()?, cells.take()?, cells.take()?, cells.take()?);
    let sequence: Option<i64> = cells.take()?;
    let body: Option<Vec<u8>> = cells.take()?;
    let body = match sequence {
        Some(sequence) => body.and_then(|body| numbered(sequence, &body)),
        None => body,
    };
    let whole = body.is_some();
    let shipment = Shipment { store_id, webhook_id, event_id, kind, url, body: body.unwrap_or_default(), secrets: Ok(Vec::new()) };
    Ok((Claimed { position, claim, attempts, shipment }, whole))
}
