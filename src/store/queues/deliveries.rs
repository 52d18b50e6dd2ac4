//! The queue of webhook deliveries, and the log of delivery attempts. A delivery is one event for one webhook subscription.
//!
//! A worker claims a due delivery before it attempts to send it: the claim is stored in the row, and `due_at` becomes the end of the
//! worker's lease. If the worker dies, another worker can claim the delivery after that time. The due deliveries are looked up for each
//! subscription separately, so that the long queue of one subscription does not hide the queue of another.

use std::collections::BTreeSet;

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, DbBackend, EntityTrait, ExprTrait, Iterable, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Asterisk, Expr, Func, JoinType, LockBehavior, LockType, OnConflict, Order, Query, SelectStatement},
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
        entity::{attempts, deliveries, events, webhook_secrets, webhooks},
        events::{queue, subscribed_events},
        queues::concurrency::{Allotment, AttemptLimits},
        row_decoding::{Cells, Row, stored_record},
        settings::{signing_secrets::readable, webhooks::SECRETS},
        sql_from_entities::{among, equal_columns, find, is, model},
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

stored_record! {
    read LoggedAttempt in attempts: position, event_id, kind, url, attempt, started_at, took, status, reason, outcome, next_at, answer
}

impl Write {
    /// Deletes at most `limit` logged attempts of a subscription, whatever their age, and at most `limit` of its deliveries that have no
    /// further attempt. Returns the number of deleted rows. To delete a subscription, the service first calls this function until it
    /// returns 0.
    pub async fn prune_attempts(&self, id: &WebhookId, limit: u64) -> Result<u64> {
        // On PostgreSQL each DELETE also compares the store's id outside its subquery, so that a distributed database (Citus) runs it on
        // one node. With this comparison, SQLite would read all rows of the store.
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
        let pruned = self.execute(&deliveries::Entity::delete_many().filter(settled)).await?;
        Ok(pruned + self.execute(&attempts::Entity::delete_many().filter(logged)).await?)
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
        use deliveries::Column;
        let mut replayed = replayed_events(self.store(), webhook, replay, self.now());
        replayed.and_where(events::Column::Sequence.gte(range.0)).and_where(events::Column::Sequence.lt(range.1));
        // Leaves a row as it is if a worker has begun an attempt since the query above read the row.
        let expired = Expr::col(Column::DueAt.as_column_ref()).lte(Expr::col(("excluded", Column::DueAt)));
        let mut again = OnConflict::columns([Column::StoreId, Column::WebhookId, Column::EventId]);
        again.values([(Column::Attempts, 0_i64.into()), (Column::Claim, Expr::val(None::<String>))]).update_column(Column::DueAt);
        again.action_cond_where(Condition::any().add(Column::Claim.is_null()).add(expired));
        self.execute(queue(replayed, self.now())?.on_conflict(again)).await
    }

    /// If the replay names a test event, queues that event again. Returns the number of queued events.
    pub async fn queue_test_replay(&self, webhook: &WebhookId, replay: &Replay) -> Result<u64> {
        let Some(test) = replayed_test(self.store(), webhook, replay, self.now()) else { return Ok(0) };
        let queued = deliveries::Entity::update_many()
            .col_expr(deliveries::Column::Attempts, Expr::value(0_i64))
            .col_expr(deliveries::Column::Claim, Expr::value(None::<String>))
            .col_expr(deliveries::Column::DueAt, Expr::value(self.now()))
            .filter(test);
        self.execute(&queued).await
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

/// Returns the condition for the test event with this id that was made for a subscription.
fn test_event(store: &StoreId, webhook: &WebhookId, event: &str) -> Condition {
    Condition::all()
        .add(deliveries::Column::StoreId.eq(store))
        .add(deliveries::Column::WebhookId.eq(webhook))
        .add(deliveries::Column::EventId.eq(event))
        .add(deliveries::Column::Body.is_not_null())
}

/// Returns a query for the recorded events of a replay, each joined with the subscription.
fn replayed_events(store: &StoreId, webhook: &WebhookId, replay: &Replay, now: Timestamp) -> SelectStatement {
    use deliveries::Column;
    let left_out = if replay.missing {
        Condition::any().add(Column::DeliveredAt.is_not_null()).add(Column::DueAt.is_not_null())
    } else {
        Condition::all().add(Column::Claim.is_not_null()).add(Column::DueAt.gt(now))
    };
    let mut queued = Query::select();
    queued.expr(Expr::Constant(1.into())).from(deliveries::Entity).and_where(Column::StoreId.eq(store));
    queued.and_where(equal_columns(Column::StoreId, events::Column::StoreId)).and_where(Column::WebhookId.eq(webhook));
    queued.and_where(equal_columns(Column::EventId, events::Column::Id)).cond_where(left_out);
    let mut query = subscribed_events(store);
    query
        .and_where(webhooks::Column::Id.eq(webhook))
        .and_where(events::Column::Sequence.is_not_null())
        .and_where_option(replay.event.as_ref().map(|event| events::Column::Id.eq(event)))
        .and_where_option(replay.since.map(|since| events::Column::OccurredAt.gte(since)))
        .and_where_option(replay.until.map(|until| events::Column::OccurredAt.lt(until)))
        .and_where(Expr::not_exists(queued));
    query
}

/// Returns the condition for the test event that a replay names. `None`: it names no event.
fn replayed_test(store: &StoreId, webhook: &WebhookId, replay: &Replay, now: Timestamp) -> Option<Condition> {
    use deliveries::Column;
    let idle = if replay.missing {
        Condition::all().add(Column::DeliveredAt.is_null()).add(Column::DueAt.is_null())
    } else {
        Condition::any().add(Column::Claim.is_null()).add(Column::DueAt.lte(now))
    };
    Some(test_event(store, webhook, replay.event.as_ref()?).add(idle))
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
            || self.find_one(deliveries::Entity::find().filter(test_event(store, webhook, event))).await?.is_some())
    }

    /// Returns the body of an event as the subscription receives it. `None`: there is no such event, it has no sequence number yet, or its
    /// stored body is damaged.
    pub async fn sent_body(&self, store: &StoreId, webhook: &WebhookId, event: &EventId) -> Result<Option<Vec<u8>>> {
        let test = deliveries::Entity::find().filter(test_event(store, webhook, event.as_str()));
        if let Some(test) = self.find_one(test).await? {
            return Ok(test.body);
        }
        let event = self.find_one(recorded_event(store, event.as_str())).await?;
        Ok(event.and_then(|event| numbered(event.sequence?, &event.body)))
    }

    /// Returns how many events a replay would queue.
    pub async fn count_replay(&self, store: &StoreId, webhook: &WebhookId, replay: &Replay, now: Timestamp) -> Result<i64> {
        let mut queries = vec![replayed_events(store, webhook, replay, now)];
        if let Some(test) = replayed_test(store, webhook, replay, now) {
            queries.push(Query::select().from(deliveries::Entity).cond_where(test).to_owned());
        }
        let mut count = 0;
        for mut query in queries {
            query.expr(Func::count(Expr::col(Asterisk)));
            count += self.scan(query, |cells| cells.take::<i64>()).await?.pop().unwrap_or(0);
        }
        Ok(count)
    }

    /// Returns at most `limit` logged attempts of a subscription. `along` selects the attempts after a position, the oldest first; or those
    /// before a position, the newest first; or all attempts, the newest first.
    pub async fn attempts(&self, store: &StoreId, webhook: &WebhookId, along: AttemptLogPage, limit: i64) -> Result<Vec<LoggedAttempt>> {
        let position = attempts::Column::Position;
        let query = find::<LoggedAttempt>()
            .filter(attempts::Column::StoreId.eq(store))
            .filter(attempts::Column::WebhookId.eq(webhook))
            .limit(u64::try_from(limit).unwrap_or_default());
        let query = match along {
            AttemptLogPage::After(behind) => query.filter(position.gt(behind)).order_by_asc(position),
            AttemptLogPage::Before(Some(before)) => query.filter(position.lt(before)).order_by_desc(position),
            AttemptLogPage::Before(None) => query.order_by_desc(position),
        };
        self.select(query, LoggedAttempt::decode).await
    }

    /// Returns the earliest time at which an attempt to deliver an event is due, in any store.
    pub async fn next_delivery_at(&self) -> Result<Option<Timestamp>> {
        self.next_due(deliveries::Column::DueAt, deliveries::Column::StoreId).await
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
        let rows: Vec<StoreWebhook> =
            self.across_stores(|of| due(backend, now, room, of), |cells| Ok((cells.take()?, cells.take()?))).await?;
        let (mut busy, mut due) = (room.busy.clone(), Vec::with_capacity(rows.len()));
        for place in rows {
            let attempts = busy.entry(place.clone()).or_default();
            *attempts += 1;
            due.push((*attempts, place));
        }
        // The limits may cut off the end of the list. So the list is sorted such that subscriptions take turns, and none of them fills the
        // beginning of the list. The sort key of a delivery is the number of attempts that its subscription has in progress, plus the
        // number of the subscription's deliveries before it.
        due.sort_by_key(|(attempts, _)| *attempts);
        let allotted = room.allotted(due.into_iter().map(|(_, place)| place));
        let mut claimed =
            self.claim_by_store(allotted, |store, allotted| self.claim_deliveries_of(store, allotted, now, lease, claim)).await?;
        claimed.sort_by_key(|one| one.position);
        Ok(claimed)
    }

    /// Claims due deliveries of a store. `allotted` says for each subscription how many deliveries may be claimed.
    async fn claim_deliveries_of(
        &self,
        store: StoreId,
        allotted: Allotment<StoreWebhook>,
        now: Timestamp,
        lease: Timestamp,
        claim: &str,
    ) -> Result<Vec<ClaimedDelivery>> {
        use deliveries::Column;
        let tx = self.begin().await?;
        let mut chosen: Vec<i64> = Vec::new();
        for ((_, webhook), attempts) in allotted.each() {
            let due = deliveries::Entity::find()
                .select_only()
                .column(Column::Position)
                .filter(Column::StoreId.eq(&store))
                .filter(Column::WebhookId.eq(&webhook))
                .filter(Column::DueAt.is_not_null())
                .filter(Column::DueAt.lte(now))
                .order_by_asc(Column::DueAt)
                .order_by_asc(Column::Position)
                .limit(attempts as u64)
                .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
            chosen.extend(tx.select(due, |cells| cells.take::<i64>()).await?);
        }
        if chosen.is_empty() {
            tx.commit().await?;
            return Ok(Vec::new());
        }
        let mut url = Query::select();
        url.column(webhooks::Column::Url).from(webhooks::Entity);
        url.and_where(webhooks::Column::StoreId.eq(&store)).and_where(equal_columns(webhooks::Column::Id, Column::WebhookId));
        let mut recorded = Query::select();
        recorded.column(events::Column::Body).from(events::Entity);
        recorded.and_where(events::Column::StoreId.eq(&store)).and_where(equal_columns(events::Column::Id, Column::EventId));
        let claims = Query::update()
            .table(deliveries::Entity)
            .values([(Column::Claim, claim.into()), (Column::DueAt, lease.into())])
            .value(Column::Attempts, Expr::col(Column::Attempts).add(1_i64))
            .and_where(Column::StoreId.eq(&store))
            .and_where(among(Column::Position, chosen))
            .returning(Query::returning().exprs(Column::iter().map(Expr::col).chain([url.into(), recorded.into()])))
            .to_owned();
        let (mut claimed, mut damaged) = (Vec::new(), Vec::new());
        for (one, whole) in tx.returned(&claims, decode_claimed).await? {
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
            let ended = deliveries::Entity::update_many()
                .col_expr(Column::Claim, Expr::value(None::<String>))
                .col_expr(Column::DueAt, Expr::value(None::<i64>))
                .filter(Column::StoreId.eq(&store))
                .filter(Column::Position.eq(one.position));
            tx.execute(&ended).await?;
        }
        let webhooks: BTreeSet<WebhookId> = claimed.iter().map(|one: &ClaimedDelivery| one.webhook_delivery.webhook_id.clone()).collect();
        for webhook in webhooks {
            let secrets = webhook_secrets::Entity::find()
                .select_only()
                .columns([webhook_secrets::Column::Secret, webhook_secrets::Column::KeyId])
                .filter(webhook_secrets::Column::StoreId.eq(&store))
                .filter(webhook_secrets::Column::WebhookId.eq(&webhook))
                .filter(Condition::any().add(webhook_secrets::Column::EndsAt.is_null()).add(webhook_secrets::Column::EndsAt.gt(now)))
                .order_by_desc(webhook_secrets::Column::Position);
            let read = tx.select(secrets, |cells| SECRETS.read(cells, self.secret_keys(), store.as_str(), webhook.as_str())).await?;
            let secrets = readable(read);
            for one in claimed.iter_mut().filter(|one| one.webhook_delivery.webhook_id == webhook) {
                one.webhook_delivery.secrets.clone_from(&secrets);
            }
        }
        tx.commit().await?;
        Ok(claimed)
    }
}

/// Returns the query for the due deliveries of the subscriptions of one store or of all stores, at most `room.each` of one subscription,
/// the longest due first.
fn due(backend: DbBackend, now: Timestamp, room: AttemptLimits<'_, StoreWebhook>, of: Option<&StoreId>) -> SelectStatement {
    use deliveries::{Column, Entity};
    // PostgreSQL gets a `LATERAL` join: with `IN`, it would run the inner query for every row of `deliveries`. SQLite has no `LATERAL` and
    // gets `IN`.
    let lateral = backend == DbBackend::Postgres;
    let mut each = Query::select();
    each.column(Column::Position).from(Entity).limit(room.each as u64);
    each.and_where(equal_columns(Column::StoreId, webhooks::Column::StoreId))
        .and_where(equal_columns(Column::WebhookId, webhooks::Column::Id));
    each.and_where(Column::DueAt.is_not_null()).and_where(Column::DueAt.lte(now));
    each.and_where_option(of.map(|store| Column::StoreId.eq(store)));
    each.order_by(Column::DueAt, Order::Asc).order_by(Column::Position, Order::Asc);
    let mut query = Query::select();
    query.columns([webhooks::Column::StoreId, webhooks::Column::Id].map(|column| column.as_column_ref())).from(webhooks::Entity);
    if lateral {
        each.column(Column::DueAt);
        query.join_lateral(JoinType::InnerJoin, each, Entity, Expr::Constant(true.into()));
    } else {
        query.inner_join(Entity, Column::Position.in_subquery(each));
    }
    query.and_where(is(webhooks::Column::Enabled, true));
    query.and_where_option(of.map(|store| webhooks::Column::StoreId.eq(store)));
    for store in room.full_stores() {
        query.and_where(webhooks::Column::StoreId.ne(store));
    }
    for (store, webhook) in room.full() {
        query.cond_where(Condition::all().not().add(webhooks::Column::StoreId.eq(store)).add(webhooks::Column::Id.eq(webhook)));
    }
    query.order_by(Column::DueAt.as_column_ref(), Order::Asc).order_by(Column::Position.as_column_ref(), Order::Asc);
    query
}

/// Decodes a claimed delivery from its row, the URL of its subscription, and the body of the recorded event. Returns the delivery, and
/// whether its body is there and undamaged.
fn decode_claimed(cells: &mut Cells<'_>) -> Result<(ClaimedDelivery, bool)> {
    let row = model::<deliveries::Entity>(cells)?;
    let (url, recorded): (String, Option<Vec<u8>>) = (cells.take()?, cells.take()?);
    let body = row.body.or(recorded);
    let body = match row.sequence {
        Some(sequence) => body.and_then(|body| numbered(sequence, &body)),
        None => body,
    };
    let whole = body.is_some();
    let webhook_delivery = WebhookDelivery {
        store_id: row.store_id.into(),
        webhook_id: row.webhook_id.into(),
        event_id: row.event_id,
        kind: row.kind,
        url,
        body: body.unwrap_or_default(),
        secrets: Ok(Vec::new()),
    };
    let claim = row.claim.unwrap_or_default();
    Ok((ClaimedDelivery { position: row.position, claim, attempts: row.attempts, webhook_delivery }, whole))
}
