//! Tests of the operations of the settings API that unassign a ticket, snooze it, or hand a conversation over from the AI to people
//! (escalation).

use serde_json::{Value, json};

use super::SettingsFixture;
use crate::{
    fixture::{ANN, BO, SHUT},
    writes::acknowledged,
};

const LATER: &str = "2098-01-01T00:00:00.000Z";

fn kinds(fixture: &SettingsFixture) -> Vec<String> {
    fixture.shop.kinds()
}

#[test]
fn a_ticket_is_unassigned() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    let answer = fixture.post("/tickets/unassign", json!({"ticketId": "t-set"})).ok();
    assert_eq!((&answer["id"], &answer["isOpen"], answer.get("assigneeUserId")), (&json!("t-set"), &json!(true), None));
    assert_eq!(fixture.shop.ticket("t-set").get("assigneeUserId"), None);
    assert_eq!(fixture.shop.ticket("t-set")["updatedAt"], answer["updatedAt"]);
    fixture.post("/tickets/unassign", json!({"ticketId": "t-set"})).is(answer);
    let events = fixture.shop.events();
    assert_eq!(events.len(), 1, "a ticket without an assignee causes no event");
    assert_eq!((&events[0]["type"], &events[0]["actor"]), (&json!("ticket.unassigned"), &json!({"type": "user", "id": ANN})));
    assert_eq!(events[0]["data"]["previousAssigneeUserId"], BO);
    assert_eq!(fixture.changes_since(before), [("ticket.unassigned".into(), "ticket".into(), "t-set".into())]);
}

#[test]
fn a_ticket_is_snoozed_and_unsnoozed() {
    let fixture = SettingsFixture::open();
    let open = || fixture.shop.post("/tickets/list", json!({})).query("pageSize", 50).send().ids();
    assert!(open().contains(&"t-free".to_owned()));
    let shown = fixture.post("/tickets/snooze", json!({"ticketId": "t-free", "until": "2098-01-01T07:00:00+07:00"})).ok();
    assert_eq!((&shown["snoozedUntil"], &shown["isOpen"]), (&json!(LATER), &json!(true)));
    assert!(!open().contains(&"t-free".to_owned()));
    let shown = fixture.post("/tickets/unsnooze", json!({"ticketId": "t-free"})).ok();
    assert_eq!(shown.get("snoozedUntil"), None);
    assert!(open().contains(&"t-free".to_owned()));
    assert_eq!(kinds(&fixture), Vec::<String>::new());
    let refused = fixture.shop.assert_unchanged(|| {
        let snooze = |ticket: &str, until: Value| fixture.post("/tickets/snooze", json!({"ticketId": ticket, "until": until}));
        snooze("t-free", json!("2020-01-01T00:00:00Z")).refuses("body.until");
        snooze("t-free", json!("soon")).refuses("body.until");
        snooze("t-free", json!(null)).refuses("body.until");
        snooze("t-free", json!(4_000_000_000_i64)).refuses("body.until");
        snooze("nope", json!(LATER)).fails(404);
        fixture.post("/tickets/snooze", json!({"ticketId": "t-free"})).refuses("body.until");
        snooze("t-shut", json!(LATER))
    });
    refused.refuses("body.ticketId");
    assert_eq!(fixture.shop.ticket("t-shut")["closedAt"], SHUT);
}

#[test]
fn escalating_a_conversation_emits_an_ai_escalated_event() {
    let fixture = SettingsFixture::open();
    fixture.post("/conversations/escalate", json!({"conversationId": "conv-free", "reason": " ลูกค้าต้องการคน "})).is(acknowledged());
    fixture.post("/conversations/escalate", json!({"conversationId": "conv-bare"})).is(acknowledged());
    let events = fixture.shop.events();
    assert_eq!(events.iter().map(|event| &event["type"]).collect::<Vec<_>>(), ["ai.escalated", "ai.escalated"]);
    assert_eq!(events[0]["actor"], json!({"type": "ai"}));
    assert_eq!((&events[0]["data"]["reason"], &events[0]["data"]["ticket"]["id"]), (&json!("ลูกค้าต้องการคน"), &json!("t-free")));
    assert_eq!(events[0]["data"]["conversation"], fixture.shop.conversation("conv-free"));
    assert_eq!((events[1]["data"].get("reason"), events[1]["data"].get("ticket")), (None, None));
    fixture.post("/conversations/escalate", json!({"conversationId": "nope"})).fails(404);
    fixture.post("/conversations/escalate", json!({"conversationId": "conv-free", "reason": "x".repeat(1001)})).refuses("body.reason");
    assert_eq!(fixture.shop.events().len(), 2);
}

#[test]
fn a_repeated_idempotency_key_replays_the_first_response() {
    let fixture = SettingsFixture::open();
    for (path, body) in [
        ("/conversations/escalate", json!({"conversationId": "conv-free"})),
        ("/tickets/unassign", json!({"ticketId": "t-set"})),
        ("/tickets/snooze", json!({"ticketId": "t-free", "until": LATER})),
        ("/tickets/unsnooze", json!({"ticketId": "t-asleep"})),
    ] {
        let call = || fixture.call("POST", path).header("idempotency-key", "one").json(body.clone());
        let first = call().send();
        let (events, changes) = (fixture.shop.events().len(), fixture.changes());
        let second = call().send();
        assert_eq!((second.ok(), second.header("idempotency-replayed")), (first.ok(), Some("true")));
        call().reworded().send().fails(409);
        assert_eq!((fixture.shop.events().len(), fixture.changes()), (events, changes));
    }
}

#[test]
fn a_missing_ticket_cannot_be_snoozed_or_unsnoozed() {
    let fixture = SettingsFixture::open();
    fixture.post("/tickets/snooze", json!({"ticketId": "nope", "until": LATER})).fails(404);
    fixture.post("/tickets/unsnooze", json!({"ticketId": "nope"})).fails(404);
}
