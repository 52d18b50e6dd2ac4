//! Tests of webhooks in the settings API: their management, the delivery log and replays. Also tests the list of events (`/events`).

use serde_json::{Value, json};

use super::{SettingsFixture, text};
use crate::{
    REV_A,
    delivery_receiver::{Endpoint, PRIVATE, until},
    fixture::BO,
    webhooks::KINDS,
    writes::parsed,
};

const HOOK: &str = "https://hooks.example.com/counterpart";

#[test]
fn a_subscription_is_created_changed_and_removed() {
    let fixture = SettingsFixture::open();
    let made = fixture.post("/webhooks", json!({"url": HOOK, "events": ["ticket.closed", "ai.escalated"], "accountId": "acc-line"})).ok();
    let secret = text(&made["secret"]);
    assert!(secret.starts_with("whsec_"), "{secret}");
    let id = text(&made["webhook"]["id"]);
    let hook = fixture.get("/webhooks").send().row(&id);
    assert_eq!(hook, made["webhook"]);
    assert_eq!(
        (&hook["events"], &hook["accountId"], &hook["enabled"]),
        (&json!(["ai.escalated", "ticket.closed"]), &json!("acc-line"), &json!(true))
    );
    let edit = |body: Value| fixture.call("PATCH", "/webhooks").json(body).send();
    let moved = edit(json!({"webhookId": id, "url": "https://hooks.example.com/two"})).ok();
    assert_eq!((&moved["url"], &moved["accountId"]), (&json!("https://hooks.example.com/two"), &json!("acc-line")));
    let changes = fixture.changes();
    edit(json!({"webhookId": id, "events": []})).refuses("body.events");
    assert_eq!(fixture.changes(), changes);
    let widened = edit(json!({"webhookId": id, "events": null, "accountId": null})).ok();
    assert_eq!((widened["events"].as_array().map(Vec::len), widened.get("accountId")), (Some(11), None));
    assert_eq!(edit(json!({"webhookId": id, "accountId": "acc-wa"})).ok()["accountId"], "acc-wa");
    let disabled = fixture.post("/webhooks/disable", json!({"webhookId": id})).ok();
    assert_eq!((&disabled["enabled"], disabled["disabledReason"].is_string()), (&json!(false), true));
    fixture.post("/webhooks/test", json!({"webhookId": id})).fails(409);
    fixture.post("/webhooks/replay", json!({"webhookId": id})).fails(409);
    fixture.post("/webhooks/enable", json!({"webhookId": id})).ok();
    let rotated = fixture.post("/webhooks/rotate", json!({"webhookId": id})).ok();
    assert_ne!(text(&rotated["secret"]), secret);
    for answer in [fixture.get("/webhooks").send(), fixture.get("/audit").send()] {
        assert!(!answer.text.contains("whsec_"), "a secret was shown again");
    }
    fixture.call("DELETE", "/webhooks").query("webhookId", &id).send().ok();
    fixture.call("DELETE", "/webhooks").query("webhookId", &id).send().fails(404);
    fixture.call("DELETE", "/webhooks").send().refuses("webhookId");
    assert_eq!(fixture.get("/webhooks").send().ok(), json!([]));
}

#[test]
fn an_invalid_subscription_is_refused() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    for (body, field) in [
        (json!({}), "body.url"),
        (json!({"url": "example.com"}), "body.url"),
        (json!({"url": "ftp://example.com"}), "body.url"),
        (json!({"url": "https://a:b@example.com"}), "body.url"),
        (json!({"url": format!("https://example.com/{}", "x".repeat(2048))}), "body.url"),
        (json!({"url": HOOK, "events": ["ticket.close"]}), "body.events[0]"),
        (json!({"url": HOOK, "events": "ticket.closed"}), "body.events"),
        (json!({"url": HOOK, "events": null}), "body.events"),
        (json!({"url": HOOK, "events": []}), "body.events"),
        (json!({"url": HOOK, "accountId": "acc-nope"}), "body.accountId"),
        (json!({"url": HOOK, "secret": "whsec_mine"}), "body.secret"),
    ] {
        fixture.post("/webhooks", body).refuses(field);
    }
    for (path, body, field) in [
        ("/webhooks/replay", json!({"webhookId": "x", "since": "yesterday"}), "body.since"),
        ("/webhooks/replay", json!({"webhookId": "x", "missing": 1}), "body.missing"),
        ("/webhooks/replay", json!({}), "body.webhookId"),
        ("/webhooks/test", json!({}), "body.webhookId"),
    ] {
        fixture.post(path, body).refuses(field);
    }
    for path in ["/webhooks/enable", "/webhooks/disable", "/webhooks/rotate", "/webhooks/test", "/webhooks/replay"] {
        fixture.post(path, json!({"webhookId": "nope"})).fails(404);
    }
    fixture.call("PATCH", "/webhooks").json(json!({"webhookId": "nope", "url": HOOK})).send().fails(404);
    fixture.get("/webhooks/attempts").send().refuses("webhookId");
    fixture.get("/webhooks/attempts").query("webhookId", "nope").send().fails(404);
    for (name, values) in [("limit", ["0", "501", "x", "", "1.5"]), ("before", ["-1", "x", "", "+1", "99999999999999999999"])] {
        for value in values {
            fixture.get("/webhooks/attempts").query("webhookId", "x").query(name, value).send().refuses(name);
        }
    }
    assert_eq!(fixture.changes(), before);
}

#[test]
fn creating_or_editing_a_webhook_refuses_a_private_address() {
    let fixture = SettingsFixture::open();
    let id = text(&fixture.post("/webhooks", json!({"url": "https://example.com/"})).ok()["webhook"]["id"]);
    for url in
        ["http://127.0.0.1:9/", "https://10.0.0.1/", "http://localhost:3000/hooks", "http://[::ffff:127.0.0.1]/", "http://2130706433/"]
    {
        for (method, body) in [("POST", json!({"url": url})), ("PATCH", json!({"webhookId": id, "url": url}))] {
            let message = fixture.call(method, "/webhooks").json(body).send().fails(400);
            assert!(message.starts_with("`body.url`") && message.contains("not a public address"), "{method} {url}: {message}");
        }
    }
    let settings = &[("COUNTERPART_ALLOW_PRIVATE_TARGETS", "false")];
    let create = ["webhook", "create", "--store", "desk", "--url", "http://127.0.0.1:9/"];
    let complaint = fixture.shop.server.database.fails_with(settings, &create);
    assert!(complaint.contains("`--allow-private-targets`"), "{complaint}");
}

/// The webhook's address is on this machine, to which the server refuses to deliver. The delivery log contains each refusal as the result
/// of an attempt.
#[test]
fn the_log_lists_every_attempt_newest_first() {
    let fixture = SettingsFixture::open();
    let made = fixture.shop.server.database.run(&["webhook", "create", "--store", "desk", "--url", "http://127.0.0.1:9/", "--json"]);
    let id = text(&serde_json::from_str::<Value>(&made).expect("JSON")["id"]);
    let attempts = |query: &[(&str, String)]| {
        let call =
            query.iter().fold(fixture.get("/webhooks/attempts").query("webhookId", &id), |call, (name, value)| call.query(name, value));
        call.send().ok().as_array().cloned().unwrap_or_default()
    };
    let mut events = Vec::new();
    for n in 1..=3 {
        events.push(text(&fixture.post("/webhooks/test", json!({"webhookId": id})).ok()["eventId"]));
        fixture.shop.until("the attempt is in the log", || attempts(&[]).len() >= n);
    }
    let first = |attempt: &&Value| attempt["attempt"] == 1;
    let log = attempts(&[]);
    let got: Vec<_> = log.iter().filter(first).map(|attempt| text(&attempt["eventId"])).collect();
    assert_eq!(got, events.into_iter().rev().collect::<Vec<_>>());
    let newest = &log[0];
    assert_eq!((&newest["type"], &newest["outcome"], newest.get("status")), (&json!("webhook.test"), &json!("retrying"), None));
    assert!(newest["reason"].as_str().is_some_and(|reason| reason.contains("public")) && newest["nextAttemptAt"].is_string(), "{newest}");
    let top = attempts(&[("limit", "1".to_owned())]);
    let rest = attempts(&[("before", top[0]["position"].to_string())]);
    assert!(rest.iter().all(|attempt| attempt["position"].as_i64() < top[0]["position"].as_i64()) && rest.len() >= 2);
    let hook = fixture.get("/webhooks").send().row(&id);
    assert!(hook["failingSince"].is_string(), "{hook}");
}

#[test]
fn every_kind_of_event_is_delivered() {
    let fixture = SettingsFixture::with(PRIVATE);
    let (shop, endpoint) = (&fixture.shop, Endpoint::open());
    let id = text(&fixture.post("/webhooks", json!({"url": endpoint.url()})).ok()["webhook"]["id"]);
    shop.set("t-free", "f-text", json!("now")).ok();
    shop.label("conv-free", &["lab-c"], &["lab-a"]).ok();
    let snoozed = fixture.post("/tickets/snooze", json!({"ticketId": "t-set", "until": "2099-01-01T00:00:00Z"})).ok();
    assert_eq!(snoozed["assigneeUserId"], BO);
    fixture.post("/tickets/unassign", json!({"ticketId": "t-set"})).ok();
    fixture.post("/conversations/escalate", json!({"conversationId": "conv-free", "reason": "angry"})).ok();
    let body = json!({"contactId": "con-mia", "contactFieldId": "c-text", "value": "x", "updatedAt": "2025-01-20T00:00:00.000Z"});
    shop.patch("/contacts/field-values", body).send().ok();
    if !REV_A {
        shop.post("/tickets/assign", json!([{"ticketId": "t-asleep", "assigneeUserId": BO}])).send().ok();
    }
    shop.post("/messages", json!({"conversationId": "conv-free", "text": "hello"})).send().ok();
    shop.post("/tickets/close", json!({"ticketId": "t-set"})).send().ok();
    let mail = json!({
        "accountId": "acc-ann", "referenceId": "thread-1", "externalId": "x-1", "sender": {"id": "eva@example.com", "name": "Eva"},
        "text": "Where is it?", "emailSubject": "My order",
    });
    fixture.post("/messages", mail).ok();
    fixture.post("/webhooks/test", json!({"webhookId": id})).ok();
    // The older revision of the API has no operation that assigns tickets, so no `ticket.assigned` is expected.
    let mut expected: Vec<_> = KINDS.into_iter().filter(|kind| !REV_A || *kind != "ticket.assigned").chain(["webhook.test"]).collect();
    expected.sort_unstable();
    until("every kind came", || {
        let mut came: Vec<_> = endpoint.seen().iter().map(|seen| text(&parsed(&seen.body)[0]["type"])).collect();
        came.sort_unstable();
        came.dedup();
        came == expected
    });
    until("the attempts are in the log", || {
        let log = fixture.get("/webhooks/attempts").query("webhookId", &id).send().ok();
        log.as_array().is_some_and(|log| log.len() >= expected.len() && log.iter().all(|attempt| attempt["status"] == 200))
    });
    // For each delivered event, the API shows the same body that the endpoint received.
    let sent = |event: &str| fixture.get("/webhooks/sent").query("webhookId", &id).query("eventId", event).send();
    for seen in endpoint.seen() {
        assert_eq!(sent(seen.id()).ok()["body"], seen.body);
    }
    sent("nobody").fails(404);
    fixture.get("/webhooks/sent").query("webhookId", "nobody").query("eventId", endpoint.seen()[0].id()).send().fails(404);
    fixture.get("/webhooks/sent").query("webhookId", &id).send().refuses("eventId");
}

#[test]
fn a_dry_run_returns_the_number_of_events_to_be_replayed() {
    let fixture = SettingsFixture::open();
    let shop = &fixture.shop;
    shop.label("conv-free", &["lab-0", "lab-1"], &["lab-a"]).ok();
    let id = text(&fixture.post("/webhooks", json!({"url": HOOK, "events": ["conversation.label_added"]})).ok()["webhook"]["id"]);
    let replay = |more: Value| {
        let mut body = json!({"webhookId": id});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        fixture.post("/webhooks/replay", body).ok()["count"].clone()
    };
    let before = fixture.changes();
    assert_eq!(replay(json!({"dryRun": true})), 2);
    assert_eq!(replay(json!({"dryRun": true, "missing": true})), 2);
    assert_eq!(replay(json!({"dryRun": true, "until": "2020-01-01T00:00:00Z"})), 0);
    assert_eq!(fixture.changes(), before, "a dry run is no change");
    for dry in [true, false] {
        fixture.post("/webhooks/replay", json!({"webhookId": id, "eventId": "nobody", "dryRun": dry})).misses("body.eventId");
    }
    assert_eq!(fixture.changes(), before, "what does not exist is no change");
    let events = fixture.get("/events").send().ok();
    let event = events[0]["id"].clone();
    // Returns the timestamp of an event with additional digits below a millisecond. The result is slightly later than the event's own time,
    // which is in whole milliseconds. So a `since` with the result excludes the event, and an `until` includes it.
    let finer = |event: &Value| text(&event["timestamp"]).replace('Z', "0001Z");
    assert_eq!(replay(json!({"dryRun": true, "until": events[1]["timestamp"], "since": finer(&events[0])})), 0);
    assert_eq!(replay(json!({"dryRun": true, "until": finer(&events[1])})), 2);
    assert_eq!(replay(json!({"dryRun": true, "since": finer(&events[1])})), 0);
    fixture.post("/webhooks/replay", json!({"webhookId": id, "since": "2026-01-31T10:00:60Z"})).refuses("body.since");
    assert_eq!(replay(json!({"eventId": event, "since": "2020-01-01T00:00:00Z"})), 1);
    assert_eq!(replay(json!({"missing": true})), 1, "the other one");
    assert_eq!(fixture.changes_since(before).len(), 2);
}

#[test]
fn the_event_feed_lists_every_event_with_the_newest_last() {
    let fixture = SettingsFixture::open();
    let shop = &fixture.shop;
    assert_eq!(fixture.get("/events").send().ok(), json!([]));
    shop.set("t-free", "f-text", json!("now")).ok();
    shop.label("conv-free", &["lab-0"], &["lab-a"]).ok();
    fixture.post("/tickets/unassign", json!({"ticketId": "t-set"})).ok();
    let all = fixture.get("/events").send().ok();
    let printed = parsed(&shop.server.database.run(&["events", "--store", "desk"]));
    assert_eq!(all, Value::from(printed));
    let all = all.as_array().cloned().unwrap_or_default();
    assert_eq!(all.iter().map(|event| event["sequence"].clone()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!((&all[3]["type"], &all[3]["actor"]["type"]), (&json!("ticket.unassigned"), &json!("user")));
    assert_eq!(all[3]["data"]["previousAssigneeUserId"], BO);
    let (mut walked, mut after) = (Vec::new(), 0);
    loop {
        let page = fixture.get("/events").query("after", after).query("limit", 3).send().ok().as_array().cloned().unwrap_or_default();
        let Some(last) = page.last() else { break };
        after = last["sequence"].as_i64().unwrap_or_default();
        walked.extend(page);
    }
    assert_eq!(walked, all);
    for bad in ["-1", "x", "", "1.0"] {
        fixture.get("/events").query("after", bad).send().refuses("after");
    }
    fixture.get("/events").query("limit", 501).send().refuses("limit");
    fixture.get("/events").raw_query("after=1&after=2").send().refuses("after");
}

#[test]
fn the_delivery_log_shows_the_beginning_of_each_error_response() {
    let fixture = SettingsFixture::with(PRIVATE);
    let endpoint = Endpoint::replying(|_| ("500 Oops", format!("\0ผิด {}", "x".repeat(70_000))));
    let id = text(&fixture.post("/webhooks", json!({"url": endpoint.url()})).ok()["webhook"]["id"]);
    let newest = |attempts: usize| {
        let log = || fixture.get("/webhooks/attempts").query("webhookId", &id).send().ok();
        until("the attempt is in the log", || log().as_array().is_some_and(|log| log.len() == attempts));
        log()[0].clone()
    };
    fixture.post("/webhooks/test", json!({"webhookId": id})).ok();
    let answer = text(&newest(1)["answer"]);
    assert_eq!(answer, format!("\u{fffd}ผิด {}", "x".repeat(995)));
    endpoint.replies(|_| ("200 OK", "noted".to_owned()));
    fixture.post("/webhooks/test", json!({"webhookId": id})).ok();
    let second = newest(2);
    assert_eq!((second["status"].clone(), second.get("answer")), (json!(200), None));
}
