//! The examples of the documents: a request to every operation, and the answer of the demo store to it.
//!
//! The requests are written by hand, in the order in which they are sent (`requests.json` here, in `settings`, and in a revision that has
//! separate operations). The answers are recorded (`answers.json`), and so are the events that a subscriber then receives
//! (`events.json`). The test of `cli::demo` sends the requests to a fresh demo store, and fails if the store answers anything else. So
//! every example can be tried on `counterpart demo`, which has the same ids. The times in its data are relative to its start.
//!
//! Called by [`super::contract`], [`crate::http::settings`] and [`crate::http::events::document`]. A cursor has no example: it is sealed
//! for one store of one server, so a documentation page that fills in the examples would have its request refused.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    domain::{rules::ReceivedAt, time::Timestamp},
    revision,
};

/// The instant at which the demo store of the recorded answers was filled, in Unix milliseconds: 2026-06-01T08:00:00Z.
pub const RECORDED_AT: i64 = 1_780_300_800_000;

/// The demo store's id.
pub const STORE: &str = "demo";

const REQUEST_ID: &str = "019e8232-6000-7000-8000-000000000000";

/// The examples of one document.
#[derive(Debug, Clone)]
pub struct Examples {
    pub requests: Vec<ExampleRequest>,
    /// `data` of the answer to each request, by operation.
    pub answers: BTreeMap<String, Value>,
    received_at: ReceivedAt,
}

/// A request to one operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExampleRequest {
    pub operation: String,
    #[serde(default)]
    pub query: Map<String, Value>,
    pub body: Option<Value>,
}

/// The examples of the contract.
pub fn contract() -> Examples {
    Examples::read(&[include_str!("requests.json"), revision::REQUESTS], revision::ANSWERS, revision::RULES.received_at)
}

/// An event of each kind that the compiled revision causes, and the test event of an endpoint.
pub fn events() -> BTreeMap<String, Value> {
    serde_json::from_str(revision::EVENTS).unwrap_or_default()
}

impl Examples {
    /// If an operation has two requests, the later one is used.
    pub fn read(requests: &[&str], answers: &str, received_at: ReceivedAt) -> Self {
        let mut all: Vec<ExampleRequest> = Vec::new();
        // These files are part of the program: the tests find one that cannot be parsed, since an operation then lacks its example.
        for request in requests.iter().flat_map(|text| serde_json::from_str::<Vec<ExampleRequest>>(text).unwrap_or_default()) {
            match all.iter_mut().find(|known| known.operation == request.operation) {
                Some(known) => *known = request,
                None => all.push(request),
            }
        }
        Self { requests: all, answers: serde_json::from_str(answers).unwrap_or_default(), received_at }
    }

    /// Puts the examples into a document that is otherwise complete.
    pub fn put_into(&self, document: &mut Value) {
        let paths = document.get_mut("paths").and_then(Value::as_object_mut);
        for operation in paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let Some(request) = self.requests.iter().find(|request| request.operation == id) else { continue };
            let answer = self.answers.get(id).map(|data| self.envelope(data));
            for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(value) = parameter["name"].as_str().and_then(|name| request.query.get(name)) {
                    parameter["example"] = value.clone();
                }
            }
            for (pointer, example) in [("/requestBody/content", request.body.clone()), ("/responses/200/content", answer)] {
                let media = operation.pointer_mut(pointer).and_then(|content| content.get_mut(crate::http::machinery::envelope::JSON));
                if let (Some(media), Some(example)) = (media, example) {
                    media["example"] = example;
                }
            }
        }
    }

    fn envelope(&self, data: &Value) -> Value {
        let received_at = match self.received_at {
            ReceivedAt::Timestamp => Timestamp::from_millis(RECORDED_AT).to_string(),
            ReceivedAt::UnixMillis => RECORDED_AT.to_string(),
        };
        json!({ "requestId": REQUEST_ID, "requestReceivedAt": received_at, "storeId": STORE, "data": data })
    }
}
