//! Post-processing of the OpenAPI documents: rewrites the output of the generator (poem-openapi) into a canonical form. Functions such as
//! `required_scope` are called for every JSON object of a document. Some of them add what the generator cannot express, so that no handler
//! has to state it: for example, `replayed_answer` adds a header to the responses of many operations.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::components::operations_mut;
use crate::{
    domain::revision_rules::Rules,
    http::{
        machinery::{auth::SCHEME, success_responses::REPLAYED},
        schemas::value_types::OPEN_ENUM,
    },
    revision,
};

/// Parses a document from the generator, and converts it to the canonical form.
pub fn canonical(spec: &str) -> Value {
    // Parsing cannot fail: the generator writes JSON.
    let mut document: Value = serde_json::from_str(spec).unwrap_or_default();
    document["openapi"] = "3.0.3".into();
    in_form(document)
}

/// Converts a document to the canonical form. The document may be assembled from several outputs of the generator.
pub fn in_form(mut document: Value) -> Value {
    let strict = request_schemas(&document);
    let mut nullable = BTreeSet::new();
    visit(&mut document, &mut |object| {
        whole_numbers(object);
        annotated_reference(object, &mut nullable);
        defaults(object);
        required_scope(object);
        replayed_answer(object);
        any_value(object);
        empty_list(object);
        by_rules(object);
    });
    public(&mut document);
    // The generator lists every tag that it knows. Tags that no operation uses are removed.
    let used: BTreeSet<String> = operations(&document)
        .flat_map(|operation| operation["tags"].as_array().into_iter().flatten())
        .filter_map(|tag| tag.as_str().map(str::to_owned))
        .collect();
    if let Some(tags) = document.get_mut("tags").and_then(Value::as_array_mut) {
        tags.retain(|tag| tag["name"].as_str().is_some_and(|name| used.contains(name)));
    }
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        let mut known = Vec::new();
        for (name, schema) in schemas.iter_mut() {
            title(name, schema);
            known.extend(schema.as_object_mut().and_then(|schema| open_enumeration(name, schema)));
            if strict.contains(name) && schema.get("properties").is_some() {
                // A request body with an unknown property is refused.
                schema["additionalProperties"] = false.into();
            }
            if nullable.contains(name) {
                schema["nullable"] = true.into();
            }
        }
        schemas.extend(known);
    }
    sorted(document)
}

/// Calls `change` on every object within a value, on inner objects first.
fn visit(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(|member| visit(member, change));
            change(object);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, change)),
        _ => {}
    }
}

/// Writes a whole-number bound such as `1.0` as `1`.
fn whole_numbers(object: &mut Map<String, Value>) {
    for bound in ["minimum", "maximum"] {
        if let Some(number) = object.get(bound).and_then(Value::as_f64).filter(|number| number.fract() == 0.0 && number.abs() < 1e15) {
            object.insert(bound.to_owned(), (number as i64).into());
        }
    }
}

/// Rewrites the schema of an open enumeration (its set of values may grow) so that it accepts any string. The rewritten schema lists the
/// known values in its description and in `x-extensible-enum`, which some tools read. Returns the name and the content of a second schema
/// with the known values, from which code generators make an enumeration. Any other schema stays as it is, and the result is `None`.
fn open_enumeration(name: &str, schema: &mut Map<String, Value>) -> Option<(String, Value)> {
    schema.get("format").filter(|format| *format == OPEN_ENUM)?;
    schema.remove("format");
    let (known, values) = (format!("Known{name}"), schema.remove("enum")?);
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let listed: Vec<String> = values.as_array().into_iter().flatten().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect();
    let said = format!("{text} The known values are {}; others may follow.", listed.join(", "));
    *schema = Map::from_iter([
        ("anyOf".to_owned(), json!([{ "$ref": format!("#/components/schemas/{known}") }, { "type": "string" }])),
        ("description".to_owned(), said.into()),
        ("x-extensible-enum".to_owned(), values.clone()),
    ]);
    Some((known, json!({ "type": "string", "enum": values, "description": format!("The known values of `{name}`.") })))
}

/// Adds a title to the schema of an envelope (the JSON object around every response), such as `Ticket list envelope` for
/// `TicketListEnvelope`. Without titles, readers could not tell the envelopes apart, since all of them have the same description.
fn title(name: &str, schema: &mut Value) {
    if name.ends_with("Envelope") {
        let words: String = name.chars().flat_map(|c| if c.is_uppercase() { vec![' ', c.to_ascii_lowercase()] } else { vec![c] }).collect();
        let words = words.trim_start();
        schema["title"] = format!("{}{}", words[..1].to_uppercase(), &words[1..]).into();
    }
}

/// Simplifies a reference with annotations such as `description`. The generator writes the annotations twice: next to `allOf`, and in a
/// second schema inside `allOf`. This function removes the second schema. OpenAPI 3.0 cannot make a reference nullable. So if the reference
/// should be nullable, the name of the referenced schema is added to `nullable`, and [`in_form`] makes that schema nullable.
fn annotated_reference(object: &mut Map<String, Value>, nullable: &mut BTreeSet<String>) {
    const ANNOTATIONS: [&str; 3] = ["description", "nullable", "deprecated"];
    let Some([reference, second]) = object.get("allOf").and_then(Value::as_array).map(Vec::as_slice) else { return };
    let (Some(target), Some(annotations)) = (reference["$ref"].as_str().map(str::to_owned), second.as_object()) else { return };
    if !annotations.keys().all(|key| ANNOTATIONS.contains(&key.as_str())) {
        return;
    }
    object.insert("allOf".to_owned(), json!([{ "$ref": target }]));
    if object.remove("nullable") == Some(Value::Bool(true)) {
        nullable.insert(target.rsplit('/').next().unwrap_or_default().to_owned());
    }
    if object.len() == 1 {
        object.clear();
        object.insert("$ref".to_owned(), target.into());
    }
}

/// Removes `nullable` from a schema without a type, where it has no meaning: such a schema accepts every value, including null.
fn any_value(object: &mut Map<String, Value>) {
    if !["type", "allOf", "anyOf"].iter().any(|name| object.contains_key(*name)) && object.get("nullable") == Some(&Value::Bool(true)) {
        object.remove("nullable");
    }
}

/// Replaces placeholders such as `{alone}` in descriptions that both revisions (A and B) of the API contract share. Each placeholder stands
/// for a text that is true in only one revision. In a build for that revision, the text replaces the placeholder; in a build for the other,
/// the placeholder is removed.
fn by_rules(object: &mut Map<String, Value>) {
    let Some(Value::String(text)) = object.get_mut("description") else { return };
    let Rules { conversation_history, contacts_by_relevance, .. } = revision::RULES;
    for (mark, said, holds) in [
        ("{alone}", "; alone, with no other filter, it lists them in every status, snoozed ones too", conversation_history),
        ("{or all}", ", or, of a conversation that is the only filter, all", conversation_history),
        ("{by relevance}", "; with `search`, the best matches first", contacts_by_relevance),
    ] {
        if text.contains(mark) {
            *text = text.replace(mark, if holds { said } else { "" });
        }
    }
}

/// Permits the empty value for list parameters in the query: `expand=` is the empty list.
fn empty_list(object: &mut Map<String, Value>) {
    if object.get("in").is_some_and(|place| place == "query") && object.get("schema").is_some_and(|schema| schema["type"] == "array") {
        object.insert("allowEmptyValue".to_owned(), true.into());
    }
}

/// Adds an empty `security` to each operation that requires no credential. The generator writes no `security` for such an operation.
fn public(document: &mut Value) {
    for operation in operations_mut(document).filter_map(Value::as_object_mut) {
        operation.entry("security").or_insert_with(|| json!([]));
    }
}

/// Removes properties whose value is the default, such as `required: false`.
fn defaults(object: &mut Map<String, Value>) {
    for (name, default) in [("deprecated", false), ("explode", true), ("required", false)] {
        if object.get(name) == Some(&Value::Bool(default)) {
            object.remove(name);
        }
    }
}

/// Splits a requirement such as `ApiKey:tickets:read` into the security scheme and the operation's `x-required-scope`.
fn required_scope(object: &mut Map<String, Value>) {
    let Some(requirement) = object.get("security").and_then(|all| all.get(0)).and_then(Value::as_object).and_then(|one| one.keys().next())
    else {
        return;
    };
    if let Some(scope) = requirement.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix(':')).map(str::to_owned) {
        object.insert("security".to_owned(), json!([{ SCHEME: [] }]));
        object.insert("x-required-scope".to_owned(), scope.into());
    }
}

/// Documents the header `idempotency-replayed` in the response of every operation that accepts an idempotency key.
fn replayed_answer(object: &mut Map<String, Value>) {
    let takes_key = |parameters: &Value| parameters.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "Idempotency-Key"));
    if !object.get("parameters").is_some_and(takes_key) {
        return;
    }
    if let Some(headers) = object.get_mut("responses").and_then(|all| all.pointer_mut("/200/headers")).and_then(Value::as_object_mut) {
        let description = "`true` if this is the stored answer to an earlier request with the same `Idempotency-Key`.";
        headers.insert(REPLAYED.to_owned(), json!({ "description": description, "schema": { "type": "string", "enum": ["true"] } }));
    }
}

fn operations(document: &Value) -> impl Iterator<Item = &Value> {
    let paths = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    paths.filter_map(Value::as_object).flat_map(|item| item.values())
}

/// Returns the names of the schemas that request bodies refer to, directly or through other schemas.
fn request_schemas(document: &Value) -> BTreeSet<String> {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str).and_then(|target| target.rsplit('/').next()).map(str::to_owned));
                object.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut todo = Vec::new();
    for operation in operations(document) {
        references(&operation["requestBody"], &mut todo);
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if seen.insert(name.clone()) {
            references(&document["components"]["schemas"][&name], &mut todo);
        }
    }
    seen
}

/// Returns the value with the properties of every object sorted by name, so that documents can be compared byte by byte.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut members: Vec<_> = object.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().map(|(name, member)| (name, sorted(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
