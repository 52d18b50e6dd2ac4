//! Tests the round trip of an export. A store gets records from API requests and from channels. Its export is imported into another store.
//! The export of that store must have the same bytes.

use serde_json::{Value, json};

use super::WriteFixture;
use crate::{
    REV_A,
    fixture::{ANN, conversation, line, with, write_store},
    harness::Database,
};

/// Returns import lines for channels that [`write_store`] lacks: accounts, a template, and a conversation with an unusual reference.
fn more_channels() -> Vec<Value> {
    let account =
        |id: &str, channel: &str, name: &str| line("account", json!({"id": id, "channel": channel, "name": name, "status": "healthy"}));
    let template = json!({
        "id": "rt-tp", "accountId": "rt-wa", "name": "hello", "parameter_format": "POSITIONAL", "language": "th", "status": "APPROVED",
        "category": "UTILITY", "components": [{"type": "BODY", "text": "สวัสดี {{1}}"}],
    });
    vec![
        account("rt-wa", "whatsapp", "WhatsApp"),
        account("rt-mail", "outlook", "shop@example.com"),
        account("rt-wid", "widget", "Widget"),
        line("template", template),
        // This reference is not a phone number. Earlier versions of the server, which did not normalise phone numbers, stored such
        // references. `asStored` makes the import accept it.
        with(
            line(
                "conversation",
                with(
                    conversation("rt-odd", "rt-wa", "whatsapp", "con-mia", "2025-01-01T00:00:00.000Z"),
                    json!({"referenceId": "not a phone"}),
                ),
            ),
            json!({"asStored": true}),
        ),
    ]
}

/// Returns inbound messages with unusual content that a channel may still deliver.
fn inbound() -> Vec<Value> {
    let message = |account: &str, reference: &str, more: Value| {
        with(json!({"accountId": account, "referenceId": reference, "sender": {"id": "u 1 \"<x>\""}}), more)
    };
    let mut messages = vec![
        message("acc-line", "empty", json!({"text": "", "images": []})),
        message("acc-line", "empty", json!({"images": []})),
        message("acc-line", "empty", json!({"text": " ", "images": ["\u{1}"]})),
        message("acc-line", "empty", json!({"text": "\u{1}\u{2028}\u{feff}\"\\ 𝕏", "images": ["javascript:x", "\n."]})),
        message("acc-line", "nameless", json!({"sender": {"id": "u", "name": ""}, "sentAt": "1970-01-01T00:00:00Z"})),
        message("acc-line", "nameless", json!({"sender": {"id": "u", "name": " "}, "sentAt": "9999-12-31T23:59:59.999Z"})),
        message("acc-line", "told", json!({"contact": {"firstName": "\u{1}A", "lastName": "", "email": "Nok@Example.com"}})),
        message("acc-line", "known", json!({"contact": {"firstName": "B", "email": "NOK@EXAMPLE.COM", "phone": "+661"}})),
        message("acc-line", "long", json!({"contact": {"firstName": "ก".repeat(5000)}, "text": "ก".repeat(50_000)})),
        message("acc-line", &"ก".repeat(512), json!({"text": "x"})),
        message("rt-mail", "Not a mail@@ <x>", json!({"emailSubject": "", "text": "x"})),
        message("rt-mail", "<CAF=1@mail.example.com>", json!({"emailSubject": "Re: \u{1}", "text": "x"})),
        message("rt-mail", "\"quoted\"@example.com", json!({})),
        message("rt-mail", "Plain@Example.com", json!({"emailSubject": "Hi", "sender": {"id": "Plain@Example.com"}, "text": "x"})),
        message("rt-wa", "+66800000009", json!({"text": "x"})),
        message("rt-wa", "66800000009@c.us", json!({"text": "x"})),
        message(
            "acc-line",
            "odd",
            json!({"contact": {"firstName": " ", "lastName": "a\0b", "email": "\"mia\"@example.com", "phone": "08"}}),
        ),
        message("rt-wa", "not a phone", json!({"text": "x"})),
        message("rt-wid", "w", json!({"text": "x"})),
    ];
    for (i, message) in messages.iter_mut().enumerate() {
        message["externalId"] = format!("{}{i}", "ข".repeat(500)).into();
    }
    messages
}

/// Sends a request of each kind of write, with unusual values that are still valid.
fn write_everything(shop: &WriteFixture) {
    for (field, value) in [
        ("f-text", json!("")),
        ("f-notes", json!("\u{1}\u{2028}\u{feff} ")),
        ("f-int", json!(-0.0)),
        ("f-dec", json!(-1.661_971_371_337_755_5e-209)),
        ("f-dec", json!(0.1)),
        ("f-when", json!("2025-01-31T23:30:00.5-02:30")),
        ("f-multi", json!(["b", "a"])),
        ("f-pick", json!("wine")),
        ("f-url", json!("HTTP://x/%zz?\"<>")),
    ] {
        shop.set("t-free", field, value).ok();
    }
    let body =
        json!({"ticketId": "t-ahead", "handledBy": ANN, "isConverted": false, "totalRevenue": 0.0001, "ticketFields": {"f-texts": ["x"]}});
    shop.close(body).ok();
    for (field, value) in [("c-text", json!("")), ("c-when", json!("2025-01-01T00:00:00+07:00")), ("c-many", json!([3, 1]))] {
        shop.set_contact("con-new", field, value).ok();
    }
    for body in [
        json!({"firstName": "\u{1}", "lastName": "\u{feff}", "email": "o'neill+tag@localhost", "phone": "+10"}),
        json!({"firstName": " A "}),
    ] {
        shop.post("/contacts", body).send().ok();
    }
    shop.label("conv-free", &["lab-9", "lab-0"], &["lab-a"]).ok();
    shop.read("conv-free").ok();
    shop.comment("conv-free", "\u{1}<@nobody:x@>").ok();
    let widget = thread(shop, "rt-wid", "w");
    let text = |conversation: &str, text: &str| shop.post("/messages", json!({"conversationId": conversation, "text": text})).send().ok();
    text(&widget, "\u{1} \n");
    text(&thread(shop, "rt-mail", "Plain@Example.com"), " x ");
    if REV_A {
        shop.comment("conv-free", "").ok();
        text(&widget, "");
        return;
    }
    shop.assign(&[("t-free", ANN)]).ok();
    let to = json!([{"email": "Eve+x@Example.com", "name": ""}, {"email": "a@b.co"}]);
    let mail = |more: Value| with(json!({"to": to}), more);
    for content in [json!({"text": "x", "html": ""}), json!({"text": "", "html": "<p>x</p>", "subject": "", "cc": [], "bcc": to})] {
        let mut first = mail(content.clone());
        first["accountId"] = "rt-mail".into();
        shop.post("/messages/email/new", first).send().ok();
        let mut reply = mail(content);
        reply["conversationId"] = thread(shop, "rt-mail", "Not a mail@@ <x>").into();
        shop.post("/messages/email", reply).send().ok();
    }
    let template = json!({"conversationId": thread(shop, "rt-wa", "not a phone"), "templateId": "rt-tp", "variables": [" "]});
    shop.post("/messages/template", template).send().ok();
    let template = json!({"accountId": "rt-wa", "phoneNumber": "+66800000010", "templateId": "rt-tp", "variables": ["\u{feff}"]});
    shop.post("/messages/template/phone", template).send().ok();
}

/// Returns the id of the account's conversation with this reference, according to an export.
fn thread(shop: &WriteFixture, account: &str, reference: &str) -> String {
    let export = shop.server.database.run(&["export", "--store", "desk"]);
    let conversations = export.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).map(|line| line["record"].clone());
    let found = conversations.into_iter().find(|one| one["accountId"] == account && one["referenceId"] == reference);
    found.unwrap_or_else(|| panic!("no thread {reference}"))["id"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn written_and_received_records_import_to_the_same_bytes() {
    let shop = WriteFixture::with(&[("desk", [write_store(), more_channels()].concat())]);
    let folder = tempfile::tempdir().expect("a directory for temporary files");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the file is written");
        path.to_string_lossy().into_owned()
    };
    let messages: String = inbound().iter().map(|message| format!("{message}\n")).collect();
    shop.server.database.run(&["message", "receive", "--store", "desk", &file("messages", &messages)]);
    write_everything(&shop);

    let export = |database: &Database| database.run(&["export", "--store", "desk"]) + "\n";
    let first = export(&shop.server.database);
    let copy = Database::fresh();
    copy.run(&["store", "create", "--id", "desk", "--name", "A copy"]);
    copy.run(&["import", "--store", "desk", &file("first", &first)]);
    for (one, other) in first.lines().zip(export(&copy).lines()) {
        assert_eq!(one, other);
    }
    assert_eq!(first, export(&copy));
}

#[test]
fn a_message_that_an_import_would_refuse_is_not_received() {
    let shop = WriteFixture::open();
    let folder = tempfile::tempdir().expect("a directory for temporary files");
    let path = folder.path().join("message");
    for (more, field) in [(json!({"images": ["a\0b"]}), "images[0]"), (json!({"text": "a\0b"}), "text")] {
        let message = with(json!({"accountId": "acc-line", "referenceId": "r", "externalId": "x", "sender": {"id": "u"}}), more);
        std::fs::write(&path, format!("{message}\n")).expect("the file is written");
        let said =
            shop.assert_unchanged(|| shop.server.database.fails(&["message", "receive", "--store", "desk", &path.to_string_lossy()]));
        assert!(said.contains(&format!("`{field}` ")), "{said}");
    }
}
