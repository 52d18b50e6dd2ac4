//! The JSON of events, for webhooks and the event feed (API contract, section 6). The property `data` of an event contains the changed
//! record, in the form in which a read operation returns it. The program is compiled for one revision of the contract (A or B), and the
//! record has the form of this revision.
//!
//! An event is serialized inside the transaction that makes the change, before the sequence number of the event is known. Later the
//! sequence number is inserted as the first property (`sequence`); the other bytes do not change. [`openapi_document`] generates the
//! description of these types for subscribers.

pub mod openapi_document;

use poem_openapi::Object;
use serde::Serialize;
use serde_json::{Value, value::to_raw_value};

use super::{
    operations::{contacts::Contact, conversations::Conversation},
    schemas::value_types::{Any, AnyObject, EnumValue, StoredJson, ValueSet},
};
use crate::{
    domain::{
        conversations::{Conversation as StoredConversation, ConversationView},
        events::{Event as Happened, EventChange, FieldChange},
        ids::{StoreId, UserId},
        messages::{Message as StoredMessage, MessageView},
        tickets::{Ticket as StoredTicket, TicketView},
        time::Timestamp,
        webhooks::KINDS,
    },
    revision::{
        self,
        wire::{Message, Ticket},
    },
    service::Renderer,
};

/// The kinds of events.
#[derive(Debug, Clone)]
pub struct EventKinds;

impl ValueSet for EventKinds {
    const NAME: &'static str = "EventKind";
    const DESCRIPTION: &'static str = "The kinds of recorded events; `ticket.opened` is also sent when a ticket is reopened, `message.sent` once the channel accepted the message.";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &KINDS;
}

/// The kinds of actors that cause events.
#[derive(Debug, Clone)]
pub struct Actors;

impl ValueSet for Actors {
    const NAME: &'static str = "ActorType";
    const DESCRIPTION: &'static str =
        "Who caused an event: a contact by writing, a user by way of the settings, an API key, the AI, or the server itself (`system`).";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &["contact", "user", "api_key", "ai", "system"];
}

/// Who caused an event.
#[derive(Debug, Object, Serialize)]
pub struct Actor {
    /// The kind of the actor. It decides what `id` identifies.
    r#type: EnumValue<Actors>,
    /// The contact's id, the user's `userId` or the API key's id, according to `type`; absent for `ai` and `system`.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

/// An event, in the form in which webhooks receive it.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Identifies the event; equal to the `webhook-id` header on every attempt, so that a repeated delivery can be recognised.
    id: String,
    /// The kind of the event. It decides which members `data` has.
    r#type: EnumValue<EventKinds>,
    /// When the change was made, not when the event was delivered.
    timestamp: Timestamp,
    /// The revision of the contract that `data` is written in.
    api_revision: String,
    /// The store in which the change was made.
    store_id: String,
    /// Increases in the order in which changes were committed, which is the order of the list of events.
    #[serde(skip)]
    sequence: i64,
    /// Who or what caused the change.
    actor: Actor,
    /// The details, which depend on `type`: the records that the event concerns, as the read operations of the revision return them, and
    /// the values before and after a change.
    data: StoredJson<AnyObject>,
}

/// A message that was received or sent.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
struct MessageData {
    /// The message, as the list of messages returns it without `expand`.
    message: Message,
    /// The conversation of the message.
    conversation_id: String,
    /// The ticket that is open on the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket_id: Option<String>,
}

/// A ticket that was opened.
#[derive(Debug, Object, Serialize)]
struct OpenedData {
    /// The ticket after the change, as GET /tickets returns it without `expand`.
    ticket: Ticket,
    /// Whether the ticket had been closed before.
    reopened: bool,
}

/// A ticket that was closed.
#[derive(Debug, Object, Serialize)]
struct ClosedData {
    /// The ticket after the change, as GET /tickets returns it without `expand`.
    ticket: Ticket,
}

/// A ticket that got an assignee, or lost one.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
struct AssignmentData {
    /// The ticket after the change, as GET /tickets returns it without `expand`.
    ticket: Ticket,
    /// The `userId` of the former assignee.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_assignee_user_id: Option<String>,
}

/// A change of the value of a ticket's field.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
struct TicketFieldData {
    /// The ticket after the change, as GET /tickets returns it without `expand`.
    ticket: Ticket,
    /// The id of the ticket field, or the name of a built-in property of `ticketFields` (a system key), such as `isConverted`.
    ticket_field_id: String,
    /// Absent if the field had no value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_value: Option<Any>,
    /// Absent if the field has no value any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_value: Option<Any>,
}

/// A label that a conversation was given, or that was taken from it.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
struct LabelData {
    /// The conversation whose labels changed.
    conversation_id: String,
    /// The label that was added or removed.
    label_id: String,
    /// The label's text; absent where there is no such label any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The conversation after the change, as the list of conversations returns it.
    conversation: Conversation,
}

/// A change of the value of a contact's field.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
struct ContactFieldData {
    /// The contact after the change, as GET /contacts returns it.
    contact: Contact,
    /// The field whose value changed, by the `id` of its definition.
    contact_field_id: String,
    /// Absent if the field had no value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_value: Option<Any>,
    /// Absent if the field has no value any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_value: Option<Any>,
}

/// A conversation that the AI hands over to people.
#[derive(Debug, Object, Serialize)]
struct EscalationData {
    /// The conversation that people take over.
    conversation: Conversation,
    /// The ticket that is open on the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<Ticket>,
    /// The reason for the handover, as the request gave it; absent if the request gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn ticket(ticket: &StoredTicket) -> Ticket {
    TicketView { ticket: ticket.clone(), account: None, conversation: None, assignee: None, handled_by: None }.into()
}

fn message(message: &StoredMessage) -> Message {
    MessageView { message: message.clone(), sent_by: None, conversation: None, account: None }.into()
}

fn conversation(conversation: &StoredConversation) -> Conversation {
    ConversationView { conversation: conversation.clone(), account: None }.into()
}

fn any(value: Option<&Value>) -> Option<Any> {
    value.cloned().map(Any)
}

/// Makes the property `data` of an event from the change that the event reports.
fn data(fact: &EventChange) -> StoredJson<AnyObject> {
    let assigned = |of: &StoredTicket, previous: Option<&UserId>| {
        text(&AssignmentData { ticket: ticket(of), previous_assignee_user_id: previous.map(|id| id.as_str().to_owned()) })
    };
    let labelled = |of: &StoredConversation, label_id: &str, label: Option<&String>| {
        text(&LabelData {
            conversation_id: of.id.as_str().to_owned(),
            label_id: label_id.to_owned(),
            label: label.cloned(),
            conversation: conversation(of),
        })
    };
    match fact {
        EventChange::MessageReceived { message: it, ticket_id } | EventChange::MessageSent { message: it, ticket_id } => {
            text(&MessageData {
                message: message(it),
                conversation_id: it.conversation_id.as_str().to_owned(),
                ticket_id: ticket_id.as_ref().map(|id| id.as_str().to_owned()),
            })
        }
        EventChange::TicketOpened { ticket: it, reopened } => text(&OpenedData { ticket: ticket(it), reopened: *reopened }),
        EventChange::TicketClosed { ticket: it } => text(&ClosedData { ticket: ticket(it) }),
        EventChange::TicketAssigned { ticket: it, previous } | EventChange::TicketUnassigned { ticket: it, previous } => {
            assigned(it, previous.as_ref())
        }
        EventChange::TicketFieldUpdated { ticket: it, change: FieldChange { field_id, old, new } } => text(&TicketFieldData {
            ticket: ticket(it),
            ticket_field_id: field_id.as_str().to_owned(),
            old_value: any(old.as_ref()),
            new_value: any(new.as_ref()),
        }),
        EventChange::LabelAdded { conversation: it, label_id, label } | EventChange::LabelRemoved { conversation: it, label_id, label } => {
            labelled(it, label_id.as_str(), label.as_ref())
        }
        EventChange::AiEscalated { conversation: it, ticket: open, reason } => {
            text(&EscalationData { conversation: conversation(it), ticket: open.as_deref().map(ticket), reason: reason.clone() })
        }
        EventChange::ContactFieldUpdated { contact, change: FieldChange { field_id, old, new } } => text(&ContactFieldData {
            contact: contact.clone().into(),
            contact_field_id: field_id.as_str().to_owned(),
            old_value: any(old.as_ref()),
            new_value: any(new.as_ref()),
        }),
    }
}

fn text(data: &impl Serialize) -> StoredJson<AnyObject> {
    // Serialization cannot fail for plain data with string keys.
    StoredJson::from(to_raw_value(data).unwrap_or_default())
}

/// Serializes events with the record types of the revision for which the program is compiled.
#[derive(Debug)]
pub struct WireEvents;

impl Renderer for WireEvents {
    fn render(&self, store: &StoreId, event: &Happened) -> Vec<u8> {
        let (kind, id) = event.actor.parts();
        let event = Event {
            id: event.id.clone(),
            r#type: event.fact.kind().to_owned().into(),
            timestamp: event.at,
            api_revision: revision::NAME.to_owned(),
            store_id: store.as_str().to_owned(),
            // The sequence number is not known yet, and this field is not serialized.
            sequence: 0,
            actor: Actor { r#type: kind.to_owned().into(), id: id.map(str::to_owned) },
            data: data(&event.fact),
        };
        // Serialization cannot fail for plain data with string keys.
        serde_json::to_vec(&event).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{
        conversations::Conversation as Stored,
        events::{Actor as Who, numbered},
        stores_and_accounts::Channel,
    };

    #[test]
    fn a_hand_over_shows_conversation_ticket_and_reason() {
        let at = Timestamp::from_millis(0);
        let conversation = Stored {
            id: "c".into(),
            channel: Channel("line".into()),
            account_id: "a".into(),
            contact_id: "k".into(),
            display_name: "C".into(),
            reference_id: "r".into(),
            label_ids: vec![],
            is_spam: false,
            unread_count: 0,
            message_count: 0,
            email_subject: None,
            last_inbound_at: None,
            last_message: None,
            sort_at: at,
            created_at: at,
            updated_at: at,
        };
        let ticket = StoredTicket::open("t".into(), "1".into(), &conversation, None, at);
        let sent = |fact: EventChange, schema: &str| -> Value {
            let event = Happened { id: "e".into(), at, actor: Who::Ai, fact };
            let sent = serde_json::from_slice(&numbered(1, &WireEvents.render(&"s".into(), &event)).unwrap()).unwrap();
            let schema =
                json!({"$ref": format!("#/components/schemas/{schema}"), "components": openapi_document::document()["components"]});
            jsonschema::draft202012::validate(&schema, &sent).unwrap();
            sent
        };
        let assigned = sent(EventChange::TicketUnassigned { ticket: ticket.clone(), previous: Some("u".into()) }, "TicketUnassigned");
        assert_eq!((&assigned["data"]["ticket"]["id"], &assigned["data"]["previousAssigneeUserId"]), (&json!("t"), &json!("u")));
        let rendered = |ticket: Option<StoredTicket>, reason: Option<&str>| {
            let ticket = ticket.map(Box::new);
            sent(EventChange::AiEscalated { conversation: conversation.clone(), ticket, reason: reason.map(str::to_owned) }, "AiEscalated")
        };
        let full = rendered(Some(StoredTicket { snoozed_until: Some(at), ..ticket }), Some("angry"));
        assert_eq!((&full["type"], &full["actor"]), (&json!("ai.escalated"), &json!({"type": "ai"})));
        let data = full["data"].as_object().unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["conversation", "reason", "ticket"]);
        assert_eq!((&data["conversation"]["id"], &data["ticket"]["id"], &data["reason"]), (&json!("c"), &json!("t"), &json!("angry")));
        assert!(!full.to_string().contains("snooze"));
        assert_eq!(rendered(None, None)["data"].as_object().unwrap().keys().collect::<Vec<_>>(), ["conversation"]);
    }
}
