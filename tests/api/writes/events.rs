//! Tests of events: which events each write causes, their content and their order.

use serde_json::{Value, json};

use super::{WriteFixture, without};
use crate::{
    REV_A,
    contract::is_timestamp,
    fixture::{ANN, BO, at},
};

/// Asserts the rules for all events of a store: their properties, consecutive sequence numbers, the API key as author, and unique ids.
#[track_caller]
fn well_formed(shop: &WriteFixture, events: &[Value]) {
    for (n, event) in (1..).zip(events) {
        let mut members: Vec<_> = event.as_object().map(|event| event.keys().map(String::as_str).collect()).unwrap_or_default();
        members.retain(|member| *member != "previous");
        members.sort_unstable();
        assert_eq!(members, ["actor", "apiRevision", "data", "id", "sequence", "storeId", "timestamp", "type"], "{event}");
        assert_eq!(event["sequence"], n, "{event}");
        assert_eq!(event["storeId"], shop.api.store, "{event}");
        assert_eq!(event["actor"], json!({"type": "api_key", "id": shop.key.id}), "{event}");
        assert!(event["timestamp"].as_str().is_some_and(is_timestamp), "{event}");
        let revision = event["apiRevision"].as_str().unwrap_or_default().to_ascii_lowercase();
        assert!(revision.ends_with(if REV_A { 'a' } else { 'b' }), "{event}");
    }
    let mut ids: Vec<_> = events.iter().map(|event| event["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events.len(), "ids are unique");
}

/// Asserts that the store has exactly one event, and that it is of this kind. Returns the event's `data`.
#[track_caller]
fn only(shop: &WriteFixture, kind: &str) -> Value {
    let events = shop.events();
    well_formed(shop, &events);
    let [event] = &events[..] else { panic!("one event: {events:#?}") };
    assert_eq!(event["type"], kind);
    event["data"].clone()
}

#[test]
fn a_store_without_changes_has_no_events() {
    // The store was filled by an import, which causes no events.
    assert_eq!(WriteFixture::open().events(), Vec::<Value>::new());
}

#[test]
fn the_event_of_a_ticket_field_has_both_values() {
    let shop = WriteFixture::open();
    let ticket = shop.set("t-set", "f-int", json!(4)).ok();
    let data = only(&shop, "ticket.ticket_field_updated");
    assert_eq!(data, json!({"ticket": ticket, "ticketFieldId": "f-int", "oldValue": 3, "newValue": 4}));
}

#[test]
fn the_event_of_a_value_that_is_first_set_or_unset_has_one_value() {
    let shop = WriteFixture::open();
    let first = shop.set("t-free", "f-multi", json!(["b", "a"])).ok();
    let last = shop.patch("/tickets/field-values", json!({"ticketId": "t-free", "ticketFieldId": "f-multi", "newValue": null}));
    // `expand` adds the account and the conversation to the response, but not to the event.
    last.query("expand", "account,conversation").send().ok();
    let last = shop.ticket("t-free");
    let events = shop.events();
    well_formed(&shop, &events);
    let data: Vec<_> = events.iter().map(|event| event["data"].clone()).collect();
    assert_eq!(without(data[0].clone(), &["oldValue"]), json!({"ticket": first, "ticketFieldId": "f-multi", "newValue": ["b", "a"]}));
    assert_eq!(without(data[1].clone(), &["newValue"]), json!({"ticket": last, "ticketFieldId": "f-multi", "oldValue": ["b", "a"]}));
    assert_eq!((&data[0]["oldValue"], &data[1]["newValue"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_close_causes_an_event_per_changed_value_and_then_its_own() {
    let shop = WriteFixture::open();
    let body = json!({
        "ticketId": "t-set", "handledBy": BO, "isConverted": true, "totalRevenue": 10,
        "ticketFields": {"f-text": "after", "f-int": 3, "f-notes": "new", "f-multi": []},
    });
    let ticket = shop.close(body).ok();
    let events = shop.events();
    well_formed(&shop, &events);
    let (last, fields) = events.split_last().unwrap_or_else(|| panic!("no events"));
    let mut changes: Vec<_> = fields
        .iter()
        .map(|event| {
            assert_eq!(event["type"], "ticket.ticket_field_updated");
            assert_eq!(event["data"]["ticket"]["id"], "t-set");
            let data = &event["data"];
            (data["ticketFieldId"].as_str().unwrap_or_default().to_owned(), data["oldValue"].clone(), data["newValue"].clone())
        })
        .collect();
    changes.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(
        changes,
        [
            ("f-multi".into(), json!(["a", "b"]), Value::Null),
            ("f-notes".into(), Value::Null, json!("new")),
            ("f-text".into(), json!("before"), json!("after")),
            ("isConverted".into(), Value::Null, json!(true)),
            ("salesRevenue".into(), Value::Null, json!(10)),
            ("salesRevenueCurrency".into(), Value::Null, json!("THB")),
        ]
    );
    assert_eq!((&last["type"], &last["data"]), (&json!("ticket.closed"), &json!({"ticket": ticket})));
}

#[test]
fn closing_a_ticket_again_causes_no_second_close_event() {
    let shop = WriteFixture::open();
    for _ in 0..3 {
        shop.close(json!({"ticketId": "t-free"})).ok();
    }
    only(&shop, "ticket.closed");
    shop.close(json!({"ticketId": "t-free", "handledBy": ANN})).ok();
    only(&shop, "ticket.closed");
    shop.close(json!({"ticketId": "t-free", "isConverted": true})).ok();
    assert_eq!(shop.kinds(), ["ticket.closed", "ticket.ticket_field_updated"]);
}

#[test]
fn each_reassigned_ticket_causes_an_event_in_order() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::open();
    let answer = shop.assign(&[("t-asleep", BO), ("t-set", ANN), ("t-free", BO)]);
    shop.assign(&[("t-free", BO), ("t-set", ANN)]).ok();
    let events = shop.events();
    well_formed(&shop, &events);
    assert_eq!(shop.kinds(), ["ticket.assigned"; 3]);
    let data: Vec<_> = events.iter().map(|event| event["data"].clone()).collect();
    assert_eq!(data[0], json!({"ticket": answer.row("t-asleep")}));
    assert_eq!(data[1], json!({"ticket": answer.row("t-set"), "previousAssigneeUserId": BO}));
    assert_eq!(data[2], json!({"ticket": answer.row("t-free")}));
}

#[test]
fn each_added_or_removed_label_causes_an_event() {
    let shop = WriteFixture::open();
    shop.label("conv-free", &["lab-c", "lab-a", "lab-0"], &["lab-b", "lab-9"]).ok();
    let events = shop.events();
    well_formed(&shop, &events);
    let conversation = shop.conversation("conv-free");
    let mut got = Vec::new();
    for event in &events {
        let data = &event["data"];
        assert_eq!(without(data.clone(), &["labelId", "label"]), json!({"conversationId": "conv-free", "conversation": conversation}));
        got.push((event["type"].as_str().unwrap_or_default(), data["labelId"].as_str().unwrap_or_default(), data["label"].clone()));
    }
    got.sort_unstable_by_key(|(kind, id, _)| (*kind, *id));
    let (added, removed) = ("conversation.label_added", "conversation.label_removed");
    assert_eq!(got, [(added, "lab-0", json!("Label 0")), (added, "lab-c", json!("Label c")), (removed, "lab-b", json!("Label b"))]);
}

#[test]
fn the_event_of_a_contact_field_has_both_values() {
    let shop = WriteFixture::open();
    shop.set_contact("con-mia", "c-text", json!("after")).ok();
    let data = only(&shop, "contact.contact_field_updated");
    let contact = shop.contact("con-mia");
    assert_eq!(data, json!({"contact": contact, "contactFieldId": "c-text", "oldValue": "before", "newValue": "after"}));
}

#[test]
fn new_contacts_comments_and_mark_read_cause_no_event() {
    let shop = WriteFixture::open();
    shop.post("/contacts", json!({"firstName": "Ada"})).send().ok();
    shop.read("conv-free").ok();
    shop.comment("conv-free", "x").ok();
    assert_eq!(shop.events(), Vec::<Value>::new());
}

#[test]
fn each_message_that_its_channel_accepted_causes_an_event() {
    let shop = WriteFixture::simulated();
    shop.text("conv-line", "to a ticket").ok();
    shop.text("conv-shut", "to none").ok();
    shop.text("conv-fb", "simulate:refuse").ok();
    let mut causes = vec![("conv-line", Some("t-line")), ("conv-shut", None)];
    if !REV_A {
        let reply = json!({"conversationId": "conv-mail", "to": [{"email": "eva@example.com"}], "html": "<p>"});
        shop.post("/messages/email", reply).send().ok();
        shop.post("/messages/template", json!({"conversationId": "conv-wa-late", "templateId": "tpl-APPROVED"})).send().ok();
        causes.extend([("conv-mail", None), ("conv-wa-late", Some("t-wa-late"))]);
        let new = json!({"accountId": "acc-mail", "to": [{"email": "eva@example.com"}], "text": "x"});
        shop.post("/messages/email/new", new).send().ok();
        let phone = json!({"accountId": "acc-wb", "phoneNumber": "+66844444444", "templateId": "tpl-other", "variables": ["x"]});
        shop.post("/messages/template/phone", phone).send().ok();
    }
    shop.settled();
    let events = shop.events();
    well_formed(&shop, &events);
    assert_eq!(shop.kinds(), vec!["message.sent"; if REV_A { 2 } else { 6 }]);
    for event in &events {
        let data = &event["data"];
        let conversation = data["conversationId"].as_str().unwrap_or_default();
        let mut expected = json!({"message": shop.newest(conversation), "conversationId": conversation});
        match causes.iter().find(|(id, _)| *id == conversation) {
            Some((_, Some(ticket))) => expected["ticketId"] = json!(ticket),
            Some((_, None)) => {}
            None => assert_eq!(shop.conversation(conversation)["allMsgCnt"], 1, "only a new conversation is unknown"),
        }
        assert_eq!(*data, expected);
    }
}

#[test]
fn sequences_have_no_gaps_and_after_skips_earlier_events() {
    let shop = WriteFixture::open();
    for n in 0..4 {
        shop.set("t-free", "f-int", json!(n)).ok();
        shop.set("t-free", "f-int", json!("refused")).fails(400);
        shop.set_at("t-free", "f-int", json!(n + 9), &at("01-01T00:00")).fails(409);
        shop.set("nobody", "f-int", json!(n)).fails(404);
        shop.set("t-free", "f-int", json!(n)).ok();
        shop.set_contact("con-new", "c-int", json!(n)).ok();
        shop.label("conv-free", &["lab-c"], &[]).ok();
    }
    shop.close(json!({"ticketId": "t-free"})).ok();
    let events = shop.events();
    well_formed(&shop, &events);
    assert_eq!(events.len(), 10);
    for after in [0, 3, 9, 10, 99] {
        let rest = shop.events_after("desk", Some(after));
        assert_eq!(rest, events[usize::try_from(after).unwrap_or_default().min(10)..], "--after {after}");
    }
}
