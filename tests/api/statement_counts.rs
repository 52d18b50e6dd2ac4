//! Tests of the number of SQL statements of a request. The number must not depend on the number of rows of a page, even if the request asks
//! for related objects with the parameter `expand`. One more test checks that a total consists of few rows, since a request reads all of
//! them.

use serde_json::json;

use crate::{
    REV_A,
    client::{Api, Call},
    fixture::many,
    harness::{ALL_SCOPES, Database, Server},
};

/// The number of rows in each list: one more than the largest page of these tests, so that every page has a next page.
const ROWS: usize = 21;

/// Returns the number of SQL statements that the server has run so far, according to its metrics.
fn statements(api: &Api) -> u64 {
    let page = api.anonymous().raw("GET", "/metrics").exchange();
    let counts = page.text.lines().filter(|line| line.starts_with("counterpart_db_statements_total"));
    let counts: Vec<f64> = counts.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    assert!(!counts.is_empty(), "no counterpart_db_statements_total\n{}", page.described());
    counts.iter().sum::<f64>() as u64
}

/// Returns the number of SQL statements that the server runs for a page of this size. Measures several times and returns the minimum, since
/// the server's background polling for deliveries adds statements.
fn cost(api: &Api, call: Call, size: usize) -> u64 {
    let once = || {
        let before = statements(api);
        let answer = call.clone().query("pageSize", size).send();
        assert_eq!(answer.ids().len(), size, "{}", answer.described());
        statements(api) - before
    };
    (0..20).map(|_| once()).min().unwrap_or(0)
}

#[test]
fn a_page_of_twenty_costs_as_many_statements_as_a_page_of_two() {
    let server = Server::with(&[("many", many(ROWS))]);
    let api = server.api("many", &ALL_SCOPES);
    let (largest, conversation) = (if REV_A { 15 } else { 20 }, "conv-0");
    let mut calls = vec![
        (api.post("/tickets/list", json!({})).query("expand", "account,conversation,assignee,handledBy"), 20),
        (api.get("/conversations").query("contactId", "con-0").query("expand", "account"), 20),
        (api.post("/contacts/list", json!({})), 20),
        (api.get("/messages").query("conversationId", conversation).query("expand", "sentBy,conversation,account"), largest),
        (
            api.get("/messages/internal-comments").query("conversationId", conversation).query("expand", "createdBy,conversation,account"),
            20,
        ),
        (api.get("/labels"), 20),
        (api.get("/teams").query("expand", "users"), 20),
    ];
    if !REV_A {
        calls.push((api.get("/accounts"), 20));
    }
    for (call, most) in calls {
        // The first request may load data that the server then caches, so its statements are not counted.
        call.clone().query("pageSize", 1).send().ok();
        let (few, many) = (cost(&api, call.clone(), 2), cost(&api, call.clone(), most));
        assert_eq!(few, many, "pages of 2 and of {most}: {call:?}");
        assert!((1..=10).contains(&few), "{few} statements: {call:?}");
    }
}

#[test]
fn repeated_imports_leave_few_rows_per_total() {
    let database = Database::fresh();
    database.store("many", &many(2));
    for _ in 0..12 {
        // Imports the same records again. On PostgreSQL, a total (a stored count of records) is the sum of several rows of `totals`, and
        // each change adds a row. A request that reads a total reads all its rows. So after an import, the server must replace many rows of
        // a total by one row with their sum.
        database.import("many", &many(2));
    }
    let parts = database.ask("SELECT CAST(COUNT(*) AS TEXT) FROM totals GROUP BY store_id, name");
    assert!(!parts.is_empty() && parts.iter().all(|parts| parts.parse::<u32>().is_ok_and(|parts| parts <= 9)), "{parts:?}");
}

#[test]
fn a_record_by_its_id_costs_two_statements() {
    let server = Server::with(&[("many", many(2))]);
    let api = server.api("many", &ALL_SCOPES);
    let calls = [
        api.get("/tickets").query("ticketId", "t-000"),
        api.get("/contacts").query("contactId", "con-0"),
        api.get("/conversations").query("conversationId", "conv-0"),
    ];
    for call in calls {
        let once = || {
            let before = statements(&api);
            call.clone().send().ok();
            statements(&api) - before
        };
        let few = (0..20).map(|_| once()).min();
        assert_eq!(few, Some(2), "the key and the record: {call:?}");
    }
}
