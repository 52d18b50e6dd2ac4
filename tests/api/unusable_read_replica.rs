//! Test of an unusable read replica (`--read-url`). `tests/two_processes_and_standby.sh` runs the whole suite with reads from a working
//! standby.

use serde_json::json;

use crate::{
    fixture,
    harness::{ALL_SCOPES, Database, Server},
};

/// The address of a PostgreSQL server that does not exist.
const UNREACHABLE_URL: &str = "postgres://postgres@127.0.0.1:1/nothing";

#[test]
fn sqlite_refuses_a_read_replica_and_postgres_falls_back_to_the_primary() {
    let database = Database::with(&[("one", fixture::one())]);
    if database.url.starts_with("sqlite:") {
        let complaint = database.fails(&["serve", "--listen", "127.0.0.1:0", "--read-url", UNREACHABLE_URL]);
        assert!(complaint.contains("`--read-url` needs a PostgreSQL database"), "{complaint}");
        return;
    }
    if database.is_distributed() {
        let complaint = database.fails(&["serve", "--listen", "127.0.0.1:0", "--read-url", UNREACHABLE_URL]);
        assert!(complaint.contains("`--read-url` needs one server"), "{complaint}");
        return;
    }
    // `--read-url` names an unreachable server, or the primary itself, which is not a standby. In both cases the server reads from the
    // primary.
    for url in [UNREACHABLE_URL.to_owned(), database.url.clone()] {
        let server = Server::start_with(Database::with(&[("one", fixture::one())]), &[("COUNTERPART_READ_URL", &url)]);
        let api = server.api("one", &ALL_SCOPES);
        api.post("/tickets/list", json!({})).send().ok();
    }
}
