//! Tests of failures that every operation must report as documented: a damaged or unreachable database, unusable bodies, and rate limits.
//! An error message does not reveal internal details.

use serde_json::json;

use crate::{
    client::{Answer, Call},
    contract,
    delivery_receiver::until,
    harness::has_pooler,
    settings::SettingsFixture,
};

/// Returns each operation of the API (`/v1`) and of the settings API, with a request that has a credential but neither parameters nor a
/// body.
fn everything(fixture: &SettingsFixture) -> Vec<(contract::Operation, Call)> {
    let contract = contract::contract(&fixture.shop.api).operations().into_iter();
    let contract = contract.map(|operation| (fixture.shop.api.call(&operation.method, &operation.path), operation));
    let settings = contract::settings(&fixture.api).operations().into_iter().map(|operation| {
        let call = fixture.call(&operation.method, &operation.path);
        // The operation `openSession` takes no credential. Its request must contain a sign-in link: the server looks for the link in the
        // database, so this request needs the database, too.
        (if operation.id == "openSession" { call.json(json!({"link": "cpl_x"})) } else { call }, operation)
    });
    contract.chain(settings).map(|(call, operation)| (operation, call)).collect()
}

/// Returns the requests of [`everything`] that need the database: all except `sendLink`, which only adds an e-mail to a queue in memory.
fn on_the_database(fixture: &SettingsFixture) -> impl Iterator<Item = Call> {
    everything(fixture).into_iter().filter(|(operation, _)| operation.id != "sendLink").map(|(_, call)| call)
}

#[track_caller]
fn is_internal(answer: &Answer) {
    let message = answer.fails(500);
    for inner in ["table", "sql", "SELECT", "relation", "api_key", "grants"] {
        assert!(!message.contains(inner), "{}", answer.described());
    }
}

#[test]
fn every_operation_reports_a_database_without_its_tables() {
    let fixture = SettingsFixture::open();
    let rename = |from: &str, to: &str| fixture.shop.server.database.sql(&format!("ALTER TABLE {from} RENAME TO {to}"));
    for table in ["api_keys", "grants"] {
        rename(table, &format!("lost_{table}"));
    }
    for call in on_the_database(&fixture) {
        let answer = call.exchange();
        answer.fails(503);
        assert!(answer.header("retry-after").is_some(), "{}", answer.described());
    }
    // Replaces the tables by views whose queries fail with an error that the server does not expect.
    let fails = if fixture.shop.server.database.postgres.is_some() { "1 / 0 = 0" } else { "json_extract('{', '$.a') = 1" };
    for table in ["api_keys", "grants"] {
        fixture.shop.server.database.sql(&format!("CREATE VIEW {table} AS SELECT * FROM lost_{table} WHERE {fails}"));
    }
    for call in on_the_database(&fixture) {
        is_internal(&call.exchange());
    }
    // The server still runs. It works again once the tables are restored.
    for table in ["api_keys", "grants"] {
        fixture.shop.server.database.sql(&format!("DROP VIEW {table}"));
        rename(&format!("lost_{table}"), table);
    }
    fixture.shop.api.get("/labels").send().ok();
    fixture.get("/keys").send().ok();
}

/// On SQLite this test does nothing, since an embedded database cannot refuse connections.
#[test]
fn every_operation_reports_a_database_that_refuses_connections() {
    let fixture = SettingsFixture::open();
    let calls: Vec<Call> = on_the_database(&fixture).collect();
    if !fixture.shop.server.database.lets_in(false) {
        return;
    }
    for call in calls {
        let answer = call.exchange();
        answer.fails(503);
        assert!(answer.header("retry-after").is_some(), "{}", answer.described());
    }
    fixture.shop.server.database.lets_in(true);
    if has_pooler() {
        // After PostgreSQL refused a connection, a pooler refuses connections by itself for some time.
        until("the pooler connects again", || fixture.shop.api.get("/labels").exchange().status == 200);
    }
    fixture.shop.api.get("/labels").send().ok();
    fixture.get("/keys").send().ok();
}

#[test]
fn every_operation_with_a_body_refuses_one_that_is_too_large_or_no_json() {
    let fixture = SettingsFixture::open();
    let large = vec![b' '; 1024 * 1024 + 1];
    let takes = |operation: &contract::Operation| operation.node.get("requestBody").is_some();
    let calls: Vec<Call> = everything(&fixture).into_iter().filter(|(operation, _)| takes(operation)).map(|(_, call)| call).collect();
    assert!(calls.len() > 20, "{}", calls.len());
    for mut call in calls {
        call.headers.retain(|(name, _)| name != "content-type");
        call.clone().header("content-type", "text/plain").bytes("{}").exchange().fails(415);
        call.header("content-type", "application/json").bytes(large.clone()).exchange().fails(413);
    }
}

#[test]
fn every_operation_answers_429_above_the_rate_limit() {
    let fixture = SettingsFixture::with(&[("COUNTERPART_RATE_LIMIT", "1/s")]);
    for operation in contract::contract(&fixture.shop.api).operations() {
        let call = fixture.shop.api.call(&operation.method, &operation.path);
        // The limit is one request a second. One of several requests in a row exceeds it.
        let refused = (0..8).map(|_| call.exchange()).find(|answer| answer.status == 429);
        let refused = refused.unwrap_or_else(|| panic!("no limit: {call:?}"));
        assert!(refused.header("retry-after").is_some(), "{}", refused.described());
    }
}
