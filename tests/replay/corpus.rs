//! The requests: the lines of `corpus.jsonl`, the examples of both documents (sent to the demo store), and generated requests to every
//! operation that both documents have.
//!
//! A line is `{"store", "call", "body"?, "pages"?, "then"?, "because"?}`. `call` is METHOD and path with its query. `pages` is the number
//! of further pages to request; `then` is their query if it differs from the first. `because` explains the places where the answers
//! differ: `{PLACE: {"by": [KEY], "pairs": [[A, B]]}}`. KEY is the cause: a row of `features.md`, or rule and place of a change. The
//! pairs are all values of both sides at this place; null means no value. A status is followed by the reason of a failure, or by the ids
//! of a success.

use std::{collections::BTreeMap, sync::OnceLock};

use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use crate::{
    client::Answer,
    told::{self, Told},
};

/// The store for the examples.
pub const DEMO: &str = "demo";

/// The key that a request is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A key with every scope.
    Owner,
    /// Keys with one scope.
    Labels,
    Teams,
    Nobody,
}

/// Why the answers differ at a place, and the values of both sides there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub by: Vec<String>,
    pub pairs: Vec<[Value; 2]>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub store: String,
    pub who: Who,
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub pages: usize,
    /// The query of the second and later pages, if it differs from that of the first; then `because` explains the differences on these
    /// pages.
    pub then: Option<String>,
    pub because: BTreeMap<String, Cause>,
    /// Whether the servers have been broken, so that they must fail.
    pub broken: bool,
}

impl Request {
    fn to(operation: &str) -> Self {
        let (method, path) = operation.split_once(' ').unwrap_or_else(|| panic!("not METHOD PATH: {operation}"));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Self {
            store: "reads".to_owned(),
            who: Who::Owner,
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: vec![],
            body: None,
            pages: 0,
            then: None,
            because: BTreeMap::new(),
            broken: false,
        }
    }

    fn json(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        self.body = Some(body.into());
        self
    }

    /// The operation as the documents write it.
    pub fn operation(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn has_key(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == "idempotency-key")
    }

    /// The request for what follows (a further page, a repetition): no answer is expected to differ there.
    pub fn behind(&self) -> Self {
        Self { because: BTreeMap::new(), ..self.clone() }
    }

    pub fn described(&self, answers: &[Answer; 2]) -> String {
        let shown = |answer: &Answer| format!("{} {}", answer.status, answer.text.chars().take(300).collect::<String>());
        let body = self.body.as_deref().map(|body| String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned()).unwrap_or_default();
        let [older, newer] = answers.each_ref().map(shown);
        format!("{} {} {} {:?} {body}\n    A {older}\n    B {newer}", self.store, self.operation(), self.query, self.who)
    }
}

/// The requests of `corpus.jsonl`.
pub fn written() -> Vec<Request> {
    let text = told::read("tests/replay/corpus.jsonl");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("corpus.jsonl, line {}: {error}", number + 1));
        let text = |name: &str| line[name].as_str().unwrap_or_else(|| panic!("corpus.jsonl, line {}: no {name}", number + 1));
        let mut request = Request::to(text("call"));
        request.store = text("store").to_owned();
        request.pages = line["pages"].as_u64().unwrap_or_default() as usize;
        request.then = line["then"].as_str().map(str::to_owned);
        if let Some(because) = line.get("because") {
            request.because =
                serde_json::from_value(because.clone()).unwrap_or_else(|error| panic!("corpus.jsonl, line {}: {error}", number + 1));
        }
        if let Some(body) = line.get("body") {
            // A write has an idempotency key, so that it can be sent again.
            if request.store != "reads" {
                request.headers.push(("idempotency-key".to_owned(), format!("line-{number}")));
            }
            request = request.json(body.to_string());
        }
        request
    };
    lines.enumerate().map(read).collect()
}

/// The example requests of both documents, by operation. If both documents show the same example, it is one request.
pub fn examples(told: &Told) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    // Operations that only the newer revision has come last, when no later request depends on their effects.
    for (operation, node) in told.shared_as_described().chain(told.newer_only()) {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for parameter in node["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default();
            match &parameter["example"] {
                Value::Null => {}
                Value::String(text) => _ = query.append_pair(name, text),
                other => _ = query.append_pair(name, &other.to_string()),
            }
        }
        let mut request = Request { store: DEMO.to_owned(), query: query.finish(), ..Request::to(operation) };
        if let Some(body) = node.pointer("/requestBody/content/application~1json/example") {
            if node.to_string().contains("Idempotency-Key") {
                request.headers.push(("idempotency-key".to_owned(), format!("example-{}", requests.len())));
            }
            request = request.json(body.to_string());
        }
        let known = requests
            .iter()
            .any(|known| (known.operation(), &known.query, &known.body) == (request.operation(), &request.query, &request.body));
        if !known {
            requests.push(request);
        }
    }
    requests
}

/// One request to each operation that both documents have, for servers that have been broken.
pub fn hopeless(told: &Told) -> Vec<Request> {
    told.shared().map(|(operation, _)| Request { broken: true, ..Request::to(operation) }).collect()
}

/// Requests to each operation that every operation must refuse.
pub fn made(told: &Told) -> Vec<Request> {
    let mut requests = Vec::new();
    for (operation, node) in told.shared() {
        let plain = Request::to(operation);
        requests.push(Request { who: Who::Nobody, ..plain.clone() });
        let other = if operation == "GET /labels" { Who::Teams } else { Who::Labels };
        requests.push(Request { who: other, ..plain.clone() });
        if node.get("requestBody").is_none() {
            requests.push(Request { query: "pageSize=1&expand=nope".to_owned(), ..plain });
            continue;
        }
        requests.push(plain.clone().json("{"));
        requests.push(plain.clone().json(vec![b' '; (1 << 20) + 1]));
        requests.push(Request { headers: vec![("content-type".to_owned(), "text/plain".to_owned())], body: Some(b"{}".to_vec()), ..plain });
    }
    requests
}

/// The start of the run, in Unix milliseconds.
pub fn started() -> i64 {
    static STARTED: OnceLock<i64> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "a test has no injected clock; the servers under test run on the real one")]
    *STARTED.get_or_init(|| chrono::Utc::now().timestamp_millis())
}
