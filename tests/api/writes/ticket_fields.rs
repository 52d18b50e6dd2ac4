//! Tests of PATCH /tickets/field-values: the ticket in the response, and the timestamp for optimistic concurrency. The module
//! `field_values` tests which values are accepted.

use serde_json::{Value, json};

use super::{WriteFixture, stamp, values_of, without};
use crate::fixture::{BO, at};

const STAMPS: [&str; 2] = ["updatedAt", "ticketFieldsUpdatedAt"];

#[test]
fn the_first_field_value_of_a_ticket_is_stored_and_returned() {
    let shop = WriteFixture::open();
    let before = shop.ticket("t-free");
    assert_eq!((values_of(&before, "ticketFields"), before.get("ticketFieldsUpdatedAt")), (json!({}), None));
    let after = shop.set("t-free", "f-text", json!("hello")).ok();
    let mut expected = without(before.clone(), &STAMPS);
    expected["ticketFields"] = json!({"f-text": "hello"});
    assert_eq!(without(after.clone(), &STAMPS), expected);
    assert!(stamp(&after, "ticketFieldsUpdatedAt") > at("03-01T08:00"));
    assert!(stamp(&after, "updatedAt") > stamp(&before, "updatedAt"));
    assert_eq!(shop.ticket("t-free"), after);
}

#[test]
fn the_response_to_a_ticket_field_update_is_exactly_the_ticket() {
    let shop = WriteFixture::open();
    let after = shop.set_at("t-set", "f-text", json!("after"), &at("03-02T09:30")).ok();
    let (updated, fields_updated, number) = (stamp(&after, "updatedAt"), stamp(&after, "ticketFieldsUpdatedAt"), &after["ticketNumber"]);
    assert_eq!(
        after,
        json!({
            "id": "t-set", "ticketNumber": number, "isOpen": true, "openedAt": at("03-01T08:00"), "channel": "line", "isSpam": false,
            "contactId": "con-mia", "createdAt": at("03-01T08:00"), "updatedAt": updated, "accountId": "acc-line",
            "conversationId": "conv-set", "assigneeUserId": BO, "isFollowUp": false, "ticketFieldsUpdatedAt": fields_updated,
            "ticketFields": {"f-text": "after", "f-int": 3, "f-when": at("03-02T09:00"), "f-multi": ["a", "b"], "aiCsat": "good"},
        })
    );
}

#[test]
fn related_records_are_expanded() {
    let shop = WriteFixture::open();
    let body = json!({"ticketId": "t-set", "ticketFieldId": "f-text", "newValue": "x"});
    let call = shop.patch("/tickets/field-values", body.clone());
    let ticket = call.clone().query("expand", "account,assignee").query("expand", "conversation").send().ok();
    assert_eq!(ticket["account"], json!({"id": "acc-line", "name": "Account acc-line", "channel": "line"}));
    assert_eq!(ticket["assignee"], json!({"id": BO, "name": "User seat-bo"}));
    assert_eq!(ticket["conversation"], json!({"id": "conv-set", "name": "Talk conv-set", "channel": "line"}));
    for gone in ["accountId", "assigneeUserId", "conversationId"] {
        assert!(ticket.get(gone).is_none(), "{gone} in {ticket}");
    }
    shop.assert_unchanged(|| {
        let call = shop.patch("/tickets/field-values", json!({"ticketId": "t-set", "ticketFieldId": "f-text", "newValue": "y"}));
        call.clone().query("expand", "contact").send().refuses_expand();
        call.query("expand", "account,").send().refuses_expand();
    });
}

#[test]
fn a_closed_or_spam_or_snoozed_ticket_accepts_values() {
    let shop = WriteFixture::open();
    for id in ["t-shut", "t-spam", "t-asleep"] {
        let before = shop.ticket(id);
        let after = shop.set(id, "f-text", json!("late")).ok();
        assert_eq!(after["ticketFields"], json!({"f-text": "late"}));
        assert_eq!((&after["isOpen"], &after["closedAt"]), (&before["isOpen"], &before["closedAt"]));
    }
}

#[test]
fn null_or_an_empty_list_unsets_only_the_given_ticket_field() {
    let shop = WriteFixture::open();
    let after = shop.set("t-set", "f-text", Value::Null).ok();
    assert_eq!(after["ticketFields"], json!({"f-int": 3, "f-when": at("03-02T09:00"), "f-multi": ["a", "b"], "aiCsat": "good"}));
    shop.set("t-set", "f-multi", json!([])).ok();
    let after = shop.set("t-set", "f-int", Value::Null).ok();
    assert_eq!(after["ticketFields"], json!({"f-when": at("03-02T09:00"), "aiCsat": "good"}));
    shop.set("t-free", "f-flag", json!(false)).ok();
    let after = shop.set("t-free", "f-flag", Value::Null).ok();
    assert_eq!(values_of(&after, "ticketFields"), json!({}));
    assert_eq!(shop.ticket("t-free"), after);
    stamp(&after, "ticketFieldsUpdatedAt");
}

#[test]
fn setting_the_stored_value_changes_nothing() {
    let shop = WriteFixture::open();
    let before = shop.ticket("t-set");
    shop.assert_unchanged(|| {
        for (field, value) in [
            ("f-text", json!("before")),
            ("f-int", json!(3)),
            ("f-int", json!(3.0)),
            ("f-when", json!("2025-03-02T16:00:00+07:00")),
            ("f-multi", json!(["a", "b"])),
            ("f-notes", Value::Null),
            ("f-texts", json!([])),
            ("f-texts", Value::Null),
        ] {
            shop.set("t-set", field, value.clone()).is(before.clone());
            shop.set_at("t-set", field, value, &at("03-02T09:30")).is(before.clone());
        }
        shop.set("t-free", "f-text", Value::Null).is(shop.ticket("t-free"));
    });
}

#[test]
fn timestamps_increase_strictly_and_each_allows_the_next_write() {
    let shop = WriteFixture::open();
    let mut last = at("03-02T09:30");
    for n in 10..30 {
        let ticket = shop.set_at("t-set", "f-int", json!(n), &last).ok();
        let next = stamp(&ticket, "ticketFieldsUpdatedAt");
        assert!(next > last, "{next} after {last}");
        shop.set_at("t-set", "f-int", json!(n + 1000), &last).fails(409);
        last = next;
    }
    assert_eq!(shop.ticket("t-set")["ticketFields"]["f-int"], 29);
}

#[test]
fn a_timestamp_in_the_future_increases_by_one_millisecond() {
    let shop = WriteFixture::open();
    let ticket = shop.set("t-ahead", "f-int", json!(2)).ok();
    assert_eq!(ticket["ticketFieldsUpdatedAt"], "2099-01-01T00:00:00.001Z");
    let ticket = shop.set_at("t-ahead", "f-int", json!(3), "2099-01-01T00:00:00.001Z").ok();
    assert_eq!(ticket["ticketFieldsUpdatedAt"], "2099-01-01T00:00:00.002Z");
}

#[test]
fn a_timestamp_is_compared_as_an_instant() {
    let shop = WriteFixture::open();
    shop.set_at("t-set", "f-text", json!("after"), "2025-03-02T16:30:00+07:00").ok();
}

#[test]
fn another_timestamp_than_the_stored_one_is_a_conflict() {
    let shop = WriteFixture::open();
    let before = shop.ticket("t-set");
    shop.assert_unchanged(|| {
        for wrong in [at("03-02T09:29:59.999"), at("03-02T09:30:00.001"), "2099-01-01T00:00:00Z".into(), "1970-01-01T00:00:00Z".into()] {
            shop.set_at("t-set", "f-text", json!("after"), &wrong).fails(409);
            // A wrong timestamp is refused even if the value would not change.
            shop.set_at("t-set", "f-text", json!("before"), &wrong).fails(409);
            shop.set_at("t-set", "f-notes", Value::Null, &wrong).fails(409);
        }
        // `t-free` never had a field value, so it has no `ticketFieldsUpdatedAt` that a timestamp could match.
        let made = shop.ticket("t-free");
        shop.set_at("t-free", "f-text", json!("x"), &stamp(&made, "updatedAt")).fails(409);
    });
    assert_eq!(shop.ticket("t-set"), before);
}

#[test]
fn a_write_without_a_timestamp_is_unconditional() {
    let shop = WriteFixture::open();
    shop.set("t-set", "f-text", json!("one")).ok();
    assert_eq!(shop.set("t-set", "f-text", json!("two")).ok()["ticketFields"]["f-text"], "two");
}

#[test]
fn missing_records_are_not_found() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        shop.set("nobody", "f-text", json!("x")).fails(404);
        shop.set("NOT a uuid!", "f-text", json!("x")).fails(404);
        shop.set(&"x".repeat(65), "f-text", json!("x")).fails(404);
        shop.set("t-set", "nothing", json!("x")).fails(404);
        // A field of contacts is not a field of tickets.
        shop.set("t-set", "c-text", json!("x")).fails(404);
    });
}

#[test]
fn checks_run_in_a_fixed_order() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        // The form of the body is checked first, then the existence of the records, then the value, then the timestamp.
        shop.patch("/tickets/field-values", json!({"ticketId": "nobody", "ticketFieldId": "nothing"})).send().refuses("body.newValue");
        shop.set("nobody", "f-int", json!("no number")).fails(404);
        shop.set_at("t-set", "f-int", json!("no number"), &at("01-01T00:00")).refuses("body.newValue");
        shop.set_at("t-set", "f-old", json!("x"), &at("01-01T00:00")).fails(400);
    });
}

#[test]
fn system_keys_and_inactive_fields_are_read_only() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (key, value) in [
            ("isConverted", json!(true)),
            ("salesRevenue", json!(1)),
            ("aiCsat", json!("bad")),
            ("aiSummary", json!("x")),
            ("salesRevenueCurrency", json!("THB")),
            ("resolutionStatus", json!("human")),
            ("aiCsat", Value::Null),
        ] {
            shop.set("t-set", key, value).refuses("body.ticketFieldId");
        }
        shop.set("t-set", "f-old", json!("x")).refuses("body.ticketFieldId");
        shop.set("t-set", "f-old", Value::Null).refuses("body.ticketFieldId");
    });
}

#[test]
fn a_hidden_field_accepts_a_value() {
    let shop = WriteFixture::open();
    assert_eq!(shop.set("t-free", "f-hidden", json!("x")).ok()["ticketFields"], json!({"f-hidden": "x"}));
    // The field `f-hidden` is required. Even so, a request can remove its value.
    shop.set("t-free", "f-hidden", Value::Null).ok();
}
