//! Tests of POST /messages/email/new and POST /messages/email: the stored and the sent e-mail, its thread and contact, and refused bodies.

use serde_json::{Value, json};

use super::{WriteFixture, acknowledged, outbound, sends::untouched, without};
use crate::{
    REV_A,
    client::Answer,
    fixture::{channels, two},
};

/// A message text with which every delivery attempt on a simulated channel fails. The message stays in the outbox (the queue of messages
/// that wait to be sent), where the test reads it.
const WAITING: &str = "simulate:down";

fn new(shop: &WriteFixture, more: Value) -> Answer {
    send(shop, "/messages/email/new", json!({"accountId": "acc-mail", "to": [{"email": "eva@example.com"}], "text": "Hi"}), more)
}

fn reply(shop: &WriteFixture, more: Value) -> Answer {
    send(shop, "/messages/email", json!({"conversationId": "conv-mail", "to": [{"email": "eva@example.com"}], "text": "Hi"}), more)
}

/// Sends a POST request with the body `body`, in which the properties of `more` replace those of the same name. Null removes a property.
fn send(shop: &WriteFixture, path: &str, mut body: Value, more: Value) -> Answer {
    for (name, value) in more.as_object().into_iter().flatten() {
        match value {
            Value::Null => body = without(body, &[name]),
            value => body[name] = value.clone(),
        }
    }
    shop.post(path, body).send()
}

fn addresses(count: usize) -> Value {
    (0..count).map(|n| json!({"email": format!("a{n}@example.com")})).collect()
}

#[test]
fn an_e_mail_of_the_wrong_shape_is_refused() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    let both: [fn(&WriteFixture, Value) -> Answer; 2] = [new, reply];
    untouched(&shop, || {
        for (more, field) in [
            (json!({"to": null}), "body.to"),
            (json!({"to": []}), "body.to"),
            (json!({"to": {}}), "body.to"),
            (json!({"to": "eva@example.com"}), "body.to"),
            (json!({"to": ["eva@example.com"]}), "body.to[0]"),
            (json!({"to": addresses(51)}), "body.to"),
            (json!({"cc": addresses(51)}), "body.cc"),
            (json!({"bcc": addresses(51)}), "body.bcc"),
            (json!({"to": [{"name": "Eva"}]}), "body.to[0].email"),
            (json!({"to": [{"email": 5}]}), "body.to[0].email"),
            (json!({"to": [{"email": null}]}), "body.to[0].email"),
            (json!({"to": [{"email": "a@b.example", "name": null}]}), "body.to[0].name"),
            (json!({"to": [{"email": "a@b.example", "type": "to"}]}), "body.to[0].type"),
            (json!({"to": [{"email": "a@b.example", "name": "E\nBcc: x@b.example"}]}), "body.to[0].name"),
            (json!({"cc": [{"email": "a@b.example"}, {"email": "b"}]}), "body.cc[1].email"),
            (json!({"bcc": [{"email": "a@b.example\r\nX: y"}]}), "body.bcc[0].email"),
            (json!({"subject": 5}), "body.subject"),
            (json!({"subject": "a\r\nBcc: x@b.example"}), "body.subject"),
            (json!({"subject": "a\u{85}b"}), "body.subject"),
            (json!({"subject": "a\tb"}), "body.subject"),
            (json!({"subject": "a\u{0}b"}), "body.subject"),
            (json!({"text": 5}), "body.text"),
            (json!({"html": true}), "body.html"),
            (json!({"text": null}), "body.text"),
            (json!({"text": ""}), "body.text"),
            (json!({"text": " \n", "html": "\t"}), "body.text"),
            (json!({"text": "a\u{0}b"}), "body.text"),
            (json!({"attachments": []}), "body.attachments"),
        ] {
            for send in both {
                send(&shop, more.clone()).refuses(field);
            }
        }
        for bad in [
            "",
            "eva",
            "@example.com",
            "eva@",
            "eva@@example.com",
            "Eva <eva@example.com>",
            "<eva@example.com>",
            "eva@example.com\n",
            "a b@example.com",
        ] {
            let to = json!([{"email": "a@b.example"}, {"email": "a@b.example"}, {"email": "a@b.example"}, {"email": bad}]);
            for send in both {
                send(&shop, json!({"to": to})).refuses("body.to[3].email");
            }
        }
        for absent in ["cc", "bcc", "subject", "html"] {
            for (path, id) in [("/messages/email/new", "accountId"), ("/messages/email", "conversationId")] {
                let mut body = json!({id: "nobody", "to": [{"email": "eva@example.com"}], "text": "Hi"});
                body[absent] = Value::Null;
                shop.post(path, body).send().refuses(&format!("body.{absent}"));
            }
        }
        new(&shop, json!({"accountId": null})).refuses("body.accountId");
        new(&shop, json!({"accountId": 5})).refuses("body.accountId");
        new(&shop, json!({"conversationId": "conv-mail"})).refuses("body.conversationId");
        reply(&shop, json!({"conversationId": null})).refuses("body.conversationId");
        reply(&shop, json!({"accountId": "acc-mail"})).refuses("body.accountId");
        // The form of the body is checked first, then whether the account or conversation exists, then whether its channel is e-mail.
        new(&shop, json!({"accountId": "nobody", "to": []})).refuses("body.to");
        reply(&shop, json!({"conversationId": "nobody", "text": " "})).refuses("body.text");
        new(&shop, json!({"accountId": "nobody"})).fails(404);
        reply(&shop, json!({"conversationId": "nobody"})).fails(404);
        for account in ["acc-web", "acc-wa", "acc-line"] {
            new(&shop, json!({"accountId": account})).refuses("body.accountId");
        }
        for conversation in ["conv-web", "conv-wa-late", "conv-line"] {
            reply(&shop, json!({"conversationId": conversation})).refuses("body.conversationId");
        }
    });
}

#[test]
fn each_new_e_mail_starts_a_new_conversation() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::simulated();
    let tickets = shop.post("/tickets/list", json!({"statuses": ["open", "closed"]})).query("pageSize", 100).send().ids();
    let body = json!({
        "to": [{"email": "Eva.Stone@Example.com", "name": "Eva Stone"}, {"email": "mia@example.com"}],
        "cc": addresses(50), "bcc": [{"email": "b@example.com", "name": "ไทย \"B\""}], "subject": "Your order", "text": WAITING, "html": "<p>Hi</p>",
    });
    new(&shop, body.clone()).is(acknowledged());
    let eva = shop.only_contact("eva.stone@example.com");
    assert_eq!(
        (&eva["firstName"], &eva["fullName"], &eva["email"]),
        (&json!("Eva Stone"), &json!("Eva Stone"), &json!("Eva.Stone@Example.com"))
    );
    let id = eva["id"].as_str().unwrap_or_default();
    let talks = shop.conversations_of(id).ok();
    let [talk] = &talks.as_array().cloned().unwrap_or_default()[..] else { panic!("one conversation: {talks}") };
    let conversation = talk["id"].as_str().unwrap_or_default();
    let shown = shop.newest(conversation);
    let message_id = format!("<{}@example.com>", shown["id"].as_str().unwrap_or_default());
    let sent = shown["sentAt"].clone();
    assert_eq!(
        *talk,
        json!({
            "id": conversation, "channel": "gmail", "accountId": "acc-mail", "contactId": id, "displayName": "Eva Stone",
            "referenceId": message_id, "labelIds": [], "isSpam": false, "unreadMsgCnt": 0, "allMsgCnt": 1, "createdAt": sent, "updatedAt": sent,
            "emailSubject": "Your order", "lastMsg": {"snippet": WAITING, "sentByRecipient": false, "sentAt": sent},
        })
    );
    assert_eq!(shown, outbound(&shown, conversation, "acc-mail", Value::Null, Some(WAITING), None));
    let parcel = shop.parcels()[0].clone();
    assert_eq!(
        without(parcel["content"]["email"].clone(), &["cc"]),
        json!({
            "message_id": message_id, "from": {"email": "shop@example.com"}, "to": body["to"], "bcc": body["bcc"], "subject": "Your order",
            "text": WAITING, "html": "<p>Hi</p>", "in_reply_to": null, "references": [],
        })
    );
    assert_eq!(parcel["content"]["email"]["cc"], addresses(50));
    // Another e-mail to the same address, written in capital letters, creates another conversation of the same contact.
    new(&shop, json!({"accountId": "acc-out", "to": [{"email": "EVA.STONE@example.com", "name": "Someone"}], "text": null, "html": "<p>"}))
        .is(acknowledged());
    let talks = shop.conversations_of(id).ok();
    assert_eq!(talks.as_array().map(Vec::len), Some(2), "{talks}");
    assert_eq!(shop.only_contact("eva.stone@example.com"), eva);
    let last = &talks[0];
    assert_eq!((&last["channel"], last.get("emailSubject"), &last["lastMsg"]["snippet"]), (&json!("outlook"), None, &json!("")));
    let shown = shop.newest(last["id"].as_str().unwrap_or_default());
    assert_eq!(shown, outbound(&shown, last["id"].as_str().unwrap_or_default(), "acc-out", Value::Null, None, None));
    // An e-mail to the address of a known contact creates no contact. A new contact without a name is named after its address.
    new(&shop, json!({"to": [{"email": "MIA@example.com"}]})).is(acknowledged());
    assert_eq!(shop.conversations_of("con-mia").ok()[0]["lastMsg"]["snippet"], "Hi");
    for (to, name) in
        [(json!({"email": "first.last@example.com"}), "first.last"), (json!({"email": "blank@example.com", "name": "  "}), "blank")]
    {
        new(&shop, json!({"to": [to]})).is(acknowledged());
        assert_eq!(shop.only_contact(to["email"].as_str().unwrap_or_default())["fullName"], name);
    }
    let all = shop.post("/tickets/list", json!({"statuses": ["open", "closed"]})).query("pageSize", 100).send().ids();
    assert_eq!(all.len(), tickets.len(), "an outbound e-mail opens no ticket");
}

#[test]
fn an_e_mail_reply_continues_its_thread_and_goes_to_the_given_recipients() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::simulated();
    let replies = [
        ("conv-mail", json!({})),
        ("conv-mail", json!({"subject": "Another"})),
        ("conv-mail", json!({"subject": ""})),
        ("conv-mail-lost", json!({"text": "", "html": "<b>x</b>"})),
    ];
    for (id, more) in &replies {
        let mut more = more.clone();
        more["conversationId"] = json!(id);
        more["html"] = if more.get("html").is_some() { more["html"].clone() } else { json!("") };
        more["text"] = if more.get("text").is_some() { more["text"].clone() } else { json!(WAITING) };
        reply(&shop, more).is(acknowledged());
    }
    let lost = shop.newest("conv-mail-lost");
    assert_eq!(lost, outbound(&lost, "conv-mail-lost", "acc-mail", Value::Null, None, None));
    let parcels = shop.parcels();
    let subjects: Vec<_> = parcels.iter().take(3).map(|parcel| parcel["content"]["email"]["subject"].clone()).collect();
    assert_eq!(subjects, [json!("Re: Order 7"), json!("Another"), json!("")]);
    let mails: Vec<_> = parcels.iter().map(|parcel| &parcel["content"]["email"]).collect();
    for mail in &mails[..3] {
        assert_eq!((&mail["to"], &mail["in_reply_to"]), (&json!([{"email": "eva@example.com"}]), &json!("<three@example.net>")));
        assert_eq!(mail["html"], Value::Null, "an empty part is left out");
    }
    let talk = shop.conversation("conv-mail");
    assert_eq!((&talk["emailSubject"], &talk["allMsgCnt"], &talk["contactId"]), (&json!("Order 7"), &json!(7), &json!("con-mia")));
}

#[test]
fn the_accounts_and_threads_of_another_store_are_not_found() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::with(&[("shop", channels()), ("two", two())]);
    let other = shop.snapshot("two");
    untouched(&shop, || {
        new(&shop, json!({"accountId": "acc-two"})).fails(404);
        reply(&shop, json!({"conversationId": "conv-two"})).fails(404);
        shop.text("conv-two", "x").fails(404);
        shop.post("/messages/template", json!({"conversationId": "conv-two", "templateId": "tpl-two"})).send().fails(404);
        shop.post("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-two"})).send().fails(404);
        let phone = |account: &str, template: &str| {
            shop.post("/messages/template/phone", json!({"accountId": account, "phoneNumber": "+66855555555", "templateId": template}))
                .send()
        };
        phone("acc-two", "tpl-two").fails(404);
        phone("acc-wa", "tpl-two").fails(404);
    });
    assert_eq!(shop.snapshot("two"), other);
}
