//! Coverage test: adds, removes and changes the fields of OpenAPI 3.0 and 3.1 (apart from fields that only describe), and the keywords of a
//! schema in a request and in a response. Nearly all of these changes must have a class other than unknown.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::{Value, json};

use super::compared;

/// The name of a field of a schema, two values of the field, and the other keywords of the schema.
type Field = (&'static str, Value, Value, Value);

/// Returns the keywords of a schema in three lists: those that both OpenAPI 3.0 and 3.1 have, those of 3.0 alone, and those of 3.1 alone.
fn keywords() -> [Vec<Field>; 3] {
    let none = || json!({});
    let object = || json!({ "type": "object" });
    let array = || json!({ "type": "array", "items": { "type": "string" } });
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "number" });
    let kinds = json!([{ "$ref": "#/components/schemas/Cat" }, { "$ref": "#/components/schemas/Dog" }]);
    let both = vec![
        ("type", json!("string"), json!("integer"), none()),
        ("enum", json!(["a", "b"]), json!(["a", "c"]), text()),
        ("format", json!("date"), json!("uuid"), text()),
        ("pattern", json!("^a+$"), json!("^b+$"), text()),
        ("minLength", json!(1), json!(2), text()),
        ("maxLength", json!(5), json!(4), text()),
        ("minimum", json!(1), json!(2), number()),
        ("maximum", json!(5), json!(4), number()),
        ("multipleOf", json!(2), json!(3), json!({ "type": "integer" })),
        ("minItems", json!(1), json!(2), array()),
        ("maxItems", json!(5), json!(4), array()),
        ("uniqueItems", json!(true), json!(false), array()),
        ("items", json!({ "type": "string" }), json!({ "type": "integer" }), json!({ "type": "array" })),
        ("minProperties", json!(1), json!(2), object()),
        ("maxProperties", json!(5), json!(4), object()),
        ("required", json!(["a"]), json!(["b"]), json!({ "type": "object", "properties": { "a": {}, "b": {} } })),
        ("properties", json!({ "a": { "type": "string" } }), json!({ "a": { "type": "integer" } }), object()),
        ("additionalProperties", json!(false), json!({ "type": "string" }), object()),
        ("allOf", json!([{ "required": ["a"] }]), json!([{ "required": ["b"] }]), object()),
        ("oneOf", json!([{ "type": "string" }, { "type": "integer" }]), json!([{ "type": "string" }, { "type": "boolean" }]), none()),
        ("anyOf", json!([{ "type": "string" }, { "type": "integer" }]), json!([{ "type": "string" }, { "type": "boolean" }]), none()),
        ("not", json!({ "enum": ["a"] }), json!({ "enum": ["b"] }), text()),
        ("default", json!("a"), json!("b"), text()),
        ("readOnly", json!(true), json!(false), text()),
        ("writeOnly", json!(true), json!(false), text()),
        ("deprecated", json!(true), json!(false), text()),
        ("xml", json!({ "name": "a" }), json!({ "name": "b" }), text()),
        ("discriminator", json!({ "propertyName": "kind" }), json!({ "propertyName": "other" }), json!({ "oneOf": kinds })),
        (
            "discriminator",
            json!({ "propertyName": "kind", "mapping": { "cat": "#/components/schemas/Cat", "dog": "#/components/schemas/Dog" } }),
            json!({ "propertyName": "kind", "mapping": { "cat": "#/components/schemas/Cat", "hound": "#/components/schemas/Dog" } }),
            json!({ "oneOf": kinds }),
        ),
        ("$ref", json!("#/components/schemas/Cat"), json!("#/components/schemas/Dog"), none()),
    ];
    let old = vec![
        ("nullable", json!(true), json!(false), text()),
        ("exclusiveMinimum", json!(true), json!(false), json!({ "type": "number", "minimum": 1 })),
        ("exclusiveMaximum", json!(true), json!(false), json!({ "type": "number", "maximum": 1 })),
    ];
    let new = vec![
        ("const", json!("a"), json!("b"), text()),
        ("exclusiveMinimum", json!(1), json!(2), number()),
        ("exclusiveMaximum", json!(5), json!(4), number()),
        ("prefixItems", json!([{ "type": "string" }]), json!([{ "type": "integer" }]), json!({ "type": "array" })),
        ("contains", json!({ "const": "a" }), json!({ "const": "b" }), array()),
        ("minContains", json!(1), json!(2), json!({ "type": "array", "contains": { "const": "a" }, "items": { "type": "string" } })),
        ("maxContains", json!(2), json!(3), json!({ "type": "array", "contains": { "const": "a" }, "items": { "type": "string" } })),
        ("unevaluatedItems", json!(false), json!({ "type": "string" }), json!({ "type": "array", "prefixItems": [{ "type": "string" }] })),
        ("unevaluatedProperties", json!(false), json!({ "type": "string" }), json!({ "type": "object", "properties": { "a": {} } })),
        ("patternProperties", json!({ "^x": { "type": "string" } }), json!({ "^x": { "type": "integer" } }), object()),
        ("propertyNames", json!({ "maxLength": 3 }), json!({ "maxLength": 2 }), object()),
        (
            "dependentRequired",
            json!({ "a": ["b"] }),
            json!({ "a": ["c"] }),
            json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} } }),
        ),
        (
            "dependentSchemas",
            json!({ "a": { "required": ["b"] } }),
            json!({ "a": { "required": ["c"] } }),
            json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} } }),
        ),
        ("if", json!({ "const": "a" }), json!({ "const": "b" }), json!({ "type": "string", "then": { "maxLength": 0 } })),
        ("then", json!({ "maxLength": 3 }), json!({ "maxLength": 2 }), json!({ "type": "string", "if": { "minLength": 1 } })),
        ("else", json!({ "const": "" }), json!({ "const": "b" }), json!({ "type": "string", "if": { "minLength": 2 } })),
        ("contentEncoding", json!("base64"), json!("base32"), text()),
        ("contentMediaType", json!("text/csv"), json!("text/html"), text()),
        (
            "contentSchema",
            json!({ "type": "object" }),
            json!({ "type": "array" }),
            json!({ "type": "string", "contentMediaType": "application/json" }),
        ),
        ("$id", json!("https://example.com/a"), json!("https://example.com/b"), text()),
        ("$anchor", json!("a"), json!("b"), text()),
        ("$dynamicAnchor", json!("a"), json!("b"), text()),
        ("$schema", json!("https://json-schema.org/draft/2020-12/schema"), json!("https://example.com/b"), text()),
        ("$defs", json!({ "a": { "type": "string" } }), json!({ "a": { "type": "integer" } }), text()),
        ("$dynamicRef", json!("#/components/schemas/Cat"), json!("#/components/schemas/Dog"), none()),
    ];
    [both, old, new]
}

/// Returns the fields of the objects of a document other than schemas, such as operations and parameters: the JSON pointer of the object,
/// the name of the field, and two different values for it.
fn fields() -> Vec<(&'static str, &'static str, Value, Value)> {
    const GET: &str = "/paths/~1a/get";
    const PARAMETER: &str = "/paths/~1a/get/parameters/0";
    const BODY: &str = "/paths/~1a/post/requestBody";
    const ENCODING: &str = "/paths/~1a/post/requestBody/content/multipart~1form-data/encoding/p";
    const FORM: &str = "/paths/~1a/post/requestBody/content/application~1x-www-form-urlencoded/encoding/p";
    const ANSWER: &str = "/paths/~1a/get/responses/200";
    const HEADER: &str = "/paths/~1a/get/responses/200/headers/x";
    const LINK: &str = "/paths/~1a/get/responses/200/links/l";
    const SCHEME: &str = "/components/securitySchemes/key";
    const FLOW: &str = "/components/securitySchemes/oauth/flows/implicit";
    const VARIABLE: &str = "/servers/0/variables/v";
    let answer = |kind: &str| json!({ "description": "", "content": { (kind): {} } });
    vec![
        ("", "info", json!({ "title": "a", "version": "1" }), json!({ "title": "b", "version": "1" })),
        ("", "servers", json!([{ "url": "/1" }]), json!([{ "url": "/2" }])),
        ("", "security", json!([{ "key": [] }]), json!([{ "oauth": ["s"] }])),
        ("", "tags", json!([{ "name": "a" }]), json!([{ "name": "b" }])),
        ("", "webhooks", json!({ "a": { "post": { "responses": {} } } }), json!({ "b": { "post": { "responses": {} } } })),
        ("", "jsonSchemaDialect", json!("https://example.com/a"), json!("https://example.com/b")),
        ("/info", "termsOfService", json!("/a"), json!("/b")),
        ("/info", "contact", json!({ "name": "a" }), json!({ "name": "b" })),
        ("/info", "license", json!({ "name": "a" }), json!({ "name": "b" })),
        ("/info", "version", json!("1"), json!("2")),
        ("/servers/0", "url", json!("/1"), json!("/2")),
        ("/servers/0", "variables", json!({ "w": { "default": "a" } }), json!({ "w": { "default": "b" } })),
        (VARIABLE, "enum", json!(["a", "b"]), json!(["a", "c"])),
        (VARIABLE, "default", json!("a"), json!("b")),
        ("/components", "schemas", json!({ "N": { "type": "string" } }), json!({ "N": { "type": "integer" } })),
        ("/components", "responses", json!({ "N": answer("a/b") }), json!({ "N": answer("a/c") })),
        ("/components", "parameters", json!({ "N": { "name": "n", "in": "query" } }), json!({ "N": { "name": "m", "in": "query" } })),
        ("/components", "requestBodies", json!({ "N": { "content": {} } }), json!({ "N": { "content": { "a/b": {} } } })),
        ("/components", "headers", json!({ "N": { "required": true } }), json!({ "N": {} })),
        ("/components", "links", json!({ "N": { "operationId": "a" } }), json!({ "N": { "operationId": "b" } })),
        ("/components", "callbacks", json!({ "N": { "/a": {} } }), json!({ "N": { "/b": {} } })),
        ("/components", "pathItems", json!({ "N": { "get": {} } }), json!({ "N": { "put": {} } })),
        (
            "/components",
            "securitySchemes",
            json!({ "N": { "type": "http", "scheme": "basic" } }),
            json!({ "N": { "type": "http", "scheme": "bearer" } }),
        ),
        ("/paths", "/n", json!({ "get": { "responses": {} } }), json!({ "put": { "responses": {} } })),
        ("/paths/~1a", "parameters", json!([{ "name": "n", "in": "query" }]), json!([{ "name": "m", "in": "query" }])),
        ("/paths/~1a", "servers", json!([{ "url": "/1" }]), json!([{ "url": "/2" }])),
        ("/paths/~1a", "put", json!({ "responses": {} }), json!({ "responses": { "200": {} } })),
        (GET, "operationId", json!("one"), json!("two")),
        (GET, "tags", json!(["a"]), json!(["b"])),
        (GET, "deprecated", json!(true), json!(false)),
        (GET, "security", json!([{ "key": [] }]), json!([{ "oauth": ["s"] }])),
        (GET, "servers", json!([{ "url": "/1" }]), json!([{ "url": "/2" }])),
        (GET, "parameters", json!([{ "name": "n", "in": "query" }]), json!([{ "name": "m", "in": "query" }])),
        (
            GET,
            "callbacks",
            json!({ "c": { "/x": { "post": { "responses": {} } } } }),
            json!({ "c": { "/y": { "post": { "responses": {} } } } }),
        ),
        ("/paths/~1a/post", "requestBody", json!({ "content": { "a/b": {} } }), json!({ "content": { "a/c": {} } })),
        (GET, "responses", json!({ "201": { "description": "" } }), json!({ "202": { "description": "" } })),
        (PARAMETER, "name", json!("n"), json!("m")),
        (PARAMETER, "in", json!("query"), json!("header")),
        (PARAMETER, "required", json!(true), json!(false)),
        (PARAMETER, "deprecated", json!(true), json!(false)),
        (PARAMETER, "allowEmptyValue", json!(true), json!(false)),
        (PARAMETER, "allowReserved", json!(true), json!(false)),
        (PARAMETER, "style", json!("pipeDelimited"), json!("spaceDelimited")),
        (PARAMETER, "explode", json!(true), json!(false)),
        (PARAMETER, "schema", json!({ "type": "integer" }), json!({ "type": "boolean" })),
        ("/paths/~1a/post/parameters/0", "content", json!({ "a/b": {} }), json!({ "a/c": {} })),
        (BODY, "required", json!(true), json!(false)),
        (BODY, "content", json!({ "a/b": {} }), json!({ "a/c": {} })),
        ("/paths/~1a/post/requestBody/content/multipart~1form-data", "schema", json!({ "type": "object" }), json!({ "type": "array" })),
        (
            "/paths/~1a/post/requestBody/content/multipart~1form-data",
            "encoding",
            json!({ "p": { "contentType": "a/b" } }),
            json!({ "p": { "contentType": "a/c" } }),
        ),
        (ENCODING, "contentType", json!("a/b"), json!("a/c")),
        (ENCODING, "headers", json!({ "x-n": {} }), json!({ "x-m": {} })),
        (FORM, "style", json!("pipeDelimited"), json!("spaceDelimited")),
        (FORM, "explode", json!(true), json!(false)),
        (FORM, "allowReserved", json!(true), json!(false)),
        (ANSWER, "headers", json!({ "x-n": {} }), json!({ "x-m": {} })),
        (ANSWER, "content", json!({ "a/b": {} }), json!({ "a/c": {} })),
        (ANSWER, "links", json!({ "n": { "operationId": "a" } }), json!({ "m": { "operationId": "a" } })),
        (HEADER, "required", json!(true), json!(false)),
        (HEADER, "deprecated", json!(true), json!(false)),
        (HEADER, "explode", json!(true), json!(false)),
        (HEADER, "schema", json!({ "type": "integer" }), json!({ "type": "boolean" })),
        ("/paths/~1a/get/responses/200/headers/y", "content", json!({ "a/b": {} }), json!({ "a/c": {} })),
        (LINK, "operationId", json!("a"), json!("b")),
        (LINK, "operationRef", json!("#/paths/~1a/get"), json!("#/paths/~1a/post")),
        (LINK, "parameters", json!({ "a": 1 }), json!({ "a": 2 })),
        (LINK, "requestBody", json!(1), json!(2)),
        (LINK, "server", json!({ "url": "/1" }), json!({ "url": "/2" })),
        (SCHEME, "type", json!("apiKey"), json!("http")),
        (SCHEME, "name", json!("a"), json!("b")),
        (SCHEME, "in", json!("query"), json!("header")),
        (SCHEME, "scheme", json!("basic"), json!("bearer")),
        (SCHEME, "bearerFormat", json!("a"), json!("b")),
        (SCHEME, "openIdConnectUrl", json!("/a"), json!("/b")),
        ("/components/securitySchemes/oauth", "flows", json!({ "implicit": { "scopes": {} } }), json!({ "password": { "scopes": {} } })),
        (FLOW, "authorizationUrl", json!("/a"), json!("/b")),
        (FLOW, "tokenUrl", json!("/a"), json!("/b")),
        (FLOW, "refreshUrl", json!("/a"), json!("/b")),
        (FLOW, "scopes", json!({ "a": "" }), json!({ "b": "" })),
        ("/tags/0", "name", json!("a"), json!("b")),
    ]
}

fn base(version: &str) -> Value {
    let string = || json!({ "type": "string" });
    json!({
        "openapi": version,
        "info": { "title": "", "version": "" },
        "servers": [{ "url": "https://{v}.example", "variables": { "v": { "default": "a" } } }],
        "tags": [{ "name": "t" }],
        "paths": { "/a": {
            "get": {
                "parameters": [{ "name": "p", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } }],
                "security": [{ "key": [] }, { "oauth": ["s"] }],
                "responses": { "200": {
                    "description": "",
                    "headers": { "x": { "schema": { "type": "array", "items": { "type": "string" } } }, "y": {} },
                    "links": { "l": {} }
                } }
            },
            "post": {
                "parameters": [{ "name": "c", "in": "query" }],
                "requestBody": { "content": {
                    "multipart/form-data": { "schema": { "type": "object", "properties": { "p": string() } }, "encoding": { "p": {} } },
                    "application/x-www-form-urlencoded": { "schema": { "type": "object", "properties": { "p": string() } }, "encoding": { "p": {} } }
                } },
                "responses": {}
            }
        } },
        "components": {
            "schemas": {
                "Cat": { "type": "object", "required": ["kind"], "properties": { "kind": { "const": "cat" }, "other": string() } },
                "Dog": { "type": "object", "required": ["kind", "bark"], "properties": { "kind": { "const": "dog" }, "bark": string() } }
            },
            "securitySchemes": { "key": {}, "oauth": { "type": "oauth2", "flows": { "implicit": {} } } }
        }
    })
}

/// Returns a document with a schema in the body of a request or of a response.
fn with_schema(version: &str, request: bool, schema: &Value) -> Value {
    let mut document = base(version);
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    document["paths"]["/s"] = match request {
        true => json!({ "post": { "requestBody": body, "responses": {} } }),
        false => json!({ "post": { "responses": { "200": body } } }),
    };
    document
}

fn with(mut value: Value, field: &str, content: Option<&Value>) -> Value {
    let object = value.as_object_mut().expect("an object");
    match content {
        Some(content) => _ = object.insert(field.to_owned(), content.clone()),
        None => _ = object.remove(field),
    }
    value
}

/// Counts, for each field, the changes that were tried and the unknown ones among them.
#[derive(Default)]
struct Tally(BTreeMap<String, (usize, usize)>);

impl Tally {
    fn add(&mut self, field: &str, old: &Value, new: &Value) {
        let report = compared(old, new);
        // A tried change counts as unknown if no reported change is breaking and at least one is unknown.
        let unknown = report.summary.breaking == 0 && report.summary.unknown > 0;
        let entry = self.0.entry(field.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += usize::from(unknown);
    }
}

#[test]
fn at_least_95_percent_of_field_changes_are_classified() {
    let mut tally = Tally::default();
    let [both, old, new] = keywords();
    for (version, list) in [("3.0.3", &both), ("3.1.0", &both), ("3.0.3", &old), ("3.1.0", &new)] {
        for (field, one, other, beside) in list {
            let [without, first, second] = [None, Some(one), Some(other)].map(|value| with(beside.clone(), field, value));
            for request in [true, false] {
                for (old, new) in [(&without, &first), (&first, &without), (&first, &second)] {
                    tally.add(&format!("schema.{field}"), &with_schema(version, request, old), &with_schema(version, request, new));
                }
            }
        }
    }
    for version in ["3.0.3", "3.1.0"] {
        for (pointer, field, one, other) in fields() {
            let [without, first, second] = [None, Some(&one), Some(&other)].map(|value| {
                let mut document = base(version);
                let object = document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is not in the base"));
                *object = with(object.take(), field, value);
                document
            });
            for (old, new) in [(&without, &first), (&first, &without), (&first, &second)] {
                tally.add(&format!("{pointer}.{field}"), old, new);
            }
        }
    }
    let (all, unknown) = tally.0.values().fold((0, 0), |sum, (all, unknown)| (sum.0 + all, sum.1 + unknown));
    let mut table = String::new();
    for (field, (all, unknown)) in tally.0.iter().filter(|(_, (_, unknown))| *unknown > 0) {
        writeln!(table, "{field}: {unknown} of {all}").expect("a text");
    }
    println!("{} of {all} changes are classed. Unknown:\n{table}", all - unknown);
    assert!(all > 500, "{all}");
    assert!(unknown * 100 <= all * 5, "{unknown} of {all} changes are unknown:\n{table}");
}
