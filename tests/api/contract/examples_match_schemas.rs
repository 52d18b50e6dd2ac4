//! Checks the examples of an OpenAPI document against the schemas that they belong to.

use serde_json::Value;

use super::{Contract, Operation, faults};

/// Whether a parameter needs an example. A query parameter needs one if its schema permits any text, since the schema then does not show
/// what to send. A cursor has no example, since it is valid only on the server that created it.
fn needs_example(parameter: &Value) -> bool {
    let schema = &parameter["schema"];
    parameter["in"] == "query" && schema["type"] == "string" && schema.get("enum").is_none() && parameter["name"] != "cursor"
}

impl Contract {
    /// Returns the errors in an operation's examples. Each body and response must have an example, and so must each parameter for which
    /// [`needs_example`] is true.
    #[allow(dead_code, reason = "not every test binary checks examples")]
    pub fn example_faults(&self, operation: &Operation) -> Vec<String> {
        let (id, node) = (&operation.id, &operation.node);
        let mut found = Vec::new();
        let mut hold = |place: String, holder: &Value, answer: bool, needed: bool| match holder.get("example") {
            Some(example) => {
                let validator = self.validator(&place, answer, || holder["schema"].clone());
                found.extend(faults(&validator, example).into_iter().map(|fault| format!("{place}{fault}")));
            }
            None if needed => found.push(format!("{place} has no example")),
            None => {}
        };
        for parameter in node["parameters"].as_array().into_iter().flatten() {
            let place = format!("{id} parameter {}", parameter["name"].as_str().unwrap_or_default());
            hold(place, parameter, false, needs_example(parameter));
        }
        if let Some(body) = node.get("requestBody") {
            hold(format!("{id} body"), &body["content"]["application/json"], false, true);
        }
        for (status, answer) in node["responses"].as_object().into_iter().flatten() {
            hold(format!("{id} {status}"), &answer["content"]["application/json"], true, true);
        }
        found
    }
}
