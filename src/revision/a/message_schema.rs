//! The schema of a message in revision A.

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
    /// Whether the contact sent the message; `Recipient` in the name of the property stands for the contact.
    pub sent_by_recipient: bool,
    /// When the message was sent, according to its channel. If the channel reports no time: when this server received the message from the
    /// contact, or accepted it for sending.
    pub sent_at: Timestamp,
    /// When this server recorded the message; differs from `sentAt` if the channel reported another time.
    pub created_at: Timestamp,
    /// When the record last changed; delivery to the channel does not change this time.
    pub updated_at: Timestamp,
    /// The `userId` of the teammate who sent the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author_user_id: Option<String>,
    /// `true`: the store sent the message over this API or from its inbox application. `false`: the store sent it in the channel's own app.
    /// Absent if that is not recorded, as on messages that this server received from contacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_sent_from_app: Option<bool>,
    /// The sender of the message, as the channel describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<StoredJson<Sender>>,
    /// The content of the message, as the channel describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<StoredJson<Payload>>,
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

/// The content of a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub struct Payload {
    /// The main kind of content; derived from text and images if the channel gave no payload.
    r#type: PayloadType,
    /// The plain text; for a template, its body with the values filled in. Absent if there is none.
    text: Option<String>,
    /// Image URLs.
    images: Option<Vec<String>>,
    /// Files that came with the message; absent if there are none.
    attachments: Option<Vec<Attachment>>,
    /// Addresses, subject and HTML body, if the message is an e-mail.
    email: Option<EmailPayload>,
    /// The template and its values, if the message was created from a template.
    template: Option<TemplatePayload>,
}

/// The main kind of content of a message; `other` is content that fits none of the other values.
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

/// A file that came with a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct Attachment {
    /// The name of the file.
    name: String,
    /// The URL of the file, as the channel gave it.
    url: String,
    /// Media type of the file, such as `image/png`.
    mime_type: String,
    /// The size of the file in bytes.
    size: i64,
}

/// The parts of a message that is an e-mail.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct EmailPayload {
    /// The subject line; absent if the e-mail has none.
    subject: Option<String>,
    /// The mailbox that the e-mail was sent from; absent if it is not known.
    from: Option<EmailAddress>,
    /// The main recipients of the e-mail.
    to: Option<Vec<EmailAddress>>,
    /// Recipients of copies; absent if the e-mail has none.
    cc: Option<Vec<EmailAddress>>,
    /// Recipients of blind copies; absent if the e-mail has none.
    bcc: Option<Vec<EmailAddress>>,
    /// The HTML body; absent if the e-mail is plain text, which is in `text` of the payload.
    html: Option<String>,
    /// The `Message-ID` header of the e-mail, by which replies refer to it.
    message_id: Option<String>,
}

/// A mailbox: an e-mail address and its display name.
#[derive(Debug, Object)]
struct EmailAddress {
    /// The bare e-mail address of the mailbox.
    email: String,
    /// The display name of the mailbox; absent if there is none.
    name: Option<String>,
}

/// The template that a message was created from.
#[derive(Debug, Object)]
struct TemplatePayload {
    /// Identifies the template. Since the message was sent, the template may have changed or been removed.
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
