//! Request handlers and schemas of the settings API for webhooks. A webhook subscribes an HTTP endpoint to events (API contract, section
//! 6).

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{
    auth::{GrantedRequest, SettingsRequest},
    params::{AtLeastOne, Clearable},
    required_grants,
};
use crate::{
    domain::{
        ids::WebhookId,
        settings_access::FormerSecrets,
        time::Timestamp,
        webhooks::{KINDS, SigningSecret, Webhook},
    },
    http::{
        events::EventKinds,
        machinery::{
            body::Body,
            error_responses::{ApiError, Failure, SettingsAddition, SettingsCatalog, SettingsEdit, SettingsLookup},
            idempotency::Acknowledgement,
            params::{Id, Query, Required},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::EnumValue,
    },
    service::webhooks::WebhookSettings,
};

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
    /// The kinds of events that are sent to the webhook from now on; `null`: every kind.
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
    /// The webhook to enable, disable or test.
    #[oai(validator(max_length = 64))]
    pub(super) webhook_id: String,
}

/// A webhook whose secret is rotated.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookRotation {
    /// The webhook.
    #[oai(validator(max_length = 64))]
    webhook_id: String,
    /// Whether the former secrets end at once, for example after a leak; omitted: deliveries are also signed with them for 24 hours.
    end_former_secrets: Option<bool>,
}

fn names(kinds: AtLeastOne<EnumValue<EventKinds>>) -> Vec<String> {
    kinds.0.into_iter().map(|kind| kind.0).collect()
}

/// The operations on webhooks.
#[derive(Debug)]
pub struct WebhookOperations;

impl WebhookOperations {
    fn view(managed: &SettingsRequest, webhook: Webhook) -> Reply<One<WebhookView>> {
        Reply::of(&managed.context, &WebhookView::from(webhook), vec![])
    }

    fn with_secret(managed: &SettingsRequest, (webhook, secret): (Webhook, SigningSecret)) -> Reply<One<WebhookWithSecret>> {
        Reply::of(&managed.context, &WebhookWithSecret { webhook: webhook.into(), secret: secret.reveal() }, vec![])
    }
}

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Webhooks")]
impl WebhookOperations {
    /// List webhooks
    ///
    /// Lists the store's webhooks, the oldest first, without their secrets.
    #[oai(path = "/webhooks", method = "get", operation_id = "listWebhooks")]
    async fn list_webhooks(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
    ) -> Result<Reply<All<WebhookView>>, Failure<SettingsCatalog>> {
        let webhooks: Vec<WebhookView> = managed.state.service.webhooks(managed.store()).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &webhooks, vec![]))
    }

    /// Create a webhook
    ///
    /// Subscribes an endpoint to events from now on. The secret that deliveries are signed with is in this answer and is not shown again.
    #[oai(path = "/webhooks", method = "post", operation_id = "createWebhook")]
    async fn create_webhook(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
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
        managed: GrantedRequest<required_grants::Webhooks>,
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
        managed: GrantedRequest<required_grants::Webhooks>,
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
        managed: GrantedRequest<required_grants::Webhooks>,
        body: Body<WebhookReference>,
    ) -> Result<Reply<One<WebhookView>>, Failure<SettingsEdit>> {
        let id = body.parse()?.webhook_id.into();
        Ok(Self::view(&managed, managed.state.service.enable_webhook(&managed.editor, &id, false).await.map_err(ApiError::in_body)?))
    }

    /// Rotate a webhook's secret
    ///
    /// Gives a webhook a new secret, which is in this answer and is not shown again. For 24 hours deliveries are signed with both the new
    /// and the former secret, unless the request ends the former one.
    #[oai(path = "/webhooks/rotate", method = "post", operation_id = "rotateWebhook")]
    async fn rotate_webhook(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
        body: Body<WebhookRotation>,
    ) -> Result<Reply<One<WebhookWithSecret>>, Failure<SettingsEdit>> {
        let WebhookRotation { webhook_id, end_former_secrets } = body.parse()?;
        let former = FormerSecrets::of(end_former_secrets.unwrap_or_default());
        let rotated = managed.state.service.rotate_webhook(&managed.editor, &webhook_id.into(), former).await;
        Ok(Self::with_secret(&managed, rotated.map_err(ApiError::in_body)?))
    }

    /// Delete a webhook
    ///
    /// Deletes a webhook and its log, at once and permanently.
    #[oai(path = "/webhooks", method = "delete", operation_id = "deleteWebhook")]
    async fn delete_webhook(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
        /// The webhook to delete.
        #[oai(name = "webhookId")]
        webhook_id: Query<Required<Id<WebhookId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsLookup>> {
        managed.state.service.delete_webhook(&managed.editor, &webhook_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
