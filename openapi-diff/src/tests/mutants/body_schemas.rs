//! Tests the report for edits of the schemas of request and response bodies.

use serde_json::json;

use super::{
    super::base_document,
    B, C,
    Done::{Gone, Named, Put},
    U, hold,
};

/// The expected lines for a change of the schema of a pet, which `GET /pets`, `GET /pets/{id}` and `POST /pets` return.
macro_rules! pets {
    ($path:literal, $rule:literal) => {
        &[
            concat!("GET /pets | response 200 /data/[]", $path, " | ", $rule),
            concat!("GET /pets/{id} | response 200 ", $path, " | ", $rule),
            concat!("POST /pets | response 201 ", $path, " | ", $rule),
        ]
    };
}

#[test]
fn changes_of_response_schemas_are_classed() {
    hold(
        &base_document::base(),
        vec![
            (Gone("/components/schemas/Pet/allOf/1/properties/state"), pets!("/state", "property-optional-removed"), B, C),
            (Put("/components/schemas/Pet/allOf/1/properties/born", json!({})), pets!("/born", "property-optional-added"), C, B),
            (Put("/components/schemas/Pet/allOf/1/properties/age/nullable", json!(false)), pets!("/age", "null-refused"), C, B),
            (Put("/components/schemas/Pet/allOf/1/properties/age/format", json!("int64")), pets!("/age", "format-widened"), B, C),
            (Gone("/components/schemas/Pet/allOf/1/properties/age/format"), pets!("/age", "format-removed"), B, C),
            (Put("/components/schemas/Pet/allOf/1/properties/age/type", json!("string")), pets!("/age", "type-changed"), B, B),
            (Gone("/components/schemas/Pet/allOf/1/properties/age/type"), pets!("/age", "type-widened"), B, C),
            (
                Put("/components/schemas/Pet/allOf/1/properties/channel/x-extensible-enum/-", json!("sms")),
                pets!("/channel", "open-value-added \"sms\""),
                C,
                C,
            ),
            (Gone("/components/schemas/Pet/allOf/1/properties/channel/x-extensible-enum"), pets!("/channel", "open-list-removed"), C, C),
            (
                Put(
                    "/components/schemas/Pet/allOf/1/properties/channel",
                    json!({ "anyOf": [{ "type": "string" }, { "type": "string", "enum": ["line", "mail", "sms"], "description": "Known." }] }),
                ),
                pets!("/channel", "open-value-added \"sms\""),
                C,
                C,
            ),
            (
                Put("/components/schemas/Pet/allOf/1/properties/channel/enum", json!(["line", "mail"])),
                pets!("/channel", "enum-closed"),
                C,
                B,
            ),
            (Named("/components/schemas/Pet/allOf/1/properties/channel/x-extensible-enum", "enum"), pets!("/channel", "enum-closed"), C, B),
            (Named("/components/schemas/Pet/allOf/1/properties/state/enum", "x-extensible-enum"), pets!("/state", "enum-opened"), B, C),
            (
                Put("/components/schemas/Pet/allOf/1/properties/state/enum/-", json!("gone")),
                pets!("/state", "enum-value-added \"gone\""),
                B,
                C,
            ),
            (Gone("/components/schemas/Pet/allOf/1/properties/state/enum"), pets!("/state", "enum-dropped"), B, C),
            (
                Put("/components/schemas/Pet/allOf/1/properties/parents/maxItems", json!(3)),
                pets!("/parents", "limit-loosened maxItems"),
                B,
                C,
            ),
            (
                Put("/components/schemas/Pet/allOf/1/properties/marks/additionalProperties", json!(true)),
                pets!("/marks", "additional-properties-unrestricted"),
                B,
                C,
            ),
            (
                Put("/components/schemas/Pet/allOf/1/properties/marks/additionalProperties/type", json!("integer")),
                pets!("/marks/{}", "type-changed"),
                B,
                B,
            ),
            (
                Put("/components/schemas/Named/allOf/0/properties/name/minLength", json!(0)),
                pets!("/name", "limit-loosened minLength"),
                B,
                C,
            ),
            (Put("/components/schemas/Named/allOf/0/required", json!([])), pets!("/name", "property-became-optional"), B, C),
            (Put("/components/schemas/Food/oneOf/-", json!({ "type": "string" })), pets!("/food/<string>", "variant-added oneOf"), B, C),
            (Gone("/components/schemas/Food/oneOf/0"), pets!("/food/<Fish>", "variant-removed oneOf"), C, B),
            (Put("/components/schemas/Food/discriminator/propertyName", json!("type")), pets!("/food", "discriminator-changed"), B, B),
            (Gone("/components/schemas/Food/discriminator/mapping/fish"), pets!("/food", "discriminator-value-removed fish"), C, B),
            (
                Put("/components/schemas/Food/discriminator/mapping/fish", json!("#/components/schemas/Meat")),
                pets!("/food", "discriminator-value-changed fish"),
                B,
                B,
            ),
            (Gone("/components/schemas/Food/discriminator"), pets!("/food", "discriminator-unnamed kind"), C, C),
            (Put("/components/schemas/Fish/properties/bones/type", json!("string")), pets!("/food/<Fish>/bones", "type-changed"), B, B),
            (Put("/components/schemas/Meat/properties/fat", json!({})), pets!("/food/<Meat>/fat", "closed-property-optional-added"), B, B),
            (
                Put("/components/schemas/Meat/additionalProperties", json!(true)),
                pets!("/food/<Meat>", "additional-properties-allowed"),
                B,
                C,
            ),
            (Put("/components/schemas/Pet/allOf/1/properties/state/x-order", json!(1)), pets!("/state", "extension-added x-order"), U, U),
            (Put("/components/schemas/Pet/allOf/1/properties/state/deprecated", json!(true)), pets!("/state", "deprecated"), C, C),
            (Put("/components/schemas/Pet/allOf/1/properties/state/writeOnly", json!(true)), pets!("/state", "write-only-added"), B, C),
            (
                Put("/components/schemas/Pet/allOf/1/properties/food/$ref", json!("#/components/schemas/Fish2")),
                pets!("/food", "reference-broken #/components/schemas/Fish2"),
                U,
                U,
            ),
        ],
    );
}

#[test]
fn changes_of_request_schemas_are_classed() {
    hold(
        &base_document::base(),
        vec![
            (
                Gone("/components/schemas/NewPet/properties/labels"),
                &["POST /pets | request body /labels | closed-property-optional-removed"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/properties/colour", json!({})),
                &["POST /pets | request body /colour | closed-property-optional-added"],
                C,
                B,
            ),
            (
                Put("/components/schemas/NewPet/required/-", json!("labels")),
                &["POST /pets | request body /labels | property-became-required"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/required/-", json!("id")),
                &["POST /pets | request body /id | property-became-required"],
                C,
                C,
            ),
            (
                Put("/components/schemas/NewPet/properties/id/maxLength", json!(5)),
                &["POST /pets | request body /id | limit-tightened maxLength"],
                C,
                C,
            ),
            (Gone("/components/schemas/NewPet/properties/id/readOnly"), &["POST /pets | request body /id | read-only-removed"], C, B),
            (
                Gone("/components/schemas/NewPet/properties/secret/writeOnly"),
                &["POST /pets | request body /secret | write-only-removed"],
                C,
                C,
            ),
            (Gone("/components/schemas/NewPet/properties/name/pattern"), &["POST /pets | request body /name | pattern-removed"], C, B),
            (
                Put("/components/schemas/NewPet/properties/name/pattern", json!("^[a-z]*$")),
                &["POST /pets | request body /name | constraint-accepts-more pattern"],
                U,
                B,
            ),
            (
                Gone("/components/schemas/NewPet/properties/weight/exclusiveMinimum"),
                &["POST /pets | request body /weight | limit-loosened minimum"],
                C,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/weight/multipleOf", json!(1)),
                &["POST /pets | request body /weight | limit-tightened multipleOf"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/properties/weight/multipleOf", json!(0.3)),
                &["POST /pets | request body /weight | constraint-moved multipleOf"],
                B,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/weight/type", json!("integer")),
                &["POST /pets | request body /weight | type-narrowed"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/properties/labels/uniqueItems", json!(false)),
                &["POST /pets | request body /labels | constraint-removed uniqueItems"],
                C,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/hook/format", json!("uri-reference")),
                &["POST /pets | request body /hook | format-changed"],
                B,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/hook/nullable", json!(true)),
                &["POST /pets | request body /hook | null-allowed"],
                C,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/mood/not/enum", json!(["sad", "bad"])),
                &["POST /pets | request body /mood | constraint-tightened not"],
                B,
                C,
            ),
            (Gone("/components/schemas/NewPet/properties/mood/not"), &["POST /pets | request body /mood | constraint-removed not"], C, B),
            (
                Put("/components/schemas/NewPet/additionalProperties", json!(true)),
                &["POST /pets | request body | additional-properties-allowed"],
                C,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/name/enum", json!(["a"])),
                &["POST /pets | request body /name | enum-introduced"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/properties/name/minLength", json!("many")),
                &["POST /pets | request body /name | keyword-added minLength"],
                U,
                U,
            ),
            (
                Put("/components/schemas/NewPet/anyOf", json!([{ "required": ["hook"] }])),
                &["POST /pets | request body /hook | property-became-required"],
                B,
                C,
            ),
        ],
    );
}
