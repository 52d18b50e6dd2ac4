//! Tests of the outbox, the queue of messages that wait to be sent. A message is sent after the response to its request. If the attempt
//! fails, the server tries again, and finally gives up. If the channel refuses the message, the server gives up at once.

use serde_json::{Value, json};

use super::{WriteFixture, acknowledged, concurrent_writes::gapless};
use crate::{
    fixture::channels,
    harness::{SIMULATED, Server},
};

/// Makes the messages in the outbox due now, except those that are being sent.
fn make_messages_due(shop: &WriteFixture) {
    shop.server.database.sql("UPDATE outbound SET due_at = 1 WHERE claim IS NULL");
}

#[test]
fn the_sent_event_appears_only_after_the_channel_accepted_the_message() {
    let shop = WriteFixture::simulated();
    shop.text("conv-line", "simulate:delay=1000").is(acknowledged());
    shop.text("conv-web", "at once").is(acknowledged());
    assert_eq!(shop.sent_texts(), ["at once"]);
    let waiting = shop.undelivered();
    assert_eq!((waiting.len(), &waiting[0]["state"]), (1, &json!("pending")), "{waiting:?}");
    shop.settled();
    let events = shop.events();
    gapless(&events);
    assert_eq!(shop.sent_texts(), ["at once", "simulate:delay=1000"]);
    assert_eq!(events[1]["data"], json!({"message": shop.newest("conv-line"), "conversationId": "conv-line", "ticketId": "t-line"}));
    assert_eq!(events[1]["actor"], json!({"type": "api_key", "id": shop.key.id}));
    assert_eq!(shop.undelivered(), Vec::<Value>::new());
}

#[test]
fn failed_sends_are_retried_and_refused_sends_are_not() {
    let shop = WriteFixture::simulated();
    for (conversation, text) in [
        ("conv-line", "simulate:fail=2 first"),
        ("conv-line", "second"),
        ("conv-line", "third"),
        ("conv-fb", "simulate:refuse"),
        ("conv-fb", "after a refusal"),
        ("conv-ig", "simulate:down"),
        ("conv-ig", "behind one that is down"),
    ] {
        shop.text(conversation, text).is(acknowledged());
    }
    shop.until("the refusal is known", || shop.sent_texts() == ["after a refusal"]);
    let of =
        |conversation: &str| -> Vec<Value> { shop.undelivered().into_iter().filter(|one| one["conversationId"] == conversation).collect() };
    let refused = of("conv-fb");
    assert_eq!((refused.len(), &refused[0]["state"]), (1, &json!("failed")), "{refused:?}");
    assert!(refused[0]["reason"].as_str().is_some_and(|reason| reason.contains("refuses")), "{refused:?}");
    assert_eq!(refused[0]["attempts"], 1);
    shop.until("the first was tried", || {
        let line = of("conv-line");
        // All three messages of `conv-line` are in the outbox until the first one has been sent.
        assert!(line.len() < 3 || line[1]["attempts"] == 0, "no message overtakes another of its conversation: {line:?}");
        line.len() < 3 || line[0]["attempts"] != 0
    });
    shop.until("the first is there", || {
        make_messages_due(&shop);
        shop.sent_texts().len() >= 4
    });
    assert_eq!(shop.sent_texts()[1..], ["simulate:fail=2 first", "second", "third"]);
    shop.until("the last is given up", || {
        make_messages_due(&shop);
        shop.sent_texts().len() == 5
    });
    assert_eq!(shop.sent_texts()[4], "behind one that is down");
    let down = of("conv-ig");
    assert_eq!((down.len(), &down[0]["state"]), (1, &json!("failed")), "{down:?}");
    assert!(down[0]["reason"].as_str().is_some_and(|reason| reason.contains("down")), "{down:?}");
    gapless(&shop.events());
}

#[test]
fn slow_sends_of_one_account_do_not_delay_another_account() {
    let mut lines = channels();
    for n in 0..40 {
        let mut talk = lines.iter().find(|line| line["record"]["id"] == "conv-quiet").cloned().unwrap_or_default();
        talk["record"]["id"] = json!(format!("conv-{n}"));
        talk["record"]["referenceId"] = json!(format!("ref-{n}"));
        lines.push(talk);
    }
    let shop = WriteFixture::with_settings(&[("shop", lines)], SIMULATED);
    for n in 0..40 {
        shop.text(&format!("conv-{n}"), "simulate:delay=25000").is(acknowledged());
    }
    let held = |shop: &WriteFixture| shop.server.database.ask("SELECT message_id FROM outbound WHERE claim IS NOT NULL").len();
    assert_eq!(held(&shop), 16, "at most 16 messages of an account are tried at a time");
    shop.text("conv-ig", "not held up").is(acknowledged());
    shop.until("another account's message is sent", || shop.sent_texts() == ["not held up"]);
    // Repeats the test with a server that finds the messages in the outbox when it starts.
    let WriteFixture { server, key, .. } = shop;
    let database = server.kill();
    database.sql("UPDATE outbound SET due_at = 1, claim = NULL");
    let server = Server::start_with(database, SIMULATED);
    let shop = WriteFixture { api: server.api_of(&key), server, key };
    shop.text("conv-ig", "nor now").is(acknowledged());
    shop.until("another account's message is sent", || shop.sent_texts() == ["not held up", "nor now"]);
    assert_eq!(held(&shop), 16);
    // A kill ends the server immediately. A regular stop would wait for the delayed messages.
    drop(shop.server.kill());
}

#[test]
fn a_message_of_a_killed_server_is_sent_by_the_next_one() {
    let shop = WriteFixture::simulated();
    shop.text("conv-line", "simulate:delay=700").is(acknowledged());
    shop.text("conv-line", "behind it").is(acknowledged());
    let claimed = |shop: &WriteFixture| shop.server.database.ask("SELECT claim FROM outbound WHERE claim IS NOT NULL").len();
    shop.until("the first is tried", || claimed(&shop) == 1);
    let WriteFixture { server, key, .. } = shop;
    let database = server.kill();
    let server = Server::start_with(database, SIMULATED);
    let shop = WriteFixture { api: server.api_of(&key), server, key };
    // The killed server reserved the first message until a certain time (`due_at`). Before that time, the new server sends neither this
    // message nor the message after it.
    assert_eq!((claimed(&shop), shop.sent_texts().len()), (1, 0));
    assert!(shop.undelivered()[0]["nextAttemptAt"].as_str() > shop.undelivered()[0]["sentAt"].as_str());
    shop.server.database.sql("UPDATE outbound SET due_at = 1 WHERE claim IS NOT NULL");
    shop.settled();
    assert_eq!(shop.sent_texts(), ["simulate:delay=700", "behind it"]);
    gapless(&shop.events());
}

#[test]
fn two_server_processes_with_one_outbox_send_each_message_once() {
    let shop = WriteFixture::simulated();
    let other = shop.server.beside(SIMULATED);
    let mut second = shop.api.clone();
    second.address.clone_from(&other.address);
    let answers = super::concurrent_writes::race(12, |n| {
        let api = if n % 2 == 0 { &shop.api } else { &second };
        let conversation = ["conv-line", "conv-quiet", "conv-fb", "conv-ig"][n % 4];
        let send = |text: &str| {
            api.post("/messages", json!({"conversationId": conversation, "text": format!("{n} {text} simulate:delay=20")})).send()
        };
        send("a").is(acknowledged());
        send("b")
    });
    answers.iter().for_each(|answer| answer.is(acknowledged()));
    shop.settled();
    let events = shop.events();
    gapless(&events);
    let mut ids: Vec<_> = events.iter().map(|event| event["data"]["message"]["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((events.len(), ids.len()), (24, 24));
    // Each caller sent message `b` after the response to its message `a`. So the event of `a` comes before the event of `b`.
    let texts = shop.sent_texts();
    let place = |text: String| texts.iter().position(|got| got.starts_with(&text));
    for n in 0..12 {
        assert!(place(format!("{n} a ")) < place(format!("{n} b ")), "{texts:?}");
    }
    assert_eq!(shop.undelivered(), Vec::<Value>::new());
}
