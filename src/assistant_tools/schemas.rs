//! JSON Schemas of MCP tools, made from the OpenAPI document of the API.
//!
//! Clients and models read these schemas, and many of them understand only a part of JSON Schema. So the schemas have no references
//! (`$ref`) and no alternatives (`anyOf`, `oneOf`). The long descriptions of the OpenAPI document are left out; `definition` gives each
//! argument a short one.

use serde_json::{Map, Value, json};

use super::api_operation_calls;
use crate::http::openapi::openapi_3_1::modern;

/// The largest output schema, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 4096;

/// The largest depth of an output schema. No schema of the API is deeper, so an output schema is cut only if it is longer than
/// [`MAX_OUTPUT_BYTES`].
const MAX_OUTPUT_DEPTH: usize = 16;

/// Follows a `$ref`; returns any other value as it is.
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

/// Returns the JSON schema of a request body or a response.
pub fn content<'a>(document: &'a Value, holder: &'a Value) -> &'a Value {
    resolved(document, &resolved(document, holder)["content"]["application/json"]["schema"])
}

/// Converts a schema of the OpenAPI document to JSON Schema 2020-12, without references, alternatives and descriptions.
pub fn plain(document: &Value, schema: &Value) -> Value {
    let mut schema = inlined(document, schema, &mut Vec::new());
    modern(&mut schema);
    simplified(schema)
}

/// The keywords of a schema that only describe it for people.
const PROSE: [&str; 5] = ["description", "title", "example", "examples", "default"];

fn inlined<'a>(document: &'a Value, schema: &'a Value, within: &mut Vec<&'a str>) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        if within.contains(&reference) {
            // Inside a schema that refers to itself, the reference becomes a schema that permits any value.
            return json!({});
        }
        within.push(reference);
        let whole = inlined(document, resolved(document, schema), within);
        within.pop();
        return whole;
    }
    let mut plain = Map::new();
    for (keyword, value) in object {
        if PROSE.contains(&keyword.as_str()) || keyword.starts_with("x-") {
            continue;
        }
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let properties: Map<_, _> =
                    properties.iter().map(|(name, schema)| (name.clone(), inlined(document, schema, within))).collect();
                plain.insert(keyword.clone(), properties.into());
            }
            // Every part of `allOf` applies, so the parts are merged into one schema.
            ("allOf", Value::Array(parts)) => {
                for part in parts {
                    plain.extend(inlined(document, part, within).as_object().cloned().unwrap_or_default());
                }
            }
            ("anyOf" | "oneOf", Value::Array(choices)) => {
                let choices: Vec<Value> = choices.iter().map(|choice| inlined(document, choice, within)).collect();
                plain.insert(keyword.clone(), choices.into());
            }
            ("items" | "additionalProperties", Value::Object(_)) => {
                plain.insert(keyword.clone(), inlined(document, value, within));
            }
            _ => {
                plain.insert(keyword.clone(), value.clone());
            }
        }
    }
    plain.into()
}

/// Replaces alternatives (`anyOf`, `oneOf`) by the list of their types.
fn simplified(schema: Value) -> Value {
    let Value::Object(mut object) = schema else { return schema };
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = object.remove(keyword) else { continue };
        let mut types: Vec<Value> = Vec::new();
        for choice in &choices {
            let of_choice = choice["type"].as_array().cloned().unwrap_or_else(|| vec![choice["type"].clone()]);
            types.extend(of_choice.into_iter().filter(|kind| !types.contains(kind)).collect::<Vec<_>>());
        }
        match <[Value; 1]>::try_from(types) {
            Ok([only]) => object.insert("type".to_owned(), only),
            Err(types) => object.insert("type".to_owned(), types.into()),
        };
        // The properties of an alternative are kept, for example if the value is either an id or an object.
        for choice in choices.iter().filter_map(Value::as_object).filter(|choice| choice.contains_key("properties")) {
            object.extend(choice.iter().filter(|(keyword, _)| *keyword != "type").map(|(keyword, value)| (keyword.clone(), value.clone())));
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(|property| *property = simplified(property.take()));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner) {
            *inner = simplified(inner.take());
        }
    }
    object.into()
}

/// Returns the output schema of a tool: the structure of `schema`, which is the full schema of the tool's result. If the output schema
/// would be longer than [`MAX_OUTPUT_BYTES`], its deepest levels are left out.
pub fn output(schema: Value) -> Value {
    let mut depth = MAX_OUTPUT_DEPTH;
    loop {
        let cut = structure(&schema, depth);
        if size(&cut) <= MAX_OUTPUT_BYTES || depth == 0 {
            return cut;
        }
        depth -= 1;
    }
}

/// Returns the structure of a schema down to a depth: types, properties, array items, required properties and permitted values.
fn structure(schema: &Value, depth: usize) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            ("type" | "const" | "enum" | "required", _) => value.clone(),
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, schema)| (name.clone(), structure(schema, depth.saturating_sub(1))));
                Value::Object(properties.collect())
            }
            ("items", _) => structure(value, depth.saturating_sub(1)),
            _ => continue,
        };
        if depth > 0 || keyword == "type" {
            kept.insert(keyword.clone(), value);
        }
    }
    kept.into()
}

/// Returns the length of a value as JSON text, in bytes.
pub fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Returns the schema of the result of a tool that lists records.
pub fn items(of: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "items": { "type": "array", "items": of }, "nextCursor": { "type": "string" }, "note": { "type": "string" } },
        "required": ["items"],
    })
}

/// Returns the schema of the result of a tool that calls one of two list operations. The schema of a record has the properties of both
/// operations' records; a property is required if both operations require it.
pub fn either(ids: [&str; 2]) -> Value {
    let [one, other] = ids.map(|id| api_operation_calls::find(id).map(|operation| operation.data["items"].clone()).unwrap_or_default());
    let names = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    let mut properties = other["properties"].as_object().cloned().unwrap_or_default();
    for (name, schema) in one["properties"].as_object().cloned().unwrap_or_default() {
        let differs = properties.get(&name).is_some_and(|known| known != &schema);
        // If the schemas of a property differ but have the same type, only the type is kept.
        let schema = if differs && properties[&name]["type"] == schema["type"] { json!({ "type": schema["type"] }) } else { schema };
        properties.insert(name, schema);
    }
    let required: Vec<Value> = names(&one).into_iter().filter(|name| names(&other).contains(name)).collect();
    items(&json!({ "type": "object", "properties": properties, "required": required }))
}

/// Returns the schema of a property of the body, by JSON pointer. The pointer passes through arrays to the properties of their items.
pub fn property<'a>(body: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut schema = body;
    for name in pointer.split('/').skip(1) {
        schema = schema["items"].get("properties").map_or_else(|| &schema["properties"][name], |properties| &properties[name]);
    }
    (!schema.is_null()).then_some(schema)
}

/// Returns whether the property at a JSON pointer is required by the object that has it.
pub fn is_required(body: &Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return true };
    property(body, parent).and_then(|parent| parent["required"].as_array()).is_some_and(|names| names.iter().any(|it| it == name))
}
