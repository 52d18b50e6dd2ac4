//! The OpenAPI document of the compiled revision. It is generated from the handlers and brought into one canonical form. Facts that the
//! generator cannot express are added here, once, for every operation.

use std::collections::BTreeSet;

use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Map, Value, json};

use super::{examples, merged_paths::Merged};
use crate::{
    domain::rules::Rules,
    http::{
        machinery::{auth::SCHEME, reply::REPLAYED, routing::PREFIX},
        operations,
        schemas::value_types::OPEN_ENUM,
    },
    revision,
};

/// Every operation of the compiled revision, ready to be served: their paths begin with [`PREFIX`].
pub fn contract() -> impl OpenApi {
    let groups = (
        operations::tickets::TicketReads,
        operations::conversations::ConversationReads,
        operations::contacts::ContactReads,
        operations::messages::MessageReads,
        operations::users::UserReads,
        operations::labels::LabelReads,
        operations::teams::TeamReads,
        operations::tickets::TicketWrites,
        operations::conversations::ConversationWrites,
        operations::contacts::ContactWrites,
        operations::messages::MessageWrites,
        revision::extra(),
    );
    Merged { groups, prefix: PREFIX }
}

/// The sentence in the documents about answers without an envelope.
pub const UNENVELOPED: &str = "Every answer is an envelope, unless the head of a request is unusable: a head that is not HTTP, a URL \
     of more than 64 KiB and more than 100 headers are answered with 400, 414 and 431, in this order. These answers have no body, and the \
     connection is closed.";

fn service() -> OpenApiService<impl OpenApi, ()> {
    OpenApiService::new(contract(), format!("counterpart, revision {}", revision::NAME), "1.0.0")
        .description(format!(
            "The data API of a customer-support inbox: one store's tickets, conversations, messages, contacts, labels, teams and users. \
             Every request carries an API key in `x-api-key` and sees the data of that key's store alone. {UNENVELOPED}"
        ))
        .license(poem_openapi::LicenseObject::new("MIT OR Apache-2.0").url("https://spdx.org/licenses/MIT.html"))
        .contact(poem_openapi::ContactObject::new().name("The operator of this server"))
        .server(poem_openapi::ServerObject::new(PREFIX))
}

/// The OpenAPI document of the contract.
pub fn document() -> Value {
    let mut document = canonical(&service().spec());
    examples::contract().put_into(&mut document);
    sorted(document)
}

/// Brings a document that the generator wrote into the canonical form.
pub fn canonical(spec: &str) -> Value {
    // Parsing cannot fail: the generator writes JSON.
    let mut document: Value = serde_json::from_str(spec).unwrap_or_default();
    document["openapi"] = "3.0.3".into();
    in_form(document)
}

/// Brings a document that was assembled from the generator's output into the canonical form.
pub fn in_form(mut document: Value) -> Value {
    let strict = request_schemas(&document);
    let mut nullable = BTreeSet::new();
    visit(&mut document, &mut |object| {
        whole_numbers(object);
        open_enumeration(object);
        annotated_reference(object, &mut nullable);
        defaults(object);
        required_scope(object);
        replayed_answer(object);
        any_value(object);
        empty_list(object);
        by_rules(object);
    });
    public(&mut document);
    // The generator lists every tag that it knows, used or not.
    let used: BTreeSet<String> = operations(&document)
        .flat_map(|operation| operation["tags"].as_array().into_iter().flatten())
        .filter_map(|tag| tag.as_str().map(str::to_owned))
        .collect();
    if let Some(tags) = document.get_mut("tags").and_then(Value::as_array_mut) {
        tags.retain(|tag| tag["name"].as_str().is_some_and(|name| used.contains(name)));
    }
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        for (name, schema) in schemas {
            if strict.contains(name) && schema.get("properties").is_some() {
                // A request body with an unknown member is refused.
                schema["additionalProperties"] = false.into();
            }
            if nullable.contains(name) {
                schema["nullable"] = true.into();
            }
        }
    }
    sorted(document)
}

/// A document as JSON text, with a line end.
pub fn json(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// A document as YAML text.
pub fn yaml(document: &Value) -> String {
    serde_saphyr::to_string(document).unwrap_or_default()
}

/// One operation, as the list of routes shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub method: String,
    /// Without the prefix under which the document is served, such as [`PREFIX`].
    pub path: String,
    pub operation_id: String,
    pub scope: String,
}

/// Every operation of a document, by path and method.
pub fn routes(document: &Value) -> Vec<Route> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                operation_id: text(&operation["operationId"]),
                scope: text(&operation["x-required-scope"]),
            });
        }
    }
    routes
}

/// The list of routes for reviewers: one line for each operation, `METHOD PATH operationId`, and the scope if there is one.
pub fn routes_page(document: &Value) -> String {
    let line =
        |route: Route| format!("{} {} {} {}", route.method, route.path, route.operation_id, route.scope).trim_end().to_owned() + "\n";
    routes(document).into_iter().map(line).collect()
}

/// The documentation page, self-contained.
pub fn page() -> String {
    let service = service();
    let page = page_of(&service.swagger_ui_html(), &service.spec(), &document(), &format!("counterpart API, revision {}", revision::NAME));
    let ui = "\n<div id=\"ui\"></div>\n";
    let link =
        "\n<p style=\"margin: 1rem; font-family: sans-serif\"><a href=\"/docs/changes\">What differs between revisions A and B</a></p>";
    page.replacen(ui, &format!("{link}{ui}"), 1)
}

/// A page of the generator, in which the generator's own document, `spec`, is replaced by `document`.
pub fn page_of(page: &str, spec: &str, document: &Value, title: &str) -> String {
    // Inside a script element, `</` would end the element.
    let document = json(document).replace("</", "<\\/");
    page.replace(spec, &document).replace("<title>Swagger UI</title>", &format!("<title>{title}</title>"))
}

/// Calls `change` on every object, the inner ones first.
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

/// A set of values that may grow is not an `enum`: its values are listed in `x-extensible-enum`.
fn open_enumeration(object: &mut Map<String, Value>) {
    if object.get("format").is_some_and(|format| format == OPEN_ENUM) {
        object.remove("format");
        if let Some(values) = object.remove("enum") {
            object.insert("x-extensible-enum".to_owned(), values);
        }
    }
}

/// The generator writes the annotations of a reference twice: in a second schema of `allOf`, and beside `allOf`. The second schema is
/// removed. OpenAPI 3.0 cannot make a reference nullable, so the schema that it refers to becomes nullable instead.
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

/// A schema without a type accepts null like any other value; `nullable` without a type has no meaning.
fn any_value(object: &mut Map<String, Value>) {
    if !["type", "allOf"].iter().any(|name| object.contains_key(*name)) && object.get("nullable") == Some(&Value::Bool(true)) {
        object.remove("nullable");
    }
}

/// Descriptions that both revisions share contain marks such as `{alone}`. A mark is replaced by its text if the text holds in the compiled
/// revision, and is removed otherwise.
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

/// A list in the query may be empty: `expand=` is the empty list.
fn empty_list(object: &mut Map<String, Value>) {
    if object.get("in").is_some_and(|place| place == "query") && object.get("schema").is_some_and(|schema| schema["type"] == "array") {
        object.insert("allowEmptyValue".to_owned(), true.into());
    }
}

/// An operation without a credential states that with an empty `security`; the generator leaves the member out.
fn public(document: &mut Value) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for item in paths.into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()).filter_map(Value::as_object_mut) {
            operation.entry("security").or_insert_with(|| json!([]));
        }
    }
}

/// Members with their default value are left out.
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

/// An operation that accepts an idempotency key documents the header that marks a replayed answer.
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

/// The names of the schemas that request bodies refer to, directly or through other schemas.
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

/// The same value with the members of every object sorted by name, so that documents can be compared byte by byte.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn operations_of<T: OpenApi>(_: T) -> usize {
        T::meta().into_iter().flat_map(|api| api.paths).map(|path| path.operations.len()).sum()
    }

    #[test]
    fn every_operation_names_itself_and_its_scope() {
        let routes = routes(&document());
        assert!(routes.len() >= 12);
        let mut ids: Vec<_> = routes.iter().map(|route| &route.operation_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), routes.len());
        for route in &routes {
            assert!(!route.operation_id.is_empty() && !route.scope.is_empty(), "{route:?}");
        }
        assert_eq!(operations_of(contract()), routes.len());
    }

    #[test]
    fn nothing_internal_is_left_in_the_document() {
        let text = json(&document());
        for word in [OPEN_ENUM, "ApiKey:", "charset"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
