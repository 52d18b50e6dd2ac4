//! Robustness tests: invalid, large, deeply nested and recursive documents, and random edits (fuzzing).

use std::fmt::Write;

use serde_json::{Value, json};

use super::{base_document, committed, compared, document, invariants::hold_mirrored, lines};
use crate::{Document, Report, Unreadable, diff, semantics::SeededRandom};

/// Returns the changes of a report as lines. Lines about references that were not loaded are left out, because these are reported even for
/// equal documents.
fn followed(report: &Report) -> Vec<String> {
    lines(report).into_iter().filter(|line| !line.contains("reference-not-followed")).collect()
}

/// Returns a random value inside a value, or the value itself.
fn somewhere<'v>(value: &'v mut Value, dice: &mut SeededRandom) -> &'v mut Value {
    let inside = match value {
        Value::Object(object) => object.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if inside == 0 || dice.roll(7) == 0 {
        return value;
    }
    let position = dice.roll(inside);
    let inner = match value {
        Value::Object(object) => object.values_mut().nth(position),
        value => value.get_mut(position),
    };
    somewhere(inner.expect("something inside"), dice)
}

fn oddity(dice: &mut SeededRandom) -> Value {
    let references = ["#/components/schemas/Pet", "#/components/schemas/Nowhere", "#", "other.yaml#/A", "#/paths/~1pets", "#/%zz", ""];
    match dice.roll(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1.5e300),
        3 => json!("nonsense {"),
        4 => json!([]),
        5 => json!({}),
        6 => json!([null, 1, "a", {}]),
        7 => json!({ "allOf": [{ "$ref": references[dice.roll(7)] }, { "type": ["string", 3] }] }),
        8 => {
            json!({ "oneOf": [{ "$ref": references[dice.roll(7)] }, false, { "type": "object" }], "discriminator": { "mapping": { "a": "Pet", "b": 1 } } })
        }
        9 => json!({ "type": "object", "properties": { "self": { "$ref": "#/components/schemas/Pet" } }, "required": ["self", 7] }),
        10 => json!({ "not": { "$ref": references[dice.roll(7)] }, "enum": {}, "minimum": "0", "nullable": "yes" }),
        _ => json!({ "$ref": references[dice.roll(7)] }),
    }
}

/// Makes one to four random edits in a document.
fn mutate(document: &mut Value, dice: &mut SeededRandom) {
    for _ in 0..=dice.roll(4) {
        let kind = dice.roll(4);
        let donor = if kind == 2 { somewhere(document, dice).clone() } else { Value::Null };
        let place = somewhere(document, dice);
        match (kind, place) {
            (0, Value::Object(object)) if !object.is_empty() => {
                let name = object.keys().nth(dice.roll(object.len())).cloned().expect("a member");
                object.remove(&name);
            }
            (1, Value::Object(object)) => {
                _ = object.insert(["$ref", "type", "x-new", "required", "allOf", "get"][dice.roll(6)].to_owned(), oddity(dice))
            }
            (2, place) => *place = donor,
            (_, place) => *place = oddity(dice),
        }
    }
    // A document without a version of OpenAPI would be refused, so the version is set again.
    if !document.is_object() {
        *document = json!({});
    }
    document["openapi"] = ["3.0.3", "3.1.0"][dice.roll(2)].into();
}

#[test]
fn random_mutations_cause_no_crash_and_each_change_has_a_mirror() {
    let mut dice = SeededRandom(0x5EED);
    let bases = [document(&base_document::base()), document(&base_document::base_3_1())];
    for round in 0..5_000 {
        let old = &bases[round % 2];
        let mut new = old.clone();
        mutate(&mut new.root, &mut dice);
        let there = diff(old, &new);
        // The reverse comparison and the comparison of the new document with itself take long, so they are made only for each twentieth
        // mutation.
        if round % 20 == 0 {
            hold_mirrored(&there, &diff(&new, old));
            assert_eq!(followed(&diff(&new, &new)), Vec::<String>::new(), "round {round}");
        }
    }
}

#[test]
fn random_mutations_of_the_committed_documents_have_mirrors() {
    let mut dice = SeededRandom(0xB16);
    let [a, b] = committed();
    for round in 0..12 {
        let mut new = b.clone();
        mutate(&mut new, &mut dice);
        hold_mirrored(&compared(&a, &new), &compared(&new, &a));
        assert_eq!(followed(&compared(&new, &new)), Vec::<String>::new(), "round {round}");
    }
}

/// Returns two documents with one operation, whose response has the schema `S0`, the first of a chain. The documents differ in the last
/// schema of the chain.
fn chained(schema: impl Fn(usize) -> Value, count: usize) -> [Value; 2] {
    ["string", "integer"].map(|last| {
        let mut schemas: serde_json::Map<_, _> = (0..count).map(|number| (format!("S{number}"), schema(number))).collect();
        schemas.insert(format!("S{count}"), json!({ "type": "object", "properties": { "end": { "type": last } } }));
        json!({
            "openapi": "3.0.3",
            "paths": { "/a": { "get": { "responses": { "200": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/S0" } } } } } } } },
            "components": { "schemas": schemas },
        })
    })
}

fn to(number: usize) -> Value {
    json!({ "$ref": format!("#/components/schemas/S{number}") })
}

#[test]
fn large_and_recursive_schemas_are_compared_within_limits() {
    let shapes: [(&str, [Value; 2]); 5] = [
        ("a chain", chained(|number| json!({ "properties": { "next": to(number + 1) } }), 500)),
        ("a doubling", chained(|number| json!({ "properties": { "left": to(number + 1), "right": to(number + 1) } }), 40)),
        ("a doubling of allOf", chained(|number| json!({ "allOf": [to(number + 1), to(number + 1)] }), 40)),
        (
            "a web",
            chained(
                |_| json!({ "properties": (0..=30).map(|other| (format!("p{other}"), to(other))).collect::<serde_json::Map<_, _>>() }),
                30,
            ),
        ),
        ("references alone", chained(|number| to(number + 1), 1_000)),
    ];
    for (what, [old, new]) in shapes {
        let there = compared(&old, &new);
        assert!(!there.changes.is_empty(), "{what}");
        hold_mirrored(&there, &compared(&new, &old));
    }
}

#[test]
fn recursive_references_are_compared() {
    for (what, first, second) in [
        ("itself", json!({ "$ref": "#/components/schemas/S0" }), json!({})),
        ("each other", json!({ "$ref": "#/components/schemas/S1" }), json!({ "$ref": "#/components/schemas/S0" })),
        ("allOf of itself", json!({ "allOf": [{ "$ref": "#/components/schemas/S0" }] }), json!({})),
        ("items of itself", json!({ "type": "array", "items": { "$ref": "#/components/schemas/S0" } }), json!({})),
        ("not itself", json!({ "not": { "$ref": "#/components/schemas/S0" } }), json!({})),
    ] {
        let [mut old, mut new] = chained(|_| Value::Null, 1);
        for document in [&mut old, &mut new] {
            document["components"]["schemas"]["S0"] = first.clone();
            document["components"]["schemas"]["S1"] = second.clone();
        }
        assert_eq!(lines(&compared(&old, &old)), Vec::<String>::new(), "{what}");
        new["components"]["schemas"]["S0"]["minLength"] = 3.into();
        hold_mirrored(&compared(&old, &new), &compared(&new, &old));
    }
}

#[test]
fn broken_references_are_notices() {
    let mut broken = base_document::base();
    broken["paths"]["/pets"]["get"]["parameters"][0] = json!({ "$ref": "#/components/parameters/Gone" });
    broken["paths"]["/pets/{id}"]["get"]["responses"]["200"] = json!({ "$ref": "answers.yaml#/Pet" });
    let report = compared(&broken, &broken);
    assert_eq!(lines(&report), ["document | references | reference-not-followed answers.yaml#/Pet"]);
    assert_eq!(report.summary.unknown, 1);
    let said = report.notices.join("\n");
    assert!(said.contains("old: the reference #/components/parameters/Gone leads nowhere"), "{said}");
    assert!(said.contains("new: the reference answers.yaml#/Pet is not followed: only files below the folder"), "{said}");
}

#[test]
fn deep_nesting_is_a_notice_and_changes_in_it_are_found() {
    let nested = |depth: usize, last: &str| {
        let (mut text, mut end) = (String::new(), String::new());
        for _ in 0..depth {
            text.push_str(r#"{"items":"#);
            end.push('}');
        }
        write!(text, r#"{{"type":"{last}"}}{end}"#).expect("a text");
        let text = format!(r#"{{"openapi":"3.0.0","paths":{{}},"components":{{"schemas":{{"Deep":{text}}}}}}}"#);
        Document::read(&text).expect("a document")
    };
    for depth in [80, 98, 5_000, 100_000] {
        let (old, new) = (nested(depth, "string"), nested(depth, "number"));
        assert_eq!(diff(&old, &old).changes, [], "{depth}");
        assert_eq!(diff(&old, &new).changes.len(), 1, "{depth}");
        assert_eq!(depth > 90, !old.notices.is_empty(), "{depth}");
    }
}

#[test]
fn a_text_that_is_no_openapi_document_is_refused() {
    let said = |text: &str| Document::read(text).expect_err("no document").to_string();
    assert!(matches!(Document::read(" \n"), Err(Unreadable::Empty)));
    assert!(said("{\n  \"openapi\": ,\n}").contains("line 2 column 14"), "{}", said("{\n  \"openapi\": ,\n}"));
    assert!(said("openapi: 3.0.3\n  paths: {}").contains("line 2"), "{}", said("openapi: 3.0.3\n  paths: {}"));
    assert!(said("[]").contains("not an object"));
    assert!(said("{}").contains("`openapi` is missing"));
    assert!(said("openapi: 3.0").contains("not a text"));
    assert!(said("swagger: \"2.0\"").contains("Swagger"));
    assert!(said("openapi: 3.2.0").contains("3.2.0; 3.0 and 3.1"));
    assert!(said("a: &a [*a]\nb: [").contains("YAML"));
}

#[test]
fn yaml_and_json_give_the_same_document() {
    let json = base_document::base_3_1();
    let yaml = serde_saphyr::to_string(&json).expect("YAML").replace("'200':", "200:");
    let read = Document::read(&yaml).expect("a document");
    assert_eq!(diff(&document(&json), &read).changes, []);
    let twice = Document::read(r#"{"openapi":"3.0.0","paths":{},"paths":{}}"#).expect("a document");
    assert_eq!(twice.notices, [": the key `paths` occurs twice; the last value is used"]);
}
