//! The published document, and the one check that every answer of the suite goes through: the envelope of section 2.1
//! and the schema that `/openapi.json` gives for the operation and the status.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use crate::{
    REV_A,
    client::{Answer, Api},
};

/// What the settings plane is served under.
const SETTINGS: &str = "/settings/v1";

/// The document as a server of this run publishes it.
pub struct Contract {
    pub document: Value,
    /// What its paths are served under.
    prefix: &'static str,
    /// The component schemas in the dialect that the validator reads.
    components: Value,
    validators: Mutex<HashMap<(String, u16), Arc<Validator>>>,
}

/// One operation of the document.
#[derive(Clone, Debug)]
pub struct Operation {
    pub method: String,
    pub path: String,
    pub id: String,
    pub node: Value,
}

/// The document, read once from the first server that is asked.
pub fn contract(api: &Api) -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(|| Contract::new(api.anonymous().raw("GET", "/openapi.json").exchange().body()))
}

/// The document of the settings plane, likewise.
pub fn settings(api: &Api) -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(|| Contract::under(SETTINGS, api.anonymous().raw("GET", "/settings/openapi.json").exchange().body()))
}

impl Contract {
    pub fn new(document: Value) -> Self {
        Self::under("/v1", document)
    }

    fn under(prefix: &'static str, document: Value) -> Self {
        let mut components = document["components"].clone();
        translate(&mut components["schemas"]);
        Self { document, prefix, components, validators: Mutex::default() }
    }

    pub fn operations(&self) -> Vec<Operation> {
        let mut all = Vec::new();
        for (path, item) in self.document["paths"].as_object().into_iter().flatten() {
            for (method, node) in item.as_object().into_iter().flatten() {
                if ["get", "post", "put", "patch", "delete"].contains(&method.as_str()) {
                    all.push(Operation {
                        method: method.to_ascii_uppercase(),
                        path: path.strip_prefix(self.prefix).unwrap_or(path).to_owned(),
                        id: node["operationId"].as_str().unwrap_or_default().to_owned(),
                        node: node.clone(),
                    });
                }
            }
        }
        all
    }

    fn operation(&self, method: &str, path: &str) -> Option<Operation> {
        let method = if method == "HEAD" { "GET" } else { method };
        let path = path.strip_prefix(self.prefix)?;
        self.operations().into_iter().find(|operation| operation.method == method && operation.path == path)
    }

    fn validator(&self, operation: &Operation, status: u16) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let make = || {
            let responses = &operation.node["responses"];
            let response =
                responses.get(status.to_string()).unwrap_or_else(|| panic!("{} does not document status {status}", operation.id));
            let response = self.resolved(response);
            let content = response["content"].as_object().cloned().unwrap_or_default();
            let media = content.iter().find(|(name, _)| name.starts_with("application/json")).map(|(_, media)| media);
            let mut schema = media.unwrap_or_else(|| panic!("{} has no JSON under {status}", operation.id))["schema"].clone();
            translate(&mut schema);
            let root = json!({"allOf": [schema], "components": self.components});
            let built = jsonschema::options().with_draft(Draft::Draft4).should_validate_formats(true).build(&root);
            Arc::new(built.unwrap_or_else(|error| panic!("the schema of {} under {status} is broken: {error}", operation.id)))
        };
        validators.entry((operation.id.clone(), status)).or_insert_with(make).clone()
    }

    fn resolved(&self, node: &Value) -> Value {
        match node.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.document.pointer(&reference[1..]).cloned().unwrap_or_else(|| panic!("{reference} leads nowhere")),
            None => node.clone(),
        }
    }
}

/// Turns OpenAPI 3.0 schemas into draft 4: `nullable` becomes a type, and an object whose properties are listed takes
/// no others, so that an undocumented property fails.
fn translate(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("example");
            map.remove("default");
            map.values_mut().for_each(translate);
            let closed = map.get("properties").is_some_and(Value::is_object) && !map.contains_key("additionalProperties");
            if closed && !map.contains_key("allOf") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            if map.get("nullable") == Some(&json!(true)) {
                map.remove("nullable");
                let inner = Value::Object(std::mem::take(map));
                map.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(translate),
        _ => {}
    }
}

/// Holds an answer against the contract; panics with the whole exchange where it does not fit.
#[track_caller]
pub fn check(api: &Api, method: &str, path: &str, answer: &Answer) {
    let context = || answer.described();
    let request_id = answer.header("x-request-id").unwrap_or_else(|| panic!("no x-request-id\n{}", context()));
    let content_type = answer.header("content-type").unwrap_or_default();
    assert!(content_type.split(';').next() == Some("application/json"), "content-type {content_type}\n{}", context());
    if method == "HEAD" {
        assert_eq!(answer.text, "", "a HEAD answer has no body\n{}", context());
        return;
    }
    let body = answer.body();
    let in_settings = path.starts_with(SETTINGS);
    let contract = if in_settings { settings(api) } else { contract(api) };
    let operation = contract.operation(method, path);
    let empty = Map::new();
    let envelope = body.as_object().unwrap_or(&empty);
    let payload = if answer.status == 200 { "data" } else { "error" };
    let mut members: Vec<_> = envelope.keys().map(String::as_str).collect();
    members.sort_unstable();
    let mut expected = vec![payload, "requestId", "requestReceivedAt", "storeId"];
    expected.sort_unstable();
    assert_eq!(members, expected, "the envelope's members\n{}", context());
    assert_eq!(body["requestId"], request_id, "requestId and x-request-id\n{}", context());
    let received_at = if in_settings { is_timestamp } else { is_received_at };
    assert!(body["requestReceivedAt"].as_str().is_some_and(received_at), "requestReceivedAt\n{}", context());
    // Whoever opens a session is a stranger until the end, but for a refusal of the role.
    let stranger = operation.as_ref().is_some_and(|operation| operation.id == "openSession") && answer.status != 200;
    let known = operation.is_some() && ![401, 405].contains(&answer.status) && !(stranger && body["storeId"] == "");
    assert_eq!(body["storeId"], if known { api.store.as_str() } else { "" }, "storeId\n{}", context());
    if answer.status != 200 {
        assert_eq!(body["error"]["statusCode"], answer.status, "statusCode\n{}", context());
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "message\n{}", context());
    }
    // The feed tells events as they were recorded.
    if let Some(place) = null_in(&body["data"]).filter(|_| path != "/settings/v1/events") {
        panic!("{place} is null; an absent property is left out\n{}", context());
    }
    if let Some(operation) = operation {
        let validator = contract.validator(&operation, answer.status);
        let errors: Vec<_> = validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path)).collect();
        assert!(errors.is_empty(), "the document says otherwise: {errors:#?}\n{}", context());
    }
}

/// The revision's way to write the time of arrival.
fn is_received_at(text: &str) -> bool {
    if REV_A { is_timestamp(text) } else { text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit()) }
}

/// `2026-01-31T09:05:00.123Z`, to the letter.
pub fn is_timestamp(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(found, form)| if *form == b'0' { found.is_ascii_digit() } else { found == *form })
}

/// The first null, those of the store's own free-form values aside.
fn null_in(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().find_map(null_in),
        Value::Object(map) => map
            .iter()
            .filter(|(name, _)| !["metadata", "components", "value"].contains(&name.as_str()))
            .find_map(|(name, value)| if value.is_null() { Some(name.clone()) } else { null_in(value) }),
        _ => None,
    }
}
