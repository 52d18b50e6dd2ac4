//! Tests of the audit log of the settings API: it records every change with its author, and reveals no secret.

use serde_json::{Value, json};

use super::{SettingsFixture, grant, text};
use crate::fixture::{ANN, BO};

#[test]
fn every_change_is_recorded_with_its_author() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    let (key, _) = fixture.key(&["labels:read"]);
    let call = fixture.call("PATCH", "/keys").header("x-request-id", "req-1").json(json!({"keyId": key, "name": "Renamed"}));
    call.send().ok();
    for path in ["/keys/rotate", "/keys/deactivate", "/keys/activate"] {
        fixture.post(path, json!({"keyId": key})).ok();
    }
    // Setting a value that was already set is not a change, and adds no entry to the audit log.
    fixture.post("/keys/activate", json!({"keyId": key})).ok();
    fixture.call("PATCH", "/keys").json(json!({"keyId": key, "name": "Renamed"})).send().ok();
    fixture.call("PUT", "/accounts/users").json(json!({"accountId": "acc-ann", "userIds": [ANN]})).send().ok();
    fixture.call("DELETE", "/keys").query("keyId", &key).send().ok();
    let hook = text(&fixture.post("/webhooks", json!({"url": "https://example.com/"})).ok()["webhook"]["id"]);
    fixture.call("PATCH", "/webhooks").json(json!({"webhookId": hook, "events": ["ai.escalated"]})).send().ok();
    fixture.call("PATCH", "/webhooks").json(json!({"webhookId": hook, "events": ["ai.escalated"]})).send().ok();
    fixture.post("/webhooks/disable", json!({"webhookId": hook})).ok();
    fixture.post("/webhooks/disable", json!({"webhookId": hook})).ok();
    for path in ["/webhooks/enable", "/webhooks/rotate", "/webhooks/test", "/webhooks/replay"] {
        fixture.post(path, json!({"webhookId": hook})).ok();
    }
    fixture.call("DELETE", "/webhooks").query("webhookId", &hook).send().ok();
    fixture.shop.server.database.run(&["key", "create", "--store", "desk", "--name", "By hand", "--scopes", "labels:read"]);
    let got: Vec<_> = fixture.changes_since(before).into_iter().map(|(action, _, _)| action).collect();
    assert_eq!(
        got,
        [
            "key.created",
            "key.edited",
            "key.rotated",
            "key.deactivated",
            "key.activated",
            "key.deleted",
            "webhook.created",
            "webhook.edited",
            "webhook.disabled",
            "webhook.enabled",
            "webhook.rotated",
            "webhook.tested",
            "webhook.replayed",
            "webhook.deleted",
            "key.created",
        ]
    );
    let entries = fixture.get("/audit").query("limit", 500).send().ok().as_array().cloned().unwrap_or_default();
    let edited = entries.iter().find(|entry| entry["action"] == "key.edited").cloned().unwrap_or_default();
    assert_eq!((&edited["userId"], &edited["via"], &edited["requestId"]), (&json!(ANN), &json!("token"), &json!("req-1")));
    assert_eq!((&edited["subjectType"], &edited["subjectId"]), (&json!("key"), &json!(key)));
    assert_eq!((&edited["detail"]["name"], &edited["detail"]["scopes"]), (&json!("Renamed"), &json!(["labels:read"])));
    let by_hand = &entries[0];
    assert_eq!((&by_hand["via"], by_hand.get("userId"), by_hand.get("requestId")), (&json!("command_line"), None, None));
}

#[test]
fn the_audit_log_is_paginated_and_filtered() {
    let fixture = SettingsFixture::open();
    for _ in 0..5 {
        fixture.key(&["labels:read"]);
    }
    fixture.post("/tickets/unassign", json!({"ticketId": "t-set"})).ok();
    let all = fixture.get("/audit").send().ok().as_array().cloned().unwrap_or_default();
    let position = |entry: &Value| entry["position"].as_i64().unwrap_or_default();
    assert!(all.windows(2).all(|pair| position(&pair[0]) > position(&pair[1])));
    let (mut walked, mut before) = (Vec::new(), None);
    loop {
        let mut call = fixture.get("/audit").query("limit", 2);
        if let Some(before) = before {
            call = call.query("before", before);
        }
        let page = call.send().ok().as_array().cloned().unwrap_or_default();
        let Some(last) = page.last() else { break };
        before = Some(position(last));
        walked.extend(page);
    }
    assert_eq!(walked, all);
    let narrowed = fixture.get("/audit").query("subjectType", "ticket").send().ok();
    assert_eq!(narrowed.as_array().map(Vec::len), Some(1));
    assert_eq!(narrowed[0]["detail"]["previousAssigneeUserId"], BO);
    fixture.get("/audit").query("subjectType", "nothing").send().refuses("subjectType");
    fixture.get("/audit").query("before", "x").send().refuses("before");
    grant(&fixture.shop, "token", BO);
    let sessions = fixture.get("/audit").query("subjectType", "session").send().ok();
    assert_eq!((&sessions[0]["action"], &sessions[0]["subjectId"]), (&json!("session.granted"), &json!(BO)));
}
