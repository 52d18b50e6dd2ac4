//! Tests of the schema migrations: if several processes start at the same time, one of them runs the migrations. Migrations can be rolled
//! back and applied again.

use std::process::{Command, Stdio};

use crate::harness::{BINARY, Database};

/// Rolls back all migrations; returns their number.
fn taken_back(database: &Database) -> usize {
    let steps = database.run(&["migrate", "status"]).lines().count();
    database.run(&["migrate", "down", "--yes", "--steps", &steps.to_string()]);
    let status = database.run(&["migrate", "status"]);
    assert!(steps > 0 && status.lines().all(|line| line.ends_with("pending")), "{status}");
    steps
}

#[test]
fn processes_that_start_at_once_migrate_once() {
    let database = Database::undistributed();
    let steps = taken_back(&database);
    let start = |_| {
        Command::new(BINARY)
            .args(["migrate", "up"])
            .env("DATABASE_URL", &database.url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts")
    };
    let started: Vec<_> = (0..8).map(start).collect();
    for process in started {
        let output = process.wait_with_output().expect("the process ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let status = database.run(&["migrate", "status"]);
    assert!(status.lines().count() == steps && status.lines().all(|line| line.ends_with("applied")), "{status}");
}

#[test]
fn migrations_can_be_reverted_and_applied_again() {
    let database = Database::undistributed();
    database.run(&["store", "create", "--id", "gone", "--name", "Gone"]);
    taken_back(&database);
    database.run(&["migrate", "up"]);
    assert_eq!(database.run(&["store", "list"]), "");
}
