//! One corpus of requests, sent to a server of each revision over the same store. Every difference between the answers must be documented
//! in the contract's difference (`openapi/a-to-b.json`) or in `features.md`, and each documented difference must occur.
//!
//! - [`corpus`] reads the requests of `corpus.jsonl` and of the documents' examples, and generates requests to every operation;
//!   [`compare`] finds the places where two answers differ; [`renamed`] pairs values that the revisions name differently; [`told`] has
//!   the documented differences.
//! - Each answer is first checked against its own revision's document. It may be an internal failure only if the servers have been
//!   broken.
//! - The store is imported once, by the newer revision, and its file is copied: ids and keys are the same on both sides. Values that
//!   depend only on time and chance (new ids, the time of arrival) are compared by their form.
//! - Needs two binaries, `COUNTERPART_REV_A` and `COUNTERPART_REV_B`: `tests/all.sh` builds them and runs this.

/// Nothing here depends on the revision for which this test is built.
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

mod compare;
mod corpus;
mod renamed;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use counterpart::{cli::demo_data, domain::time::Timestamp, http::document::examples::RECORDED_AT};
use serde_json::{Value, json};

use client::{Answer, Api, Call};
use contract::Contract;
use corpus::{Request, Who};
use fixture::{at, line};
use harness::{ALL_SCOPES, Database, Server};
use told::Told;

/// One side: a server, and the callers with their keys.
struct Side {
    server: Server,
    document: Contract,
    keys: BTreeMap<&'static str, BTreeMap<Who, String>>,
}

/// The stores and their content: one to read, one to write to, one to send from, and one for the examples.
fn stores() -> Vec<(&'static str, Vec<Value>)> {
    let mut lines = fixture::one();
    // Records that the API suite does not need: the newer revision's channel wherever a channel can be.
    let field = json!({
        "id": "f-drunk", "name": "Lullaby", "displayType": "text", "dataType": "string", "sortOrder": 99, "isRequired": false,
        "active": true, "accountIds": ["acc-drunk"], "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00"),
    });
    let note =
        json!({"id": "n-drunk", "conversationId": "conv-drunk", "text": "la", "createdBy": fixture::BO, "sentAt": at("03-10T09:00")});
    lines.extend([line("ticketField", field), line("comment", note)]);
    let recorded_at = Timestamp::from_millis(RECORDED_AT);
    let demo = demo_data::lines(recorded_at).map(|line| serde_json::from_str(&line).expect("a line of the demo is JSON")).collect();
    vec![("reads", lines.clone()), ("writes", lines), ("shop", fixture::channels()), (corpus::DEMO, demo)]
}

impl Side {
    fn api(&self, store: &str, who: Who) -> Api {
        let (store, keys) = self.keys.get_key_value(store).unwrap_or_else(|| panic!("there is no store {store}"));
        Api { address: self.server.address.clone(), key: keys.get(&who).cloned(), store: (*store).to_owned() }
    }

    fn call(&self, request: &Request) -> Call {
        let mut call = self.api(&request.store, request.who).call(&request.method, &request.path);
        if !request.query.is_empty() {
            call = call.raw_query(&request.query);
        }
        for (name, value) in &request.headers {
            call = call.header(name, value);
        }
        match &request.body {
            Some(body) => call.bytes(body.clone()),
            None => call,
        }
    }

    /// The side's answer, checked against its own document.
    fn answer(&self, call: &Call) -> Answer {
        let answer = call.attempt().unwrap_or_else(|error| panic!("{} {}: no answer: {error}", call.method, call.path));
        self.document.exchanged(call, &answer);
        answer
    }
}

/// The answer of each side to its call.
fn asked(sides: &[Side; 2], calls: &[Call; 2]) -> [Answer; 2] {
    [0, 1].map(|side| sides[side].answer(&calls[side]))
}

fn both() -> [Side; 2] {
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    let binary = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} names no binary"));
    let (older, newer) = (binary("COUNTERPART_REV_A"), binary("COUNTERPART_REV_B"));
    let database = Database::of(&newer);
    database.run(&["migrate", "up"]);
    let mut keys: BTreeMap<&'static str, BTreeMap<Who, String>> = BTreeMap::new();
    for (store, lines) in stores() {
        database.store(store, &lines);
        for (who, scopes) in [(Who::Owner, &ALL_SCOPES[..]), (Who::Labels, &["labels:read"]), (Who::Teams, &["teams:read"])] {
            keys.entry(store).or_default().insert(who, database.key(store, scopes).secret);
        }
    }
    let copies = [&older, &newer].map(|binary| database.copied(binary));
    let mut names = ["rev-a", "rev-b"].into_iter();
    copies.map(|copy| {
        let name = names.next().unwrap_or_default();
        let document = Contract::under("/v1", name, told::parsed(&format!("openapi/{name}.json")));
        Side { server: Server::start(copy), document, keys: keys.clone() }
    })
}

/// The results of a run.
#[derive(Default)]
struct Found {
    requests: usize,
    unexplained: Vec<String>,
    /// Documented differences that occurred.
    exercised: BTreeSet<String>,
}

impl Found {
    /// Compares two answers to a request, and looks up the documentation of each difference.
    fn take(&mut self, told: &Told, request: &Request, answers: &[Answer; 2]) {
        self.requests += 1;
        let mut faults = Vec::new();
        if answers.iter().any(|answer| (answer.status >= 500) != request.broken) {
            faults.push("fails, or does not, against what was asked".to_owned());
        }
        let differences = compare::answers(answers);
        for difference in differences.iter().filter(|difference| !request.because.contains_key(&difference.place)) {
            match told.explains(request, answers, difference) {
                Ok(keys) => self.exercised.extend(keys),
                Err(reason) => faults.push(format!("{difference}: {reason}")),
            }
        }
        for (place, cause) in &request.because {
            let there = differences.iter().filter(|difference| difference.place == *place);
            let pairs: Vec<_> = there.map(|difference| difference.sides.clone()).collect();
            match told.known(request, cause) {
                _ if pairs != cause.pairs => {
                    faults.push(format!("differs at {place} by {}, not by {}", json!(pairs), json!(cause.pairs)));
                }
                Ok(keys) => self.exercised.extend(keys),
                Err(reason) => faults.push(format!("{place}: {reason}")),
            }
        }
        faults.extend(renamed::faults(request, answers));
        self.unexplained.extend(faults.iter().map(|fault| format!("{}\n    {fault}", request.described(answers))));
        self.exercised.extend(told.values_shown(request, answers));
    }
}

#[test]
#[ignore = "needs a binary of each revision: tests/all.sh runs it"]
fn what_differs_is_told_and_what_is_told_differs() {
    let told = Told::read();
    let sides = both();
    let mut found = Found::default();
    for request in corpus::written().into_iter().chain(corpus::examples(&told)).chain(corpus::made(&told)) {
        let calls = [0, 1].map(|side| sides[side].call(&request));
        let mut answers = asked(&sides, &calls);
        if request.store == corpus::DEMO {
            assert_eq!(answers[1].status, 200, "an example is refused: {}", request.described(&answers));
        }
        found.take(&told, &if request.then.is_some() { request.behind() } else { request.clone() }, &answers);
        // Further pages: each side continues with its own cursor.
        for _ in 0..request.pages {
            let cursors = answers.each_ref().map(|answer| answer.header("x-pagination-next-cursor").map(str::to_owned));
            let [Some(older), Some(newer)] = cursors else { break };
            let behind = match &request.then {
                Some(query) => Request { query: query.clone(), ..request.clone() },
                None => request.behind(),
            };
            answers = asked(&sides, &[(0, older), (1, newer)].map(|(side, cursor)| sides[side].call(&behind).query("cursor", cursor)));
            found.take(&told, &behind, &answers);
        }
        // A write that succeeded on both sides is sent again with the same body, and with another body, which is refused.
        if request.has_key() && answers.iter().all(|answer| answer.status == 200) {
            for again in [calls.clone(), calls.map(Call::reworded)] {
                found.take(&told, &request.behind(), &asked(&sides, &again));
            }
        }
    }
    // An internal failure comes last, since it cannot be undone.
    for side in &sides {
        // A missing table would be answered with 503. This statement fails for a reason that the servers do not know.
        let fails = if side.server.database.postgres.is_some() { "1 / 0 = 0" } else { "json_extract('{', '$.a') = 1" };
        side.server.database.sql("ALTER TABLE api_keys RENAME TO lost");
        side.server.database.sql(&format!("CREATE VIEW api_keys AS SELECT * FROM lost WHERE {fails}"));
    }
    for request in corpus::hopeless(&told) {
        found.take(&told, &request, &asked(&sides, &[0, 1].map(|side| sides[side].call(&request))));
    }

    let (exempt, stale) = told.exempt(&found.exercised);
    let missing: Vec<_> = told.all().into_iter().filter(|key| !found.exercised.contains(key) && !exempt.contains(key)).collect();
    println!(
        "{} requests to both revisions; told differences {}, come by {}, exempt {}",
        found.requests,
        told.all().len(),
        found.exercised.len(),
        exempt.len()
    );
    found.unexplained.dedup();
    assert!(found.unexplained.is_empty(), "{} differences that nothing tells:\n{}", found.unexplained.len(), found.unexplained.join("\n"));
    assert!(missing.is_empty(), "told and never come by: {missing:#?}");
    assert!(stale.is_empty(), "exempt and come by all the same, or not told; take these out of exempt.jsonl: {stale:#?}");
}
