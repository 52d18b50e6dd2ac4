//! Tests of the query parameter `expand`, which asks for related objects in a response: which ids the server replaces by objects, which
//! objects it adds, which ids it keeps, and which values of `expand` it refuses.

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::Call,
    fixture::{ANN, BO, GHOST, NAMELESS},
    harness::one,
    messages::messages,
};

fn line_account() -> Value {
    json!({"id": "acc-line", "name": "LINE shop", "channel": "line"})
}

fn main_conversation() -> Value {
    json!({"id": "conv-main", "name": "Mia on LINE", "channel": "line"})
}

fn ticket(id: &str, expand: &str) -> Value {
    one().get("/tickets").query("ticketId", id).raw_query(&format!("expand={expand}")).send().ok()
}

/// Returns the operations that take `expand`, each with a valid request and the values that it accepts.
fn expandable() -> Vec<(Call, &'static [&'static str])> {
    vec![
        (one().get("/tickets").query("ticketId", "t-third"), &["account", "conversation", "assignee", "handledBy"]),
        (one().post("/tickets/list", json!({})), &["account", "conversation", "assignee", "handledBy"]),
        (one().get("/tickets/fields"), &["accounts"]),
        (one().get("/conversations").query("contactId", "con-mia"), &["account"]),
        (messages().query("conversationId", "conv-main"), &["sentBy", "conversation", "account"]),
        (one().get("/messages/internal-comments").query("conversationId", "conv-main"), &["createdBy", "conversation", "account"]),
        (one().get("/users"), &["role"]),
        (one().get("/teams"), &["users"]),
    ]
}

/// Returns requests to operations that have no parameter `expand`.
fn unexpandable() -> Vec<Call> {
    let mut calls = vec![
        one().get("/contacts").query("contactId", "con-mia"),
        one().post("/contacts/list", json!({})),
        one().get("/contacts/fields"),
        one().get("/labels"),
    ];
    if !REV_A {
        calls.extend([one().get("/accounts"), one().get("/accounts/whatsapp-templates").query("accountId", "acc-wa")]);
    }
    calls
}

#[test]
fn a_tickets_account_and_conversation_replace_their_ids() {
    let plain = ticket("t-third", "");
    let mut expected = plain.clone();
    expected.as_object_mut().map(|ticket| ticket.remove("accountId"));
    expected["account"] = line_account();
    assert_eq!(ticket("t-third", "account"), expected);
    expected.as_object_mut().map(|ticket| ticket.remove("conversationId"));
    expected["conversation"] = main_conversation();
    assert_eq!(ticket("t-third", "account,conversation"), expected);
}

#[test]
fn expanding_a_ticket_moves_its_assignee_and_replaces_its_handler_in_place() {
    let expanded = ticket("t-third", "assignee,handledBy");
    assert_eq!(expanded["assignee"], json!({"id": BO, "name": "Bo Agent"}));
    assert_eq!(expanded.get("assigneeUserId"), None);
    assert_eq!(expanded["handledBy"], json!({"id": ANN, "name": "Ann Owner"}));
}

#[test]
fn the_list_of_tickets_expands_like_the_single_ticket() {
    let row = one().post("/tickets/list", json!({})).query("expand", "account,conversation,assignee,handledBy").send().row("t-third");
    assert_eq!(row, ticket("t-third", "account,conversation,assignee,handledBy"));
}

#[test]
fn a_user_who_cannot_be_resolved_stays_an_id() {
    let unknown = ticket("t-drunk", "assignee,handledBy");
    assert_eq!(unknown["assigneeUserId"], GHOST);
    assert_eq!((unknown.get("assignee"), unknown.get("handledBy")), (None, None));
    let nameless = ticket("t-gone", "assignee,handledBy");
    if REV_A {
        assert_eq!(nameless["assignee"], json!({"id": NAMELESS, "name": "kim"}));
    } else {
        assert_eq!((nameless.get("assignee"), &nameless["assigneeUserId"]), (None, &json!(NAMELESS)));
    }
    assert_eq!(nameless["handledBy"], GHOST);
}

#[test]
fn a_disconnected_account_is_still_resolved() {
    assert_eq!(ticket("t-gone", "account")["account"], json!({"id": "acc-gone", "name": "Old page", "channel": "facebook"}));
}

#[test]
fn a_conversations_account_replaces_its_id() {
    for (name, id) in [("conversationId", "conv-main"), ("contactId", "con-mia")] {
        let row = one().get("/conversations").query(name, id).query("expand", "account").send().row("conv-main");
        assert_eq!((&row["account"], row.get("accountId")), (&line_account(), None));
    }
}

#[test]
fn expanding_a_message_adds_objects_and_keeps_its_ids() {
    let answer = messages().query("conversationId", "conv-main").query("expand", "sentBy,conversation,account").send();
    let message = answer.row("m-3");
    assert_eq!(message["sentBy"], json!({"userId": ANN, "name": "Ann Owner", "roleId": "role-owner"}));
    assert_eq!((&message["conversation"], &message["conversationId"]), (&main_conversation(), &json!("conv-main")));
    assert_eq!(message["account"], line_account());
    assert_eq!(message.get("accountId"), REV_A.then_some(&json!("acc-line")));
}

#[test]
fn a_message_without_a_known_author_has_no_sent_by() {
    let answer = messages().query("conversationId", "conv-main").query("expand", "sentBy").send();
    for id in ["m-1", "m-2", "m-7"] {
        assert_eq!(answer.row(id).get("sentBy"), None, "{id}");
    }
    let kim = answer.row("m-8");
    assert_eq!(kim.get("sentBy").is_some(), REV_A, "{kim}");
}

#[test]
fn expanding_a_comment_replaces_its_author_and_adds_other_objects() {
    let answer = one()
        .get("/messages/internal-comments")
        .query("conversationId", "conv-main")
        .query("expand", "createdBy,conversation,account")
        .send();
    let comment = answer.row("n-1");
    assert_eq!(comment["noteData"]["createdBy"], json!({"userId": ANN, "name": "Ann Owner", "roleId": "role-owner"}));
    assert_eq!((&comment["conversation"], &comment["account"]), (&main_conversation(), &line_account()));
    assert_eq!((&comment["conversationId"], &comment["accountId"]), (&json!("conv-main"), &json!("acc-line")));
    assert_eq!(answer.row("n-2")["noteData"]["createdBy"], GHOST);
    let kim = &answer.row("n-3")["noteData"]["createdBy"];
    assert_eq!(kim.is_object(), REV_A, "{kim}");
}

#[test]
fn every_value_is_accepted_alone_together_and_repeated() {
    for (call, values) in expandable() {
        for value in values {
            call.clone().query("expand", value).send().ok();
        }
        let all = call.clone().raw_query(&format!("expand={}", values.join(","))).send().ok();
        let repeated = values.iter().fold(call.clone(), |call, value| call.query("expand", value));
        assert_eq!(repeated.send().ok(), all);
        assert_eq!(call.clone().raw_query(&format!("expand={0},{0}&expand={0}", values.join(","))).send().ok(), all);
    }
}

#[test]
fn an_empty_expand_changes_nothing() {
    for call in expandable().into_iter().map(|(call, _)| call).chain(unexpandable()) {
        let plain = call.clone().send().ok();
        assert_eq!(call.clone().raw_query("expand=").send().ok(), plain);
        assert_eq!(call.raw_query("expand").send().ok(), plain);
    }
}

#[test]
fn an_unknown_or_misspelt_value_is_refused() {
    for (call, values) in expandable() {
        let first = values[0];
        for bad in [
            "everything".to_owned(),
            first.to_uppercase(),
            format!("%20{first}"),
            format!("{first}%20"),
            format!("{first},"),
            format!(",{first}"),
            format!("{first},,{first}"),
            format!("{first},%20{first}"),
            format!("{first};{first}"),
            format!("{first}%00"),
            format!("{first}&expand=everything"),
        ] {
            call.clone().raw_query(&format!("expand={bad}")).send().refuses_expand();
        }
    }
}

#[test]
fn a_value_of_another_endpoint_is_refused() {
    let all = ["account", "conversation", "assignee", "handledBy", "accounts", "sentBy", "createdBy", "role", "users"];
    for (call, values) in expandable() {
        for value in all.iter().filter(|value| !values.contains(value)) {
            call.clone().query("expand", value).send().refuses_expand();
        }
    }
    for call in unexpandable() {
        for value in all {
            call.clone().query("expand", value).send().refuses_expand();
        }
    }
}
