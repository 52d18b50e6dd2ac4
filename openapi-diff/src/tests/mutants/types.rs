//! Tests the report for added, removed and changed types, and for the keywords that apply only to some types.

use serde_json::{Value, json};

use super::{
    super::{compared, line},
    B, C,
    Done::Put,
    U, hold,
    schema_composition::answering,
};

/// Returns a document whose response is an object with the given properties.
fn of(version: &str, properties: Value) -> Value {
    answering(version, json!({ "X": { "properties": properties } }))
}

/// Returns the changes between two schemas as lines. A line also has the keywords that its change covers: these keywords differ, but get no
/// change of their own.
fn described(version: &str, old: Value, new: Value) -> Vec<String> {
    let report = compared(&of(version, json!({ "a": old })), &of(version, json!({ "a": new })));
    super::super::invariants::hold_mirrored(&report, &compared(&of(version, json!({ "a": new })), &of(version, json!({ "a": old }))));
    let described = |change: &super::super::Change| format!("{} {:?}: {}", line(change), change.covers, change.says);
    let short = |line: String| line.replace("POST /x | response 200 /a | ", "").replace('"', "");
    report.changes.iter().map(described).map(short).collect()
}

#[test]
fn a_type_change_includes_the_changes_of_its_type_specific_keywords() {
    for (old, new, expected) in [
        (
            json!({ "type": "string", "minLength": 1, "format": "uuid", "enum": ["a"], "deprecated": true }),
            json!({ "type": "integer", "maximum": 5, "deprecated": true }),
            vec![
                "type-changed {enum, format, maximum, minLength}: is integer, was string; what `enum`, `format`, `maximum`, \
                 `minLength` say changes with it",
            ],
        ),
        (
            json!({ "type": "object", "properties": { "b": {} }, "required": ["b"], "default": {} }),
            json!({ "type": "array", "items": {} }),
            vec![
                "type-changed {items, properties, required}: is array, was object; what `items`, `properties`, `required` say changes \
                 with it",
                "default-removed {}: the default {} is gone",
            ],
        ),
        // The type `integer` is added to `string`. The keywords for strings are compared as usual. The keyword for numbers concerns only
        // the added type, so it is part of the change of the type.
        (
            json!({ "type": "string", "maxLength": 5 }),
            json!({ "type": ["string", "integer"], "maxLength": 6, "maximum": 3 }),
            vec![
                "limit-loosened maxLength {}: `maxLength` is 6, was 5",
                "type-widened {maximum}: may be integer or string, was string; what `maximum` says changes with it",
            ],
        ),
        (
            json!({ "type": "string", "format": "uuid", "enum": ["a"] }),
            json!({ "type": ["string", "null"], "format": "date", "enum": ["b"] }),
            vec![
                "enum-value-added b {}: may be b",
                "format-changed {}: has the format date, was uuid",
                "null-allowed {}: may be null",
                "enum-value-removed a {}: can no longer be a",
            ],
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": ["object", "string"], "required": ["b"], "properties": { "b": {} } }),
            vec![
                "type-widened {properties, required}: may be object or string, was string; what `properties`, `required` say changes with it",
            ],
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "integer", "minLength": 3 }),
            vec!["restated minLength {}: `minLength` is written differently and means the same"],
        ),
        (json!({}), json!({ "type": ["string", "null"] }), vec!["type-narrowed {}: must be string or null, was of any type"]),
        (json!({ "nullable": true }), json!({ "type": "string" }), vec!["type-narrowed {}: must be string, was of any type"]),
    ] {
        assert_eq!(described("3.1.0", old, new), expected);
    }
    let nullable = json!({ "type": "string", "nullable": true });
    assert_eq!(described("3.0.3", json!({}), nullable), ["type-narrowed {}: must be string or null, was of any type"]);
}

#[test]
fn schema_edits_with_equal_meaning_are_reported_as_restated() {
    let base = of(
        "3.1.0",
        json!({
            "count": { "type": "integer", "minimum": 1, "exclusiveMaximum": 10 },
            "share": { "type": "number", "minimum": 1 },
            "flag": { "type": "boolean" },
            "bytes": { "type": "string", "format": "byte" },
            "file": { "type": "string", "format": "binary" },
            "closed": { "type": "object", "additionalProperties": false },
            "never": false,
            "named": { "type": "object" },
        }),
    );
    let put = |what: &'static str, value: Value| Put(what, value);
    let mut mutants = Vec::new();
    macro_rules! restated {
        ($name:literal, $value:tt, $detail:literal) => {
            mutants.push((
                put(concat!("/components/schemas/X/properties/", $name), json!($value)),
                &[concat!("POST /x | response 200 /", $name, " | restated ", $detail)][..],
                C,
                C,
            ));
        };
    }
    restated!("count", { "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10 }, "minimum, exclusiveMinimum");
    restated!("count", { "type": "integer", "minimum": 1, "maximum": 9 }, "maximum, exclusiveMaximum");
    restated!("count", { "type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 1 }, "multipleOf");
    restated!("flag", { "type": "boolean", "enum": [true, false] }, "enum");
    restated!("bytes", { "type": "string", "contentEncoding": "base64" }, "format, contentEncoding");
    restated!("file", { "type": "string", "contentMediaType": "application/octet-stream" }, "format, contentMediaType");
    restated!("closed", { "type": "object", "additionalProperties": { "not": {} } }, "additionalProperties");
    restated!("never", { "not": {} }, "schema");
    restated!("named", { "type": "object", "propertyNames": true }, "propertyNames");
    mutants.push((
        put("/components/schemas/X/properties/share", json!({ "type": "number", "exclusiveMinimum": 0 })),
        &["POST /x | response 200 /share | limit-loosened minimum"],
        B,
        C,
    ));
    mutants.push((
        put("/components/schemas/X/properties/bytes", json!({ "type": "string", "contentEncoding": "base64url" })),
        &["POST /x | response 200 /bytes | format-removed", "POST /x | response 200 /bytes | content-encoding-added contentEncoding"],
        B,
        C,
    ));
    mutants.push((
        put("/components/schemas/X/properties/flag", json!({ "type": "boolean", "enum": [true] })),
        &["POST /x | response 200 /flag | enum-introduced"],
        C,
        B,
    ));
    mutants.push((
        put("/components/schemas/X/properties/share", json!({ "type": "number", "minimum": 1, "multipleOf": 0 })),
        &["POST /x | response 200 /share | constraint-perhaps-tightened multipleOf"],
        C,
        U,
    ));
    hold(&base, mutants);
}
