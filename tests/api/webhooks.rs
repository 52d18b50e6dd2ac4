//! Tests of webhooks: the commands that manage them, and the deliveries of a running server.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{
    client::Api,
    delivery_receiver::{Endpoint, PRIVATE, assert_secret, until},
    fixture::channels,
    harness::{ALL_SCOPES, Database, Server},
};

pub const KINDS: [&str; 11] = [
    "message.received",
    "message.sent",
    "ticket.opened",
    "ticket.closed",
    "ticket.assigned",
    "ticket.unassigned",
    "ticket.ticket_field_updated",
    "conversation.label_added",
    "conversation.label_removed",
    "contact.contact_field_updated",
    "ai.escalated",
];

#[track_caller]
fn lines(printed: &str) -> Vec<Value> {
    printed.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {line}: {error}"))).collect()
}

/// Creates a webhook with the command `webhook create`. Returns the printed webhook, which includes its secret.
#[track_caller]
pub fn create(database: &Database, url: &str, more: &[&str]) -> Value {
    let arguments = [&["webhook", "create", "--store", "shop", "--url", url, "--json"], more].concat();
    lines(&database.run(&arguments)).remove(0)
}

fn of<'a>(action: &'a str, hook: &'a Value) -> Vec<&'a str> {
    vec!["webhook", action, "--store", "shop", "--id", hook["id"].as_str().unwrap_or_default()]
}

#[track_caller]
pub fn run(database: &Database, action: &str, hook: &Value, more: &[&str]) -> String {
    database.run(&[&of(action, hook)[..], more].concat())
}

#[track_caller]
fn log(database: &Database, hook: &Value) -> Vec<Value> {
    lines(&run(database, "log", hook, &[]))
}

#[track_caller]
pub fn listed(database: &Database) -> Vec<Value> {
    let printed = database.run(&["webhook", "list", "--store", "shop"]);
    assert!(!printed.contains("whsec_") && !printed.to_lowercase().contains("secret"), "a secret is listed: {printed}");
    lines(&printed)
}

#[track_caller]
fn send(api: &Api, conversation: &str, text: &str) {
    api.post("/messages", json!({"conversationId": conversation, "text": text})).send().ok();
}

#[test]
fn webhooks_are_managed_by_commands() {
    let database = Database::with(&[("shop", channels())]);
    let url = "https://example.com/hooks?key=1";
    let plain = database.run(&["webhook", "create", "--store", "shop", "--url", url]);
    assert_secret(&plain);
    let chosen = create(&database, "http://example.com/", &["--events", "ticket.closed, message.sent", "--account", "acc-line"]);
    assert_secret(chosen["secret"].as_str().unwrap_or_default());
    let shown = listed(&database);
    assert_eq!(shown.len(), 2);
    assert_eq!((&shown[0]["url"], &shown[0]["events"], &shown[0]["enabled"]), (&json!(url), &json!(KINDS), &json!(true)));
    assert_eq!((shown[0].get("accountId"), shown[0].get("disabledReason")), (None, None));
    let mut made = chosen.clone();
    made.as_object_mut().map(|made| made.remove("secret"));
    assert_eq!(made, shown[1]);
    assert_eq!((&made["events"], &made["accountId"]), (&json!(["message.sent", "ticket.closed"]), &json!("acc-line")));

    for (change, member, value) in [
        (&["--url", "https://example.org/"][..], "url", json!("https://example.org/")),
        (&["--events", "ai.escalated"][..], "events", json!(["ai.escalated"])),
        (&["--all-events"][..], "events", json!(KINDS)),
        (&["--account", "acc-wa"][..], "accountId", json!("acc-wa")),
        (&["--all-accounts"][..], "accountId", Value::Null),
    ] {
        let before = listed(&database).remove(1);
        assert_eq!(run(&database, "edit", &chosen, change), "");
        let mut after = listed(&database).remove(1);
        assert_eq!(after[member], value, "{change:?}");
        for same in [member, "updatedAt"] {
            after[same] = before[same].clone();
        }
        assert_eq!(after, before, "{change:?} changed more");
    }
    assert!(database.fails(&of("edit", &chosen)).contains("--all-events"), "an edit needs a change");

    assert_eq!(run(&database, "disable", &chosen, &[]), "");
    let off = listed(&database).remove(1);
    assert_eq!((&off["enabled"], &off["disabledReason"]), (&json!(false), &json!("disabled by its owner")));
    for (action, more) in [("test", &[][..]), ("replay", &["--all"])] {
        assert!(database.fails(&[&of(action, &chosen)[..], more].concat()).contains("is disabled"), "{action}");
    }
    assert_eq!(run(&database, "replay", &chosen, &["--all", "--dry-run"]), "0");
    assert!(database.fails(&of("replay", &chosen)).contains("--all"), "a replay of every event needs `--all`");
    assert_eq!(run(&database, "enable", &chosen, &[]), "");
    let on = listed(&database).remove(1);
    assert_eq!((&on["enabled"], on.get("disabledReason")), (&json!(true), None));

    let second = run(&database, "rotate", &chosen, &[]);
    assert_secret(&second);
    let third = lines(&run(&database, "rotate", &chosen, &["--json"])).remove(0);
    assert_secret(third["secret"].as_str().unwrap_or_default());
    assert!(chosen["secret"] != *second && third["secret"] != *second && third["id"] == chosen["id"]);

    assert_eq!(run(&database, "test", &chosen, &[]).len(), 36);
    assert_eq!(run(&database, "log", &chosen, &[]), "");
    assert_eq!(run(&database, "replay", &chosen, &["--missing", "--since", "2020-01-01T00:00:00Z"]), "0");
    assert_eq!(run(&database, "delete", &chosen, &[]), "");
    assert_eq!(listed(&database), shown[..1]);
    for action in ["enable", "disable", "rotate", "test", "log", "replay", "delete"] {
        let more: &[&str] = if action == "replay" { &["--all"] } else { &[] };
        assert!(database.fails(&[&of(action, &chosen)[..], more].concat()).contains("no webhook with id"), "{action}");
    }
}

#[test]
fn an_invalid_webhook_is_refused() {
    let database = Database::with(&[("shop", channels()), ("other", vec![])]);
    let create = |more: &[&str]| database.fails(&[&["webhook", "create", "--store", "shop"], more].concat());
    let long = format!("https://example.com/{}", "x".repeat(2048));
    for url in
        ["", "example.com", "ftp://example.com/", "file:///etc/passwd", "https://", "https://a:b@example.com/", "http://[::1/", &long]
    {
        let complaint = create(&["--url", url]);
        assert!(complaint.contains("`url`"), "{url:.40}: {complaint}");
    }
    let complaint = create(&["--url", "https://example.com/", "--events", "ticket.closed,ticket.lost"]);
    assert!(complaint.contains("`ticket.lost`") && complaint.contains("ai.escalated"), "{complaint}");
    assert!(create(&["--url", "https://example.com/", "--events", "webhook.test"]).contains("`webhook.test`"));
    for none in ["", " ", ","] {
        let complaint = create(&["--url", "https://example.com/", "--events", none]);
        assert!(complaint.contains("`events`") && complaint.contains("at least one kind"), "{none:?}: {complaint}");
    }
    assert!(create(&["--url", "https://example.com/", "--account", "acc-none"]).contains("`acc-none`"));
    assert_eq!(listed(&database), Vec::<Value>::new());

    let complaint = database.fails(&["webhook", "create", "--store", "none", "--url", "https://example.com/"]);
    assert!(complaint.contains("there is no store `none`"), "{complaint}");
    assert!(database.fails(&["webhook", "list", "--store", "none"]).contains("there is no store `none`"));

    let hook = self::create(&database, "https://example.com/", &[]);
    let before = listed(&database);
    let id = hook["id"].as_str().unwrap_or_default();
    for (action, more) in [
        ("edit", &["--all-events"][..]),
        ("enable", &[]),
        ("disable", &[]),
        ("rotate", &[]),
        ("test", &[]),
        ("log", &[]),
        ("replay", &["--all"]),
        ("delete", &[]),
    ] {
        for (store, id) in [("other", id), ("shop", "none"), ("none", id)] {
            let complaint = database.fails(&[&["webhook", action, "--store", store, "--id", id], more].concat());
            assert!(
                ["no webhook with id", "there is no store"].iter().any(|reason| complaint.contains(reason)),
                "{action} in {store}: {complaint}"
            );
        }
    }
    for bad in ["yesterday", "2026-01-31T10:00:60Z"] {
        for flag in ["--since", "--until"] {
            assert!(database.fails(&[&of("replay", &hook)[..], &[flag, bad]].concat()).contains("must be an instant"), "{flag} {bad}");
        }
    }
    assert!(database.fails(&[&of("edit", &hook)[..], &["--events", ""]].concat()).contains("at least one kind"));
    assert!(database.fails(&[&of("edit", &hook)[..], &["--url", "no"]].concat()).contains("`url`"));
    assert_eq!(listed(&database), before);
}

#[test]
fn webhooks_deliver_the_same_bytes_that_the_events_command_prints() {
    let server = Server::start_with(Database::with(&[("shop", channels())]), PRIVATE);
    let (database, api) = (&server.database, server.api("shop", &ALL_SCOPES));
    let (all, sent) = (Endpoint::open(), Endpoint::open());
    let hook = create(database, &all.url(), &[]);
    let picky = create(database, &sent.url(), &["--events", "message.sent", "--account", "acc-line"]);
    let rotated = run(database, "rotate", &picky, &[]);
    send(&api, "conv-web", "Of another account");
    send(&api, "conv-line", "สวัสดี \u{1F600}");
    api.post("/tickets/close", json!({"ticketId": "t-web"})).send().ok();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let inbound =
        json!({"accountId": "acc-line", "referenceId": "new", "externalId": "x-1", "sender": {"id": "u", "name": "Nok"}, "text": "hello"});
    std::fs::write(file.path(), inbound.to_string()).expect("the file is written");
    database.run(&["message", "receive", "--store", "shop", &file.path().to_string_lossy()]);
    until("everything came", || all.seen().len() >= 5 && !sent.seen().is_empty());
    let printed = database.run(&["events", "--store", "shop"]);
    let mut expected: Vec<&str> = printed.lines().collect();
    let seen = all.seen();
    let mut bodies: Vec<&str> = seen.iter().map(|seen| seen.body.as_str()).collect();
    bodies.sort_unstable();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
    let mut kinds: Vec<Value> = lines(&printed).iter().map(|event| event["type"].clone()).collect();
    kinds.sort_by_key(Value::to_string);
    assert_eq!(json!(kinds), json!(["message.received", "message.sent", "message.sent", "ticket.closed", "ticket.opened"]));
    for seen in &seen {
        assert!(seen.is_signed_by(hook["secret"].as_str().unwrap_or_default()));
        let event = lines(&seen.body).remove(0);
        assert_eq!((seen.id(), seen.headers["content-type"].as_str()), (event["id"].as_str().unwrap_or_default(), "application/json"));
    }
    let one = sent.seen().remove(0);
    assert!(one.body.contains("สวัสดี \u{1F600}"), "{one:?}");
    assert!(one.is_signed_by(&rotated) && one.is_signed_by(picky["secret"].as_str().unwrap_or_default()));
    assert_eq!((sent.seen().len(), one.headers["webhook-signature"].split(' ').count()), (1, 2));

    until("all is logged", || log(database, &hook).len() == 5);
    for attempt in log(database, &hook) {
        assert_eq!((&attempt["status"], &attempt["outcome"], &attempt["attempt"]), (&json!(200), &json!("delivered"), &json!(1)));
        assert!(seen.iter().any(|seen| attempt["eventId"] == seen.id()));
        assert_eq!((attempt.get("nextAttemptAt"), attempt.get("reason")), (None, None));
    }
    for dry in [&[][..], &["--dry-run"]] {
        let arguments = [&of("replay", &hook)[..], &["--event", "nobody"], dry];
        assert!(database.fails(&arguments.concat()).contains("no event with id `nobody`"));
    }
    // A replay delivers an event again, with the same bytes. After that, the command `test` sends an event to one webhook only.
    assert_eq!(run(database, "replay", &hook, &["--event", one.id(), "--dry-run"]), "1");
    assert_eq!(run(database, "replay", &hook, &["--event", one.id()]), "1");
    until("it came again", || all.times().get(one.id()) == Some(&2));
    assert_eq!(all.seen().last().map(|seen| seen.body.clone()), Some(one.body));
    assert_eq!(run(database, "replay", &hook, &["--missing"]), "0");
    let test = run(database, "test", &picky, &[]);
    until("the test came", || sent.times().contains_key(&test));
    let body = lines(&sent.seen().last().map(|seen| seen.body.clone()).unwrap_or_default()).remove(0);
    assert_eq!(
        (&body["type"], &body["storeId"], &body["data"]),
        (&json!("webhook.test"), &json!("shop"), &json!({"webhookId": picky["id"]}))
    );
    assert!(!all.times().contains_key(&test));
}

#[test]
fn webhook_deliveries_to_loopback_addresses_are_refused_by_default() {
    let server = Server::start_with(Database::with(&[("shop", channels())]), &[]);
    let database = &server.database;
    let endpoint = Endpoint::open();
    let hosts = ["127.0.0.1", "localhost", "LOCALHOST", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "127.1", "0"];
    let hooks: Vec<Value> =
        hosts.iter().map(|host| create(database, &format!("http://{host}:{}/", endpoint.port), &["--events", "ai.escalated"])).collect();
    for hook in &hooks {
        run(database, "test", hook, &[]);
    }
    for (hook, host) in hooks.iter().zip(hosts) {
        until("it was tried", || !log(database, hook).is_empty());
        let attempt = log(database, hook).remove(0);
        assert_eq!((&attempt["outcome"], attempt.get("status")), (&json!("retrying"), None), "{host}");
        assert!(attempt["reason"].as_str().is_some_and(|reason| reason.contains("a public")), "{host}: {attempt}");
    }
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn after_a_kill_only_webhook_deliveries_in_flight_are_sent_again() {
    let server = Server::start_with(Database::with(&[("shop", channels())]), PRIVATE);
    let api = server.api("shop", &ALL_SCOPES);
    let endpoint = Endpoint::open();
    let hook = create(&server.database, &endpoint.url(), &[]);
    endpoint.answers(Some(10));
    for n in 0..40 {
        send(&api, "conv-web", &format!("message {n}"));
    }
    let delivered = |database: &Database| -> Vec<Value> {
        log(database, &hook)
            .into_iter()
            .filter(|attempt| attempt["outcome"] == "delivered")
            .map(|attempt| attempt["eventId"].clone())
            .collect()
    };
    until("the most deliveries are in flight", || endpoint.seen().len() >= 26 && delivered(&server.database).len() == 10);
    let before = endpoint.times();
    assert_eq!((before.len(), endpoint.seen().len()), (26, 26), "16 at a time");
    let early = delivered(&server.database);
    let database = server.kill();
    // The killed server reserved the deliveries in flight until `due_at`. Moves this time to the past, so that the next server sends them.
    database.sql("UPDATE deliveries SET due_at = 1 WHERE due_at IS NOT NULL");
    endpoint.answers(None);
    let server = Server::start_with(database, PRIVATE);
    until("all is delivered", || delivered(&server.database).len() == 40);
    let printed = server.database.run(&["events", "--store", "shop"]);
    let events = lines(&printed);
    assert_eq!(events.len(), 40, "nothing is lost");
    let after = endpoint.times();
    for event in &events {
        let id = event["id"].as_str().unwrap_or_default();
        let in_flight = before.contains_key(id) && !early.contains(&event["id"]);
        assert_eq!(after.get(id), Some(&if in_flight { 2 } else { 1 }), "{id}, in flight: {in_flight}");
    }
    assert!(endpoint.seen().iter().all(|seen| printed.lines().any(|line| line == seen.body)), "the same bytes");
}
