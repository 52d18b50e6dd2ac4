//! Generates requests for the replay test, as JSON lines: requests to each operation that the OpenAPI documents of both revisions have.

use serde_json::{Value, json};

use super::read;

/// Returns the operations that both documents have, as `METHOD PATH`, and whether each takes a body.
fn shared() -> Vec<(String, bool)> {
    let [older, newer]: [Value; 2] =
        ["rev-a", "rev-b"].map(|name| serde_json::from_str(&read(&format!("openapi/{name}.json"))).expect("a document"));
    let mut all = Vec::new();
    for (path, item) in newer["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if older["paths"][path].get(method).is_some() {
                all.push((format!("{} {path}", method.to_uppercase()), operation.get("requestBody").is_some()));
            }
        }
    }
    all
}

fn lines(requests: impl IntoIterator<Item = Value>) -> String {
    requests.into_iter().map(|request| format!("{request}\n")).collect()
}

/// Returns requests that the server must refuse, to each operation: without an API key, with a key that lacks the scope, and with an
/// unusable query or body.
pub fn refused() -> String {
    lines(shared().into_iter().flat_map(|(call, has_body)| {
        let other = if call == "GET /labels" { "reads-teams" } else { "reads-labels" };
        let mut requests = vec![json!({ "call": call, "anonymous": true }), json!({ "call": call, "key": other })];
        if has_body {
            let send = |kind: &str, text: &str| json!({ "call": call, "key": "reads", "headers": { "content-type": kind }, "text": text });
            let long = " ".repeat((1 << 20) + 1);
            requests.extend([send("application/json", "{"), send("application/json", &long), send("text/plain", "{}")]);
        } else {
            requests.push(json!({ "call": format!("{call}?pageSize=1&expand=nope"), "key": "reads" }));
        }
        requests
    }))
}

/// Returns one request to each operation, for servers whose database is damaged. The servers must respond with an internal error.
pub fn failing() -> String {
    lines(shared().into_iter().map(|(call, _)| json!({ "call": call, "key": "reads", "fails": true })))
}
