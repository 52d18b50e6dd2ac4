//! Model for the crash tests: the state that a conversation must have (tickets, field values, messages, labels and comments) after the
//! writes of its writer.
//!
//! Each conversation has one writer, which sends one write after the other. So the conversation's events are the events of these writes, in
//! the same order. Any deviation means that a write was lost, was stored in part, or was stored without a request.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::Api,
    load::{LABELS, Operation, Write, label_id},
    news, of_conversation,
};

/// The expected state of a conversation.
pub struct ConversationModel {
    pub conversation: String,
    /// The id of the conversation's latest ticket.
    pub ticket: String,
    pub label: usize,
    /// The number of events of the conversation that were already assigned to writes.
    pub events: usize,
    name: String,
    open: bool,
    fields: BTreeMap<String, String>,
    tickets: HashSet<String>,
    /// The texts of the conversation's messages, by the id of the message.
    messages: HashMap<String, String>,
    /// The ids of the messages that were already compared with the API's responses.
    shown: HashSet<String>,
    received: usize,
    comments: HashSet<String>,
}

/// What one writer has added since the last comparison: events, comments and contacts.
#[derive(Debug, Default)]
pub struct Found {
    pub events: VecDeque<Value>,
    comments: Vec<String>,
    contacts: Vec<String>,
}

pub fn conversation(number: usize) -> String {
    format!("talk-{number}")
}

pub fn ticket(number: usize) -> String {
    format!("job-{number}")
}

/// Returns the id of the conversation that an event belongs to.
pub fn conversation_of(event: &Value) -> &str {
    let data = &event["data"];
    data["conversationId"].as_str().or_else(|| data["ticket"]["conversationId"].as_str()).unwrap_or_default()
}

/// Returns the parts of an event that the model can predict from a write. The model compares these parts with its prediction.
fn predictable_part(event: &Value) -> Value {
    let (kind, data) = (&event["type"], &event["data"]);
    let ticket = &data["ticket"];
    match kind.as_str().unwrap_or_default() {
        "ticket.ticket_field_updated" => {
            let field = &data["ticketFieldId"];
            let shown = &ticket["ticketFields"][field.as_str().unwrap_or_default()];
            json!([kind, ticket["id"], field, data["oldValue"], data["newValue"], shown])
        }
        "ticket.opened" => json!([kind, ticket["id"], ticket["isOpen"], data["reopened"]]),
        "ticket.closed" => json!([kind, ticket["id"], ticket["isOpen"]]),
        "message.received" => json!([kind, text(&data["message"]), data["ticketId"]]),
        "message.sent" => json!([kind, text(&data["message"])]),
        "conversation.label_added" | "conversation.label_removed" => json!([kind, data["labelId"], data["conversation"]["labelIds"]]),
        _ => event.clone(),
    }
}

fn text(message: &Value) -> &Value {
    if REV_A { &message["payload"]["text"] } else { &message["text"] }
}

fn id(row: &Value) -> String {
    crate::id(row)
}

impl ConversationModel {
    pub fn imported(number: usize) -> Self {
        let ticket = ticket(number);
        Self {
            conversation: conversation(number),
            tickets: [ticket.clone()].into(),
            ticket,
            label: 0,
            events: 0,
            name: format!("w{number}"),
            open: true,
            fields: BTreeMap::new(),
            messages: HashMap::new(),
            shown: HashSet::new(),
            received: 0,
            comments: HashSet::new(),
        }
    }

    /// Returns the new comments of this conversation, and the contacts among `contacts` that its writer created. The caller adds the
    /// events.
    pub fn find(&mut self, api: &Api, contacts: &[Value]) -> Found {
        let comments = news(&of_conversation(api, "/messages/internal-comments", &self.conversation), &self.comments);
        self.comments.extend(comments.iter().map(id));
        let mails = contacts.iter().filter_map(|contact| contact["email"].as_str()?.strip_suffix("@example.com"));
        Found {
            events: VecDeque::new(),
            comments: comments.iter().filter_map(|comment| Some(comment["noteData"]["text"].as_str()?.to_owned())).collect(),
            contacts: mails.filter(|mail| mail.split('.').next() == Some(&self.name)).map(str::to_owned).collect(),
        }
    }

    /// Assigns the new events, comments and contacts to the writes of the log. Returns for each write whether it took effect. Panics if a
    /// write with a response did not take effect, or if there is a change that no write explains. `reopens` is true if an inbound message
    /// reopens a closed ticket, and false if it opens a new one.
    pub fn settle(&mut self, log: &[Write], mut found: Found, reopens: bool) -> Vec<bool> {
        let mut happened = Vec::new();
        for write in log {
            let done = match write.operation {
                Operation::Comment => take(&mut found.comments, &write.value),
                Operation::Contact => take(&mut found.contacts, &write.value),
                _ => self.follow(write, &mut found.events, reopens),
            };
            assert!(
                done || write.answer.is_none(),
                "an answered write is not there: {write:?}\n  found: {:?} {:?}\n  then: {:?}\n  log: {log:#?}",
                found.comments,
                found.contacts,
                found.events.iter().take(3).map(predictable_part).collect::<Vec<_>>()
            );
            happened.push(done);
        }
        let left: Vec<_> = found.events.iter().map(predictable_part).collect();
        assert!(
            left.is_empty() && found.comments.is_empty() && found.contacts.is_empty(),
            "{} has content that no write explains, or part of a write: {left:?} {:?} {:?}\n  log: {log:#?}",
            self.conversation,
            found.comments,
            found.contacts
        );
        happened
    }

    /// Checks whether the next events are those that the write causes. If so, removes them from `events`, applies the write to the model
    /// and returns true.
    fn follow(&mut self, write: &Write, events: &mut VecDeque<Value>, reopens: bool) -> bool {
        let (ticket, value) = (self.ticket.as_str(), write.value.as_str());
        let field = if write.operation == Operation::Close { "f-notes" } else { "f-text" };
        let set = json!(["ticket.ticket_field_updated", ticket, field, self.fields.get(field), value, value]);
        // If the write opens a new ticket, the server chose the ticket's id. So the expected id is taken from the event.
        let latest = match events.front() {
            Some(event) if !self.open && !reopens => event["data"]["ticketId"].clone(),
            _ => json!(ticket),
        };
        let expected = match write.operation {
            Operation::SetField => vec![set],
            Operation::Close if self.open => vec![set, json!(["ticket.closed", ticket, false])],
            Operation::Close => vec![set],
            Operation::Labels => vec![
                json!(["conversation.label_added", value, [value]]),
                json!(["conversation.label_removed", label_id(self.label), [value]]),
            ],
            Operation::Receive if self.open => vec![json!(["message.received", value, latest])],
            Operation::Receive => {
                vec![json!(["message.received", value, latest]), json!(["ticket.opened", latest, true, reopens])]
            }
            Operation::Send => vec![json!(["message.sent", value])],
            Operation::Comment | Operation::Contact => unreachable!("these record no event"),
        };
        if !events.iter().take(expected.len()).map(predictable_part).eq(expected.iter().cloned()) {
            return false;
        }
        let first = events.drain(..expected.len()).next().unwrap_or_default();
        self.events += expected.len();
        match write.operation {
            Operation::SetField | Operation::Close => {
                self.fields.insert(field.to_owned(), value.to_owned());
                self.open &= write.operation != Operation::Close;
            }
            Operation::Labels => self.label = (self.label + 1) % LABELS,
            Operation::Receive | Operation::Send => {
                self.messages.insert(id(&first["data"]["message"]), value.to_owned());
            }
            Operation::Comment | Operation::Contact => {}
        }
        if write.operation == Operation::Receive {
            self.received += 1;
            self.open = true;
            let latest = latest.as_str().unwrap_or_else(|| panic!("a message without a ticket: {first}")).to_owned();
            if self.tickets.insert(latest.clone()) {
                self.fields.clear();
                self.ticket = latest;
            }
            let answer = write.answer.as_ref();
            assert!(answer.is_none_or(|answer| answer["ticketId"] == *self.ticket), "{write:?} on {}", self.ticket);
        }
        true
    }

    /// Asserts that the API's responses match the model. Compares all messages and comments if `everything` is true, otherwise only the new
    /// messages. The conversation and its tickets are always compared.
    pub fn compare(&mut self, api: &Api, everything: bool) {
        if everything {
            let comments = news(&of_conversation(api, "/messages/internal-comments", &self.conversation), &HashSet::new());
            let ids: HashSet<_> = comments.iter().map(id).collect();
            assert!(ids == self.comments && ids.len() == comments.len(), "the comments of {}", self.conversation);
            self.shown.clear();
        }
        let rows = news(&of_conversation(api, "/messages", &self.conversation), &self.shown);
        let texts: HashMap<_, _> = rows.iter().map(|row| (id(row), text(row).as_str().unwrap_or_default().to_owned())).collect();
        let mut expected = self.messages.clone();
        expected.retain(|id, _| !self.shown.contains(id));
        assert_eq!(texts, expected, "the new messages of {}", self.conversation);
        self.shown.extend(texts.into_keys());

        let shown = of_conversation(api, "/conversations", &self.conversation).exchange().row(&self.conversation);
        assert_eq!(shown["labelIds"], json!([label_id(self.label)]), "{shown}");
        assert_eq!(shown["allMsgCnt"], self.messages.len(), "{shown}");
        assert_eq!(shown["unreadMsgCnt"], self.received, "{shown}");
        if let Some(newest) = rows.first() {
            assert_eq!(shown["lastMsg"]["snippet"], *text(newest), "{shown}");
        }

        let tickets =
            news(&api.post("/tickets/list", json!({"conversationId": self.conversation, "statuses": ["open", "closed"]})), &HashSet::new());
        assert_eq!(tickets.iter().map(id).collect::<HashSet<_>>(), self.tickets, "the tickets of {}", self.conversation);
        let open: Vec<_> = tickets.iter().filter(|ticket| ticket["isOpen"] == true).map(id).collect();
        assert_eq!(open, self.open.then(|| self.ticket.clone()).into_iter().collect::<Vec<_>>(), "open in {}", self.conversation);
        let latest = api.get("/tickets").query("ticketId", &self.ticket).exchange().ok();
        let fields = latest.get("ticketFields").cloned().unwrap_or_else(|| json!({}));
        assert_eq!(fields, json!(self.fields), "{latest}");
    }
}

/// Removes one occurrence of a text from a list. Returns whether the list had it.
fn take(texts: &mut Vec<String>, text: &str) -> bool {
    let Some(at) = texts.iter().position(|found| found == text) else { return false };
    texts.swap_remove(at);
    true
}
