//! The schema of a message in revision B.

use poem_openapi::{Enum, Object};
use serde::Serialize;

use crate::{
    domain::{
        messages::{MESSAGE_TYPES, MessageView},
        time::Timestamp,
    },
    http::{
        operations::messages::Sender,
        schemas::{
            related_objects::{Author, RelatedChannel},
            value_types::{EnumValue, StoredJson, ValueSet},
        },
    },
};

/// A customer-facing message.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Identifies the message.
    pub id: String,
    /// The conversation that the message was sent in.
    pub conversation_id: String,
    /// Whether the contact or the store sent the message.
    pub message_direction: MessageDirection,
    /// When the message was sent, according to its channel. If the channel reports no time: when this server received the message from the
    /// contact, or accepted it for sending.
    pub sent_at: Timestamp,
    /// Always `message`: events and internal comments are not listed among messages.
    pub message_category: MessageCategory,
    /// The plain text; for a template, its body with the values filled in. Absent if there is none, as on a message of images only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Image URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
    /// The special way in which the message was sent, such as `auto_response`; absent on ordinary messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<EnumValue<MessageTypes>>,
    /// The sender of the message, as the channel describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<StoredJson<Sender>>,
    /// The teammate who sent the message; only with `expand=sentBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<Author>,
    /// The conversation; only with `expand=conversation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<RelatedChannel>,
    /// The channel account; only with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<RelatedChannel>,
}

/// The direction of a message: `inbound` from the contact, `outbound` from the store.
#[derive(Debug, Clone, Copy, Enum, Serialize)]
#[oai(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum MessageDirection {
    Inbound,
    Outbound,
}

/// The kind of an entry in the list of messages.
#[derive(Debug, Clone, Copy, Enum, Serialize)]
#[oai(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum MessageCategory {
    Message,
}

/// The special ways in which a message can be sent.
#[derive(Debug, Clone)]
pub struct MessageTypes;

impl ValueSet for MessageTypes {
    const NAME: &'static str = "MessageType";
    const DESCRIPTION: &'static str = "The special way in which a message was sent: an `auto_response` does not count as a reply; `human_agent` uses the longer reply window of Messenger and Instagram.";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &MESSAGE_TYPES;
}

impl From<MessageView> for Message {
    fn from(view: MessageView) -> Self {
        let message = view.message;
        Self {
            id: message.id.into_string(),
            conversation_id: message.conversation_id.into_string(),
            message_direction: if message.inbound { MessageDirection::Inbound } else { MessageDirection::Outbound },
            sent_at: message.sent_at,
            message_category: MessageCategory::Message,
            text: message.text,
            images: message.images,
            r#type: message.kind.map(Into::into),
            sender: message.sender.and_then(StoredJson::new),
            sent_by: view.sent_by.map(Into::into),
            conversation: view.conversation.map(Into::into),
            account: view.account.map(Into::into),
        }
    }
}
