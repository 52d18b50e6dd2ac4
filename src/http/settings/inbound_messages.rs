//! The operation of the settings API that receives an inbound message (a message from a contact) from a bridge. A bridge is a program that
//! connects a channel, such as WhatsApp, to this server.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::inbound_auth::InboundCaller;
use crate::{
    domain::{
        inbound_messages::{Ignored, Inbound, InboundContact, RawProperty, Received},
        time::Timestamp,
    },
    http::machinery::{
        body::Body,
        error_responses::{ApiError, Failure, SettingsReceipt},
        success_responses::{One, Reply},
    },
};

/// A message from a contact, as its channel delivers it. `null` in an optional member counts as absent.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InboundMessage {
    /// The store of the account. Required if a bridge signs the request: the bridge finds the id as `storeId` in every message that this
    /// server posts to it. With a token or session the id may be left out; a store other than the caller's is refused.
    #[oai(validator(min_length = 1, max_length = 64), nullable)]
    store_id: Option<String>,
    /// The channel account that the contact wrote to; an unknown account is answered with 400.
    #[oai(validator(min_length = 1, max_length = 64))]
    account_id: String,
    /// The channel's id of the thread. On WhatsApp it is the contact's phone number, which is converted to E.164: `+66812345678`,
    /// `66812345678`, `0066812345678`, `tel:+66812345678` and `66812345678@s.whatsapp.net` are the same thread. Any other text is answered
    /// with 400 on WhatsApp, unless a conversation already has that reference.
    #[oai(validator(min_length = 1, max_length = 512))]
    reference_id: String,
    /// The channel's id of the message. A message that was received before changes nothing.
    #[oai(validator(min_length = 1, max_length = 512))]
    external_id: String,
    /// The sender of the message, as the channel identifies them.
    sender: Sender,
    /// The text of the message. A message with neither text nor images, such as a sticker, is accepted, too.
    #[oai(nullable)]
    text: Option<String>,
    /// The addresses of the message's images; none of them may be blank.
    #[oai(nullable)]
    images: Option<Vec<String>>,
    /// When the message was sent; omitted: the time of its receipt. A message whose `sentAt` is more than five minutes after its receipt is
    /// ordered by the time of receipt.
    #[oai(nullable)]
    sent_at: Option<Timestamp>,
    /// The subject of the thread, a string; it is used if this message begins the thread. Line breaks become spaces; a blank subject is
    /// left out.
    email_subject: Option<RawProperty>,
    /// Details of the sender. If the message begins a thread, they are used to find the contact of the thread or to create one.
    #[oai(nullable)]
    contact: Option<SenderDetails>,
}

/// The sender, as the channel identifies them. The server leaves an unusable name out and lists it as `ignored` in the answer.
#[derive(Debug, Object, Deserialize)]
#[oai(deny_unknown_fields)]
#[serde(deny_unknown_fields)]
pub struct Sender {
    /// The sender's id on the channel. In an e-mail conversation, text replies are sent to the id if it is an address.
    #[oai(validator(min_length = 1, max_length = 512))]
    id: String,
    /// The sender's name, a string.
    name: Option<RawProperty>,
}

/// What the channel knows about the sender. If the message begins a thread, the server looks for a contact with this e-mail or phone, or
/// else creates one with these details. The server leaves unusable values out and lists them as `ignored` in the answer.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SenderDetails {
    /// The first name, a string.
    first_name: Option<RawProperty>,
    /// The last name, a string.
    last_name: Option<RawProperty>,
    /// An e-mail address without a display name, such as `mali@example.com`.
    email: Option<RawProperty>,
    /// An international number: `+66812345678`, `+66 81-234-5678`, `0066812345678` or `tel:+66812345678`; on WhatsApp also
    /// `66812345678`. Stored in E.164.
    phone: Option<RawProperty>,
}

impl From<InboundMessage> for Inbound {
    fn from(message: InboundMessage) -> Self {
        let mut not_texts = Vec::new();
        let mut text = |detail, member| RawProperty::text(detail, member, &mut not_texts);
        Self {
            account_id: message.account_id.into(),
            reference_id: message.reference_id,
            external_id: message.external_id,
            sender_id: message.sender.id,
            sender_name: text(message.sender.name, "sender.name"),
            text: message.text,
            images: message.images,
            sent_at: message.sent_at,
            email_subject: text(message.email_subject, "emailSubject"),
            contact: message.contact.map(|contact| InboundContact {
                first_name: text(contact.first_name, "contact.firstName"),
                last_name: text(contact.last_name, "contact.lastName"),
                email: text(contact.email, "contact.email"),
                phone: text(contact.phone, "contact.phone"),
            }),
            not_texts,
        }
    }
}

/// The result of receiving a message.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct MessageReceipt {
    /// The message as it was stored; for a `duplicate`, the one that was stored the first time.
    message_id: String,
    /// The conversation of the message: that of the thread, or a new one if the thread was unknown.
    conversation_id: String,
    /// The ticket that the message belongs to, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket_id: Option<String>,
    /// Whether the message had been received before, so that nothing changed.
    duplicate: bool,
    /// What the server left out of the message, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<Vec<IgnoredMember>>,
}

/// A member of the message that the server left out.
#[derive(Debug, Object, Serialize)]
pub struct IgnoredMember {
    /// The path of the member, such as `contact.phone`.
    member: String,
    /// What is wrong with its value, or what the value must be.
    reason: String,
}

impl From<Ignored> for IgnoredMember {
    fn from(Ignored { member, reason }: Ignored) -> Self {
        Self { member: member.to_owned(), reason }
    }
}

impl From<Received> for MessageReceipt {
    fn from(received: Received) -> Self {
        Self {
            message_id: received.message_id.into_string(),
            conversation_id: received.conversation_id.into_string(),
            ticket_id: received.ticket_id.map(|id| id.into_string()),
            duplicate: received.duplicate,
            ignored: Some(received.ignored).filter(|all| !all.is_empty()).map(|all| all.into_iter().map(Into::into).collect()),
        }
    }
}

/// The operation that receives an inbound message.
#[derive(Debug)]
pub struct InboundMessageOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Inbox")]
impl InboundMessageOperations {
    /// Receive a message
    ///
    /// Receives a message from a contact, as a bridge to a channel delivers it. The server finds or creates the conversation, the contact
    /// and the ticket. A message whose `externalId` is already known on the account changes nothing, so that a request can safely be
    /// repeated. A message with unusable details of the sender or an unusable subject is accepted: the server leaves them out and lists
    /// them as `ignored`.
    ///
    /// Instead of presenting a token, the bridge of the account may sign the request with its own secret, in the form of Standard Webhooks.
    /// The time in such a request must be within five minutes of the server's time. The request is accepted once: a bridge that repeats it
    /// signs it anew.
    #[oai(path = "/messages", method = "post", operation_id = "receiveMessage")]
    async fn receive_message(
        &self,
        caller: InboundCaller,
        body: Body<InboundMessage>,
    ) -> Result<Reply<One<MessageReceipt>>, Failure<SettingsReceipt>> {
        let source = caller.verified(&body).await?;
        let message = body.parse_inbound()?;
        source.must_fit(message.store_id.as_deref(), &message.account_id)?;
        let received = source.state.service.receive_signed(&source.store, message.into(), source.signature.as_ref()).await;
        Ok(Reply::of(&source.context, &MessageReceipt::from(received.map_err(ApiError::in_body)?), vec![]))
    }
}
