//! Tests of the two feeds of a store, from which a client reads what has changed: the feed of events and the feed of changed records. Both
//! support long polling (the query parameter `wait`). Also tests the command `counterpart copy`, which keeps a copy of a store up to date.

use std::{collections::BTreeMap, fs, thread, time::Duration};

use serde_json::{Value, json};

use super::{SettingsFixture, text};
use crate::fixture::line;

/// The kinds of records, in an order in which a record comes after the records that it refers to.
const KINDS: [&str; 13] = [
    "role",
    "user",
    "team",
    "account",
    "template",
    "label",
    "contactField",
    "ticketField",
    "contact",
    "conversation",
    "ticket",
    "message",
    "comment",
];

fn rows(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Reads a snapshot of all records page by page. Returns the position in the change feed at which the snapshot began, and the number of
/// records of each kind.
fn snapshot(fixture: &SettingsFixture) -> (i64, BTreeMap<String, usize>) {
    let (mut start, mut counts) = (None, BTreeMap::new());
    for kind in KINDS {
        let mut after: Option<String> = None;
        loop {
            let mut call = fixture.get("/changes/snapshot").query("kind", kind).query("limit", 3);
            if let Some(after) = &after {
                call = call.query("afterId", after);
            }
            let answer = call.send();
            let page = rows(&answer.ok());
            let next: i64 = answer.header("x-next-after").and_then(|text| text.parse().ok()).expect("a number");
            start.get_or_insert(next);
            assert!(page.iter().all(|item| item["kind"] == kind && item["record"]["id"] == item["id"]));
            *counts.entry(kind.to_owned()).or_default() += page.len();
            after = page.last().map(|last| text(&last["id"]));
            if page.len() < 3 {
                break;
            }
        }
    }
    (start.unwrap_or_default(), counts)
}

#[test]
fn a_feed_of_events_waits_and_selects_kinds() {
    let fixture = SettingsFixture::open();
    let shop = &fixture.shop;
    assert_eq!(fixture.get("/events").query("wait", 1).send().ok(), json!([]));
    for bad in ["31", "-1", "1.5", "x", ""] {
        fixture.get("/events").query("wait", bad).send().refuses("wait");
    }
    fixture.get("/events").raw_query("wait=0&wait=1").send().refuses("wait");
    fixture.get("/events").query("kinds", "ticket.opened,ticket.shut").send().refuses("kinds");
    fixture.get("/events").query("kinds", "Ticket.opened").send().refuses("kinds");
    fixture.get("/events").raw_query("kinds[]=ticket.opened").send().fails(400);
    // Requests with `wait` block until an event of the requested kinds is recorded.
    let waiting = |kinds: &'static str| fixture.get("/events").query("wait", 30).query("kinds", kinds).exchange();
    thread::scope(|scope| {
        let any = scope.spawn(|| waiting(""));
        let closed = scope.spawn(|| waiting("ticket.closed,ticket.opened"));
        thread::sleep(Duration::from_millis(300));
        shop.set("t-free", "f-text", json!("now")).ok();
        let any = any.join().expect("an answer");
        assert_eq!((rows(&any.ok()).len(), any.header("x-next-after")), (1, Some("1")));
        assert!(!closed.is_finished(), "this event is not of interest");
        shop.close(json!({"ticketId": "t-free"})).ok();
        let closed = closed.join().expect("an answer");
        assert_eq!(rows(&closed.ok())[0]["type"], "ticket.closed");
    });
    let all = rows(&fixture.get("/events").send().ok());
    let of = |kinds: &str, after: i64| {
        let answer = fixture.get("/events").raw_query(kinds).query("after", after).send();
        let sequences: Vec<i64> = rows(&answer.ok()).iter().filter_map(|event| event["sequence"].as_i64()).collect();
        (sequences, answer.header("x-next-after").and_then(|text| text.parse::<i64>().ok()))
    };
    let last = all.len() as i64;
    assert_eq!(of("kinds=ticket.ticket_field_updated&kinds=ticket.closed", 0).0.len(), all.len());
    assert_eq!(of("kinds=ai.escalated", 0), (vec![], Some(last)), "there is nothing to go back to");
    assert_eq!(of("kinds=ticket.ticket_field_updated&limit=1", 0), (vec![1], Some(1)));
    assert_eq!(of("kinds=ticket.ticket_field_updated", last), (vec![], Some(last)));
}

#[test]
fn waiting_requests_get_a_response_when_the_server_stops() {
    let fixture = SettingsFixture::open();
    let call = fixture.get("/events").query("wait", 30);
    let waiting = thread::spawn(move || call.exchange());
    thread::sleep(Duration::from_millis(500));
    drop(fixture);
    // When the server stops, it responds to requests that are still blocked by `wait`. Otherwise their connections would be closed without
    // a response.
    assert_eq!(waiting.join().expect("an answer").ok(), json!([]));
}

#[test]
fn every_change_of_a_record_is_in_the_feed() {
    let fixture = SettingsFixture::open();
    let shop = &fixture.shop;
    fixture.get("/changes").query("after", 0).send().fails(410);
    fixture.get("/changes").send().refuses("after");
    fixture.get("/changes/snapshot").send().refuses("kind");
    fixture.get("/changes/snapshot").query("kind", "tickets").send().refuses("kind");
    fixture.get("/changes/snapshot").query("kind", "ticket").query("afterId", "").send().refuses("afterId");
    let (start, counts) = snapshot(&fixture);
    assert!(["role", "user", "account", "label", "ticketField", "contact", "conversation", "ticket"].iter().all(|kind| counts[*kind] > 0));
    let mut after = start;
    // Returns the changes since the last call: the kind and the id of each changed record, with a minus before deleted records.
    let mut got = || -> Vec<String> {
        let answer = fixture.get("/changes").query("after", after).send();
        let changes = rows(&answer.ok());
        assert_eq!(answer.header("x-up-to-date"), Some("true"));
        after = answer.header("x-next-after").and_then(|text| text.parse().ok()).expect("a number");
        assert!(changes.iter().all(|change| change["record"].is_null() == (change["deleted"] == true)));
        let sign = |change: &Value| if change["deleted"] == true { "-" } else { "" };
        let mut got: Vec<_> = changes.iter().map(|one| format!("{}{} {}", sign(one), text(&one["kind"]), text(&one["id"]))).collect();
        got.sort();
        got
    };
    assert_eq!(got(), [""; 0]);
    let contact = text(&shop.api.post("/contacts", json!({"firstName": "New"})).send().ok()["id"]);
    assert_eq!(got(), [format!("contact {contact}")]);
    shop.read("conv-free").ok();
    assert_eq!(got(), ["conversation conv-free"]);
    shop.comment("conv-free", "seen").ok();
    assert!(got()[0].starts_with("comment "));
    shop.label("conv-free", &["lab-0"], &[]).ok();
    assert!(got().contains(&"conversation conv-free".to_owned()));
    shop.set("t-free", "f-text", json!("now")).ok();
    assert_eq!(got(), ["ticket t-free"]);
    fixture
        .call("PUT", "/accounts/users")
        .json(json!({"accountId": "acc-ann", "userIds": [crate::fixture::ANN, crate::fixture::BO]}))
        .send()
        .ok();
    assert!(got().contains(&"account acc-ann".to_owned()));
    fixture.call("DELETE", "/users").query("id", "seat-invited").send().ok();
    assert_eq!(got(), ["-user seat-invited"]);
    shop.server.database.import(
        "desk",
        &[
            line("role", json!({"id": "role-new", "name": "New", "kind": "agent"})),
            line("label", json!({"id": "lab-new", "label": "New", "color": "#123456"})),
            line("team", json!({"id": "team-new", "name": "New", "users": [crate::fixture::ANN]})),
        ],
    );
    let imported = got();
    assert!(["label lab-new", "role role-new", "team team-new"].iter().all(|one| imported.contains(&(*one).to_owned())), "{imported:?}");
    // A refused write adds nothing to the feed.
    assert_ne!(shop.set("t-free", "f-none", json!("x")).status, 200);
    assert_eq!(got(), [""; 0]);
    let end = after;
    fixture.get("/changes").query("after", end + 1).send().fails(410);
    let labels = rows(&fixture.get("/changes").query("after", start).query("kinds", "label,role").send().ok());
    assert_eq!(labels.len(), 2);
    fixture.get("/changes").query("after", start).query("kinds", "labels").send().refuses("kinds");
    // A request with `wait` blocks until a record changes.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.get("/changes").query("after", end).query("wait", 30).exchange());
        thread::sleep(Duration::from_millis(300));
        shop.comment("conv-free", "again").ok();
        assert_eq!(rows(&waiting.join().expect("an answer").ok())[0]["kind"], "comment");
    });
}

#[test]
fn the_copy_command_produces_the_same_records_as_an_export() {
    let fixture = SettingsFixture::open();
    let (shop, database) = (&fixture.shop, &fixture.shop.server.database);
    let (file, url) = (database.folder().join("copy.ndjson"), format!("http://{}", shop.server.address));
    let to = file.to_string_lossy().into_owned();
    let arguments = ["copy", "--to", &to, "--url", &url, "--once"];
    let copy = |token: &str| database.run_with(&[("COUNTERPART_TOKEN", token)], &arguments);
    let equal = || {
        let (copied, exported) = (fs::read_to_string(&file).expect("the copy"), database.run(&["export", "--store", "desk"]));
        assert!(copied.trim_end() == exported, "the copy differs:\n{copied}\n{exported}");
    };
    copy(&fixture.token);
    equal();
    shop.comment("conv-free", "seen").ok();
    shop.api.post("/contacts", json!({"firstName": "New"})).send().ok();
    fixture.call("DELETE", "/users").query("id", "seat-invited").send().ok();
    copy(&fixture.token);
    equal();
    // Makes the server forget the changes that follow the copy's position in the feed. So the next copy begins again with a snapshot.
    database.sql("UPDATE change_feeds SET last_sequence = last_sequence + 1000, forgotten = last_sequence + 1000");
    shop.comment("conv-free", "later").ok();
    copy(&fixture.token);
    equal();
    // With an invalid or missing token, the command fails and does not change the copy.
    let refused = database.fails_with(&[("COUNTERPART_TOKEN", "nonsense")], &arguments);
    assert!(refused.contains("COUNTERPART_TOKEN") && refused.contains("settings token"), "{refused}");
    let refused = database.fails(&arguments);
    assert!(refused.contains("COUNTERPART_TOKEN"), "{refused}");
    equal();
    if let (false, Some((base, _))) = (database.url.starts_with("sqlite:"), database.url.rsplit_once('/')) {
        // Copies into a PostgreSQL database. The test uses the server's own database, in which the copy has separate tables.
        assert!(!base.is_empty());
        let arguments = ["copy", "--to", &database.url, "--url", &url, "--once"];
        database.run_with(&[("COUNTERPART_TOKEN", &fixture.token)], &arguments);
        let records = database.ask("SELECT record FROM counterpart_records WHERE kind = 'comment' ORDER BY id");
        let exported = database.run(&["export", "--store", "desk"]);
        assert!(!records.is_empty() && records.iter().all(|record| exported.contains(record)));
    }
}
