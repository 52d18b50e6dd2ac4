//! The examples in the OpenAPI documents: for every operation a request, the response of the demo store (a store with sample data, which
//! `counterpart demo` serves), and an error of each status that the operation documents.
//!
//! Two kinds of files are written by hand: `example_requests.json`, with the requests in the order in which they are sent, and
//! `refused_requests.json`, with requests that the server refuses. They are in this folder, in `src/http/settings`, and in the folder of a
//! contract revision (`src/revision`) that has operations of its own. Other files are recorded: the responses (`example_responses.json`,
//! `example_errors.json`), and the events that the requests cause (`example_events.json`).
//!
//! The tests of `cli::demo` send the requests to a fresh demo store, and fail if the responses differ from the recorded ones. So every
//! example can be tried with `counterpart demo`, whose records have the same ids. The times of these records are relative to the time at
//! which the demo store is filled, which is [`RECORDED_AT`] in the tests.
//!
//! Called by [`super::contract_document`], [`crate::http::settings`] and [`crate::http::events::openapi_document`]. Cursors have no
//! examples: a cursor is valid only in one store of one server, so a request with an example cursor would be refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::components::operations_mut;
use crate::{
    domain::{revision_rules::ReceivedAt, time::Timestamp},
    http::machinery::envelope_schema::JSON,
    revision,
};

/// The instant at which the tests fill the demo store, and the time of arrival in the example responses, in Unix milliseconds:
/// 2026-06-01T08:00:00Z.
pub const RECORDED_AT: i64 = 1_780_300_800_000;

/// The demo store's id.
pub const STORE: &str = "demo";

const REQUEST_ID: &str = "019e8232-6000-7000-8000-000000000000";

/// The examples of one OpenAPI document.
#[derive(Debug, Clone)]
pub struct Examples {
    pub requests: Vec<ExampleRequest>,
    pub refusals: Vec<RefusedRequest>,
    /// The property `data` of the recorded responses, by operation.
    pub answers: BTreeMap<String, Value>,
    pub errors: Errors,
    received_at: ReceivedAt,
}

/// The content of the JSON files with the examples of one document.
#[derive(Debug, Clone, Copy)]
pub struct ExampleFiles<'f> {
    pub requests: &'f [&'f str],
    pub refusals: &'f [&'f str],
    pub answers: &'f str,
    pub errors: &'f str,
}

/// An example request to one operation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExampleRequest {
    pub operation: String,
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Examples of parameters that the recorded request leaves out: with these parameters its response would be empty.
    #[serde(default)]
    pub also: Map<String, Value>,
    pub body: Option<Value>,
}

/// A request that is refused. Properties that it leaves out are the same as in the operation's [`ExampleRequest`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedRequest {
    pub operation: String,
    pub status: u16,
    /// The description of the error status in the OpenAPI document; absent if the status has the same description as in other operations.
    pub reason: Option<String>,
    pub query: Option<Map<String, Value>>,
    pub body: Option<Value>,
    /// Requests that cause the state in which this request is refused. They are sent before this request.
    #[serde(default)]
    pub before: Vec<ExampleRequest>,
    /// Requests that undo the effects of `before`. They are sent after this request.
    #[serde(default)]
    pub after: Vec<ExampleRequest>,
}

/// The error in the response to a refused request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExampleError {
    pub message: String,
    /// The id of the caller's store; empty if the store is not known.
    pub store_id: String,
}

/// Errors by operation and status. An error under [`EVERY_OPERATION`] applies to operations without an error of their own for the status.
pub type Errors = BTreeMap<String, BTreeMap<u16, ExampleError>>;

pub const EVERY_OPERATION: &str = "*";

/// Returns the examples of the contract.
pub fn contract() -> Examples {
    let files = ExampleFiles {
        requests: &[include_str!("example_requests.json"), revision::REQUESTS],
        refusals: &[include_str!("refused_requests.json"), revision::REFUSALS],
        answers: revision::ANSWERS,
        errors: revision::ERRORS,
    };
    Examples::read(files, revision::RULES.received_at)
}

/// Returns the recorded example events by kind: one for each kind of event that can occur in the revision for which the program is
/// compiled, and a test event.
pub fn events() -> BTreeMap<String, Value> {
    parsed(revision::EVENTS)
}

/// Parses the text of a file with examples; the file is compiled into the program. A file that cannot be parsed counts as empty. The tests
/// notice such a file, since the operations in it lack their examples.
fn parsed<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

impl Examples {
    /// Parses the files with examples. If two files have a request for the same operation, the request in the later file is used. So a
    /// contract revision can replace a request that both revisions share.
    pub fn read(files: ExampleFiles, received_at: ReceivedAt) -> Self {
        let mut all: Vec<ExampleRequest> = Vec::new();
        for request in files.requests.iter().flat_map(|text| parsed::<Vec<ExampleRequest>>(text)) {
            match all.iter_mut().find(|known| known.operation == request.operation) {
                Some(known) => *known = request,
                None => all.push(request),
            }
        }
        let refusals = files.refusals.iter().flat_map(|text| parsed::<Vec<RefusedRequest>>(text)).collect();
        Self { requests: all, refusals, answers: parsed(files.answers), errors: parsed(files.errors), received_at }
    }

    /// Adds the examples to the operations of a document. Also replaces the description of each error status for which a refused request
    /// has a [`RefusedRequest::reason`]. Called before [`share`](super::components::share) replaces equal responses by references, since
    /// afterwards a response no longer belongs to one operation.
    pub fn put_into(&self, document: &mut Value) {
        for operation in operations_mut(document) {
            let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
            let Some(request) = self.requests.iter().find(|request| request.operation == id) else { continue };
            let answer = self.answers.get(&id).map(|data| self.envelope(STORE, "data", data.clone()));
            for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(value) = parameter["name"].as_str().and_then(|name| request.query.get(name).or_else(|| request.also.get(name)))
                {
                    parameter["example"] = value.clone();
                }
            }
            for (pointer, example) in [("/requestBody/content", request.body.clone()), ("/responses/200/content", answer)] {
                if let Some(holder) = operation.pointer_mut(pointer) {
                    put(holder, example);
                }
            }
            for (status, response) in operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten() {
                let Ok(status) = status.parse() else { continue };
                let mut refusals = self.refusals.iter().filter(|refusal| refusal.operation == id && refusal.status == status);
                if let Some(reason) = refusals.find_map(|refusal| refusal.reason.as_deref()) {
                    response["description"] = reason.into();
                }
                if let Some(content) = response.get_mut("content") {
                    put(content, self.error(&id, status));
                }
            }
        }
    }

    fn error(&self, operation: &str, status: u16) -> Option<Value> {
        let ExampleError { message, store_id } =
            [operation, EVERY_OPERATION].into_iter().find_map(|operation| self.errors.get(operation)?.get(&status))?;
        Some(self.envelope(store_id, "error", json!({ "message": message, "statusCode": status })))
    }

    fn envelope(&self, store_id: &str, name: &str, content: Value) -> Value {
        let received_at = match self.received_at {
            ReceivedAt::Timestamp => Timestamp::from_millis(RECORDED_AT).to_string(),
            ReceivedAt::UnixMillis => RECORDED_AT.to_string(),
        };
        json!({ "requestId": REQUEST_ID, "requestReceivedAt": received_at, "storeId": store_id, name: content })
    }
}

fn put(content: &mut Value, example: Option<Value>) {
    if let (Some(media), Some(example)) = (content.get_mut(JSON), example) {
        media["example"] = example;
    }
}
