//! Operations of the settings API on the clock of the server. The clock shows real time; in a sandbox (a database for tests), callers can
//! advance it.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{auth::GrantedRequest, required_grants};
use crate::{
    domain::time::Timestamp,
    http::machinery::{
        body::Body,
        error_responses::{ApiError, Failure, SettingsAdvance, SettingsCatalog},
        success_responses::{One, Reply},
    },
    service::sandbox_clock::{Advanced, ShownClock},
};

/// The clock of the server.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Clock", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct ClockView {
    /// The time that the clock shows, which the server uses for almost everything. These use real time instead: the expiry of links,
    /// sessions and tokens of the settings; the time in signed requests to webhooks, and to or from bridges; and a date in a `Retry-After`
    /// that a webhook or bridge sends.
    now: Timestamp,
    /// Whether the server serves a sandbox, whose clock can be advanced. Otherwise the clock shows real time.
    sandbox: bool,
    /// Where the clock is being advanced to; absent if no advance is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    advancing_to: Option<Timestamp>,
}

impl From<ShownClock> for ClockView {
    fn from(ShownClock { now, is_sandbox, advancing_to }: ShownClock) -> Self {
        Self { now, sandbox: is_sandbox, advancing_to }
    }
}

/// An instant to which the clock of a sandbox is advanced.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClockAdvance {
    /// The time that the clock shows when the answer comes. This time must not be earlier than the time that the clock shows now, and
    /// must be at most two years (731 days) ahead of real time.
    to: Timestamp,
}

/// The effects of an advance of the clock. The counts include only the store of the session or token.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct AdvancedClock {
    /// What the clock showed before the advance.
    from: Timestamp,
    /// What the clock shows after the advance; the clock runs on from this time.
    now: Timestamp,
    /// How often the server tried to send a message to its channel.
    message_attempts: u64,
    /// How often the server tried to deliver an event to a webhook.
    webhook_attempts: u64,
    /// How many webhooks the server disabled, because every attempt had failed for five days or the endpoint answered 410 (Gone).
    webhooks_disabled: i64,
    /// How many snoozes of open tickets ended.
    tickets_woken: i64,
    /// How many drafts expired because they had not been released or discarded.
    drafts_expired: i64,
    /// How many API keys expired.
    keys_expired: i64,
}

impl From<Advanced> for AdvancedClock {
    fn from(advanced: Advanced) -> Self {
        let Advanced { from, now, message_attempts, webhook_attempts, due_counts } = advanced;
        Self {
            from,
            now,
            message_attempts,
            webhook_attempts,
            webhooks_disabled: due_counts.webhooks_disabled,
            tickets_woken: due_counts.tickets_woken,
            drafts_expired: due_counts.drafts_expired,
            keys_expired: due_counts.keys_expired,
        }
    }
}

/// The operations that read and advance the clock.
#[derive(Debug)]
pub struct ClockOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Clock")]
impl ClockOperations {
    /// Get the clock
    ///
    /// Returns what the clock of the server shows, and whether the server serves a sandbox.
    #[oai(path = "/clock", method = "get", operation_id = "getClock")]
    async fn get_clock(
        &self,
        managed: GrantedRequest<required_grants::AnyGrant>,
    ) -> Result<Reply<One<ClockView>>, Failure<SettingsCatalog>> {
        Ok(Reply::of(&managed.context, &ClockView::from(managed.state.service.shown_clock()), vec![]))
    }

    /// Advance the clock of a sandbox
    ///
    /// Advances the clock of the whole sandbox, with all of its stores. The answer comes once everything that falls due by the new time has
    /// run: messages and events are delivered, or tried again on their schedules. Everything runs in the order of the due times, while the
    /// clock stands at the due time. The advance continues if the client does not wait; GET /clock shows how far it is. If the server is
    /// stopped meanwhile, the advance ends at the time reached. After ten minutes the advance ends at the time reached, and the answer is
    /// 503: the same request continues from there.
    #[oai(path = "/clock/advance", method = "post", operation_id = "advanceClock")]
    async fn advance_clock(
        &self,
        managed: GrantedRequest<required_grants::All>,
        body: Body<ClockAdvance>,
    ) -> Result<Reply<One<AdvancedClock>>, Failure<SettingsAdvance>> {
        let to = body.parse()?.to;
        let advanced = managed.state.service.advance_clock(&managed.editor, to).await.map_err(ApiError::in_body)?;
        Ok(Reply::of(&managed.context, &AdvancedClock::from(advanced), vec![]))
    }
}
