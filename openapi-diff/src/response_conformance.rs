//! Conformance check: whether a response of a server matches what the server's OpenAPI document describes.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use super::{
    json_values::{Object, empty, items, members},
    read::Document,
    references::DocumentIndex,
    replay::Answer,
    responses::{covering, status},
    rules::Direction,
    schema::members_of,
    schema_resolution::inner,
    semantics::{Arena, CheckCaches, DocumentRole, SchemaChecker, SideSchema, Validity},
};

/// The maximum number of faults that are reported for the body of one response.
const FAULTS: usize = 5;

impl Document {
    /// Returns the name of the operation that a request is sent to, such as `GET /pets/{id}`. If several path templates match, the template
    /// with the fewest parameters wins.
    pub fn operation(&self, method: &str, path: &str) -> Option<String> {
        let paths = members(self.root.get("paths").unwrap_or(empty()));
        let fits = |template: &str| {
            let (mut steps, mut written) = (path.split('/'), template.split('/'));
            steps.by_ref().zip(written.by_ref()).all(|(step, name)| step == name || name.starts_with('{') && name.ends_with('}'))
                && path.matches('/').count() == template.matches('/').count()
        };
        let mut found: Vec<_> =
            paths.iter().filter(|(template, item)| item.get(method.to_lowercase()).is_some() && fits(template)).collect();
        found.sort_by_key(|(template, _)| template.matches('{').count());
        found.first().map(|(template, _)| format!("{} {template}", method.to_uppercase()))
    }

    /// Returns the operation object with a name such as `GET /pets/{id}`.
    pub(super) fn described(&self, operation: &str) -> Option<&Object> {
        let (method, path) = operation.split_once(' ')?;
        self.root.get("paths")?.get(path)?.get(method.to_lowercase())?.as_object()
    }

    /// Returns the faults of a response: an unlisted status, a missing required header, or a body that the schema of this document refuses.
    /// Where the check cannot decide, for example because a format is unknown, no fault is reported.
    pub fn faults(&self, operation: &str, answer: &Answer) -> Vec<String> {
        let Some(described) = self.described(operation) else { return vec![format!("the document has no {operation}")] };
        let responses = members(described.get("responses").unwrap_or(empty()));
        let code = answer.status.to_string();
        let listed = responses.iter().find(|(written, _)| status(written) == code).map(|(_, response)| response);
        let Some(response) = listed.or_else(|| covering(responses, &code).map(|(_, response)| response)) else {
            return vec![format!("the document lists no answer {code} of {operation}")];
        };
        let side = DocumentIndex::new(self);
        let response = side.follow(response).unwrap_or(empty());
        let mut faults = Vec::new();
        for (name, header) in members(response.get("headers").unwrap_or(empty())) {
            let required = side.follow(header).is_ok_and(|header| header.get("required") == Some(&Value::Bool(true)));
            if required && answer.header(name).is_none() {
                faults.push(format!("the header {name} is missing"));
            }
        }
        let content = members(response.get("content").unwrap_or(empty()));
        let json = content.iter().find(|(name, _)| name.split(';').next().is_some_and(|name| name.trim().ends_with("json")));
        if let Some(schema) = json.and_then(|(_, media)| media.get("schema")) {
            match serde_json::from_str::<Value>(&answer.text) {
                Err(error) => faults.push(format!("the body is not JSON: {error}")),
                Ok(body) => faults.extend(body_faults(&side, schema, &body)),
            }
        }
        faults
    }
}

fn body_faults(side: &DocumentIndex, schema: &Value, body: &Value) -> Vec<String> {
    let (arena, unchanged) = (Arena::new(), HashSet::new());
    let memory = CheckCaches::new(&arena);
    // A `SchemaChecker` takes an old and a new document. Here there is only one document, so it is passed as both.
    let checker = Checker { semantics: SchemaChecker::new([side, side], &unchanged, Direction::Response, &memory) };
    let mut faults = Vec::new();
    checker.check(&SideSchema::new(DocumentRole::New, Cow::Borrowed(schema)), body, "body", &mut faults);
    faults.truncate(FAULTS);
    faults
}

struct Checker<'d, 'a> {
    semantics: SchemaChecker<'d, 'a>,
}

impl<'a> Checker<'_, 'a> {
    /// Adds a fault for each innermost location at which the schema refuses the value.
    fn check(&self, schema: &SideSchema<'a>, value: &Value, place: &str, faults: &mut Vec<String>) {
        if faults.len() >= FAULTS || self.semantics.refreshed().validity(schema, value, 0) != Validity::Invalid {
            return;
        }
        let before = faults.len();
        let resolved = self.semantics.resolved(schema);
        let properties = resolved.member("properties");
        for name in members_of(&properties).keys() {
            if let Some(inside) = value.get(name) {
                self.check(&schema.with(inner(&properties, name)), inside, &format!("{place}/{name}"), faults);
            }
        }
        let element = resolved.member("items");
        for (position, inside) in items(Some(value)).iter().enumerate().filter(|_| element.is_some()) {
            self.check(&schema.with(element.clone()), inside, &format!("{place}/{position}"), faults);
        }
        if faults.len() == before {
            let refusals: Vec<_> = self.semantics.refusals(schema, value).into_iter().collect();
            let text: String = value.to_string().chars().take(120).collect();
            faults.push(format!("{place} breaks {}: {text}", refusals.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Document {
        let pet =
            json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "age": { "type": "integer" } } });
        let list =
            json!({ "type": "object", "properties": { "data": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } } } });
        let ok = json!({ "headers": { "x-a": { "required": true } }, "content": { "application/json": { "schema": list } } });
        let paths = json!({ "/pets/{id}": { "get": { "responses": { "200": ok, "4XX": {} } } }, "/pets/mine": { "get": {} } });
        Document::new(json!({ "openapi": "3.0.3", "paths": paths, "components": { "schemas": { "Pet": pet } } })).expect("a document")
    }

    fn answer(status: u16, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Answer { status, headers, text: body.to_string() }
    }

    #[test]
    fn an_operation_is_found_by_its_path() {
        assert_eq!(document().operation("GET", "/pets/7").as_deref(), Some("GET /pets/{id}"));
        assert_eq!(document().operation("get", "/pets/mine").as_deref(), Some("GET /pets/mine"));
        assert_eq!(document().operation("GET", "/pets/7/toys"), None);
        assert_eq!(document().operation("POST", "/pets/7"), None);
    }

    #[test]
    fn response_faults_name_the_innermost_failing_location() {
        let faults = |answer: &Answer| document().faults("GET /pets/{id}", answer);
        let header = [("X-A", "1")];
        let good = json!({ "data": [{ "name": "Rex", "age": 3 }] });
        assert_eq!(faults(&answer(200, &header, &good)), [""; 0]);
        assert_eq!(faults(&answer(404, &[], &json!({}))), [""; 0]);
        assert_eq!(faults(&answer(200, &[], &good)), ["the header x-a is missing"]);
        assert_eq!(faults(&answer(503, &header, &good)), ["the document lists no answer 503 of GET /pets/{id}"]);
        let bad = json!({ "data": [{ "name": "Rex", "age": "3" }, { "age": 3 }] });
        assert_eq!(
            faults(&answer(200, &header, &bad)),
            ["body/data/0/age breaks type: \"3\"", "body/data/1 breaks required name: {\"age\":3}"]
        );
    }
}
