//! Tests of inbound messages in the forms in which messaging channels really send them: spellings of phone numbers, folded subjects (broken
//! over several lines), unusable names of senders, wrong clocks.

use serde_json::{Value, json};

use super::{World, everywhere, known, message, parsed, with};

const PHONE: &str = "+66812345678";

/// The spellings of [`PHONE`] that occur in the `referenceId` of WhatsApp conversations.
const SPELLINGS: [&str; 10] = [
    "66812345678",
    "66812345678@s.whatsapp.net",
    PHONE,
    "66812345678:12@s.whatsapp.net",
    "66812345678@c.us",
    "0066812345678",
    "tel:+66-81-234-5678",
    "+66 81 234 5678",
    " 66 81 234 5678 ",
    "whatsapp:+66812345678",
];

fn numbered(number: usize) -> String {
    format!("x{number}")
}

#[test]
fn all_spellings_of_a_phone_belong_to_one_whatsapp_thread() {
    everywhere(|world| {
        let messages: Vec<Value> = SPELLINGS.iter().enumerate().map(|(n, spelled)| message("wa", spelled, &numbered(n))).collect();
        let answers = world.receive(&messages);
        assert!(answers.iter().all(|answer| answer["conversationId"] == answers[0]["conversationId"]), "{answers:?}");
        let (conversations, contacts) = (world.records("conversation"), world.records("contact"));
        assert_eq!((conversations.len(), &conversations[0]["referenceId"]), (1, &json!(PHONE)));
        assert_eq!((contacts.len(), &contacts[0]["phone"]), (1, &json!(PHONE)));
        // On LINE, the `referenceId` is not normalised, even if it looks like a phone number.
        assert_eq!(world.one(message("li", "66812345678", "x")).get("ignored"), None);
        assert!(world.records("conversation").iter().any(|conversation| conversation["referenceId"] == "66812345678"));
    });
}

/// Older builds did not normalise the `referenceId` of a conversation. The test stores reference ids as these builds did, and receives
/// messages with the same phone number. The messages must continue the stored conversations.
#[test]
fn a_message_continues_a_whatsapp_thread_stored_with_another_phone_spelling() {
    everywhere(|world| {
        for (n, former) in ["66812345678", "66812345678@c.us", "66812345678@s.whatsapp.net", "66812345678:3@c.us"].iter().enumerate() {
            let first = world.one(message("wa", former, &numbered(n)));
            world.sql(&format!("UPDATE conversations SET reference_id = '{former}'"));
            world.sql("UPDATE contacts SET phone = NULL");
            // A stored reference with a device number (`:3`) is found only if the message has exactly the same reference.
            let spelled = if former.contains(':') { [*former, *former] } else { [PHONE, *former] };
            for (again, reference) in spelled.iter().enumerate() {
                let answer = world.one(message("wa", reference, &format!("x{n}-{again}")));
                assert_eq!(answer["conversationId"], first["conversationId"], "{former} {reference}");
            }
        }
        // The reference of a WhatsApp group is refused in a message that would start a new conversation. An existing conversation with such
        // a reference still gets messages.
        let first = world.one(message("wa", PHONE, "y1"));
        let id = first["conversationId"].as_str().unwrap();
        world.sql(&format!("UPDATE conversations SET reference_id = '1203630@g.us' WHERE id = '{id}'"));
        assert_eq!(world.one(message("wa", "1203630@g.us", "y2"))["conversationId"], first["conversationId"]);
    });
}

fn whatsapp(id: &str, reference: &str) -> Value {
    let at = "2026-01-01T00:00:00.000Z";
    json!({"kind": "conversation", "record": {"id": id, "channel": "whatsapp", "accountId": "wa", "contactId": "c", "displayName": "M",
        "referenceId": reference, "labelIds": [], "isSpam": false, "createdAt": at, "updatedAt": at}})
}

fn references(world: &World) -> Vec<String> {
    let on_whatsapp = world.records("conversation").into_iter().filter(|conversation| conversation["accountId"] == "wa");
    on_whatsapp.map(|conversation| conversation["referenceId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_import_normalises_the_references_of_whatsapp_threads() {
    everywhere(|world| {
        let mut records = known(json!({}), &[]);
        let spelled = ["66811111101@c.us", "0066811111102", "+66811111103", "66811111104", "+66 81 111 1105"];
        records.extend(spelled.iter().enumerate().map(|(n, reference)| whatsapp(&format!("w{n}"), reference)));
        world.import(&records);
        let called = ["+66811111101", "+66811111102", "+66811111103", "+66811111104", "+66811111105"];
        assert_eq!(references(world), called);
        assert_eq!(world.one(message("wa", "66811111102", "x1"))["conversationId"], "w1");
        // Imports the same records again. They replace the existing records, and the references stay normalised.
        world.import(&records);
        assert_eq!(references(world), called);
        for (reference, reason) in [
            ("not a phone", "conversation.referenceId: must be a phone number on WhatsApp"),
            ("120363041234567890@g.us", "conversation.referenceId: must be a phone number on WhatsApp"),
            // The conversation `w0` already has this phone number as its reference.
            ("66811111101", "conversation.referenceId"),
        ] {
            let said = world.import_refused(&[whatsapp("w9", reference)]);
            assert!(said.contains(reason), "{reference}: {said}");
        }
        assert_eq!(references(world), called);
    });
}

/// A store that is older than the normalisation of phone numbers may have references in any spelling, and several conversations for one
/// number. Its export flags these conversations with `asStored`, so that an import accepts them unchanged.
#[test]
fn an_import_accepts_exported_whatsapp_references_that_are_not_normalised() {
    everywhere(|world| {
        let as_stored = |record: Value| with(record, json!({"asStored": true}));
        let mut records = known(json!({}), &[]);
        records.extend([
            as_stored(whatsapp("w1", "66812345678")),
            whatsapp("w2", PHONE),
            as_stored(whatsapp("w3", "66811111111@c.us")),
            as_stored(whatsapp("w4", "66811111111")),
            as_stored(whatsapp("w5", "not a phone")),
        ]);
        world.import(&records);
        assert_eq!(references(world), ["66812345678", PHONE, "66811111111@c.us", "66811111111", "not a phone"]);
        assert_eq!(world.one(message("wa", "66812345678@c.us", "x1"))["conversationId"], "w2");
        let export = world.ok(&["export", "--store", "s"], "");
        assert_eq!(export.matches("\"asStored\":true").count(), 4);
        world.import(&parsed(&export));
        assert_eq!(world.ok(&["export", "--store", "s"], ""), export);
    });
}

#[test]
fn a_folded_subject_is_unfolded_and_a_blank_one_is_omitted() {
    everywhere(|world| {
        let line = Some("Your order of yesterday");
        for (n, (subject, kept)) in
            [("Your order\r\n of yesterday", line), ("Your order \n\tof yesterday\r\n", line), (" \r\n ", None), ("", None)]
                .into_iter()
                .enumerate()
        {
            let mail = with(message("gm", &format!("<{n}@example.com>"), &numbered(n)), json!({"emailSubject": subject}));
            let answer = world.one(mail);
            assert_eq!(answer.get("ignored"), None);
            let conversation = world.record("conversation", &answer["conversationId"]);
            assert_eq!(conversation.get("emailSubject"), kept.map(|kept| json!(kept)).as_ref(), "{subject:?}");
            let payload = json!({"type": "email", "text": "x", "email": {"subject": subject}});
            let imported =
                json!({"id": "m", "conversationId": "v", "direction": "inbound", "sentAt": "2026-01-01T00:00:00Z", "payload": payload});
            let mut records = known(json!({"emailSubject": subject}), &[]);
            records.push(json!({"kind": "message", "record": imported}));
            world.import(&records);
            assert_eq!(world.record("conversation", &json!("v")).get("emailSubject"), kept.map(|kept| json!(kept)).as_ref(), "{subject:?}");
            let own = &world.record("message", &json!("m"))["payload"]["email"];
            assert_eq!(own.get("subject"), kept.map(|kept| json!(kept)).as_ref(), "{subject:?}");
            // A record with `asStored` may contain a folded or blank subject, as older builds stored it. The import keeps it unchanged.
            for record in &mut records {
                record["asStored"] = json!(true);
            }
            world.import(&records);
            assert_eq!(world.record("conversation", &json!("v"))["emailSubject"], subject);
            let export = world.ok(&["export", "--store", "s"], "");
            assert_eq!(export.matches("\"asStored\":true").count(), 2, "{export}");
            world.import(&parsed(&export));
            assert_eq!(world.ok(&["export", "--store", "s"], ""), export);
        }
    });
}

#[test]
fn a_message_is_accepted_without_its_unusable_parts() {
    everywhere(|world| {
        let got = |answer: &Value| -> Vec<String> {
            answer["ignored"].as_array().into_iter().flatten().map(|one| one["member"].as_str().unwrap().to_owned()).collect()
        };
        for (n, (more, ignored, name)) in [
            (json!({"sender": {"id": "u1", "name": " "}}), vec!["sender.name"], "u1"),
            (json!({"sender": {"id": "u1", "name": "a\u{0}b"}}), vec!["sender.name"], "u1"),
            (json!({"contact": {"firstName": "A", "phone": "08"}}), vec!["contact.phone"], "A"),
            (json!({"contact": {"firstName": "A", "email": "Mia <mia@example.com>"}}), vec!["contact.email"], "A"),
            (
                json!({"contact": {"firstName": " ", "lastName": "", "email": "x", "phone": "+999"}}),
                vec!["contact.firstName", "contact.lastName", "contact.email", "contact.phone"],
                "Nok",
            ),
            (json!({"contact": {"phone": "+66 81-111-1111"}}), vec![], "Nok"),
            (json!({"sender": {"id": "u1", "name": null}, "emailSubject": null, "contact": {"email": null}}), vec![], "u1"),
            (
                json!({"sender": {"id": "u1", "name": ["a"]}, "emailSubject": 7, "contact": {"firstName": {"th": "a"}, "phone": 66812345678_u64}}),
                vec!["sender.name", "emailSubject", "contact.firstName", "contact.phone"],
                "u1",
            ),
            (json!({"contact": {"firstName": "x".repeat(65 * 1024)}}), vec!["contact.firstName"], "Nok"),
        ]
        .into_iter()
        .enumerate()
        {
            let sent = with(message("li", &format!("t{n}"), &numbered(n)), more);
            let answer = world.one(sent.clone());
            assert_eq!(got(&answer), ignored, "{answer}");
            assert!(answer["ignored"].as_array().into_iter().flatten().all(|one| one["reason"].is_string()), "{answer}");
            let conversation = world.record("conversation", &answer["conversationId"]);
            assert_eq!(conversation["displayName"], name, "{n}");
            assert_eq!(world.one(sent), with(answer, json!({"duplicate": true})), "the repeated answer is the same");
        }
        assert!(world.records("contact").iter().any(|contact| contact["phone"] == "+66811111111"));
        assert_eq!(world.records("message").len(), 9);
        // On WhatsApp, the contact gets the phone number in `referenceId`, even if `contact.phone` of the message is unusable.
        let answer = world.one(with(message("wa", PHONE, "y"), json!({"contact": {"firstName": "A", "phone": "081"}})));
        assert_eq!(got(&answer), ["contact.phone"]);
        let conversation = world.record("conversation", &answer["conversationId"]);
        assert_eq!(world.record("contact", &conversation["contactId"])["phone"], PHONE);
    });
}

#[test]
fn a_message_from_the_future_is_stored_and_sorted_by_its_time_of_receipt() {
    const FUTURE: &str = "2098-01-01T00:00:00.000Z";
    everywhere(|world| {
        let first = world.one(with(message("li", "t", "x1"), json!({"sentAt": FUTURE, "text": "from the future"})));
        let kept = world.record("message", &first["messageId"]);
        assert_eq!(kept["sentAt"], FUTURE);
        let received = at(&kept["createdAt"]);
        let sorted = |world: &World| -> Vec<i64> {
            world.derived().split(' ').filter_map(|word| word.parse().ok()).filter(|number| *number > 1_000).collect()
        };
        // Of the derived times, only `last_message_at` is the message's `sentAt`. The columns `last_inbound_at`, `waiting_since` and
        // `sort_at` (of conversation and ticket) have the time of receipt.
        let expected = [received, at(&json!(FUTURE)), received, received, received];
        assert_eq!(sorted(world), expected);
        let export = world.ok(&["export", "--store", "s"], "");
        world.import(&parsed(&export));
        assert_eq!(world.ok(&["export", "--store", "s"], ""), export);
        assert_eq!(sorted(world), expected, "an import derives the same values");
        // A message that is received later becomes the newest message of the conversation, although its `sentAt` is earlier.
        let next = world.one(with(message("li", "t", "x2"), json!({"text": "now"})));
        assert_eq!(next["ticketId"], first["ticketId"]);
        assert!(world.derived().contains(" now "), "{}", world.derived());
        // `createdAt` is the time of receipt. An imported message without `createdAt` gets the time of the import.
        let imported =
            json!({"id": "late", "conversationId": first["conversationId"], "direction": "inbound", "sentAt": FUTURE, "text": "y"});
        world.import(&[json!({"kind": "message", "record": imported})]);
        let kept = world.record("message", &json!("late"));
        assert_eq!(kept["sentAt"], FUTURE);
        assert!(at(&kept["createdAt"]) < received + 600_000, "{kept}");
        // A `sentAt` that is only slightly in the future is used for sorting, since clocks differ.
        let soon = received + 60_000;
        let soon = chrono::DateTime::from_timestamp_millis(soon).unwrap().to_rfc3339();
        world.one(with(message("li", "t", "x3"), json!({"sentAt": soon, "text": "soon"})));
        assert!(world.derived().contains(" soon "), "{}", world.derived());
    });
}

fn at(time: &Value) -> i64 {
    chrono::DateTime::parse_from_rfc3339(time.as_str().unwrap()).unwrap().timestamp_millis()
}

#[test]
fn an_unpaired_surrogate_in_a_message_is_replaced() {
    everywhere(|world| {
        let line = r#"{"accountId":"li","referenceId":"t","externalId":"x","sender":{"id":"u","name":"Mali \ud83d"},"text":"\ude00 \ud83d\ude00"}"#;
        let answers = parsed(&world.ok(&["message", "receive", "--store", "s"], line));
        assert_eq!(answers[0].get("ignored"), None);
        assert_eq!(world.record("conversation", &answers[0]["conversationId"])["displayName"], "Mali \u{fffd}");
        assert_eq!(world.record("message", &answers[0]["messageId"])["text"], "\u{fffd} \u{1f600}");
    });
}
