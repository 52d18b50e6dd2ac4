//! Failures of our own: every operation tells them as it documents them, and keeps to itself what went wrong.

use serde_json::json;

use crate::{client::Answer, contract, settings::Plane};

#[track_caller]
fn is_internal(answer: &Answer) {
    let message = answer.fails(500);
    for inner in ["table", "sql", "SELECT", "relation", "api_key", "grants"] {
        assert!(!message.contains(inner), "{}", answer.described());
    }
}

#[test]
fn a_database_that_is_damaged_is_told_by_every_operation() {
    let plane = Plane::open();
    let (operations, settings) = (contract::contract(&plane.desk.api).operations(), contract::settings(&plane.api).operations());
    let damage = |from: &str, to: &str| plane.desk.server.database.sql(&format!("ALTER TABLE {from} RENAME TO {to}"));
    for table in ["api_keys", "grants"] {
        damage(table, &format!("lost_{table}"));
    }
    for operation in operations {
        is_internal(&plane.desk.api.call(&operation.method, &operation.path).exchange());
    }
    for operation in settings {
        let call = plane.call(&operation.method, &operation.path);
        // A stranger is looked up by what it sends.
        is_internal(&if operation.id == "openSession" { call.json(json!({"link": "cpl_x"})) } else { call }.exchange());
    }
    // The process lives, and goes on once all is in its place.
    for table in ["api_keys", "grants"] {
        damage(&format!("lost_{table}"), table);
    }
    plane.desk.api.get("/labels").send().ok();
    plane.get("/keys").send().ok();
}
