//! Tests of idempotency keys, the header `Idempotency-Key`: a write that is sent again with the same key is executed once.

use serde_json::{Value, json};

use super::{
    WriteFixture, acknowledged,
    common_http_behaviour::{WRITES, is_served},
};
use crate::{
    REV_A,
    client::{Answer, Call},
    fixture::{BO, write_store as lines},
};

fn keyed(call: Call, key: &str) -> Answer {
    call.header("idempotency-key", key).send()
}

#[track_caller]
fn replayed(first: &Answer, again: &Answer) {
    assert_eq!(first.header("idempotency-replayed"), None, "{}", first.described());
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", again.described());
    assert_eq!(first.ok(), again.ok());
    assert_ne!(first.body()["requestId"], again.body()["requestId"], "each request has its own id");
}

/// Returns a request for each operation that changes something.
fn calls(shop: &WriteFixture) -> Vec<Call> {
    let mut calls = vec![
        shop.patch("/tickets/field-values", json!({"ticketId": "t-free", "ticketFieldId": "f-text", "newValue": "x"})),
        shop.post("/tickets/close", json!({"ticketId": "t-set", "ticketFields": {"f-text": "closed"}})),
        shop.post("/conversations/mark-read", json!({"conversationId": "conv-free"})),
        shop.patch("/conversations/labels", json!({"conversationId": "conv-free", "addLabels": ["lab-c"]})),
        shop.post("/contacts", json!({"firstName": "Ada", "email": "ada@example.com"})),
        shop.patch(
            "/contacts/field-values",
            json!({"contactId": "con-mia", "contactFieldId": "c-text", "value": "x", "updatedAt": "2025-01-20T00:00:00.000Z"}),
        ),
        shop.post("/messages/internal-comments", json!({"conversationId": "conv-free", "text": "x"})),
        shop.post("/messages", json!({"conversationId": "conv-free", "text": "x"})),
    ];
    if !REV_A {
        let to = json!([{"email": "eva@example.com"}]);
        calls.extend([
            shop.post("/tickets/assign", json!([{"ticketId": "t-asleep", "assigneeUserId": BO}])),
            shop.post("/messages/email/new", json!({"accountId": "acc-ann", "to": to, "text": "x"})),
            shop.post("/messages/email", json!({"conversationId": "conv-ann", "to": to, "text": "x"})),
            shop.post("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-one", "variables": ["x"]})),
            shop.post(
                "/messages/template/phone",
                json!({"accountId": "acc-wa", "phoneNumber": "+66844444444", "templateId": "tpl-one", "variables": ["x"]}),
            ),
        ]);
    }
    // The list must have as many requests as the API revision under test has write operations.
    assert_eq!(calls.len(), WRITES.iter().filter(|(path, _)| is_served(path)).count());
    calls
}

#[test]
fn every_write_is_executed_once_and_its_answer_is_repeated() {
    let shop = WriteFixture::open();
    // All requests use the same idempotency key. They do not conflict, because a key is scoped to its operation.
    let first: Vec<_> = calls(&shop).into_iter().map(|call| keyed(call, "once")).collect();
    shop.assert_unchanged(|| {
        for (call, first) in calls(&shop).into_iter().zip(&first) {
            replayed(first, &keyed(call.clone(), "once"));
            replayed(first, &keyed(call.clone(), "once"));
            keyed(call.reworded(), "once").fails(409);
        }
    });
    assert_eq!(shop.comments("conv-free").len(), 1);
}

#[test]
fn the_first_response_is_repeated_even_after_later_changes() {
    let shop = WriteFixture::open();
    let call = || shop.patch("/tickets/field-values", json!({"ticketId": "t-free", "ticketFieldId": "f-text", "newValue": "x"}));
    let first = keyed(call(), "k");
    shop.set("t-free", "f-text", json!("y")).ok();
    shop.assert_unchanged(|| replayed(&first, &keyed(call(), "k")));
    assert_eq!(shop.ticket("t-free")["ticketFields"]["f-text"], "y");
}

#[test]
fn another_body_under_the_same_key_is_a_conflict() {
    let shop = WriteFixture::open();
    let comment = |text: &str| shop.post("/messages/internal-comments", json!({"conversationId": "conv-free", "text": text}));
    keyed(comment("one"), "k").is(acknowledged());
    shop.assert_unchanged(|| {
        keyed(comment("two"), "k").fails(409);
        // The form of the body is checked before the idempotency key.
        keyed(shop.post("/messages/internal-comments", json!({"conversationId": "conv-free"})), "k").refuses("body.text");
    });
    keyed(comment("two"), "l").is(acknowledged());
    keyed(comment("one"), "K").is(acknowledged());
    assert_eq!(shop.comments("conv-free").len(), 3);
}

#[test]
fn idempotency_keys_are_scoped_to_an_operation_and_a_store() {
    let shop = WriteFixture::with(&[("desk", lines()), ("copy", lines())]);
    let body = json!({"conversationId": "conv-free", "text": "x"});
    let first = keyed(shop.post("/messages/internal-comments", body.clone()), "k");
    let read = keyed(shop.post("/conversations/mark-read", json!({"conversationId": "conv-free"})), "k");
    assert_eq!(read.header("idempotency-replayed"), None, "{}", read.described());
    read.is(acknowledged());
    assert_eq!(shop.conversation("conv-free")["unreadMsgCnt"], 0);
    let copy = shop.server.api("copy", &["messages:write"]);
    let other = keyed(copy.post("/messages/internal-comments", body.clone()), "k");
    assert_eq!(other.header("idempotency-replayed"), None, "{}", other.described());
    other.is(acknowledged());
    // Idempotency keys belong to the store: another API key of the same store counts as the same caller.
    let second = shop.server.api("desk", &["messages:write"]);
    replayed(&first, &keyed(second.post("/messages/internal-comments", body), "k"));
    assert_eq!(shop.comments("conv-free").len(), 1);
}

#[test]
fn a_failed_request_leaves_its_idempotency_key_unused() {
    let shop = WriteFixture::open();
    let set = |ticket: &str, value: Value| {
        let body = json!({"ticketId": ticket, "ticketFieldId": "f-int", "newValue": value});
        keyed(shop.patch("/tickets/field-values", body), "k")
    };
    set("t-free", json!("no number")).refuses("body.newValue");
    set("nobody", json!(1)).fails(404);
    set("t-free", json!("no number")).refuses("body.newValue");
    let contact = |email: &str| keyed(shop.post("/contacts", json!({"firstName": "Mia", "email": email})), "k");
    contact("mia@example.com").fails(409);
    let made = contact("other@example.com");
    replayed(&made, &contact("other@example.com"));
    contact("mia@example.com").fails(409);
    assert_eq!(set("t-free", json!(1)).ok()["ticketFields"]["f-int"], 1);
}

#[test]
fn a_repeated_write_without_an_idempotency_key_is_executed_again() {
    let shop = WriteFixture::open();
    for _ in 0..2 {
        let answer = shop.comment("conv-free", "x");
        assert_eq!(answer.header("idempotency-replayed"), None);
    }
    assert_eq!(shop.comments("conv-free").len(), 2);
}

#[test]
fn an_api_key_without_the_scope_gets_no_stored_response() {
    let shop = WriteFixture::open();
    let body = json!({"conversationId": "conv-free", "text": "x"});
    keyed(shop.post("/messages/internal-comments", body.clone()), "k").ok();
    let reader = shop.server.api("desk", &["messages:read", "contacts:write"]);
    keyed(reader.post("/messages/internal-comments", body), "k").fails(403);
}

#[test]
fn the_idempotency_key_header_is_documented_on_every_write() {
    let shop = WriteFixture::open();
    let document = shop.api.anonymous().raw("GET", "/openapi.json").exchange().body();
    for (path, method) in WRITES {
        let node = &document["paths"][path].get(method).or_else(|| document["paths"][format!("/v1{path}")].get(method)).cloned();
        let Some(node) = node else {
            assert!(!is_served(path), "{method} {path} is not documented");
            continue;
        };
        assert!(node["parameters"].to_string().contains("#/components/parameters/IdempotencyKey"), "{method} {path}");
    }
}
