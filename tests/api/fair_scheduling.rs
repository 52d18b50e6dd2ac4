//! Tests of fair scheduling between stores (the tenants of a server). Each store may run only a few unbounded SQL statements at a time, so
//! that statements of other stores still get a connection. A statement is unbounded if its conditions do not list the keys of rows: then it
//! may read any number of rows.
//!
//! The test runs on PostgreSQL only, where a table can be locked so that readers wait.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    fixture::STRANGER,
    harness::{ALL_SCOPES, Server},
};

/// Returns a filter of the ticket list that no ticket matches. A list request with this filter runs an unbounded statement.
fn filter() -> serde_json::Value {
    json!({"assigneeUserIds": [STRANGER]})
}

/// The number of concurrent list requests of store `one`: more than the six connections that the server has for unbounded statements.
const REQUESTS: usize = 8;

/// The number of list requests of one store that may run their statements at the same time.
const SHARE: usize = 3;

#[test]
fn list_requests_of_one_store_leave_connections_for_another_store() {
    let server = Server::with(&[("one", vec![]), ("two", vec![])]);
    if server.database.postgres.is_none() {
        return;
    }
    let (one, two) = (server.api("one", &ALL_SCOPES), server.api("two", &ALL_SCOPES));
    // Until a list request of a store has succeeded with a short response, the server handles the store's list requests one at a time,
    // because their responses may be long. So the test sends one request first.
    one.post("/tickets/list", filter()).send().ok();
    let mut psql = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", &server.database.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql is installed");
    let mut got = psql.stdin.take().expect("a pipe");
    got.write_all(b"begin; lock table tickets in access exclusive mode;\n\\echo locked\n").expect("psql reads its input");
    let mut line = String::new();
    BufReader::new(psql.stdout.take().expect("a pipe")).read_line(&mut line).expect("psql answers");
    assert_eq!(line, "locked\n");

    let asked: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let one = one.clone();
            thread::spawn(move || one.post("/tickets/list", filter()).send().ok())
        })
        .collect();
    let waiting = || {
        let sql = "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        server.database.ask(sql).len()
    };
    let until = Instant::now() + Duration::from_secs(20);
    while waiting() < SHARE {
        assert!(Instant::now() < until, "{} requests wait for the table", waiting());
        thread::sleep(Duration::from_millis(10));
    }
    // Waits long enough for more statements to reach the table lock, in case the server wrongly runs more than `SHARE` requests.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(waiting(), SHARE);
    two.get("/labels").query("searchTerm", "any").send().ok();
    assert!(asked.iter().all(|one| !one.is_finished()));

    drop(got);
    psql.wait().expect("psql ends");
    asked.into_iter().for_each(|one| _ = one.join().expect("an answer"));
}
