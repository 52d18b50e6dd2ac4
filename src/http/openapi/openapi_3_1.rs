//! Converts OpenAPI 3.0 to OpenAPI 3.1. The generator (poem-openapi) writes schemas in the dialect of OpenAPI 3.0; OpenAPI 3.1 uses JSON
//! Schema 2020-12 unchanged.

use serde_json::{Map, Value, json};

/// Converts a document of OpenAPI 3.0 to OpenAPI 3.1, in place.
pub fn convert(document: &mut Value) {
    document["openapi"] = "3.1.0".into();
    for schema in document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        modern(schema);
    }
    for pointer in ["/paths", "/components/parameters", "/components/headers", "/components/responses"] {
        document.pointer_mut(pointer).into_iter().for_each(holders);
    }
}

/// Converts the schemas of the parameters, headers and bodies in a part of a document.
fn holders(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "schema" => modern(member),
                    "example" | "examples" => {}
                    _ => holders(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(holders),
        _ => {}
    }
}

/// Converts a schema of OpenAPI 3.0 to JSON Schema 2020-12, which OpenAPI 3.1 uses unchanged.
pub fn modern(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(modern);
    }
    for inner in ["items", "additionalProperties", "not"] {
        object.get_mut(inner).into_iter().for_each(modern);
    }
    for several in ["allOf", "anyOf", "oneOf"] {
        object.get_mut(several).and_then(Value::as_array_mut).into_iter().flatten().for_each(modern);
    }
    // In JSON Schema 2020-12 an exclusive bound is a keyword with a number, not a flag next to `minimum` or `maximum`.
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if object.remove(exclusive) == Some(Value::Bool(true))
            && let Some(value) = object.remove(bound)
        {
            object.insert(exclusive.to_owned(), value);
        }
    }
    if let Some(example) = object.remove("example") {
        object.insert("examples".to_owned(), json!([example]));
    }
    // An `enum` of one value becomes `const`.
    if let Some([only]) = object.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        object.remove("enum");
        object.insert("const".to_owned(), only);
    }
    // In JSON Schema 2020-12 `$ref` may have other keywords next to it, so `allOf` is not needed.
    if let Some([reference]) = object.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
        && let Some(target) = reference.get("$ref").cloned()
    {
        object.remove("allOf");
        object.insert("$ref".to_owned(), target);
    }
    if object.remove("nullable") == Some(Value::Bool(true)) {
        or_null(object);
    }
}

/// Makes a schema accept null, which JSON Schema 2020-12 treats as a type.
fn or_null(object: &mut Map<String, Value>) {
    if let Some(values) = object.get_mut("enum").and_then(Value::as_array_mut)
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match object.get("type").cloned() {
        Some(one @ Value::String(_)) => _ = object.insert("type".to_owned(), json!([one, "null"])),
        Some(_) => {}
        None => {
            let inner = Value::Object(std::mem::take(object));
            object.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_of_openapi_3_0_are_converted_to_3_1() {
        let cases = [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (
                json!({"type": "string", "enum": ["a", "b"], "nullable": true}),
                json!({"type": ["string", "null"], "enum": ["a", "b", null]}),
            ),
            (json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true}), json!({"type": "integer", "exclusiveMinimum": 0})),
            (json!({"type": "integer", "maximum": 9, "exclusiveMaximum": false}), json!({"type": "integer", "maximum": 9})),
            (json!({"example": 1}), json!({"examples": [1]})),
            (
                json!({"allOf": [{"$ref": "#/x"}], "description": "It.", "nullable": true}),
                json!({"anyOf": [{"$ref": "#/x", "description": "It."}, {"type": "null"}]}),
            ),
            (
                json!({"properties": {"nullable": {"type": "array", "items": {"nullable": true, "type": "number"}}}}),
                json!({"properties": {"nullable": {"type": "array", "items": {"type": ["number", "null"]}}}}),
            ),
        ];
        for (mut former, expected) in cases {
            modern(&mut former);
            assert_eq!(former, expected);
        }
    }
}
