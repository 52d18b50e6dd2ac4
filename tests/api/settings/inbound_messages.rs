//! Tests of inbound messages in the settings API: a bridge, which connects an account to its channel, delivers messages that contacts
//! wrote.

use serde_json::{Value, json};

use super::SettingsFixture;

const LATER: &str = "2098-01-01T00:00:00.000Z";

#[test]
fn a_bridge_delivers_inbound_messages() {
    let fixture = SettingsFixture::open();
    let message = json!({
        "accountId": "acc-line", "referenceId": "U-new", "externalId": "x-1", "sender": {"id": "U1", "name": "มะลิ"},
        "text": "สวัสดี", "images": ["https://cdn.example/1.png"], "sentAt": "2025-06-01T10:00:00+07:00",
        "contact": {"firstName": "มะลิ", "lastName": "ศรีสุข", "email": "mali@example.com", "phone": "+66811111111"},
    });
    let before = fixture.changes();
    let first = fixture.post("/messages", message.clone()).ok();
    assert_eq!((&first["duplicate"], first["ticketId"].is_string()), (&json!(false), true));
    let conversation = first["conversationId"].as_str().unwrap_or_default();
    let shown = fixture.shop.newest(conversation);
    assert_eq!((&shown["id"], &shown["sentAt"]), (&first["messageId"], &json!("2025-06-01T03:00:00.000Z")));
    assert_eq!(fixture.shop.kinds(), ["message.received", "ticket.opened"]);
    assert_eq!(fixture.shop.events()[0]["actor"]["type"], "contact");
    // The audit log has no entry for an inbound message, since an event records it.
    assert_eq!(fixture.changes_since(before), []);
    let again = fixture.shop.assert_unchanged(|| fixture.post("/messages", message.clone()).ok());
    assert_eq!((&again["duplicate"], &again["messageId"], &again["ticketId"]), (&json!(true), &first["messageId"], &first["ticketId"]));
    assert_eq!(fixture.changes(), before);
    let with = |member: &str, value: Value| {
        let mut changed = message.clone();
        changed[member] = value;
        fixture.post("/messages", changed)
    };
    fixture.shop.assert_unchanged(|| {
        with("accountId", json!("nope")).refuses("body.accountId");
        with("referenceId", json!("")).refuses("body.referenceId");
        with("externalId", json!("x".repeat(513))).refuses("body.externalId");
        with("sender", json!({"name": "x"})).refuses("body.sender.id");
        with("sender", json!({"id": ""})).refuses("body.sender.id");
        with("sentAt", json!("now")).refuses("body.sentAt");
        with("text", json!("a\u{0}b")).refuses("body.text");
        with("text", json!(7)).refuses("body.text");
        with("images", json!("one")).refuses("body.images");
        for blank in ["", " ", "\n\t", "\u{3000}"] {
            with("images", json!(["https://cdn.example/1.png", blank])).refuses("body.images[1]");
        }
        with("unread", json!(1)).refuses("body.unread");
        fixture.post("/messages", json!({})).refuses("body.accountId");
    });
}

#[test]
fn all_spellings_of_a_whatsapp_phone_number_lead_to_one_conversation() {
    let fixture = SettingsFixture::open();
    let mut conversations = Vec::new();
    for (n, reference) in
        ["66899990001", "66899990001@s.whatsapp.net", "+66899990001", "0066899990001", "tel:+66-89-999-0001"].iter().enumerate()
    {
        let message = json!({"accountId": "acc-wa", "referenceId": reference, "externalId": format!("x{n}"), "sender": {"id": reference}, "text": "x"});
        conversations.push(fixture.post("/messages", message).ok()["conversationId"].clone());
    }
    assert!(conversations.iter().all(|id| *id == conversations[0]), "{conversations:?}");
    assert_eq!(fixture.shop.conversation(conversations[0].as_str().unwrap_or_default())["referenceId"], "+66899990001");
    fixture.shop.assert_unchanged(|| {
        for reference in ["not a phone", "0899990001", "120363041234567890@g.us"] {
            let message = json!({"accountId": "acc-wa", "referenceId": reference, "externalId": "x", "sender": {"id": "u"}, "text": "x"});
            fixture.post("/messages", message).refuses("body.referenceId");
        }
    });
}

#[test]
fn a_message_is_accepted_without_its_unusable_parts() {
    let fixture = SettingsFixture::open();
    let message = json!({
        "accountId": "acc-ann", "referenceId": "<1@example.com>", "externalId": "x-1", "sender": {"id": "U1", "name": "a\u{0}b"}, "text": "x",
        "emailSubject": "Your order\r\n of yesterday", "sentAt": LATER,
        "contact": {"firstName": " ", "lastName": "Sri\r\n suk", "email": "Mali <mali@example.com>", "phone": "081"},
    });
    let answer = fixture.post("/messages", message).ok();
    let members: Vec<_> = answer["ignored"].as_array().into_iter().flatten().map(|one| one["member"].clone()).collect();
    assert_eq!(members, ["sender.name", "contact.firstName", "contact.email", "contact.phone"]);
    let conversation = fixture.shop.conversation(answer["conversationId"].as_str().unwrap_or_default());
    assert_eq!((&conversation["emailSubject"], &conversation["displayName"]), (&json!("Your order of yesterday"), &json!("Sri suk")));
    assert_eq!(fixture.shop.newest(conversation["id"].as_str().unwrap_or_default())["sentAt"], LATER);
    let message = json!({
        "accountId": "acc-ann", "referenceId": "<2@example.com>", "externalId": "x-2", "sender": {"id": "U2", "name": null}, "text": "x",
        "emailSubject": ["x"], "contact": {"firstName": "Nok", "lastName": null, "email": {}, "phone": 66_812_345_678_u64},
    });
    let answer = fixture.post("/messages", message).ok();
    let members: Vec<_> = answer["ignored"].as_array().into_iter().flatten().map(|one| one["member"].clone()).collect();
    assert_eq!(members, ["emailSubject", "contact.email", "contact.phone"]);
    // A property that is null counts as absent, and is not reported as ignored.
    let message = json!({
        "accountId": "acc-ann", "referenceId": "<3@example.com>", "externalId": "x-3", "sender": {"id": "U3", "name": "Nok"}, "text": "x",
        "images": null, "sentAt": null, "emailSubject": null, "contact": null,
    });
    assert_eq!(fixture.post("/messages", message).ok().get("ignored"), None);
}
