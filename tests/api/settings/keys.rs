//! Tests of API keys in the settings API: creating, editing, rotating and deleting keys (contract, section 3.2). Every change takes effect
//! on `/v1` immediately.

use serde_json::json;

use super::{SettingsFixture, text};
use crate::{
    fixture::{BO, GHOST},
    harness::ALL_SCOPES,
};

#[test]
fn a_secret_is_shown_once() {
    let plane = SettingsFixture::open();
    let made = plane.post("/keys", json!({"name": "Nightly sync", "scopes": ["tickets:write", "labels:read"], "userId": BO})).ok();
    let secret = text(&made["secret"]);
    assert!(secret.starts_with("cp_") && secret.len() == 43, "{secret}");
    let key = &made["key"];
    assert_eq!(key["scopes"], json!(["tickets:read", "tickets:write", "labels:read"]));
    assert_eq!(key["masked"], format!("cp_••••{}", &secret[39..]));
    assert_eq!((&key["status"], &key["userId"], key.get("lastUsedAt")), (&json!("active"), &json!(BO), None));
    let listed = plane.get("/keys").send();
    assert_eq!(listed.row(key["id"].as_str().unwrap_or_default()), *key);
    let api = plane.desk.api.with_key(&secret);
    api.get("/labels").send().ok();
    for answer in [plane.get("/keys").send(), plane.get("/audit").send()] {
        assert!(!answer.text.contains(&secret), "a secret was shown again");
    }
    let used = plane.get("/keys").send().row(key["id"].as_str().unwrap_or_default());
    assert!(used["lastUsedAt"].as_str() >= key["createdAt"].as_str(), "{used}");
}

#[test]
fn a_key_has_the_life_cycle_of_section_3_2() {
    let plane = SettingsFixture::open();
    let (id, first) = plane.key(&["tickets:read", "labels:read"]);
    let answers = |secret: &str, path: &str| plane.desk.api.with_key(secret).get(path).send().status;
    assert_eq!((answers(&first, "/labels"), answers(&first, "/users")), (200, 403));
    let edited = plane.call("PATCH", "/keys").json(json!({"keyId": id, "scopes": ["users:read"], "name": "Users"})).send().ok();
    assert_eq!((&edited["name"], &edited["scopes"]), (&json!("Users"), &json!(["users:read"])));
    assert_eq!((answers(&first, "/labels"), answers(&first, "/users")), (403, 200));
    let rotated = plane.post("/keys/rotate", json!({"keyId": id})).ok();
    let second = text(&rotated["secret"]);
    assert_eq!((&rotated["key"]["name"], &rotated["key"]["scopes"]), (&json!("Users"), &json!(["users:read"])));
    assert_eq!((answers(&first, "/users"), answers(&second, "/users")), (200, 200));
    assert_eq!(plane.post("/keys/deactivate", json!({"keyId": id})).ok()["status"], "inactive");
    assert_eq!((answers(&first, "/users"), answers(&second, "/users")), (401, 401));
    let message = plane.post("/keys/rotate", json!({"keyId": id})).fails(409);
    assert!(message.contains("inactive"), "{message}");
    assert_eq!(plane.post("/keys/activate", json!({"keyId": id})).ok()["status"], "active");
    assert_eq!((answers(&first, "/users"), answers(&second, "/users")), (200, 200));
    for not_a_flag in [json!(null), json!("true"), json!(1)] {
        plane.post("/keys/rotate", json!({"keyId": id, "endFormerSecrets": not_a_flag})).fails(400);
    }
    let third = text(&plane.post("/keys/rotate", json!({"keyId": id, "endFormerSecrets": true})).ok()["secret"]);
    assert_eq!((answers(&first, "/users"), answers(&second, "/users"), answers(&third, "/users")), (401, 401, 200));
    assert_eq!(plane.get("/audit").query("limit", 1).send().ok()[0]["detail"]["formerSecretsEnded"], true);
    plane.desk.server.database.sql(&format!("update api_keys set expires_at = 1 where id = '{id}'"));
    assert_eq!(plane.get("/keys").send().row(&id)["status"], "expired");
    assert_eq!(answers(&third, "/users"), 401);
    let message = plane.post("/keys/rotate", json!({"keyId": id})).fails(409);
    assert!(message.contains("expired"), "{message}");
    plane.call("DELETE", "/keys").query("keyId", &id).send().ok();
    plane.call("DELETE", "/keys").query("keyId", &id).send().fails(404);
    assert!(!plane.get("/keys").send().ids().contains(&id));
}

#[test]
fn an_invalid_key_is_not_created() {
    let plane = SettingsFixture::open();
    let before = (plane.get("/keys").send().ids(), plane.changes());
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
        plane.post("/keys", body).refuses(field);
    }
    for (body, field) in [
        (json!({"name": "x"}), "body.keyId"),
        (json!({"keyId": id, "name": ""}), "body.name"),
        (json!({"keyId": id, "scopes": []}), "body.scopes"),
        (json!({"keyId": id, "scopes": ["nope"]}), "body.scopes[0]"),
        (json!({"keyId": id, "userId": BO}), "body.userId"),
    ] {
        plane.call("PATCH", "/keys").json(body).send().refuses(field);
    }
    plane.call("PATCH", "/keys").json(json!({"keyId": "nope", "name": "x"})).send().fails(404);
    plane.call("DELETE", "/keys").send().refuses("keyId");
    plane.call("DELETE", "/keys").query("keyId", "").send().refuses("keyId");
    for path in ["/keys/rotate", "/keys/activate", "/keys/deactivate"] {
        plane.post(path, json!({"keyId": "nope"})).fails(404);
        plane.post(path, json!({})).refuses("body.keyId");
    }
    assert_eq!((plane.get("/keys").send().ids(), plane.changes()), before);
    let all = plane.post("/keys", json!({"name": "x".repeat(100), "scopes": ALL_SCOPES})).ok();
    assert_eq!(all["key"]["scopes"].as_array().map(Vec::len), Some(16));
}

#[test]
fn the_command_line_and_the_plane_see_the_same_keys() {
    let plane = SettingsFixture::open();
    let (id, secret) = plane.key(&["labels:read"]);
    let listed = plane.desk.server.database.run(&["key", "list", "--store", "desk"]);
    let line = listed.lines().find(|line| line.contains(&id)).unwrap_or_else(|| panic!("no {id} in {listed}"));
    assert!(line.contains(&format!("cp_••••{}", &secret[39..])), "{line}");
    plane.desk.server.database.run(&["key", "edit", "--store", "desk", "--id", &id, "--name", "From the terminal"]);
    assert_eq!(plane.get("/keys").send().row(&id)["name"], "From the terminal");
}
