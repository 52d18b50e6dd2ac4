//! Tests of sandboxes (databases whose clock can be advanced): how a database becomes a sandbox, which processes may use it, and the
//! command `clock`.

use serde_json::{Value, json};

use super::SettingsFixture;
use crate::{
    client::Api,
    fixture::{ANN, write_store},
    harness::{Database, Server, Settings, has_pooler},
};

const SANDBOX: Settings<'static> = &[("COUNTERPART_SANDBOX", "true")];
const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0"];
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Creates a database, and rolls back all migrations. Returns the database, which has none of the program's tables.
fn empty() -> Database {
    let database = Database::undistributed();
    let steps = database.run(&["migrate", "status"]).lines().count().to_string();
    database.run(&["migrate", "down", "--yes", "--steps", &steps]);
    database
}

/// Creates a sandbox with the store `desk`.
fn sandbox_database() -> Database {
    let database = empty();
    database.run(&["migrate", "--sandbox"]);
    database.store("desk", &write_store());
    database
}

/// Starts a server on a new sandbox. Returns the server and the token of an owner.
fn sandbox() -> (Server, String) {
    let database = sandbox_database();
    let token = database.run(&["settings", "token", "--store", "desk", "--user", ANN]);
    (Server::start_with(database, SANDBOX), token)
}

fn millis(text: &Value) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text.as_str().unwrap_or_default()).expect("a time").timestamp_millis()
}

fn plus_days(text: &Value, days: i64) -> String {
    let at = chrono::DateTime::from_timestamp_millis(millis(text) + days * DAY).expect("a time");
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Runs the command `counterpart clock` against a server, with a token. Returns its output.
#[track_caller]
fn clock(server: &Server, token: &str, arguments: &[&str]) -> String {
    let url = format!("http://{}", server.address);
    server.database.run_with(&[("COUNTERPART_TOKEN", token), ("COUNTERPART_URL", &url)], &[&["clock"], arguments].concat())
}

/// Whether the test harness uses a standby. If so, the harness starts two servers on each database, but a sandbox can have only one server.
fn has_standby() -> bool {
    std::env::var_os("COUNTERPART_TEST_STANDBY").is_some()
}

#[test]
fn a_database_becomes_a_sandbox_when_it_is_made_and_stays_one() {
    let ordinary = Database::undistributed();
    for refused in [ordinary.fails(&["migrate", "--sandbox"]), ordinary.fails(&[SERVE, &["--sandbox"]].concat())] {
        assert!(refused.contains("it is no sandbox, and a database becomes one only when it is made"), "{refused}");
    }
    ordinary.run(&["store", "create", "--id", "desk", "--name", "Desk"]);
    let sandbox = empty();
    for _ in 0..2 {
        sandbox.run(&["migrate", "--sandbox"]);
    }
    sandbox.run(&["migrate", "up"]);
    let refused = sandbox.fails(SERVE);
    assert!(refused.contains("it is a sandbox") && refused.contains("serve it with `counterpart serve --sandbox`"), "{refused}");
    let all = sandbox.run(&["migrate", "status"]).lines().count().to_string();
    let refused = sandbox.fails(&["migrate", "down", "--yes", "--steps", &all]);
    assert!(refused.contains("the database is a sandbox for good"), "{refused}");
    let refused = sandbox.fails_with(&[("COUNTERPART_API_KEY", "cp_none")], &["mcp"]);
    assert!(refused.contains("whose clock is its server's; name that server with `--url`"), "{refused}");
}

#[test]
fn the_sandbox_clock_has_one_server_survives_a_kill_and_applies_to_commands() {
    if has_standby() {
        return;
    }
    if has_pooler() {
        // The server of a sandbox holds a lock in its PostgreSQL session. A connection pooler shares a session between clients, so the
        // server refuses to start behind a pooler.
        let refused = sandbox_database().fails_with(SANDBOX, SERVE);
        assert!(refused.contains("a connection pooler is in front of PostgreSQL"), "{refused}");
        return;
    }
    let (server, token) = sandbox();
    let refused = server.database.fails_with(SANDBOX, SERVE);
    assert!(refused.contains("another server serves this sandbox"), "{refused}");
    let shown: Value = serde_json::from_str(&clock(&server, &token, &["--json"])).expect("JSON");
    assert_eq!(shown["sandbox"], true);
    let to = plus_days(&shown["now"], 200);
    let advanced: Value = serde_json::from_str(&clock(&server, &token, &["advance", "--to", &to, "--json"])).expect("JSON");
    assert_eq!(advanced["now"], json!(to), "{advanced}");
    assert!(clock(&server, &token, &[]).contains("(of a sandbox)"));
    let later = plus_days(&advanced["now"], 1);
    let got = clock(&server, &token, &["show"]);
    assert!(got.as_str() >= to.as_str(), "{got}");
    let got = clock(&server, &token, &["advance", "--to", &later]);
    assert!(got.starts_with(&format!("the clock shows {later}; since ")), "{got}");
    // The server and a command that runs at the same time both use the sandbox's clock.
    let key: Value = serde_json::from_str(&server.database.run(&[
        "key",
        "create",
        "--store",
        "desk",
        "--name",
        "Sync",
        "--scopes",
        "tickets:read",
        "--json",
    ]))
    .expect("JSON");
    assert!(millis(&key["createdAt"]) >= millis(&json!(later)) && key["status"] == "active", "{key}");
    let database = server.kill();
    let server = loop {
        // PostgreSQL notices only after a delay that the killed server's connection is closed. Until then, the killed server's lock on the
        // sandbox remains.
        if database.postgres.is_none() || !is_locked(&database) {
            break Server::start_with(database, SANDBOX);
        }
    };
    let api = Api { address: server.address.clone(), key: None, store: "desk".to_owned() };
    let shown = api.raw("GET", "/settings/v1/clock").header("authorization", &format!("Bearer {token}")).send().ok();
    assert!(millis(&shown["now"]) >= millis(&json!(later)), "{shown}");
    assert_eq!(shown.get("advancingTo"), None);
    let on = plus_days(&shown["now"], 1);
    let advance = api.raw("POST", "/settings/v1/clock/advance").header("authorization", &format!("Bearer {token}"));
    assert_eq!(advance.json(json!({ "to": on })).send().ok()["now"], json!(on));
    let keyed = Api { key: key["secret"].as_str().map(str::to_owned), ..api };
    keyed.post("/tickets/list", json!({})).send().ok();
}

fn is_locked(database: &Database) -> bool {
    let locks = "select 'locked' from pg_locks where locktype = 'advisory' and \
                 database = (select oid from pg_database where datname = current_database())";
    !database.ask(locks).is_empty()
}

#[test]
fn a_server_without_a_sandbox_shows_real_time() {
    let fixture = SettingsFixture::open();
    let shown = fixture.get("/clock").send().ok();
    assert_eq!(shown["sandbox"], false);
    let to = plus_days(&shown["now"], 1);
    let refused = fixture.post("/clock/advance", json!({ "to": to })).fails(409);
    assert!(refused.contains("its database is no sandbox"), "{refused}");
    let refused = fixture.post("/clock/advance", json!({})).fails(400);
    assert!(refused.contains("body.to"), "{refused}");
    let refused = fixture.call_as("unknown", "POST", "/clock/advance").json(json!({ "to": to })).send().fails(401);
    assert!(refused.contains("the session or token is unknown"), "{refused}");
    let refused = fixture.shop.server.database.fails_with(
        &[("COUNTERPART_TOKEN", "unknown")],
        &["clock", "advance", "--to", &to, "--url", &format!("http://{}", fixture.shop.server.address)],
    );
    assert!(refused.contains("answered 401: the session or token is unknown"), "{refused}");
    let refused = fixture.shop.server.database.fails(&["clock"]);
    assert!(refused.contains("set COUNTERPART_TOKEN"), "{refused}");
    let refused = fixture.shop.server.database.fails(&["clock", "advance", "--to", "tomorrow"]);
    assert!(refused.contains("must be an instant with a time zone"), "{refused}");
}
