//! One change each to a small document: what it has to be told as, there and back.

use serde_json::{Value, json};

use super::{base, compared, line};
use crate::contract::Class::{self, Breaking as B, Compatible as C, Unknown as U};

/// What is done to the base document.
enum Done {
    Put(&'static str, Value),
    Gone(&'static str),
    /// Moves a member to another name.
    Named(&'static str, &'static str),
}

use Done::{Gone, Named, Put};

impl Done {
    fn to(&self, document: &mut Value) {
        fn parent<'d>(document: &'d mut Value, pointer: &str) -> (&'d mut Value, String) {
            let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
            (document.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is not in the base")), last.replace("~1", "/"))
        }
        match self {
            Put(pointer, value) => {
                let (parent, last) = parent(document, pointer);
                match parent {
                    Value::Array(items) if last == "-" => items.push(value.clone()),
                    Value::Array(items) => items[last.parse::<usize>().expect("an index")] = value.clone(),
                    parent => parent[&last] = value.clone(),
                }
            }
            Gone(pointer) => {
                let (parent, last) = parent(document, pointer);
                match parent {
                    Value::Array(items) => _ = items.remove(last.parse().expect("an index")),
                    parent => assert!(parent.as_object_mut().expect("an object").remove(&last).is_some(), "{pointer} is not in the base"),
                }
            }
            Named(pointer, name) => {
                let (parent, last) = parent(document, pointer);
                let object = parent.as_object_mut().expect("an object");
                let value = object.remove(&last).unwrap_or_else(|| panic!("{pointer} is not in the base"));
                object.insert((*name).to_owned(), value);
            }
        }
    }
}

/// What is done, every line that it has to be told by, and the class of the first there and back.
type Mutant = (Done, &'static [&'static str], Class, Class);

/// Fails with all that does not hold at once.
fn hold(base: &Value, mutants: Vec<Mutant>) {
    let mut faults = Vec::new();
    for (number, (done, expected, there, back)) in mutants.iter().enumerate() {
        let mut mutated = base.clone();
        done.to(&mut mutated);
        assert_ne!(*base, mutated, "mutant {number} changes nothing");
        let (forward, backward) = (compared(base, &mutated), compared(&mutated, base));
        let mut found: Vec<_> = forward.changes.iter().map(line).collect();
        let mut wanted: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
        found.sort();
        wanted.sort();
        if found != wanted {
            faults.push(format!("{number}: expected {wanted:#?}\n  found {found:#?}"));
            continue;
        }
        let class = |changes: &[super::Change], is: &dyn Fn(&super::Change) -> bool| {
            changes.iter().find(|change| is(change)).map(|change| change.class)
        };
        let first = forward.changes.iter().find(|change| line(change) == expected[0]).expect("just found");
        let mirror = |change: &super::Change| {
            change.rule == first.rule.mirror
                && change.place == first.place
                && change.detail == first.detail
                && change.operation == first.operation
        };
        let classes = (Some(first.class), class(&backward.changes, &mirror));
        if classes != (Some(*there), Some(*back)) || backward.changes.len() != expected.len() {
            let found: Vec<_> = backward.changes.iter().map(line).collect();
            faults.push(format!("{number}: {} is {classes:?}, expected {there:?} and {back:?}; backwards {found:#?}", expected[0]));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), mutants.len(), faults.join("\n"));
}

#[test]
fn operations_and_what_they_are_called() {
    hold(
        &base::base(),
        vec![
            (Gone("/paths/~1pets~1{id}/delete"), &["DELETE /pets/{id} | operation | operation-removed"], B, C),
            (Put("/paths/~1pets~1{id}/patch", json!({ "responses": {} })), &["PATCH /pets/{id} | operation | operation-added"], C, B),
            (Put("/paths/~1cats", json!({ "get": { "responses": {} } })), &["GET /cats | operation | operation-added"], C, B),
            (Put("/paths/~1pets/get/operationId", json!("pets")), &["GET /pets | operation | operation-id-renamed"], B, B),
            (Gone("/paths/~1pets/get/operationId"), &["GET /pets | operation | operation-id-removed"], B, U),
            (Put("/paths/~1pets/get/deprecated", json!(true)), &["GET /pets | operation | deprecated"], C, C),
            (Put("/paths/~1pets/get/deprecated", json!(false)), &["GET /pets | operation | restated deprecated"], C, C),
            (Put("/paths/~1pets/get/tags/-", json!("All")), &["GET /pets | operation | operation-tag-added All"], U, U),
            (Put("/paths/~1pets/get/x-scope", json!("read")), &["GET /pets | operation | extension-added x-scope"], U, U),
            (Put("/paths/~1pets/get/nonsense", json!(1)), &["GET /pets | operation | keyword-added nonsense"], U, U),
            (
                Named("/paths/~1pets", "/animals"),
                &[
                    "GET /pets | operation | operation-removed",
                    "POST /pets | operation | operation-removed",
                    "GET /animals | operation | operation-added",
                    "POST /animals | operation | operation-added",
                ],
                B,
                C,
            ),
            (
                Put("/paths/~1pets~1{id}/get/servers", json!([{ "url": "/other" }])),
                &["GET /pets/{id} | servers | server-removed https://pets.example/v1", "GET /pets/{id} | servers | server-added /other"],
                B,
                C,
            ),
            (
                Put("/servers/0/url", json!("https://pets.example/v2")),
                &[
                    "document | servers | server-removed https://pets.example/v1",
                    "document | servers | server-added https://pets.example/v2",
                ],
                B,
                C,
            ),
            (Put("/info/version", json!("1.1.0")), &["document | info | info-changed version"], C, C),
            (Put("/tags/-", json!({ "name": "Food" })), &["document | tags | tag-added Food"], C, C),
            (
                Put("/components/schemas/Unused/type", json!("string")),
                &["document | components/schemas/Unused | unused-component-changed"],
                C,
                C,
            ),
            (Put("/openapi", json!("3.1.0")), &["document | document | openapi-version-changed"], U, U),
            (Put("/x-audience", json!("public")), &["document | document | extension-added x-audience"], U, U),
        ],
    );
}

#[test]
fn parameters() {
    hold(
        &base::base(),
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
                &["GET /pets | query parameter tag /[] | type-changed"],
                B,
                B,
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
fn parameters_of_a_path_that_an_operation_replaces_are_not_passed_over() {
    let mut base = base::base();
    base["paths"]["/pets"]["get"]["parameters"][0] = json!({ "name": "trace", "in": "header", "schema": { "type": "integer" } });
    base["paths"]["/pets"].as_object_mut().expect("a path").remove("post");
    hold(&base, vec![(Put("/paths/~1pets/parameters/0/schema/type", json!("boolean")), &["GET /pets | path | restated parameters"], C, C)]);
}

#[test]
fn a_path_parameter_that_is_called_otherwise() {
    let base = base::base();
    let mut renamed = base.clone();
    Named("/paths/~1pets~1{id}", "/pets/{petId}").to(&mut renamed);
    renamed["paths"]["/pets/{petId}"]["parameters"][0]["name"] = "petId".into();
    let report = compared(&base, &renamed);
    let found: Vec<_> = report.changes.iter().map(|change| (line(change), change.class)).collect();
    let told = |method: &str| (format!("{method} /pets/{{id}} | operation | path-parameter-renamed"), B);
    assert_eq!(found, [told("DELETE"), told("GET")]);
    // In a changed path everything else is still compared.
    renamed["paths"]["/pets/{petId}"]["parameters"][0]["schema"]["maxLength"] = 10.into();
    let report = compared(&base, &renamed);
    assert!(report.changes.iter().any(|change| change.rule.id == "limit-tightened" && change.place == "path parameter #0"), "{report:?}");
}

#[test]
fn who_is_let_in() {
    hold(
        &base::base(),
        vec![
            (Put("/paths/~1pets/post/security/0/OAuth/-", json!("pets:admin")), &["POST /pets | security | scope-added pets:admin"], B, C),
            (Gone("/paths/~1pets/post/security/1"), &["POST /pets | security | security-removed Key"], B, C),
            (Put("/paths/~1pets/get/security", json!([])), &["GET /pets | security | security-waived"], C, B),
            (Gone("/paths/~1pets~1{id}/delete/security"), &["DELETE /pets/{id} | security | security-required"], B, C),
            (Put("/paths/~1pets~1{id}/get/security", json!([{ "Key": [] }, {}])), &["GET /pets/{id} | security | security-waived"], C, B),
            (
                Put("/components/securitySchemes/Key/name", json!("x-key")),
                &["document | security scheme Key | security-scheme-changed name"],
                B,
                B,
            ),
            (Put("/components/securitySchemes/Key/name", json!("X-API-Key")), &["document | security scheme Key | restated name"], C, C),
            (
                Put("/components/securitySchemes/Basic", json!({ "type": "http", "scheme": "basic" })),
                &["document | security scheme Basic | security-scheme-added"],
                C,
                C,
            ),
            (
                Put("/security", json!([{ "Key": [] }, { "OAuth": [] }])),
                &[
                    "GET /pets | security | security-added OAuth",
                    "GET /pets/{id} | security | security-added OAuth",
                    "document | security | security-default-changed",
                ],
                C,
                B,
            ),
        ],
    );
    // What holds already may be said again.
    let mut said = base::base();
    said["paths"]["/pets/{id}"]["get"]["security"] = json!([{ "Key": [] }]);
    assert_eq!(super::lines(&compared(&base::base(), &said)), Vec::<String>::new());
}

#[test]
fn bodies_and_answers() {
    hold(
        &base::base(),
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
                &["GET /pets | response 200 header x-size | type-changed"],
                B,
                B,
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
                &["GET /pets | response 200 link first | keyword-changed operationId"],
                U,
                U,
            ),
            (
                Put("/paths/~1pets/get/responses/200/content/application~1json/encoding", json!({})),
                &["GET /pets | response 200 | keyword-added encoding"],
                U,
                U,
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

/// `GET /pets`, `GET /pets/{id}` and `POST /pets` all answer pets.
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
fn values_that_an_integrator_is_sent() {
    hold(
        &base::base(),
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
            (Gone("/components/schemas/Food/discriminator"), pets!("/food", "discriminator-removed"), U, U),
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
fn values_that_an_integrator_sends() {
    hold(
        &base::base(),
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
                &["POST /pets | request body /name | pattern-changed"],
                U,
                U,
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
                &["POST /pets | request body /weight | limit-changed multipleOf"],
                U,
                U,
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
                &["POST /pets | request body /mood | constraint-changed not"],
                U,
                U,
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
                &["POST /pets | request body | constraint-added anyOf"],
                B,
                C,
            ),
        ],
    );
}

#[test]
fn what_openapi_3_1_adds() {
    hold(
        &base::base_3_1(),
        vec![
            (Gone("/webhooks/petLost"), &["webhook petLost POST | operation | webhook-removed"], B, C),
            (Put("/webhooks/petFound", json!({ "post": {} })), &["webhook petFound POST | operation | webhook-added"], C, B),
            // What a webhook brings is what an integrator is sent.
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
                &["webhook petLost POST | request body /where | restated type, nullable"],
                C,
                C,
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
            // And what it is answered is what an integrator sends.
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
                &["webhook petLost POST | response 200 /found | type-changed"],
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
                &["POST /pets | request body | constraint-added unevaluatedProperties"],
                B,
                C,
            ),
            (
                Put("/components/schemas/NewPet/dependentRequired", json!({ "hook": ["secret"] })),
                &["POST /pets | request body | keyword-added dependentRequired"],
                U,
                U,
            ),
        ],
    );
}
