//! Operations of the settings API on deliveries of events to webhooks: the log of attempts, what was sent, test events, and replays, which
//! send events again (contract, section 6).

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{
    auth::GrantedRequest,
    params::{LimitParam, PositionParam},
    required_grants,
    webhooks::WebhookReference,
};
use crate::{
    domain::{
        ids::{EventId, WebhookId},
        time::{Bound, Timestamp},
        webhooks::{AttemptLogPage, LoggedAttempt, Replay},
    },
    http::{
        machinery::{
            body::Body,
            error_responses::{ApiError, Failure, SettingsChange, SettingsLookup},
            params::{Id, Query, Required},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::{EnumValue, ValueSet},
    },
};

/// The outcomes of a delivery attempt.
#[derive(Debug, Clone)]
pub struct Outcomes;

impl ValueSet for Outcomes {
    const NAME: &'static str = "AttemptOutcome";
    const DESCRIPTION: &'static str = "How an attempt ended: `delivered`; `retrying`: another attempt follows; `given_up`: no attempt follows; `disabled`: the failure disabled the webhook; `late`: by then another attempt had taken the event over, or the webhook had been disabled.";
    const VALUES: &'static [&'static str] = &["delivered", "retrying", "given_up", "disabled", "late"];
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
    /// The beginning of the body of an answer that is no 2xx, at most 1,000 characters; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
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
            answer: attempt.answer,
            outcome: attempt.outcome.into(),
            next_attempt_at: attempt.next_at,
        }
    }
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

/// An event as a webhook receives it.
#[derive(Debug, Object, Serialize)]
pub struct SentEvent {
    /// The body of the request, byte by byte: JSON, which `webhook-signature` signs.
    body: String,
}

/// The operations on deliveries.
#[derive(Debug)]
pub struct DeliveryOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Webhooks")]
impl DeliveryOperations {
    /// Send a test event
    ///
    /// Sends a test event, whose kind is `webhook.test`, to one webhook.
    #[oai(path = "/webhooks/test", method = "post", operation_id = "testWebhook")]
    async fn test_webhook(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
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
        managed: GrantedRequest<required_grants::Webhooks>,
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
        managed: GrantedRequest<required_grants::Webhooks>,
        /// The webhook whose attempts are listed.
        #[oai(name = "webhookId")]
        webhook_id: Query<Required<Id<WebhookId>>>,
        /// Only attempts whose `position` is smaller than this value, which are older. To read on, send the `position` of the last attempt
        /// received.
        before: Query<Option<PositionParam>>,
        /// The largest number of attempts to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<AttemptView>>, Failure<SettingsLookup>> {
        let along = AttemptLogPage::Before(before.0.map(|position| position.0));
        let attempts = managed.state.service.attempts(managed.store(), &webhook_id.0.0.0, along, limit.0.0).await?;
        let attempts: Vec<AttemptView> = attempts.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &attempts, vec![]))
    }

    /// Get what is sent
    ///
    /// Returns the body with which an event is sent to a webhook. The body is the same on every attempt. The webhook need not subscribe to
    /// the event.
    #[oai(path = "/webhooks/sent", method = "get", operation_id = "getSentEvent")]
    async fn get_sent_event(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
        /// The webhook that receives the event.
        #[oai(name = "webhookId")]
        webhook_id: Query<Required<Id<WebhookId>>>,
        /// The id of the event: the `eventId` of its attempts.
        #[oai(name = "eventId")]
        event_id: Query<Required<Id<EventId>>>,
    ) -> Result<Reply<One<SentEvent>>, Failure<SettingsLookup>> {
        let body = managed.state.service.sent_body(managed.store(), &webhook_id.0.0.0, &event_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &SentEvent { body }, vec![]))
    }
}
