//! A message in revision B.

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
    pub id: String,
    pub conversation_id: String,
    pub message_direction: MessageDirection,
    pub sent_at: Timestamp,
    pub message_category: MessageCategory,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Image URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<EnumValue<MessageTypes>>,
    /// Who sent it, as the channel gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<StoredJson<Sender>>,
    /// The teammate who sent it; with `expand=sentBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<Author>,
    /// The conversation; with `expand=conversation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<RelatedChannel>,
    /// The channel account; with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<RelatedChannel>,
}

/// Who sent a message: `inbound` the contact, `outbound` the store.
#[derive(Debug, Clone, Copy, Enum, Serialize)]
#[oai(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum MessageDirection {
    Inbound,
    Outbound,
}

/// What kind of entry this is.
#[derive(Debug, Clone, Copy, Enum, Serialize)]
#[oai(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum MessageCategory {
    Message,
}

/// How a message was sent.
#[derive(Debug, Clone)]
pub struct MessageTypes;

impl ValueSet for MessageTypes {
    const NAME: &'static str = "MessageType";
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
