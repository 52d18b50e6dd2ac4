//! Domain events: what changed, who changed it, and the kind of each event (API contract, section 6). The API contract exists in two
//! revisions, A and B. Each revision defines how an event is written as JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    contacts::Contact,
    conversations::Conversation,
    ids::{AccountId, ContactId, FieldId, KeyId, LabelId, TicketId, UserId},
    messages::Message,
    tickets::Ticket,
    time::Timestamp,
};

/// The originator of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Contact(ContactId),
    User(UserId),
    ApiKey(KeyId),
    Ai,
    System,
}

impl Actor {
    /// Returns the `type` and the `id` of the actor in an event payload.
    pub fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Contact(id) => ("contact", Some(id.as_str())),
            Self::User(id) => ("user", Some(id.as_str())),
            Self::ApiKey(id) => ("api_key", Some(id.as_str())),
            Self::Ai => ("ai", None),
            Self::System => ("system", None),
        }
    }
}

/// A domain event: one recorded change, which webhooks deliver to their subscribers.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: String,
    pub at: Timestamp,
    pub actor: Actor,
    pub fact: EventChange,
}

/// What changed, with the record in its state after the change.
#[derive(Clone, Debug)]
pub enum EventChange {
    MessageReceived { message: Message, ticket_id: Option<TicketId> },
    MessageSent { message: Message, ticket_id: Option<TicketId> },
    TicketOpened { ticket: Ticket, reopened: bool },
    TicketClosed { ticket: Ticket },
    TicketAssigned { ticket: Ticket, previous: Option<UserId> },
    TicketUnassigned { ticket: Ticket, previous: Option<UserId> },
    TicketFieldUpdated { ticket: Ticket, change: FieldChange },
    LabelAdded { conversation: Conversation, label_id: LabelId, label: Option<String> },
    LabelRemoved { conversation: Conversation, label_id: LabelId, label: Option<String> },
    ContactFieldUpdated { contact: Contact, change: FieldChange },
    AiEscalated { conversation: Conversation, ticket: Option<Box<Ticket>>, reason: Option<String> },
}

/// A change of a field's value: `old` is the value before the change, `new` the value after it. `None`: the field has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    pub field_id: FieldId,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

impl EventChange {
    /// Returns the event's channel account; `None` for a change of a contact, since a contact belongs to no account.
    pub fn account(&self) -> Option<&AccountId> {
        match self {
            Self::MessageReceived { message, .. } | Self::MessageSent { message, .. } => Some(&message.account_id),
            Self::TicketOpened { ticket, .. }
            | Self::TicketClosed { ticket }
            | Self::TicketAssigned { ticket, .. }
            | Self::TicketUnassigned { ticket, .. }
            | Self::TicketFieldUpdated { ticket, .. } => Some(&ticket.account_id),
            Self::LabelAdded { conversation, .. } | Self::LabelRemoved { conversation, .. } | Self::AiEscalated { conversation, .. } => {
                Some(&conversation.account_id)
            }
            Self::ContactFieldUpdated { .. } => None,
        }
    }

    /// Returns the name of the event's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::MessageReceived { .. } => "message.received",
            Self::MessageSent { .. } => "message.sent",
            Self::TicketOpened { .. } => "ticket.opened",
            Self::TicketClosed { .. } => "ticket.closed",
            Self::TicketAssigned { .. } => "ticket.assigned",
            Self::TicketUnassigned { .. } => "ticket.unassigned",
            Self::TicketFieldUpdated { .. } => "ticket.ticket_field_updated",
            Self::LabelAdded { .. } => "conversation.label_added",
            Self::LabelRemoved { .. } => "conversation.label_removed",
            Self::ContactFieldUpdated { .. } => "contact.contact_field_updated",
            Self::AiEscalated { .. } => "ai.escalated",
        }
    }
}

/// Returns the event payload: the recorded JSON object with `sequence` inserted as its first property. `None` if the recorded bytes are
/// damaged.
pub fn numbered(sequence: i64, body: &[u8]) -> Option<Vec<u8>> {
    let rest = body.strip_prefix(b"{")?;
    let mut bytes = format!("{{\"sequence\":{sequence},").into_bytes();
    bytes.extend_from_slice(rest);
    // Only valid JSON may be printed or sent.
    serde_json::from_slice::<&RawValue>(&bytes).ok()?;
    Some(bytes)
}
