//! Webhooks: subscriptions of endpoints to events, the log of delivery attempts, test events and replays (section 6; decisions, section 8).

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{
    auth::{Managed, Permitted},
    grants,
    params::{AtLeastOne, Clearable, LimitParam, PositionParam},
};
use crate::{
    domain::{
        ids::WebhookId,
        time::{Bound, Timestamp},
        webhooks::{Along, KINDS, LoggedAttempt, Replay, SigningSecret, Webhook},
    },
    http::{
        events::EventKinds,
        machinery::{
            body::Body,
            error::{ApiError, Failure, SettingsAddition, SettingsCatalog, SettingsChange, SettingsEdit, SettingsLookup},
            idempotency::Acknowledgement,
            params::{Id, Query, Required},
            reply::{All, One, Reply},
        },
        schemas::value_types::{EnumValue, ValueSet},
    },
    service::webhooks::WebhookSettings,
};

/// The outcomes of a delivery attempt.
#[derive(Debug, Clone)]
pub struct Outcomes;

impl ValueSet for Outcomes {
    const NAME: &'static str = "AttemptOutcome";
    const DESCRIPTION: &'static str = "How an attempt ended: `delivered`; `retrying`: another attempt follows; `given_up`: no attempt follows; `disabled`: the failure disabled the webhook; `late`: by then another attempt had taken the event over, or the webhook had been disabled.";
    const VALUES: &'static [&'static str] = &["delivered", "retrying", "given_up", "disabled", "late"];
}

/// A webhook, which is the subscription of an endpoint to events, without its secret.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Webhook", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    /// Identifies the webhook, as `webhookId` in the operations on it.
    pub id: String,
    /// The address that events are sent to.
    pub url: String,
    /// The kinds of events that are sent to the webhook.
    pub events: Vec<EnumValue<EventKinds>>,
    /// If set, only the events of this channel account are sent to the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Whether events are sent to the webhook; `false` after it was disabled by hand, answered 410 or failed for five days.
    pub enabled: bool,
    /// Why the webhook is disabled; absent while it is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Since when every attempt has failed. A webhook that fails for 5 days is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// When the webhook was created.
    pub created_at: Timestamp,
    /// When the webhook was last edited, enabled, disabled or given a new secret.
    pub updated_at: Timestamp,
}

impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        let kinds = if webhook.kinds.is_empty() { KINDS.map(str::to_owned).to_vec() } else { webhook.kinds };
        Self {
            id: webhook.id.into_string(),
            url: webhook.url,
            events: kinds.into_iter().map(EnumValue::from).collect(),
            account_id: webhook.account_id.map(|id| id.into_string()),
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason,
            failing_since: webhook.failing_since,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

/// A webhook with its secret, which is not shown again.
#[derive(Debug, Object, Serialize)]
pub struct WebhookWithSecret {
    /// The webhook that the secret belongs to.
    webhook: WebhookView,
    /// The secret that deliveries are signed with, in the form that the libraries of Standard Webhooks accept.
    secret: String,
}

/// An attempt to deliver one event.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Attempt", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// The attempt's place in the log; a newer attempt has a greater one.
    pub position: i64,
    /// The `id` of the event that was sent. It is also the `webhook-id` header, and the same on every attempt.
    pub event_id: String,
    /// The event's kind; `webhook.test` for a test event.
    #[oai(rename = "type")]
    #[serde(rename = "type")]
    pub kind: String,
    /// The address that the event was sent to.
    pub url: String,
    /// The number of this attempt among the attempts of the event, from 1.
    pub attempt: i64,
    /// When the server began this attempt.
    pub started_at: Timestamp,
    /// How long the attempt took, in milliseconds.
    pub millis: i64,
    /// The HTTP status of the endpoint's answer; absent: there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    /// Why there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The outcome of the attempt.
    pub outcome: EnumValue<Outcomes>,
    /// When the next attempt is due; absent unless `outcome` is `retrying`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
}

impl From<LoggedAttempt> for AttemptView {
    fn from(attempt: LoggedAttempt) -> Self {
        Self {
            position: attempt.position,
            event_id: attempt.event_id,
            kind: attempt.kind,
            url: attempt.url,
            attempt: attempt.attempt,
            started_at: attempt.started_at,
            millis: attempt.took,
            status: attempt.status,
            reason: attempt.reason,
            outcome: attempt.outcome.into(),
            next_attempt_at: attempt.next_at,
        }
    }
}

/// A new webhook.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookCreation {
    /// The address that events are sent to. It begins with `https://`; use `http://` only if the endpoint offers nothing else.
    #[oai(validator(max_length = 2048))]
    url: String,
    /// The kinds of events that are sent to the webhook; omitted: every kind.
    events: Option<AtLeastOne<EnumValue<EventKinds>>>,
    /// The only channel account whose events are sent to the webhook; omitted or `null`: the events of all accounts are sent.
    #[oai(default)]
    #[serde(default)]
    account_id: Clearable,
}

/// The new properties of a webhook, for events from now on. What is omitted stays the same.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookChange {
    /// The webhook whose settings change.
    #[oai(validator(max_length = 64))]
    webhook_id: String,
    /// The new address, which begins with `https://` or `http://`.
    #[oai(validator(max_length = 2048))]
    url: Option<String>,
    /// All kinds of events that are sent to the webhook from now on; `null`: every kind.
    #[oai(default)]
    #[serde(default)]
    events: Clearable<AtLeastOne<EnumValue<EventKinds>>>,
    /// The only channel account whose events are sent to the webhook; `null`: the events of all accounts are sent.
    #[oai(default)]
    #[serde(default)]
    account_id: Clearable,
}

/// The webhook that an operation applies to.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookReference {
    /// The webhook to enable, disable, rotate or test.
    #[oai(validator(max_length = 64))]
    webhook_id: String,
}

fn names(kinds: AtLeastOne<EnumValue<EventKinds>>) -> Vec<String> {
    kinds.0.into_iter().map(|kind| kind.0).collect()
}

/// The events that are sent again, and the webhook that gets them.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayOrder {
    /// The webhook that gets the events; it must be enabled, except for a `dryRun`.
    #[oai(validator(max_length = 64))]
    webhook_id: String,
    /// Only the event with this id.
    #[oai(validator(max_length = 64))]
    event_id: Option<String>,
    /// Only events at or after this instant.
    since: Option<Bound>,
    /// Only events before this instant.
    until: Option<Bound>,
    /// Only events that were never delivered and do not wait for an attempt.
    missing: Option<bool>,
    /// Only counts the events, and sends none.
    dry_run: Option<bool>,
}

/// The number of events of a replay.
#[derive(Debug, Object, Serialize)]
pub struct Replayed {
    /// How many events were queued; with `dryRun`, how many would be queued.
    count: i64,
}

/// A test event that was queued.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct TestEvent {
    /// The id of the test event, under which the log shows its attempts.
    event_id: String,
}

/// Operations on webhooks.
#[derive(Debug)]
pub struct WebhookOperations;

impl WebhookOperations {
    fn view(managed: &Managed, webhook: Webhook) -> Reply<One<WebhookView>> {
        Reply::of(&managed.context, &WebhookView::from(webhook), vec![])
    }

    fn with_secret(managed: &Managed, (webhook, secret): (Webhook, SigningSecret)) -> Reply<One<WebhookWithSecret>> {
        Reply::of(&managed.context, &WebhookWithSecret { webhook: webhook.into(), secret: secret.reveal() }, vec![])
    }
}

#[OpenApi(tag = "crate::http::settings::tags::SettingsTag::Webhooks")]
impl WebhookOperations {
    /// List webhooks
    ///
    /// Lists the store's webhooks, the oldest first, without their secrets.
    #[oai(path = "/webhooks", method = "get", operation_id = "listWebhooks")]
    async fn list_webhooks(&self, managed: Permitted<grants::Webhooks>) -> Result<Reply<All<WebhookView>>, Failure<SettingsCatalog>> {
        let webhooks: Vec<WebhookView> = managed.state.service.webhooks(managed.store()).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &webhooks, vec![]))
    }

    /// Create a webhook
    ///
    /// Subscribes an endpoint to events from now on. The secret that deliveries are signed with is in this answer and is not shown again.
    #[oai(path = "/webhooks", method = "post", operation_id = "createWebhook")]
    async fn create_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<WebhookCreation>,
    ) -> Result<Reply<One<WebhookWithSecret>>, Failure<SettingsAddition>> {
        let new = body.parse()?;
        let account_id = Some(new.account_id.0.flatten().map(Into::into));
        let settings = WebhookSettings { url: Some(new.url), kinds: new.events.map(names).map(Some), account_id };
        let made = managed.state.service.create_webhook(&managed.editor, settings).await.map_err(ApiError::in_body)?;
        Ok(Self::with_secret(&managed, made))
    }

    /// Edit a webhook
    ///
    /// Changes the address that events are sent to, or which events are sent, for events from now on. The secret stays the same.
    #[oai(path = "/webhooks", method = "patch", operation_id = "editWebhook")]
    async fn edit_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<WebhookChange>,
    ) -> Result<Reply<One<WebhookView>>, Failure<SettingsEdit>> {
        let change = body.parse()?;
        let account_id = change.account_id.0.map(|account| account.map(Into::into));
        let settings = WebhookSettings { url: change.url, kinds: change.events.0.map(|kinds| kinds.map(names)), account_id };
        let id = change.webhook_id.into();
        let webhook = managed.state.service.edit_webhook(&managed.editor, &id, settings).await.map_err(ApiError::in_body)?;
        Ok(Self::view(&managed, webhook))
    }

    /// Enable a webhook
    ///
    /// Sends events to the webhook again, from now on. Events of the time when it was disabled are sent only by a replay.
    #[oai(path = "/webhooks/enable", method = "post", operation_id = "enableWebhook")]
    async fn enable_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<WebhookReference>,
    ) -> Result<Reply<One<WebhookView>>, Failure<SettingsEdit>> {
        let id = body.parse()?.webhook_id.into();
        Ok(Self::view(&managed, managed.state.service.enable_webhook(&managed.editor, &id, true).await.map_err(ApiError::in_body)?))
    }

    /// Disable a webhook
    ///
    /// Stops all deliveries to the webhook, and drops the events that wait for delivery.
    #[oai(path = "/webhooks/disable", method = "post", operation_id = "disableWebhook")]
    async fn disable_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<WebhookReference>,
    ) -> Result<Reply<One<WebhookView>>, Failure<SettingsEdit>> {
        let id = body.parse()?.webhook_id.into();
        Ok(Self::view(&managed, managed.state.service.enable_webhook(&managed.editor, &id, false).await.map_err(ApiError::in_body)?))
    }

    /// Rotate a webhook's secret
    ///
    /// Gives a webhook a new secret, which is in this answer and is not shown again. For 24 hours deliveries are signed with both the new
    /// and the former secret.
    #[oai(path = "/webhooks/rotate", method = "post", operation_id = "rotateWebhook")]
    async fn rotate_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<WebhookReference>,
    ) -> Result<Reply<One<WebhookWithSecret>>, Failure<SettingsEdit>> {
        let id = body.parse()?.webhook_id.into();
        Ok(Self::with_secret(&managed, managed.state.service.rotate_webhook(&managed.editor, &id).await.map_err(ApiError::in_body)?))
    }

    /// Send a test event
    ///
    /// Sends a test event, whose kind is `webhook.test`, to one webhook.
    #[oai(path = "/webhooks/test", method = "post", operation_id = "testWebhook")]
    async fn test_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<WebhookReference>,
    ) -> Result<Reply<One<TestEvent>>, Failure<SettingsChange>> {
        let id = body.parse()?.webhook_id.into();
        let event_id = managed.state.service.test_webhook(&managed.editor, &id).await.map_err(ApiError::in_body)?;
        Ok(Reply::of(&managed.context, &TestEvent { event_id }, vec![]))
    }

    /// Send events again
    ///
    /// Queues events again, as if there had been no attempt; with `dryRun`, only counts the events that would be queued.
    #[oai(path = "/webhooks/replay", method = "post", operation_id = "replayWebhook")]
    async fn replay_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        body: Body<ReplayOrder>,
    ) -> Result<Reply<One<Replayed>>, Failure<SettingsChange>> {
        let order = body.parse()?;
        let replay = Replay {
            event: order.event_id,
            since: order.since.map(Bound::at_or_after),
            until: order.until.map(Bound::before),
            missing: order.missing.unwrap_or_default(),
        };
        let dry_run = order.dry_run.unwrap_or_default();
        let count =
            managed.state.service.replay(&managed.editor, &order.webhook_id.into(), replay, dry_run).await.map_err(ApiError::in_body)?;
        Ok(Reply::of(&managed.context, &Replayed { count }, vec![]))
    }

    /// List attempts
    ///
    /// Lists the attempts to deliver events to an endpoint, the newest first.
    #[oai(path = "/webhooks/attempts", method = "get", operation_id = "listAttempts")]
    async fn list_attempts(
        &self,
        managed: Permitted<grants::Webhooks>,
        /// The webhook whose attempts are listed.
        #[oai(name = "webhookId")]
        webhook_id: Query<Required<Id<WebhookId>>>,
        /// Only attempts before this `position`. To read on, send the `position` of the last attempt received.
        before: Query<Option<PositionParam>>,
        /// The largest number of attempts to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<AttemptView>>, Failure<SettingsLookup>> {
        let along = Along::Before(before.0.map(|position| position.0));
        let attempts = managed.state.service.attempts(managed.store(), &webhook_id.0.0.0, along, limit.0.0).await?;
        let attempts: Vec<AttemptView> = attempts.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &attempts, vec![]))
    }

    /// Delete a webhook
    ///
    /// Deletes a webhook and its log, at once and permanently.
    #[oai(path = "/webhooks", method = "delete", operation_id = "deleteWebhook")]
    async fn delete_webhook(
        &self,
        managed: Permitted<grants::Webhooks>,
        /// The webhook to delete.
        #[oai(name = "webhookId")]
        webhook_id: Query<Required<Id<WebhookId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsLookup>> {
        managed.state.service.delete_webhook(&managed.editor, &webhook_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
