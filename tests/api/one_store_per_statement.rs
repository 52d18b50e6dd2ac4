//! Test that each SQL statement of a request is for one store, so that a distributed database (Citus) runs the statement on the one node of
//! the store. The server logs its statements together with the id of their request. `tests/citus.sh` tests the same on a cluster, where
//! Citus explains on which nodes a statement runs. SQLite cannot be distributed, so with SQLite the statements are not checked.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    client::Call,
    contract,
    delivery_receiver::until,
    fixture,
    harness::{ALL_SCOPES, Database, Server, Settings, has_postgres},
    openapi_documents::routes,
    scopes::good_request,
    settings::{SettingsFixture, text},
};

const LOG_EVERY_STATEMENT: Settings<'_> = &[("COUNTERPART_LOG_FORMAT", "json"), ("COUNTERPART_SLOW_STATEMENT", "0")];

/// The tables that are not distributed by store: each node has a copy of the first four, and only the coordinator has the others. A
/// statement on these tables need not name a store. If it reads, it runs on one node. If it changes a table that each node has, it has to
/// reach every node in any case. `src/store/SCALING.md` lists the tables.
const UNDISTRIBUTED_TABLES: [&str; 9] = [
    "stores",
    "api_keys",
    "api_key_secrets",
    "grants",
    "server_secrets",
    "sandbox",
    "write_probes",
    "forgotten_changes",
    "transaction_numbers",
];

/// The exceptions: the statements that may need several nodes although a request runs them. Each is given by its beginning.
/// `src/store/SCALING.md` lists them, too.
const EXCEPTIONS: [&str; 3] = [
    // Before a search, the server reads the new changes of all stores: on one PostgreSQL server by the first of these two statements, on a
    // cluster by the second.
    "SELECT s.now::text, s.known, c.position IS NOT NULL, c.position, c.store_id, c.kind, c.record_ids FROM ",
    r#"SELECT "changes"."position", "changes"."store_id", "changes"."kind", "changes"."record_ids" FROM "changes" WHERE "transaction_id" > "#,
    // After a request has queued a message, the task that sends messages reads the time at which the next message is due, in any store.
    r#"SELECT "outbound"."due_at" FROM "outbound" "#,
];

/// Returns the queries of a statement: the statement itself and its subqueries, each with `()` in place of the subqueries in it.
fn queries(statement: &str) -> Vec<String> {
    let mut complete = Vec::new();
    // The queries that have begun and not ended, each with the number of its open parentheses.
    let mut open = vec![(String::new(), 0)];
    for (at, character) in statement.char_indices() {
        let (query, depth) = open.last_mut().expect("the statement itself");
        match character {
            '(' if statement[at..].starts_with("(SELECT ") => {
                query.push_str("()");
                open.push((String::new(), 0));
                continue;
            }
            ')' if *depth == 0 => {
                complete.extend(open.pop().map(|(query, _)| query));
                continue;
            }
            '(' => *depth += 1,
            ')' => *depth -= 1,
            _ => {}
        }
        query.push(character);
    }
    complete.extend(open.into_iter().map(|(query, _)| query));
    // The `SELECT` of an `INSERT`, and each part of a `UNION`, counts as a query, too.
    let parts = |query: String| -> Vec<String> {
        let inserts = query.starts_with("INSERT INTO");
        query.split(" UNION ").flat_map(|part| part.splitn(if inserts { 2 } else { 1 }, " SELECT ")).map(str::to_owned).collect()
    };
    complete.into_iter().flat_map(parts).collect()
}

/// Returns the tables of a query: the words after FROM, JOIN, INTO and UPDATE.
fn tables(query: &str) -> BTreeSet<String> {
    let words: Vec<&str> = query.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| ["FROM", "JOIN", "INTO", "UPDATE"].contains(&pair[0]));
    let names = named.map(|pair| pair[1].replace('"', "").trim_end_matches([',', ')', ';']).to_owned());
    names.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()) && !name.starts_with("pg_")).collect()
}

/// Returns whether a query names its store: it compares `store_id` with a bound value, or inserts rows with a `store_id`.
fn names_its_store(query: &str) -> bool {
    let plain = query.replace('"', "");
    let inserts = plain.starts_with("INSERT INTO") && plain.split(')').next().is_some_and(|columns| columns.contains("store_id"));
    let compared = plain.match_indices("store_id").any(|(at, name)| {
        let rest = plain[at + name.len()..].trim_start();
        rest.strip_prefix('=').is_some_and(|value| value.trim_start().starts_with(['$', '?']))
    });
    inserts || compared
}

/// Returns whether each query of a statement names its store. Citus would send a subquery that names no store to every node, even if the
/// subquery is joined by `store_id` with a query that names its store.
fn is_of_one_store(statement: &str) -> bool {
    queries(statement)
        .iter()
        .all(|query| names_its_store(query) || tables(query).iter().all(|table| UNDISTRIBUTED_TABLES.contains(&table.as_str())))
}

fn may_need_several_nodes(statement: &str) -> bool {
    EXCEPTIONS.iter().any(|begin| statement.starts_with(begin))
}

/// The operations whose statements may be logged without the id of the request. Their requests in this test look up one record by its id,
/// and one statement can serve the look-ups of several concurrent requests.
const BATCHED_LOOK_UPS: [&str; 3] = ["getTicket", "getContact", "listConversations"];

/// Sends the requests, each with an id. Asserts that the log has statements of each request (except those of [`BATCHED_LOOK_UPS`]), and
/// that each logged statement of a request is for one store or listed in [`EXCEPTIONS`].
fn check(server: &Server, calls: Vec<(String, Call)>) {
    let mut ids = BTreeSet::new();
    for (name, call) in calls {
        let id = format!("one-store-{name}");
        let answer = call.header("x-request-id", &id).send();
        assert!(answer.status < 400, "{name}: {}", answer.described());
        if !BATCHED_LOOK_UPS.contains(&name.as_str()) {
            ids.insert(id);
        }
    }
    let of_requests = || -> Vec<(String, String)> {
        let log = server.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|line| line["message"] == "a slow statement")
            .filter_map(|line| Some((line["span"]["request_id"].as_str()?.to_owned(), line["statement"].as_str()?.to_owned())))
            .collect()
    };
    until("statements of each request are logged", || {
        let logged: BTreeSet<String> = of_requests().into_iter().map(|(id, _)| id).collect();
        ids.is_subset(&logged)
    });
    let all = of_requests();
    let statements = all.iter().flat_map(|(id, text)| text.split("; ").map(move |one| (id, one)));
    let wrong: BTreeSet<_> = statements.filter(|(_, one)| !is_of_one_store(one) && !may_need_several_nodes(one)).collect();
    assert!(wrong.is_empty(), "statements that name no store: {wrong:#?}");
}

#[test]
fn every_sql_statement_of_the_api_is_restricted_to_one_store() {
    if !has_postgres() {
        return;
    }
    let server = Server::start_with(Database::with(&[("one", fixture::one())]), LOG_EVERY_STATEMENT);
    let api = server.api("one", &ALL_SCOPES);
    check(&server, routes().iter().map(|route| (route.operation.clone(), good_request(&api, &route.operation))).collect());
}

#[test]
fn every_sql_statement_of_the_settings_api_is_restricted_to_one_store() {
    if !has_postgres() {
        return;
    }
    let fixture = SettingsFixture::with(LOG_EVERY_STATEMENT);
    let (key, _) = fixture.key(&["labels:read"]);
    let webhook = text(&fixture.post("/webhooks", json!({"url": "https://example.com/"})).ok()["webhook"]["id"]);
    let lists = contract::settings(&fixture.api).operations().into_iter().filter(|one| one.method == "GET");
    let without_parameters = lists.filter(|one| {
        let parameters = one.node["parameters"].as_array().into_iter().flatten();
        parameters.filter(|parameter| parameter["required"] == true).count() == 0
    });
    let mut calls: Vec<_> = without_parameters.map(|one| (one.id, fixture.get(&one.path))).collect();
    assert!(calls.len() >= 10, "{}", calls.len());
    let post = |path: &str, body: Value| fixture.call("POST", path).json(body);
    calls.extend([
        ("rotateKey".to_owned(), post("/keys/rotate", json!({"keyId": key}))),
        ("deactivateKey".to_owned(), post("/keys/deactivate", json!({"keyId": key}))),
        ("deleteKey".to_owned(), fixture.call("DELETE", "/keys").query("keyId", &key)),
        ("editWebhook".to_owned(), fixture.call("PATCH", "/webhooks").json(json!({"webhookId": webhook, "events": ["ai.escalated"]}))),
        ("testWebhook".to_owned(), post("/webhooks/test", json!({"webhookId": webhook}))),
        ("rotateWebhook".to_owned(), post("/webhooks/rotate", json!({"webhookId": webhook}))),
        ("deleteWebhook".to_owned(), fixture.call("DELETE", "/webhooks").query("webhookId", &webhook)),
    ]);
    check(&fixture.shop.server, calls);
}

#[test]
fn the_check_detects_sql_statements_that_are_not_restricted_to_one_store() {
    for (statement, is_right) in [
        ("SELECT id FROM tickets WHERE store_id = $1 AND id = $2", true),
        (r#"SELECT "tickets"."id" FROM "tickets" WHERE "tickets"."store_id" = $1"#, true),
        (r#"INSERT INTO "contacts" ("store_id", "id") VALUES ($1, $2)"#, true),
        ("SELECT name FROM stores WHERE id = $1", true),
        ("SELECT t.id FROM tickets t JOIN contacts c ON c.store_id = t.store_id WHERE t.id = $1", false),
        ("UPDATE tickets SET status = $1 WHERE id = $2", false),
        ("INSERT INTO contacts (store_id, id) SELECT store_id, id FROM users", false),
        ("INSERT INTO contacts (store_id, id) SELECT store_id, id FROM users WHERE store_id = $1", true),
        ("SELECT id FROM users WHERE store_id = $1 UNION ALL SELECT id FROM users", false),
        ("SELECT (SELECT name FROM contacts c WHERE c.id = t.id), (1) FROM tickets t WHERE t.store_id = $1", false),
        ("SELECT (SELECT name FROM contacts WHERE store_id = $1 AND (id = $2)), (1) FROM tickets WHERE store_id = $1", true),
    ] {
        assert_eq!(is_of_one_store(statement) || may_need_several_nodes(statement), is_right, "{statement}");
    }
}
