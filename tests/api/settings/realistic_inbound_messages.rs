//! Tests of many inbound messages, in the forms in which messaging channels really send them: albums (many messages at the same time), and
//! messages with all kinds of spellings, timestamps and senders.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::SettingsFixture;
use crate::{
    client::Answer,
    fixture::with,
    writes::{concurrent_writes::race, parsed},
};

/// The number of messages in an album. A channel delivers them at the same time.
const ALBUM: usize = 24;
const ALBUMS: usize = 20;

#[test]
fn simultaneous_images_of_an_album_share_one_thread_at_every_isolation_level() {
    let fixture = SettingsFixture::open();
    let database = &fixture.shop.server.database;
    let defaults = match &database.postgres {
        Some((_, name)) => ["read committed", "repeatable read", "serializable"]
            .map(|level| Some(format!("ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")))
            .to_vec(),
        None => vec![None],
    };
    for (level, default) in defaults.iter().enumerate() {
        if let Some(default) = default {
            database.sql(default);
        }
        // A database setting applies only to new connections. So the server processes start after the isolation level was changed.
        let processes = [0, 1].map(|n| {
            let index = database.folder().join(format!("index-{level}-{n}")).display().to_string();
            fixture.shop.server.beside(&[("COUNTERPART_INDEX_DIR", &index)])
        });
        for album in 0..ALBUMS {
            let name = format!("album-{level}-{album}");
            let answers = race(ALBUM, |n| {
                let message = json!({
                    "accountId": "acc-line", "referenceId": name, "externalId": format!("{name}-{n}"), "sender": {"id": name},
                    "images": [format!("https://cdn.example/{n}.png")], "sentAt": format!("2026-03-01T09:00:00.{n:03}Z"),
                });
                fixture.at(&processes[n % 2].address, "/messages", message)
            });
            let taken: Vec<Value> = answers.iter().map(Answer::ok).collect();
            for member in ["conversationId", "ticketId"] {
                assert!(taken.iter().all(|one| one[member] == taken[0][member] && one[member].is_string()), "{name}: {taken:?}");
            }
            let conversation = taken[0]["conversationId"].as_str().unwrap_or_default();
            let sent: Vec<_> = taken.iter().rev().map(|one| one["messageId"].clone()).collect();
            assert_eq!(fixture.shop.all_messages(conversation), sent, "{name}: the newest first");
            assert_eq!(fixture.shop.conversation(conversation)["allMsgCnt"], ALBUM);
        }
    }
}

/// The number of senders.
const PEOPLE: usize = 100;
/// The total number of messages that all senders send.
const MESSAGES: usize = 1_000;

/// Returns the account that a sender writes to, and the sender's `referenceId`. On WhatsApp, `way` selects one of the spellings of the
/// phone number. Messages in all spellings belong to one conversation.
fn account_and_reference(person: usize, way: usize) -> (&'static str, String) {
    let digits = format!("6691{person:07}");
    match person % 3 {
        0 => ("acc-line", format!("U{person:032x}")),
        1 => ("acc-ann", format!("<CAF={person}@mail.example.com>")),
        _ => {
            let spellings = [
                format!("+{digits}"),
                digits.clone(),
                format!("{digits}@s.whatsapp.net"),
                format!("{digits}:{way}@s.whatsapp.net"),
                format!("{digits}@c.us"),
                format!("00{digits}"),
                format!("tel:+{digits}"),
                format!("whatsapp:+{digits}"),
                format!("+66 91-{}", &digits[4..]),
                format!("66 (0)91 {}", &digits[4..]),
            ];
            ("acc-wa", spellings[way % spellings.len()].clone())
        }
    }
}

/// Returns the inbound message number `n`, in one of the forms that channels really use.
fn realistic_message(n: usize) -> Value {
    // Chooses one of a property's `variants`. The choice depends on the message's number and on a prime number, which differs for each
    // property. So the messages combine the variants in many ways.
    let pick = |prime: usize, variants: &[Value]| variants[(n * prime + n / variants.len()) % variants.len()].clone();
    let person = (n * 37 + n / PEOPLE) % PEOPLE;
    let (account, reference) = account_and_reference(person, n / PEOPLE + person);
    let message =
        json!({"accountId": account, "referenceId": reference, "externalId": format!("wamid.{n}"), "sender": {"id": format!("p{person}")}});
    let texts = [
        json!({"text": "สวัสดี 👩\u{200d}👧 a\u{301}"}),
        json!({"text": ""}),
        json!({}),
        json!({"text": "\r\n \u{feff}x"}),
        json!({"images": ["https://cdn.example/1.png"]}),
    ];
    let clocks = [
        json!({}),
        json!({"sentAt": "2026-01-31T23:59:59.123456789+07:00"}),
        json!({"sentAt": "2016-12-31T23:59:60Z"}),
        json!({"sentAt": "1970-01-01T00:00:00Z"}),
        json!({"sentAt": "2098-01-01T00:00:00Z"}),
        json!({"sentAt": "9999-12-31T23:59:59.999Z"}),
    ];
    let subjects = [
        json!({}),
        json!({"emailSubject": "Re: your order\r\n of yesterday"}),
        json!({"emailSubject": " \r\n\t"}),
        json!({"emailSubject": ""}),
        json!({"emailSubject": "x".repeat(70_000)}),
    ];
    let names = [
        json!({}),
        json!({"name": ""}),
        json!({"name": "Mali\r\n Sri"}),
        json!({"name": "a\u{0}b"}),
        json!({"name": "ก".repeat(30_000)}),
        json!({"name": "  มะลิ  "}),
        json!({"name": "🙂"}),
    ];
    let contacts = [
        json!({}),
        json!({"contact": {}}),
        json!({"contact": {"firstName": " ", "lastName": "Sri"}}),
        json!({"contact": {"email": "Mali <mali@example.com>"}}),
        json!({"contact": {"email": format!(" mali{person}@example.com "), "phone": format!("+66 92 {person:07}")}}),
        json!({"contact": {"firstName": "M", "phone": "081-234-5678"}}),
        json!({"contact": {"firstName": "M", "phone": "+999", "email": "\"m m\"@example.com"}}),
        json!({"contact": {"firstName": "M\u{0}", "lastName": "\u{7f}", "email": "", "phone": ""}}),
    ];
    let mut message = [(2, &texts[..]), (3, &clocks), (5, &subjects), (7, &contacts)]
        .iter()
        .fold(message, |all, (prime, of)| with(all, pick(*prime, of)));
    let sender = with(message["sender"].clone(), pick(11, &names));
    message["sender"] = sender;
    message
}

/// Returns the messages of all senders in sending order. Every tenth message is in the list twice.
fn inbox() -> Vec<Value> {
    (0..MESSAGES).flat_map(|n| vec![realistic_message(n); if n % 10 == 9 { 2 } else { 1 }]).collect()
}

/// Asserts that each sender has exactly one conversation, which has each of the sender's messages once.
fn check_conversations(fixture: &SettingsFixture, answers: &[Value]) {
    let duplicates = answers.iter().filter(|answer| answer["duplicate"] == true).count();
    assert_eq!((answers.len(), duplicates), (MESSAGES + MESSAGES / 10, MESSAGES / 10));
    let mut messages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for answer in answers {
        let text = |member: &str| answer[member].as_str().unwrap_or_default().to_owned();
        messages.entry(text("conversationId")).or_default().insert(text("messageId"));
    }
    assert_eq!((messages.len(), messages.values().map(BTreeSet::len).sum::<usize>()), (PEOPLE, MESSAGES));
    let mut references = BTreeSet::new();
    for (conversation, expected) in &messages {
        let kept: BTreeSet<_> =
            fixture.shop.all_messages(conversation).iter().map(|id| id.as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!(kept, *expected, "{conversation}");
        let shown = fixture.shop.conversation(conversation);
        assert_eq!(shown["allMsgCnt"], expected.len());
        references.insert(shown["referenceId"].as_str().unwrap_or_default().to_owned());
    }
    // Each conversation has the normalised form of its sender's reference, which [`account_and_reference`] returns if `way` is 0.
    assert_eq!(references, (0..PEOPLE).map(|person| account_and_reference(person, 0).1).collect());
}

#[test]
fn realistic_messages_over_a_bridge_are_all_accepted_and_stored() {
    let fixture = SettingsFixture::open();
    let messages = inbox();
    let answers: Vec<Value> = messages
        .chunks(8)
        .flat_map(|some| race(some.len(), |n| fixture.at(&fixture.api.address, "/messages", some[n].clone())))
        .map(|answer| answer.ok())
        .collect();
    check_conversations(&fixture, &answers);
    fixture.post("/messages", with(realistic_message(0), json!({"accountId": "acc-none"}))).refuses("body.accountId");
    fixture.post("/messages", with(realistic_message(0), json!({"text": 7}))).refuses("body.text");
}

#[test]
fn realistic_messages_on_the_command_line_are_all_accepted_and_stored() {
    let fixture = SettingsFixture::open();
    let database = &fixture.shop.server.database;
    let file = database.folder().join("inbox.ndjson");
    let text: String = inbox().iter().map(|message| format!("{message}\n")).collect();
    std::fs::write(&file, text).expect("the file is written");
    let printed = database.run(&["message", "receive", "--store", "desk", &file.display().to_string()]);
    check_conversations(&fixture, &parsed(&printed));
}
