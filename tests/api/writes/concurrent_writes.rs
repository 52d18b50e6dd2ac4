//! Tests of concurrent writes by many callers. If only one of the writes may succeed, exactly one does. If all may succeed, no write is
//! lost.

use std::{sync::Barrier, thread};

use serde_json::{Value, json};

use super::{WriteFixture, acknowledged, stamp};
use crate::{
    client::Answer,
    fixture::{at, conversation, line, ticket, with},
};

/// Runs `act` in this many threads at the same time. Returns the responses, in the order of the threads' numbers.
pub fn race(callers: usize, act: impl Fn(usize) -> Answer + Sync) -> Vec<Answer> {
    let start = Barrier::new(callers);
    let (start, act) = (&start, &act);
    thread::scope(|scope| {
        let run = |n| {
            move || {
                start.wait();
                act(n)
            }
        };
        let running: Vec<_> = (0..callers).map(|n| scope.spawn(run(n))).collect();
        running.into_iter().map(|thread| thread.join().expect("the caller gets an answer")).collect()
    })
}

/// Asserts that exactly one of the responses is a 200, and that all others are a 409. Returns the response with the 200.
#[track_caller]
fn one_wins(answers: Vec<Answer>) -> Answer {
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    lost.iter().for_each(|answer| drop(answer.fails(409)));
    assert_eq!(won.len(), 1, "{} callers won and {} lost", won.len(), lost.len());
    won.into_iter().next().expect("a winner")
}

/// Asserts that the sequence numbers of the events are 1, 2, 3 and so on.
#[track_caller]
pub fn gapless(events: &[Value]) {
    let sequences: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap_or_default()).collect();
    assert_eq!(sequences, (1..=events.len() as u64).collect::<Vec<_>>());
}

#[test]
fn only_one_of_concurrent_ticket_field_writes_with_one_timestamp_succeeds() {
    let shop = WriteFixture::open();
    for round in 0..3 {
        let before = stamp(&shop.ticket("t-set"), "ticketFieldsUpdatedAt");
        let winner = one_wins(race(32, |n| shop.set_at("t-set", "f-int", json!(100 * (round + 1) + n), &before))).ok();
        assert_eq!(shop.ticket("t-set"), winner);
        assert!(stamp(&winner, "ticketFieldsUpdatedAt") > before);
    }
    let events = shop.events();
    gapless(&events);
    assert_eq!(events.len(), 3);
}

#[test]
fn only_one_of_concurrent_contact_field_writes_with_one_timestamp_succeeds() {
    let shop = WriteFixture::open();
    one_wins(race(20, |n| shop.set_contact_at("con-mia", "c-int", json!(100 + n), &at("01-20T00:00")))).is(acknowledged());
    // `con-new` never had a value in a custom field, so a write must send the timestamp of the contact itself.
    one_wins(race(20, |n| shop.set_contact_at("con-new", "c-int", json!(100 + n), &at("02-01T00:00")))).is(acknowledged());
    assert_eq!(shop.events().len(), 2);
}

#[test]
fn concurrent_writes_without_a_timestamp_are_serialised_and_all_succeed() {
    let shop = WriteFixture::open();
    let answers = race(24, |n| shop.set("t-set", "f-int", json!(100 + n)));
    let mut stamps: Vec<_> = answers.iter().map(|answer| stamp(&answer.ok(), "ticketFieldsUpdatedAt")).collect();
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(stamps.len(), 24, "no two writes share a timestamp");
    let events = shop.events();
    gapless(&events);
    assert_eq!(events.len(), 24);
    // Each event shows the value of the previous write as its old value, and has a later timestamp.
    let mut last = (json!(3), at("03-02T09:30"));
    for event in &events {
        let data = &event["data"];
        assert_eq!(data["oldValue"], last.0, "{event}");
        let now = stamp(&data["ticket"], "ticketFieldsUpdatedAt");
        assert!(now > last.1, "{now} after {}", last.1);
        last = (data["newValue"].clone(), now);
    }
    assert_eq!(shop.ticket("t-set")["ticketFields"]["f-int"], last.0);
}

#[test]
fn writes_to_different_fields_do_not_undo_each_other() {
    let shop = WriteFixture::open();
    let fields = [
        ("f-text", json!("t")),
        ("f-notes", json!("n")),
        ("f-int", json!(1)),
        ("f-dec", json!(1.5)),
        ("f-date", json!("2025-01-01")),
        ("f-pick", json!("wine")),
        ("f-num", json!(2.5)),
        ("f-flag", json!(true)),
        ("f-file", json!("a.pdf")),
        ("f-url", json!("https://example.com")),
    ];
    race(fields.len(), |n| shop.set("t-free", fields[n].0, fields[n].1.clone())).iter().for_each(|answer| drop(answer.ok()));
    assert_eq!(shop.ticket("t-free")["ticketFields"], fields.into_iter().collect::<Value>());
    let labels: Vec<_> = (0..10).map(|n| format!("lab-{n}")).collect();
    race(10, |n| shop.label("conv-bare", &[&labels[n]], &[])).iter().for_each(|answer| answer.is(acknowledged()));
    assert_eq!(shop.conversation("conv-bare")["labelIds"].as_array().map(Vec::len), Some(10));
    let events = shop.events();
    gapless(&events);
    assert_eq!(events.len(), 20);
}

#[test]
fn writes_to_a_ticket_and_to_its_conversation_do_not_deadlock() {
    let shop = WriteFixture::open();
    for round in 0..7 {
        let answers = race(16, |n| match n % 4 {
            // Each request sends a different value, so each of these writes updates the ticket's row.
            0 => shop.set("t-free", "f-text", json!(format!("{round} {n}"))),
            1 if round % 2 == 0 => shop.label("conv-free", &[&format!("lab-{}", n / 4)], &[]),
            1 => shop.label("conv-free", &["lab-9"], &[&format!("lab-{}", n / 4)]),
            2 => shop.text("conv-free", "hello"),
            _ => shop.read("conv-free"),
        });
        answers.iter().for_each(|answer| drop(answer.ok()));
    }
    // The conversation has its two initial labels, the labels that the last round added, and `lab-9`, which no request removes.
    assert_eq!(shop.conversation("conv-free")["labelIds"].as_array().map(Vec::len), Some(2 + 5));
}

/// Each conversation has an open ticket and a closed one that was opened later; only an import can create this state. The closed ticket has
/// the smaller id. To avoid deadlocks, the server locks tickets in the order of their ids. So a request that closes the open ticket and a
/// request that changes labels must both lock the closed ticket first.
#[test]
fn closing_the_older_of_two_tickets_does_not_deadlock() {
    let mut lines = crate::fixture::write_store();
    let talk = conversation("", "acc-line", "line", "con-mia", &at("03-01T07:00"));
    for n in 0..12 {
        let talk = with(talk.clone(), json!({"id": format!("talk-{n}"), "referenceId": format!("talk-{n}")}));
        lines.push(line("ticket", ticket(&format!("z-{n}"), &talk, &at("03-01T08:00"))));
        let shut = json!({"isOpen": false, "closedAt": at("03-05T00:00"), "updatedAt": at("03-05T00:00")});
        lines.push(line("ticket", with(ticket(&format!("a-{n}"), &talk, &at("03-02T00:00")), shut)));
        lines.push(line("conversation", talk));
    }
    let shop = WriteFixture::with(&[("desk", lines)]);
    for n in 0..12 {
        let answers = race(4, |caller| match caller {
            0 => shop.close(json!({"ticketId": format!("z-{n}")})),
            _ => shop.label(&format!("talk-{n}"), &[&format!("lab-{caller}")], &[]),
        });
        answers.iter().for_each(|answer| drop(answer.ok()));
    }
}

#[test]
fn only_one_of_concurrent_contacts_with_one_email_or_phone_is_created() {
    let shop = WriteFixture::open();
    let email = |n: usize| if n.is_multiple_of(2) { "ada@example.com" } else { "ADA@Example.COM" };
    let winner = one_wins(race(20, |n| shop.post("/contacts", json!({"firstName": format!("Ada {n}"), "email": email(n)})).send())).ok();
    let by_phone = |n| shop.post("/contacts", json!({"firstName": format!("Bob {n}"), "phone": "+4412345678"})).send();
    one_wins(race(20, by_phone));
    let found = shop.post("/contacts/list", json!({"search": "ada@example.com"})).send();
    found.lists(&[winner["id"].as_str().unwrap_or_default()]);
    assert_eq!(shop.post("/contacts/list", json!({})).send().ids().len(), 5);
}

#[test]
fn a_ticket_that_many_callers_close_closes_once() {
    let shop = WriteFixture::open();
    let answers = race(12, |_| shop.close(json!({"ticketId": "t-free", "isConverted": true})));
    let first = answers[0].ok();
    answers.iter().for_each(|answer| answer.is(first.clone()));
    assert_eq!(shop.kinds(), ["ticket.ticket_field_updated", "ticket.closed"]);
}

#[test]
fn concurrent_requests_with_one_idempotency_key_write_once() {
    let shop = WriteFixture::open();
    let answers = race(16, |_| {
        let body = json!({"conversationId": "conv-free", "text": "once"});
        shop.post("/messages/internal-comments", body).header("idempotency-key", "k").send()
    });
    for answer in &answers {
        match answer.status {
            200 => answer.is(acknowledged()),
            _ => {
                answer.fails(409);
                assert!(answer.header("retry-after").is_some(), "{}", answer.described());
            }
        }
    }
    let first: Vec<_> = answers.iter().filter(|answer| answer.status == 200 && answer.header("idempotency-replayed").is_none()).collect();
    assert_eq!(first.len(), 1, "one is the first");
    assert_eq!(shop.comments("conv-free").len(), 1);
}

#[test]
fn only_one_of_concurrent_bodies_with_one_idempotency_key_is_written() {
    let shop = WriteFixture::open();
    one_wins(race(12, |n| {
        let body = json!({"conversationId": "conv-free", "text": format!("from {n}")});
        shop.post("/messages/internal-comments", body).header("idempotency-key", "k").send()
    }));
    assert_eq!(shop.comments("conv-free").len(), 1);
}
