//! Contract checks: compare the requests and responses of the suite with the published OpenAPI documents. One document describes the
//! contract (the API under `/v1`), the other the settings API. A response must match the document's schema for its operation and status. A
//! request that succeeds must be valid according to the document. A response to [`Call::send`] must also have the envelope: the JSON object
//! with `requestId`, `requestReceivedAt`, `storeId`, and either `data` or `error`.
//!
//! [`examples_match_schemas`] checks the examples of a document against its schemas. [`property_paths`] names the properties of a document
//! by path. [`coverage_recorder`] records which properties, responses and parameters occurred in a run. [`request`] checks requests against
//! the document, and [`event_contract`] checks events.

#[path = "contract/coverage_recorder.rs"]
mod coverage_recorder;
#[path = "contract/event_contract.rs"]
pub mod event_contract;
#[path = "contract/examples_match_schemas.rs"]
mod examples_match_schemas;
#[path = "contract/property_paths.rs"]
pub mod property_paths;
#[path = "contract/request.rs"]
mod request;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use crate::{
    REV_A,
    client::{Answer, Api, Call},
};

/// The path prefix of the settings API.
const SETTINGS: &str = "/settings/v1";

/// The revision of the contract, as it appears in file names.
pub const REVISION: &str = if REV_A { "rev-a" } else { "rev-b" };

/// An OpenAPI document, and the checks of requests and responses against it.
pub struct Contract {
    pub document: Value,
    /// The name of the document in the files that [`coverage_recorder`] writes.
    name: &'static str,
    /// The path prefix of the document's operations.
    prefix: &'static str,
    operations: Vec<Operation>,
    /// The component schemas converted into JSON Schema: first those for responses, which accept only listed properties, then those for
    /// requests.
    components: [Value; 2],
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// One operation of an OpenAPI document.
#[derive(Clone, Debug)]
pub struct Operation {
    pub method: String,
    pub path: String,
    pub id: String,
    pub node: Value,
}

/// Returns the checks against the OpenAPI document of the contract. The document is read once, from the server of the first caller.
pub fn contract(api: &Api) -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(|| Contract::new(api.anonymous().raw("GET", "/openapi.json").exchange().body()))
}

/// Returns the checks against the OpenAPI document of the settings API. The document is read once, from the server of the first caller.
pub fn settings(api: &Api) -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(|| Contract::of_settings(api.anonymous().raw("GET", "/settings/openapi.json").exchange().body()))
}

impl Contract {
    pub fn new(document: Value) -> Self {
        Self::under("/v1", REVISION, document)
    }

    pub fn of_settings(document: Value) -> Self {
        Self::under(SETTINGS, "settings", document)
    }

    /// Creates the checks against a document with this `name`, for requests to paths that begin with `prefix`.
    pub fn under(prefix: &'static str, name: &'static str, document: Value) -> Self {
        let components = [true, false].map(|closed| {
            let mut components = document["components"].clone();
            translate(&mut components["schemas"], closed);
            components
        });
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, node) in item.as_object().into_iter().flatten() {
                if ["get", "post", "put", "patch", "delete"].contains(&method.as_str()) {
                    operations.push(Operation {
                        method: method.to_ascii_uppercase(),
                        path: path.strip_prefix(prefix).unwrap_or(path).to_owned(),
                        id: node["operationId"].as_str().unwrap_or_default().to_owned(),
                        node: inlined(&document, node),
                    });
                }
            }
        }
        Self { document, name, prefix, operations, components, validators: Mutex::default() }
    }

    #[allow(dead_code, reason = "not every test binary lists the operations")]
    pub fn operations(&self) -> Vec<Operation> {
        self.operations.clone()
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Operation> {
        let method = if method == "HEAD" { "GET" } else { method };
        let path = path.strip_prefix(self.prefix)?;
        self.operations.iter().find(|operation| operation.method == method && operation.path == path)
    }

    /// Returns what the document says about the operation's response with this status. Panics if the document does not list the status.
    #[track_caller]
    fn response<'a>(&'a self, operation: &'a Operation, status: u16) -> &'a Value {
        let response = operation.node["responses"].get(status.to_string());
        self.resolved(response.unwrap_or_else(|| panic!("{} does not document status {status}", operation.id)))
    }

    /// Returns the validator for the schema that `make` returns, cached by `key`. If `closed`, properties that the schema does not list are
    /// errors.
    fn validator(&self, key: &str, closed: bool, make: impl FnOnce() -> Value) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let build = || {
            let mut schema = make();
            translate(&mut schema, closed);
            let root = json!({"allOf": [schema], "components": self.components[usize::from(!closed)]});
            let options =
                jsonschema::options().with_draft(Draft::Draft4).with_format("uuid", is_uuid).should_validate_formats(true).build(&root);
            Arc::new(options.unwrap_or_else(|error| panic!("the schema of {key} is broken: {error}")))
        };
        validators.entry(key.to_owned()).or_insert_with(build).clone()
    }

    fn resolved<'a>(&'a self, node: &'a Value) -> &'a Value {
        match node.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap_or_else(|| panic!("{reference} leads nowhere")),
            None => node,
        }
    }

    /// Checks a response, and its request if it succeeded, against the document. Panics if one of them does not match the document; the
    /// message shows request and response.
    #[track_caller]
    pub fn exchanged(&self, call: &Call, answer: &Answer) {
        let Some(operation) = self.operation(&call.method, &call.path) else {
            let unknown = [404, 405].contains(&answer.status);
            assert!(unknown, "the document has no {} {}\n{}", call.method, call.path, answer.described());
            return;
        };
        self.conforms(operation, call, answer);
        if (200..300).contains(&answer.status) {
            let faults = self.request_faults(operation, call);
            assert!(faults.is_empty(), "the request succeeded, but the document does not allow it: {faults:#?}\n{}", answer.described());
            if call.method == "HEAD" {
                return;
            }
            coverage_recorder::saw(self.name, &format!("success {}", operation.id));
            coverage_recorder::counted(self.name);
            if operation.id == "listEvents" {
                for event in answer.body()["data"].as_array().into_iter().flatten() {
                    event_contract::check(event).unwrap_or_else(|fault| panic!("{fault}\n{}", answer.described()));
                }
            }
        }
    }

    /// Checks the headers and the body of a response against what the document lists for the operation and the status.
    #[track_caller]
    fn conforms(&self, operation: &Operation, call: &Call, answer: &Answer) {
        let response = self.response(operation, answer.status);
        let (id, code) = (&operation.id, answer.status);
        self.headers(&format!("{id} {code}"), response, answer);
        // The response to HEAD has no body that could be checked.
        if call.method == "HEAD" {
            return;
        }
        coverage_recorder::saw(self.name, &format!("answer {id} {code}"));
        if code == 404 {
            let message = answer.body()["error"]["message"].as_str().unwrap_or_default().to_owned();
            assert!(
                message.starts_with('`'),
                "the message of a 404 must begin with the member that names the missing record\n{}",
                answer.described()
            );
        }
        let media = response["content"].as_object().into_iter().flatten().find(|(name, _)| name.starts_with("application/json"));
        let schema = &media.unwrap_or_else(|| panic!("{id} has no JSON under {code}")).1["schema"];
        let body = answer.body();
        let validator = self.validator(&format!("{id} {code}"), true, || schema.clone());
        let errors = faults(&validator, &body);
        assert!(errors.is_empty(), "the answer does not match the document: {errors:#?}\n{}", answer.described());
        property_paths::found(&self.document, schema, &body, &format!("{id} {code}"), &mut |place| {
            coverage_recorder::saw(self.name, &format!("property {place}"));
        });
    }

    /// Checks the headers of a response: headers that the document requires are present, values match their schemas, and each header that
    /// the API defines is documented.
    #[track_caller]
    fn headers(&self, key: &str, response: &Value, answer: &Answer) {
        let listed: HashMap<String, &Value> =
            response["headers"].as_object().into_iter().flatten().map(|(name, header)| (name.to_ascii_lowercase(), header)).collect();
        for (name, header) in &listed {
            let Some(value) = answer.header(name) else {
                assert!(header["required"] != true, "no {name}\n{}", answer.described());
                continue;
            };
            let value = request::typed(&header["schema"], value).unwrap_or_else(|| panic!("{name}: {value}\n{}", answer.described()));
            let validator = self.validator(&format!("{key} {name}"), true, || header["schema"].clone());
            let errors = faults(&validator, &value);
            assert!(errors.is_empty(), "{name}: {errors:#?}\n{}", answer.described());
            coverage_recorder::saw(self.name, &format!("header {key} {name}"));
        }
        for (name, _) in &answer.headers {
            let ours = ["x-pagination-", "idempotency-", "x-request-id", "set-cookie"].iter().any(|prefix| name.starts_with(prefix));
            assert!(!ours || listed.contains_key(name), "the document does not list the header {name}\n{}", answer.described());
        }
    }
}

/// Returns an operation with its references to shared parameters, responses and headers replaced by their targets. References to schemas
/// stay.
fn inlined(document: &Value, node: &Value) -> Value {
    match node {
        Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
            Some(reference) if !reference.starts_with("#/components/schemas/") => {
                inlined(document, document.pointer(&reference[1..]).unwrap_or_else(|| panic!("{reference} leads nowhere")))
            }
            _ => members.iter().map(|(name, member)| (name.clone(), inlined(document, member))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| inlined(document, item)).collect(),
        other => other.clone(),
    }
}

/// Validates a value against a schema. Returns the errors, each with the path of the value.
fn faults(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

/// Whether a text has the form of a UUID: 36 characters with hyphens.
fn is_uuid(text: &str) -> bool {
    let hyphen = |at: usize| [8, 13, 18, 23].contains(&at);
    text.len() == 36 && text.bytes().enumerate().all(|(at, byte)| if hyphen(at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// Converts OpenAPI 3.0 schemas into JSON Schema draft 4: `nullable` becomes the alternative type `null`. If `closed`, an object schema
/// that has `properties`, but neither `additionalProperties` nor `allOf`, accepts no other properties, so that an undocumented one is an
/// error.
fn translate(schema: &mut Value, closed: bool) {
    match schema {
        Value::Object(map) => {
            map.remove("example");
            map.remove("default");
            map.values_mut().for_each(|inner| translate(inner, closed));
            let listed = map.get("properties").is_some_and(Value::is_object) && !map.contains_key("additionalProperties");
            if closed && listed && !map.contains_key("allOf") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            if map.get("nullable") == Some(&json!(true)) {
                map.remove("nullable");
                let inner = Value::Object(std::mem::take(map));
                map.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| translate(item, closed)),
        _ => {}
    }
}

/// Returns the checks against the OpenAPI document that describes a path: that of the settings API or that of the contract. Returns `None`
/// for a path that neither document describes.
fn document_of(api: &Api, path: &str) -> Option<&'static Contract> {
    let below = |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
    if below(SETTINGS) { Some(settings(api)) } else { below("/v1").then(|| contract(api)) }
}

/// Checks a response, and its request if it succeeded, against the document that describes the path, if there is one. Panics if one of them
/// does not match the document; the message shows request and response.
#[track_caller]
pub fn conforms(call: &Call, answer: &Answer) {
    if let Some(contract) = document_of(&call.api, &call.path) {
        contract.exchanged(call, answer);
    }
}

/// Checks the envelope of a response, and that no property is null. Panics on an error; the message shows request and response.
#[track_caller]
pub fn check(call: &Call, answer: &Answer) {
    let (api, path) = (&call.api, &call.path);
    let context = || answer.described();
    let request_id = answer.header("x-request-id").unwrap_or_else(|| panic!("no x-request-id\n{}", context()));
    let content_type = answer.header("content-type").unwrap_or_default();
    assert!(content_type.split(';').next() == Some("application/json"), "content-type {content_type}\n{}", context());
    if call.method == "HEAD" {
        assert_eq!(answer.text, "", "a HEAD answer has no body\n{}", context());
        return;
    }
    let body = answer.body();
    let in_settings = path.starts_with(SETTINGS);
    let contract = if in_settings { settings(api) } else { contract(api) };
    let operation = contract.operation(&call.method, path);
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
    // The caller of `sendLink` has no session yet, nor has the caller of an `openSession` that fails. So `storeId` may be empty. If
    // `openSession` fails because of the user's role, the server knows the user's store, and `storeId` may contain it.
    let stranger = operation.is_some_and(|operation| operation.id == "sendLink" || (operation.id == "openSession" && answer.status != 200));
    let known = operation.is_some() && ![401, 405].contains(&answer.status) && !(stranger && body["storeId"] == "");
    assert_eq!(body["storeId"], if known { api.store.as_str() } else { "" }, "storeId\n{}", context());
    if answer.status != 200 {
        assert_eq!(body["error"]["statusCode"], answer.status, "statusCode\n{}", context());
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "message\n{}", context());
    }
    // The event feed shows events as they were recorded. They may contain null.
    if let Some(place) = null_in(&body["data"]).filter(|_| path != "/settings/v1/events") {
        panic!("{place} is null; an absent property is left out\n{}", context());
    }
}

/// Whether a text has the format of `requestReceivedAt`: a timestamp in revision A of the API, milliseconds since 1970 in revision B.
fn is_received_at(text: &str) -> bool {
    if REV_A { is_timestamp(text) } else { text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit()) }
}

/// Whether a text has exactly the form `2026-01-31T09:05:00.123Z`.
pub fn is_timestamp(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(found, form)| if *form == b'0' { found.is_ascii_digit() } else { found == *form })
}

/// Returns the name of the first property that is null. Skips `metadata`, `components` and `value`: their content is free-form JSON of the
/// store, which may contain null.
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
