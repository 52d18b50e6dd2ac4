//! A message in revision A.

use poem_openapi::{Enum, Object};
use serde::Serialize;

use crate::{
    domain::{messages::MessageView, time::Timestamp},
    http::{
        operations::messages::Sender,
        schemas::{
            related_objects::{Author, RelatedChannel},
            value_types::StoredJson,
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
    pub account_id: String,
    /// Whether the contact sent it.
    pub sent_by_recipient: bool,
    pub sent_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The `userId` of the teammate who sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author_user_id: Option<String>,
    /// Whether it was sent from the application and not on the channel itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_sent_from_app: Option<bool>,
    /// Who sent it, as the channel gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<StoredJson<Sender>>,
    /// What was sent, as the channel gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<StoredJson<Payload>>,
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

/// What a message carries.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub struct Payload {
    r#type: PayloadType,
    text: Option<String>,
    /// Image URLs.
    images: Option<Vec<String>>,
    attachments: Option<Vec<Attachment>>,
    email: Option<EmailPayload>,
    template: Option<TemplatePayload>,
}

#[derive(Debug, Clone, Copy, Enum)]
#[oai(rename_all = "lowercase")]
enum PayloadType {
    Text,
    Image,
    File,
    Email,
    Template,
    Other,
}

/// A file.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct Attachment {
    name: String,
    url: String,
    mime_type: String,
    /// Bytes.
    size: i64,
}

/// The e-mail that a message is.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct EmailPayload {
    subject: Option<String>,
    from: Option<EmailAddress>,
    to: Option<Vec<EmailAddress>>,
    cc: Option<Vec<EmailAddress>>,
    bcc: Option<Vec<EmailAddress>>,
    html: Option<String>,
    message_id: Option<String>,
}

/// A mailbox.
#[derive(Debug, Object)]
struct EmailAddress {
    email: String,
    name: Option<String>,
}

/// The template that a message was made from.
#[derive(Debug, Object)]
struct TemplatePayload {
    id: String,
    name: Option<String>,
    language: Option<String>,
    /// Values of the placeholders, in order.
    variables: Option<Vec<String>>,
}

impl From<MessageView> for Message {
    fn from(view: MessageView) -> Self {
        let message = view.message;
        let payload = message.shown_payload();
        Self {
            id: message.id.into_string(),
            conversation_id: message.conversation_id.into_string(),
            account_id: message.account_id.into_string(),
            sent_by_recipient: message.inbound,
            sent_at: message.sent_at,
            created_at: message.created_at,
            updated_at: message.updated_at,
            author_user_id: message.author_user_id.map(|id| id.into_string()),
            is_sent_from_app: message.is_sent_from_app,
            sender: message.sender.and_then(StoredJson::new),
            payload: payload.and_then(StoredJson::new),
            sent_by: view.sent_by.map(Into::into),
            conversation: view.conversation.map(Into::into),
            account: view.account.map(Into::into),
        }
    }
}
