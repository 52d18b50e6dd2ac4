//! Tests of the operations of the settings API that manage bridges. A bridge is an endpoint that passes the messages of an account on to
//! their channel. [`crate::channel_bridges`] tests the delivery of messages to bridges.

use serde_json::{Value, json};

use super::{SettingsFixture, text};

const URL: &str = "https://bridge.example.com/line";

fn put(fixture: &SettingsFixture, body: Value) -> crate::client::Answer {
    fixture.call("PUT", "/accounts/bridge").json(body).send()
}

#[test]
fn a_bridge_is_set_moved_rotated_and_removed() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    assert_eq!(fixture.get("/accounts/bridge").send().ok(), json!([]));
    let made = put(&fixture, json!({"accountId": "acc-line", "url": URL})).ok();
    let secret = text(&made["secret"]);
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert_eq!(fixture.get("/accounts/bridge").send().ok(), json!([made["bridge"]]));
    let moved = put(&fixture, json!({"accountId": "acc-line", "url": "https://bridge.example.com/two"})).ok();
    assert_eq!((&moved["bridge"]["url"], moved.get("secret")), (&json!("https://bridge.example.com/two"), None));
    let rotated = fixture.post("/accounts/bridge/rotate", json!({"accountId": "acc-line"})).ok();
    assert_ne!(text(&rotated["secret"]), secret);
    fixture.call("DELETE", "/accounts/bridge").query("accountId", "acc-line").send().ok();
    fixture.call("DELETE", "/accounts/bridge").query("accountId", "acc-line").send().fails(404);
    fixture.post("/accounts/bridge/rotate", json!({"accountId": "acc-line"})).fails(404);
    let got: Vec<_> = fixture.changes_since(before).into_iter().map(|(action, _, id)| (action, id)).collect();
    let expected = ["account.bridged", "account.bridge_moved", "account.bridge_rotated", "account.unbridged"];
    assert_eq!(got, expected.map(|action| (action.to_owned(), "acc-line".to_owned())));
    assert!(!fixture.get("/audit").send().text.contains("whsec_"), "the audit log contains a secret");
}

#[test]
fn an_invalid_bridge_is_refused() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    put(&fixture, json!({"accountId": "nope", "url": URL})).fails(404);
    for (body, field) in [
        (json!({"accountId": "acc-line"}), "body.url"),
        (json!({"url": URL}), "body.accountId"),
        (json!({"accountId": "acc-line", "url": "http://bridge.example.com/"}), "body.url"),
        (json!({"accountId": "acc-line", "url": "nonsense"}), "body.url"),
        (json!({"accountId": "acc-line", "url": null}), "body.url"),
        (json!({"accountId": "acc-line", "url": URL, "secret": "x"}), "body.secret"),
    ] {
        put(&fixture, body).refuses(field);
    }
    fixture.call("DELETE", "/accounts/bridge").send().refuses("accountId");
    assert_eq!((fixture.get("/accounts/bridge").send().ok(), fixture.changes()), (json!([]), before));
}
