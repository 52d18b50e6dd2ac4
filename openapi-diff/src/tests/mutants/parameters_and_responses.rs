//! Tests the report for edits of parameters, bodies, responses and headers.

use serde_json::json;

use super::{
    super::base_document,
    B, C,
    Done::{Gone, Named, Put},
    U, hold,
};

#[test]
fn changes_of_parameters_are_classed() {
    hold(
        &base_document::base(),
        vec![
            (
                Put("/components/parameters/Limit/required", json!(true)),
                &["GET /pets | query parameter limit | parameter-became-required"],
                B,
                C,
            ),
            (
                Put("/components/parameters/Limit/schema/maximum", json!(50)),
                &["GET /pets | query parameter limit | limit-tightened maximum"],
                B,
                C,
            ),
            (
                Put("/components/parameters/Limit/schema/minimum", json!(0)),
                &["GET /pets | query parameter limit | limit-loosened minimum"],
                C,
                B,
            ),
            (Put("/components/parameters/Limit/schema/type", json!("number")), &["GET /pets | query parameter limit | type-widened"], C, B),
            (Gone("/paths/~1pets/get/parameters/0"), &["GET /pets | query parameter limit | parameter-optional-removed"], B, C),
            (Gone("/paths/~1pets/get/parameters/3"), &["GET /pets | query parameter sort | parameter-required-removed"], B, B),
            (
                Put("/paths/~1pets/get/parameters/-", json!({ "name": "new", "in": "query", "required": true, "schema": {} })),
                &["GET /pets | query parameter new | parameter-required-added"],
                B,
                B,
            ),
            (
                Put("/paths/~1pets/get/parameters/1/schema/items/type", json!("integer")),
                &["GET /pets | query parameter tag /[] | text-narrowed"],
                B,
                C,
            ),
            (
                Put("/paths/~1pets/get/parameters/1/style", json!("pipeDelimited")),
                &["GET /pets | query parameter tag | serialisation-changed"],
                B,
                B,
            ),
            (
                Put("/paths/~1pets/get/parameters/1/explode", json!(false)),
                &["GET /pets | query parameter tag | serialisation-changed"],
                B,
                B,
            ),
            (Put("/paths/~1pets/get/parameters/1/explode", json!(true)), &["GET /pets | query parameter tag | restated explode"], C, C),
            (
                Put("/paths/~1pets/get/parameters/1/allowEmptyValue", json!(true)),
                &["GET /pets | query parameter tag | empty-value-allowed"],
                C,
                B,
            ),
            (Put("/paths/~1pets/get/parameters/1/deprecated", json!(true)), &["GET /pets | query parameter tag | deprecated"], C, C),
            (
                Put("/paths/~1pets/get/parameters/2/schema/default", json!("dog")),
                &["GET /pets | query parameter kind | default-changed"],
                B,
                B,
            ),
            (Gone("/paths/~1pets/get/parameters/2/schema/default"), &["GET /pets | query parameter kind | default-removed"], U, U),
            (
                Gone("/paths/~1pets/get/parameters/2/schema/enum/1"),
                &["GET /pets | query parameter kind | enum-value-removed \"dog\""],
                B,
                C,
            ),
            (
                Put("/paths/~1pets/get/parameters/3/schema/x-extensible-enum/-", json!("size")),
                &["GET /pets | query parameter sort | open-value-added \"size\""],
                C,
                B,
            ),
            (
                Put("/paths/~1pets/parameters/0/required", json!(true)),
                &[
                    "GET /pets | header parameter trace | parameter-became-required",
                    "POST /pets | header parameter trace | parameter-became-required",
                ],
                B,
                C,
            ),
            (
                Put("/paths/~1pets/parameters/0/name", json!("Trace")),
                &["GET /pets | header parameter trace | restated name", "POST /pets | header parameter trace | restated name"],
                C,
                C,
            ),
            (
                Put("/paths/~1pets~1{id}/parameters/0/schema/maxLength", json!(20)),
                &[
                    "GET /pets/{id} | path parameter id | limit-tightened maxLength",
                    "DELETE /pets/{id} | path parameter id | limit-tightened maxLength",
                ],
                B,
                C,
            ),
        ],
    );
}

#[test]
fn changes_of_overridden_path_level_parameters_are_reported_as_restated() {
    let mut base = base_document::base();
    base["paths"]["/pets"]["get"]["parameters"][0] = json!({ "name": "trace", "in": "header", "schema": { "type": "integer" } });
    base["paths"]["/pets"].as_object_mut().expect("a path").remove("post");
    hold(&base, vec![(Put("/paths/~1pets/parameters/0/schema/type", json!("boolean")), &["GET /pets | path | restated parameters"], C, C)]);
}

#[test]
fn parameter_styles_with_equal_serialisation_are_reported_as_restated() {
    let mut base = base_document::base();
    base["paths"]["/pets"]["get"]["parameters"][1] = json!({ "name": "near", "in": "query", "style": "deepObject",
        "schema": { "type": "object", "properties": { "lat": { "type": "number" } } } });
    hold(
        &base,
        vec![
            (Put("/components/parameters/Limit/explode", json!(false)), &["GET /pets | query parameter limit | restated explode"], C, C),
            (Put("/paths/~1pets/get/parameters/1/explode", json!(true)), &["GET /pets | query parameter near | restated explode"], C, C),
            (
                Put("/paths/~1pets/get/parameters/1/style", json!("form")),
                &["GET /pets | query parameter near | serialisation-changed"],
                B,
                B,
            ),
            (
                Put("/components/parameters/Limit/allowReserved", json!(true)),
                &["GET /pets | query parameter limit | reserved-allowed"],
                C,
                B,
            ),
        ],
    );
}

#[test]
fn accept_and_content_type_headers_are_reported_as_restated() {
    hold(
        &base_document::base(),
        vec![
            (
                Put("/paths/~1pets/get/parameters/-", json!({ "name": "Accept", "in": "header", "required": true, "schema": {} })),
                &["GET /pets | header parameter accept | restated parameter"],
                C,
                C,
            ),
            (
                Put("/paths/~1pets/get/responses/200/headers/Content-Type", json!({ "required": true, "schema": {} })),
                &["GET /pets | response 200 header content-type | restated header"],
                C,
                C,
            ),
        ],
    );
}

#[test]
fn ranges_cover_statuses_and_types_that_are_not_listed() {
    let mut base = base_document::base();
    let text = || json!({ "schema": { "type": "string" } });
    base["paths"]["/pets"]["get"]["responses"]["2XX"] = json!({ "description": "", "content": { "text/*": text(), "image/png": text() } });
    hold(
        &base,
        vec![
            (
                Put("/paths/~1pets/get/responses/2XX/content/text~1csv", json!({ "schema": { "type": "integer" } })),
                &["GET /pets | response 2XX (text/csv) | type-changed", "GET /pets | response 2XX (text/csv) | media-type-listed text/*"],
                B,
                B,
            ),
            (
                Named("/paths/~1pets/get/responses/2XX/content/image~1png", "image/*"),
                &[
                    "GET /pets | response 2XX | media-type-added image/*",
                    "GET /pets | response 2XX (image/png) | media-type-unlisted image/*",
                ],
                C,
                B,
            ),
            (Named("/paths/~1pets/get/responses/2XX", "2xx"), &["GET /pets | response 2XX | restated status"], C, C),
            (Gone("/paths/~1pets/get/responses/2XX"), &["GET /pets | response 2XX | response-range-removed"], C, B),
        ],
    );
}

#[test]
fn descriptions_are_no_change_at_any_place() {
    let mut base = base_document::base();
    base["servers"][0] =
        json!({ "url": "https://{v}.example", "variables": { "v": { "default": "a", "enum": ["a"], "description": "" } } });
    let content = base["paths"]["/pets"]["post"]["requestBody"]["content"].as_object_mut().expect("media types");
    let body = content.remove("application/json").expect("a body");
    let body = content.entry("multipart/form-data").or_insert(body);
    body["encoding"] = json!({ "name": { "headers": { "X-Of": { "description": "", "schema": { "type": "string" } } } } });
    base["paths"]["/pets"]["get"]["responses"]["200"]["links"]["first"]["server"] = json!({ "url": "/", "description": "" });
    base["components"]["schemas"]["Unused"]["properties"] = json!({ "description": { "description": "" } });
    let said = || json!("Other words.");
    hold(
        &base,
        vec![
            (Put("/servers/0/variables/v/description", said()), &[], C, C),
            (
                Put("/servers/0/variables/v/default", json!("b")),
                &["document | servers https://{v}.example variable v | server-variable-default-changed"],
                C,
                C,
            ),
            (Put("/paths/~1pets/post/requestBody/content/multipart~1form-data/encoding/name/headers/X-Of/description", said()), &[], C, C),
            (
                Put("/paths/~1pets/post/requestBody/content/multipart~1form-data/encoding/name/headers/X-Of/schema/type", json!("integer")),
                &["POST /pets | request body (multipart/form-data) encoding name header x-of | text-narrowed"],
                B,
                C,
            ),
            (Put("/paths/~1pets/get/responses/200/links/first/server/description", said()), &[], C, C),
            (
                Put("/paths/~1pets/get/responses/200/links/first/server/url", json!("/v2")),
                &["GET /pets | response 200 link first server | link-changed url"],
                B,
                B,
            ),
            (Put("/components/schemas/Unused/properties/description/description", said()), &[], C, C),
            (
                Put("/components/schemas/Unused/properties/description/default", json!({ "description": "" })),
                &["document | components/schemas/Unused | unused-component-changed"],
                C,
                C,
            ),
            (Put("/components/securitySchemes/OAuth/flows/clientCredentials/scopes/pets:write", said()), &[], C, C),
        ],
    );
}

#[test]
fn changes_of_bodies_and_responses_are_classed() {
    hold(
        &base_document::base(),
        vec![
            (Put("/paths/~1pets/post/requestBody/required", json!(false)), &["POST /pets | request body | body-became-optional"], C, B),
            (Gone("/paths/~1pets/post/requestBody"), &["POST /pets | request body | body-required-removed"], B, B),
            (
                Named("/paths/~1pets/post/requestBody/content/application~1json", "application/xml"),
                &[
                    "POST /pets | request body | media-type-removed application/json",
                    "POST /pets | request body | media-type-added application/xml",
                ],
                B,
                C,
            ),
            (
                Named("/components/responses/Pet/content/application~1json; charset=utf-8", "Application/JSON"),
                &["POST /pets | response 201 | restated media type", "GET /pets/{id} | response 200 | restated media type"],
                C,
                C,
            ),
            (
                Named("/components/responses/Pet/content/application~1json; charset=utf-8", "application/json; charset=latin1"),
                &[
                    "POST /pets | response 201 | media-type-removed application/json",
                    "POST /pets | response 201 | media-type-added application/json; charset=latin1",
                    "GET /pets/{id} | response 200 | media-type-removed application/json",
                    "GET /pets/{id} | response 200 | media-type-added application/json; charset=latin1",
                ],
                B,
                C,
            ),
            (Gone("/paths/~1pets/get/responses/200"), &["GET /pets | response 200 | response-success-removed"], B, B),
            (
                Put("/paths/~1pets/post/responses/202", json!({ "description": "" })),
                &["POST /pets | response 202 | response-success-added"],
                B,
                B,
            ),
            (Gone("/paths/~1pets/post/responses/409"), &["POST /pets | response 409 | response-failure-removed"], C, C),
            (Gone("/paths/~1pets/get/responses/default"), &["GET /pets | response default | response-default-removed"], U, C),
            (
                Put(
                    "/paths/~1pets/get/responses/404",
                    json!({ "description": "", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } }),
                ),
                &["GET /pets | response 404 | response-listed 4XX"],
                C,
                C,
            ),
            (
                Put("/paths/~1pets/get/responses/404", json!({ "description": "" })),
                &["GET /pets | response 404 | media-type-removed application/json", "GET /pets | response 404 | response-listed 4XX"],
                B,
                C,
            ),
            (Gone("/paths/~1pets/get/responses/4XX"), &["GET /pets | response 4XX | response-unlisted default"], C, C),
            (
                Put("/components/schemas/Error/required", json!([])),
                &[
                    "GET /pets | response 4XX /message | property-became-optional",
                    "GET /pets | response default /message | property-became-optional",
                    "POST /pets | response 409 /message | property-became-optional",
                ],
                B,
                C,
            ),
            (
                Gone("/paths/~1pets/get/responses/200/headers/X-Next"),
                &["GET /pets | response 200 header x-next | header-optional-removed"],
                B,
                C,
            ),
            (
                Gone("/paths/~1pets/get/responses/200/headers/x-size"),
                &["GET /pets | response 200 header x-size | header-required-removed"],
                B,
                C,
            ),
            (
                Put("/paths/~1pets/get/responses/200/headers/x-size/required", json!(false)),
                &["GET /pets | response 200 header x-size | header-became-optional"],
                B,
                C,
            ),
            (
                Put("/paths/~1pets/get/responses/200/headers/x-size/schema/type", json!("string")),
                &["GET /pets | response 200 header x-size | text-widened"],
                B,
                C,
            ),
            (
                Named("/paths/~1pets/get/responses/200/headers/X-Next", "x-NEXT"),
                &["GET /pets | response 200 header x-next | restated name"],
                C,
                C,
            ),
            (Gone("/paths/~1pets/get/responses/200/links/first"), &["GET /pets | response 200 link first | link-removed"], B, C),
            (
                Put("/paths/~1pets/get/responses/200/links/first/operationId", json!("find")),
                &["GET /pets | response 200 link first | link-changed operationId"],
                B,
                B,
            ),
            (
                Put("/paths/~1pets/get/responses/200/content/application~1json/encoding", json!({ "data": { "contentType": "a/b" } })),
                &["GET /pets | response 200 encoding data | restated encoding"],
                C,
                C,
            ),
            (Gone("/paths/~1pets/post/callbacks/added"), &["POST /pets | callback added | callback-removed"], B, C),
            (
                Put(
                    "/paths/~1pets/post/callbacks/added/{$request.body#~1hook}/post/requestBody/content/application~1json/schema/required",
                    json!([]),
                ),
                &["POST /pets | callback added {$request.body#/hook} POST request body /id | property-became-optional"],
                B,
                C,
            ),
        ],
    );
}
