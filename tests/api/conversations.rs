//! Tests of GET /conversations: the properties of a conversation, the order of a contact's conversations, and unknown ids.

use serde_json::json;

use crate::{
    client::{Answer, Call},
    fixture::at,
    harness::one,
};

fn of_contact(id: &str) -> Call {
    one().get("/conversations").query("contactId", id)
}

fn by_id(id: &str) -> Answer {
    one().get("/conversations").query("conversationId", id).send()
}

#[test]
fn a_conversation_shows_its_counters_and_its_last_message() {
    by_id("conv-main").is(json!([{
        "id": "conv-main", "channel": "line", "displayName": "Mia on LINE", "contactId": "con-mia", "referenceId": "ref-conv-main",
        "labelIds": ["lab-vip", "lab-late"], "isSpam": false, "unreadMsgCnt": 2, "allMsgCnt": 8, "createdAt": at("03-01T07:00"),
        "updatedAt": at("03-05T12:00"), "accountId": "acc-line", "lastRecipientMsgDate": at("03-05T08:00"),
        "lastMsg": {"snippet": format!("Kim speaks {}", "ไ".repeat(89)), "sentByRecipient": false, "sentAt": at("03-05T09:00")},
    }]));
}

#[test]
fn an_email_conversation_shows_its_subject() {
    let conversation = by_id("conv-mail").row("conv-mail");
    assert_eq!(conversation["emailSubject"], "Where is my order?");
    assert_eq!(conversation["lastMsg"]["sentByRecipient"], true);
    assert!(by_id("conv-main").row("conv-main").get("emailSubject").is_none());
}

#[test]
fn a_conversation_without_messages_has_no_last_message() {
    let conversation = by_id("conv-quiet").row("conv-quiet");
    assert_eq!((&conversation["allMsgCnt"], &conversation["unreadMsgCnt"]), (&json!(0), &json!(0)));
    for absent in ["lastMsg", "lastRecipientMsgDate"] {
        assert!(conversation.get(absent).is_none(), "{absent} in {conversation}");
    }
}

#[test]
fn unknown_labels_stay_on_a_conversation() {
    assert_eq!(by_id("conv-quiet").row("conv-quiet")["labelIds"], json!(["lab-late", "lab-unknown"]));
}

#[test]
fn one_conversation_is_a_page_of_one() {
    let answer = one().get("/conversations").query("conversationId", "conv-main").query("pageSize", 1).send();
    answer.lists(&["conv-main"]);
    assert_eq!(answer.header("x-pagination-page-size"), Some("1"));
    assert_eq!(answer.header("x-pagination-next-cursor"), None);
}

#[test]
fn conversations_of_a_contact_are_sorted_by_their_last_message() {
    // `conv-quiet` has no messages, so it is sorted by its time of creation.
    of_contact("con-mia").send().lists(&["conv-quiet", "conv-spam", "conv-mail", "conv-main"]);
    of_contact("con-busy").send().lists(&[
        "conv-tie-6",
        "conv-tie-5",
        "conv-tie-4",
        "conv-tie-3",
        "conv-tie-2",
        "conv-tie-1",
        "conv-f1",
        "conv-f2",
        "conv-f3",
        "conv-f4",
    ]);
}

#[test]
fn a_contact_without_conversations_has_an_empty_page() {
    let answer = of_contact("con-min").send();
    answer.lists(&[]);
    assert_eq!(answer.header("x-pagination-page-size"), Some("20"));
}

#[test]
fn the_conversation_must_belong_to_the_given_contact() {
    of_contact("con-mia").query("conversationId", "conv-main").send().lists(&["conv-main"]);
    of_contact("con-thai").query("conversationId", "conv-main").send().fails(404);
    of_contact("nobody").query("conversationId", "conv-main").send().fails(404);
    of_contact("con-mia").query("conversationId", "nobody").send().fails(404);
}

#[test]
fn an_unknown_id_is_not_found_and_a_missing_id_is_refused() {
    by_id("nobody").fails(404);
    of_contact("nobody").send().fails(404);
    let message = one().get("/conversations").send().fails(400);
    assert!(message.starts_with("`conversationId`") || message.starts_with("`contactId`"), "{message}");
}
