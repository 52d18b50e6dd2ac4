//! Undelivered messages: operations that list the messages that their channel has not accepted, and that send such messages again.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{auth::GrantedRequest, params::LimitParam, required_grants};
use crate::{
    domain::{
        conversations::Destination, ids::MessageId, outbound_messages::Delivery, time::Timestamp, undelivered_messages::UndeliveredMessage,
    },
    http::{
        machinery::{
            body::Body,
            error_responses::{ApiError, Failure, SettingsChange, SettingsLookup},
            idempotency::Acknowledgement,
            params::{Choice, Id, OneOf, Query},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::{EnumValue, ValueSet},
    },
};

/// The values of `state`, in the list of undelivered messages and in the filter of that list.
#[derive(Debug, Clone)]
pub struct UndeliveredStates;

impl ValueSet for UndeliveredStates {
    const NAME: &'static str = "UndeliveredState";
    const DESCRIPTION: &'static str = "`failed`: no more attempts are made; `pending`: the message waits for an attempt.";
    const VALUES: &'static [&'static str] = &["failed", "pending"];
}

impl Choice for UndeliveredStates {
    const VALUES: &'static [&'static str] = <Self as ValueSet>::VALUES;
}

/// A message that its channel has not accepted.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "UndeliveredMessage", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct UndeliveredMessageView {
    /// Identifies the message, as `messageId` of a retry.
    message_id: String,
    /// The conversation of the message.
    conversation_id: String,
    /// The channel account over which the message is sent.
    account_id: String,
    /// The name of the contact to whom the message is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    contact_name: Option<String>,
    /// The text of the message; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// When the message was handed to this server to be sent.
    sent_at: Timestamp,
    /// Whether there will be further attempts.
    state: EnumValue<UndeliveredStates>,
    /// Why the last attempt did not succeed: in the words of the channel, its bridge or this server; `no_connector` if nothing connects the
    /// account to its channel. Absent if no attempt has ended yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The number of attempts; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<i64>,
    /// When the next attempt is due; absent if the message failed. During an attempt: when the attempt is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Timestamp>,
    /// When the last attempt failed; absent while the message is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    /// Whether the message can be retried. It cannot if it failed under a version of this server that did not keep what a retry needs.
    can_be_retried: bool,
}

impl UndeliveredMessageView {
    fn of(message: UndeliveredMessage, destination: Option<&Destination>) -> Self {
        Self {
            message_id: message.message_id.into_string(),
            conversation_id: message.conversation_id.into_string(),
            account_id: message.account_id.into_string(),
            contact_name: destination.map(|destination| destination.contact_name.clone()),
            text: message.text,
            sent_at: message.sent_at,
            state: message.state.as_str().to_owned().into(),
            reason: message.reason,
            attempts: message.attempts,
            next_attempt_at: message.due_at,
            failed_at: message.failed_at,
            can_be_retried: message.can_be_retried,
        }
    }
}

/// A message to send again.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageRetry {
    /// The message; its channel must not have accepted it.
    #[oai(validator(max_length = 64))]
    message_id: String,
}

/// The operations on undelivered messages.
#[derive(Debug)]
pub struct UndeliveredOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Undelivered")]
impl UndeliveredOperations {
    /// List undelivered messages
    ///
    /// Lists messages that their channel has not accepted: those that failed, the last failure first, or those that are pending, the newest
    /// first. A message that failed is listed for 30 days at least; afterwards it stays in its conversation.
    #[oai(path = "/messages/undelivered", method = "get", operation_id = "listUndeliveredMessages")]
    async fn list_undelivered_messages(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        /// Only messages in this state; omitted: `failed` ones.
        state: Query<Option<OneOf<UndeliveredStates>>>,
        /// Only messages that failed before the message with this id; in the list of pending messages, only those that were queued before
        /// it. To read on, send the `messageId` of the last message received, which must still be in the list.
        before: Query<Option<Id<MessageId>>>,
        /// The largest number of messages to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<UndeliveredMessageView>>, Failure<SettingsLookup>> {
        let (store, service) = (managed.store(), &managed.state.service);
        let state = state.0.and_then(|name| Delivery::of(&name.0)).unwrap_or(Delivery::Failed);
        let before = before.0.map(|id| id.0);
        let messages = service.undelivered(store, state, before.as_ref(), limit.0.0.cast_unsigned()).await?;
        let destinations = service.destinations(store, messages.iter().map(|message| &message.conversation_id)).await?;
        let messages: Vec<UndeliveredMessageView> = messages
            .into_iter()
            .map(|message| {
                let destination = destinations.get(&message.conversation_id);
                UndeliveredMessageView::of(message, destination)
            })
            .collect();
        Ok(Reply::of(&managed.context, &messages, vec![]))
    }

    /// Retry a message
    ///
    /// Sends a failed message again, with a new series of attempts. A pending message is tried again now, without waiting for its
    /// `nextAttemptAt`; the pending messages before it in its conversation are tried first, also without waiting. A text is refused, like a
    /// new one, if the contact has not written recently enough for the channel. A channel that already received the message recognizes the
    /// message's id, and does not show the message twice.
    #[oai(path = "/messages/retry", method = "post", operation_id = "retryMessage")]
    async fn retry_message(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<MessageRetry>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsChange>> {
        let MessageRetry { message_id } = body.parse()?;
        managed.state.service.retry_message(&managed.editor, &message_id.into()).await.map_err(ApiError::in_body)?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
