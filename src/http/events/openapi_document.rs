//! Generates the OpenAPI 3.1 document of the events. Its property `webhooks` has one entry for test events, and one for each kind of event
//! that can occur in the revision (A or B) of the API contract for which the program is compiled. The schemas are generated from the types
//! that are serialized ([`super`]), so the document matches the events that are sent. Called by `app`, `cli` and `assistant_tools`.
//!
//! [`with_operations`] generates one document with the events and the operations of the contract.

use std::collections::BTreeMap;

use poem_openapi::{Object, registry::Registry, types::Type};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{AssignmentData, ClosedData, ContactFieldData, EscalationData, Event, LabelData, MessageData, OpenedData, TicketFieldData};
use crate::{
    domain::webhooks::{PAUSES, TEST_KIND},
    http::openapi::{
        contract_document,
        document_post_processing::{in_form, sorted},
        examples,
        openapi_3_1::{convert, modern},
    },
    revision,
};

/// The property `data` of a test event, which is sent to a webhook when a user asks for it.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct TestData {
    /// The id of the webhook that is tested.
    webhook_id: String,
}

/// The description of one kind of event in the OpenAPI document.
struct EventDescription {
    kind: &'static str,
    summary: &'static str,
    /// Registers the type of the property `data` of these events, and returns the schema of this type.
    data: fn(&mut Registry) -> Value,
}

fn of<T: Type>(registry: &mut Registry) -> Value {
    T::register(registry);
    plain(&T::schema_ref())
}

fn plain(value: &impl Serialize) -> Value {
    // Serialization cannot fail for plain data with string keys.
    serde_json::to_value(value).unwrap_or_default()
}

const EVENTS: [EventDescription; 12] = [
    EventDescription { kind: "message.received", summary: "A contact sent a message", data: of::<MessageData> },
    EventDescription { kind: "message.sent", summary: "A message was accepted by its channel", data: of::<MessageData> },
    EventDescription { kind: "ticket.opened", summary: "A ticket was opened, for the first time or again", data: of::<OpenedData> },
    EventDescription { kind: "ticket.closed", summary: "A ticket was closed", data: of::<ClosedData> },
    EventDescription { kind: "ticket.assigned", summary: "A ticket was assigned", data: of::<AssignmentData> },
    EventDescription { kind: "ticket.unassigned", summary: "A ticket lost its assignee", data: of::<AssignmentData> },
    EventDescription { kind: "ticket.ticket_field_updated", summary: "The value of a ticket's field changed", data: of::<TicketFieldData> },
    EventDescription { kind: "conversation.label_added", summary: "A label was added to a conversation", data: of::<LabelData> },
    EventDescription { kind: "conversation.label_removed", summary: "A label was removed from a conversation", data: of::<LabelData> },
    EventDescription {
        kind: "contact.contact_field_updated",
        summary: "The value of a contact's field changed",
        data: of::<ContactFieldData>,
    },
    EventDescription { kind: "ai.escalated", summary: "The AI hands a conversation over to people", data: of::<EscalationData> },
    EventDescription {
        kind: TEST_KIND,
        summary: "A test event for an endpoint, which the feed of events does not list",
        data: of::<TestData>,
    },
];

/// The name of the security scheme for the signatures of deliveries.
const SIGNATURE: &str = "Signature";

/// Generates the OpenAPI document of the events.
pub fn document() -> Value {
    let mut registry = Registry::new();
    Event::register(&mut registry);
    let events: Vec<(&EventDescription, Value)> = caused().map(|event| (event, (event.data)(&mut registry))).collect();
    let mut schemas: BTreeMap<String, Value> = registry.schemas.iter().map(|(name, schema)| (name.clone(), plain(schema))).collect();
    let payload = schemas.remove("Event").unwrap_or_default();
    // The payload schema of each kind of event permits only that kind as `type`, so the enumeration of all kinds is not needed.
    schemas.remove("EventKind");
    unexpanded(&mut schemas);
    let mut webhooks = Map::new();
    for (event, data) in events {
        let name = title(event.kind);
        schemas.insert(name.clone(), payload_of(event, &name, payload.clone(), data));
        webhooks.insert(event.kind.to_owned(), json!({ "post": delivery(event, &name) }));
    }
    let mut document = in_form(json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("counterpart events, revision {}", revision::NAME),
            "version": "1.0.0",
            "description": description(),
            "license": { "name": "MIT OR Apache-2.0", "url": "https://spdx.org/licenses/MIT.html" },
            "contact": { "name": "The operator of this server" },
        },
        "servers": [{
            "url": "https://{endpoint}",
            "variables": { "endpoint": { "default": "your-endpoint.invalid", "description": "The address of the webhook without `https://`." } },
        }],
        "webhooks": webhooks,
        "components": {
            "schemas": schemas,
            "securitySchemes": { SIGNATURE: {
                "type": "apiKey",
                "in": "header",
                "name": "webhook-signature",
                "description": "`v1,` and the base64 of an HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`. The key of the HMAC is \
                                the part of the webhook's secret behind `whsec_`, decoded from base64. For a time after a rotation of the \
                                secret there are several signatures, separated by spaces, of which one has to match. Use the bytes of the \
                                body exactly as they were received.",
            } },
        },
    }));
    for schema in document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        modern(schema);
    }
    drop_unused(&mut document);
    for (kind, event) in examples::events() {
        if let Some(media) =
            document["webhooks"].get_mut(&kind).and_then(|hook| hook.pointer_mut("/post/requestBody/content/application~1json"))
        {
            media["examples"] = json!({ "demo": { "value": event } });
        }
    }
    sorted(document)
}

/// Generates one OpenAPI 3.1 document with the operations of the contract and the events. Some schemas differ between operations and
/// events, since an event contains nothing that `expand` adds. If the operations and the events have different schemas of the same name,
/// the schema of the events is renamed, for example from `Ticket` to `EventTicket`.
pub fn with_operations() -> Value {
    let (mut whole, mut events) = (contract_document::document(), document());
    convert(&mut whole);
    let shared = |whole: &Value, events: &Value| -> Vec<(String, String)> {
        let theirs = events["components"]["schemas"].as_object();
        let differs = |name: &String, schema: &Value| whole["components"]["schemas"].get(name).is_some_and(|own| own != schema);
        let named = theirs.into_iter().flatten().filter(|(name, schema)| differs(name, schema));
        named.map(|(name, _)| (name.clone(), format!("Event{name}"))).collect()
    };
    // Renaming a schema changes every schema that refers to it, so further schemas may then differ from the schemas of the operations. The
    // comparison is therefore repeated until no schema has to be renamed.
    loop {
        let renamed = shared(&whole, &events);
        if renamed.is_empty() {
            break;
        }
        rename(&mut events, &renamed);
    }
    let introduction = [&whole, &events].map(|document| document["info"]["description"].as_str().unwrap_or_default().trim_end().to_owned());
    whole["info"]["description"] = introduction.join("\n\n## Delivery of events\n\n").into();
    whole["webhooks"] = events["webhooks"].take();
    for webhook in whole["webhooks"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        webhook["servers"] = events["servers"].clone();
    }
    for section in ["schemas", "securitySchemes"] {
        let pointer = format!("/components/{section}");
        if let (Some(all), Some(Value::Object(more))) =
            (whole.pointer_mut(&pointer).and_then(Value::as_object_mut), events.pointer_mut(&pointer).map(Value::take))
        {
            all.extend(more);
        }
    }
    sorted(whole)
}

/// Renames schemas, and the references to them.
fn rename(document: &mut Value, names: &[(String, String)]) {
    fn references(value: &mut Value, names: &[(String, String)]) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get_mut("$ref")
                    && let Some((_, new)) = names.iter().find(|(old, _)| *target == format!("#/components/schemas/{old}"))
                {
                    *target = format!("#/components/schemas/{new}");
                }
                members.values_mut().for_each(|member| references(member, names));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| references(item, names)),
            _ => {}
        }
    }
    references(document, names);
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        for (old, new) in names {
            if let Some(mut schema) = schemas.remove(old) {
                if schema.get("title").is_some() {
                    schema["title"] = new.as_str().into();
                }
                schemas.insert(new.clone(), schema);
            }
        }
    }
}

/// Returns the descriptions of those kinds of events that can occur in the revision for which the program is compiled.
fn caused() -> impl Iterator<Item = &'static EventDescription> {
    EVENTS.iter().filter(|event| !revision::UNCAUSED_EVENTS.contains(&event.kind))
}

fn description() -> String {
    let uncaused: Vec<String> = revision::UNCAUSED_EVENTS.iter().map(|kind| format!("`{kind}`")).collect();
    let absent = match uncaused.is_empty() {
        true => String::new(),
        false => format!(
            " Nothing in this revision causes {}: a subscription to it gets only the events that the other revision recorded.",
            uncaused.join(" or ")
        ),
    };
    format!(
        "The events that are posted to subscribed endpoints, in the form of Standard Webhooks. Each event is delivered at least once, and \
         events are delivered in no particular order: a repeated delivery has the same `webhook-id`, and `sequence` states the order. \
         Ignore members that you do not know. An event that was recorded while the other revision served the store is sent as it was \
         recorded: its `apiRevision` names that revision, whose document describes it.{absent}"
    )
}

/// The properties that `expand` adds to a response, by schema. An event never has them.
const EXPANDED: [(&str, &[&str]); 3] = [
    ("Ticket", &["account", "conversation", "assignee"]),
    ("Message", &["account", "conversation", "sentBy"]),
    ("Conversation", &["account"]),
];

/// Reduces the schemas of records to what a response without `expand` contains.
fn unexpanded(schemas: &mut BTreeMap<String, Value>) {
    for (schema, names) in EXPANDED {
        let Some(properties) = schemas.get_mut(schema).and_then(|schema| schema["properties"].as_object_mut()) else { continue };
        for name in names {
            properties.remove(*name);
        }
        for property in properties.values_mut() {
            if let Some((plain, _)) = property["description"].as_str().and_then(|text| text.split_once("; omitted with `expand=")) {
                property["description"] = format!("{plain}.").into();
            }
        }
    }
    // In responses `handledBy` is an id or, with `expand`, a user; in events it is the id.
    if let Some(handled_by) = schemas.get_mut("Ticket").and_then(|ticket| ticket["properties"].get_mut("handledBy")) {
        *handled_by = json!({
            "type": "string",
            "description": "The `userId` of the user who handled the ticket, as stated when it was closed or imported. \
                            May differ from the assignee.",
        });
    }
}

/// Removes the schemas to which no reference in the document points.
fn drop_unused(document: &mut Value) {
    loop {
        let text = document.to_string();
        let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else { return };
        let before = schemas.len();
        schemas.retain(|name, _| text.contains(&format!("\"#/components/schemas/{name}\"")));
        if schemas.len() == before {
            return;
        }
    }
}

/// Returns the name of the schema of a kind of event: `MessageReceived` for `message.received`.
fn title(kind: &str) -> String {
    let words = kind.split(['.', '_']);
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Makes the payload schema of one kind of event from `payload`, the schema that all kinds share: restricts the property `type` to that
/// kind, and sets the schema of the property `data`.
fn payload_of(event: &EventDescription, name: &str, mut payload: Value, data: Value) -> Value {
    payload["title"] = name.into();
    payload["description"] = format!("{}.", event.summary).into();
    payload["properties"]["type"] = json!({ "type": "string", "enum": [event.kind], "description": "The kind of the event." });
    payload["properties"]["data"] = data;
    payload["properties"]["data"]["description"] = "The details of the event.".into();
    payload["properties"]["apiRevision"]["enum"] = json!([revision::NAME]);
    if event.kind == TEST_KIND {
        // A test event is not recorded, so it has no `sequence`.
        if let Some(properties) = payload["properties"].as_object_mut() {
            properties.remove("sequence");
        }
        if let Some(required) = payload["required"].as_array_mut() {
            required.retain(|name| name != "sequence");
        }
    }
    payload
}

fn delivery(event: &EventDescription, payload: &str) -> Value {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "required": true, "description": description, "schema": schema });
    let pauses: Vec<String> = PAUSES.iter().map(|pause| (pause / 1000).to_string()).collect();
    let retried = format!(
        "The event was not delivered. After any other answer, also a redirect, and if there is no answer within 15 seconds, the same bytes \
         are sent again. The pauses are {} seconds, plus or minus a fifth, each counted from the end of the previous attempt. After the last \
         attempt the event is given up. A webhook whose attempts have all failed for 5 days is disabled.",
        pauses.join(", ")
    );
    json!({
        "operationId": title(event.kind),
        "summary": event.summary,
        "parameters": [
            header("webhook-id", "The event's id, the same on every attempt.", json!({ "type": "string" })),
            header("webhook-timestamp", "The attempt's time in Unix seconds.", json!({ "type": "string", "pattern": "^[0-9]+$" })),
            header("webhook-signature", "One signature, or several separated by spaces.", json!({ "type": "string", "pattern": "^v1,\\S+( v1,\\S+)*$" })),
        ],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": { "$ref": format!("#/components/schemas/{payload}") } } },
        },
        "responses": {
            "2XX": { "description": "The event was delivered. The content of the answer is ignored." },
            "410": { "description": "The endpoint is gone: the webhook is disabled at once, and the events that wait for it are dropped." },
            "default": {
                "description": retried,
                "headers": { "retry-after": {
                    "description": "Seconds or a date. The next attempt is not made before that time; a pause of more than 24 hours counts as 24 hours.",
                    "schema": { "type": "string" },
                } },
            },
        },
        "security": [{ SIGNATURE: [] }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::webhooks::KINDS;

    #[test]
    fn the_document_describes_exactly_the_event_kinds() {
        let described: Vec<_> = EVENTS.iter().map(|event| event.kind).collect();
        assert_eq!(described, [&KINDS[..], &[TEST_KIND]].concat());
        let document = document();
        for kind in described {
            if revision::UNCAUSED_EVENTS.contains(&kind) {
                assert_eq!(document["webhooks"].get(kind), None);
                continue;
            }
            let name = title(kind);
            assert_eq!(document["webhooks"][kind]["post"]["operationId"], name);
            let properties = &document["components"]["schemas"][&name]["properties"];
            assert_eq!((&properties["type"]["const"], &properties["apiRevision"]["const"]), (&json!(kind), &json!(revision::NAME)));
            assert_eq!(properties.get("sequence").is_none(), kind == TEST_KIND);
        }
    }

    #[test]
    fn operations_and_events_share_one_document() {
        let (whole, events) = (with_operations(), document());
        assert_eq!(whole["openapi"], "3.1.0");
        assert_eq!(whole["webhooks"].as_object().map(Map::len), events["webhooks"].as_object().map(Map::len));
        assert_eq!(contract_document::routes(&whole), contract_document::routes(&contract_document::document()));
        // A response may contain expanded objects; an event never contains any.
        let schemas = &whole["components"]["schemas"];
        assert!(
            schemas["Ticket"]["properties"].get("assignee").is_some() && schemas["EventTicket"]["properties"].get("assignee").is_none()
        );
        assert_eq!(schemas["Label"], contract_document::document()["components"]["schemas"]["Label"]);
        let text = whole.to_string();
        for (name, _) in schemas.as_object().unwrap() {
            assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name}");
        }
    }
}
