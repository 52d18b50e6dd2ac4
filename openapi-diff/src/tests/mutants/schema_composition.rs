//! Tests the report for edits of composed schemas: `allOf`, references and choices (`oneOf`, `anyOf`).

use serde_json::{Value, json};

use super::{
    B, C,
    Done::{Gone, Put},
    U, hold,
};

/// Returns a document whose only response has the schema `X`. `components` holds `X` and the schemas that it refers to.
pub(super) fn answering(version: &str, components: Value) -> Value {
    let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/X" } } });
    json!({
        "openapi": version,
        "info": { "title": "", "version": "" },
        "paths": { "/x": { "post": { "responses": { "200": { "description": "", "content": content } } } } },
        "components": { "schemas": components }
    })
}

#[test]
fn a_keyword_in_two_parts_of_all_of_is_compared() {
    let shared = |one: Value, other: Value| {
        answering(
            "3.0.3",
            json!({
                "X": { "allOf": [{ "$ref": "#/components/schemas/Base" }, other] },
                "Base": one,
                "Row": { "type": "object", "properties": { "v": { "type": "string" } } },
            }),
        )
    };
    let row = json!({ "$ref": "#/components/schemas/Row" });
    let typed = || Put("/components/schemas/Row/properties/v/type", json!("integer"));
    hold(
        &shared(
            json!({ "properties": { "data": { "type": "array", "items": { "type": "object" } } } }),
            json!({ "properties": { "data": { "items": row } } }),
        ),
        vec![(typed(), &["POST /x | response 200 /data/[]/v | type-changed"], B, B)],
    );
    hold(
        &shared(json!({ "additionalProperties": { "type": "object" } }), json!({ "additionalProperties": row })),
        vec![(typed(), &["POST /x | response 200 /{}/v | type-changed"], B, B)],
    );
    hold(
        &shared(json!({ "not": { "required": ["a"] } }), json!({ "not": row })),
        vec![(typed(), &["POST /x | response 200 | constraint-accepts-more not"], B, U)],
    );
    hold(
        &shared(json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] }), json!({ "oneOf": [row, { "type": "string" }] })),
        vec![(typed(), &["POST /x | response 200 /<Row>/v | type-changed"], B, B)],
    );
    hold(
        &shared(json!({ "pattern": "a" }), json!({ "pattern": "b" })),
        vec![
            (Put("/components/schemas/X/allOf/1/pattern", json!("c")), &["POST /x | response 200 | constraint-changed pattern"], U, U),
            (Gone("/components/schemas/X/allOf/1/pattern"), &["POST /x | response 200 | pattern-removed"], B, C),
        ],
    );
}

#[test]
fn parts_of_all_of_restrict_each_other() {
    let both = |one: Value, other: Value| answering("3.0.3", json!({ "X": { "allOf": [one, other] } }));
    hold(
        &both(json!({ "type": "string", "nullable": true }), json!({ "type": "string", "nullable": true })),
        vec![(Gone("/components/schemas/X/allOf/0/nullable"), &["POST /x | response 200 | null-refused"], C, B)],
    );
    hold(
        &both(json!({ "type": "string" }), json!({ "nullable": true })),
        vec![(Gone("/components/schemas/X/allOf/1/nullable"), &["POST /x | response 200 | null-refused"], C, B)],
    );
    hold(
        &both(
            json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": false }),
            json!({ "properties": { "b": { "type": "string" } } }),
        ),
        vec![(
            Put(
                "/components/schemas/X",
                json!({ "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "additionalProperties": false }),
            ),
            &["POST /x | response 200 /b | value-permitted"],
            B,
            C,
        )],
    );
    hold(
        &both(json!({ "type": "integer", "minimum": 3, "exclusiveMinimum": true }), json!({ "minimum": 5 })),
        vec![(
            Put("/components/schemas/X", json!({ "type": "integer", "minimum": 5, "exclusiveMinimum": true })),
            &["POST /x | response 200 | limit-tightened minimum"],
            C,
            B,
        )],
    );
    hold(
        &both(json!({ "type": "integer", "maximum": 5, "exclusiveMaximum": true }), json!({ "maximum": 5 })),
        vec![(
            Put("/components/schemas/X", json!({ "type": "integer", "maximum": 5 })),
            &["POST /x | response 200 | limit-loosened maximum"],
            B,
            C,
        )],
    );
}

#[test]
fn members_beside_a_reference_are_reported() {
    let beside = |version| {
        answering(
            version,
            json!({ "X": { "properties": {
                "far": { "$ref": "other.yaml#/X", "maxLength": 5 },
                "lost": { "$ref": "#/components/schemas/None", "maxLength": 5 },
                "near": { "$ref": "#/components/schemas/Y", "nullable": true },
            } }, "Y": { "type": "string" } }),
        )
    };
    hold(
        &beside("3.1.0"),
        vec![
            (
                Put("/components/schemas/X/properties/far/maxLength", json!(6)),
                &["POST /x | response 200 /far | limit-loosened maxLength", "document | references | reference-not-followed other.yaml#/X"],
                B,
                C,
            ),
            (
                Put("/components/schemas/X/properties/lost/maxLength", json!(4)),
                &[
                    "POST /x | response 200 /lost | limit-tightened maxLength",
                    "document | references | reference-not-followed other.yaml#/X",
                ],
                C,
                B,
            ),
        ],
    );
    hold(
        &beside("3.0.3"),
        vec![
            (
                Put("/components/schemas/X/properties/far/maxLength", json!(6)),
                &[
                    "POST /x | response 200 /far | keyword-changed maxLength",
                    "document | references | reference-not-followed other.yaml#/X",
                ],
                U,
                U,
            ),
            (
                Gone("/components/schemas/X/properties/near/nullable"),
                &[
                    "POST /x | response 200 /near | keyword-removed nullable",
                    "document | references | reference-not-followed other.yaml#/X",
                ],
                U,
                U,
            ),
            (
                Put("/components/schemas/X/properties/near/x-foo", json!(1)),
                &["POST /x | response 200 /near | extension-added x-foo", "document | references | reference-not-followed other.yaml#/X"],
                U,
                U,
            ),
        ],
    );
}

#[test]
fn added_keywords_that_loosen_or_restrict_a_schema_are_distinguished() {
    let components = || {
        json!({
            "X": { "properties": {
                "closed": { "type": "object", "additionalProperties": false },
                "open": { "type": "object" },
                "typed": { "type": "object", "additionalProperties": { "type": "string" } },
                "pair": { "type": "array", "prefixItems": [{ "type": "string" }], "items": false },
                "any": {},
                "listed": { "type": ["string", "null"], "enum": ["a", null] },
                "some": { "type": ["string", "null"] },
                "other": { "$ref": "#/components/schemas/Y" },
            } },
            "Y": { "type": "object", "properties": { "a": { "type": "string" } } }
        })
    };
    hold(
        &answering("3.1.0", components()),
        vec![
            (
                Put("/components/schemas/X/properties/closed/patternProperties", json!({ "^x": {} })),
                &["POST /x | response 200 /closed | closed-pattern-added patternProperties ^x"],
                B,
                C,
            ),
            (
                Put("/components/schemas/X/properties/open/patternProperties", json!({ "^x": {} })),
                &["POST /x | response 200 /open | constraint-added patternProperties ^x"],
                C,
                B,
            ),
            (
                Put("/components/schemas/X/properties/pair/prefixItems/-", json!({ "type": "string" })),
                &["POST /x | response 200 /pair/[1] | value-permitted"],
                B,
                C,
            ),
            (
                Put("/components/schemas/X/properties/typed/properties", json!({ "n": { "type": "integer" } })),
                &["POST /x | response 200 /typed/n | type-changed", "POST /x | response 200 /typed/n | property-optional-added"],
                B,
                B,
            ),
            (
                Put("/components/schemas/X/properties/typed/properties", json!({ "n": { "type": "string" } })),
                &["POST /x | response 200 /typed/n | property-optional-added"],
                C,
                B,
            ),
            (
                Put(
                    "/components/schemas/X/properties/listed",
                    json!({ "oneOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
                ),
                &[],
                C,
                C,
            ),
            (
                Put("/components/schemas/X/properties/any/type", json!(["string", "null"])),
                &["POST /x | response 200 /any | type-narrowed"],
                C,
                B,
            ),
            (
                Put("/components/schemas/X/properties/some", json!({ "type": "string", "nullable": true })),
                &["POST /x | response 200 /some | null-refused"],
                C,
                B,
            ),
            (Put("/components/schemas/X/properties/some", json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] })), &[], C, C),
            (
                Put(
                    "/components/schemas/X/properties/other",
                    json!({ "oneOf": [{ "$ref": "#/components/schemas/Y" }, { "type": "null" }] }),
                ),
                &["POST /x | response 200 /other | null-allowed"],
                B,
                C,
            ),
            (
                Put("/components/schemas/X/$defs", json!({ "A": { "type": "string" } })),
                &["POST /x | response 200 | restated $defs A"],
                C,
                C,
            ),
            (
                Put("/components/schemas/X/unevaluatedProperties", json!(true)),
                &["POST /x | response 200 | restated additionalProperties"],
                C,
                C,
            ),
            (Put("/components/schemas/X/then", json!({ "required": ["a"] })), &["POST /x | response 200 | restated then"], C, C),
            (Put("/components/schemas/X/not", json!({ "required": ["a"] })), &["POST /x | response 200 | constraint-added not"], C, B),
        ],
    );
}

#[test]
fn changes_in_unusual_schemas_and_documents_are_reported() {
    let mut base = answering(
        "3.0.3",
        json!({
            "X": { "x-schema": { "$ref": "#/components/schemas/Y" }, "type": "object", "properties": {
                "large": { "type": "integer", "maximum": 9223372036854775807_u64, "multipleOf": 9007199254740993_u64 },
                "named": { "required": ["n"], "additionalProperties": { "type": "string" } },
                "late": { "type": "string", "maxLength": 5 },
                "kind": {
                    "oneOf": [{ "$ref": "#/components/schemas/Z" }],
                    "discriminator": { "propertyName": "kind", "mapping": { "z": "Z" } }
                },
            } },
            "Y": { "type": "string" },
            "Z": { "type": "object" }
        }),
    );
    base["paths"]["/x"]["get"] = json!({ "parameters": [{ "$ref": "#/components/parameters/L" }], "responses": {},
        "security": [{ "A": ["s"], "B": ["s"] }] });
    for name in ["x", "y"] {
        base["paths"][format!("/a/{{{name}}}")] = json!({ "get": { "x-of": 1, "responses": {} } });
    }
    let limit = json!({ "name": "limit", "in": "query", "schema": { "type": "string" } });
    base["components"]["parameters"] = json!({ "L": limit, "M": limit });
    hold(
        &base,
        vec![
            (
                Put("/components/schemas/X/properties/large/maximum", json!(9223372036854775806_u64)),
                &["POST /x | response 200 /large | limit-tightened maximum"],
                C,
                B,
            ),
            (
                Put("/components/schemas/X/properties/large/multipleOf", json!(9007199254740992_u64)),
                &["POST /x | response 200 /large | constraint-changed multipleOf"],
                U,
                U,
            ),
            (
                Put("/components/schemas/X/properties/named/properties", json!({ "n": { "type": "integer" } })),
                &["POST /x | response 200 /named/n | type-changed", "POST /x | response 200 /named/n | property-declared"],
                B,
                B,
            ),
            (Put("/components/schemas/Y/type", json!("integer")), &["POST /x | response 200 | extension-changed x-schema"], U, U),
            (
                Put("/components/schemas/X/properties/kind/discriminator/mapping/z", json!("#/components/schemas/Z")),
                &["POST /x | response 200 /kind | restated mapping z"],
                C,
                C,
            ),
            (
                Put("/components/schemas/X/properties/late", json!({ "type": "integer", "nullable": true, "deprecated": true, "x-a": 1 })),
                &[
                    "POST /x | response 200 /late | type-changed",
                    "POST /x | response 200 /late | null-allowed",
                    "POST /x | response 200 /late | deprecated",
                    "POST /x | response 200 /late | extension-added x-a",
                ],
                B,
                B,
            ),
            (
                Put("/paths/~1x/get/parameters/0/$ref", json!("#/components/parameters/M")),
                &["GET /x | query parameter limit | type-name-changed"],
                U,
                U,
            ),
            (Put("/paths/~1x/get/parameters/0", limit), &["GET /x | query parameter limit | restated $ref"], C, C),
            (
                Put("/paths/~1x/get/security/0", json!({ "A": [], "B": [] })),
                &["GET /x | security A | scope-removed s", "GET /x | security B | scope-removed s"],
                C,
                B,
            ),
            (
                Put(
                    "/paths",
                    json!({
                        "/x": base["paths"]["/x"],
                        "/a/{x}": { "get": { "x-of": 2, "responses": {} } },
                        "/a/{y}": { "get": { "x-of": 2, "responses": {} } }
                    }),
                ),
                &["GET /a/{x} | operation | extension-changed x-of", "GET /a/{y} | operation | extension-changed x-of"],
                U,
                U,
            ),
        ],
    );
}
