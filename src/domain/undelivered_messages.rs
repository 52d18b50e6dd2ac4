//! Undelivered messages: outbound messages that their channel has not accepted.

use super::{
    ids::{AccountId, ConversationId, MessageId},
    outbound_messages::Delivery,
    time::Timestamp,
};

/// A failed message can be sent again for at least this many milliseconds after its failure. For this time its outbox entry, which contains
/// the content to send, is kept.
pub const FAILED_KEPT_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A message that its channel has not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeliveredMessage {
    pub message_id: MessageId,
    pub conversation_id: ConversationId,
    pub account_id: AccountId,
    pub sent_at: Timestamp,
    pub text: Option<String>,
    /// The delivery state: pending or failed.
    pub state: Delivery,
    /// Why the last attempt did not succeed; absent before the first failed attempt.
    pub reason: Option<String>,
    /// The number of attempts to send the message. Absent: unknown.
    pub attempts: Option<i64>,
    /// When the next attempt to send a pending message is due. While an attempt runs, this is the time at which another attempt follows if
    /// the outcome is not known by then.
    pub due_at: Option<Timestamp>,
    /// When the last attempt to send a failed message ended.
    pub failed_at: Option<Timestamp>,
    /// Whether another attempt is possible.
    pub can_be_retried: bool,
}
