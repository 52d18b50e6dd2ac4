//! Replay test: `counterpart contract replay` sends the same corpus of requests to a server of revision A and to a server of revision B,
//! which have the same data. Every difference between the responses must be documented in the comparison of the OpenAPI documents or in
//! `openapi/a-to-b.notes.json`. Each documented difference must occur, unless [`differences_not_in_responses`] lists it.
//!
//! - The requests are the lines of `corpus.jsonl`, the examples of the OpenAPI documents, and requests of [`request_generator`], which
//!   every operation must refuse. [`renamed_property_values`] compares values that the revisions name differently. At the end the test
//!   damages the databases, and one request to each operation must fail.
//! - The stores are imported once, by the newer revision. Each server gets a copy of the database file, so ids and API keys are the same on
//!   both.
//! - The environment variables `COUNTERPART_REV_A` and `COUNTERPART_REV_B` name a binary of each revision. `tests/all.sh` builds the
//!   binaries and runs this test.

/// Whether this test was built for revision A. The modules shared with `tests/api` need the constant. The replay does not depend on it.
const REV_A: bool = cfg!(feature = "rev-a");

#[path = "../api/client.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod client;
#[path = "../api/contract.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod contract;
#[path = "../api/fixture/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod fixture;
#[path = "../api/harness.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod harness;

mod differences_not_in_responses;
mod markdown_code_blocks;
mod readme_commands;
mod renamed_property_values;
mod request_generator;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use counterpart::{cli::demo_data, domain::time::Timestamp, http::openapi::examples::RECORDED_AT};
use serde::Deserialize;
use serde_json::{Value, json};

use client::Api;
use fixture::{at, line};
use harness::{ALL_SCOPES, Database, Server};

/// The id of the store to which the test sends the example requests of the OpenAPI documents.
const DEMO: &str = "demo";

/// Returns the text of a file of the repository.
fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths of the binaries of the older and of the newer revision.
fn binaries() -> [String; 2] {
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    ["COUNTERPART_REV_A", "COUNTERPART_REV_B"].map(|name| std::env::var(name).unwrap_or_else(|_| panic!("{name} names no binary")))
}

/// Returns the ids of the stores with their import lines: a store for read requests, one for writes, one for sends, and one for the
/// examples of the documents.
fn stores() -> Vec<(&'static str, Vec<Value>)> {
    let mut lines = fixture::one();
    // Adds two records that the API tests do not need. Both belong to an account whose channel only the newer revision has.
    let field = json!({
        "id": "f-drunk", "name": "Lullaby", "displayType": "text", "dataType": "string", "sortOrder": 99, "isRequired": false,
        "active": true, "accountIds": ["acc-drunk"], "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00"),
    });
    let note =
        json!({"id": "n-drunk", "conversationId": "conv-drunk", "text": "la", "createdBy": fixture::BO, "sentAt": at("03-10T09:00")});
    lines.extend([line("ticketField", field), line("comment", note)]);
    let recorded_at = Timestamp::from_millis(RECORDED_AT);
    let demo = demo_data::lines(recorded_at).map(|line| serde_json::from_str(&line).expect("a line of the demo is JSON")).collect();
    vec![("reads", lines.clone()), ("writes", lines), ("shop", fixture::channels()), (DEMO, demo)]
}

/// A server of each revision, on a copy of the same database. `keys` has the API keys by name. A key that is named like a store has every
/// scope in that store.
struct ReplayServers {
    servers: [Server; 2],
    keys: BTreeMap<String, String>,
    folder: PathBuf,
}

/// The JSON report of `contract replay`.
#[derive(Deserialize)]
struct Report {
    requests: usize,
    unexplained: Vec<Value>,
    seen: BTreeSet<String>,
    unseen: BTreeSet<String>,
}

impl ReplayServers {
    fn start() -> Self {
        let [older, newer] = binaries();
        let database = Database::of(&newer);
        database.run(&["migrate", "up"]);
        let mut keys = BTreeMap::new();
        for (store, lines) in stores() {
            database.store(store, &lines);
            keys.insert(store.to_owned(), database.key(store, &ALL_SCOPES).secret);
            for noun in ["labels", "teams"] {
                keys.insert(format!("{store}-{noun}"), database.key(store, &[&format!("{noun}:read")]).secret);
            }
        }
        let servers = [&older, &newer].map(|binary| Server::start(database.copied(binary)));
        let folder = std::env::temp_dir().join(format!("counterpart-replay-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the corpus");
        Self { servers, keys, folder }
    }

    fn api(&self, side: usize, key: &str) -> Api {
        Api { address: self.servers[side].address.clone(), key: self.keys.get(key).cloned(), store: key.to_owned() }
    }

    fn replay(&self, corpus: &str, options: &[&str]) -> Report {
        let (lines, keys) = (self.folder.join("corpus.jsonl"), self.folder.join("keys.json"));
        let pairs: BTreeMap<_, _> = self.keys.iter().map(|(name, key)| (name, json!({ "old": key, "new": key }))).collect();
        fs::write(&lines, corpus).expect("the corpus can be written");
        fs::write(&keys, json!(pairs).to_string()).expect("the keys can be written");
        let [old, new] = self.servers.each_ref().map(|server| format!("http://{}", server.address));
        let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/a-to-b.notes.json");
        let output = Command::new(env!("CARGO_BIN_EXE_counterpart"))
            .args(["contract", "replay", "--format", "json", "--repeat", "--old", &old, "--new", &new])
            .args(["--old-key", &self.keys[DEMO], "--new-key", &self.keys[DEMO], "--keys"])
            .args([&keys, Path::new("--notes"), &notes, Path::new("--corpus"), &lines])
            .args(options)
            .output()
            .expect("counterpart starts");
        assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("a report")
    }
}

impl Drop for ReplayServers {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
#[ignore = "needs a binary of each revision: tests/all.sh runs it"]
fn every_difference_is_documented_and_every_documented_difference_occurs() {
    let sides = ReplayServers::start();
    let corpus = read("tests/contract_replay/corpus.jsonl") + &request_generator::refused();
    let mut found = sides.replay(&corpus, &["--examples"]);
    let renamed = renamed_property_values::faults(&sides);

    // Damages the databases last, since this cannot be undone.
    for server in &sides.servers {
        // The requests must get an internal error. For a missing table, the servers would respond with 503. So the table is replaced by a
        // view. Queries of the view fail with an error that the servers do not expect.
        server.database.sql("ALTER TABLE api_keys RENAME TO lost");
        server.database.sql("CREATE VIEW api_keys AS SELECT * FROM lost WHERE json_extract('{', '$.a') = 1");
    }
    let broken = sides.replay(&request_generator::failing(), &[]);
    found.requests += broken.requests;
    found.unexplained.extend(broken.unexplained);
    found.seen.extend(broken.seen);
    found.unseen.retain(|key| !found.seen.contains(key));

    let (missing, stale) = differences_not_in_responses::apply(&found.seen, &found.unseen);
    let all = found.seen.len() + found.unseen.len();
    let exempt = found.unseen.len() - missing.len();
    println!("{} requests to both revisions; documented differences {all}, seen {}, exempt {exempt}", found.requests, found.seen.len());
    assert!(found.unexplained.is_empty(), "differences that are not documented: {:#}", json!(found.unexplained));
    assert!(renamed.is_empty(), "values under another name that differ: {renamed:#?}");
    assert!(missing.is_empty(), "documented and not seen: {missing:#?}");
    assert!(
        stale.is_empty(),
        "exempt and seen all the same, or not documented; take these out of differences_not_in_responses.jsonl: {stale:#?}"
    );
}
