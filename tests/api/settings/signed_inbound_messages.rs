//! Tests of inbound messages that are posted by a bridge, which is an endpoint that connects an account to its channel. The bridge signs
//! each message with its secret instead of sending a token. `src/app/signed_inbound_tests.rs` tests thousands of requests that are refused.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{SettingsFixture, text};
use crate::{client::Call, fixture::ANN};

#[expect(clippy::disallowed_methods, reason = "the signed request goes to a server with the real clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn message(account: &str, id: &str) -> Value {
    json!({"storeId": "desk", "accountId": account, "referenceId": "thread", "externalId": id, "sender": {"id": "u"}, "text": "hello"})
}

fn signed(fixture: &SettingsFixture, secret: &str, id: &str, time: u64, body: &Value) -> Call {
    let key = BASE64.decode(secret.strip_prefix("whsec_").expect("a secret's form")).expect("a secret's form");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
    mac.update(format!("{id}.{time}.{body}").as_bytes());
    let signature = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
    let call = fixture.api.raw("POST", "/settings/v1/messages").header("webhook-id", id).header("webhook-timestamp", &time.to_string());
    call.header("webhook-signature", &signature).header("content-type", "application/json").bytes(body.to_string())
}

fn bridge(fixture: &SettingsFixture, account: &str) -> String {
    let set = fixture.call("PUT", "/accounts/bridge").json(json!({"accountId": account, "url": "https://example.com/send"})).send();
    text(&set.ok()["secret"])
}

#[test]
fn a_signed_message_needs_no_token() {
    let fixture = SettingsFixture::open();
    let (secret, other) = (bridge(&fixture, "acc-line"), bridge(&fixture, "acc-ann"));
    let (before, time) = (fixture.changes(), now());
    let body = message("acc-line", "x-1");
    let call = || signed(&fixture, &secret, "m-1", time, &body);
    let taken = call().send().ok();
    assert_eq!(taken["duplicate"], false);
    call().send().fails(409);
    assert_eq!(signed(&fixture, &secret, "m-1", time + 1, &body).send().ok()["duplicate"], true);
    signed(&fixture, &secret, "m-2", time - 301, &message("acc-line", "x-2")).send().fails(401);
    let refused = [
        signed(&fixture, &other, "m-2", time, &message("acc-line", "x-2")),
        signed(&fixture, &secret, "m-2", time, &message("acc-ann", "x-2")),
        signed(&fixture, &secret, "m-2", time, &message("acc-wa", "x-2")),
        signed(&fixture, &secret, "m-2", time, &message("acc-none", "x-2")),
    ];
    let texts = refused.map(|call| {
        let answer = call.send();
        answer.fails(401);
        answer.body()["error"]["message"].clone()
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "the refusals tell accounts apart: {texts:?}");
    signed(&fixture, &secret, "m-2", time, &json!({})).send().fails(401);
    // A signature is accepted only for inbound messages: other operations refuse it.
    let elsewhere = signed(&fixture, &secret, "m-3", time, &body);
    fixture.api.raw("GET", "/settings/v1/events").send().fails(401);
    let mut call = fixture.api.raw("GET", "/settings/v1/keys");
    for (name, value) in &elsewhere.headers {
        call = call.header(name, value);
    }
    call.send().fails(401);
    assert_eq!(fixture.changes(), before, "inbound messages are no changes of settings");
    assert_eq!(fixture.shop.events().len(), 2);
    assert_eq!(fixture.shop.events()[0]["actor"]["type"], "contact");
}

#[test]
fn a_token_delivers_messages_only_to_its_own_store() {
    let fixture = SettingsFixture::open();
    let token = fixture.shop.server.database.run(&["settings", "token", "--store", "desk", "--user", ANN, "--can", "inbound"]);
    let post = |body: Value| fixture.call_as(&token, "POST", "/messages").json(body).send();
    post(message("acc-line", "x-1")).ok();
    let mut body = message("acc-line", "x-2");
    body["storeId"] = json!("two");
    post(body.clone()).refuses("body.storeId");
    body["storeId"] = json!(7);
    post(body.clone()).refuses("body.storeId");
    body["storeId"] = json!("x".repeat(65));
    post(body.clone()).refuses("body.storeId");
    body["storeId"] = Value::Null;
    post(body).ok();
    post(json!({"accountId": "acc-line", "referenceId": "thread", "externalId": "x-3", "sender": {"id": "u"}})).ok();
}

#[test]
fn refused_signatures_count_against_their_address() {
    let fixture = SettingsFixture::with(&[("COUNTERPART_RATE_LIMIT", "1/s")]);
    let secret = format!("whsec_{}", BASE64.encode([7; 32]));
    let status = |n: usize| signed(&fixture, &secret, "m", now(), &message("acc-line", &n.to_string())).exchange().status;
    assert_eq!(status(0), 401);
    assert!((1..50).any(|n| status(n) == 429), "no refusal counted");
    fixture.get("/session").send().ok();
}
