//! Mutation test: changes each value of a document, one at a time, and expects a change in the report.
//!
//! For speed, each operation is tested in a separate document, and each component schema in the smallest of these documents that contains
//! it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{base_document, committed, document};
use crate::{diff, json_values::ANNOTATIONS, references::DocumentIndex};

/// Collects the JSON pointers of all leaves: scalar values, empty lists and empty objects, without annotations.
fn leaves(value: &Value, pointer: &str, names: bool, found: &mut Vec<String>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, member) in object {
                // The keys of some objects, such as `properties`, are names that the author chose. They are kept even if they are spelled
                // like annotations.
                if names || !ANNOTATIONS.contains(&key.as_str()) {
                    let named =
                        !names && ["properties", "headers", "responses", "content", "schemas", "patternProperties"].contains(&key.as_str());
                    // The values under `scopes` are descriptions, which are not compared.
                    if !names && key == "scopes" {
                        continue;
                    }
                    leaves(member, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), named, found);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (position, item) in items.iter().enumerate() {
                leaves(item, &format!("{pointer}/{position}"), false, found);
            }
        }
        _ => found.push(pointer.to_owned()),
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.0),
        Value::String(text) => json!(format!("{text}x")),
        _ => json!({ "x-changed": true }),
    }
}

/// Edits each leaf (scalar or empty value) below a pointer, one at a time. Returns the leaves whose edit causes no change in the report.
fn unreported_values(whole: &Value, below: &str, checked: &mut usize) -> Vec<String> {
    let mut found = Vec::new();
    let names = below.ends_with("/schemas") || below.ends_with("/paths");
    leaves(whole.pointer(below).expect("a part of the document"), below, names, &mut found);
    let (whole, mut mutated) = (document(whole), document(whole));
    let mut silent = Vec::new();
    for pointer in found {
        let leaf = mutated.root.pointer_mut(&pointer).expect("a leaf");
        let kept = leaf.clone();
        *leaf = changed(&kept);
        *checked += 1;
        // The value of `openapi` is the version of OpenAPI. The report need not show an edit of this value.
        if pointer != "/openapi" && diff(&whole, &mutated).changes.is_empty() {
            silent.push(format!("{pointer}: {kept}"));
        }
        *mutated.root.pointer_mut(&pointer).expect("a leaf") = kept;
    }
    silent
}

/// Returns the document `whole`, reduced to one of its operations and to the component schemas that this operation needs.
fn with_one_operation(whole: &Value, path: &str, method: &str) -> Value {
    let item = json!({ (method): whole["paths"][path][method] });
    let mut small = whole.clone();
    small["paths"] = json!({ (path): item });
    let read = document(&small);
    let reached = DocumentIndex::new(&read).reached(&[&read.root["paths"]]);
    let schemas = small["components"]["schemas"].as_object().into_iter().flatten();
    let kept: Map<_, _> = schemas
        .filter(|(name, _)| reached.contains(&format!("#/components/schemas/{name}")))
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect();
    small["components"]["schemas"] = Value::Object(kept);
    small
}

#[test]
fn each_changed_value_of_the_committed_documents_is_reported() {
    let checks = committed().map(|whole| {
        std::thread::spawn(move || {
            let mut small: Vec<(String, String, Value)> = Vec::new();
            for (path, item) in whole["paths"].as_object().expect("paths") {
                for method in item.as_object().expect("operations").keys() {
                    small.push((path.clone(), method.clone(), with_one_operation(&whole, path, method)));
                }
            }
            small.sort_by_key(|(.., document)| document.to_string().len());
            let (mut checked, mut missed, mut done) = (0, Vec::new(), BTreeSet::new());
            for (path, method, document) in &small {
                let operation = format!("/paths/{}/{method}", path.replace('/', "~1"));
                missed.extend(unreported_values(document, &operation, &mut checked));
                for name in document["components"]["schemas"].as_object().expect("schemas").keys() {
                    if done.insert(name.clone()) {
                        missed.extend(unreported_values(document, &format!("/components/schemas/{name}"), &mut checked));
                    }
                }
            }
            let unreached: Vec<_> =
                whole["components"]["schemas"].as_object().expect("schemas").keys().filter(|name| !done.contains(*name)).collect();
            assert!(unreached.is_empty(), "{unreached:?}");
            let mut rest = small[0].2.clone();
            rest["components"]["schemas"] = json!({});
            rest["paths"] = json!({});
            missed.extend(unreported_values(&rest, "", &mut checked));
            (checked, missed)
        })
    });
    for check in checks {
        let (checked, missed) = check.join().expect("the check ends");
        assert!(checked > 1000, "{checked}");
        assert!(missed.is_empty(), "{} of {checked} are silent:\n{}", missed.len(), missed.join("\n"));
    }
}

#[test]
fn each_changed_value_of_the_base_document_is_reported() {
    let mut checked = 0;
    for whole in [base_document::base(), base_document::base_3_1()] {
        let missed = unreported_values(&whole, "", &mut checked);
        assert!(missed.is_empty(), "{} are silent:\n{}", missed.len(), missed.join("\n"));
    }
    assert!(checked > 250, "{checked}");
}
