//! Tests how a comparison reports references that lead to no target in one of the documents, loops of references, and anchors.

use serde_json::json;

use super::{
    super::{base_document, compared, line},
    B, C,
    Done::{Gone, Put},
    U, hold,
    schema_composition::answering,
};

#[test]
fn a_reference_broken_in_one_document_is_classified_as_unknown() {
    let mut document = base_document::base();
    document["components"]["requestBodies"] = json!({ "Pet": document["paths"]["/pets"]["post"]["requestBody"] });
    document["paths"]["/pets"]["post"]["requestBody"] = json!({ "$ref": "#/components/requestBodies/Pet" });
    document["components"]["headers"] = json!({ "Size": { "required": true, "schema": { "type": "integer" } } });
    document["paths"]["/pets"]["get"]["responses"]["200"]["headers"]["x-size"] = json!({ "$ref": "#/components/headers/Size" });
    let elsewhere = || json!({ "$ref": "elsewhere.yaml#/It" });
    hold(
        &document,
        vec![
            (
                Gone("/components/parameters/Limit"),
                &["GET /pets | query parameter limit | reference-broken #/components/parameters/Limit"],
                U,
                U,
            ),
            (Put("/paths/~1pets/get/parameters/-", elsewhere()), &["GET /pets | parameter | reference-broken elsewhere.yaml#/It"], U, U),
            (Gone("/components/requestBodies/Pet"), &["POST /pets | request body | reference-broken #/components/requestBodies/Pet"], U, U),
            (
                Gone("/components/headers/Size"),
                &["GET /pets | response 200 header x-size | reference-broken #/components/headers/Size"],
                U,
                U,
            ),
            (
                Put("/paths/~1pets/get/responses/200/headers/x-more", elsewhere()),
                &[
                    "GET /pets | response 200 header x-more | header-optional-added",
                    "GET /pets | response 200 header x-more | reference-broken elsewhere.yaml#/It",
                ],
                C,
                B,
            ),
            (
                Put("/paths/~1pets~1{id}/delete/requestBody", elsewhere()),
                &[
                    "DELETE /pets/{id} | request body | body-optional-added",
                    "DELETE /pets/{id} | request body | reference-broken elsewhere.yaml#/It",
                ],
                C,
                B,
            ),
            (
                Put("/paths/~1cats", elsewhere()),
                &["/cats | operation | path-added", "/cats | operation | reference-broken elsewhere.yaml#/It"],
                C,
                C,
            ),
            (
                Put("/components/schemas/Food", json!({ "allOf": [{ "$ref": "#/components/schemas/Food" }] })),
                &[
                    "GET /pets | response 200 /data/[]/food | reference-broken #/components/schemas/Food",
                    "GET /pets/{id} | response 200 /food | reference-broken #/components/schemas/Food",
                    "POST /pets | response 201 /food | reference-broken #/components/schemas/Food",
                ],
                U,
                U,
            ),
        ],
    );
}

#[test]
fn one_of_null_and_a_broken_reference_is_classified_as_unknown() {
    let document = answering(
        "3.1.0",
        json!({ "X": { "oneOf": [{ "$ref": "#/components/schemas/Y" }, { "type": "null" }] }, "Y": { "type": "object", "properties": { "a": {} } } }),
    );
    hold(&document, vec![(Gone("/components/schemas/Y"), &["POST /x | response 200 | reference-broken #/components/schemas/Y"], U, U)]);
}

#[test]
fn reference_loops_are_reported_as_broken_references_with_notices() {
    let [plain, looped, all] = [
        json!({ "X": { "$ref": "#/components/schemas/Y" }, "Y": { "type": "string" } }),
        json!({ "X": { "$ref": "#/components/schemas/Y" }, "Y": { "$ref": "#/components/schemas/X" } }),
        json!({ "X": { "$ref": "#/components/schemas/Y" }, "Y": { "allOf": [{ "allOf": [{ "$ref": "#/components/schemas/Y" }] }] } }),
    ]
    .map(|schemas| answering("3.1.0", schemas));
    for (loops, count) in [(looped, 2), (all, 1)] {
        let report = compared(&plain, &loops);
        let found: Vec<_> = report.changes.iter().map(|change| (change.rule.id, change.class)).collect();
        assert_eq!(found, [("reference-broken", U)]);
        let noticed = report.notices.iter().filter(|notice| notice.starts_with("new: ") && notice.ends_with("leads back to itself"));
        assert_eq!(noticed.count(), count, "{:?}", report.notices);
        super::super::invariants::hold_mirrored(&report, &compared(&loops, &plain));
        // If both documents contain the loop, the comparison ends and finds no change.
        assert_eq!(super::super::lines(&compared(&loops, &loops)), Vec::<String>::new());
    }
}

#[test]
fn references_by_anchor_are_followed_in_openapi_3_1_only() {
    let schemas = json!({
        "X": { "properties": { "here": { "$ref": "#here" }, "twice": { "$ref": "#twice" } } },
        "Y": { "properties": { "y": { "$anchor": "here", "type": "string" } } },
        "One": { "$anchor": "twice" },
        "Other": { "$anchor": "twice" },
    });
    let typed = || Put("/components/schemas/Y/properties/y/type", json!("integer"));
    hold(&answering("3.1.0", schemas.clone()), vec![(typed(), &["POST /x | response 200 /here | type-changed"], B, B)]);
    let document = answering("3.1.0", schemas.clone());
    assert!(compared(&document, &document).notices.contains(&"old: the reference #twice leads nowhere".to_owned()));
    // OpenAPI 3.0 has no anchors, so the reference by anchor does not lead to the component, and the component counts as unused.
    let document = answering("3.0.3", schemas);
    let mut changed = document.clone();
    typed().to(&mut changed);
    let found: Vec<_> = compared(&document, &changed).changes.iter().map(line).collect();
    assert_eq!(found, ["document | components/schemas/Y | unused-component-changed"]);
}
