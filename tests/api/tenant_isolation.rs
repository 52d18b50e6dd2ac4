//! Tests of tenant isolation: a caller sees only the records of its own store, even if another store has records with the same ids.

use serde_json::json;

use crate::{
    REV_A,
    client::Call,
    fixture::{ANN, STRANGER},
    harness::{one, world},
    messages::messages,
};

#[test]
fn the_ids_of_another_store_are_not_found() {
    let conversation = |call: Call| call.query("conversationId", "conv-two");
    let mut calls = vec![
        one().get("/tickets").query("ticketId", "t-two"),
        one().get("/contacts").query("contactId", "con-two"),
        one().get("/conversations").query("contactId", "con-two"),
        conversation(one().get("/conversations")),
        conversation(messages()),
        messages().query("ticketId", "t-two"),
        messages().query("ticketId", "t-two").query("conversationId", "conv-main"),
        conversation(messages()).query("ticketId", "t-third"),
        conversation(one().get("/messages/internal-comments")),
    ];
    if !REV_A {
        calls.push(one().get("/accounts/whatsapp-templates").query("accountId", "acc-two"));
    }
    for call in calls {
        call.send().fails(404);
    }
}

#[test]
fn the_ids_of_another_store_match_nothing_in_filters() {
    for filter in [
        json!({"conversationId": "conv-two"}),
        json!({"accountIds": ["acc-two"]}),
        json!({"assigneeUserIds": [STRANGER]}),
        json!({"advancedFilters": {"labels": {"operator": "contains_any", "labelIds": ["lab-two"]}}}),
    ] {
        one().post("/tickets/list", filter).send().lists(&[]);
    }
    one().get("/users").query("userId", STRANGER).send().lists(&[]);
    one().get("/teams").query("userId", STRANGER).send().lists(&[]);
    one().get("/labels").query("searchTerm", "of two").send().lists(&[]);
    one().post("/contacts/list", json!({"search": "of two"})).send().lists(&[]);
    let field = json!([{"ticketFieldId": "f-two", "operator": "is_empty"}]);
    one().post("/tickets/list", json!({"advancedFilters": {"ticketFields": field}})).send().refuses("body.advancedFilters.ticketFields[0]");
}

#[test]
fn an_id_used_in_two_stores_returns_the_record_of_the_callers_store() {
    let two = &world().two;
    let name = |data: serde_json::Value, property: &str| data[property].clone();
    assert_eq!(name(two.get("/contacts").query("contactId", "con-mia").send().ok(), "fullName"), "Contact of two");
    assert_eq!(name(two.get("/tickets").query("ticketId", "t-first").send().ok(), "isOpen"), true);
    assert_eq!(name(two.get("/tickets/fields").send().row("f-text"), "displayType"), "integer");
    assert_eq!(name(two.get("/contacts/fields").send().row("c-size"), "name"), "Field of two");
    assert_eq!(name(two.get("/teams").send().row("team-sales"), "users"), json!([STRANGER]));
    assert_eq!(name(two.get("/labels").send().row("lab-vip"), "color"), "#abcdef");
    two.get("/messages").query("conversationId", "conv-main").query("pageSize", 5).send().lists(&["m-1"]);
    two.get("/messages/internal-comments").query("conversationId", "conv-main").send().lists(&["n-1"]);
}

#[test]
fn a_list_holds_the_rows_of_its_store_alone() {
    let two = &world().two;
    two.post("/tickets/list", json!({"statuses": ["open", "closed"]})).send().lists(&["t-two", "t-first"]);
    two.post("/contacts/list", json!({})).send().lists(&["con-two", "con-mia"]);
    two.get("/users").send().lists(&["seat-ann", "seat-two"]);
    two.get("/teams").send().lists(&["team-sales", "team-two"]);
    two.get("/labels").send().lists(&["lab-vip", "lab-two"]);
    two.get("/conversations").query("contactId", "con-mia").send().lists(&["conv-main"]);
    if !REV_A {
        two.get("/accounts").send().lists(&["acc-wa", "acc-two"]);
        two.get("/accounts/whatsapp-templates").query("accountId", "acc-wa").send().lists(&["tpl-code"]);
    }
}

#[test]
fn expanded_records_come_from_the_callers_store() {
    let two = &world().two;
    let ticket = two.get("/tickets").query("ticketId", "t-first").query("expand", "account,conversation").send().ok();
    assert_eq!(ticket["account"]["name"], "Account of two");
    let users = two.get("/users").query("userId", ANN).query("expand", "role").send();
    assert_eq!(users.row("seat-ann")["role"]["name"], "Boss");
    assert_eq!(users.row("seat-ann")["name"], "Ann Elsewhere");
}
