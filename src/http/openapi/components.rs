//! Shared components of the OpenAPI documents: headers, parameters and responses that are the same in several operations are written once,
//! under `components`, and the operations refer to them.

use std::{cmp::Reverse, collections::HashMap};

use poem::http::StatusCode;
use serde_json::{Map, Value, json};

/// Moves into `components` the headers, parameters and error responses that several operations repeat.
pub fn share(document: &mut Value) {
    hoist(document, "headers", headers, |name, _| pascal(name.strip_prefix("x-").unwrap_or(name)));
    hoist(document, "parameters", parameters, parameter_name);
    hoist(document, "responses", failures, |status, _| {
        let reason = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok()?.canonical_reason());
        pascal(reason.unwrap_or(status))
    });
}

/// A part of an operation (header, parameter or response), which may be replaced by a reference to a component. The string is the name of
/// the header or parameter, or the status of the response.
type ComponentPlace<'d> = (String, &'d mut Value);

/// Takes the values that `places` returns (such as headers). Each value that occurs several times in the document becomes a component in
/// `section`, and its occurrences become references to this component. If different values have the same name, the value that occurs most
/// often becomes the component, and the other values stay in their operations.
fn hoist(
    document: &mut Value,
    section: &str,
    places: for<'d> fn(&'d mut Value) -> Vec<ComponentPlace<'d>>,
    name: fn(&str, &Value) -> String,
) {
    let mut uses: Vec<(String, Value, usize)> = Vec::new();
    for (key, content) in places(document) {
        let name = name(&key, content);
        match uses.iter_mut().find(|(known, other, _)| *known == name && other == content) {
            Some((.., count)) => *count += 1,
            None => uses.push((name, content.clone(), 1)),
        }
    }
    uses.retain(|(.., count)| *count > 1);
    uses.sort_by_key(|(.., count)| Reverse(*count));
    let mut components: HashMap<String, Value> = HashMap::new();
    for (name, content, _) in uses {
        components.entry(name).or_insert(content);
    }
    for (key, content) in places(document) {
        let name = name(&key, content);
        if components.get(&name) == Some(content) {
            *content = json!({ "$ref": format!("#/components/{section}/{name}") });
        }
    }
    if !components.is_empty() {
        document["components"][section] = Value::Object(components.into_iter().collect());
    }
}

/// Returns the operations of a document.
pub fn operations_mut(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut).flat_map(Map::values_mut)
}

fn responses(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    operations_mut(document).filter_map(|operation| operation.get_mut("responses")?.as_object_mut()).flatten()
}

fn headers(document: &mut Value) -> Vec<ComponentPlace<'_>> {
    let headers = responses(document).filter_map(|(_, response)| response.get_mut("headers")?.as_object_mut()).flatten();
    headers.map(|(name, header)| (name.clone(), header)).collect()
}

fn parameters(document: &mut Value) -> Vec<ComponentPlace<'_>> {
    let parameters = operations_mut(document).filter_map(|operation| operation.get_mut("parameters")?.as_array_mut()).flatten();
    parameters.map(|parameter| (parameter["name"].as_str().unwrap_or_default().to_owned(), parameter)).collect()
}

/// Returns the error responses that may become components. Responses with the status 400, 403 or 404 are left out, since their examples
/// differ from operation to operation.
fn failures(document: &mut Value) -> Vec<ComponentPlace<'_>> {
    let alike = responses(document).filter(|(status, _)| !["200", "400", "403", "404"].contains(&status.as_str()));
    alike.map(|(status, response)| (status.clone(), response)).collect()
}

/// Returns the name of a parameter's component: `Cursor` for `cursor`. A list parameter whose items have a separate schema gets the name of
/// that schema, such as `TicketExpand`.
fn parameter_name(name: &str, parameter: &Value) -> String {
    let values = parameter.pointer("/schema/items/$ref").and_then(Value::as_str);
    values.and_then(|target| target.rsplit('/').next()).map_or_else(|| pascal(name), str::to_owned)
}

/// Converts a name to Pascal case: `RetryAfter` for `Retry-After`, `TooManyRequests` for `Too Many Requests`.
fn pascal(name: &str) -> String {
    name.split(['-', ' '])
        .map(|word| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_several_operations_repeat_become_components() {
        let cursor = json!({ "name": "cursor", "in": "query", "schema": { "type": "string" } });
        let response = |says: &str, required: bool| json!({ "description": says, "headers": { "x-request-id": { "required": true }, "Retry-After": { "required": required } } });
        let operation = |own: &str| {
            json!({
                "parameters": [cursor, { "name": "id", "in": "query", "description": own }],
                "responses": { "200": { "description": own }, "400": { "description": own }, "429": response("wait", true), "503": response("later", true), "409": response(own, false) },
            })
        };
        let mut document = json!({ "paths": { "/a": { "get": operation("a") }, "/b": { "get": operation("b"), "post": operation("c") } } });
        share(&mut document);
        let operation = &document["paths"]["/b"]["post"];
        assert_eq!(
            operation["parameters"],
            json!([{ "$ref": "#/components/parameters/Cursor" }, { "name": "id", "in": "query", "description": "c" }])
        );
        assert_eq!(operation["responses"]["400"], json!({ "description": "c" }));
        assert_eq!(operation["responses"]["429"], json!({ "$ref": "#/components/responses/TooManyRequests" }));
        // The header `Retry-After` occurs several times as optional and several times as required. Both definitions have the same name, so
        // only one can become a component: the required header, which occurs more often. The optional header stays in its response.
        assert_eq!(operation["responses"]["409"]["headers"]["Retry-After"], json!({ "required": false }));
        assert_eq!(document["components"]["parameters"], json!({ "Cursor": cursor }));
        assert_eq!(
            document["components"]["responses"]["ServiceUnavailable"]["headers"]["Retry-After"],
            json!({ "$ref": "#/components/headers/RetryAfter" })
        );
        assert_eq!(document["components"]["headers"], json!({ "RequestId": { "required": true }, "RetryAfter": { "required": true } }));
    }
}
