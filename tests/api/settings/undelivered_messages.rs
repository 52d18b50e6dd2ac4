//! Tests of undelivered messages in the settings API: listing them with the reason of the failure, and sending them again.
//! `src/delivery/outbound/tests/manual_retries.rs` tests concurrent retries.

use serde_json::{Value, json};

use super::SettingsFixture;
use crate::{client::Answer, harness::SIMULATED, writes::acknowledged};

fn listed(fixture: &SettingsFixture, state: &str) -> Vec<Value> {
    fixture.get("/messages/undelivered").query("state", state).send().ok().as_array().cloned().unwrap_or_default()
}

fn retry(fixture: &SettingsFixture, id: &Value) -> Answer {
    fixture.call("POST", "/messages/retry").json(json!({"messageId": id})).send()
}

#[test]
fn a_message_that_failed_is_listed_and_sent_again() {
    let fixture = SettingsFixture::with(SIMULATED);
    fixture.shop.text("conv-free", "simulate:refuse").is(acknowledged());
    fixture.shop.until("the refusal is known", || !listed(&fixture, "failed").is_empty());
    let failed = listed(&fixture, "failed");
    assert_eq!(failed.len(), 1);
    let (found, id) = (&failed[0], &failed[0]["messageId"]);
    assert_eq!(
        (&found["conversationId"], &found["accountId"], &found["text"], &found["state"], &found["attempts"], &found["canBeRetried"]),
        (&json!("conv-free"), &json!("acc-line"), &json!("simulate:refuse"), &json!("failed"), &json!(1), &json!(true))
    );
    assert_eq!(found["reason"], "the simulated channel refuses this message");
    assert!(found["contactName"].as_str().is_some_and(|name| !name.is_empty()), "{found}");
    assert!(found["failedAt"].is_string() && found.get("nextAttemptAt").is_none(), "{found}");
    // Without `state`, the failed messages are listed. The page after the last of them is empty.
    assert_eq!(fixture.get("/messages/undelivered").send().ok(), json!(failed));
    assert_eq!(fixture.get("/messages/undelivered").query("before", id.as_str().unwrap_or_default()).send().ok(), json!([]));

    retry(&fixture, id).is(acknowledged());
    fixture
        .shop
        .until("it failed again", || listed(&fixture, "failed").first().is_some_and(|again| again["failedAt"] != found["failedAt"]));
    let again = listed(&fixture, "failed")[0]["failedAt"].clone();
    fixture.shop.server.database.run(&["message", "retry", "--store", "desk", "--message", id.as_str().unwrap_or_default()]);
    fixture.shop.until("it failed a third time", || listed(&fixture, "failed").first().is_some_and(|third| third["failedAt"] != again));
    let entries = fixture.get("/audit").query("subjectType", "message").send().ok();
    assert_eq!(
        (&entries[0]["action"], &entries[0]["subjectId"], &entries[0]["detail"]),
        (&json!("message.retried"), id, &json!({"former": "failed"}))
    );
}

#[test]
fn a_pending_message_is_listed_and_tried_at_once() {
    let fixture = SettingsFixture::with(SIMULATED);
    fixture.shop.text("conv-free", "simulate:down").is(acknowledged());
    // Makes further attempts due immediately until the third one has failed. The fourth one is then due only after the backoff.
    fixture.shop.until("it was tried thrice", || {
        fixture.shop.server.database.sql("UPDATE outbound SET due_at = 1 WHERE claim IS NULL AND attempts < 3");
        listed(&fixture, "pending")
            .first()
            .is_some_and(|one| one["attempts"] == 3 && one["nextAttemptAt"].as_str() > one["sentAt"].as_str())
    });
    let pending = listed(&fixture, "pending");
    assert_eq!((pending.len(), &pending[0]["reason"]), (1, &json!("the simulated channel is down")));
    assert!(pending[0]["nextAttemptAt"].is_string() && pending[0].get("failedAt").is_none(), "{pending:?}");
    let attempts = pending[0]["attempts"].as_i64();
    retry(&fixture, &pending[0]["messageId"]).is(acknowledged());
    fixture.shop.until("it was tried again", || listed(&fixture, "pending").first().is_some_and(|one| one["attempts"].as_i64() > attempts));
}

#[test]
fn retrying_a_message_that_cannot_be_sent_again_is_refused() {
    let fixture = SettingsFixture::with(SIMULATED);
    fixture.shop.text("conv-free", "delivered at once").is(acknowledged());
    let delivered = fixture.shop.newest("conv-free")["id"].clone();
    fixture.shop.until("it is delivered", || listed(&fixture, "pending").is_empty());
    retry(&fixture, &delivered).fails(409);
    // An inbound message cannot be sent again.
    assert_eq!(retry(&fixture, &json!("m-1")).fails(409), "`body.messageId` names a message that this server did not send");
    // Unknown messages: `no-such` does not exist, and `m-two` belongs to another store.
    for unknown in ["no-such", "m-two"] {
        retry(&fixture, &json!(unknown)).fails(404);
    }
    for body in [json!({}), json!({"messageId": null}), json!({"messageId": 5}), json!({"messageId": "m-1", "more": 1})] {
        fixture.call("POST", "/messages/retry").json(body).send().fails(400);
    }
    fixture.get("/messages/undelivered").query("state", "sent").send().fails(400);
    for state in ["failed", "pending"] {
        fixture.get("/messages/undelivered").query("state", state).query("before", "m-1").send().fails(404);
    }
    fixture.get("/messages/undelivered").query("limit", "0").send().fails(400);
    assert_eq!(listed(&fixture, "failed"), Vec::<Value>::new());
}
