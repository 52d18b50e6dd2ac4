//! Checks requests against the OpenAPI document: a request that succeeds must be valid according to the document.

use serde_json::{Value, json};
use url::form_urlencoded;

use super::{Contract, Operation, coverage_recorder, faults, property_paths};
use crate::client::Call;

/// Parses the text of a parameter or header as a JSON value of the schema's type. Returns `None` if the text is not a value of this type.
pub fn typed(schema: &Value, text: &str) -> Option<Value> {
    match schema["type"].as_str() {
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().map(Value::from),
        Some("boolean") => text.parse::<bool>().ok().map(Value::from),
        _ => Some(json!(text)),
    }
}

/// Parses all values of one parameter with [`typed`]. An array may be sent as several parameters, or as one text with commas. Returns
/// `None` if a value cannot be parsed, or if a parameter that is not an array does not occur exactly once.
fn value(schema: &Value, sent: &[String]) -> Option<Value> {
    if schema["type"] == "array" {
        let items = sent.iter().flat_map(|text| text.split(',')).filter(|text| !text.is_empty() || sent.len() > 1);
        return items.map(|text| typed(&schema["items"], text)).collect::<Option<Vec<_>>>().map(Value::from);
    }
    match sent {
        [one] => typed(schema, one),
        _ => None,
    }
}

/// Replaces numbers such as `1.0` by integers. Otherwise the validator, which follows JSON Schema draft 4, would refuse `1.0` for an
/// integer.
fn whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(members) => members.values_mut().for_each(whole),
        Value::Number(number) => {
            if let Some(integer) = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15) {
                *value = json!(integer as i64);
            }
        }
        _ => {}
    }
}

impl Contract {
    /// Checks the parameters and the body of a request against the document, and records which of them occurred. Returns the errors.
    pub fn request_faults(&self, operation: &Operation, call: &Call) -> Vec<String> {
        let mut found = self.parameter_faults(operation, call);
        let Some(body) = operation.node.get("requestBody") else { return found };
        let schema = &body["content"]["application/json"]["schema"];
        match call.body.as_deref().filter(|bytes| !bytes.is_empty()) {
            None if body["required"] == true => found.push("the body is missing".to_owned()),
            None => {}
            Some(bytes) => match serde_json::from_slice::<Value>(bytes) {
                Err(error) => found.push(format!("the body is not JSON: {error}")),
                Ok(mut sent) => {
                    whole(&mut sent);
                    let validator = self.validator(&format!("{} body", operation.id), false, || schema.clone());
                    found.extend(faults(&validator, &sent).into_iter().map(|fault| format!("body{fault}")));
                    property_paths::found(&self.document, schema, &sent, &format!("{} body", operation.id), &mut |place| {
                        coverage_recorder::saw(self.name, &format!("sent {place}"));
                    });
                }
            },
        }
        found
    }

    fn parameter_faults(&self, operation: &Operation, call: &Call) -> Vec<String> {
        let query = call.query.join("&");
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let mut found = Vec::new();
        for parameter in operation.node["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default();
            let sent: Vec<String> = match parameter["in"].as_str() {
                Some("query") => pairs.iter().filter(|(sent, _)| sent == name).map(|(_, value)| value.clone()).collect(),
                _ => call.headers.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone()).collect(),
            };
            if sent.is_empty() {
                if parameter["required"] == true {
                    found.push(format!("{name} is missing"));
                }
                continue;
            }
            let Some(value) = value(&parameter["schema"], &sent) else {
                found.push(format!("{name} is of another type: {sent:?}"));
                continue;
            };
            let validator = self.validator(&format!("{} parameter {name}", operation.id), false, || parameter["schema"].clone());
            found.extend(faults(&validator, &value).into_iter().map(|fault| format!("{name}: {fault}")));
            coverage_recorder::saw(self.name, &format!("parameter {} {name}", operation.id));
        }
        found
    }
}
