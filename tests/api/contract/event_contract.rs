//! Checks events against the OpenAPI document that describes them. An event is the record of a change in a store. The server shows events
//! in three places, which are all checked here: the event feed of the settings API, the output of `counterpart events`, and the deliveries
//! to webhooks.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::{REVISION, coverage_recorder, faults, property_paths};

/// Returns the OpenAPI document of the events from the folder `openapi`. `tests/api/openapi_documents.rs` checks that the program prints
/// the same document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("openapi").join(format!("events-{REVISION}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).expect("the document is JSON")
    })
}

/// Returns the schema of a kind of event, if the document has one.
pub fn payload(kind: &str) -> Option<&'static Value> {
    Some(&document()["webhooks"].get(kind)?["post"]["requestBody"]["content"]["application/json"]["schema"])
}

fn validator(kind: &str) -> Result<Arc<Validator>, String> {
    static VALIDATORS: Mutex<Option<HashMap<String, Arc<Validator>>>> = Mutex::new(None);
    let mut validators = VALIDATORS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let validators = validators.get_or_insert_default();
    if let Some(known) = validators.get(kind) {
        return Ok(known.clone());
    }
    let mut root = payload(kind).ok_or_else(|| format!("the document has no webhook {kind}"))?.clone();
    let mut components = document()["components"].clone();
    close(&mut components);
    root["components"] = components;
    let built = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).build(&root);
    let built = Arc::new(built.map_err(|error| format!("the schema of {kind} is broken: {error}"))?);
    validators.insert(kind.to_owned(), built.clone());
    Ok(built)
}

/// Makes schemas refuse properties that they do not list: adds `additionalProperties: false` to each schema that has `properties` and no
/// `additionalProperties`.
fn close(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            if map.get("properties").is_some_and(Value::is_object) && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Checks an event against the schema of its kind. Returns the kind.
pub fn conforms(event: &Value) -> Result<&str, String> {
    let kind = event["type"].as_str().ok_or_else(|| format!("an event without a type: {event}"))?;
    let errors = faults(&*validator(kind)?, event);
    if errors.is_empty() { Ok(kind) } else { Err(format!("the event does not match the document of events: {errors:#?}\n{event}")) }
}

/// Checks an event like [`conforms`], and records its kind and its properties for [`crate::coverage`].
pub fn check(event: &Value) -> Result<(), String> {
    let kind = conforms(event)?;
    let name = format!("events-{REVISION}");
    coverage_recorder::saw(&name, &format!("event {kind}"));
    if let Some(schema) = payload(kind) {
        property_paths::found(document(), schema, event, kind, &mut |place| coverage_recorder::saw(&name, &format!("property {place}")));
    }
    Ok(())
}

/// Checks every line that `counterpart events` printed.
#[track_caller]
pub fn check_lines(printed: &str) {
    for line in printed.lines() {
        let event = serde_json::from_str(line).unwrap_or_else(|error| panic!("an event is not JSON: {error}\n{line}"));
        check(&event).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

/// Checks the headers and the body of a delivery to a webhook. Skips requests of the type `message.send`, which are not events: they ask
/// the receiver to send a message to a customer.
#[allow(dead_code, reason = "not every test binary receives deliveries")]
pub fn check_delivery(headers: &HashMap<String, String>, body: &str) -> Result<(), String> {
    let event: Value = serde_json::from_str(body).map_err(|error| format!("a delivery is not JSON: {error}\n{body}"))?;
    if event["type"] == "message.send" {
        return Ok(());
    }
    check(&event)?;
    let operation = &document()["webhooks"][event["type"].as_str().unwrap_or_default()]["post"];
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let value = headers.get(name).ok_or_else(|| format!("a delivery without {name}: {headers:?}"))?;
        let valid = jsonschema::draft202012::new(&parameter["schema"]).map_err(|error| error.to_string())?;
        if !valid.is_valid(&json!(value)) {
            return Err(format!("{name}: {value} does not match the document"));
        }
        coverage_recorder::saw(&format!("events-{REVISION}"), &format!("parameter {} {name}", event["type"].as_str().unwrap_or_default()));
    }
    if headers.get("webhook-id").map(String::as_str) == event["id"].as_str() {
        Ok(())
    } else {
        Err("webhook-id is not the event's id".to_owned())
    }
}
