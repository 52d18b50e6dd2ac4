//! Tests of the grants (permissions) of tokens: an operation of the settings API that requires a grant refuses tokens that have only other
//! grants.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{SettingsFixture, WITHOUT_CREDENTIAL, text};
use crate::{contract, fixture::ANN};

const GRANTS: [&str; 7] = ["events", "inbound", "keys", "webhooks", "team", "audit", "all"];

/// Each grant, with the ids of the operations that require it. The operations under the empty name require no grant; most of them concern
/// the caller's own session.
const OPERATIONS: [(&str, &[&str]); 8] = [
    ("events", &["listChanges", "listEvents", "listRecords"]),
    ("inbound", &["receiveMessage"]),
    ("keys", &["listKeys", "createKey", "editKey", "rotateKey", "activateKey", "deactivateKey", "deleteKey"]),
    (
        "webhooks",
        &[
            "listWebhooks",
            "createWebhook",
            "editWebhook",
            "rotateWebhook",
            "enableWebhook",
            "disableWebhook",
            "deleteWebhook",
            "testWebhook",
            "replayWebhook",
            "listAttempts",
            "getSentEvent",
            "listBridges",
            "setBridge",
            "rotateBridge",
            "removeBridge",
        ],
    ),
    (
        "team",
        &[
            "listSeats",
            "removeUser",
            "listCredentials",
            "endCredential",
            "listAccountUsers",
            "setAccountUsers",
            "unassignTicket",
            "snoozeTicket",
            "unsnoozeTicket",
            "escalateConversation",
            "listDrafts",
            "listDraftMessages",
            "editDraft",
            "releaseDraft",
            "discardDraft",
            "listUndeliveredMessages",
            "retryMessage",
        ],
    ),
    ("audit", &["listAuditEntries"]),
    ("all", &["addUser", "advanceClock", "setUserRole"]),
    ("", &["openSession", "sendLink", "getSession", "endSession", "getClock"]),
];

fn token(fixture: &SettingsFixture, can: &str) -> String {
    fixture.shop.server.database.run(&["settings", "token", "--store", "desk", "--user", ANN, "--can", can])
}

#[test]
fn every_settings_operation_requires_its_expected_grant() {
    let fixture = SettingsFixture::open();
    let of = |grant: &'static str, ids: &'static [&str]| ids.iter().map(move |id| ((*id).to_owned(), grant.to_owned()));
    let expected: BTreeMap<String, String> = OPERATIONS.into_iter().flat_map(|(grant, ids)| of(grant, ids)).collect();
    let mut found = BTreeMap::new();
    for operation in contract::settings(&fixture.api).operations() {
        let grant = operation.node.get("x-required-grant").map(text).unwrap_or_default();
        let description = text(&operation.node["description"]);
        assert!(grant.is_empty() || description.ends_with(&format!("\n\nA token needs the grant `{grant}`.")), "{description}");
        found.insert(operation.id, grant);
    }
    assert_eq!(found, expected, "an operation is not in the table of this test, or has another grant");
}

#[test]
fn an_operation_accepts_its_grant_and_refuses_every_other() {
    let fixture = SettingsFixture::open();
    let tokens = GRANTS.map(|grant| (grant, token(&fixture, grant)));
    let mut operations = contract::settings(&fixture.api).operations();
    // `endSession` ends the token that the request uses, so it comes last.
    operations.sort_by_key(|operation| operation.id == "endSession");
    let mut requests = 0;
    for operation in operations.iter().filter(|operation| !WITHOUT_CREDENTIAL.contains(&operation.id.as_str())) {
        let required = operation.node.get("x-required-grant").map(text);
        let path = format!("/settings/v1{}", operation.path);
        fixture.api.raw(&operation.method, &path).send().fails(401);
        for (grant, token) in &tokens {
            let answer = fixture.call_as(token, &operation.method, &operation.path).send();
            let permits = *grant == "all" || required.as_deref().is_none_or(|required| required == *grant);
            if permits {
                assert!(![401, 403].contains(&answer.status), "{} with {grant}: {}", operation.id, answer.described());
            } else {
                answer.fails(403);
                let required = required.as_deref().unwrap_or_default();
                let taught =
                    format!("the token lacks the grant `{required}`; `counterpart settings token --can {required}` prints one that has it");
                assert_eq!(answer.body()["error"]["message"], taught);
            }
            requests += 1;
        }
    }
    assert!(requests >= 38 * 7, "{requests}");
    for (_, token) in &tokens {
        fixture.call_as(token, "GET", "/session").send().fails(401);
    }
}

#[test]
fn the_grants_of_a_token_are_shown_in_its_session_and_audit_entry() {
    let fixture = SettingsFixture::open();
    let database = &fixture.shop.server.database;
    let make = |can: &str| {
        let printed = database.run(&["settings", "token", "--store", "desk", "--user", ANN, "--can", can, "--json"]);
        serde_json::from_str::<Value>(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"))
    };
    let made = make(" inbound,events, inbound");
    let expected = json!(["events", "inbound"]);
    assert_eq!(made["can"], expected);
    assert_eq!(fixture.call_as(&text(&made["token"]), "GET", "/session").send().ok()["can"], expected);
    let entries = fixture.get("/audit").query("subjectType", "session").send().ok();
    assert_eq!((&entries[0]["action"], &entries[0]["detail"]["can"]), (&json!("session.granted"), &expected));
    // A token that was created without `--can` has the grant `all`, which permits everything.
    assert_eq!(fixture.get("/session").send().ok()["can"], json!(["all"]));
    assert_eq!(make("keys,all")["can"], json!(["all"]));
    // The audit entry of a sign-in link shows no grants.
    super::grant(&fixture.shop, "link", ANN);
    let entries = fixture.get("/audit").query("subjectType", "session").send().ok();
    assert_eq!((&entries[0]["detail"]["kind"], entries[0]["detail"].get("can")), (&json!("link"), None), "{entries}");
    for wrong in ["event", "", "events,", "Events", "events;keys"] {
        let refused = database.fails(&["settings", "token", "--store", "desk", "--user", ANN, "--can", wrong]);
        assert!(refused.contains("the grants are events, inbound, keys, webhooks, team, audit, all"), "{refused}");
    }
    // Grants add nothing to a role: an admin with every grant may not do what only an owner may.
    let admin = super::grant(&fixture.shop, "token", super::DEE);
    let seats = fixture.get("/users").send().ok();
    let owner = seats.as_array().into_iter().flatten().find(|seat| seat["userId"] == ANN).expect("Ann has a seat");
    fixture.call_as(&admin, "DELETE", "/users").query("id", text(&owner["id"])).send().fails(403);
}
