//! Tests of the published OpenAPI documents: they equal the committed copies in `openapi/`, and are complete and consistent.

use std::{collections::HashSet, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    REV_A,
    contract::{Contract, REVISION, event_contract},
    harness::{ALL_SCOPES, one},
};

/// One line of the list of routes in the folder `openapi`: an operation and the scope that it needs.
#[derive(Clone, Debug)]
pub struct Route {
    pub method: String,
    pub path: String,
    pub operation: String,
    pub scope: String,
}

fn committed(extension: &str) -> String {
    kept(&format!("{REVISION}.{extension}"))
}

/// Returns the text of the file `name` in the folder `openapi`.
pub fn kept(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("openapi").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the operations of the API revision under test, from the list of routes in the folder `openapi`.
pub fn routes() -> Vec<Route> {
    let text = committed("routes");
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            let [method, path, operation, scope] = words.try_into().unwrap_or_else(|_| panic!("not METHOD PATH operationId scope: {line}"));
            let path = path.strip_prefix("/v1").unwrap_or(&path).to_owned();
            Route { method, path, operation, scope }
        })
        .collect()
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_counterpart")).arg("openapi").args(arguments).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the document is UTF-8")
}

fn document() -> Contract {
    Contract::new(serde_json::from_str(&committed("json")).expect("the committed document is JSON"))
}

#[test]
fn the_committed_document_is_what_the_binary_prints() {
    assert!(
        printed(&["--format", "json"]) == committed("json"),
        "the committed document is stale: run the commands of docs/contributing.md"
    );
}

#[test]
fn the_served_document_is_the_committed_one() {
    let served = one().anonymous().raw("GET", "/openapi.json").exchange();
    assert!(relative(served.body()) == document().document, "the committed document is stale: run the commands of docs/contributing.md");
}

/// Removes the server's address from a served document, so that the document has a relative server URL.
fn relative(mut document: Value) -> Value {
    let server = document["servers"][0]["url"].as_str().expect("a server").to_owned();
    let path = server.strip_prefix(&format!("http://{}", one().address)).expect("the address of the request");
    document["servers"][0]["url"] = path.into();
    document
}

#[test]
fn the_settings_have_a_separate_document_which_is_the_same_in_both_revisions() {
    let committed = |extension: &str| kept(&format!("settings.{extension}"));
    for (format, extension) in [("json", "json"), ("routes", "routes")] {
        let stale = format!("stale: run `counterpart openapi --settings --format {format}` and commit openapi/settings.{extension}");
        assert!(printed(&["--settings", "--format", format]) == committed(extension), "{stale}");
    }
    let served = one().anonymous().raw("GET", "/settings/openapi.json").exchange();
    let expected: Value = serde_json::from_str(&committed("json")).expect("the committed document is JSON");
    assert!(relative(served.body()) == expected, "the committed document is stale: run the commands of docs/contributing.md");
    let page = one().anonymous().raw("GET", "/settings/docs").exchange();
    assert!(page.text.contains("counterpart, settings") && page.text.contains("rotateKey"));
}

#[test]
fn events_have_a_separate_document() {
    let stale = format!("stale: run `counterpart openapi --events` and commit openapi/events-{REVISION}.json");
    let committed = kept(&format!("events-{REVISION}.json"));
    assert!(printed(&["--events", "--format", "json"]) == committed, "{stale}");
    let served = one().anonymous().raw("GET", "/openapi-events.json").exchange();
    assert!(served.text == committed, "the committed document is stale: run the commands of docs/contributing.md");
    let yaml = printed(&["--events", "--format", "yaml"]);
    assert!(yaml.contains("openapi: \"3.1.0\"") && yaml.contains("ticket.opened:"), "{yaml}");
    // The document is OpenAPI 3.1. It must not have these keywords, which schemas of 3.0 use and 3.1 replaces by others.
    for word in ["\"nullable\"", "\"exclusiveMinimum\": true", "\"exclusiveMaximum\": true", "\"example\":"] {
        assert!(!committed.contains(word), "{word}");
    }
    let document: Value = serde_json::from_str(&committed).expect("the committed document is JSON");
    for (kind, webhook) in document["webhooks"].as_object().expect("webhooks") {
        let example = &webhook["post"]["requestBody"]["content"]["application/json"]["examples"]["demo"]["value"];
        assert_eq!(event_contract::conforms(example), Ok(kind.as_str()));
    }
    check_references(&document);
    jsonschema::draft202012::meta::validate(&json!({"$defs": document["components"]["schemas"]})).expect("schemas of JSON Schema 2020-12");
}

#[test]
fn the_openapi_3_1_document_contains_both_operations_and_events() {
    let served = one().anonymous().raw("GET", "/openapi-3.1.json").exchange();
    let whole = relative(served.body());
    assert_eq!(whole, serde_json::from_str::<Value>(&printed(&["--3.1"])).expect("the document is JSON"));
    assert_eq!(whole["openapi"], "3.1.0");
    assert_eq!(Contract::new(whole.clone()).operations().len(), document().operations().len());
    let events: Value = serde_json::from_str(&kept(&format!("events-{REVISION}.json"))).expect("the committed document is JSON");
    let kinds = |document: &Value| document["webhooks"].as_object().expect("webhooks").keys().cloned().collect::<Vec<_>>();
    assert_eq!(kinds(&whole), kinds(&events));
    let text = whole.to_string();
    for word in ["\"nullable\"", "\"exclusiveMinimum\":true", "\"exclusiveMaximum\":true"] {
        assert!(!text.contains(word), "{word}");
    }
    check_references(&whole);
    jsonschema::draft202012::meta::validate(&json!({"$defs": whole["components"]["schemas"]})).expect("schemas of JSON Schema 2020-12");
}

#[test]
fn the_documentation_links_to_pages_of_changes_between_the_revisions() {
    let page = one().anonymous().raw("GET", "/docs/changes").exchange();
    assert!(page.text.contains("x-pagination-total") && page.text.contains("searchMessages"), "{}", page.text);
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(one().anonymous().raw("GET", "/docs").exchange().text.contains("href=\"/docs/changes\""));
    assert!(page.text.contains("href=\"/docs/changes/events\""));
    let page = one().anonymous().raw("GET", "/docs/changes/events").exchange();
    assert!(page.text.contains("apiRevision") && page.text.contains("message.received"), "{}", page.text);
    assert_eq!(page.header("content-security-policy"), Some(policy));
}

#[test]
fn the_document_is_printed_as_yaml_too() {
    let yaml = printed(&["--format", "yaml"]);
    assert!(yaml.contains("openapi:") && yaml.contains("operationId: getTicket"), "{yaml}");
}

#[test]
fn the_committed_routes_are_those_of_the_document() {
    let mut listed: Vec<_> = routes().into_iter().map(|route| (route.path, route.method, route.operation)).collect();
    let mut documented: Vec<_> =
        document().operations().into_iter().map(|operation| (operation.path, operation.method, operation.id)).collect();
    listed.sort_unstable();
    documented.sort_unstable();
    assert_eq!(listed, documented);
    for route in routes() {
        assert!(ALL_SCOPES.contains(&route.scope.as_str()), "{route:?}");
        let operation = document().operations().into_iter().find(|operation| operation.id == route.operation);
        let node = operation.map(|operation| operation.node.to_string()).unwrap_or_default();
        assert!(node.contains(&route.scope), "the document does not name the scope of {route:?}");
    }
}

#[test]
fn operation_ids_are_unique_and_described() {
    let mut seen = HashSet::new();
    for operation in document().operations() {
        assert!(!operation.id.is_empty() && seen.insert(operation.id.clone()), "{} {} {}", operation.method, operation.path, operation.id);
        let said = |name: &str| operation.node[name].as_str().is_some_and(|text| !text.trim().is_empty());
        assert!(said("summary") || said("description"), "{} has no description", operation.id);
    }
}

#[test]
fn every_operation_has_examples_that_its_schemas_allow() {
    let settings = Contract::of_settings(serde_json::from_str(&kept("settings.json")).expect("the committed document is JSON"));
    for contract in [document(), settings] {
        let operations = contract.operations();
        let faults: Vec<_> = operations.iter().flat_map(|operation| contract.example_faults(operation)).collect();
        assert!(!operations.is_empty() && faults.is_empty(), "{faults:#?}");
    }
}

#[test]
fn no_object_of_the_document_names_a_key_twice() {
    // A JSON parser keeps the last of two equal keys. So if an object had a key twice, the document would have fewer keys after it is
    // parsed and written again.
    let text = committed("json");
    let read: Value = serde_json::from_str(&text).expect("the committed document is JSON");
    let keys = |text: &str| text.matches("\":").count();
    assert_eq!(keys(&text.replace("\" :", "\":")), keys(&serde_json::to_string_pretty(&read).unwrap_or_default()));
}

#[test]
fn every_operation_documents_its_statuses() {
    for operation in document().operations() {
        for status in ["200", "400", "401", "403", "429", "500", "503"] {
            assert!(operation.node["responses"].get(status).is_some(), "{} does not document {status}", operation.id);
        }
    }
}

#[test]
fn every_path_of_the_document_is_served() {
    for operation in document().operations() {
        let answer = one().anonymous().call(&operation.method, &operation.path).send();
        assert_eq!(answer.status, 401, "{}", answer.described());
        let answer = one().call(&operation.method, &operation.path).send();
        assert!([200, 400].contains(&answer.status), "{}", answer.described());
    }
}

#[test]
fn every_reference_of_the_document_resolves() {
    check_references(&document().document);
}

fn check_references(document: &Value) {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads outside"));
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_schema_of_the_document_is_used() {
    let document = document().document;
    let text = document.to_string();
    for name in document["components"]["schemas"].as_object().into_iter().flatten().map(|(name, _)| name) {
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is documented and never used");
    }
}

#[test]
fn the_document_names_only_features_of_its_revision() {
    let text = committed("json");
    for (word, older, newer) in [
        ("drunken_lullabies", false, true),
        ("x-pagination-total", true, false),
        ("whatsapp-templates", false, true),
        ("messageDirection", false, true),
        ("sentByRecipient", true, true),
        ("isSentFromApp", true, false),
        ("x-pagination-next-cursor", true, true),
        ("revision b", false, true),
        ("revision a", true, false),
        ("in every status", false, true),
        ("the best matches first", false, true),
    ] {
        assert_eq!(text.to_lowercase().contains(&word.to_lowercase()), if REV_A { older } else { newer }, "{word}");
    }
}

#[test]
fn a_conflict_is_described_with_its_possible_causes() {
    for operation in document().operations() {
        let responses = &operation.node["responses"];
        let Some(conflict) = responses.get("409") else { continue };
        let said = conflict["description"].as_str().unwrap_or_default();
        let stamped = ["updateTicketField", "updateContactField"].contains(&operation.id.as_str());
        assert_eq!(said.contains("since it was read"), stamped, "{}: {said}", operation.id);
        assert_eq!(said.contains("primary"), operation.id == "createContact", "{}: {said}", operation.id);
        assert!(said.contains("`Idempotency-Key`") && conflict["headers"].get("Retry-After").is_some(), "{}: {conflict}", operation.id);
        // `createContact` has no 404, since a new contact refers to no record that might be missing.
        assert_eq!(responses.get("404").is_none(), operation.id == "createContact", "{}", operation.id);
    }
}

#[test]
fn inputs_are_described_as_they_are_validated() {
    let schemas = document().document["components"]["schemas"].clone();
    let contact = &schemas["ContactCreation"]["properties"];
    assert_eq!((&contact["email"]["format"], &contact["email"]["maxLength"]), (&"email".into(), &100.into()));
    assert_eq!(contact["phone"]["pattern"], r"^\+[1-9][0-9]{1,13}$");
    let revenue = &schemas["TicketClosing"]["properties"]["totalRevenue"];
    assert_eq!((&revenue["type"], &revenue["minimum"]), (&"number".into(), &0.into()));
    let fields = schemas["TicketClosing"]["properties"]["ticketFields"]["description"].as_str().unwrap_or_default();
    assert!(fields.contains("`null` is refused"), "{fields}");
    // Every id in an input schema has a documented maximum length. `TicketFilters` is left out: a filter accepts an id of any length, and
    // an unknown id matches nothing.
    for (name, schema) in schemas.as_object().into_iter().flatten().filter(|(name, _)| name.as_str() != "TicketFilters") {
        let closed = schema["additionalProperties"] == false;
        for (property, schema) in schema["properties"].as_object().into_iter().flatten().filter(|_| closed) {
            if property.ends_with("Id") && schema["type"] == "string" {
                assert_eq!(schema["maxLength"], if schema["format"] == "uuid" { 36 } else { 64 }, "{name}.{property}");
            }
        }
    }
    let labels = schemas["LabelsInput"]["description"].as_str().unwrap_or_default();
    assert_eq!(labels.contains("must hold an id"), REV_A, "{labels}");
}

#[test]
fn every_schema_and_every_property_has_a_description() {
    let mut silent = Vec::new();
    for name in [format!("{REVISION}.json"), format!("events-{REVISION}.json"), "settings.json".to_owned()] {
        let document: Value = serde_json::from_str(&kept(&name)).expect("a document is JSON");
        let schemas = document["components"]["schemas"].as_object().expect("a document has schemas");
        let is_silent = |schema: &Value| schema["description"].as_str().unwrap_or_default().is_empty();
        for (schema, value) in schemas {
            if is_silent(value) {
                silent.push(format!("{name}: {schema}"));
            }
            let properties = value["properties"].as_object().into_iter().flatten().filter(|(_, property)| is_silent(property));
            silent.extend(properties.map(|(property, _)| format!("{name}: {schema}.{property}")));
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}
