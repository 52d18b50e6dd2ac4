//! Undelivered messages: outbound messages that their channel has not accepted.

use super::{
    ids::{AccountId, ConversationId, MessageId},
    outbound::Delivery,
    time::Timestamp,
};

/// How long a message that failed can be sent again.
pub const FAILED_KEPT_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A message that its channel has not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeliveredMessage {
    pub message_id: MessageId,
    pub conversation_id: ConversationId,
    pub account_id: AccountId,
    pub sent_at: Timestamp,
    pub text: Option<String>,
    /// Pending or failed.
    pub state: Delivery,
    /// Why the last attempt did not succeed; absent before the first failed attempt.
    pub reason: Option<String>,
    /// The number of attempts to send the message. Absent: unknown.
    pub attempts: Option<i64>,
    /// Of a pending message: when the next attempt is due. While an attempt runs: when the attempt is repeated, if its outcome is not known
    /// by then.
    pub due_at: Option<Timestamp>,
    /// Of a failed message: when the last attempt ended.
    pub failed_at: Option<Timestamp>,
    /// Whether another attempt is possible.
    pub can_be_retried: bool,
}
