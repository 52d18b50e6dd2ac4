//! Tests of GET /tickets, and of POST /tickets/list without filters: the properties of a ticket, and the tickets that are listed.

use serde_json::{Value, json};

use crate::{
    client::{Answer, Api},
    fixture::{ANN, BO, at},
    harness::one,
};

/// The ids of the tickets of store `one` that are open, not snoozed and not spam, in the order of the list. The list sorts a ticket by the
/// time of its last message, newest first. It sorts a ticket without messages by its opening time.
pub const OPEN: [&str; 16] = [
    "t-wait", "t-tie-6", "t-tie-5", "t-tie-4", "t-tie-3", "t-tie-2", "t-tie-1", "t-f1", "t-f2", "t-f3", "t-f4", "t-gone", "t-drunk",
    "t-quiet", "t-woke", "t-third",
];

/// The ids of the three tickets of `conv-main`, newest first.
pub const HISTORY: [&str; 3] = ["t-third", "t-second", "t-first"];

pub fn ticket(api: &Api, id: &str) -> Answer {
    api.get("/tickets").query("ticketId", id).send()
}

pub fn list(body: Value) -> Answer {
    one().post("/tickets/list", body).send()
}

fn third() -> Value {
    json!({
        "id": "t-third", "ticketNumber": "1003", "isOpen": true, "openedAt": at("03-05T08:00"), "channel": "line", "isSpam": false,
        "contactId": "con-mia", "createdAt": at("03-05T08:00"), "updatedAt": at("03-05T10:00"), "accountId": "acc-line",
        "conversationId": "conv-main", "assigneeUserId": BO, "isFollowUp": true, "handledBy": ANN,
        "ticketFields": {"f-text": "third", "f-multi": ["c", "a"], "f-when": at("03-05T08:00")},
        "ticketFieldsUpdatedAt": at("03-05T09:30"),
    })
}

#[test]
fn an_open_ticket_shows_all_its_properties() {
    ticket(one(), "t-third").is(third());
}

#[test]
fn a_closed_ticket_shows_when_it_closed_and_how_it_was_resolved() {
    ticket(one(), "t-first").is(json!({
        "id": "t-first", "ticketNumber": "1001", "isOpen": false, "openedAt": at("03-01T08:00"), "channel": "line", "isSpam": false,
        "contactId": "con-mia", "createdAt": at("03-01T08:00"), "updatedAt": at("03-02T08:00"), "accountId": "acc-line",
        "conversationId": "conv-main", "closedAt": at("03-02T08:00"), "assigneeUserId": ANN, "isFollowUp": false, "handledBy": ANN,
        "ticketFields": {"f-text": "first", "isConverted": true, "salesRevenue": 1250.5, "resolutionStatus": "human"},
        "ticketFieldsUpdatedAt": at("03-02T07:00"),
    }));
}

#[test]
fn a_reopened_ticket_has_no_closing_time_and_hides_its_snooze() {
    let data = ticket(one(), "t-woke").ok();
    assert_eq!(data["reopenedAt"], at("03-07T08:00"));
    for absent in ["closedAt", "snoozedUntil", "handledBy", "resolutionStatus", "ticketFieldsUpdatedAt"] {
        assert!(data.get(absent).is_none(), "{absent} in {data}");
    }
    assert_eq!(data["ticketFields"]["resolutionStatus"], "automation");
}

#[test]
fn a_single_ticket_is_found_in_every_state() {
    for id in ["t-mail", "t-spam", "t-second", "t-gone"] {
        assert_eq!(ticket(one(), id).ok()["id"], id);
    }
}

#[test]
fn both_revisions_return_a_channel_that_only_the_newer_one_documents() {
    assert_eq!(ticket(one(), "t-drunk").ok()["channel"], "drunken_lullabies");
}

#[test]
fn ticket_numbers_are_decimal_and_unique() {
    let all = list(json!({"statuses": ["open", "closed"]})).ok();
    let mut numbers: Vec<u64> = Vec::new();
    for ticket in all.as_array().into_iter().flatten() {
        let number = ticket["ticketNumber"].as_str().and_then(|number| number.parse().ok());
        numbers.push(number.unwrap_or_else(|| panic!("not a decimal number: {ticket}")));
    }
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn a_ticket_id_is_required_and_an_unknown_one_is_not_found() {
    one().get("/tickets").send().refuses("ticketId");
    for id in ["nobody", "NOT a uuid!", &"x".repeat(65), "t-two"] {
        ticket(one(), id).fails(404);
    }
}

#[test]
fn a_single_ticket_carries_no_pagination_headers() {
    let answer = ticket(one(), "t-third");
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-pagination")), "{}", answer.described());
}

#[test]
fn the_ticket_list_returns_tickets_with_all_their_properties() {
    assert_eq!(list(json!({})).row("t-third"), third());
}

#[test]
fn an_empty_filter_lists_open_tickets_that_are_neither_spam_nor_snoozed() {
    list(json!({})).lists(&OPEN);
}

#[test]
fn a_zero_length_body_is_an_empty_filter() {
    one().call("POST", "/tickets/list").send().lists(&OPEN);
    one().call("POST", "/tickets/list").bytes("").send().lists(&OPEN);
    one().call("POST", "/tickets/list").header("content-type", "application/json").bytes("").send().lists(&OPEN);
}

#[test]
fn comments_do_not_move_a_ticket_up_the_list() {
    // Comments do not affect the sort order: `t-quiet` has a comment that is newer than the messages of `t-drunk`, but is listed after
    // `t-drunk`.
    let ids = list(json!({"accountIds": ["acc-line", "acc-drunk"]})).ids();
    assert_eq!(ids, ["t-drunk", "t-quiet", "t-third"]);
}
