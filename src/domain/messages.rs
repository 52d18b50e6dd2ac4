//! Customer-facing messages and internal comments (API contract, sections 2.8 and 2.9).

use super::{
    ids::{AccountId, CommentId, ConversationId, MessageId, UserId},
    stores_and_accounts::ChannelRef,
    time::Timestamp,
    users_teams_labels::UserRef,
};

/// A customer-facing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub account_id: AccountId,
    /// Whether the contact sent the message.
    pub inbound: bool,
    pub sent_at: Timestamp,
    /// The sort key of message lists: `sent_at`, or the time of receipt if `sent_at` is too far in the future ([`received_order`]). This
    /// instant also determines to which ticket of the conversation the message belongs.
    pub sort_at: Timestamp,
    pub text: Option<String>,
    /// The URLs of the images.
    pub images: Option<Vec<String>>,
    pub kind: Option<String>,
    pub author_user_id: Option<UserId>,
    pub is_sent_from_app: Option<bool>,
    /// The sender as the channel describes it: the text of a JSON object.
    pub sender: Option<String>,
    /// The structured content of the message (property `payload` of the API), such as an e-mail with its recipients: the text of a JSON
    /// object.
    pub payload: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How far the clock of a channel may be ahead of this server's clock, in milliseconds.
const MAX_AHEAD_MILLIS: i64 = 5 * 60 * 1000;

/// Returns the sort key of an inbound message: the time when it was sent. If this time is more than `MAX_AHEAD_MILLIS` after the time of
/// receipt, the time of receipt is used instead. Without this rule, a channel with a wrong clock could put a message first in lists for
/// years.
pub fn received_order(sent_at: Timestamp, received_at: Timestamp) -> Timestamp {
    if sent_at > received_at.plus_millis(MAX_AHEAD_MILLIS) { received_at } else { sent_at }
}

impl Message {
    /// Returns the value of the API property `payload` as JSON text: the stored payload, or else a payload built from text and images.
    pub fn shown_payload(&self) -> Option<String> {
        if self.payload.is_some() {
            return self.payload.clone();
        }
        let kind = match (&self.text, &self.images) {
            (None, None) => return None,
            (_, Some(images)) if !images.is_empty() => "image",
            _ => "text",
        };
        let mut payload = serde_json::json!({ "type": kind });
        if let Some(text) = &self.text {
            payload["text"] = text.clone().into();
        }
        if let Some(images) = &self.images {
            payload["images"] = images.clone().into();
        }
        Some(payload.to_string())
    }
}

/// The values that the property `type` of a message can have.
pub const MESSAGE_TYPES: [&str; 5] = ["auto_response", "human_agent", "one_time_noti", "seller_only_messages", "deferred"];

/// The related records that a request adds to a message with the query parameter `expand`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageExpand {
    pub sent_by: bool,
    pub conversation: bool,
    pub account: bool,
}

/// A message with the related records that were requested and exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    pub message: Message,
    pub sent_by: Option<UserRef>,
    pub conversation: Option<ChannelRef>,
    pub account: Option<ChannelRef>,
}

/// An internal comment on a conversation, which the contact does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub id: CommentId,
    pub conversation_id: ConversationId,
    pub account_id: AccountId,
    pub text: String,
    pub created_by: UserId,
    pub sent_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The related records that a request adds to an internal comment with the query parameter `expand`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommentExpand {
    pub created_by: bool,
    pub conversation: bool,
    pub account: bool,
}

/// An internal comment with the related records that were requested and exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentView {
    pub comment: Comment,
    pub created_by: Option<UserRef>,
    pub conversation: Option<ChannelRef>,
    pub account: Option<ChannelRef>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_dated_over_five_minutes_ahead_is_ordered_by_arrival_time() {
        let order = |ahead: i64| received_order(Timestamp::from_millis(1000 + ahead), Timestamp::from_millis(1000)).millis() - 1000;
        for (ahead, sorted) in [(-1000, -1000), (0, 0), (1, 1), (300_000, 300_000), (300_001, 0), (i64::from(u32::MAX), 0)] {
            assert_eq!(order(ahead), sorted, "{ahead}");
        }
    }
}
