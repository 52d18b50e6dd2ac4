//! Tests of API keys in the settings API: creating, editing, rotating and deleting keys. Every change takes effect on `/v1` immediately.

use serde_json::json;

use super::{SettingsFixture, text};
use crate::{
    fixture::{BO, GHOST},
    harness::ALL_SCOPES,
};

#[test]
fn a_secret_is_shown_once() {
    let fixture = SettingsFixture::open();
    let made = fixture.post("/keys", json!({"name": "Nightly sync", "scopes": ["tickets:write", "labels:read"], "userId": BO})).ok();
    let secret = text(&made["secret"]);
    assert!(secret.starts_with("cp_") && secret.len() == 43, "{secret}");
    let key = &made["key"];
    assert_eq!(key["scopes"], json!(["tickets:read", "tickets:write", "labels:read"]));
    assert_eq!(key["masked"], format!("cp_••••{}", &secret[39..]));
    assert_eq!((&key["status"], &key["userId"], key.get("lastUsedAt")), (&json!("active"), &json!(BO), None));
    let listed = fixture.get("/keys").send();
    assert_eq!(listed.row(key["id"].as_str().unwrap_or_default()), *key);
    let api = fixture.shop.api.with_key(&secret);
    api.get("/labels").send().ok();
    for answer in [fixture.get("/keys").send(), fixture.get("/audit").send()] {
        assert!(!answer.text.contains(&secret), "a secret was shown again");
    }
    let used = fixture.get("/keys").send().row(key["id"].as_str().unwrap_or_default());
    assert!(used["lastUsedAt"].as_str() >= key["createdAt"].as_str(), "{used}");
}

#[test]
fn a_key_can_be_edited_rotated_deactivated_activated_expired_and_deleted() {
    let fixture = SettingsFixture::open();
    let (id, first) = fixture.key(&["tickets:read", "labels:read"]);
    let answers = |secret: &str, path: &str| fixture.shop.api.with_key(secret).get(path).send().status;
    assert_eq!((answers(&first, "/labels"), answers(&first, "/users")), (200, 403));
    let edited = fixture.call("PATCH", "/keys").json(json!({"keyId": id, "scopes": ["users:read"], "name": "Users"})).send().ok();
    assert_eq!((&edited["name"], &edited["scopes"]), (&json!("Users"), &json!(["users:read"])));
    assert_eq!((answers(&first, "/labels"), answers(&first, "/users")), (403, 200));
    let rotated = fixture.post("/keys/rotate", json!({"keyId": id})).ok();
    let second = text(&rotated["secret"]);
    assert_eq!((&rotated["key"]["name"], &rotated["key"]["scopes"]), (&json!("Users"), &json!(["users:read"])));
    assert_eq!((answers(&first, "/users"), answers(&second, "/users")), (200, 200));
    assert_eq!(fixture.post("/keys/deactivate", json!({"keyId": id})).ok()["status"], "inactive");
    assert_eq!((answers(&first, "/users"), answers(&second, "/users")), (401, 401));
    let message = fixture.post("/keys/rotate", json!({"keyId": id})).fails(409);
    assert!(message.contains("inactive"), "{message}");
    assert_eq!(fixture.post("/keys/activate", json!({"keyId": id})).ok()["status"], "active");
    assert_eq!((answers(&first, "/users"), answers(&second, "/users")), (200, 200));
    for not_a_flag in [json!(null), json!("true"), json!(1)] {
        fixture.post("/keys/rotate", json!({"keyId": id, "endFormerSecrets": not_a_flag})).fails(400);
    }
    let third = text(&fixture.post("/keys/rotate", json!({"keyId": id, "endFormerSecrets": true})).ok()["secret"]);
    assert_eq!((answers(&first, "/users"), answers(&second, "/users"), answers(&third, "/users")), (401, 401, 200));
    assert_eq!(fixture.get("/audit").query("limit", 1).send().ok()[0]["detail"]["formerSecretsEnded"], true);
    fixture.shop.server.database.sql(&format!("update api_keys set expires_at = 1 where id = '{id}'"));
    assert_eq!(fixture.get("/keys").send().row(&id)["status"], "expired");
    assert_eq!(answers(&third, "/users"), 401);
    let message = fixture.post("/keys/rotate", json!({"keyId": id})).fails(409);
    assert!(message.contains("expired"), "{message}");
    fixture.call("DELETE", "/keys").query("keyId", &id).send().ok();
    fixture.call("DELETE", "/keys").query("keyId", &id).send().fails(404);
    assert!(!fixture.get("/keys").send().ids().contains(&id));
}

#[test]
fn an_invalid_key_is_not_created() {
    let fixture = SettingsFixture::open();
    let before = (fixture.get("/keys").send().ids(), fixture.changes());
    let (id, scopes) = (&before.0[0], json!(["labels:read"]));
    for (body, field) in [
        (json!({"scopes": scopes}), "body.name"),
        (json!({"name": "x"}), "body.scopes"),
        (json!({"name": "", "scopes": scopes}), "body.name"),
        (json!({"name": " \t", "scopes": scopes}), "body.name"),
        (json!({"name": "x".repeat(101), "scopes": scopes}), "body.name"),
        (json!({"name": "a\u{0}b", "scopes": scopes}), "body.name"),
        (json!({"name": null, "scopes": scopes}), "body.name"),
        (json!({"name": 5, "scopes": scopes}), "body.name"),
        (json!({"name": "x", "scopes": []}), "body.scopes"),
        (json!({"name": "x", "scopes": "labels:read"}), "body.scopes"),
        (json!({"name": "x", "scopes": ["labels:read", "Labels:read"]}), "body.scopes[1]"),
        (json!({"name": "x", "scopes": [null]}), "body.scopes[0]"),
        (json!({"name": "x", "scopes": scopes, "userId": GHOST}), "body.userId"),
        (json!({"name": "x", "scopes": scopes, "userId": "bo"}), "body.userId"),
        (json!({"name": "x", "scopes": scopes, "userId": null}), "body.userId"),
        (json!({"name": "x", "scopes": scopes, "secret": "cp_mine"}), "body.secret"),
        (json!([]), "body"),
    ] {
        fixture.post("/keys", body).refuses(field);
    }
    for (body, field) in [
        (json!({"name": "x"}), "body.keyId"),
        (json!({"keyId": id, "name": ""}), "body.name"),
        (json!({"keyId": id, "scopes": []}), "body.scopes"),
        (json!({"keyId": id, "scopes": ["nope"]}), "body.scopes[0]"),
        (json!({"keyId": id, "userId": BO}), "body.userId"),
    ] {
        fixture.call("PATCH", "/keys").json(body).send().refuses(field);
    }
    fixture.call("PATCH", "/keys").json(json!({"keyId": "nope", "name": "x"})).send().fails(404);
    fixture.call("DELETE", "/keys").send().refuses("keyId");
    fixture.call("DELETE", "/keys").query("keyId", "").send().refuses("keyId");
    for path in ["/keys/rotate", "/keys/activate", "/keys/deactivate"] {
        fixture.post(path, json!({"keyId": "nope"})).fails(404);
        fixture.post(path, json!({})).refuses("body.keyId");
    }
    assert_eq!((fixture.get("/keys").send().ids(), fixture.changes()), before);
    let all = fixture.post("/keys", json!({"name": "x".repeat(100), "scopes": ALL_SCOPES})).ok();
    assert_eq!(all["key"]["scopes"].as_array().map(Vec::len), Some(16));
}

#[test]
fn the_command_line_and_the_settings_api_show_the_same_keys() {
    let fixture = SettingsFixture::open();
    let (id, secret) = fixture.key(&["labels:read"]);
    let listed = fixture.shop.server.database.run(&["key", "list", "--store", "desk"]);
    let line = listed.lines().find(|line| line.contains(&id)).unwrap_or_else(|| panic!("no {id} in {listed}"));
    assert!(line.contains(&format!("cp_••••{}", &secret[39..])), "{line}");
    fixture.shop.server.database.run(&["key", "edit", "--store", "desk", "--id", &id, "--name", "From the terminal"]);
    assert_eq!(fixture.get("/keys").send().row(&id)["name"], "From the terminal");
}
