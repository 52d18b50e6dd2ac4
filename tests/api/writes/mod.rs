//! The operations that change something. Each test has a server and a store of its own ([`Desk`]); what must not change
//! is held against the store's export and its events, which show everything there is.

mod assign;
mod close;
mod comments;
mod contact_fields;
mod contacts;
mod events;
mod fuzz;
mod idempotency;
mod isolation;
mod labels;
mod mark_read;
mod races;
mod roundtrip;
mod shapes;
mod ticket_fields;
mod values;

use serde_json::{Value, json};

use crate::{
    client::{Answer, Api, Call},
    contract::is_timestamp,
    fixture::desk,
    harness::{ALL_SCOPES, Key, Server},
};

/// A store to write to, and a caller who may do everything in it.
pub struct Desk {
    pub server: Server,
    pub key: Key,
    pub api: Api,
}

impl Desk {
    pub fn open() -> Self {
        Self::with(&[("desk", desk())])
    }

    /// A server with these stores; the caller belongs to the first.
    pub fn with(stores: &[(&str, Vec<Value>)]) -> Self {
        let server = Server::with(stores);
        let key = server.database.key(stores[0].0, &ALL_SCOPES);
        let api = server.api_of(&key);
        Self { server, key, api }
    }

    /// The events recorded for the caller's store, oldest first.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        self.events_after(&self.api.store, None)
    }

    #[track_caller]
    pub fn events_after(&self, store: &str, after: Option<i64>) -> Vec<Value> {
        let after = after.map(|sequence| sequence.to_string());
        let mut arguments = vec!["events", "--store", store];
        arguments.extend(after.iter().flat_map(|after| ["--after", after]));
        let printed = self.server.database.run(&arguments);
        printed.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("not an event: {line}: {error}"))).collect()
    }

    /// The kinds of the events recorded so far.
    #[track_caller]
    pub fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// All that a store holds and all that happened there.
    #[track_caller]
    pub fn snapshot(&self, store: &str) -> String {
        let database = &self.server.database;
        database.run(&["export", "--store", store]) + "\n" + &database.run(&["events", "--store", store])
    }

    /// Does something that must leave the caller's store as it is, to the byte.
    #[track_caller]
    pub fn unmoved<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.snapshot(&self.api.store);
        let outcome = act();
        let after = self.snapshot(&self.api.store);
        if before != after {
            let lines: Vec<_> = after.lines().filter(|line| !before.contains(line)).collect();
            panic!("the store changed:\n{}", lines.join("\n"));
        }
        outcome
    }

    pub fn patch(&self, path: &str, body: Value) -> Call {
        self.api.call("PATCH", path).json(body)
    }

    pub fn post(&self, path: &str, body: Value) -> Call {
        self.api.post(path, body)
    }

    #[track_caller]
    pub fn ticket(&self, id: &str) -> Value {
        self.api.get("/tickets").query("ticketId", id).send().ok()
    }

    #[track_caller]
    pub fn contact(&self, id: &str) -> Value {
        self.api.get("/contacts").query("contactId", id).send().ok()
    }

    #[track_caller]
    pub fn conversation(&self, id: &str) -> Value {
        self.api.get("/conversations").query("conversationId", id).send().row(id)
    }

    /// Sets a ticket field without a stamp.
    #[track_caller]
    pub fn set(&self, ticket: &str, field: &str, value: Value) -> Answer {
        self.patch("/tickets/field-values", json!({"ticketId": ticket, "ticketFieldId": field, "newValue": value})).send()
    }

    /// Sets a ticket field, sending a stamp.
    #[track_caller]
    pub fn set_at(&self, ticket: &str, field: &str, value: Value, stamp: &str) -> Answer {
        let body = json!({"ticketId": ticket, "ticketFieldId": field, "newValue": value, "ticketFieldsUpdatedAt": stamp});
        self.patch("/tickets/field-values", body).send()
    }

    /// Sets a contact field, sending the stamp that the contact shows.
    #[track_caller]
    pub fn set_contact(&self, contact: &str, field: &str, value: Value) -> Answer {
        let shown = self.contact(contact);
        let stamp = shown.get("customFieldsUpdatedAt").unwrap_or(&shown["updatedAt"]).clone();
        self.set_contact_at(contact, field, value, stamp.as_str().unwrap_or_default())
    }

    #[track_caller]
    pub fn set_contact_at(&self, contact: &str, field: &str, value: Value, stamp: &str) -> Answer {
        let body = json!({"contactId": contact, "contactFieldId": field, "value": value, "updatedAt": stamp});
        self.patch("/contacts/field-values", body).send()
    }

    #[track_caller]
    pub fn close(&self, body: Value) -> Answer {
        self.post("/tickets/close", body).send()
    }

    #[track_caller]
    pub fn assign(&self, items: &[(&str, &str)]) -> Answer {
        let items: Vec<_> = items.iter().map(|(ticket, user)| json!({"ticketId": ticket, "assigneeUserId": user})).collect();
        self.post("/tickets/assign", json!(items)).send()
    }

    #[track_caller]
    pub fn label(&self, conversation: &str, add: &[&str], remove: &[&str]) -> Answer {
        let mut body = json!({"conversationId": conversation});
        if !add.is_empty() {
            body["addLabels"] = json!(add);
        }
        if !remove.is_empty() {
            body["removeLabels"] = json!(remove);
        }
        self.patch("/conversations/labels", body).send()
    }

    #[track_caller]
    pub fn read(&self, conversation: &str) -> Answer {
        self.post("/conversations/mark-read", json!({"conversationId": conversation})).send()
    }

    #[track_caller]
    pub fn comment(&self, conversation: &str, text: &str) -> Answer {
        self.post("/messages/internal-comments", json!({"conversationId": conversation, "text": text})).send()
    }

    #[track_caller]
    pub fn comments(&self, conversation: &str) -> Vec<Value> {
        let answer = self.api.get("/messages/internal-comments").query("conversationId", conversation).send();
        answer.ok().as_array().cloned().unwrap_or_default()
    }
}

/// What an operation answers that echoes no resource.
pub fn acknowledged() -> Value {
    json!({"message": "OK"})
}

/// A 400 whose message begins with this field or with something inside of it.
#[track_caller]
pub fn refuses_in(answer: &Answer, field: &str) {
    let message = answer.fails(400);
    assert!(message.starts_with(&format!("`{field}")), "the message should begin with `{field}…\n{}", answer.described());
}

/// A record without these members.
pub fn without(mut record: Value, members: &[&str]) -> Value {
    for member in members {
        record.as_object_mut().map(|record| record.remove(*member));
    }
    record
}

/// A stamp of a record. The contract's form sorts as text.
#[track_caller]
pub fn stamp(record: &Value, member: &str) -> String {
    let text = record[member].as_str().unwrap_or_else(|| panic!("no {member} in {record}"));
    assert!(is_timestamp(text), "{member}: {text}");
    text.to_owned()
}

/// The custom values of a ticket or a contact; none is none, however that is said.
pub fn values_of(record: &Value, member: &str) -> Value {
    record.get(member).cloned().unwrap_or_else(|| json!({}))
}
