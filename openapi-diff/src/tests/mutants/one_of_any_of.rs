//! Tests the report for edits of `oneOf` and `anyOf`: added, removed and renamed variants.

use serde_json::json;

use super::{B, C, Done::Put, U, hold, schema_composition::answering};

#[test]
fn a_schema_replaced_by_one_of_or_any_of_is_compared_as_variant() {
    let base = answering(
        "3.1.0",
        json!({
            "X": { "properties": {
                "one": { "$ref": "#/components/schemas/Y" },
                "text": { "type": "string", "maxLength": 5 },
                "both": { "type": ["string", "integer"] },
                "any": {},
                "lost": { "$ref": "#/components/schemas/Nowhere" },
            } },
            "Y": { "type": "object", "properties": { "y": { "type": "string" } } },
            "Z": { "type": "object", "properties": { "z": { "type": "string" } } },
        }),
    );
    let (y, z) = (json!({ "$ref": "#/components/schemas/Y" }), json!({ "$ref": "#/components/schemas/Z" }));
    hold(
        &base,
        vec![
            (
                Put("/components/schemas/X/properties/one", json!({ "oneOf": [y, z] })),
                &["POST /x | response 200 /one/<Z> | variant-added oneOf", "POST /x | response 200 /one | variants-overlap"],
                B,
                C,
            ),
            (Put("/components/schemas/X/properties/one", json!({ "anyOf": [y] })), &[], C, C),
            (
                Put("/components/schemas/X/properties/one", json!({ "oneOf": [z, { "type": "null" }, { "type": "string" }] })),
                &[
                    "POST /x | response 200 /one/<Y> | variant-removed oneOf",
                    "POST /x | response 200 /one/<Z> | variant-added oneOf",
                    "POST /x | response 200 /one/<null> | variant-added oneOf",
                    "POST /x | response 200 /one/<string> | variant-added oneOf",
                ],
                C,
                B,
            ),
            (
                Put(
                    "/components/schemas/X/properties/text",
                    json!({ "oneOf": [{ "type": "string", "maxLength": 6 }, { "type": "integer" }] }),
                ),
                &[
                    "POST /x | response 200 /text/<string> | limit-loosened maxLength",
                    "POST /x | response 200 /text/<integer> | variant-added oneOf",
                ],
                B,
                C,
            ),
            (
                Put("/components/schemas/X/properties/both", json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] })),
                &["POST /x | response 200 /both | restated anyOf"],
                C,
                C,
            ),
            (
                Put("/components/schemas/X/properties/any", json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] })),
                &["POST /x | response 200 /any | constraint-added anyOf"],
                C,
                B,
            ),
            (
                Put(
                    "/components/schemas/X/properties/lost",
                    json!({ "oneOf": [{ "$ref": "#/components/schemas/Nowhere" }, { "type": "null" }] }),
                ),
                &["POST /x | response 200 /lost/<null> | variant-added oneOf", "POST /x | response 200 /lost | variants-may-overlap"],
                B,
                C,
            ),
        ],
    );
}

#[test]
fn keywords_beside_one_of_or_any_of_are_compared() {
    let y = json!({ "$ref": "#/components/schemas/Y" });
    let base = answering(
        "3.0.3",
        json!({
            "X": { "properties": { "one": y, "kind": { "type": "string", "enum": ["a", "b"] }, "mixed": { "type": "string", "enum": ["a"] } } },
            "Y": { "type": "object", "required": ["k"], "properties": { "k": { "type": "string" } } },
        }),
    );
    let put = |value| Put("/components/schemas/X/properties/one", value);
    hold(
        &base,
        vec![
            (
                put(json!({ "oneOf": [y, { "type": "string" }], "nullable": true })),
                &["POST /x | response 200 /one/<null> | variant-added oneOf", "POST /x | response 200 /one/<string> | variant-added oneOf"],
                B,
                C,
            ),
            (
                put(json!({ "oneOf": [y], "discriminator": { "propertyName": "k" } })),
                &["POST /x | response 200 /one | discriminator-named k"],
                C,
                C,
            ),
            (
                Put(
                    "/components/schemas/X/properties/kind",
                    json!({ "oneOf": [
                    { "type": "string", "enum": ["a"], "description": "First." }, { "type": "string", "enum": ["b"] }
                ] }),
                ),
                &[],
                C,
                C,
            ),
            (
                Put(
                    "/components/schemas/X/properties/kind",
                    json!({ "anyOf": [
                    { "type": "string", "enum": ["a"] }, { "type": "string", "enum": ["b", "c"] }
                ] }),
                ),
                &["POST /x | response 200 /kind | enum-value-added \"c\""],
                B,
                C,
            ),
        ],
    );
    let base = answering("3.1.0", json!({ "X": { "properties": { "any": { "type": ["string", "integer"], "enum": ["a", 1] } } } }));
    hold(
        &base,
        vec![(
            Put(
                "/components/schemas/X/properties/any",
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "integer", "enum": [1], "minimum": 0 }] }),
            ),
            &["POST /x | response 200 /any/<integer 403677> | restated minimum", "POST /x | response 200 /any | restated anyOf"],
            C,
            C,
        )],
    );
}

#[test]
fn renamed_variants_are_paired_unless_a_discriminator_needs_their_names() {
    let y = json!({ "type": "object", "description": "One.", "properties": { "y": { "type": "string" } } });
    let base = |discriminator: bool| {
        let mut choice = json!({ "oneOf": [{ "$ref": "#/components/schemas/A" }, { "type": "string" }] });
        if discriminator {
            choice["discriminator"] = json!({ "propertyName": "y" });
        }
        let mut same = y.clone();
        same["description"] = "Another.".into();
        answering("3.1.0", json!({ "X": { "properties": { "c": choice } }, "A": y, "B": same }))
    };
    let renamed = || Put("/components/schemas/X/properties/c/oneOf/0/$ref", json!("#/components/schemas/B"));
    hold(
        &base(false),
        vec![
            (renamed(), &["POST /x | response 200 /c/<A or B> | type-name-changed"], U, U),
            (Put("/components/schemas/X/properties/c/oneOf/0", y.clone()), &["POST /x | response 200 /c/<A> | type-name-changed"], U, U),
            (
                Put(
                    "/components/schemas/X/properties/c",
                    json!({ "anyOf": [{ "$ref": "#/components/schemas/A" }, { "type": "integer" }] }),
                ),
                &[
                    "POST /x | response 200 /c | any-of-for-one-of",
                    "POST /x | response 200 /c/<integer> | variant-added variants",
                    "POST /x | response 200 /c/<string> | variant-removed variants",
                ],
                C,
                C,
            ),
        ],
    );
    hold(
        &base(true),
        vec![
            (
                renamed(),
                &["POST /x | response 200 /c/<B> | variant-added oneOf", "POST /x | response 200 /c/<A> | variant-removed oneOf"],
                B,
                C,
            ),
            (
                Put("/components/schemas/X/properties/c/discriminator/mapping", json!({ "A": "#/components/schemas/A" })),
                &["POST /x | response 200 /c | restated mapping A"],
                C,
                C,
            ),
            (
                Put("/components/schemas/X/properties/c/discriminator/mapping", json!({ "a": "#/components/schemas/A" })),
                &["POST /x | response 200 /c | discriminator-value-added a"],
                B,
                C,
            ),
        ],
    );
}
