//! Tests of rules for all writes: which malformed bodies they refuse, which methods their paths have, and which API keys they require.

use serde_json::json;

use super::{WriteFixture, without};
use crate::{REV_A, client::Call, fixture::BO};

/// The operations that change something: the path of each, and its method as the OpenAPI document writes it.
pub const WRITES: [(&str, &str); 13] = [
    ("/tickets/field-values", "patch"),
    ("/tickets/close", "post"),
    ("/tickets/assign", "post"),
    ("/conversations/mark-read", "post"),
    ("/conversations/labels", "patch"),
    ("/contacts", "post"),
    ("/contacts/field-values", "patch"),
    ("/messages/internal-comments", "post"),
    ("/messages", "post"),
    ("/messages/email/new", "post"),
    ("/messages/email", "post"),
    ("/messages/template", "post"),
    ("/messages/template/phone", "post"),
];

/// The paths of the operations in [`WRITES`] that only the newer revision of the API has.
const NEWER: [&str; 5] = ["/tickets/assign", "/messages/email/new", "/messages/email", "/messages/template", "/messages/template/phone"];

pub fn is_served(path: &str) -> bool {
    !REV_A || !NEWER.contains(&path)
}

/// Returns the path and the method of each write operation that the API revision under test has.
fn writes() -> impl Iterator<Item = (&'static str, String)> {
    let served = WRITES.into_iter().filter(|(path, _)| is_served(path));
    served.map(|(path, method)| (path, method.to_ascii_uppercase()))
}

#[test]
fn a_missing_or_malformed_body_is_refused() {
    let shop = WriteFixture::open();
    let call = |path: &str, method: &str| -> Call { shop.api.call(method, path) };
    shop.assert_unchanged(|| {
        for (path, method) in writes() {
            call(path, &method).send().fails(400);
            for text in ["", "{", "nonsense", "null", "5", "\"x\"", "{\"a\":1}{}", "\u{feff}{}"] {
                call(path, &method).header("content-type", "application/json").bytes(text).send().fails(400);
            }
            call(path, &method).header("content-type", "application/json").bytes(b"\xff\xfe{}".to_vec()).send().fails(400);
            let other = if path == "/tickets/assign" { json!({}) } else { json!([]) };
            call(path, &method).json(other).send().refuses("body");
            call(path, &method).header("content-type", "text/plain").bytes("{}").send().fails(415);
            let long = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
            call(path, &method).header("content-type", "application/json").bytes(long).send().fails(413);
        }
    });
}

#[test]
fn a_body_without_a_content_type_is_tolerated() {
    let shop = WriteFixture::open();
    let body = json!({"conversationId": "conv-free", "text": "x"}).to_string();
    shop.api.call("POST", "/messages/internal-comments").bytes(body.clone()).send().ok();
    shop.api.call("POST", "/messages/internal-comments").bytes(body).chunked().send().ok();
    assert_eq!(shop.comments("conv-free").len(), 2);
}

#[test]
fn a_wrong_http_method_on_a_write_path_is_not_allowed() {
    let shop = WriteFixture::open();
    for (path, method) in writes() {
        let other = if method == "PATCH" { "PUT" } else { "DELETE" };
        let answer = shop.api.call(other, path).send();
        answer.fails(405);
        let allowed = answer.header("allow").unwrap_or_default();
        assert!(allowed.split(',').any(|allowed| allowed.trim() == method), "{method} {path}: {allowed}");
        shop.api.call(&method, &format!("{path}/")).send().fails(404);
    }
}

#[test]
fn a_ticket_field_update_of_the_wrong_shape_is_refused() {
    let shop = WriteFixture::open();
    let good = json!({"ticketId": "t-free", "ticketFieldId": "f-text", "newValue": "x"});
    shop.assert_unchanged(|| {
        for member in ["ticketId", "ticketFieldId", "newValue"] {
            shop.patch("/tickets/field-values", without(good.clone(), &[member])).send().refuses(&format!("body.{member}"));
        }
        for (member, bad) in [
            ("ticketId", json!(null)),
            ("ticketId", json!(5)),
            ("ticketId", json!(["t-free"])),
            ("ticketFieldId", json!(null)),
            ("ticketFieldId", json!(true)),
            ("ticketFieldsUpdatedAt", json!(null)),
            ("ticketFieldsUpdatedAt", json!("")),
            ("ticketFieldsUpdatedAt", json!("yesterday")),
            ("ticketFieldsUpdatedAt", json!("2025-03-01")),
            ("ticketFieldsUpdatedAt", json!("2025-03-01T08:00:00")),
            ("ticketFieldsUpdatedAt", json!(1_740_816_000_000_i64)),
            ("newvalue", json!("x")),
            ("value", json!("x")),
            ("expand", json!("account")),
        ] {
            let mut body = good.clone();
            body[member] = bad;
            shop.patch("/tickets/field-values", body).send().refuses(&format!("body.{member}"));
        }
    });
    shop.patch("/tickets/field-values", good).send().ok();
}

#[test]
fn writes_that_return_no_expandable_record_refuse_expand() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (path, body) in [
            ("/messages/internal-comments", json!({"conversationId": "conv-free", "text": "x"})),
            ("/contacts", json!({"firstName": "A"})),
            ("/conversations/mark-read", json!({"conversationId": "conv-free"})),
        ] {
            shop.post(path, body).query("expand", "account").send().refuses_expand();
        }
    });
}

#[test]
fn a_write_requires_a_key_with_its_scope() {
    let shop = WriteFixture::open();
    for (path, method) in writes() {
        shop.api.anonymous().call(&method, path).send().fails(401);
        shop.server.api("desk", &["users:read"]).call(&method, path).send().fails(403);
    }
    // A key that may read the records, but not write them, is refused.
    let reader = shop.server.api("desk", &["tickets:read", "conversations:read", "contacts:read", "messages:read"]);
    shop.assert_unchanged(|| {
        reader.post("/tickets/close", json!({"ticketId": "t-free", "handledBy": BO})).send().fails(403);
        for (path, method) in writes() {
            reader.call(&method, path).send().fails(403);
        }
    });
}
