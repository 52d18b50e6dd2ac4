//! Tests of drafts in the settings API. A draft is a message that is sent only after a person has released it. The tests list, edit,
//! release and discard drafts. `src/service/draft_tests.rs` tests concurrent releases, and drafts that are refused when they are made.

use serde_json::{Value, json};

use super::SettingsFixture;
use crate::{
    REV_A,
    fixture::{ANN, line, message},
};

const SEVEN_DAYS: i64 = 7 * 24 * 60 * 60 * 1000;

#[expect(clippy::disallowed_methods, reason = "a test has no injected clock; the server under test runs on the real one")]
fn now() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Inserts a pending draft that was made `ago` milliseconds ago. `seen` is the id of the newest inbound message of its conversation at that
/// time; `None` if there was no inbound message.
fn draft(fixture: &SettingsFixture, id: &str, ago: i64, operation: &str, body: &Value, seen: Option<&str>) {
    let mut content = body.clone();
    content["operation"] = operation.into();
    let nullable = |value: Option<&str>| value.map_or("NULL".to_owned(), |value| format!("'{value}'"));
    let (conversation, account) = (nullable(body["conversationId"].as_str()), nullable(body["accountId"].as_str()));
    let (seen, at) = (nullable(seen), now() - ago);
    fixture.shop.server.database.sql(&format!(
        "INSERT INTO drafts (store_id, id, key_id, key_name, operation, content, conversation_id, account_id, seen_message_id, created_at, \
         updated_at, expires_at, state) VALUES ('desk', '{id}', 'key-gone', 'Assistant', '{operation}', '{content}', {conversation}, \
         {account}, {seen}, {at}, {at}, {}, 'pending')",
        at + SEVEN_DAYS
    ));
}

fn to_free(text: &str) -> Value {
    json!({"conversationId": "conv-free", "text": text})
}

fn ids(drafts: &Value) -> Vec<&str> {
    drafts.as_array().into_iter().flatten().filter_map(|draft| draft["id"].as_str()).collect()
}

#[test]
fn a_draft_is_edited_and_released_once() {
    let fixture = SettingsFixture::open();
    draft(&fixture, "d-1", 1000, "sendTextMessage", &to_free("Hi"), Some("m-1"));
    let before = fixture.changes();
    let listed = fixture.get("/drafts").send().ok();
    assert_eq!(ids(&listed), ["d-1"]);
    assert_eq!(
        (&listed[0]["body"], &listed[0]["operation"], &listed[0]["state"]),
        (&to_free("Hi"), &json!("sendTextMessage"), &json!("pending"))
    );
    assert_eq!(
        (&listed[0]["conversationId"], &listed[0]["seenMessageId"], listed[0].get("settledAt")),
        (&json!("conv-free"), &json!("m-1"), None)
    );
    let edit = |body: Value| fixture.call("PATCH", "/drafts").json(body).send();
    let edited = edit(json!({"draftId": "d-1", "body": to_free("Hello")})).ok();
    assert_eq!((&edited["body"], &edited["keyName"]), (&to_free("Hello"), &json!("Assistant")));
    for (body, field) in [
        (json!({"body": to_free("x")}), "body.draftId"),
        (json!({"draftId": "d-1"}), "body.body"),
        (json!({"draftId": "d-1", "body": []}), "body.body"),
        (json!({"draftId": "d-1", "body": {"conversationId": "conv-free"}}), "body.body.text"),
        (json!({"draftId": "d-1", "body": {"conversationId": "conv-free", "text": 1}}), "body.body.text"),
        (json!({"draftId": "d-1", "body": {"conversationId": "conv-free", "text": "x", "html": "x"}}), "body.body.html"),
        (json!({"draftId": "d-1", "body": {"conversationId": "conv-set", "text": "x"}}), "body.body.conversationId"),
        (json!({"draftId": "d-1", "body": {"conversationId": "conv-free", "text": "\0"}}), "body.body.text"),
    ] {
        edit(body).refuses(field);
    }
    edit(json!({"draftId": "d-9", "body": to_free("x")})).fails(404);

    let release = |body: Value| fixture.post("/drafts/release", body);
    release(json!({"draftId": "d-9"})).fails(404);
    let released = release(json!({"draftId": "d-1"})).ok();
    assert_eq!((&released["state"], &released["settledBy"]), (&json!("released"), &json!(ANN)));
    release(json!({"draftId": "d-1"})).fails(409);
    edit(json!({"draftId": "d-1", "body": to_free("x")})).fails(409);
    let sent = fixture.shop.api.get("/messages").query("conversationId", "conv-free").query("pageSize", 5).send().ok();
    let text = if REV_A { &sent[0]["payload"]["text"] } else { &sent[0]["text"] };
    assert_eq!((text, sent.as_array().map(Vec::len)), (&json!("Hello"), Some(2)));
    let got = fixture.changes_since(before);
    let expected = ["draft.edited", "draft.released"].map(|action| (action.to_owned(), "draft".to_owned(), "d-1".to_owned()));
    assert_eq!(got, expected);
    let log = fixture.get("/audit").query("subjectType", "draft").send();
    assert!(!log.text.contains("Hello"), "the audit log has the text of a message: {}", log.text);
    assert_eq!(ids(&fixture.get("/drafts").query("state", "released").send().ok()), ["d-1"]);
}

#[test]
fn releasing_a_draft_requires_confirmation_of_a_newer_message_of_the_contact() {
    let fixture = SettingsFixture::open();
    draft(&fixture, "d-1", 1000, "sendTextMessage", &to_free("Hi"), None);
    let refused = fixture.post("/drafts/release", json!({"draftId": "d-1"}));
    refused.fails(409);
    assert!(refused.text.contains("message `m-1`"), "{}", refused.text);
    fixture.post("/drafts/release", json!({"draftId": "d-1", "confirmedMessageId": "m-0"})).fails(409);
    fixture.post("/drafts/release", json!({"draftId": "d-1", "confirmedMessageId": "m-1"})).ok();
}

#[test]
fn the_messages_before_a_draft_are_listed_newest_first() {
    let fixture = SettingsFixture::open();
    draft(&fixture, "d-1", 1000, "sendTextMessage", &to_free("Hi"), Some("m-1"));
    let letter = json!({"accountId": "acc-ann", "to": [{"email": "mia@example.com"}], "subject": "Order 7", "text": "It is on its way."});
    draft(&fixture, "d-2", 1000, "sendEmailNew", &letter, None);
    let messages = |id: &str| fixture.get("/drafts/messages").query("draftId", id).send();
    let listed = messages("d-1").ok();
    assert_eq!((ids(&listed), &listed[0]["fromContact"]), (vec!["m-1"], &json!(true)));
    fixture.post("/drafts/release", json!({"draftId": "d-1"})).ok();
    let listed = messages("d-1").ok();
    assert_eq!((&listed[0]["text"], &listed[0]["fromContact"], ids(&listed)[1]), (&json!("Hi"), &json!(false), "m-1"));
    assert_eq!(messages("d-2").ok(), json!([]), "the draft opens a conversation");
    messages("d-9").fails(404);
    messages("").fails(400);
    fixture.get("/drafts/messages").send().fails(400);
}

#[test]
fn a_draft_whose_message_is_refused_stays_pending() {
    let fixture = SettingsFixture::open();
    // The contact of this conversation has never written. WhatsApp accepts a text message only for some time after a message of the
    // contact, so the text message of the draft is refused.
    let body = json!({"conversationId": "conv-wa", "text": "Hi"});
    draft(&fixture, "d-1", 1000, "sendTextMessage", &body, None);
    fixture.post("/drafts/release", json!({"draftId": "d-1"})).refuses("body.conversationId");
    fixture.call("PATCH", "/drafts").json(json!({"draftId": "d-1", "body": body})).send().refuses("body.body.conversationId");
    assert_eq!(ids(&fixture.get("/drafts").send().ok()), ["d-1"]);
}

#[test]
fn a_discarded_and_an_expired_draft_are_not_sent() {
    let fixture = SettingsFixture::open();
    draft(&fixture, "d-old", SEVEN_DAYS, "sendTextMessage", &to_free("Hi"), Some("m-1"));
    draft(&fixture, "d-1", 1000, "sendTextMessage", &to_free("Hi"), Some("m-1"));
    fixture.call("DELETE", "/drafts").send().refuses("draftId");
    fixture.call("DELETE", "/drafts").query("draftId", "d-9").send().fails(404);
    fixture.call("DELETE", "/drafts").query("draftId", "d-1").send().ok();
    for id in ["d-1", "d-old"] {
        fixture.call("DELETE", "/drafts").query("draftId", id).send().fails(409);
        fixture.post("/drafts/release", json!({"draftId": id})).fails(409);
        fixture.call("PATCH", "/drafts").json(json!({"draftId": id, "body": to_free("x")})).send().fails(409);
    }
    for (state, expected) in [("pending", vec![]), ("discarded", vec!["d-1"]), ("expired", vec!["d-old"]), ("released", vec![])] {
        assert_eq!(ids(&fixture.get("/drafts").query("state", state).send().ok()), expected, "{state}");
    }
    fixture.get("/drafts").query("state", "sent").send().refuses("state");
}

#[test]
fn drafts_are_listed_in_pages_the_newest_first() {
    let fixture = SettingsFixture::open();
    for i in 0..5 {
        draft(&fixture, &format!("d-{i}"), 1000 * i, "sendTextMessage", &to_free("Hi"), Some("m-1"));
    }
    let (mut walked, mut before) = (Vec::new(), None);
    loop {
        let mut call = fixture.get("/drafts").query("limit", 2);
        if let Some(before) = &before {
            call = call.query("before", before);
        }
        let page = call.send().ok();
        let Some(last) = ids(&page).last().copied().map(str::to_owned) else { break };
        walked.extend(ids(&page).into_iter().map(str::to_owned));
        before = Some(last);
    }
    assert_eq!(walked, ["d-0", "d-1", "d-2", "d-3", "d-4"]);
    fixture.get("/drafts").query("before", "d-9").send().refuses("before");
}

#[test]
fn a_draft_of_an_operation_that_only_the_other_revision_has_can_be_released() {
    let fixture = SettingsFixture::open();
    let body = json!({"accountId": "acc-ann", "to": [{"email": "mia@example.com"}], "subject": "Order 7", "text": "It is on its way."});
    draft(&fixture, "d-1", 1000, "sendEmailNew", &body, None);
    assert_eq!(fixture.get("/drafts").send().ok()[0]["accountId"], "acc-ann");
    let edited = fixture.call("PATCH", "/drafts").json(json!({"draftId": "d-1", "body": body})).send();
    if REV_A {
        edited.fails(400);
        assert!(edited.text.contains("revision A"), "{}", edited.text);
    } else {
        edited.ok();
    }
    fixture.post("/drafts/release", json!({"draftId": "d-1"})).ok();
    let sent =
        fixture.shop.server.database.ask(&format!("SELECT payload FROM messages WHERE store_id = 'desk' AND author_user_id = '{ANN}'"));
    assert!(sent.len() == 1 && sent[0].contains("Order 7"), "{sent:?}");
}

#[test]
fn an_export_leaves_drafts_out() {
    let fixture = SettingsFixture::open();
    let export = || fixture.shop.server.database.run(&["export", "--store", "desk"]);
    let before = export();
    draft(&fixture, "d-1", 1000, "sendTextMessage", &to_free("Hi"), Some("m-1"));
    assert_eq!(export(), before);
    // An import into the store does not change the draft.
    fixture
        .shop
        .server
        .database
        .import("desk", &[line("message", message("m-2", "conv-free", "inbound", "2025-03-01T09:30:00.000Z", "Hello?"))]);
    assert_eq!(ids(&fixture.get("/drafts").send().ok()), ["d-1"]);
}
