//! The schema of a ticket in revision B.

use poem_openapi::Object;
use serde::Serialize;

use crate::{
    domain::{tickets::TicketView, time::Timestamp},
    http::schemas::{
        field_definitions::TicketFieldValues,
        related_objects::{RelatedChannel, RelatedUser},
        value_types::{ChannelName, id_or_object},
    },
};

/// A ticket: a piece of support work on a conversation.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// Identifies the ticket: the value of `ticketId` in requests. The number to show to people is `ticketNumber`.
    pub id: String,
    /// The human-readable number of the ticket.
    pub ticket_number: String,
    /// `true` from opening to closing, also while the ticket is snoozed.
    pub is_open: bool,
    /// When the ticket was first opened. Reopening the ticket does not change this time, but sets `reopenedAt`.
    pub opened_at: Timestamp,
    /// The channel of the ticket's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelName>,
    /// Whether the ticket is marked as spam. Spam tickets are listed only on request (`isSpam`), and cannot be assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_spam: Option<bool>,
    /// The contact of the ticket's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<String>,
    /// When the ticket was recorded; the same as `openedAt` unless an import set another time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When the ticket or one of its field values last changed; messages and snoozes do not change this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The channel account; omitted with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The channel account; only with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<RelatedChannel>,
    /// The conversation; omitted with `expand=conversation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The conversation; only with `expand=conversation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<RelatedChannel>,
    /// When the ticket was closed; absent while it is open, and removed when it is reopened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// When a message from the contact last reopened the ticket; absent if that never happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reopened_at: Option<Timestamp>,
    /// The assigned user's `userId`; omitted with `expand=assignee`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee_user_id: Option<String>,
    /// The assigned user; only with `expand=assignee`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<RelatedUser>,
    /// Whether an earlier ticket exists on the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_follow_up: Option<bool>,
    /// Field values, keyed by field id, and values of system keys such as `isConverted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket_fields: Option<TicketFieldValues>,
    /// The `userId` of the user who handled the ticket, as stated when it was closed or imported. May differ from the assignee. With
    /// `expand=handledBy`, the user as an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled_by: Option<HandledBy>,
    /// When a field value was last written. Send it with the next field update, so that a concurrent change is detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket_fields_updated_at: Option<Timestamp>,
}

id_or_object! {
    /// A user id, or the user as an object.
    HandledBy(RelatedUser)
}

impl From<TicketView> for Ticket {
    fn from(view: TicketView) -> Self {
        let ticket = view.ticket;
        Self {
            id: ticket.id.into_string(),
            ticket_number: ticket.number,
            is_open: ticket.is_open,
            opened_at: ticket.opened_at,
            channel: Some(ticket.channel.into()),
            is_spam: Some(ticket.is_spam),
            contact_id: Some(ticket.contact_id.into_string()),
            created_at: Some(ticket.created_at),
            updated_at: Some(ticket.updated_at),
            account_id: view.account.is_none().then(|| ticket.account_id.into_string()),
            account: view.account.map(Into::into),
            conversation_id: view.conversation.is_none().then(|| ticket.conversation_id.into_string()),
            conversation: view.conversation.map(Into::into),
            closed_at: ticket.closed_at,
            reopened_at: ticket.reopened_at,
            assignee_user_id: ticket.assignee_user_id.filter(|_| view.assignee.is_none()).map(|id| id.into_string()),
            assignee: view.assignee.map(Into::into),
            is_follow_up: Some(ticket.is_follow_up),
            ticket_fields: TicketFieldValues::new(ticket.fields),
            handled_by: match view.handled_by {
                Some(user) => Some(HandledBy::Object(user.into())),
                None => ticket.handled_by.map(|id| HandledBy::Id(id.into_string())),
            },
            ticket_fields_updated_at: ticket.fields_updated_at,
        }
    }
}
