//! Tests of bridges, the HTTP endpoints to which a server posts the outbound messages of a channel account: the commands that manage
//! bridges, and the deliveries of a running server.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{
    REV_A,
    delivery_receiver::{Endpoint, PRIVATE, ReceivedDelivery, Reply, assert_secret, until},
    fixture::{ANN, MIA, channels, line},
    harness::{Database, Server, Settings},
    writes::{WriteFixture, acknowledged},
};

/// Settings of a server that delivers to endpoints on this machine and simulates no channel.
const BARE: Settings<'static> = &[("COUNTERPART_ALLOW_PRIVATE_TARGETS", "true")];

const URL: &str = "https://example.com/send?key=1";

fn named(seen: &ReceivedDelivery) -> (&'static str, String) {
    ("200 OK", json!({ "externalId": format!("x-{}", seen.id()) }).to_string())
}

fn down(_: &ReceivedDelivery) -> (&'static str, String) {
    ("503 Later", json!({"error": "the line is down"}).to_string())
}

fn of<'a>(action: &'a str, account: &'a str) -> Vec<&'a str> {
    vec!["bridge", action, "--store", "shop", "--account", account]
}

#[track_caller]
fn set(database: &Database, account: &str, url: &str, more: &[&str]) -> String {
    database.run(&[&of("set", account)[..], &["--url", url], more].concat())
}

#[track_caller]
fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {line}: {error}"))
}

#[track_caller]
fn listed(database: &Database) -> Vec<Value> {
    let printed = database.run(&["bridge", "list", "--store", "shop"]);
    assert!(!printed.contains("whsec_") && !printed.to_lowercase().contains("secret"), "a secret is listed: {printed}");
    printed.lines().map(parsed).collect()
}

/// Starts a server on the store [`channels`], and sets a bridge for one account of the store. Returns the server's fixture and the bridge's
/// secret.
fn bridged(account: &str, url: &str, settings: Settings<'_>) -> (WriteFixture, String) {
    let shop = WriteFixture::with_settings(&[("shop", channels())], settings);
    let secret = set(&shop.server.database, account, url, &[]);
    (shop, secret)
}

/// Returns the id that the bridge returned for a message, according to an export.
fn external_id(shop: &WriteFixture, message: &str) -> Value {
    let export = shop.server.database.run(&["export", "--store", "shop"]);
    let found = export.lines().map(parsed).find(|line| line["kind"] == "message" && line["record"]["id"] == message);
    found.unwrap_or_else(|| panic!("no message {message}"))["record"]["externalId"].clone()
}

#[test]
fn bridges_are_managed_by_commands() {
    let database = Database::with(&[("shop", channels()), ("other", channels())]);
    let secret = set(&database, "acc-wa", URL, &[]);
    assert_secret(&secret);
    let made = parsed(&set(&database, "acc-line", "http://127.0.0.1:1/", &["--json"]));
    assert_secret(made["secret"].as_str().unwrap_or_default());
    let mut shown = listed(&database);
    let accounts: Vec<_> = shown.iter().map(|bridge| bridge["accountId"].clone()).collect();
    assert_eq!((json!(accounts), &shown[1]["url"]), (json!(["acc-line", "acc-wa"]), &json!(URL)));
    let mut bare = made.clone();
    bare.as_object_mut().map(|bare| bare.remove("secret"));
    assert_eq!(bare, shown[0]);
    assert_eq!(made["createdAt"], made["updatedAt"]);

    // Setting the bridge's present address again changes nothing. Setting another address keeps the secret.
    assert_eq!(set(&database, "acc-wa", URL, &[]), "");
    assert_eq!(listed(&database), shown);
    let moved = parsed(&set(&database, "acc-wa", "https://example.org/", &["--json"]));
    assert_eq!((&moved["url"], moved.get("secret")), (&json!("https://example.org/"), None));
    assert!(moved["createdAt"] == shown[1]["createdAt"] && moved["updatedAt"].as_str() > shown[1]["updatedAt"].as_str(), "{moved}");
    shown[1] = moved;
    assert_eq!(listed(&database), shown);

    // An import that replaces the account keeps its bridge. The account with the same id in another store has no bridge.
    let account = json!({"id": "acc-wa", "channel": "whatsapp", "name": "Another name", "status": "degraded", "userIds": [ANN]});
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), line("account", account).to_string()).expect("the file is written");
    database.run(&["import", "--store", "shop", &file.path().to_string_lossy()]);
    assert_eq!(listed(&database), shown);
    assert_eq!(database.run(&["bridge", "list", "--store", "other"]), "");

    let second = database.run(&of("rotate", "acc-wa"));
    assert_secret(&second);
    let third = parsed(&database.run(&[&of("rotate", "acc-wa")[..], &["--json"]].concat()));
    assert_secret(third["secret"].as_str().unwrap_or_default());
    assert!(secret != second && third["secret"] != *second && third["url"] == "https://example.org/", "{third}");
    let kept = database.ask("SELECT account_id FROM bridge_secrets WHERE account_id = 'acc-wa'");
    assert_eq!(kept.len(), 3);

    assert_eq!(database.run(&of("remove", "acc-wa")), "");
    assert_eq!(listed(&database), shown[..1]);
    for action in ["rotate", "remove"] {
        assert!(database.fails(&of(action, "acc-wa")).contains("there is no bridge on an account `acc-wa`"), "{action}");
    }
    assert_ne!(set(&database, "acc-wa", URL, &[]), secret);
}

#[test]
fn an_invalid_bridge_is_refused() {
    let mine = line("account", json!({"id": "acc-mine", "channel": "line", "name": "Other's", "status": "healthy"}));
    let database = Database::with(&[("shop", channels()), ("other", vec![mine])]);
    let long = format!("https://example.com/{}", "x".repeat(2048));
    for url in [
        "",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https://a:b@example.com/",
        "http://[::1/",
        "http://example.com/",
        "http://localhost/",
        "http://127.0.0.1.example.com/",
        "http://10.0.0.1/",
        "http://[::2]/",
        &long,
    ] {
        let complaint = database.fails(&[&of("set", "acc-line")[..], &["--url", url]].concat());
        assert!(complaint.contains("`url`"), "{url:.40}: {complaint}");
    }
    for account in ["acc-none", "acc-mine", ""] {
        let complaint = database.fails(&[&of("set", account)[..], &["--url", URL]].concat());
        assert!(complaint.contains(&format!("no account with id `{account}`")), "{complaint}");
    }
    let complaint = database.fails(&[&of("set", "acc-web")[..], &["--url", URL]].concat());
    assert!(complaint.contains("`accountId` is of the channel `widget`"), "{complaint}");
    for store in ["none", "other"] {
        for action in [&["set", "--url", URL][..], &["rotate"], &["remove"]] {
            let complaint = database.fails(&[&["bridge"], action, &["--store", store, "--account", "acc-line"]].concat());
            assert!(complaint.contains("there is no") || complaint.contains("no account"), "{action:?} in {store}: {complaint}");
        }
    }
    assert!(database.fails(&["bridge", "list", "--store", "none"]).contains("there is no store `none`"));
    assert_eq!(listed(&database), Vec::<Value>::new());
    for url in ["http://127.0.0.1/", "http://127.9.9.9:8080/", "http://[::1]:8080/x", "https://10.0.0.1/"] {
        set(&database, "acc-line", url, &[]);
        assert_eq!(listed(&database)[0]["url"], url);
    }
}

#[test]
fn a_message_goes_over_the_bridge_of_its_account() {
    let endpoint = Endpoint::replying(named);
    let (shop, first) = bridged("acc-line", &endpoint.url(), PRIVATE);
    let second = shop.server.database.run(&of("rotate", "acc-line"));
    // The simulated channel would refuse this text. The bridge gets the message instead.
    let text = "สวัสดี \u{1F600} simulate:refuse";
    shop.text("conv-line", text).is(acknowledged());
    shop.text("conv-fb", "to another account").is(acknowledged());
    shop.text("conv-web", "to our own channel").is(acknowledged());
    shop.settled();
    let seen = endpoint.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let (seen, message) = (&seen[0], shop.newest("conv-line"));
    let id = message["id"].as_str().unwrap_or_default();
    assert_eq!((seen.id(), seen.headers["content-type"].as_str()), (id, "application/json"));
    assert!(seen.is_signed_by(&first) && seen.is_signed_by(&second));
    let reference = shop.conversation("conv-line")["referenceId"].clone();
    let expected = json!({
        "type": "message.send", "attempt": 1, "storeId": "shop", "messageId": id, "conversationId": "conv-line", "accountId": "acc-line",
        "channel": "line", "referenceId": reference, "text": text,
    });
    assert_eq!(parsed(&seen.body), expected);
    assert_eq!(external_id(&shop, id), format!("x-{id}"));
    let events = shop.events();
    let event = events.iter().find(|event| event["data"]["conversationId"] == "conv-line").cloned().unwrap_or_default();
    assert_eq!((events.len(), &event["type"]), (3, &json!("message.sent")));
    assert_eq!(event["data"], json!({"message": message, "conversationId": "conv-line", "ticketId": "t-line"}));
    assert_eq!(shop.undelivered(), Vec::<Value>::new());
}

#[test]
fn everything_that_is_sent_goes_over_a_bridge() {
    let endpoint = Endpoint::replying(named);
    let (shop, _) = bridged("acc-mail", &endpoint.url(), BARE);
    for account in ["acc-wa", "acc-fb"] {
        set(&shop.server.database, account, &endpoint.url(), &[]);
    }
    let got = |count: usize| {
        shop.settled();
        let seen = endpoint.seen();
        assert_eq!(seen.len(), count, "{seen:?}");
        seen.last().map(|seen| parsed(&seen.body)).unwrap_or_default()
    };
    shop.text("conv-mail", "by mail").is(acknowledged());
    let mail = got(1);
    assert_eq!((&mail["channel"], mail.get("text"), mail.get("template")), (&json!("gmail"), None, None));
    assert_eq!((&mail["email"]["text"], &mail["email"]["to"][0]["email"]), (&json!("by mail"), &json!("writer@example.net")));
    assert_eq!((&mail["email"]["subject"], &mail["email"]["inReplyTo"]), (&json!("Re: Order 7"), &json!("<three@example.net>")));
    shop.text("conv-fb-day", "a day later").is(acknowledged());
    assert_eq!(got(2)["kind"], "human_agent");
    if !REV_A {
        let body = json!({"accountId": "acc-wa", "phoneNumber": MIA, "templateId": "tpl-pair", "variables": ["Mia", "7"]});
        shop.post("/messages/template/phone", body).send().is(acknowledged());
        let template = got(3);
        let expected = json!({
            "id": "tpl-pair", "name": "name_tpl-pair", "language": "th", "variables": ["Mia", "7"], "text": "สวัสดี Mia, order 7; bye Mia",
        });
        assert_eq!((&template["template"], &template["referenceId"]), (&expected, &json!(MIA)));
    }
    assert_eq!(shop.undelivered(), Vec::<Value>::new());
}

#[test]
fn a_refusal_by_a_bridge_is_reported_and_a_failure_is_retried() {
    let endpoint = Endpoint::replying(down);
    let (shop, _) = bridged("acc-line", &endpoint.url(), BARE);
    shop.text("conv-line", "later").is(acknowledged());
    until("it was tried", || !endpoint.seen().is_empty() && shop.undelivered()[0].get("nextAttemptAt").is_some());
    assert_eq!(shop.events(), Vec::<Value>::new());
    endpoint.replies(named);
    shop.until("it is there", || {
        shop.server.database.sql("UPDATE outbound SET due_at = 1 WHERE claim IS NULL");
        shop.sent_texts() == ["later"]
    });
    let seen = endpoint.seen();
    assert_eq!((seen[0].id(), &parsed(&seen[1].body)["attempt"]), (seen[1].id(), &json!(2)));

    endpoint.replies(|_| ("422 No", json!({"error": "the number is blocked"}).to_string()));
    shop.text("conv-quiet", "never").is(acknowledged());
    shop.settled();
    let failed = shop.undelivered();
    assert_eq!((failed.len(), &failed[0]["state"]), (1, &json!("failed")), "{failed:?}");
    assert_eq!(failed[0]["reason"], "the bridge answered 422: the number is blocked");
    assert_eq!((shop.sent_texts().len(), external_id(&shop, seen[0].id())), (1, json!(format!("x-{}", seen[0].id()))));
}

#[test]
fn bridges_do_not_connect_to_local_addresses_unless_allowed() {
    let endpoint = Endpoint::replying(named);
    let (shop, _) = bridged("acc-line", &endpoint.url(), &[]);
    let hosts = ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0"];
    for (n, host) in (1..).zip(hosts) {
        let scheme = if n == 1 { "http" } else { "https" };
        set(&shop.server.database, "acc-line", &format!("{scheme}://{host}:{}/", endpoint.port), &[]);
        shop.text("conv-line", "x").is(acknowledged());
        shop.settled();
        let failed = shop.undelivered();
        assert_eq!(failed.len(), n, "{host}");
        let last = &failed[n - 1];
        assert!(last["reason"].as_str().is_some_and(|reason| reason.contains("not a public one")), "{host}: {last}");
    }
    assert_eq!((endpoint.connections.load(Ordering::SeqCst), shop.events().len()), (0, 0));
}

#[test]
fn a_message_of_a_killed_server_is_sent_again_with_the_same_id() {
    let endpoint = Endpoint::replying(named);
    let (shop, secret) = bridged("acc-line", &endpoint.url(), BARE);
    endpoint.answers(Some(0));
    shop.text("conv-line", "x").is(acknowledged());
    until("it is tried", || endpoint.seen().len() == 1);
    let WriteFixture { server, key, .. } = shop;
    let database = server.kill();
    // The killed server reserved the message until `due_at`. Moves this time to the past, so that the next server sends the message.
    database.sql("UPDATE outbound SET due_at = 1");
    endpoint.answers(None);
    let server = Server::start_with(database, BARE);
    let shop = WriteFixture { api: server.api_of(&key), server, key };
    shop.settled();
    let seen = endpoint.seen();
    assert_eq!((seen.len(), seen[0].id()), (2, seen[1].id()));
    assert!(seen.iter().all(|seen| seen.is_signed_by(&secret)));
    assert_eq!((&parsed(&seen[0].body)["attempt"], &parsed(&seen[1].body)["attempt"]), (&json!(1), &json!(2)));
    assert_eq!((shop.sent_texts(), external_id(&shop, seen[0].id())), (vec!["x".to_owned()], json!(format!("x-{}", seen[0].id()))));
}

fn renamed(seen: &ReceivedDelivery, reference: &str) -> (&'static str, String) {
    ("200 OK", json!({"externalId": format!("x-{}", seen.id()), "referenceId": reference}).to_string())
}

#[test]
fn a_whatsapp_bridge_may_spell_the_phone_of_a_thread_in_several_ways() {
    let answers: [Reply; 3] = [
        |seen| renamed(seen, "66855555555:7@s.whatsapp.net"),
        |seen| renamed(seen, "12345678901234@lid"),
        |seen| renamed(seen, "66866666666"),
    ];
    let endpoint = Endpoint::replying(named);
    let (shop, _) = bridged("acc-wa", &endpoint.url(), BARE);
    for (answer, called) in answers.into_iter().zip(["+66855555555", "+66855555555", "+66866666666"]) {
        endpoint.replies(answer);
        shop.text("conv-wa", "hello").is(acknowledged());
        shop.settled();
        assert_eq!(shop.conversation("conv-wa")["referenceId"], called);
    }
    assert_eq!(shop.undelivered(), Vec::<Value>::new());
}
