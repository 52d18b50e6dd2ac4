//! Tests the report for edits of operations, their names and their security requirements.

use serde_json::json;

use super::{
    super::{base_document, compared, line},
    B, C,
    Done::{Gone, Named, Put},
    U, hold,
};

#[test]
fn changes_of_operations_and_their_names_are_classed() {
    hold(
        &base_document::base(),
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
fn a_renamed_path_parameter_is_reported_at_each_operation() {
    let base = base_document::base();
    let mut renamed = base.clone();
    Named("/paths/~1pets~1{id}", "/pets/{petId}").to(&mut renamed);
    renamed["paths"]["/pets/{petId}"]["parameters"][0]["name"] = "petId".into();
    let report = compared(&base, &renamed);
    let found: Vec<_> = report.changes.iter().map(|change| (line(change), change.class)).collect();
    let expected = |method: &str| (format!("{method} /pets/{{id}} | operation | path-parameter-renamed"), B);
    assert_eq!(found, [expected("DELETE"), expected("GET")]);
    // Paths that differ only in the names of their parameters are compared with each other.
    renamed["paths"]["/pets/{petId}"]["parameters"][0]["schema"]["maxLength"] = 10.into();
    let report = compared(&base, &renamed);
    assert!(report.changes.iter().any(|change| change.rule.id == "limit-tightened" && change.place == "path parameter #0"), "{report:?}");
}

#[test]
fn swapped_path_parameters_are_reported() {
    let document = |path: &str| {
        let parameter = |name: &str, kind: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } });
        let parameters = json!([parameter("x", "string"), parameter("y", "integer")]);
        json!({ "openapi": "3.0.3", "paths": { (path): { "get": { "parameters": parameters, "responses": {} } } } })
    };
    let report = compared(&document("/a/{x}/{y}"), &document("/a/{y}/{x}"));
    let found: Vec<_> = report.changes.iter().map(|change| (change.place.as_str(), change.rule.id, change.class)).collect();
    let renamed = ("operation", "path-parameter-renamed", B);
    let narrowed = ("path parameter #0", "text-narrowed", B);
    let widened = ("path parameter #1", "text-widened", C);
    assert_eq!(found, [renamed, renamed, narrowed, widened]);
    super::super::invariants::hold_mirrored(&report, &compared(&document("/a/{y}/{x}"), &document("/a/{x}/{y}")));
}

#[test]
fn repeated_tags_and_servers_are_compared() {
    let mut base = base_document::base();
    base["tags"] = json!([{ "name": "Pets", "x-of": 1 }, { "name": "Pets" }]);
    base["servers"] = json!([{ "url": "/", "x-of": 1 }, { "url": "/" }]);
    hold(
        &base,
        vec![
            (Gone("/tags/0/x-of"), &["document | tags Pets | extension-removed x-of"], U, U),
            (Gone("/servers/0/x-of"), &["document | servers / | extension-removed x-of"], U, U),
        ],
    );
}

#[test]
fn changes_of_security_requirements_are_classed() {
    hold(
        &base_document::base(),
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
    hold(
        &base_document::base(),
        vec![
            (
                Put("/components/securitySchemes/OAuth/flows/clientCredentials/scopes/pets:read", json!("")),
                &["document | security scheme OAuth flow clientCredentials | flow-scope-added pets:read"],
                C,
                B,
            ),
            (
                Put("/components/securitySchemes/OAuth/flows/clientCredentials/tokenUrl", json!("https://pets.example/other")),
                &["document | security scheme OAuth | security-scheme-changed clientCredentials tokenUrl"],
                B,
                B,
            ),
            (
                Put("/components/securitySchemes/OAuth/flows/implicit", json!({ "authorizationUrl": "/a", "scopes": {} })),
                &["document | security scheme OAuth | flow-added implicit"],
                C,
                B,
            ),
        ],
    );
    let mut idle = base_document::base();
    idle["components"]["securitySchemes"]["Idle"] = json!({ "type": "apiKey", "in": "header", "name": "x-idle" });
    hold(
        &idle,
        vec![(
            Put("/components/securitySchemes/Idle/in", json!("query")),
            &["document | security scheme Idle | unused-component-changed"],
            C,
            C,
        )],
    );
    // It is no change if an operation repeats the security requirement of the document.
    let mut said = base_document::base();
    said["paths"]["/pets/{id}"]["get"]["security"] = json!([{ "Key": [] }]);
    assert_eq!(super::super::lines(&compared(&base_document::base(), &said)), Vec::<String>::new());
}
