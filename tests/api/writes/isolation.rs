//! Tests of tenant isolation of writes: a write changes only the caller's own store, even if another store has records with the same ids.

use serde_json::json;

use super::{WriteFixture, acknowledged, refuses_in};
use crate::{
    REV_A,
    fixture::{ANN, BO, STRANGER, at, desk as lines, two},
};

#[test]
fn the_ids_of_another_store_are_not_found() {
    let desk = WriteFixture::with(&[("desk", lines()), ("two", two())]);
    let other = desk.snapshot("two");
    desk.assert_unchanged(|| {
        desk.set("t-two", "f-text", json!("x")).fails(404);
        desk.set("t-free", "f-two", json!(1)).fails(404);
        desk.close(json!({"ticketId": "t-two"})).fails(404);
        desk.close(json!({"ticketId": "t-free", "handledBy": STRANGER})).refuses("body.handledBy");
        desk.close(json!({"ticketId": "t-free", "ticketFields": {"f-two": 1}})).refuses("body.ticketFields.f-two");
        desk.read("conv-two").fails(404);
        desk.label("conv-two", &["lab-a"], &[]).fails(404);
        let label = desk.label("conv-free", &["lab-two"], &[]);
        if REV_A {
            label.is(acknowledged())
        } else {
            refuses_in(&label, "body.addLabels")
        }
        desk.set_contact_at("con-two", "c-text", json!("x"), &at("06-01T07:00")).fails(404);
        desk.set_contact_at("con-mia", "c-two", json!("x"), &at("01-20T00:00")).fails(404);
        desk.comment("conv-two", "x").fails(404);
        desk.text("conv-two", "x").fails(404);
        if !REV_A {
            desk.assign(&[("t-free", BO), ("t-two", BO)]).fails(404);
            desk.assign(&[("t-free", STRANGER)]).refuses("body[0].assigneeUserId");
        }
    });
    assert_eq!(desk.snapshot("two"), other);
}

#[test]
fn a_shared_id_is_written_in_the_callers_store_alone() {
    let desk = WriteFixture::with(&[("desk", lines()), ("copy", lines())]);
    let (mine, other) = (desk.snapshot("desk"), desk.snapshot("copy"));
    desk.set("t-set", "f-text", json!("x")).ok();
    desk.close(json!({"ticketId": "t-set", "handledBy": ANN, "totalRevenue": 5})).ok();
    desk.read("conv-free").ok();
    desk.label("conv-free", &["lab-c"], &["lab-a"]).ok();
    desk.set_contact("con-mia", "c-text", json!("x")).ok();
    desk.comment("conv-free", "x").ok();
    desk.text("conv-free", "x").ok();
    // E-mail addresses and phone numbers are unique within a store. So the second store can create a contact with the same ones below.
    desk.post("/contacts", json!({"firstName": "A", "email": "a@example.com", "phone": "+4411111111"})).send().ok();
    if !REV_A {
        desk.assign(&[("t-free", BO)]).ok();
        let template = json!({"accountId": "acc-wa", "phoneNumber": "+66844444444", "templateId": "tpl-one", "variables": ["x"]});
        desk.post("/messages/template/phone", template).send().ok();
        desk.post("/messages/email/new", json!({"accountId": "acc-ann", "to": [{"email": "b@example.com"}], "text": "x"})).send().ok();
    }
    assert_ne!(desk.snapshot("desk"), mine);
    assert_eq!(desk.snapshot("copy"), other);
    let copy = desk.server.api("copy", &["contacts:write", "tickets:write"]);
    copy.post("/contacts", json!({"firstName": "A", "email": "a@example.com", "phone": "+4411111111"})).send().ok();
    // Each store has its own sequence numbers of events: the first event of store `copy` has the number 1.
    copy.post("/tickets/close", json!({"ticketId": "t-free"})).send().ok();
    let events = desk.events_after("copy", None);
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["sequence"], &events[0]["storeId"]), (&json!(1), &json!("copy")));
}
