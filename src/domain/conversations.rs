//! The conversation record with its counters and newest message (API contract, section 2.5), and two extracts from a conversation:
//! [`Thread`] is shown with messages and comments, [`Destination`] with drafts and undelivered messages.

use super::{
    ids::{AccountId, ContactId, ConversationId, LabelId},
    stores_and_accounts::{Channel, ChannelRef},
    time::Timestamp,
};

/// A conversation: the messages between a contact and a channel account of the store. The record includes their counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    pub id: ConversationId,
    pub channel: Channel,
    pub account_id: AccountId,
    pub contact_id: ContactId,
    pub display_name: String,
    pub reference_id: String,
    pub label_ids: Vec<LabelId>,
    pub is_spam: bool,
    pub unread_count: i64,
    pub message_count: i64,
    pub email_subject: Option<String>,
    pub last_inbound_at: Option<Timestamp>,
    pub last_message: Option<LastMessage>,
    /// The sort key of conversation lists: the time of the newest message, or of the creation if there is no message.
    pub sort_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The newest message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMessage {
    /// The first [`SNIPPET_CHARS`] characters of the text. Each run of white space in the text is one space; white space at both ends is
    /// left out.
    pub snippet: String,
    pub sent_by_recipient: bool,
    pub sent_at: Timestamp,
}

/// The recipient of the messages of a conversation, and the account through which they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub account_id: AccountId,
    pub contact_name: String,
}

/// The length of a snippet, in characters.
pub const SNIPPET_CHARS: usize = 100;

/// A conversation, with its account if the account was requested and exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationView {
    pub conversation: Conversation,
    pub account: Option<ChannelRef>,
}

/// References to a conversation and its account, which are shown with the messages and comments of the conversation if requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub conversation: ChannelRef,
    pub account_id: AccountId,
    pub account: Option<ChannelRef>,
}
