//! Tests the invariants of each comparison: equal documents have no change, each change has a mirror in the other direction, and
//! fingerprints are stable and unique.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::{Change, Report, base_document, committed, compared, lines};
use crate::report::unnamed;

/// Counts the changes of a report by a key that leaves out fingerprint, class and wording. With `mirrored`, the key is that of the expected
/// change in the other direction: it has the mirror rule, and the old and the new value are exchanged.
fn counted(report: &Report, mirrored: bool) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for change in &report.changes {
        let (rule, old, new) =
            if mirrored { (change.rule.mirror, &change.new, &change.old) } else { (change.rule, &change.old, &change.new) };
        let operation = change.operation.as_deref().map(unnamed);
        let Change { place, direction, detail, covers, .. } = change;
        let key = format!("{operation:?} {place} {direction:?} {} {detail:?} {old:?} {new:?} {covers:?}", rule.id);
        *counted.entry(key).or_default() += 1;
    }
    counted
}

/// Asserts that each of the two reports is the mirror of the other, and that `mirrored` turns the report `there` into the report `back`.
pub(super) fn hold_mirrored(there: &Report, back: &Report) {
    assert_eq!(counted(there, true), counted(back, false));
    let mirrored = there.mirrored();
    let by_fingerprint = |report: &Report| -> BTreeMap<_, _> {
        report.changes.iter().map(|change| (change.fingerprint.clone(), (change.class, change.rule.id))).collect()
    };
    assert_eq!(by_fingerprint(&mirrored), by_fingerprint(back));
    let called = |report: &Report| -> BTreeMap<_, _> {
        let change =
            |change: &Change| (change.fingerprint.clone(), (change.operation.clone(), change.operation_id.clone(), change.back.clone()));
        report.changes.iter().map(change).collect()
    };
    assert_eq!(called(&mirrored), called(back));
    assert_eq!(mirrored.summary, back.summary);
}

#[test]
fn equal_documents_have_no_difference() {
    for document in committed().into_iter().chain([base_document::base(), base_document::base_3_1()]) {
        assert_eq!(lines(&compared(&document, &document)), Vec::<String>::new());
    }
}

#[test]
fn comparing_in_the_other_direction_mirrors_each_change() {
    let [a, b] = committed();
    for (old, new) in [(a, b), (base_document::base(), base_document::base_3_1())] {
        let (there, back) = (compared(&old, &new), compared(&new, &old));
        hold_mirrored(&there, &back);
        assert!(!there.changes.is_empty());
    }
}

#[test]
fn fingerprints_are_unique() {
    let [a, b] = committed();
    let report = compared(&a, &b);
    let unique: HashSet<_> = report.changes.iter().map(|change| &change.fingerprint).collect();
    assert_eq!(unique.len(), report.changes.len());
}

#[test]
fn a_fingerprint_is_stable_when_other_parts_change() {
    let (old, mut new) = (base_document::base(), base_document::base());
    new["components"]["schemas"]["Pet"]["allOf"][1]["properties"]["age"]["type"] = "string".into();
    new["components"]["schemas"]["Pet"]["description"] = "Another text.".into();
    let of = |report: &Report| -> HashSet<String> {
        let typed = |change: &&Change| change.rule.id == "type-changed";
        report.changes.iter().filter(typed).map(|change| change.fingerprint.clone()).collect()
    };
    let before = of(&compared(&old, &new));
    assert_eq!(before.len(), 3);
    // Changes other parts of the new document, and reverses two of its lists. The fingerprints of the changed types must stay the same.
    new["paths"]["/cats"] = json!({ "get": { "responses": {} } });
    new["paths"]["/pets"]["get"]["parameters"].as_array_mut().expect("a list").reverse();
    new["components"]["schemas"]["Pet"]["allOf"].as_array_mut().expect("a list").reverse();
    new["components"]["schemas"]["Pet"]["allOf"][0]["properties"]["aaa"] = json!({ "type": "string" });
    new["paths"]["/pets"]["get"]["operationId"] = "allPets".into();
    new["paths"]["/pets"]["get"]["responses"]["200"]["content"]["text/csv"] = json!({});
    assert_eq!(of(&compared(&old, &new)), before);
}

#[test]
fn fingerprints_do_not_depend_on_names_of_path_parameters() {
    let document = |name: &str, length: u32| {
        let path = format!("/x/{{{name}}}");
        json!({ "openapi": "3.1.0", "info": {}, "paths": { (path): { "get": {
            "operationId": format!("of_{name}"),
            "parameters": [{ "name": name, "in": "path", "required": true, "schema": { "maxLength": length } }],
        } } }, "webhooks": { "w": { "post": { "operationId": "told", "x-n": length } } } })
    };
    let of = |report: &Report| -> Vec<String> {
        report.changes.iter().filter(|change| change.rule.id == "limit-tightened").map(|change| change.fingerprint.clone()).collect()
    };
    let plain = of(&compared(&document("a", 6), &document("a", 5)));
    let report = compared(&document("a", 6), &document("b", 5));
    assert_eq!((plain.len(), &plain), (1, &of(&report)));
    assert_eq!(plain, of(&compared(&document("b", 6), &document("b", 5))));
    let called = |report: &Report| -> Vec<_> {
        let name = |change: &Change| change.operation.as_ref().map(|name| format!("{name} {:?}", change.operation_id));
        let mut names: Vec<_> = report.changes.iter().filter_map(name).collect();
        names.dedup();
        names
    };
    assert_eq!(called(&report), ["GET /x/{a} Some(\"of_b\")", "webhook w POST Some(\"told\")"]);
    assert_eq!(called(&report.mirrored()), ["GET /x/{b} Some(\"of_a\")", "webhook w POST Some(\"told\")"]);
    hold_mirrored(&report, &compared(&document("b", 5), &document("a", 6)));
}

#[test]
fn edits_that_do_not_change_the_meaning_are_not_reported() {
    let (old, mut new) = (base_document::base(), base_document::base());
    let schemas = &mut new["components"]["schemas"];
    // None of these edits may be reported: a schema repeats a property of its base schema, lists change their order, annotations change,
    // and 100 becomes 100.0.
    schemas["Pet"]["allOf"][1]["properties"]["name"] = schemas["Named"]["allOf"][0]["properties"]["name"].clone();
    schemas["Pet"]["allOf"][1]["required"] = json!(["name", "food", "id"]);
    schemas["Pet"]["allOf"][1]["properties"]["age"]["description"] = "In years.".into();
    schemas["Food"]["oneOf"].as_array_mut().expect("a list").reverse();
    new["paths"]["/pets"]["get"]["summary"] = "All pets.".into();
    new["paths"]["/pets"]["get"]["parameters"][1]["example"] = json!(["a"]);
    new["info"]["title"] = "All pets".into();
    new["components"]["parameters"]["Limit"]["schema"]["maximum"] = json!(100.0);
    assert_eq!(lines(&compared(&old, &new)), Vec::<String>::new());
}

#[test]
fn a_property_named_like_an_annotation_is_a_property() {
    let (mut old, mut new) = (base_document::base(), base_document::base());
    old["components"]["schemas"]["Error"]["properties"]["description"] = json!({ "type": "string" });
    new["components"]["schemas"]["Error"]["properties"]["description"] = json!({ "type": "integer" });
    assert_eq!(compared(&old, &new).changes.len(), 3);
}

#[test]
fn variants_of_a_discriminator_without_one_of_are_compared() {
    let (mut old, mut new) = (base_document::base(), base_document::base());
    for document in [&mut old, &mut new] {
        let schemas = &mut document["components"]["schemas"];
        schemas["Food"] = json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } },
            "discriminator": { "propertyName": "kind" } });
        schemas["Fish"] =
            json!({ "allOf": [{ "$ref": "#/components/schemas/Food" }, { "properties": { "bones": { "type": "boolean" } } }] });
        schemas["Meat"] = json!({ "allOf": [{ "$ref": "#/components/schemas/Food" }] });
    }
    new["components"]["schemas"]["Fish"]["allOf"][1]["properties"]["bones"]["type"] = "string".into();
    let found = lines(&compared(&old, &new));
    assert!(found.contains(&"GET /pets/{id} | response 200 /food/<Fish>/bones | type-changed".to_owned()), "{found:#?}");
    assert_eq!(found.len(), 3);
}
