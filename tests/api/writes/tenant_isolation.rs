//! Tests of tenant isolation of writes: a write changes only the caller's own store, even if another store has records with the same ids.

use serde_json::json;

use super::{WriteFixture, acknowledged, refuses_in};
use crate::{
    REV_A,
    fixture::{ANN, BO, STRANGER, at, two, write_store as lines},
};

#[test]
fn the_ids_of_another_store_are_not_found() {
    let shop = WriteFixture::with(&[("desk", lines()), ("two", two())]);
    let other = shop.snapshot("two");
    shop.assert_unchanged(|| {
        shop.set("t-two", "f-text", json!("x")).fails(404);
        shop.set("t-free", "f-two", json!(1)).fails(404);
        shop.close(json!({"ticketId": "t-two"})).fails(404);
        shop.close(json!({"ticketId": "t-free", "handledBy": STRANGER})).refuses("body.handledBy");
        shop.close(json!({"ticketId": "t-free", "ticketFields": {"f-two": 1}})).refuses("body.ticketFields.f-two");
        shop.read("conv-two").fails(404);
        shop.label("conv-two", &["lab-a"], &[]).fails(404);
        let label = shop.label("conv-free", &["lab-two"], &[]);
        if REV_A {
            label.is(acknowledged())
        } else {
            refuses_in(&label, "body.addLabels")
        }
        shop.set_contact_at("con-two", "c-text", json!("x"), &at("06-01T07:00")).fails(404);
        shop.set_contact_at("con-mia", "c-two", json!("x"), &at("01-20T00:00")).fails(404);
        shop.comment("conv-two", "x").fails(404);
        shop.text("conv-two", "x").fails(404);
        if !REV_A {
            shop.assign(&[("t-free", BO), ("t-two", BO)]).fails(404);
            shop.assign(&[("t-free", STRANGER)]).refuses("body[0].assigneeUserId");
        }
    });
    assert_eq!(shop.snapshot("two"), other);
}

#[test]
fn a_write_to_an_id_in_two_stores_changes_only_the_callers_store() {
    let shop = WriteFixture::with(&[("desk", lines()), ("copy", lines())]);
    let (mine, other) = (shop.snapshot("desk"), shop.snapshot("copy"));
    shop.set("t-set", "f-text", json!("x")).ok();
    shop.close(json!({"ticketId": "t-set", "handledBy": ANN, "totalRevenue": 5})).ok();
    shop.read("conv-free").ok();
    shop.label("conv-free", &["lab-c"], &["lab-a"]).ok();
    shop.set_contact("con-mia", "c-text", json!("x")).ok();
    shop.comment("conv-free", "x").ok();
    shop.text("conv-free", "x").ok();
    // E-mail addresses and phone numbers are unique within a store. So the second store can create a contact with the same address and
    // number below.
    shop.post("/contacts", json!({"firstName": "A", "email": "a@example.com", "phone": "+4411111111"})).send().ok();
    if !REV_A {
        shop.assign(&[("t-free", BO)]).ok();
        let template = json!({"accountId": "acc-wa", "phoneNumber": "+66844444444", "templateId": "tpl-one", "variables": ["x"]});
        shop.post("/messages/template/phone", template).send().ok();
        shop.post("/messages/email/new", json!({"accountId": "acc-ann", "to": [{"email": "b@example.com"}], "text": "x"})).send().ok();
    }
    assert_ne!(shop.snapshot("desk"), mine);
    assert_eq!(shop.snapshot("copy"), other);
    let copy = shop.server.api("copy", &["contacts:write", "tickets:write"]);
    copy.post("/contacts", json!({"firstName": "A", "email": "a@example.com", "phone": "+4411111111"})).send().ok();
    // Each store has its own sequence numbers of events: the first event of store `copy` has the number 1.
    copy.post("/tickets/close", json!({"ticketId": "t-free"})).send().ok();
    let events = shop.events_after("copy", None);
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["sequence"], &events[0]["storeId"]), (&json!(1), &json!("copy")));
}
