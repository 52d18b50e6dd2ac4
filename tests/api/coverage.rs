//! Coverage of the published OpenAPI documents: the share of their parts that occurred while the tests ran. `tests/all.sh` runs the tests
//! on SQLite and on PostgreSQL, for each revision of the API. It sets the environment variable `COUNTERPART_SEEN` to the path of a folder,
//! in which the tests record the parts that occurred (`contract/coverage_recorder.rs`). Afterwards `tests/all.sh` runs the test of this
//! file, which compares the recorded parts with the parts of the documents. The kinds of parts are:
//!
//! - Operations: an operation occurred if the server answered a valid request with a documented success. Every operation must occur. In the
//!   document of the events, the kinds of events count as operations: a kind occurred if a test checked an event of this kind.
//! - Answers: the documented responses, each a pair of an operation and a status code.
//! - Properties: the properties of response schemas. A property of a component schema counts once, even if several operations use the
//!   schema. Two properties of the same name in different schemas count as two.
//! - Inputs: the parameters and the properties of request bodies. An input occurred if a request that succeeded contained it.
//! - Headers: the headers of responses and of webhook deliveries. Headers that did not occur are reported, but do not fail the test: the
//!   server sends some headers only if two requests conflict at the same moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde_json::Value;

use crate::{
    contract::{Contract, REVISION, event_contract, property_paths},
    openapi_documents::kept,
};

/// The minimum coverage of responses, properties and inputs, in per cent.
const MIN_COVERAGE: usize = 95;

/// The parts of a document, grouped by kind ("operations", "answers", …), in the form in which the tests record them.
type Promised = BTreeMap<&'static str, BTreeSet<String>>;

fn documented_parts(contract: &Contract) -> Promised {
    let mut all = Promised::new();
    let (mut answered, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for operation in contract.operations() {
        let (id, document) = (&operation.id, &contract.document);
        all.entry("operations").or_default().insert(format!("success {id}"));
        for (code, response) in operation.node["responses"].as_object().into_iter().flatten() {
            all.entry("answers").or_default().insert(format!("answer {id} {code}"));
            let schema = &response["content"]["application/json"]["schema"];
            let mut places = BTreeSet::new();
            property_paths::all(document, schema, &format!("{id} {code}"), &mut answered, &mut places);
            all.entry("properties").or_default().extend(places.into_iter().map(|place| format!("property {place}")));
            for name in response["headers"].as_object().into_iter().flatten().map(|(name, _)| name.to_ascii_lowercase()) {
                all.entry("headers").or_default().insert(format!("header {id} {code} {name}"));
            }
        }
        let inputs = all.entry("inputs").or_default();
        let schema = &operation.node["requestBody"]["content"]["application/json"]["schema"];
        let mut places = BTreeSet::new();
        property_paths::all(document, schema, &format!("{id} body"), &mut taken, &mut places);
        inputs.extend(places.into_iter().map(|place| format!("sent {place}")));
        for name in operation.node["parameters"].as_array().into_iter().flatten().filter_map(|parameter| parameter["name"].as_str()) {
            inputs.insert(format!("parameter {id} {name}"));
        }
    }
    all
}

/// Returns the parts of the OpenAPI document of the events. Leaves out the schemas of records inside events: the document of the API has
/// the same schemas, and their properties are counted there.
fn promised_events(contract: &Contract) -> Promised {
    let mut all = Promised::new();
    let resources = contract.document["components"]["schemas"].as_object().into_iter().flatten();
    let mut visited: BTreeSet<String> = resources.map(|(name, _)| name.clone()).collect();
    for kind in event_contract::document()["webhooks"].as_object().into_iter().flatten().map(|(kind, _)| kind) {
        all.entry("operations").or_default().insert(format!("event {kind}"));
        let mut places = BTreeSet::new();
        if let Some(schema) = event_contract::payload(kind) {
            property_paths::all(event_contract::document(), schema, kind, &mut visited, &mut places);
        }
        all.entry("properties").or_default().extend(places.into_iter().map(|place| format!("property {place}")));
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            all.entry("headers").or_default().insert(format!("parameter {kind} {name}"));
        }
    }
    all
}

/// Returns the lines of all files with the extension `kind` in the folder that `COUNTERPART_SEEN` names.
fn lines(kind: &str) -> Vec<String> {
    let folder = std::env::var_os("COUNTERPART_SEEN").expect("COUNTERPART_SEEN names the folder of a run");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", PathBuf::from(&folder).display()));
    let files = files.map(|file| file.expect("a folder that can be read").path());
    let texts = files.filter(|path| path.extension().is_some_and(|found| found == kind)).map(std::fs::read_to_string);
    texts.flat_map(|text| text.expect("text").lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
#[ignore = "adds up a whole run: tests/all.sh runs it"]
fn the_test_run_covers_the_api_documents() {
    let read = |name: &str| -> Value { serde_json::from_str(&kept(name)).expect("a committed document is JSON") };
    let (contract, settings) = (Contract::new(read(&format!("{REVISION}.json"))), Contract::of_settings(read("settings.json")));
    let events = format!("events-{REVISION}");
    let documents =
        [(REVISION, documented_parts(&contract)), ("settings", documented_parts(&settings)), (&events, promised_events(&contract))];
    let (seen, counted) = (lines("seen"), lines("requests"));
    let mut short = Vec::new();
    for (name, promised) in documents {
        let seen: BTreeSet<&str> = seen.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect();
        let mut table = format!("{name:12}");
        for (what, keys) in &promised {
            let missing: Vec<_> = keys.iter().filter(|key| !seen.contains(key.as_str())).collect();
            let least = match *what {
                "operations" => 100,
                "headers" => 0,
                _ => MIN_COVERAGE,
            };
            let found = keys.len() - missing.len();
            table += &format!("  {what} {found}/{}", keys.len());
            if found * 100 < keys.len() * least {
                short.push(format!("{name}: {found} of {} {what}; missing: {missing:#?}", keys.len()));
            } else if !missing.is_empty() {
                eprintln!("{name}: {what} not seen: {missing:?}");
            }
        }
        println!("{table}  valid requests {}", counted.iter().filter(|line| *line == name).count());
    }
    assert!(short.is_empty(), "{}", short.join("\n"));
}
