//! The API reference pages at `/docs` and `/settings/docs`: every operation of an OpenAPI document and every object of requests and
//! responses, with examples of requests and responses.
//!
//! The pages are rendered on the server, from the same document that clients can download.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    layout::{self, DocumentationPage},
    markdown::rendered,
    schema_html::{limits, members, type_of},
    static_content::Download,
};
use crate::http::machinery::routing::SETTINGS_PREFIX;

/// Makes the reference page at `path` for the OpenAPI document that `document` generates. The operations of the document are served under
/// `prefix`.
pub fn download(path: &'static str, prefix: &'static str, document: fn() -> Value) -> Download {
    layout::download(move || page(path, prefix, &document()))
}

fn page(path: &str, prefix: &str, document: &Value) -> String {
    let reference = Reference { document, prefix };
    let title = document["info"]["title"].as_str().unwrap_or_default();
    layout::page(&DocumentationPage { path, title, content: reference.content(title), outline: reference.outline() })
}

/// An operation of the OpenAPI document, with its method and path.
struct DescribedOperation<'a> {
    method: String,
    path: &'a str,
    about: &'a Value,
}

struct Reference<'a> {
    document: &'a Value,
    prefix: &'a str,
}

/// Returns the properties of a JSON object, and nothing for any other JSON value.
fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl<'a> Reference<'a> {
    /// Returns the target of a `$ref`, and any other value as it is.
    fn resolved(&self, value: &'a Value) -> &'a Value {
        let target = value["$ref"].as_str().and_then(|reference| self.document.pointer(reference.strip_prefix('#')?));
        target.unwrap_or(value)
    }

    fn operations(&self, tag: &str) -> Vec<DescribedOperation<'a>> {
        let all = entries(&self.document["paths"]).flat_map(|(path, methods)| entries(methods).map(move |method| (path, method)));
        all.filter(|(_, (_, about))| items(&about["tags"]).any(|of| of == tag))
            .map(|(path, (method, about))| DescribedOperation { method: method.to_uppercase(), path, about })
            .collect()
    }

    fn is_settings(&self) -> bool {
        self.prefix == SETTINGS_PREFIX
    }

    fn tags(&self) -> impl Iterator<Item = &'a Value> {
        items(&self.document["tags"])
    }

    fn schemas(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        entries(&self.document["components"]["schemas"])
    }

    /// Renders links to every operation, grouped by tag, and a link to the objects.
    fn outline(&self) -> Markup {
        html! {
            ul.outline {
                @for tag in self.tags() {
                    li {
                        a href={ "#" (text(&tag["name"])) } { (text(&tag["name"])) }
                        ul {
                            @for DescribedOperation { about, .. } in self.operations(text(&tag["name"])) {
                                li { a href={ "#" (text(&about["operationId"])) } { (text(&about["summary"])) } }
                            }
                        }
                    }
                }
                li { a href="#objects" { "Objects" } }
            }
        }
    }

    fn content(&self, title: &str) -> Markup {
        html! {
            div.reference {
                section.introduction {
                    h1 { (title) }
                    p {
                        "In the requests, " code { "$COUNTERPART_URL" } " is the address of this server, such as "
                        code { "https://inbox.example.com" } ", and "
                        @if self.is_settings() { code { "$COUNTERPART_TOKEN" } " a token" } @else { code { "$COUNTERPART_KEY" } " an API key" }
                        ". Set both in your shell to run them."
                    }
                    (rendered(text(&self.document["info"]["description"])))
                }
                @for tag in self.tags() {
                    h2.tag id=(text(&tag["name"])) { (text(&tag["name"])) }
                    (rendered(text(&tag["description"])))
                    @for operation in self.operations(text(&tag["name"])) { (self.operation(&operation)) }
                }
                h2.tag #objects { "Objects" }
                p { "What requests and answers are made of. A member is always there unless it is marked as optional." }
                @for (name, schema) in self.schemas() { (self.object(name, schema)) }
            }
        }
    }

    fn operation(&self, operation: &DescribedOperation<'a>) -> Markup {
        let DescribedOperation { method, path, about } = operation;
        let id = text(&about["operationId"]);
        let needs = [("scope", "x-required-scope"), ("grant", "x-required-grant")];
        let needs = needs.into_iter().find_map(|(what, key)| Some((what, about[key].as_str()?)));
        html! {
            section.operation id=(id) aria-labelledby={ (id) "-title" } {
                div.about {
                    h3 id={ (id) "-title" } { a href={ "#" (id) } { (text(&about["summary"])) } }
                    p.request-line { code { b.method { (method) } " " (self.prefix) (path) } }
                    @if about["deprecated"] == true { p { strong { "Deprecated." } } }
                    (rendered(text(&about["description"])))
                    @if let Some((what, name)) = needs { p { "Needs the " (what) " " code { (name) } "." } }
                    (self.parameters(&about["parameters"]))
                    @if let Some(content) = self.json(&about["requestBody"]) {
                        h4 { "Body" }
                        @let schema = &content["schema"];
                        p { (type_of(schema)) @if about["requestBody"]["required"] != true { ", optional" } }
                        (members(self.resolved(schema)))
                    }
                    (self.answers(&about["responses"]))
                }
                div.samples {
                    h4 { "Request" }
                    pre tabindex="0" aria-label={ "Request: " (text(&about["summary"])) } { code { (self.curl(operation)) } }
                    @if let Some((status, example)) = self.success(&about["responses"]) {
                        h4 { "Answer " (status) }
                        pre tabindex="0" aria-label={ "Answer: " (text(&about["summary"])) } { code { (pretty(example)) } }
                    }
                }
            }
        }
    }

    fn parameters(&self, parameters: &'a Value) -> Markup {
        html! {
            @if items(parameters).next().is_some() {
                h4 { "Parameters" }
                dl.members {
                    @for parameter in items(parameters).map(|parameter| self.resolved(parameter)) {
                        dt {
                            code { (text(&parameter["name"])) } " "
                            span.type { (type_of(&parameter["schema"])) ", in the " (text(&parameter["in"])) }
                            @if parameter["required"] == true { span.required { ", required" } }
                        }
                        dd { (rendered(text(&parameter["description"]))) (limits(&parameter["schema"])) }
                    }
                }
            }
        }
    }

    fn json(&self, body: &'a Value) -> Option<&'a Value> {
        self.resolved(body)["content"].get("application/json")
    }

    fn answers(&self, answers: &'a Value) -> Markup {
        html! {
            h4 { "Answers" }
            @for (status, answer) in entries(answers).map(|(status, answer)| (status, self.resolved(answer))) {
                details {
                    summary { b { (status) } " " (text(&answer["description"])) }
                    @if let Some(content) = self.json(answer) {
                        @let schema = &content["schema"];
                        @let data = &self.resolved(schema)["properties"]["data"];
                        p { "Body: " (type_of(schema)) @if !data.is_null() { ", whose " code { "data" } " is: " (type_of(data)) } }
                    }
                    @if entries(&answer["headers"]).next().is_some() {
                        dl.members {
                            @for (name, header) in entries(&answer["headers"]).map(|(name, header)| (name, self.resolved(header))) {
                                dt { code { (name) } " " span.type { (type_of(&header["schema"])) ", header" } }
                                dd { (rendered(text(&header["description"]))) (limits(&header["schema"])) }
                            }
                        }
                    }
                    @if !status.starts_with('2') { @for example in self.examples(answer) { pre tabindex="0" { code { (pretty(example)) } } } }
                }
            }
        }
    }

    /// Returns the examples of a response.
    fn examples(&self, answer: &'a Value) -> Vec<&'a Value> {
        let Some(content) = self.json(answer) else { return vec![] };
        let named = entries(&content["examples"]).map(|(_, example)| &self.resolved(example)["value"]);
        content.get("example").into_iter().chain(named).collect()
    }

    fn success(&self, answers: &'a Value) -> Option<(&'a String, &'a Value)> {
        let (status, answer) = entries(answers).find(|(status, _)| status.starts_with('2'))?;
        Some((status, *self.examples(self.resolved(answer)).first()?))
    }

    /// Writes a curl command that calls the operation, with the example parameters and the example body of the document.
    fn curl(&self, DescribedOperation { method, path, about }: &DescribedOperation<'a>) -> String {
        let is_open = about["security"].as_array().is_some_and(Vec::is_empty);
        let credentials =
            if self.is_settings() { "-H \"authorization: Bearer $COUNTERPART_TOKEN\"" } else { "-H \"x-api-key: $COUNTERPART_KEY\"" };
        let queried: Vec<_> =
            items(&about["parameters"]).map(|parameter| self.resolved(parameter)).filter(|parameter| parameter["in"] == "query").collect();
        // The command has the required parameters. If none of them is an id, the command also has the first id parameter with an example:
        // some operations require one of several ids, for example `conversationId` or `ticketId`.
        let required = |parameter: &&&Value| parameter["required"] == true;
        let is_id = |parameter: &&&Value| text(&parameter["name"]).ends_with("Id") && parameter.get("example").is_some();
        let other = if queried.iter().filter(required).any(|parameter| is_id(&parameter)) { None } else { queried.iter().find(is_id) };
        let shown = queried.iter().filter(required).chain(other);
        let query: Vec<_> = shown.map(|parameter| (text(&parameter["name"]), example_of(parameter))).collect();
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&query).finish();
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let mut lines = vec![format!("curl -X {method} \"$COUNTERPART_URL{}{path}{query}\"", self.prefix)];
        if !is_open {
            lines.push(credentials.to_owned());
        }
        if let Some(content) = self.json(&about["requestBody"]) {
            let body = content.get("example").or_else(|| Some(&entries(&content["examples"]).next()?.1["value"]));
            lines.push("-H 'content-type: application/json'".to_owned());
            // The body is in single quotes, and a shell knows no escape inside single quotes. So a single quote in the body is written as
            // four characters: they end the quoted string, add an escaped quote, and begin a new quoted string.
            lines.push(format!("-d '{}'", body.map(pretty).unwrap_or_default().replace('\'', "'\\''")));
        }
        lines.join(" \\\n  ")
    }

    fn object(&self, name: &str, schema: &'a Value) -> Markup {
        html! {
            section.object id={ "schema-" (name) } {
                h3 { a href={ "#schema-" (name) } { (name) } }
                @if schema.get("properties").is_none() { p.type { (type_of(schema)) } }
                (rendered(text(&schema["description"])))
                (limits(schema))
                (members(schema))
            }
        }
    }
}

/// Returns the example of a parameter as the text of a value in a query string, not yet percent-encoded.
fn example_of(parameter: &Value) -> String {
    let schema = &parameter["schema"];
    let example =
        [&parameter["example"], &schema["example"], &schema["default"], &schema["enum"][0]].into_iter().find(|value| !value.is_null());
    match example {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "…".to_owned(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
