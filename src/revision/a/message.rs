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
    /// Identifies the message.
    pub id: String,
    /// The conversation that the message was sent in.
    pub conversation_id: String,
    /// The channel account of the message's conversation.
    pub account_id: String,
    /// Whether the contact sent it.
    pub sent_by_recipient: bool,
    /// When the message was sent, according to its channel. If the channel does not say, when the service received or accepted it.
    pub sent_at: Timestamp,
    /// When the service recorded the message; can differ from `sentAt`, which a channel may give.
    pub created_at: Timestamp,
    /// When the record last changed; delivery to the channel does not move it.
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
    /// What the message mainly carries; derived from text and images where the channel gave no payload.
    r#type: PayloadType,
    /// The plain text, for a template its filled-in body; absent where there is none.
    text: Option<String>,
    /// Image URLs.
    images: Option<Vec<String>>,
    /// Files that came with the message; absent where there are none.
    attachments: Option<Vec<Attachment>>,
    /// Addresses, subject and HTML body where the message is an e-mail.
    email: Option<EmailPayload>,
    /// Which template was sent, and with what values, where the message was made from one.
    template: Option<TemplatePayload>,
}

/// What a message carries above all; `other` is whatever fits none of the other values.
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
    /// The name of the file.
    name: String,
    /// The address of the file, as the channel gave it.
    url: String,
    /// Media type of the file, such as `image/png`.
    mime_type: String,
    /// Bytes.
    size: i64,
}

/// The e-mail that a message is.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct EmailPayload {
    /// The subject line; absent where the e-mail has none.
    subject: Option<String>,
    /// The mailbox that the e-mail was sent from; absent where it is not known.
    from: Option<EmailAddress>,
    /// The main recipients of the e-mail.
    to: Option<Vec<EmailAddress>>,
    /// Recipients of copies; absent where the e-mail has none.
    cc: Option<Vec<EmailAddress>>,
    /// Recipients of blind copies; absent where the e-mail has none.
    bcc: Option<Vec<EmailAddress>>,
    /// The HTML body; absent for an e-mail of plain text, which is in `text` of the payload.
    html: Option<String>,
    /// The `Message-ID` header of the e-mail, by which replies refer to it.
    message_id: Option<String>,
}

/// A mailbox.
#[derive(Debug, Object)]
struct EmailAddress {
    /// The bare e-mail address of the mailbox.
    email: String,
    /// The display name that goes with the address; absent where there is none.
    name: Option<String>,
}

/// The template that a message was made from.
#[derive(Debug, Object)]
struct TemplatePayload {
    /// The template, by its `id` at the time of sending.
    id: String,
    /// The name of the template.
    name: Option<String>,
    /// Language code of the template.
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
