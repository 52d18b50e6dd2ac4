//! Tests of POST /messages, and of rules for all operations that send: messaging windows (the time after a message of the contact in which
//! a channel accepts texts), e-mail threads, idempotency keys and concurrent sends.

use serde_json::{Value, json};

use super::{
    WriteFixture, acknowledged,
    concurrent_writes::{gapless, race},
    outbound, stamp, without,
};
use crate::{REV_A, client::Call};

/// Runs an action, and asserts that it changes neither the store nor the lists of tickets and conversations, whose order an export does not
/// contain. Returns the result of the action.
#[track_caller]
pub fn untouched<T>(shop: &WriteFixture, act: impl FnOnce() -> T) -> T {
    let derived = || {
        let tickets = shop.post("/tickets/list", json!({"statuses": ["open", "closed"]})).query("pageSize", 50).send().ok();
        (shop.conversations_of("con-mia").ok(), shop.conversations_of("con-bare").ok(), tickets)
    };
    let before = derived();
    let outcome = shop.assert_unchanged(act);
    assert_eq!(derived(), before);
    outcome
}

/// Returns a valid request for each operation that sends a message in the API revision under test.
fn valid_send_requests(shop: &WriteFixture) -> Vec<Call> {
    let mut calls = vec![shop.post("/messages", json!({"conversationId": "conv-web", "text": "Hi"}))];
    if !REV_A {
        let to = json!([{"email": "eva@example.com"}]);
        calls.extend([
            shop.post("/messages/email/new", json!({"accountId": "acc-mail", "to": to, "text": "Hi"})),
            shop.post("/messages/email", json!({"conversationId": "conv-mail", "to": to, "text": "Hi"})),
            shop.post("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-APPROVED"})),
            shop.post(
                "/messages/template/phone",
                json!({"accountId": "acc-wa", "phoneNumber": "+66844444444", "templateId": "tpl-APPROVED"}),
            ),
        ]);
    }
    calls
}

/// Returns the ids of the tickets whose contact waits for a reply, sorted.
fn waiting(shop: &WriteFixture) -> Vec<String> {
    let mut ids =
        shop.post("/tickets/list", json!({"advancedFilters": {"waitingForReply": {"value": 0}}})).query("pageSize", 50).send().ids();
    ids.sort_unstable();
    ids
}

#[test]
fn a_sent_text_is_listed_and_counted_and_causes_an_event() {
    let shop = WriteFixture::channels();
    let (conversation, ticket) = (shop.conversation("conv-web"), shop.ticket("t-web"));
    assert!(waiting(&shop).contains(&"t-web".to_owned()));
    let text = format!("  Hello\n\t\"ไทย\" <b>\u{202e} {} ", "x".repeat(120));
    shop.text("conv-web", &text).is(acknowledged());
    let messages = shop.messages("conv-web");
    assert_eq!(messages.len(), 3);
    let sent = stamp(&messages[0], "sentAt");
    let payload = json!({"type": "text", "text": text});
    assert_eq!(messages[0], outbound(&messages[0], "conv-web", "acc-web", payload, Some(&text), None));
    // The API key has no user. So the message has no author, and `expand=sentBy` adds nothing.
    let expanded = shop.api.get("/messages").query("conversationId", "conv-web").query("pageSize", 1).query("expand", "sentBy").send();
    assert_eq!(expanded.ok()[0].get("sentBy"), None);
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut expected = conversation.clone();
    expected["allMsgCnt"] = json!(3);
    expected["updatedAt"] = json!(sent);
    expected["lastMsg"] = json!({"snippet": folded.chars().take(100).collect::<String>(), "sentByRecipient": false, "sentAt": sent});
    assert_eq!(shop.conversation("conv-web"), expected);
    assert_eq!(shop.ticket("t-web"), ticket, "a message is no change of its ticket");
    assert_eq!(shop.conversations_of("con-mia").ids()[0], "conv-web");
    assert_eq!(shop.post("/tickets/list", json!({})).send().ids()[0], "t-web");
    assert!(!waiting(&shop).contains(&"t-web".to_owned()));
    let events = shop.events();
    gapless(&events);
    assert_eq!(shop.kinds(), ["message.sent"]);
    assert_eq!(events[0]["data"], json!({"message": messages[0], "conversationId": "conv-web", "ticketId": "t-web"}));
    assert_eq!(events[0]["actor"], json!({"type": "api_key", "id": shop.key.id}));
    assert_eq!(shop.undelivered(), Vec::<Value>::new());
    // Without an idempotency key, the same request sends another message.
    shop.text("conv-web", &text).is(acknowledged());
    assert_eq!(shop.conversation("conv-web")["allMsgCnt"], 4);
}

#[test]
fn a_text_moves_no_ticket_to_another_state() {
    let shop = WriteFixture::channels();
    let all = |shop: &WriteFixture| {
        let listed = shop.post("/tickets/list", json!({"statuses": ["open", "closed"]})).query("pageSize", 50).send();
        let mut ids = listed.ids();
        ids.sort_unstable();
        ids
    };
    let (shown, tickets) = (all(&shop), ["t-shut", "t-asleep", "t-spam"].map(|id| shop.ticket(id)));
    for id in ["conv-shut", "conv-asleep"] {
        shop.text(id, "Hi").is(acknowledged());
    }
    shop.text("conv-spam", "Hi").is(acknowledged());
    assert_eq!(all(&shop), shown);
    assert_eq!(["t-shut", "t-asleep", "t-spam"].map(|id| shop.ticket(id)), tickets);
    // `t-asleep` is still snoozed, so the list of open tickets leaves it out.
    assert!(!shop.post("/tickets/list", json!({"statuses": ["open"]})).query("pageSize", 50).send().ids().contains(&"t-asleep".to_owned()));
    // A message that is sent after a ticket was closed does not belong to that ticket.
    let of_ticket = |id: &str| shop.api.get("/messages").query("ticketId", id).query("pageSize", 15).send().ids().len();
    assert_eq!((of_ticket("t-shut"), of_ticket("t-asleep")), (2, 3));
    let tickets: Vec<_> = shop.events().iter().map(|event| event["data"]["ticketId"].clone()).collect();
    assert_eq!(tickets, [Value::Null, json!("t-asleep"), json!("t-spam")]);
    assert_eq!(shop.conversation("conv-spam")["isSpam"], true);
}

#[test]
fn the_messaging_window_of_a_channel_is_enforced() {
    let shop = WriteFixture::channels();
    untouched(&shop, || {
        for id in ["conv-wa-late", "conv-wa-never"] {
            let answer = shop.text(id, "Hi");
            answer.refuses("body.conversationId");
            let message = answer.fails(400);
            assert_eq!(message.contains("POST /messages/template"), !REV_A, "{message}");
        }
        for id in ["conv-fb-week", "conv-ig-week", "conv-ig-never"] {
            shop.text(id, "Hi").refuses("body.conversationId");
        }
    });
    for (id, kind) in [
        ("conv-wa", None),
        ("conv-wb", None),
        ("conv-fb", None),
        ("conv-fb-day", Some("human_agent")),
        ("conv-ig", None),
        ("conv-ig-day", Some("human_agent")),
        ("conv-line", None),
        ("conv-quiet", None),
    ] {
        shop.text(id, "Hi").is(acknowledged());
        let (shown, account) = (shop.newest(id), shop.conversation(id)["accountId"].clone());
        let payload = json!({"type": "text", "text": "Hi"});
        assert_eq!(shown, outbound(&shown, id, account.as_str().unwrap_or_default(), payload, Some("Hi"), kind), "{id}");
        // An outbound message does not set `lastRecipientMsgDate`.
        assert_eq!(shop.conversation(id).get("lastRecipientMsgDate").is_some(), id != "conv-quiet");
    }
    shop.settled();
    // The messages were accepted, but not sent: this server has no connector for these channels, that is, no way to send through them.
    let failed = shop.undelivered();
    assert_eq!(failed.len(), 8);
    for one in &failed {
        assert_eq!((&one["state"], &one["reason"]), (&json!("failed"), &json!("no_connector")), "{one}");
    }
    let first = shop.newest("conv-wa");
    let expected = json!({
        "messageId": first["id"], "conversationId": "conv-wa", "accountId": "acc-wa", "sentAt": first["sentAt"], "state": "failed",
        "reason": "no_connector", "attempts": 1,
    });
    assert_eq!(failed[0], expected);
    assert_eq!(shop.kinds(), Vec::<String>::new());
}

#[test]
fn the_newer_revision_limits_the_length_of_a_text() {
    let shop = WriteFixture::channels();
    if REV_A {
        for text in ["", "  ", &"𝕏".repeat(5000)] {
            shop.text("conv-web", text).is(acknowledged());
            let payload = if text.is_empty() { None } else { Some(json!({"type": "text", "text": text})) };
            let shown = shop.newest("conv-web");
            assert_eq!(shown.get("payload"), payload.as_ref());
        }
        return;
    }
    untouched(&shop, || {
        for text in ["", " ", "\n\t\u{a0}\u{3000}", &"x".repeat(1001), &"𝕏".repeat(1001)] {
            shop.text("conv-web", text).refuses("body.text");
        }
        // The text is checked before the existence of the conversation and before its messaging window.
        shop.text("nobody", "").refuses("body.text");
        shop.text("conv-wa-late", "").refuses("body.text");
        shop.text("nobody", "x").fails(404);
    });
    for text in ["x", &"𝕏".repeat(1000)] {
        shop.text("conv-web", text).is(acknowledged());
        assert_eq!(shop.newest("conv-web")["text"], text);
    }
}

#[test]
fn a_text_of_the_wrong_shape_is_refused() {
    let shop = WriteFixture::channels();
    untouched(&shop, || {
        for (body, field) in [
            (json!({"text": "x"}), "body.conversationId"),
            (json!({"conversationId": "conv-web"}), "body.text"),
            (json!({"conversationId": "conv-web", "text": null}), "body.text"),
            (json!({"conversationId": "conv-web", "text": 5}), "body.text"),
            (json!({"conversationId": "conv-web", "text": ["x"]}), "body.text"),
            (json!({"conversationId": "conv-web", "text": "a\u{0}b"}), "body.text"),
            (json!({"conversationId": null, "text": "x"}), "body.conversationId"),
            (json!({"conversationId": {"id": "conv-web"}, "text": "x"}), "body.conversationId"),
            (json!({"conversationId": "conv-web", "text": "x", "images": []}), "body.images"),
            (json!({"conversationId": "conv-web", "text": "x", "type": "human_agent"}), "body.type"),
        ] {
            shop.post("/messages", body).send().refuses(field);
        }
        shop.post("/messages", json!({"conversationId": "conv-web", "text": "x"})).query("expand", "sentBy").send().refuses_expand();
        for id in ["nobody", "", "con-mia", "t-web"] {
            shop.text(id, "x").fails(404);
        }
    });
}

#[test]
fn a_text_in_an_e_mail_thread_is_a_plain_reply() {
    let shop = WriteFixture::simulated();
    let text = "simulate:down Thanks";
    untouched(&shop, || shop.text("conv-mail-lost", text).refuses("body.conversationId"));
    for id in ["conv-mail", "conv-mail-re", "conv-mail-plain", "conv-mail-sly"] {
        shop.text(id, text).is(acknowledged());
    }
    let parcels = shop.parcels();
    let mail = |n: usize| {
        let mail = parcels[n]["content"]["email"].clone();
        assert_eq!(
            mail["message_id"].as_str().unwrap_or_default().split('@').next(),
            parcels[n]["message_id"].as_str().map(|id| format!("<{id}")).as_deref()
        );
        without(mail, &["message_id"])
    };
    let base = json!({"cc": [], "bcc": [], "html": null, "text": text});
    let with = |more: Value| {
        let mut mail = base.clone();
        mail.as_object_mut().into_iter().for_each(|mail| mail.extend(more.as_object().cloned().unwrap_or_default()));
        mail
    };
    let ours = json!({"email": "shop@example.com"});
    assert_eq!(
        mail(0),
        with(json!({
            "from": ours, "to": [{"email": "writer@example.net", "name": "Wim Writer"}], "subject": "Re: Order 7",
            "in_reply_to": "<three@example.net>", "references": ["<one@example.net>", "<two@example.com>", "<three@example.net>"],
        }))
    );
    // The sender of the last inbound message is not an e-mail address, so the reply goes to the contact's address. The account's name is
    // not an e-mail address, so the reply has no `from`.
    assert_eq!(
        mail(1),
        with(json!({"from": null, "to": [{"email": "Mia@Example.com"}], "subject": "RE: hello", "in_reply_to": null, "references": []}))
    );
    assert_eq!(
        mail(2),
        with(json!({"from": ours, "to": [{"email": "thread@example.org"}], "subject": null, "in_reply_to": null, "references": []}))
    );
    // Line breaks in the subject and in the sender's name are replaced, so they cannot add headers to the e-mail.
    assert_eq!(
        mail(3),
        with(json!({
            "from": ours, "to": [{"email": "sly@example.net", "name": "Sly  Bcc: eve@example.com"}],
            "subject": "Re: Hi Bcc: eve@example.com x", "in_reply_to": null, "references": [],
        }))
    );
    let shown = shop.newest("conv-mail");
    let id = shown["id"].as_str().unwrap_or_default();
    let payload = json!({
        "type": "email", "text": text,
        "email": {
            "messageId": format!("<{id}@example.com>"), "from": ours, "to": [{"email": "writer@example.net", "name": "Wim Writer"}],
            "subject": "Re: Order 7",
        },
    });
    assert_eq!(shown, outbound(&shown, "conv-mail", "acc-mail", payload, Some(text), None));
    assert_eq!(shop.conversation("conv-mail")["emailSubject"], "Order 7");
    // The next reply in the thread refers to this reply.
    shop.text("conv-mail", text).is(acknowledged());
    let references = shop.parcels()[4]["content"]["email"]["references"].clone();
    assert_eq!(references.as_array().and_then(|all| all.last()), Some(&json!(format!("<{id}@example.com>"))));
}

#[test]
fn the_older_revision_lacks_the_operations_for_mails_and_templates() {
    if !REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    for path in ["/messages/email/new", "/messages/email", "/messages/template", "/messages/template/phone"] {
        shop.post(path, json!({})).send().fails(404);
    }
}

#[test]
fn a_send_with_an_idempotency_key_happens_once() {
    let shop = WriteFixture::channels();
    let counts = |shop: &WriteFixture| shop.server.database.ask("SELECT id FROM messages WHERE inbound = FALSE").len();
    let before = counts(&shop);
    for call in valid_send_requests(&shop) {
        let first = call.clone().header("idempotency-key", "k").send();
        first.is(acknowledged());
        let again = call.clone().header("idempotency-key", "k").send();
        again.is(acknowledged());
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", again.described());
    }
    assert_eq!(counts(&shop), before + valid_send_requests(&shop).len());
    untouched(&shop, || {
        for call in valid_send_requests(&shop) {
            // The request repeats the idempotency key with another body (one more space), which is a conflict.
            call.reworded().header("idempotency-key", "k").send().fails(409);
        }
    });
    // First sends many concurrent requests with the same idempotency key, of which one is executed. Then sends concurrent requests with
    // different keys, which are all executed.
    for (n, call) in valid_send_requests(&shop).into_iter().enumerate() {
        let before = counts(&shop);
        let answers = race(20, |_| call.clone().header("idempotency-key", &format!("race-{n}")).send());
        for answer in answers {
            if answer.status != 200 {
                answer.fails(409);
            }
        }
        assert_eq!(counts(&shop), before + 1);
        let answers = race(12, |caller| call.clone().header("idempotency-key", &format!("all-{n}-{caller}")).send());
        answers.iter().for_each(|answer| answer.is(acknowledged()));
        assert_eq!(counts(&shop), before + 13);
    }
}

#[test]
fn parallel_sends_are_all_counted_and_the_newest_is_shown() {
    let shop = WriteFixture::channels();
    race(32, |n| shop.text("conv-web", &format!("number {n}"))).iter().for_each(|answer| answer.is(acknowledged()));
    let (conversation, messages) = (shop.conversation("conv-web"), shop.messages("conv-web"));
    assert_eq!((&conversation["allMsgCnt"], &conversation["unreadMsgCnt"]), (&json!(34), &json!(3)));
    let newest = &messages[0];
    let text = if REV_A { &newest["payload"]["text"] } else { &newest["text"] };
    assert_eq!(conversation["lastMsg"], json!({"snippet": text, "sentByRecipient": false, "sentAt": newest["sentAt"]}));
    let events = shop.events();
    gapless(&events);
    assert_eq!(events.len(), 32);
    let mut got: Vec<_> = events.iter().map(|event| event["data"]["message"]["id"].to_string()).collect();
    got.sort_unstable();
    got.dedup();
    assert_eq!(got.len(), 32);
}
