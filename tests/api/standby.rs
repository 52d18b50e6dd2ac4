//! Read replica (`--read-url`): failures of the standby. `tests/standby.sh` runs the whole suite with reads from a standby.

use serde_json::json;

use crate::{
    fixture,
    harness::{ALL_SCOPES, Database, Server},
};

/// An address without a server.
const UNREACHABLE_URL: &str = "postgres://postgres@127.0.0.1:1/nothing";

#[test]
fn sqlite_refuses_a_standby_and_postgres_works_without_an_unusable_one() {
    let database = Database::with(&[("one", fixture::one())]);
    if database.url.starts_with("sqlite:") {
        let complaint = database.fails(&["serve", "--listen", "127.0.0.1:0", "--read-url", UNREACHABLE_URL]);
        assert!(complaint.contains("`--read-url` needs a PostgreSQL database"), "{complaint}");
        return;
    }
    // The primary database is not a standby, even if `--read-url` names it.
    for url in [UNREACHABLE_URL.to_owned(), database.url.clone()] {
        let server = Server::start_with(Database::with(&[("one", fixture::one())]), &[("COUNTERPART_READ_URL", &url)]);
        let api = server.api("one", &ALL_SCOPES);
        api.post("/tickets/list", json!({})).send().ok();
    }
}
