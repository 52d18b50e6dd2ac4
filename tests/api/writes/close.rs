//! Tests of POST /tickets/close: the closed ticket, its field values and revenue, and its sort position.

use serde_json::{Value, json};

use super::{WriteFixture, stamp, values_of, without};
use crate::fixture::{ANN, BO, GHOST, NAMELESS, SHUT, STRANGER, at, line, message, ticket, with};

/// Closes a ticket that has no field values. The request also has the properties of `more`. Asserts that the closed ticket has the field
/// values `values`.
#[track_caller]
fn assert_values_after_close(more: Value, values: Value) {
    let shop = WriteFixture::open();
    let mut body = json!({"ticketId": "t-free"});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    let ticket = shop.close(body).ok();
    assert_eq!(values_of(&ticket, "ticketFields"), values);
    assert_eq!(shop.ticket("t-free"), ticket);
}

#[test]
fn closing_a_ticket_changes_only_its_state_and_timestamps() {
    let shop = WriteFixture::open();
    let before = shop.ticket("t-set");
    let after = shop.close(json!({"ticketId": "t-set"})).ok();
    let closed = stamp(&after, "closedAt");
    assert!(closed > at("03-02T09:30"));
    assert_eq!(stamp(&after, "updatedAt"), closed);
    let mut expected = before;
    expected["isOpen"] = json!(false);
    expected["closedAt"] = json!(closed);
    expected["updatedAt"] = json!(closed);
    // The expected ticket keeps its `ticketFieldsUpdatedAt`, because no field value changed.
    assert_eq!(after, expected);
    assert_eq!(shop.ticket("t-set"), after);
    assert_eq!(shop.kinds(), ["ticket.closed"]);
}

#[test]
fn a_close_records_handler_conversion_revenue_and_field_values() {
    let shop = WriteFixture::open();
    let body = json!({
        "ticketId": "t-free", "handledBy": BO, "isConverted": true, "totalRevenue": 1250.5, "currency": "USD",
        "ticketFields": {"f-text": "done", "f-multi": ["b"], "f-when": "2025-03-02T16:00:00+07:00", "f-int": 2},
    });
    let ticket = shop.post("/tickets/close", body).query("expand", "handledBy,account").send().ok();
    assert_eq!(ticket["isOpen"], false);
    assert_eq!(ticket["handledBy"], json!({"id": BO, "name": "User seat-bo"}));
    assert_eq!(ticket["account"]["id"], "acc-line");
    assert_eq!(
        ticket["ticketFields"],
        json!({
            "f-text": "done", "f-multi": ["b"], "f-when": at("03-02T09:00"), "f-int": 2,
            "isConverted": true, "salesRevenue": 1250.5, "salesRevenueCurrency": "USD",
        })
    );
    stamp(&ticket, "ticketFieldsUpdatedAt");
    assert_eq!(shop.ticket("t-free")["handledBy"], BO);
}

#[test]
fn revenue_without_a_currency_takes_the_currency_of_the_store() {
    assert_values_after_close(json!({"totalRevenue": 99}), json!({"salesRevenue": 99, "salesRevenueCurrency": "THB"}));
    assert_values_after_close(json!({"totalRevenue": 0, "currency": "JPY"}), json!({"salesRevenue": 0, "salesRevenueCurrency": "JPY"}));
    assert_values_after_close(json!({"isConverted": false}), json!({"isConverted": false}));
}

#[test]
fn revenue_is_kept_exactly() {
    for amount in [json!(0.1), json!(0.0001), json!(12_345_678_901.234_5), json!(999_999_999_999_999_i64), json!(1e3), json!(19.99)] {
        let shop = WriteFixture::open();
        let ticket = shop.close(json!({"ticketId": "t-free", "totalRevenue": amount})).ok();
        assert_eq!(ticket["ticketFields"]["salesRevenue"].as_f64(), amount.as_f64(), "{amount}");
    }
}

#[test]
fn a_close_with_an_invalid_value_is_refused_and_changes_nothing() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (more, field) in [
            (json!({"totalRevenue": -1}), "body.totalRevenue"),
            (json!({"totalRevenue": -0.0001}), "body.totalRevenue"),
            (json!({"totalRevenue": "12"}), "body.totalRevenue"),
            (json!({"totalRevenue": null}), "body.totalRevenue"),
            (json!({"totalRevenue": 0.000_01}), "body.totalRevenue"),
            (json!({"totalRevenue": 123_456_789_012.345_6}), "body.totalRevenue"),
            (json!({"totalRevenue": 1e300}), "body.totalRevenue"),
            (json!({"currency": "THB"}), "body.currency"),
            (json!({"currency": "THB", "isConverted": true}), "body.currency"),
            (json!({"totalRevenue": 1, "currency": "XQQ"}), "body.currency"),
            (json!({"totalRevenue": 1, "currency": "thb"}), "body.currency"),
            (json!({"totalRevenue": 1, "currency": "฿"}), "body.currency"),
            (json!({"totalRevenue": 1, "currency": ""}), "body.currency"),
            (json!({"totalRevenue": 1, "currency": 764}), "body.currency"),
            (json!({"totalRevenue": 1, "currency": null}), "body.currency"),
            (json!({"isConverted": "true"}), "body.isConverted"),
            (json!({"isConverted": 1}), "body.isConverted"),
            (json!({"isConverted": null}), "body.isConverted"),
            (json!({"handledBy": "nobody"}), "body.handledBy"),
            (json!({"handledBy": ""}), "body.handledBy"),
            (json!({"handledBy": null}), "body.handledBy"),
            (json!({"handledBy": GHOST}), "body.handledBy"),
            (json!({"handledBy": STRANGER}), "body.handledBy"),
            (json!({"ticketFields": null}), "body.ticketFields"),
            (json!({"ticketFields": []}), "body.ticketFields"),
            (json!({"ticketFields": {"nothing": 1}}), "body.ticketFields.nothing"),
            (json!({"ticketFields": {"c-text": "x"}}), "body.ticketFields.c-text"),
            (json!({"ticketFields": {"f-text": "good", "f-old": "x"}}), "body.ticketFields.f-old"),
            (json!({"ticketFields": {"isConverted": true}}), "body.ticketFields.isConverted"),
            (json!({"ticketFields": {"salesRevenue": 1}}), "body.ticketFields.salesRevenue"),
            (json!({"ticketFields": {"resolutionStatus": "human"}}), "body.ticketFields.resolutionStatus"),
            (json!({"revenue": 1}), "body.revenue"),
            (json!({"expand": "account"}), "body.expand"),
        ] {
            let mut body = json!({"ticketId": "t-free"});
            if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
                body.extend(more);
            }
            shop.close(body).refuses(field);
        }
        shop.close(json!({})).refuses("body.ticketId");
        shop.close(json!({"ticketId": null})).refuses("body.ticketId");
        shop.close(json!({"ticketId": 5})).refuses("body.ticketId");
        shop.close(json!({"ticketId": "nobody"})).fails(404);
        shop.close(json!({"ticketId": "nobody", "handledBy": GHOST})).fails(404);
        shop.post("/tickets/close", json!({"ticketId": "t-free"})).query("expand", "labels").send().refuses_expand();
    });
}

#[test]
fn closing_again_changes_nothing() {
    let shop = WriteFixture::open();
    let shut = shop.ticket("t-shut");
    shop.assert_unchanged(|| shop.close(json!({"ticketId": "t-shut"})).is(shut));
    let body = json!({"ticketId": "t-free", "handledBy": ANN, "isConverted": true, "totalRevenue": 5.0, "ticketFields": {"f-text": "x"}});
    let once = shop.close(body.clone()).ok();
    shop.assert_unchanged(|| shop.close(body).is(once));
}

#[test]
fn a_closed_ticket_records_values_and_keeps_its_closing_time() {
    let shop = WriteFixture::open();
    let before = shop.ticket("t-shut");
    let after = shop.close(json!({"ticketId": "t-shut", "handledBy": NAMELESS, "ticketFields": {"f-text": "late"}})).ok();
    let mut expected = without(before, &["updatedAt"]);
    expected["handledBy"] = json!(NAMELESS);
    expected["ticketFields"] = json!({"f-text": "late"});
    assert_eq!(without(after.clone(), &["updatedAt", "ticketFieldsUpdatedAt"]), expected);
    assert_eq!(after["closedAt"], SHUT);
    assert!(stamp(&after, "updatedAt").as_str() > SHUT);
    assert_eq!(shop.kinds(), ["ticket.ticket_field_updated"]);
}

#[test]
fn a_snoozed_or_spam_ticket_closes() {
    let shop = WriteFixture::open();
    for id in ["t-asleep", "t-spam"] {
        assert_eq!(shop.close(json!({"ticketId": id})).ok()["isOpen"], false);
    }
}

#[test]
fn a_close_that_changes_a_value_updates_the_timestamp_of_the_fields() {
    let shop = WriteFixture::open();
    let same = shop.close(json!({"ticketId": "t-set", "ticketFields": {"f-text": "before", "f-int": 3.0}})).ok();
    assert_eq!(same["ticketFieldsUpdatedAt"], at("03-02T09:30"));
    let changed = shop.close(json!({"ticketId": "t-set", "ticketFields": {"f-text": "after", "f-int": 3}})).ok();
    assert!(stamp(&changed, "ticketFieldsUpdatedAt") > at("03-02T09:30"));
    shop.set_at("t-set", "f-int", json!(9), &at("03-02T09:30")).fails(409);
    let ahead = shop.close(json!({"ticketId": "t-ahead", "isConverted": true})).ok();
    assert_eq!(ahead["ticketFieldsUpdatedAt"], "2099-01-01T00:00:00.001Z");
}

#[test]
fn the_user_id_in_handled_by_is_matched_without_regard_to_case() {
    let shop = WriteFixture::open();
    assert_eq!(shop.close(json!({"ticketId": "t-free", "handledBy": BO.to_uppercase()})).ok()["handledBy"], BO);
}

#[test]
fn revenue_that_would_have_to_be_rounded_is_refused() {
    let shop = WriteFixture::open();
    let close = |amount: &str| {
        let body = format!("{{\"ticketId\":\"t-free\",\"totalRevenue\":{amount}}}");
        shop.post("/tickets/close", Value::Null).bytes(body).send()
    };
    shop.assert_unchanged(|| {
        for amount in
            ["0.1000000000000000000001", "1.00000000000000000001", "999999999999999.00000000001", "-1e-30", "\"1\"", "null", "[1]"]
        {
            close(amount).refuses("body.totalRevenue");
        }
    });
    for (amount, stored) in
        [("1250E-2", json!(12.5)), ("3.000", json!(3)), ("-0", json!(0)), ("99999999999.9999", json!(99_999_999_999.999_9))]
    {
        assert_eq!(close(amount).ok()["ticketFields"]["salesRevenue"], stored, "{amount}");
    }
}

#[test]
fn a_message_sent_after_the_close_does_not_sort_a_closed_ticket() {
    let ahead = json!({"id": "m-99", "conversationId": "conv-ahead", "direction": "inbound", "sentAt": "2099-01-01T00:00:00Z",
        "createdAt": "2099-01-01T00:00:00Z", "text": "x"});
    let shop = WriteFixture::with(&[("desk", [crate::fixture::write_store(), vec![line("message", ahead)]].concat())]);
    let first = |statuses: Value| shop.post("/tickets/list", json!({"statuses": statuses})).send().ids().remove(0);
    assert_eq!(first(json!(["open", "closed"])), "t-ahead");
    shop.close(json!({"ticketId": "t-ahead"})).ok();
    // The time of the message is in the future. So the message was sent after the ticket was closed, and no longer belongs to the ticket.
    shop.api.get("/messages").query("ticketId", "t-ahead").query("pageSize", 1).send().lists(&[]);
    assert_eq!(first(json!(["closed"])), "t-shut");
}

/// A ticket has only messages that were sent after the previous ticket of the conversation was closed. In this test, the previous ticket
/// `t-free` is still open, although the newer ticket `t-later` is closed; only an import can create this state. While `t-free` is open,
/// both tickets have the message `m-2`, and `t-later` is sorted by the time of this message. Then the test closes `t-free`. From then on
/// `t-later` no longer has `m-2`, which was sent before `t-free` was closed.
#[test]
fn a_message_that_moves_to_the_older_of_two_tickets_no_longer_sorts_the_other() {
    let mut lines = crate::fixture::write_store();
    let shut = json!({"isOpen": false, "closedAt": at("03-05T00:00"), "updatedAt": at("03-05T00:00")});
    for (id, talk, opened) in [("t-later", "conv-free", "03-02T00:00"), ("t-between", "conv-bare", "03-03T00:00")] {
        let talk = lines.iter().map(|line| &line["record"]).find(|record| record["id"] == talk).unwrap();
        lines.push(line("ticket", with(ticket(id, talk, &at(opened)), shut.clone())));
    }
    lines.push(line("message", message("m-2", "conv-free", "inbound", &at("03-04T00:00"), "to both")));
    let shop = WriteFixture::with(&[("desk", lines)]);
    let closed = || shop.post("/tickets/list", json!({"statuses": ["closed"]})).send().ids();
    assert_eq!(closed(), ["t-later", "t-between", "t-shut"]);
    shop.close(json!({"ticketId": "t-free"})).ok();
    assert_eq!(closed(), ["t-free", "t-between", "t-later", "t-shut"]);
    shop.api.get("/messages").query("ticketId", "t-later").query("pageSize", 1).send().lists(&[]);
}
