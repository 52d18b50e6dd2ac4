//! Tests of GET /messages: the properties of a message, the order of the list, and the messages that belong to a ticket.

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::Call,
    fixture::{ANN, at},
    harness::one,
};

/// The ids of the messages of `conv-main`, newest first. The two newest messages have equal sort times.
const MAIN: [&str; 8] = ["m-8", "m-7", "m-6", "m-5", "m-4", "m-3", "m-2", "m-1"];

pub fn messages() -> Call {
    one().get("/messages").query("pageSize", 15)
}

#[track_caller]
fn shows(id: &str, a: Value, b: Value) {
    let answer = messages().query("conversationId", "conv-main").send();
    assert_eq!(answer.row(id), if REV_A { a } else { b }, "{}", answer.request);
}

#[test]
fn a_message_from_the_contact_shows_its_sender() {
    let sender = json!({"id": "line-mia", "name": "Mia", "avatarUrl": "https://cdn.example/mia.png", "type": "contact"});
    let sent = at("03-01T08:00");
    shows(
        "m-1",
        json!({
            "id": "m-1", "conversationId": "conv-main", "accountId": "acc-line", "sentByRecipient": true, "sentAt": sent,
            "createdAt": sent, "updatedAt": sent, "sender": sender, "payload": {"type": "text", "text": "Hello"},
        }),
        json!({
            "id": "m-1", "conversationId": "conv-main", "messageDirection": "inbound", "sentAt": sent, "messageCategory": "message",
            "text": "Hello", "sender": sender,
        }),
    );
}

#[test]
fn a_message_from_a_teammate_shows_the_author_or_the_type() {
    let sent = at("03-02T08:00");
    shows(
        "m-3",
        json!({
            "id": "m-3", "conversationId": "conv-main", "accountId": "acc-line", "sentByRecipient": false, "sentAt": sent,
            "createdAt": sent, "updatedAt": at("03-02T08:01"), "authorUserId": ANN, "isSentFromApp": true,
            "payload": {"type": "text", "text": "Closed, bye"},
        }),
        json!({
            "id": "m-3", "conversationId": "conv-main", "messageDirection": "outbound", "sentAt": sent, "messageCategory": "message",
            "text": "Closed, bye", "type": "human_agent",
        }),
    );
}

#[test]
fn an_image_message_has_no_text() {
    let (sent, images) = (at("03-05T08:00"), json!(["https://cdn.example/1.png", "https://cdn.example/2.png"]));
    shows(
        "m-6",
        json!({
            "id": "m-6", "conversationId": "conv-main", "accountId": "acc-line", "sentByRecipient": true, "sentAt": sent,
            "createdAt": sent, "updatedAt": sent, "payload": {"type": "image", "images": images},
        }),
        json!({
            "id": "m-6", "conversationId": "conv-main", "messageDirection": "inbound", "sentAt": sent, "messageCategory": "message",
            "images": images,
        }),
    );
}

#[test]
fn an_email_shows_its_payload_or_its_text_depending_on_the_revision() {
    let email = messages().query("conversationId", "conv-mail").send().row("e-1");
    if REV_A {
        assert_eq!(email["payload"]["type"], "email");
        assert_eq!(email["payload"]["email"]["from"], json!({"email": "mia.n@example.com", "name": "Mia"}));
        assert_eq!(
            email["payload"]["attachments"],
            json!([{"name": "a.pdf", "url": "https://cdn.example/a.pdf", "mimeType": "application/pdf", "size": 12}])
        );
    } else {
        assert_eq!(email["text"], "Where is it?");
        assert!(email.get("payload").is_none(), "{email}");
    }
}

#[test]
fn messages_of_a_conversation_come_newest_first() {
    messages().query("conversationId", "conv-main").send().lists(&MAIN);
    messages().query("conversationId", "conv-quiet").send().lists(&[]);
}

#[test]
fn a_ticket_limits_messages_to_its_window() {
    for (ticket, expected) in [("t-first", &MAIN[5..]), ("t-second", &MAIN[3..5]), ("t-third", &MAIN[..3])] {
        messages().query("ticketId", ticket).send().lists(expected);
        messages().query("ticketId", ticket).query("conversationId", "conv-main").send().lists(expected);
    }
}

#[test]
fn a_reopened_or_snoozed_or_spam_ticket_has_a_window_too() {
    messages().query("ticketId", "t-woke").send().lists(&["w-3", "w-2", "w-1"]);
    messages().query("ticketId", "t-mail").send().lists(&["e-1"]);
    messages().query("ticketId", "t-spam").send().lists(&["s-1"]);
    messages().query("ticketId", "t-quiet").send().lists(&[]);
}

#[test]
fn the_pages_of_a_window_stay_within_its_bounds() {
    let call = one().get("/messages").query("ticketId", "t-third");
    for size in [1, 2, 3] {
        assert_eq!(crate::pagination_client::walk(&call, size), MAIN[..3]);
    }
}

#[test]
fn unknown_ids_and_a_ticket_of_another_conversation_are_not_found() {
    messages().query("ticketId", "t-mail").query("conversationId", "conv-main").send().fails(404);
    messages().query("ticketId", "nobody").query("conversationId", "conv-main").send().fails(404);
    messages().query("ticketId", "t-third").query("conversationId", "nobody").send().fails(404);
    messages().query("ticketId", "nobody").send().fails(404);
    messages().query("conversationId", "nobody").send().fails(404);
}

#[test]
fn the_message_list_requires_a_conversation_id_or_a_ticket_id() {
    let message = messages().send().fails(400);
    assert!(message.starts_with("`conversationId`") || message.starts_with("`ticketId`"), "{message}");
}

#[test]
fn the_older_revision_requires_a_page_size_and_the_newer_has_a_default() {
    let answer = one().get("/messages").query("conversationId", "conv-main").send();
    if REV_A {
        answer.refuses("pageSize");
        let cursor =
            crate::pagination_client::next(&one().get("/messages").query("conversationId", "conv-main").query("pageSize", 1).send());
        let cursor = cursor.expect("there is a second page");
        one().get("/messages").query("conversationId", "conv-main").query("cursor", cursor).send().refuses("pageSize");
    } else {
        answer.lists(&MAIN);
        assert_eq!(answer.header("x-pagination-page-size"), Some("15"));
    }
}
