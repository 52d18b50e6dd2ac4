//! Names the properties of an OpenAPI document by path. `Ticket.assigneeUserId` is a property of a component schema. `getTicket 200.data`
//! is a property of the schema of a response.

use std::collections::BTreeSet;

use serde_json::Value;

fn target<'a>(document: &'a Value, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
    let reference = schema.get("$ref")?.as_str()?;
    Some((reference.rsplit('/').next()?, document.pointer(&reference[1..])?))
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|several| schema.get(several)?.as_array()).flatten()
}

/// Whether a value may match a schema, which is one of those in a list `allOf`, `anyOf` or `oneOf`. Compares only the JSON type. A schema
/// with none of the types below fits every value.
fn fits(document: &Value, schema: &Value, value: &Value) -> bool {
    let schema = target(document, schema).map_or(schema, |(_, schema)| schema);
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        _ => true,
    }
}

/// Calls `saw` with the path of every property of the schema that occurs in the value, at any depth. `place` is the path of the value
/// itself.
pub fn found(document: &Value, schema: &Value, value: &Value, place: &str, saw: &mut dyn FnMut(&str)) {
    if let Some((name, schema)) = target(document, schema) {
        return found(document, schema, value, name, saw);
    }
    for branch in branches(schema).filter(|branch| fits(document, branch, value)) {
        found(document, branch, value, place, saw);
    }
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                if let Some(property) = schema["properties"].get(name) {
                    let place = format!("{place}.{name}");
                    saw(&place);
                    found(document, property, inner, &place, saw);
                } else if schema["additionalProperties"].is_object() {
                    found(document, &schema["additionalProperties"], inner, &format!("{place}.*"), saw);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| found(document, &schema["items"], item, place, saw)),
        _ => {}
    }
}

/// Adds to `places` the paths of all properties of a schema, at any depth: those that [`found`] would report for a value with every
/// property. `visited` has the component schemas that were already added.
#[allow(dead_code, reason = "not every test binary lists the properties")]
pub fn all(document: &Value, schema: &Value, place: &str, visited: &mut BTreeSet<String>, places: &mut BTreeSet<String>) {
    if let Some((name, schema)) = target(document, schema) {
        if visited.insert(name.to_owned()) {
            all(document, schema, name, visited, places);
        }
        return;
    }
    for branch in branches(schema) {
        all(document, branch, place, visited, places);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        all(document, property, &place, visited, places);
        places.insert(place);
    }
    if schema["additionalProperties"].is_object() {
        all(document, &schema["additionalProperties"], &format!("{place}.*"), visited, places);
    }
    if schema["items"].is_object() {
        all(document, &schema["items"], place, visited, places);
    }
}
