//! Use-cases for webhook subscriptions: decides whether a failed delivery is retried, given up, or disables its webhook
//! ([`Service::settle_delivery`]), and manages the subscriptions, the queue of their deliveries, replays, and the log of attempts.
//!
//! `delivery` reserves (claims) queued events, attempts to deliver them, and reports the outcome to [`Service::settle_delivery`]. If the
//! outcome is not recorded, for example since the process was killed, the claim expires and the event is delivered again.

use serde_json::{Value, json};

use super::{
    Error, Result, Service,
    endpoint_urls::{checked_url, fresh_secret},
    write_transaction::WriteTransaction,
};
use crate::{
    domain::{
        delivery_outcome::DeliveryOutcome,
        events::Actor,
        ids::{AccountId, EventId, StoreId, WebhookId},
        settings_access::{Editor, Entry, FormerSecrets, Subject},
        time::Timestamp,
        webhooks::{
            AttemptLogPage, Attempted, DISABLE_AFTER_MILLIS, EndpointAnswer, KINDS, LoggedAttempt, ROTATION_MILLIS, Replay, SigningSecret,
            TEST_KIND, Webhook, next_attempt,
        },
    },
    store::queues::{
        concurrency::AttemptLimits,
        deliveries::{ClaimedDelivery, StoreWebhook},
    },
};

/// The settings of a new or an edited subscription. In an edit, `None` leaves a setting unchanged. A new subscription needs a `url`, and
/// `None` for another setting means all kinds or all accounts.
#[derive(Clone, Debug, Default)]
pub struct WebhookSettings {
    pub url: Option<String>,
    /// `Some(None)`: events of all kinds. A list must name at least one kind.
    pub kinds: Option<Option<Vec<String>>>,
    /// `Some(None)`: events of all accounts.
    pub account_id: Option<Option<AccountId>>,
}

/// The lease of an attempt in milliseconds: when it expires, another process may repeat the attempt. The lease is longer than the time-out
/// of an endpoint, which is 15 seconds.
pub const LEASE_MILLIS: i64 = 60_000;

/// Batch size of a replay, in events per transaction. Until such a transaction ends, new events get no sequence number and are not
/// delivered.
const REPLAYED_AT_ONCE: i64 = 5_000;

/// Batch size of the deletion of a webhook's attempt log, in rows per transaction.
const PRUNED_AT_ONCE: u64 = 10_000;

impl Service {
    /// Creates a subscription; also returns its signing secret.
    pub async fn create_webhook(&self, editor: &Editor, settings: WebhookSettings) -> Result<(Webhook, SigningSecret)> {
        self.must_exist(&editor.store_id).await?;
        let url = settings.url.ok_or_else(|| Error::invalid("url", "is missing"))?;
        checked_url(&url, self.targets)?;
        let secret = fresh_secret()?;
        self.number_former(&editor.store_id).await?;
        let mut change = self.begin_edit(editor).await?;
        Self::must_be_below_limit("webhooks", "--max-webhooks", change.count_webhooks().await?, self.bounds.webhooks)?;
        let now = change.now();
        let webhook = Webhook {
            id: WebhookId::from(self.clocks_and_ids().ids.fresh()),
            url,
            kinds: checked_kinds(settings.kinds.flatten())?,
            account_id: settings.account_id.flatten(),
            enabled: true,
            disabled_reason: None,
            failing_since: None,
            created_at: now,
            updated_at: now,
        };
        self.check_account(&mut change, &webhook).await?;
        change.insert_webhook(&webhook, &secret).await?;
        change.audit(changed("webhook.created", &webhook));
        change.end().await?;
        Ok((webhook, secret))
    }

    pub async fn webhooks(&self, store: &StoreId) -> Result<Vec<Webhook>> {
        self.must_exist(store).await?;
        Ok(self.db().webhooks(store).await?)
    }

    pub async fn edit_webhook(&self, editor: &Editor, id: &WebhookId, settings: WebhookSettings) -> Result<Webhook> {
        if let Some(url) = &settings.url {
            checked_url(url, self.targets)?;
        }
        let kinds = settings.kinds.map(checked_kinds).transpose()?;
        self.number_former(&editor.store_id).await?;
        let mut change = self.begin_edit(editor).await?;
        let mut webhook = change.webhook(id).await?.ok_or_else(|| unknown(id))?;
        let former = webhook.clone();
        if let Some(url) = settings.url.filter(|url| *url != webhook.url) {
            webhook.url = url;
            if webhook.enabled {
                webhook.failing_since = None;
            }
        }
        webhook.kinds = kinds.unwrap_or(webhook.kinds);
        webhook.account_id = settings.account_id.unwrap_or(webhook.account_id);
        if webhook != former {
            webhook.updated_at = change.now();
            self.check_account(&mut change, &webhook).await?;
            change.save_webhook(&webhook).await?;
            change.audit(changed("webhook.edited", &webhook));
        }
        change.end().await?;
        Ok(webhook)
    }

    /// Enables or disables a webhook. After it is enabled, it gets later events only; earlier events need a replay.
    pub async fn enable_webhook(&self, editor: &Editor, id: &WebhookId, enabled: bool) -> Result<Webhook> {
        self.number_former(&editor.store_id).await?;
        let mut change = self.begin_edit(editor).await?;
        let mut webhook = change.webhook(id).await?.ok_or_else(|| unknown(id))?;
        if webhook.enabled != enabled {
            webhook.enabled = enabled;
            webhook.disabled_reason = (!enabled).then(|| "disabled by its owner".to_owned());
            webhook.failing_since = None;
            webhook.updated_at = change.now();
            change.save_webhook(&webhook).await?;
            change.audit(changed(if enabled { "webhook.enabled" } else { "webhook.disabled" }, &webhook));
        }
        change.end().await?;
        Ok(webhook)
    }

    /// Rotates the signing secret. With [`FormerSecrets::Overlap`], former secrets also sign for a day, in addition to the new secret.
    pub async fn rotate_webhook(&self, editor: &Editor, id: &WebhookId, former: FormerSecrets) -> Result<(Webhook, SigningSecret)> {
        let secret = fresh_secret()?;
        let mut change = self.begin_edit(editor).await?;
        let mut webhook = change.webhook(id).await?.ok_or_else(|| unknown(id))?;
        webhook.updated_at = change.now();
        change.supersede_secrets(id, &secret, former.end(change.now(), ROTATION_MILLIS)).await?;
        change.save_webhook(&webhook).await?;
        change.audit(former.noted(changed("webhook.rotated", &webhook)));
        change.end().await?;
        Ok((webhook, secret))
    }

    pub async fn delete_webhook(&self, editor: &Editor, id: &WebhookId) -> Result<()> {
        // The attempt log is deleted in batches, so that other writers need not wait for the whole deletion.
        loop {
            let change = self.begin_alone(&editor.store_id, editor.actor()).await?;
            let pruned = change.prune_attempts(id, PRUNED_AT_ONCE).await?;
            change.end().await?;
            if pruned == 0 {
                break;
            }
        }
        let mut change = self.begin_edit(editor).await?;
        let webhook = change.webhook(id).await?.ok_or_else(|| unknown(id))?;
        change.delete_webhook(id).await?;
        change.audit(changed("webhook.deleted", &webhook));
        change.end().await
    }

    /// Queues a test event for one endpoint; returns the id of the event.
    pub async fn test_webhook(&self, editor: &Editor, id: &WebhookId) -> Result<String> {
        let mut change = self.begin_edit(editor).await?;
        let webhook = change.webhook(id).await?.ok_or_else(|| unknown(id))?;
        if !webhook.enabled {
            return Err(disabled());
        }
        let event = self.clocks_and_ids().ids.fresh();
        let body = json!({
            "id": event, "type": TEST_KIND, "timestamp": change.now(), "apiRevision": self.rules().revision, "storeId": editor.store_id,
            "actor": { "type": "system" }, "data": { "webhookId": id },
        });
        change.queue_test(id, &event, TEST_KIND, body.to_string().into_bytes()).await?;
        change.deliver();
        change.audit(entry("webhook.tested", id, json!({ "eventId": event })));
        change.end().await?;
        Ok(event)
    }

    /// Queues events for another delivery; returns their number. With `dry_run`, only counts the events. Large replays are queued in
    /// batches, each in a transaction of its own, so that other writers need not wait for the whole replay. After an interruption, another
    /// replay with `missing` queues the events that are still missing.
    pub async fn replay(&self, editor: &Editor, id: &WebhookId, replay: Replay, dry_run: bool) -> Result<i64> {
        self.number_former(&editor.store_id).await?;
        let store = &editor.store_id;
        self.known_webhook(store, id).await?;
        if let Some(event) = &replay.event
            && !self.db().knows_event(store, id, event).await?
        {
            return Err(Error::missing("eventId", "event", event));
        }
        if dry_run {
            return Ok(self.db().count_replay(store, id, &replay, self.clocks_and_ids().now()).await?);
        }
        let end = self.db().last_sequence(store).await? + 1;
        let at_once = if replay.event.is_some() { end } else { REPLAYED_AT_ONCE };
        let (mut begin, mut count) = (1, 0);
        loop {
            let mut change = self.begin_edit(editor).await?;
            let webhook = change.webhook(id).await?.ok_or_else(|| unknown(id))?;
            if !webhook.enabled {
                return Err(disabled());
            }
            let next = end.min(begin + at_once);
            count += change.queue_replay(id, &replay, (begin, next)).await?;
            change.deliver();
            begin = next;
            if begin < end {
                change.end().await?;
                continue;
            }
            count += change.queue_test_replay(id, &replay).await?;
            let Replay { event, since, until, missing } = replay;
            let detail = json!({ "eventId": event, "since": since, "until": until, "missing": missing, "count": count });
            change.audit(entry("webhook.replayed", id, detail));
            change.end().await?;
            return Ok(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Gives the store's recorded events their sequence numbers, before the settings of a subscription change. An event is queued for its
    /// subscriptions when it gets its number, not when it is recorded. So events that were recorded before the change are queued according
    /// to the settings before the change.
    async fn number_former(&self, store: &StoreId) -> Result<()> {
        Ok(self.db().number_events(Some(store), self.clocks_and_ids().now()).await?)
    }

    /// Returns at most `limit` attempts of the attempt log, in one direction from a position. Empty at the end of the log.
    pub async fn attempts(&self, store: &StoreId, id: &WebhookId, along: AttemptLogPage, limit: i64) -> Result<Vec<LoggedAttempt>> {
        let page = self.db().attempts(store, id, along, limit).await?;
        if page.is_empty() {
            self.known_webhook(store, id).await?;
        }
        Ok(page)
    }

    /// Returns the body of an event as a subscription receives it.
    pub async fn sent_body(&self, store: &StoreId, id: &WebhookId, event: &EventId) -> Result<String> {
        self.known_webhook(store, id).await?;
        let body = self.db().sent_body(store, id, event).await?.ok_or_else(|| Error::missing("eventId", "event", event))?;
        String::from_utf8(body).map_err(|_| Error::Internal("a recorded event is no text".to_owned()))
    }

    /// Resolves once this process has recorded or queued an event.
    pub async fn delivery_queued(&self) {
        self.deliveries.notified().await;
    }

    /// If there are subscriptions, gives recorded events their sequence numbers and queues them. Returns when the next delivery is due.
    pub async fn next_delivery_at(&self) -> Result<Option<Timestamp>> {
        if self.db().is_subscribed_to().await? {
            self.db().number_events(None, self.clocks_and_ids().now()).await?;
        }
        Ok(self.db().next_delivery_at().await?)
    }

    /// Claims due deliveries, each for one attempt of at most [`LEASE_MILLIS`].
    pub async fn claim_deliveries(&self, room: AttemptLimits<'_, StoreWebhook>) -> Result<Vec<ClaimedDelivery>> {
        let now = self.clocks_and_ids().now();
        let claim = self.clocks_and_ids().ids.fresh();
        Ok(self.db().claim_deliveries(now, now.plus_millis(LEASE_MILLIS), &claim, room).await?)
    }

    /// Records the outcome of an attempt, decides whether and when the event is retried, and disables an endpoint that is gone or has
    /// failed for too long. `jitter` in 0..1 varies the pause before the retry.
    pub async fn settle_delivery(&self, claimed: &ClaimedDelivery, attempted: Attempted, jitter: f64) -> Result<DeliveryOutcome> {
        let webhook_delivery = &claimed.webhook_delivery;
        let mut change = self.begin_alone(&webhook_delivery.store_id, Actor::System).await?;
        let arrived = attempted.answer.is_success();
        let asked = match &attempted.answer {
            EndpointAnswer::Status(_, asked) => *asked,
            EndpointAnswer::None(_) => None,
        };
        let id = &webhook_delivery.webhook_id;
        let (mut webhook, mut moved) = (None, false);
        if arrived {
            change.note_health(webhook_delivery, None).await?;
        } else if let Some((url, since)) = change.health(id).await? {
            moved = url != webhook_delivery.url;
            if since.is_none() || disables(since, &attempted).is_some() {
                // The subscription is locked only if it may change. If every failed attempt locked it, the attempts would wait for each
                // other and block other writers. To prevent deadlocks, the subscription is locked before its queued deliveries, as in every
                // write that changes both.
                webhook = change.webhook(id).await?.filter(|webhook| webhook.enabled);
                moved = webhook.as_ref().is_some_and(|webhook| webhook.url != webhook_delivery.url);
            }
        }
        // The endpoint's URL may have changed during the attempt. A response of the former URL does not count for the new one.
        let gone = attempted.answer.is_gone() && !moved;
        let mut next_at = if arrived || gone { None } else { next_attempt(claimed.attempts, attempted.ended_at, asked, jitter) };
        if !change.settle_delivery(claimed, arrived, next_at).await? {
            // The claim was lost: the lease expired, or the webhook was disabled or deleted. After an expired lease, another process claims
            // the delivery and records its outcome. This attempt is logged nevertheless, unless the webhook was deleted.
            if change.webhook(id).await?.is_some() {
                if arrived {
                    change.record_late_delivery(claimed).await?;
                }
                change.log_attempt(claimed, &attempted, DeliveryOutcome::Late.name(), None).await?;
            }
            change.end().await?;
            return Ok(DeliveryOutcome::Late);
        }
        let mut outcome = match (arrived, next_at) {
            (true, _) => DeliveryOutcome::Delivered,
            (false, Some(_)) => DeliveryOutcome::Retrying,
            (false, None) => DeliveryOutcome::GivenUp,
        };
        if let Some(webhook) = webhook.filter(|_| !moved) {
            change.note_health(webhook_delivery, Some(attempted.ended_at)).await?;
            if let Some(reason) = disables(webhook.failing_since, &attempted) {
                tracing::warn!(store = %webhook_delivery.store_id, webhook = %id, reason, "a webhook was disabled");
                let since = webhook.failing_since.or(Some(attempted.ended_at));
                let disabled_reason = Some(reason.to_owned());
                let disabled = Webhook { enabled: false, disabled_reason, failing_since: since, updated_at: change.now(), ..webhook };
                change.save_webhook(&disabled).await?;
                change.set_system_editor();
                change.audit(changed("webhook.disabled", &disabled));
                (outcome, next_at) = (DeliveryOutcome::Disabled, None);
            }
        }
        change.log_attempt(claimed, &attempted, outcome.name(), next_at).await?;
        change.end().await?;
        Ok(outcome)
    }

    async fn known_webhook(&self, store: &StoreId, id: &WebhookId) -> Result<()> {
        if self.webhooks(store).await?.iter().any(|webhook| webhook.id == *id) { Ok(()) } else { Err(unknown(id)) }
    }

    async fn check_account(&self, change: &mut WriteTransaction<'_>, webhook: &Webhook) -> Result<()> {
        let Some(account) = &webhook.account_id else { return Ok(()) };
        match change.account(account).await? {
            Some(_) => Ok(()),
            None => Err(Error::invalid("accountId", format!("`{account}` is no account of this store"))),
        }
    }
}

/// Returns the reason to disable an endpoint after a failure, if there is a reason: the endpoint is gone (410), or has failed for too long.
fn disables(failing_since: Option<Timestamp>, attempted: &Attempted) -> Option<&'static str> {
    let failing = failing_since.map_or(0, |since| attempted.ended_at.millis().saturating_sub(since.millis()));
    if attempted.answer.is_gone() {
        Some("the endpoint answered 410 Gone")
    } else if failing >= DISABLE_AFTER_MILLIS {
        Some("nothing but failures for 5 days")
    } else {
        None
    }
}

fn changed(action: &'static str, webhook: &Webhook) -> Entry {
    let Webhook { id, url, kinds, account_id, enabled, .. } = webhook;
    entry(action, id, json!({ "url": url, "events": kinds, "accountId": account_id, "enabled": enabled }))
}

fn entry(action: &'static str, id: &WebhookId, detail: Value) -> Entry {
    Entry { action, subject: Subject::Webhook, subject_id: id.to_string(), detail }
}

fn unknown(id: &WebhookId) -> Error {
    Error::missing("webhookId", "webhook", id)
}

fn disabled() -> Error {
    Error::conflict("webhookId", "names a webhook that is disabled; enable it first")
}

/// Checks the kinds of events, and returns them as they are stored. `None` means all kinds, which are stored as an empty list.
fn checked_kinds(kinds: Option<Vec<String>>) -> Result<Vec<String>> {
    let Some(mut kinds) = kinds else { return Ok(Vec::new()) };
    if kinds.is_empty() {
        return Err(Error::invalid("events", format!("must name at least one kind of event; there are {}", KINDS.join(", "))));
    }
    if let Some(unknown) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
        return Err(Error::invalid("events", format!("names `{unknown}`; the events are {}", KINDS.join(", "))));
    }
    kinds.sort();
    kinds.dedup();
    Ok(kinds)
}
