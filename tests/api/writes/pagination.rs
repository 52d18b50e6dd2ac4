//! Tests of pagination while records change: a client that reads a list page by page gets each row once, although rows change or are added
//! between two pages.

use serde_json::{Value, json};

use super::WriteFixture;
use crate::{
    client::{Answer, Call},
    pagination_client::{next, walk},
};

const SIZE: usize = 2;

/// Reads a list page by page, and calls `between` after each page except the last. Returns the ids of all pages.
#[track_caller]
fn walk_while(list: &Call, mut between: impl FnMut(&Answer)) -> Vec<String> {
    let mut page = list.clone().query("pageSize", SIZE).send();
    let mut ids = page.ids();
    while let Some(cursor) = next(&page) {
        between(&page);
        page = list.clone().query("pageSize", SIZE).query("cursor", cursor).send();
        ids.extend(page.ids());
    }
    ids
}

#[test]
fn tickets_that_get_messages_between_pages_are_listed_once() {
    let shop = WriteFixture::open();
    let list = shop.post("/tickets/list", json!({}));
    let whole = walk(&list, 50);
    let rows = list.clone().query("pageSize", 50).send().ok();
    let of_ticket = |row: &Value| row["conversationId"].as_str().unwrap_or_default().to_owned();
    let conversations: Vec<String> = rows.as_array().into_iter().flatten().map(of_ticket).collect();
    let mut moved = 0;
    let walked = walk_while(&list, |_| {
        // Sends messages in the conversations of the last tickets of the list, so that these tickets move to the first page.
        moved += conversations.iter().rev().take(3).filter(|conversation| shop.text(conversation, "x").status == 200).count();
    });
    assert_eq!(walked, whole);
    assert!(moved > 0, "no ticket of {conversations:?} takes a text");
    assert_ne!(walk(&list, 50), whole, "a new walk has the new order");
}

#[test]
fn contacts_changed_between_pages_are_listed_once_and_new_ones_are_omitted() {
    let shop = WriteFixture::open();
    let list = shop.post("/contacts/list", json!({}));
    let whole = walk(&list, 50);
    let last = whole.last().unwrap();
    let mut number = 0;
    let walked = walk_while(&list, |_| {
        number += 1;
        shop.set_contact(last, "c-text", json!(number.to_string())).ok();
        shop.post("/contacts", json!({"firstName": format!("New {number}")})).send().ok();
    });
    assert_eq!(walked, whole);
    assert_eq!(walk(&list, 50).len(), whole.len() + number);
}

#[test]
fn every_page_reports_the_total_at_the_time_of_the_first_page() {
    if !crate::REV_A {
        return;
    }
    let shop = WriteFixture::open();
    for filters in [json!({}), json!({"updatedAfter": "2000-01-01T00:00:00Z"})] {
        let list = shop.post("/contacts/list", filters);
        let mut totals = vec![];
        let walked = walk_while(&list, |page| {
            totals.push(page.header("x-pagination-total").map(str::to_owned));
            shop.post("/contacts", json!({"firstName": "New"})).send().ok();
        });
        totals.dedup();
        assert_eq!(totals, [Some(walked.len().to_string())]);
    }
}
