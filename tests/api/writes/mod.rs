//! Tests of the operations that change something. Each test has a separate server and store ([`WriteFixture`]). To assert that a request
//! changed nothing, a test compares the export, the events and the undelivered messages of the store before and after the request.

mod assign;
mod close;
mod comments;
mod common_http_behaviour;
pub mod concurrent_writes;
mod contact_creation;
mod contact_fields;
mod emails;
mod events;
mod export_roundtrip;
mod field_values;
mod fuzz;
mod idempotency;
mod labels;
mod mark_read;
mod outbox;
mod pagination;
mod sends;
mod templates;
mod tenant_isolation;
mod ticket_fields;

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::{Answer, Api, Call},
    contract::is_timestamp,
    fixture::{channels, write_store},
    harness::{ALL_SCOPES, Database, Key, SIMULATED, Server, Settings},
    pagination_client::walk,
};

/// The maximum time that a test waits for effects that follow a response, such as a delivery.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A server with at least one store, and an API client with a key that has all scopes in the first store.
pub struct WriteFixture {
    pub server: Server,
    pub key: Key,
    pub api: Api,
}

impl WriteFixture {
    pub fn open() -> Self {
        Self::with(&[("desk", write_store())])
    }

    /// Starts a server with these stores. The key of the API client belongs to the first store.
    pub fn with(stores: &[(&str, Vec<Value>)]) -> Self {
        Self::with_settings(stores, &[])
    }

    /// Starts a server with the store of the tests that send messages. Only messages through the widget channel are delivered: the server
    /// has no connector for the other channels, that is, no way to send through them.
    pub fn channels() -> Self {
        Self::with(&[("shop", channels())])
    }

    /// Starts a server with the same store as [`Self::channels`]. The server simulates all channels, so it delivers all messages.
    pub fn simulated() -> Self {
        Self::with_settings(&[("shop", channels())], SIMULATED)
    }

    pub fn with_settings(stores: &[(&str, Vec<Value>)], settings: Settings<'_>) -> Self {
        let server = Server::start_with(Database::with(stores), settings);
        let key = server.database.key(stores[0].0, &ALL_SCOPES);
        let api = server.api_of(&key);
        Self { server, key, api }
    }

    /// Asserts that all events are of type `message.sent`. Returns the texts of their messages, in the order of the events.
    pub fn sent_texts(&self) -> Vec<String> {
        let text = |event: &Value| {
            assert_eq!(event["type"], "message.sent");
            let message = &event["data"]["message"];
            message.get("text").unwrap_or(&message["payload"]["text"]).as_str().unwrap_or_default().to_owned()
        };
        self.events().iter().map(text).collect()
    }

    /// Returns the events recorded for the first store, oldest first.
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
        parsed(&printed)
    }

    /// Returns the kinds of the events recorded so far.
    #[track_caller]
    pub fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until the outbox (the queue of messages that wait to be sent) is empty. Then returns the export, the events and the
    /// undelivered messages of a store as text.
    #[track_caller]
    pub fn snapshot(&self, store: &str) -> String {
        self.settled();
        let database = &self.server.database;
        ["export", "events"].map(|command| database.run(&[command, "--store", store])).join("\n")
            + &database.run(&["message", "undelivered", "--store", store])
    }

    /// Waits until the outbox is empty.
    #[track_caller]
    pub fn settled(&self) {
        self.until("no message is on its way", || self.server.database.ask("SELECT message_id FROM outbound").is_empty());
    }

    #[track_caller]
    pub fn until(&self, what: &str, done: impl Fn() -> bool) {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        while !done() {
            assert!(Instant::now() < deadline, "timed out before {what}: {:?}", self.undelivered());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the undelivered messages of the first store: those that are still in the outbox, and those that the server gave up.
    #[track_caller]
    pub fn undelivered(&self) -> Vec<Value> {
        parsed(&self.server.database.run(&["message", "undelivered", "--store", &self.api.store]))
    }

    /// Returns the messages in the outbox, in the form in which the server passes them to the channels.
    #[track_caller]
    pub fn parcels(&self) -> Vec<Value> {
        parsed(&self.server.database.ask("SELECT parcel FROM outbound ORDER BY position").join("\n"))
    }

    /// Runs an action, and asserts that the [`Self::snapshot`] of the first store is the same before and after it. Returns the result of
    /// the action.
    #[track_caller]
    pub fn assert_unchanged<T>(&self, act: impl FnOnce() -> T) -> T {
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

    /// Sets a ticket field without `ticketFieldsUpdatedAt`, so the server does not check for concurrent changes.
    #[track_caller]
    pub fn set(&self, ticket: &str, field: &str, value: Value) -> Answer {
        self.patch("/tickets/field-values", json!({"ticketId": ticket, "ticketFieldId": field, "newValue": value})).send()
    }

    /// Sets a ticket field. Sends `stamp` as `ticketFieldsUpdatedAt`, for optimistic concurrency.
    #[track_caller]
    pub fn set_at(&self, ticket: &str, field: &str, value: Value, stamp: &str) -> Answer {
        let body = json!({"ticketId": ticket, "ticketFieldId": field, "newValue": value, "ticketFieldsUpdatedAt": stamp});
        self.patch("/tickets/field-values", body).send()
    }

    /// Reads the contact and sets one of its fields. For optimistic concurrency, sends the timestamp that was read: `customFieldsUpdatedAt`
    /// or, if that is absent, `updatedAt`.
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
    pub fn text(&self, conversation: &str, text: &str) -> Answer {
        self.post("/messages", json!({"conversationId": conversation, "text": text})).send()
    }

    /// Returns the first page of the messages of a conversation, newest first.
    #[track_caller]
    pub fn messages(&self, conversation: &str) -> Vec<Value> {
        let answer = self.api.get("/messages").query("conversationId", conversation).query("pageSize", 15).send();
        answer.ok().as_array().cloned().unwrap_or_default()
    }

    /// Returns the ids of all messages of a conversation, the newest first.
    #[track_caller]
    pub fn all_messages(&self, conversation: &str) -> Vec<Value> {
        walk(&self.api.get("/messages").query("conversationId", conversation), 15).into_iter().map(Value::from).collect()
    }

    #[track_caller]
    pub fn newest(&self, conversation: &str) -> Value {
        self.messages(conversation).into_iter().next().unwrap_or_else(|| panic!("no message in {conversation}"))
    }

    #[track_caller]
    pub fn conversations_of(&self, contact: &str) -> Answer {
        self.api.get("/conversations").query("contactId", contact).query("pageSize", 50).send()
    }

    /// Searches the contacts. Asserts that the search finds exactly one contact, and returns it.
    #[track_caller]
    pub fn only_contact(&self, search: &str) -> Value {
        let found = self.post("/contacts/list", json!({"search": search})).send();
        let ids = found.ids();
        let [id] = &ids[..] else { panic!("one contact\n{}", found.described()) };
        found.row(id)
    }

    #[track_caller]
    pub fn comments(&self, conversation: &str) -> Vec<Value> {
        let answer = self.api.get("/messages/internal-comments").query("conversationId", conversation).send();
        answer.ok().as_array().cloned().unwrap_or_default()
    }
}

/// Parses each line as JSON.
#[track_caller]
pub fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {line}: {error}"))).collect()
}

/// Returns the expected JSON of an outbound message in the API revision under test. The id and the time of sending come from `shown`.
/// Revision A shows `payload`. Revision B shows `text`, and shows `kind` as the property `type`. A property that is `None` is absent.
pub fn outbound(shown: &Value, conversation: &str, account: &str, payload: Value, text: Option<&str>, kind: Option<&str>) -> Value {
    let (id, sent) = (&shown["id"], stamp(shown, "sentAt"));
    if REV_A {
        return json!({
            "id": id, "conversationId": conversation, "accountId": account, "sentByRecipient": false, "isSentFromApp": true,
            "sentAt": sent, "createdAt": sent, "updatedAt": sent, "payload": payload,
        });
    }
    let mut message = json!({
        "id": id, "conversationId": conversation, "messageDirection": "outbound", "messageCategory": "message", "sentAt": sent,
    });
    for (name, value) in [("text", text), ("type", kind)] {
        if let Some(value) = value {
            message[name] = json!(value);
        }
    }
    message
}

/// Returns the `data` of the response to a successful write that returns no record.
pub fn acknowledged() -> Value {
    json!({"message": "OK"})
}

/// Asserts that the response is a 400 whose error message begins with a path that starts with `field`, in backticks.
#[track_caller]
pub fn refuses_in(answer: &Answer, field: &str) {
    let message = answer.fails(400);
    assert!(message.starts_with(&format!("`{field}")), "the message should begin with `{field}…\n{}", answer.described());
}

/// Returns a record without these properties.
pub fn without(mut record: Value, members: &[&str]) -> Value {
    for member in members {
        record.as_object_mut().map(|record| record.remove(*member));
    }
    record
}

/// Returns a timestamp property of a record, and asserts its form. In this form, timestamps can be compared as text.
#[track_caller]
pub fn stamp(record: &Value, member: &str) -> String {
    let text = record[member].as_str().unwrap_or_else(|| panic!("no {member} in {record}"));
    assert!(is_timestamp(text), "{member}: {text}");
    text.to_owned()
}

/// Returns the field values of a ticket or a contact: the object in its property `member`, or an empty object if the property is absent.
pub fn values_of(record: &Value, member: &str) -> Value {
    record.get(member).cloned().unwrap_or_else(|| json!({}))
}
