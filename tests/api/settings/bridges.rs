//! Tests of the operations of the settings API that manage bridges. [`crate::bridges`] tests the delivery of messages to bridges.

use serde_json::{Value, json};

use super::{SettingsFixture, text};

const URL: &str = "https://bridge.example.com/line";

fn put(plane: &SettingsFixture, body: Value) -> crate::client::Answer {
    plane.call("PUT", "/accounts/bridge").json(body).send()
}

#[test]
fn a_bridge_is_set_moved_rotated_and_removed() {
    let plane = SettingsFixture::open();
    let before = plane.changes();
    assert_eq!(plane.get("/accounts/bridge").send().ok(), json!([]));
    let made = put(&plane, json!({"accountId": "acc-line", "url": URL})).ok();
    let secret = text(&made["secret"]);
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert_eq!(plane.get("/accounts/bridge").send().ok(), json!([made["bridge"]]));
    let moved = put(&plane, json!({"accountId": "acc-line", "url": "https://bridge.example.com/two"})).ok();
    assert_eq!((&moved["bridge"]["url"], moved.get("secret")), (&json!("https://bridge.example.com/two"), None));
    let rotated = plane.post("/accounts/bridge/rotate", json!({"accountId": "acc-line"})).ok();
    assert_ne!(text(&rotated["secret"]), secret);
    plane.call("DELETE", "/accounts/bridge").query("accountId", "acc-line").send().ok();
    plane.call("DELETE", "/accounts/bridge").query("accountId", "acc-line").send().fails(404);
    plane.post("/accounts/bridge/rotate", json!({"accountId": "acc-line"})).fails(404);
    let told: Vec<_> = plane.changes_since(before).into_iter().map(|(action, _, id)| (action, id)).collect();
    let expected = ["account.bridged", "account.bridge_moved", "account.bridge_rotated", "account.unbridged"];
    assert_eq!(told, expected.map(|action| (action.to_owned(), "acc-line".to_owned())));
    assert!(!plane.get("/audit").send().text.contains("whsec_"), "the audit log contains a secret");
}

#[test]
fn an_invalid_bridge_is_refused() {
    let plane = SettingsFixture::open();
    let before = plane.changes();
    put(&plane, json!({"accountId": "nope", "url": URL})).fails(404);
    for (body, field) in [
        (json!({"accountId": "acc-line"}), "body.url"),
        (json!({"url": URL}), "body.accountId"),
        (json!({"accountId": "acc-line", "url": "http://bridge.example.com/"}), "body.url"),
        (json!({"accountId": "acc-line", "url": "nonsense"}), "body.url"),
        (json!({"accountId": "acc-line", "url": null}), "body.url"),
        (json!({"accountId": "acc-line", "url": URL, "secret": "x"}), "body.secret"),
    ] {
        put(&plane, body).refuses(field);
    }
    plane.call("DELETE", "/accounts/bridge").send().refuses("accountId");
    assert_eq!((plane.get("/accounts/bridge").send().ok(), plane.changes()), (json!([]), before));
}
