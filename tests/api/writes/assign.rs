//! Tests of POST /tickets/assign, which only the newer revision of the API has: the assigned tickets in the response, and the items that
//! are refused.

use serde_json::{Value, json};

use super::{WriteFixture, refuses_in, stamp};
use crate::{
    REV_A,
    fixture::{ANN, BO, CAT, GHOST, STRANGER, at},
};

#[test]
fn only_the_newer_revision_has_the_assign_operation() {
    let shop = WriteFixture::open();
    if REV_A {
        shop.assert_unchanged(|| shop.assign(&[("t-free", BO)]).fails(404));
    } else {
        shop.assign(&[("t-free", BO)]).ok();
    }
}

#[test]
fn tickets_come_back_in_the_order_of_the_request() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    let before = shop.ticket("t-free");
    let answer = shop.assign(&[("t-set", ANN), ("t-free", BO), ("t-ann", ANN), ("t-asleep", CAT)]);
    answer.lists(&["t-set", "t-free", "t-ann", "t-asleep"]);
    let after = answer.row("t-free");
    let mut expected = before;
    expected["assigneeUserId"] = json!(BO);
    expected["updatedAt"] = json!(stamp(&after, "updatedAt"));
    assert_eq!(after, expected);
    assert!(stamp(&after, "updatedAt") > at("03-01T08:00"));
    // The ticket's field values did not change, so their timestamp did not change either.
    assert_eq!(answer.row("t-set")["ticketFieldsUpdatedAt"], at("03-02T09:30"));
    for (id, user) in [("t-set", ANN), ("t-free", BO), ("t-ann", ANN), ("t-asleep", CAT)] {
        let ticket = answer.row(id);
        assert_eq!(ticket["assigneeUserId"], user);
        assert_eq!(shop.ticket(id), ticket);
    }
}

#[test]
fn assigning_a_ticket_to_its_assignee_changes_nothing() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    let held = shop.ticket("t-set");
    shop.assert_unchanged(|| shop.assign(&[("t-set", BO)]).is(json!([held])));
    let answer = shop.assign(&[("t-free", BO), ("t-set", BO)]);
    answer.lists(&["t-free", "t-set"]);
    assert_eq!(answer.row("t-set"), held);
    assert_eq!(shop.kinds(), ["ticket.assigned"]);
}

#[test]
fn the_assignee_is_expanded() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    let body = json!([{"ticketId": "t-free", "assigneeUserId": BO.to_uppercase()}]);
    let ticket = shop.post("/tickets/assign", body.clone()).query("expand", "assignee").send().row("t-free");
    assert_eq!(ticket["assignee"], json!({"id": BO, "name": "User seat-bo"}));
    assert!(ticket.get("assigneeUserId").is_none(), "{ticket}");
    shop.assert_unchanged(|| shop.post("/tickets/assign", body).query("expand", "role").send().refuses_expand());
}

#[test]
fn one_invalid_item_prevents_all_assignments_of_a_request() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (ticket, user, field) in [
            ("t-shut", BO, "body[1].ticketId"),
            ("t-spam", BO, "body[1].ticketId"),
            ("t-ann", BO, "body[1].assigneeUserId"),
            ("t-ann", CAT, "body[1].assigneeUserId"),
            ("t-set", GHOST, "body[1].assigneeUserId"),
            ("t-set", STRANGER, "body[1].assigneeUserId"),
        ] {
            shop.assign(&[("t-free", BO), (ticket, user)]).refuses(field);
            shop.assign(&[("t-free", BO), (ticket, user), ("t-asleep", BO)]).refuses(field);
        }
        shop.assign(&[("t-free", BO), ("nobody", BO)]).fails(404);
        // An unknown ticket causes a 404 before the closed ticket `t-shut` causes a 400: the existence of all tickets is checked first.
        shop.assign(&[("t-shut", BO), ("nobody", BO)]).fails(404);
        // The first item changes nothing, since `t-set` is already assigned to this user. The second item is still refused.
        shop.assign(&[("t-set", BO), ("t-shut", BO)]).refuses("body[1].ticketId");
    });
}

#[test]
fn a_ticket_may_occur_only_once() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        shop.assign(&[("t-free", BO), ("t-free", BO)]).refuses("body[1].ticketId");
        shop.assign(&[("t-free", BO), ("t-set", BO), ("t-free", ANN)]).refuses("body[2].ticketId");
    });
}

#[test]
fn a_request_has_one_to_fifty_items() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    let items = |count: usize| -> Value { (0..count).map(|n| json!({"ticketId": format!("nobody-{n}"), "assigneeUserId": BO})).collect() };
    shop.assert_unchanged(|| {
        shop.post("/tickets/assign", items(0)).send().refuses("body");
        shop.post("/tickets/assign", items(51)).send().refuses("body");
        // A request may have at most 50 items. So a request with 50 unknown tickets is not refused for its length, but because the tickets
        // do not exist.
        shop.post("/tickets/assign", items(50)).send().fails(404);
    });
}

#[test]
fn an_item_of_the_wrong_shape_is_reported_with_its_position() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (body, field) in [
            (json!({"ticketId": "t-free", "assigneeUserId": BO}), "body"),
            (json!(["t-free"]), "body[0]"),
            (json!([null]), "body[0]"),
            (json!([["t-free", BO]]), "body[0]"),
            (json!([{"ticketId": "t-free"}]), "body[0].assigneeUserId"),
            (json!([{"assigneeUserId": BO}]), "body[0].ticketId"),
            (json!([{"ticketId": 5, "assigneeUserId": BO}]), "body[0].ticketId"),
            (json!([{"ticketId": "t-free", "assigneeUserId": null}]), "body[0].assigneeUserId"),
            (json!([{"ticketId": "t-free", "assigneeUserId": "bo"}]), "body[0].assigneeUserId"),
            (json!([{"ticketId": "t-free", "assigneeUserId": BO}, {"ticketId": "t-set", "assigneeUserId": ""}]), "body[1].assigneeUserId"),
            (json!([{"ticketId": "t-free", "assigneeUserId": BO, "force": true}]), "body[0].force"),
        ] {
            refuses_in(&shop.post("/tickets/assign", body).send(), field);
        }
    });
}
