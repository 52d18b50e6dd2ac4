//! Tests that a change gets the right class where a comparison of keywords alone would give a wrong one: overlapping variants, equivalent
//! schemas, contradictions, and values that are written as text. Each test covers several pairs of an old and a new schema.

use serde_json::{Value, json};

use super::compared;
use crate::{Document, Report, Summary, diff};

/// The expected result of comparing a pair of schemas.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Breaking,
    /// The report has no breaking change and at least one unknown change.
    Unknown,
    /// The report has compatible changes only, or no change.
    Compatible,
}

use Verdict::{Breaking, Compatible, Unknown};

impl Verdict {
    fn of(summary: Summary) -> Self {
        match summary {
            Summary { breaking: 1.., .. } => Breaking,
            Summary { unknown: 1.., .. } => Unknown,
            _ => Compatible,
        }
    }
}

fn components() -> Value {
    let text = || json!({ "type": "string" });
    json!({
        "Cat": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string", "enum": ["cat"] }, "home": { "$ref": "#/components/schemas/Home" } } },
        "Dog": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string", "enum": ["dog"] }, "home": { "$ref": "#/components/schemas/Home" } } },
        "Hound": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string", "enum": ["dog"] }, "home": { "$ref": "#/components/schemas/Home" } } },
        "Home": { "type": "object", "properties": { "city": { "$ref": "#/components/schemas/City" } } },
        "City": text(),
        "Id": { "type": "object", "required": ["id"], "properties": { "id": text() } },
        "NullableId": { "type": "object", "required": ["id"], "nullable": true, "properties": { "id": text() } },
        "Firm": { "type": "object", "required": ["firm"], "properties": { "firm": text() } },
    })
}

fn document(version: &str, request: bool, schema: &Value) -> Value {
    let body = json!({ "required": true, "description": "", "content": { "application/json": { "schema": schema } } });
    let operation = if request { json!({ "requestBody": body, "responses": {} }) } else { json!({ "responses": { "200": body } }) };
    json!({ "openapi": version, "info": {}, "paths": { "/s": { "post": operation } }, "components": { "schemas": components() } })
}

/// Compares two documents that differ in the schema of a request body or of a response body.
fn body(version: &str, request: bool, old: &Value, new: &Value) -> Report {
    compared(&document(version, request, old), &document(version, request, new))
}

/// Asserts the expected result of each pair of schemas, and that each breaking pair has a witness (an example value of the change).
/// Fails with a list of all faults.
fn hold(pairs: Vec<(&str, bool, Value, Value, Verdict)>) {
    let mut faults = Vec::new();
    for (version, request, old, new, expected) in pairs {
        let report = body(version, request, &old, &new);
        let rules: Vec<_> = report.changes.iter().map(|change| (change.place.as_str(), change.rule.id, change.class)).collect();
        let witness = expected != Breaking || report.changes.iter().any(|change| change.witness.is_some());
        if Verdict::of(report.summary) != expected || !witness {
            faults.push(format!("{version} request {request}: {old} -> {new}: expected {expected:?}, found {rules:?}, witness {witness}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn object(property: &str, required: bool) -> Value {
    let required: &[&str] = if required { &[property] } else { &[] };
    json!({ "type": "object", "properties": { (property): { "type": "string" } }, "required": required })
}

#[test]
fn overlapping_one_of_variants_refuse_values_that_match_both() {
    let one = |variants: &[Value]| json!({ "oneOf": variants });
    let any = |variants: &[Value]| json!({ "anyOf": variants });
    let closed = |property: &str| {
        let mut object = object(property, true);
        object["additionalProperties"] = false.into();
        object
    };
    let text = |most: u32| json!({ "type": "string", "maxLength": most });
    let pair =
        json!({ "type": "object", "properties": { "foo": { "type": "string" }, "bar": { "type": "string" } }, "required": ["foo", "bar"] });
    let half = |name: &str| json!({ "type": "object", "properties": pair["properties"], "required": [name] });
    hold(vec![
        // A variant is added.
        ("3.0.3", true, one(&[object("a", true)]), one(&[object("a", true), object("b", false)]), Breaking),
        ("3.0.3", true, one(&[json!({ "type": "string" })]), one(&[json!({ "type": "string" }), text(5)]), Breaking),
        ("3.0.3", true, one(&[object("a", true)]), one(&[object("a", true), object("b", true)]), Compatible),
        ("3.0.3", true, one(&[json!({ "type": "string" })]), one(&[json!({ "type": "string" }), json!({ "type": "integer" })]), Compatible),
        ("3.0.3", true, one(&[closed("a")]), one(&[closed("a"), closed("b")]), Compatible),
        (
            "3.0.3",
            true,
            one(&[json!({ "type": "integer", "maximum": 4 })]),
            one(&[json!({ "type": "integer", "maximum": 4 }), json!({ "type": "integer", "minimum": 5 })]),
            Compatible,
        ),
        ("3.1.0", true, one(&[named("Cat")]), one(&[named("Cat"), named("Dog")]), Compatible),
        // A constraint of one variant is loosened.
        ("3.0.3", true, one(&[object("id", true), object("email", true)]), one(&[object("id", true), object("email", false)]), Breaking),
        ("3.0.3", true, one(&[text(5), json!({ "type": "integer" })]), one(&[text(5), json!({})]), Breaking),
        (
            "3.0.3",
            true,
            one(&[json!({ "type": "integer", "maximum": 4 }), json!({ "type": "integer", "minimum": 5 })]),
            one(&[json!({ "type": "integer", "maximum": 4 }), json!({ "type": "integer", "minimum": 4 })]),
            Breaking,
        ),
        // A schema is replaced by a `oneOf`.
        ("3.0.3", true, pair.clone(), one(&[half("foo"), half("bar")]), Breaking),
        ("3.0.3", true, object("a", true), one(&[object("a", true), object("b", true)]), Compatible),
        // A variant is removed, in a response.
        ("3.0.3", false, one(&[object("a", true), object("b", false)]), one(&[object("a", true)]), Breaking),
        ("3.0.3", false, one(&[object("a", true), object("b", true)]), one(&[object("a", true)]), Compatible),
        // `anyOf` becomes `oneOf`.
        ("3.0.3", true, any(&[json!({ "type": "string" }), text(5)]), one(&[json!({ "type": "string" }), text(5)]), Breaking),
        (
            "3.0.3",
            true,
            any(&[json!({ "type": "string" }), json!({ "type": "integer" })]),
            one(&[json!({ "type": "string" }), json!({ "type": "integer" })]),
            Compatible,
        ),
        ("3.0.3", false, one(&[json!({ "type": "string" }), text(5)]), any(&[json!({ "type": "string" }), text(5)]), Breaking),
        // A pattern with look-around, which the checker does not understand.
        (
            "3.0.3",
            true,
            one(&[json!({ "type": "string", "pattern": "(?=a)b" })]),
            one(&[json!({ "type": "string", "pattern": "(?=a)b" }), json!({ "type": "string", "pattern": "(?!a)b" })]),
            Unknown,
        ),
    ]);
}

#[test]
fn equivalent_schemas_are_no_change() {
    let inline = |kind: &str| {
        json!({ "type": "object", "required": ["kind"], "properties": {
            "kind": { "type": "string", "enum": [kind] },
            "home": { "type": "object", "properties": { "city": { "type": "string" } } }
        } })
    };
    let pairs = [
        ("3.0.3", json!({ "enum": ["a", "b"] }), json!({ "type": "string", "enum": ["a", "b"] }), Compatible),
        ("3.1.0", json!({ "const": "a" }), json!({ "type": "string", "enum": ["a"] }), Compatible),
        ("3.1.0", json!({ "enum": [1, 2] }), json!({ "type": ["integer", "null"], "enum": [1, 2] }), Compatible),
        ("3.1.0", json!({ "enum": [1, 2] }), json!({ "enum": [1, 2], "minimum": 0, "maxLength": 1 }), Compatible),
        ("3.1.0", json!({ "type": ["string", "null"] }), json!({ "anyOf": [{ "type": ["string", "null"] }] }), Compatible),
        ("3.1.0", json!({ "type": ["string", "null"] }), json!({ "oneOf": [{ "type": "null" }, { "type": "string" }] }), Compatible),
        ("3.0.3", json!({ "type": "string" }), json!({ "oneOf": [{ "allOf": [{ "type": "string" }] }] }), Compatible),
        (
            "3.0.3",
            json!({ "oneOf": [{ "oneOf": [{ "type": "string" }, { "type": "integer" }] }] }),
            json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
            Compatible,
        ),
        (
            "3.0.3",
            json!({ "anyOf": [{ "anyOf": [{ "type": "string" }, { "type": "integer" }] }, { "type": "boolean" }] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }, { "type": "string" }] }),
            Compatible,
        ),
        ("3.0.3", json!({ "allOf": [named("Id")], "nullable": true }), json!({ "oneOf": [named("Id")], "nullable": true }), Compatible),
        ("3.0.3", json!({ "oneOf": [named("Cat"), named("Dog")] }), json!({ "oneOf": [inline("cat"), inline("dog")] }), Unknown),
        ("3.0.3", json!({ "oneOf": [named("Cat"), named("Dog")] }), json!({ "oneOf": [named("Dog"), named("Cat")] }), Compatible),
        ("3.0.3", json!({ "oneOf": [inline("cat"), inline("dog")] }), json!({ "oneOf": [inline("dog"), inline("cat")] }), Compatible),
        (
            "3.0.3",
            json!({ "anyOf": [named("Cat"), named("Dog")] }),
            json!({ "type": "object", "anyOf": [named("Cat"), named("Dog")] }),
            Compatible,
        ),
    ];
    let mut all = Vec::new();
    for (version, one, other, expected) in pairs {
        for request in [true, false] {
            all.push((version, request, one.clone(), other.clone(), expected));
            all.push((version, request, other.clone(), one.clone(), expected));
        }
    }
    hold(all);
}

#[test]
fn a_variant_is_new_only_if_no_variant_accepted_its_values() {
    let choice = |variants: &[Value]| json!({ "type": "object", "properties": { "o": { "oneOf": variants } } });
    let one = |schema: Value| json!({ "type": "object", "properties": { "o": schema } });
    let count = |old: Value, new: Value| body("3.0.3", false, &old, &new).summary.breaking;
    assert_eq!(count(one(named("NullableId")), choice(&[named("Id"), named("Firm")])), 1);
    assert_eq!(count(one(named("NullableId")), choice(&[named("Id")])), 0);
    assert_eq!(count(choice(&[named("Id"), named("Firm")]), choice(&[named("Firm"), named("Id"), json!({ "type": "string" })])), 1);
}

#[test]
fn renaming_the_schema_of_a_discriminator_value_is_classified_as_unknown() {
    let choice = |dog: &str| {
        json!({ "oneOf": [named(dog), named("Cat")], "discriminator": { "propertyName": "kind", "mapping": {
            "dog": format!("#/components/schemas/{dog}"), "cat": "#/components/schemas/Cat"
        } } })
    };
    hold(vec![("3.0.3", false, choice("Dog"), choice("Hound"), Unknown), ("3.0.3", true, choice("Dog"), choice("Hound"), Unknown)]);
    assert_eq!(Verdict::of(body("3.0.3", false, &choice("Dog"), &choice("Firm")).summary), Breaking);
}

#[test]
fn keyword_changes_are_classified_by_the_values_that_they_accept() {
    let object = |more: Value| {
        let mut object = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
        object.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        object
    };
    let list = |least: u32| json!({ "type": "array", "contains": { "type": "string" }, "minContains": least });
    let closed =
        |properties: Value| json!({ "type": "object", "properties": properties, "required": ["c"], "additionalProperties": false });
    hold(vec![
        ("3.0.3", true, closed(json!({ "c": { "type": "string" } })), closed(json!({})), Breaking),
        ("3.1.0", true, object(json!({})), object(json!({ "dependentRequired": { "a": ["b"] } })), Breaking),
        (
            "3.1.0",
            true,
            object(json!({ "required": ["b"] })),
            object(json!({ "required": ["b"], "dependentRequired": { "a": ["b"] } })),
            Compatible,
        ),
        ("3.1.0", false, object(json!({})), object(json!({ "dependentRequired": { "a": ["b"] } })), Compatible),
        // A property that `dependentRequired` requires may be present although it is not declared.
        (
            "3.1.0",
            true,
            json!({ "type": "object", "dependentRequired": { "a": ["b"] }, "properties": { "a": {} } }),
            json!({ "type": "object", "dependentRequired": { "a": ["b"] }, "properties": { "a": {}, "b": { "type": "string" } } }),
            Breaking,
        ),
        ("3.1.0", true, list(1), list(2), Breaking),
        ("3.1.0", false, list(2), list(1), Breaking),
        ("3.1.0", true, list(2), list(1), Compatible),
        ("3.0.3", true, json!({ "type": "integer", "multipleOf": 2 }), json!({ "type": "integer", "multipleOf": 3 }), Breaking),
        ("3.0.3", true, json!({ "type": "integer", "multipleOf": 6 }), json!({ "type": "integer", "multipleOf": 3 }), Compatible),
        ("3.0.3", true, json!({ "type": "string", "pattern": "^a+$" }), json!({ "type": "string", "pattern": "^b+$" }), Breaking),
        (
            "3.0.3",
            true,
            json!({ "type": "string", "not": { "enum": ["a"] } }),
            json!({ "type": "string", "not": { "enum": ["a", "b"] } }),
            Breaking,
        ),
        (
            "3.0.3",
            true,
            json!({ "type": "string", "not": { "enum": ["a", "b"] } }),
            json!({ "type": "string", "not": { "enum": ["a"] } }),
            Compatible,
        ),
        (
            "3.1.0",
            true,
            json!({ "type": "string", "if": { "minLength": 2 }, "then": { "maxLength": 9 } }),
            json!({ "type": "string", "if": { "minLength": 2 }, "then": { "maxLength": 4 } }),
            Breaking,
        ),
        (
            "3.1.0",
            true,
            object(json!({ "dependentSchemas": { "a": { "required": ["b"] } } })),
            object(json!({ "dependentSchemas": { "a": {} } })),
            Compatible,
        ),
        (
            "3.1.0",
            false,
            object(json!({ "dependentSchemas": { "a": { "required": ["b"] } } })),
            object(json!({ "dependentSchemas": { "a": {} } })),
            Breaking,
        ),
    ]);
}

#[test]
fn unevaluated_values_are_undeclared_ones_unless_a_subschema_evaluates_them() {
    let text = || json!({ "type": "string" });
    let list = |items: Value, others: Value| json!({ "type": "array", "prefixItems": items, "unevaluatedItems": others });
    let object = |properties: Value, others: Value| json!({ "type": "object", "properties": properties, "unevaluatedProperties": others });
    let condition = |needed: &[&str], others: Value| {
        json!({
            "type": "object",
            "if": { "properties": { "kind": text() } },
            "then": { "properties": { "new": text() }, "required": needed },
            "unevaluatedProperties": others
        })
    };
    let part = |properties: Value| {
        json!({ "allOf": [
            { "type": "object", "properties": { "a": text() }, "unevaluatedProperties": false },
            { "type": "object", "properties": properties }
        ] })
    };
    hold(vec![
        ("3.1.0", false, list(json!([text()]), json!(false)), list(json!([text(), text()]), json!(false)), Breaking),
        ("3.1.0", false, list(json!([text()]), text()), list(json!([text(), { "type": "integer" }]), text()), Breaking),
        ("3.1.0", false, list(json!([text()]), text()), list(json!([text(), { "enum": ["a"] }]), text()), Compatible),
        ("3.1.0", true, list(json!([{ "type": ["integer", "string"] }]), text()), list(json!([]), text()), Breaking),
        ("3.1.0", false, object(json!({}), text()), object(json!({ "d": { "type": "integer" } }), text()), Breaking),
        ("3.1.0", false, object(json!({}), text()), object(json!({ "d": { "enum": ["a"] } }), text()), Compatible),
        ("3.1.0", true, object(json!({}), json!(false)), json!({ "type": "object", "additionalProperties": false }), Compatible),
        ("3.1.0", true, condition(&[], text()), condition(&["new"], text()), Breaking),
        // In one part of an `allOf`, properties that only another part declares are unevaluated.
        ("3.1.0", true, part(json!({})), part(json!({ "b": text() })), Compatible),
    ]);
}

/// Returns a document whose operation has one query parameter.
fn query(parameter: &Value) -> Value {
    let mut parameter = parameter.clone();
    parameter["name"] = "p".into();
    parameter["in"] = "query".into();
    json!({ "openapi": "3.0.3", "info": {}, "paths": { "/a": { "get": { "parameters": [parameter], "responses": {} } } } })
}

#[test]
fn type_changes_of_query_parameters_are_classified_by_their_text_form() {
    let typed = |kind: &str| json!({ "schema": { "type": kind } });
    let list = |more: Value| {
        let mut parameter = json!({ "schema": { "type": "array", "items": { "type": "string" } } });
        parameter.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        parameter
    };
    for (old, new, expected) in [
        (typed("integer"), typed("string"), Compatible),
        (typed("boolean"), typed("string"), Compatible),
        (typed("string"), typed("integer"), Breaking),
        (typed("integer"), json!({ "schema": { "type": "string", "format": "date" } }), Breaking),
        (typed("string"), list(json!({})), Compatible),
        (typed("string"), list(json!({ "explode": false })), Breaking),
        (typed("string"), list(json!({ "style": "pipeDelimited" })), Breaking),
        (list(json!({})), typed("string"), Breaking),
        (typed("string"), json!({ "schema": { "type": "array", "minItems": 2, "items": { "type": "string" } } }), Breaking),
        // A default has no effect while the parameter is required.
        (
            json!({ "required": true, "schema": { "type": "integer" } }),
            json!({ "schema": { "type": "integer", "default": 15 } }),
            Compatible,
        ),
        (json!({ "schema": { "type": "integer" } }), json!({ "schema": { "type": "integer", "default": 15 } }), Unknown),
    ] {
        let report = compared(&query(&old), &query(&new));
        assert_eq!(Verdict::of(report.summary), expected, "{old} -> {new}: {:?}", super::lines(&report));
    }
}

#[test]
fn requiring_fewer_credentials_is_compatible_and_requiring_others_is_breaking() {
    let document = |security: Value| json!({ "openapi": "3.0.3", "info": {}, "paths": { "/a": { "get": { "security": security, "responses": {} } } } });
    for (old, new, expected) in [
        (json!([{ "k": [], "l": [] }]), json!([{ "k": [] }]), Compatible),
        (json!([{ "k": [] }]), json!([{ "k": [], "l": [] }]), Breaking),
        (json!([{ "k": ["s", "t"], "l": [] }]), json!([{ "k": ["s"] }]), Compatible),
        (json!([{ "k": ["s"], "l": [] }]), json!([{ "k": ["t"] }]), Breaking),
        (json!([{ "k": [], "l": [] }]), json!([{ "m": [] }]), Breaking),
    ] {
        let report = compared(&document(old.clone()), &document(new.clone()));
        assert_eq!(Verdict::of(report.summary), expected, "{old} -> {new}: {:?}", super::lines(&report));
    }
}

#[test]
fn removing_a_value_of_a_server_variable_is_breaking() {
    let document = |values: Value| json!({ "openapi": "3.0.3", "info": {}, "paths": {}, "servers": [{ "url": "https://{r}.x", "variables": { "r": { "default": "a", "enum": values } } }] });
    let verdict = |old, new| Verdict::of(compared(&document(old), &document(new)).summary);
    assert_eq!(verdict(json!(["a", "b"]), json!(["a"])), Breaking);
    assert_eq!(verdict(json!(["a"]), json!(["a", "b"])), Compatible);
}

#[test]
fn merge_keys_of_yaml_are_merged() {
    let document = |required: &str| {
        let text = format!(
            "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\nx-base: &base\n  type: object\n  required: [{required}]\n  \
             properties: {{a: {{type: string}}}}\npaths:\n  /a:\n    post:\n      requestBody: {{content: {{application/json: {{schema: {{<<: *base}}}}}}}}\n      \
             responses: {{}}\n"
        );
        Document::read(&text).expect("a document")
    };
    let report = diff(&document(""), &document("a"));
    let rules: Vec<_> = report.changes.iter().map(|change| change.rule.id).collect();
    assert_eq!(rules, ["extension-changed", "property-became-required"]);
}

#[test]
fn yaml_numbers_are_read_as_integers_or_floats_as_written() {
    let read = |number: &str| {
        Document::read(&format!("openapi: 3.0.3\npaths: {{}}\ncomponents: {{schemas: {{A: {{maximum: {number}}}}}}}")).expect("a document")
    };
    let number = |text: &str| read(text).root["components"]["schemas"]["A"]["maximum"].clone();
    assert_eq!(number("9223372036854775808"), json!(9_223_372_036_854_775_808_u64));
    assert_eq!((number("1"), number("1.0"), number("-1"), number("1e3")), (json!(1), json!(1.0), json!(-1), json!(1000.0)));
    assert_eq!(
        (number("0755"), number("1_000"), number("yes"), number("null")),
        (json!("0755"), json!("1_000"), json!("yes"), json!(null))
    );
}

/// Returns a document whose response schema is the given reference. `files` are the other files in the folder of the document.
fn with_files(reference: &str, files: &[(&str, &str)]) -> Document {
    let text = json!({ "openapi": "3.0.3", "info": {}, "paths": { "/a": { "get": { "responses": { "200": { "content": {
        "application/json": { "schema": { "$ref": reference } }
    } } } } } } });
    let mut load = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        found.ok_or_else(|| "there is no such file".to_owned())
    };
    Document::read_with(&text.to_string(), "openapi.json", &mut load).expect("a document")
}

#[test]
fn references_to_other_files_are_followed_inside_the_folder() {
    let rules = |old: &Document, new: &Document| -> Vec<_> {
        diff(old, new).changes.iter().map(|change| (change.place.clone(), change.rule.id)).collect()
    };
    let direct = |kind: &str| with_files("./pet.json", &[("pet.json", &format!("{{\"type\":\"{kind}\"}}"))]);
    assert_eq!(rules(&direct("string"), &direct("integer")), [("response 200".to_owned(), "type-changed")]);
    // The second file contains three references: one to a third file, one within the second file, and one back into the document.
    let chained = |kind: &str| {
        with_files(
            "schemas/pet.yaml#/Pet",
            &[
                (
                    "schemas/pet.yaml",
                    "Pet: { properties: { a: { $ref: '../types.json#/A' }, b: { $ref: '#/B' }, c: { $ref: '../openapi.json#/x' } } }\nB: { type: string }",
                ),
                ("types.json", &format!("{{\"A\":{{\"type\":\"{kind}\"}}}}")),
            ],
        )
    };
    assert_eq!(rules(&chained("string"), &chained("integer")), [("response 200 /a".to_owned(), "type-changed")]);
    for reference in ["none.json", "../pet.json", "/etc/pet.json", "https://example.com/pet.json"] {
        let document = with_files(reference, &[]);
        let report = diff(&document, &document);
        assert_eq!(report.changes.iter().map(|change| change.rule.id).collect::<Vec<_>>(), ["reference-not-followed"], "{reference}");
    }
}

#[test]
fn a_schema_is_found_by_its_identifier() {
    let document = |kind: &str, reference: &str| {
        json!({ "openapi": "3.1.0", "info": {}, "paths": { "/a": { "get": { "responses": { "200": { "content": { "application/json": {
            "schema": { "$ref": reference }
        } } } } } } }, "components": { "schemas": { "P": { "$id": "https://example.com/schemas/pet", "type": kind } } } })
    };
    for reference in ["https://example.com/schemas/pet", "pet"] {
        let report = compared(&document("string", reference), &document("integer", reference));
        assert_eq!(super::lines(&report), ["GET /a | response 200 | type-changed"], "{reference}");
    }
}
