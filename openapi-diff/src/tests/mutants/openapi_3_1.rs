//! Tests the report for edits of features that OpenAPI 3.1 adds to 3.0: webhooks and keywords of JSON Schema.

use serde_json::json;

use super::{
    super::base_document,
    B, C,
    Done::{Gone, Put},
    hold,
};

#[test]
fn changes_of_webhooks_and_json_schema_keywords_are_classed() {
    hold(
        &base_document::base_3_1(),
        vec![
            (Gone("/webhooks/petLost"), &["webhook petLost POST | operation | webhook-removed"], B, C),
            (Put("/webhooks/petFound", json!({ "post": {} })), &["webhook petFound POST | operation | webhook-added"], C, B),
            // The request body of a webhook is sent to an integrator, so it is compared as a response.
            (
                Put("/webhooks/petLost/post/requestBody/content/application~1json/schema/required", json!([])),
                &["webhook petLost POST | request body /id | property-became-optional"],
                B,
                C,
            ),
            (
                Put("/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/where/type", json!("string")),
                &["webhook petLost POST | request body /where | null-refused"],
                C,
                B,
            ),
            (
                Put(
                    "/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/where/type",
                    json!(["string", "null", "integer"]),
                ),
                &["webhook petLost POST | request body /where | type-widened"],
                B,
                C,
            ),
            (
                Put(
                    "/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/where",
                    json!({ "type": "string", "nullable": true }),
                ),
                &["webhook petLost POST | request body /where | null-refused"],
                C,
                B,
            ),
            (
                Put(
                    "/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/kind",
                    json!({ "enum": ["lost", "late"] }),
                ),
                &["webhook petLost POST | request body /kind | enum-value-added \"late\""],
                B,
                C,
            ),
            (
                Put(
                    "/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/spot/prefixItems/1/type",
                    json!("integer"),
                ),
                &["webhook petLost POST | request body /spot/[1] | type-narrowed"],
                C,
                B,
            ),
            (
                Put("/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/spot/items", json!(true)),
                &["webhook petLost POST | request body /spot/[] | value-permitted"],
                B,
                C,
            ),
            (
                Put(
                    "/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/tags/propertyNames/maxLength",
                    json!(20),
                ),
                &["webhook petLost POST | request body /tags/{name} | limit-loosened maxLength"],
                B,
                C,
            ),
            (
                Put(
                    "/webhooks/petLost/post/requestBody/content/application~1json/schema/properties/tags/patternProperties/^x-/type",
                    json!("number"),
                ),
                &["webhook petLost POST | request body /tags/{^x-} | type-changed"],
                B,
                B,
            ),
            // The response to a webhook is sent by an integrator, so it is compared as a request.
            (
                Put("/webhooks/petLost/post/responses/200/content/application~1json/schema/required", json!(["found"])),
                &["webhook petLost POST | response 200 /found | property-became-required"],
                B,
                C,
            ),
            (
                Put("/webhooks/petLost/post/responses/200/content/application~1json/schema/properties/found/default", json!(true)),
                &["webhook petLost POST | response 200 /found | default-changed"],
                B,
                B,
            ),
            (
                Put(
                    "/webhooks/petLost/post/responses/200/content/application~1json/schema/properties/found/$ref",
                    json!("#/components/schemas/Unused"),
                ),
                &[
                    "webhook petLost POST | response 200 /found | type-changed",
                    "webhook petLost POST | response 200 /found | type-name-changed",
                ],
                B,
                B,
            ),
            (
                Put("/webhooks/petLost/post/responses/202", json!({ "description": "" })),
                &["webhook petLost POST | response 202 | response-success-added"],
                C,
                B,
            ),
            (
                Put("/components/schemas/Flag/type", json!(["boolean", "null"])),
                &["webhook petLost POST | response 200 /found | null-allowed"],
                C,
                B,
            ),
            (
                Put("/components/schemas/NewPet/properties/weight/exclusiveMinimum", json!(0)),
                &["POST /pets | request body /weight | restated exclusiveMinimum"],
                C,
                C,
            ),
            (
                Put("/components/schemas/NewPet/properties/labels/contains", json!({ "const": "a" })),
                &["POST /pets | request body /labels | constraint-added contains"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/unevaluatedProperties", json!(false)),
                &["POST /pets | request body | restated unevaluatedProperties"],
                C,
                C,
            ),
            (
                Put("/components/schemas/NewPet/dependentRequired", json!({ "hook": ["secret"] })),
                &["POST /pets | request body | constraint-added dependentRequired hook: secret"],
                B,
                C,
            ),
        ],
    );
}
