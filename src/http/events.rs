//! Events as subscribers read them: section 6; decisions, section 8. `data` holds the resource as this revision's read
//! operation answers it.
//!
//! The bytes are made inside the transaction, where the event has no number yet; `sequence` is put in front when the
//! number is known, and the rest stays as it was written.

use serde::Serialize;
use serde_json::Value;

use super::{contacts::Contact, conversations::Conversation};
use crate::{
    domain::{
        conversations::{Conversation as StoredConversation, ConversationView},
        events::{Event, Fact, FieldChange},
        ids::StoreId,
        messages::{Message as StoredMessage, MessageView},
        tickets::{Ticket as StoredTicket, TicketView},
        time::Timestamp,
    },
    revision::{
        self,
        wire::{Message, Ticket},
    },
    service::Renderer,
};

/// Renders in the shapes of the compiled revision.
#[derive(Debug)]
pub struct WireEvents;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    id: &'a str,
    r#type: &'static str,
    timestamp: Timestamp,
    api_revision: &'static str,
    store_id: &'a str,
    actor: Actor<'a>,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Actor<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Data<'a> {
    Message {
        message: Box<Message>,
        conversation_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        ticket_id: Option<&'a str>,
    },
    Ticket {
        ticket: Box<Ticket>,
    },
    Opened {
        ticket: Box<Ticket>,
        reopened: bool,
    },
    Assigned {
        ticket: Box<Ticket>,
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_assignee_user_id: Option<&'a str>,
    },
    TicketField {
        ticket: Box<Ticket>,
        ticket_field_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_value: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_value: Option<&'a Value>,
    },
    Label {
        conversation_id: &'a str,
        label_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<&'a str>,
        conversation: Box<Conversation>,
    },
    ContactField {
        contact: Box<Contact>,
        contact_field_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_value: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_value: Option<&'a Value>,
    },
    Escalated {
        conversation: Box<Conversation>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ticket: Option<Box<Ticket>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
}

fn ticket(ticket: &StoredTicket) -> Box<Ticket> {
    let view = TicketView { ticket: ticket.clone(), account: None, conversation: None, assignee: None, handled_by: None };
    Box::new(view.into())
}

fn message(message: &StoredMessage) -> Box<Message> {
    Box::new(MessageView { message: message.clone(), sent_by: None, conversation: None, account: None }.into())
}

fn conversation(conversation: &StoredConversation) -> Box<Conversation> {
    Box::new(ConversationView { conversation: conversation.clone(), account: None }.into())
}

fn data(fact: &Fact) -> Data<'_> {
    match fact {
        Fact::MessageReceived { message: it, ticket_id } | Fact::MessageSent { message: it, ticket_id } => Data::Message {
            message: message(it),
            conversation_id: it.conversation_id.as_str(),
            ticket_id: ticket_id.as_ref().map(|id| id.as_str()),
        },
        Fact::TicketOpened { ticket: it, reopened } => Data::Opened { ticket: ticket(it), reopened: *reopened },
        Fact::TicketClosed { ticket: it } => Data::Ticket { ticket: ticket(it) },
        Fact::TicketAssigned { ticket: it, previous } | Fact::TicketUnassigned { ticket: it, previous } => {
            Data::Assigned { ticket: ticket(it), previous_assignee_user_id: previous.as_ref().map(|id| id.as_str()) }
        }
        Fact::TicketFieldUpdated { ticket: it, change: FieldChange { field_id, old, new } } => {
            Data::TicketField { ticket: ticket(it), ticket_field_id: field_id.as_str(), old_value: old.as_ref(), new_value: new.as_ref() }
        }
        Fact::LabelAdded { conversation: it, label_id, label } | Fact::LabelRemoved { conversation: it, label_id, label } => Data::Label {
            conversation_id: it.id.as_str(),
            label_id: label_id.as_str(),
            label: label.as_deref(),
            conversation: conversation(it),
        },
        Fact::AiEscalated { conversation: it, ticket: open, reason } => {
            Data::Escalated { conversation: conversation(it), ticket: open.as_deref().map(ticket), reason: reason.as_deref() }
        }
        Fact::ContactFieldUpdated { contact, change: FieldChange { field_id, old, new } } => Data::ContactField {
            contact: Box::new(contact.clone().into()),
            contact_field_id: field_id.as_str(),
            old_value: old.as_ref(),
            new_value: new.as_ref(),
        },
    }
}

impl Renderer for WireEvents {
    fn render(&self, store: &StoreId, event: &Event) -> Vec<u8> {
        let (kind, id) = event.actor.parts();
        let payload = Payload {
            id: &event.id,
            r#type: event.fact.kind(),
            timestamp: event.at,
            api_revision: revision::NAME,
            store_id: store.as_str(),
            actor: Actor { r#type: kind, id },
            data: data(&event.fact),
        };
        // Plain data with string keys: writing it to memory cannot fail.
        serde_json::to_vec(&payload).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{conversations::Conversation as Stored, events::Actor as Who, store::Channel};

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
        let rendered = |ticket: Option<StoredTicket>, reason: Option<&str>| {
            let fact =
                Fact::AiEscalated { conversation: conversation.clone(), ticket: ticket.map(Box::new), reason: reason.map(str::to_owned) };
            let event = Event { id: "e".into(), at, actor: Who::Ai, fact };
            serde_json::from_slice::<Value>(&WireEvents.render(&"s".into(), &event)).unwrap()
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
