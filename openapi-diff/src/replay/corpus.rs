//! The requests of a replay, which sends the same requests to two servers. Parses them from a corpus (a file with one request in each
//! line), or builds them from the examples of two documents.
//!
//! A line is a JSON object. `call` is METHOD, path and query; the path is written as in the documents. `body` is a JSON body, `text` a body
//! that is sent as it is. `headers` are added to the request. `key` names the API key to send, and `anonymous` sends none. `pages` is the
//! number of further pages to request; `then` is the query of these pages if it differs from that of the first page. With `fails`, both
//! servers must fail (status 500 or above).
//!
//! `because` explains the differences between the responses: `{PLACE: {"by": [KEY], "pairs": [[OLD, NEW]]}}`. PLACE is a location in the
//! responses. KEY is the key of a difference in the migration notes, or the rule and the location of a change. `pairs` lists all differing
//! values of the old and the new server at PLACE; null stands for no value. At the location `status`, a value is a list of the status and,
//! for a failure, the error message, or for a success, the ids of the records in the response.

use std::{collections::BTreeMap, fmt};

use form_urlencoded::Serializer;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Document,
    json_values::{Object, empty, items, members, text},
    references::DocumentIndex,
};

/// The API key with which a request is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    #[default]
    Default,
    Named(String),
    /// The request is sent without an API key.
    Anonymous,
}

/// Why the responses differ at a location (`by`), and the differing values of both servers at this location (`pairs`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub by: Vec<String>,
    pub pairs: Vec<[Value; 2]>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub method: String,
    /// The path as the documents write it, without the path of the server's URL.
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub caller: Caller,
    /// The number of further pages to request.
    pub pages: usize,
    /// The query of the second and later pages, if it differs from that of the first page. If this is set, `because` explains the
    /// differences on the later pages.
    pub then: Option<String>,
    pub because: BTreeMap<String, Cause>,
    /// Whether both servers must fail, which means that they respond with a server error.
    pub fails: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    call: String,
    body: Option<Value>,
    text: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    key: Option<String>,
    #[serde(default)]
    anonymous: bool,
    #[serde(default)]
    pages: usize,
    then: Option<String>,
    #[serde(default)]
    because: BTreeMap<String, Cause>,
    #[serde(default)]
    fails: bool,
}

/// The error for a line that is no request.
#[derive(Debug, thiserror::Error)]
#[error("line {line} {reason}")]
pub struct BadLine {
    pub line: usize,
    pub reason: String,
}

/// Parses the lines of a corpus. Empty lines are ignored.
pub fn corpus(text: &str) -> Result<Vec<Request>, BadLine> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| request(line).map_err(|reason| BadLine { line: number + 1, reason })).collect()
}

fn request(line: &str) -> Result<Request, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| format!("is no request such as {{\"call\": \"GET /pets\"}}: {error}"))?;
    let mut request = Request::to(&line.call).ok_or_else(|| format!("has a `call` that is not METHOD and path: {}", line.call))?;
    request.caller = match (line.key, line.anonymous) {
        (Some(_), true) => return Err("has both `key` and `anonymous`".to_owned()),
        (Some(name), false) => Caller::Named(name),
        (None, true) => Caller::Anonymous,
        (None, false) => Caller::Default,
    };
    request = match (line.body, line.text) {
        (Some(_), Some(_)) => return Err("has both `body` and `text`".to_owned()),
        (Some(body), None) => request.json(body.to_string()),
        (None, text) => Request { body: text, ..request },
    };
    request.headers.extend(line.headers);
    Ok(Request { pages: line.pages, then: line.then, because: line.because, fails: line.fails, ..request })
}

impl Request {
    /// Parses a text such as `GET /pets?limit=2` into a request.
    fn to(call: &str) -> Option<Self> {
        let (method, path) = call.split_once(' ')?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if !path.starts_with('/') || method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        Some(Self { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), ..Self::default() })
    }

    fn json(mut self, body: String) -> Self {
        self.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        self.body = Some(body);
        self
    }

    /// Returns the request for the page that begins at a cursor.
    #[must_use]
    pub fn page(&self, cursor: &str) -> Self {
        let query = self.then.clone().unwrap_or_else(|| self.query.clone());
        let cursor = Serializer::new(String::new()).append_pair("cursor", cursor).finish();
        let query = if query.is_empty() { cursor } else { format!("{query}&{cursor}") };
        let because = if self.then.is_some() { self.because.clone() } else { BTreeMap::new() };
        Self { query, because, ..self.clone() }
    }

    /// Returns the same request without `because`, so that no difference is expected. Used for a repetition of the request, and for the
    /// first page if `because` explains the later pages.
    #[must_use]
    pub fn unexplained(&self) -> Self {
        Self { because: BTreeMap::new(), ..self.clone() }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        match &self.caller {
            Caller::Default => {}
            Caller::Named(name) => write!(f, " with the key {name}")?,
            Caller::Anonymous => write!(f, " without a key")?,
        }
        match &self.body {
            Some(body) => write!(f, " {}", body.chars().take(200).collect::<String>()),
            None => Ok(()),
        }
    }
}

/// Returns the example requests of two documents. An example that both documents show is returned once. Requests to operations that are
/// only in the new document come last, so that no other request depends on their effects. Operations that are only in the old document are
/// left out.
pub fn examples(old: &Document, new: &Document) -> Vec<Request> {
    let known = |document: &Document, operation: &str| document.described(operation).is_some();
    let mut requests: Vec<Request> = Vec::new();
    let shared = operations(new).into_iter().filter(|operation| known(old, operation));
    let both = shared.flat_map(|operation| [example(old, &operation), example(new, &operation)]);
    let added = operations(new).into_iter().filter(|operation| !known(old, operation)).map(|operation| example(new, &operation));
    for request in both.chain(added).flatten() {
        if !requests.contains(&request) {
            requests.push(request);
        }
    }
    requests
}

fn operations(document: &Document) -> Vec<String> {
    const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
    let paths = members(document.root.get("paths").unwrap_or(empty())).iter();
    let of = |(path, item): (&String, &Value)| {
        let methods = members(item).keys().filter(|method| METHODS.contains(&method.as_str()));
        methods.map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    };
    paths.flat_map(of).collect()
}

/// Returns the example request of an operation. None if a required parameter has no example, or if the body has no example in JSON.
fn example(document: &Document, operation: &str) -> Option<Request> {
    let described = document.described(operation)?;
    let side = DocumentIndex::new(document);
    let mut request = Request::to(operation)?;
    let mut query = Serializer::new(String::new());
    for parameter in items(described.get("parameters")) {
        let parameter = members(side.follow(parameter).ok()?);
        let (Some(name), Some(place)) = (text(parameter, "name"), text(parameter, "in")) else { continue };
        let value = match parameter.get("example") {
            None if parameter.get("required") == Some(&Value::Bool(true)) => return None,
            None => continue,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match place {
            "query" => _ = query.append_pair(name, &value),
            "path" => request.path = request.path.replace(&format!("{{{name}}}"), &value),
            "header" => request.headers.push((name.to_owned(), value)),
            _ => {}
        }
    }
    request.query = query.finish();
    let Some(body) = described.get("requestBody") else { return Some(request) };
    let content: &Object = members(side.follow(body).ok()?.get("content").unwrap_or(empty()));
    let example = content.iter().find(|(name, _)| name.starts_with("application/json")).and_then(|(_, media)| media.get("example"))?;
    Some(request.json(example.to_string()))
}

/// How a request has to carry the API key, according to a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The request carries the key in the header with this name.
    Header(String),
    /// The request carries the key in the header `authorization: Bearer KEY`.
    Bearer,
}

impl Document {
    /// Returns how to send the API key: by the first security scheme that takes it in a header. None if the document has no such scheme.
    pub fn credential(&self) -> Option<Credential> {
        let side = DocumentIndex::new(self);
        let schemes = members(self.root.pointer("/components/securitySchemes").unwrap_or(empty()));
        schemes.values().find_map(|scheme| {
            let scheme = members(side.follow(scheme).ok()?);
            match (text(scheme, "type")?, text(scheme, "in"), text(scheme, "scheme")) {
                ("apiKey", Some("header"), _) => text(scheme, "name").map(|name| Credential::Header(name.to_owned())),
                ("http", _, Some(name)) if name.eq_ignore_ascii_case("bearer") => Some(Credential::Bearer),
                _ => None,
            }
        })
    }

    /// Returns the path of the URL of the first server, without a slash at its end.
    pub fn server_path(&self) -> &str {
        let url = self.root.pointer("/servers/0/url").and_then(Value::as_str).unwrap_or_default();
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |start| &rest[start..]),
            None => url,
        };
        path.trim_end_matches('/')
    }

    /// Whether the document lists a header among the parameters of the operation that a request is sent to.
    pub fn takes_header(&self, request: &Request, name: &str) -> bool {
        let side = DocumentIndex::new(self);
        let operation = self.operation(&request.method, &request.path);
        let described = operation.as_deref().and_then(|operation| self.described(operation));
        items(described.and_then(|described| described.get("parameters"))).iter().any(|parameter| {
            let parameter = members(side.follow(parameter).unwrap_or(empty()));
            text(parameter, "in") == Some("header") && text(parameter, "name").is_some_and(|other| other.eq_ignore_ascii_case(name))
        })
    }
}
