//! The API operations that the MCP tools call: finds them in the OpenAPI document, and calls them through the HTTP router of this process.
//!
//! The API contract exists in two revisions, A and B, and a build serves one of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use poem::{
    Request, Response,
    endpoint::BoxEndpoint,
    http::{HeaderName, Method, header},
};
use serde_json::{Map, Value};
use url::form_urlencoded::Serializer;

use super::{errors::ToolError, schemas};
use crate::{
    domain::api_key_scopes::Scope,
    http::{
        machinery::{
            auth::API_KEY,
            envelope_schema::{JSON, REQUEST_ID},
            idempotency::IDEMPOTENCY_KEY,
            paging::NEXT_CURSOR,
            routing::PREFIX,
            success_responses::REPLAYED,
        },
        openapi::contract_document,
    },
};

/// One operation, as the OpenAPI document describes it. Schemas are JSON Schema 2020-12, without references.
#[derive(Debug)]
pub struct ApiOperation {
    pub id: String,
    method: Method,
    path: String,
    pub scope: Scope,
    /// The schemas of the query parameters, by name.
    pub parameters: BTreeMap<String, Value>,
    required_parameters: Vec<String>,
    /// The schema of the request body; null if there is none.
    pub body: Value,
    /// The schema of the property `data` of a successful response.
    pub data: Value,
}

static OPERATIONS: LazyLock<BTreeMap<String, ApiOperation>> = LazyLock::new(|| read(&contract_document::document()));

/// Returns the operation with this id, if this build's contract revision has it.
pub fn find(id: &str) -> Option<&'static ApiOperation> {
    OPERATIONS.get(id)
}

/// Returns every operation of this build's contract revision.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static ApiOperation> {
    OPERATIONS.values()
}

fn read(document: &Value) -> BTreeMap<String, ApiOperation> {
    let one = |route: contract_document::Route| {
        let described = &document["paths"][&route.path][route.method.to_lowercase()];
        let success = described["responses"].as_object()?.iter().find(|(status, _)| status.starts_with('2'))?.1;
        let data = schemas::plain(document, &schemas::content(document, success)["properties"]["data"]);
        let parameters = described["parameters"].as_array().into_iter().flatten().map(|it| schemas::resolved(document, it));
        let parameters: Vec<&Value> = parameters.filter(|parameter| parameter["in"] == "query").collect();
        let required = parameters.iter().filter(|parameter| parameter["required"] == true);
        let required_parameters = required.filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned())).collect();
        let parameters =
            parameters.iter().filter_map(|it| Some((it["name"].as_str()?.to_owned(), schemas::plain(document, &it["schema"]))));
        let operation = ApiOperation {
            method: route.method.parse().ok()?,
            path: route.path,
            scope: route.scope.parse().ok()?,
            parameters: parameters.collect(),
            required_parameters,
            body: schemas::plain(document, schemas::content(document, &described["requestBody"])),
            data,
            id: route.operation_id,
        };
        Some((operation.id.clone(), operation))
    };
    contract_document::routes(document).into_iter().filter_map(one).collect()
}

impl ApiOperation {
    /// Returns whether a query parameter is required.
    pub fn requires(&self, parameter: &str) -> bool {
        self.required_parameters.iter().any(|name| name == parameter)
    }

    /// Returns whether the operation has pagination.
    pub fn is_paged(&self) -> bool {
        self.parameters.contains_key("cursor")
    }
}

/// The input of one call of an operation.
#[derive(Clone, Debug)]
pub struct Input {
    pub operation: &'static ApiOperation,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
    pub idempotency_key: Option<String>,
    /// The number of records at the beginning of the page to leave out, since an earlier result contained them.
    pub skip: usize,
}

impl Input {
    /// Makes an empty input. Fails if this build's contract revision lacks the operation.
    pub fn of(id: &'static str) -> Result<Self, ToolError> {
        let operation = find(id).ok_or_else(|| ToolError::Unavailable(format!("this revision of the contract has no operation {id}")))?;
        Ok(Self { operation, query: Vec::new(), body: None, idempotency_key: None, skip: 0 })
    }

    /// Adds a query parameter. `None` adds nothing.
    #[must_use]
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name.to_owned(), value.to_string())));
        self
    }

    /// Continues after an earlier result. `text` is `SIZE.SKIP.CURSOR`, as [`Self::cursor`] writes it: the page size (0 if the call named
    /// none), the number of records to leave out, and the operation's own cursor. Any other text is passed on to the operation, which
    /// refuses it.
    #[must_use]
    pub fn after(mut self, text: &str) -> Self {
        let mut parts = text.splitn(3, '.');
        let mut number = || parts.next()?.parse::<usize>().ok();
        let (Some(size), Some(skip), Some(cursor)) = (number(), number(), parts.next()) else { return self.query("cursor", Some(text)) };
        self.query.retain(|(name, _)| name != "cursor" && (size == 0 || name != "pageSize"));
        self.skip = skip;
        self.query("pageSize", (size > 0).then_some(size)).query("cursor", Some(cursor).filter(|cursor| !cursor.is_empty()))
    }

    /// Writes a cursor for the rest of a page: the page that the operation returns for `cursor`, without its first `skip` records.
    pub fn cursor(&self, skip: usize, cursor: &str) -> String {
        format!("{}.{skip}.{cursor}", self.parameter("pageSize").unwrap_or("0"))
    }

    /// Returns a query parameter of this call.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Sets a property of the body, by JSON pointer. Objects on the path are created.
    pub fn set(&mut self, pointer: &str, value: Value) {
        let mut place = self.body.get_or_insert_with(|| Value::Object(Map::new()));
        for name in pointer.split('/').skip(1) {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[name];
        }
        *place = value;
    }
}

/// A successful response of an operation.
#[derive(Debug)]
pub struct Answer {
    pub data: Value,
    pub next_cursor: Option<String>,
    /// Whether this is the stored response to an earlier, equal call.
    pub replayed: bool,
}

/// The caller of an operation: its API key, and the id of its request.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    pub key: &'a str,
    pub request_id: &'a str,
}

/// Calls operations through the router of this process.
#[derive(Clone)]
pub struct Api(Arc<BoxEndpoint<'static>>);

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Makes a client of `operations`, the router that serves the API under the path [`PREFIX`].
    pub fn new(operations: BoxEndpoint<'static>) -> Self {
        Self(Arc::new(operations))
    }

    /// Calls an operation.
    pub async fn call(&self, sender: Sender<'_>, input: &Input) -> Result<Answer, ToolError> {
        let Input { operation, query, body, idempotency_key, .. } = input;
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let separator = if query.is_empty() { "" } else { "?" };
        let uri = format!("{PREFIX}{}{separator}{query}", operation.path);
        let uri = uri.parse().map_err(|error| ToolError::Internal(format!("the address of {} is invalid: {error}", operation.id)))?;
        let mut request =
            Request::builder().method(operation.method.clone()).uri(uri).header(API_KEY, sender.key).header(REQUEST_ID, sender.request_id);
        if let Some(key) = idempotency_key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        let request = match body {
            Some(body) => request.header(header::CONTENT_TYPE, JSON).body(body.to_string()),
            None => request.finish(),
        };
        let response = self.0.call(request).await.map_err(|error| ToolError::Internal(error.to_string()))?;
        read_answer(input, response).await
    }
}

async fn read_answer(input: &Input, mut response: Response) -> Result<Answer, ToolError> {
    let status = response.status();
    let text = |name: &HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let named = |name: &'static str| text(&HeaderName::from_static(name));
    let (next_cursor, replayed, retry_after) = (named(NEXT_CURSOR), named(REPLAYED).is_some(), text(&header::RETRY_AFTER));
    let body = response.take_body().into_bytes().await.map_err(|error| ToolError::Internal(error.to_string()))?;
    let mut body: Value = serde_json::from_slice(&body).map_err(|error| ToolError::Internal(error.to_string()))?;
    if status.is_success() {
        return Ok(Answer { data: body["data"].take(), next_cursor, replayed });
    }
    let message = body["error"]["message"].as_str().unwrap_or_default().to_owned();
    let retry_after = retry_after.and_then(|seconds| seconds.parse().ok());
    Err(ToolError::OperationRefused { operation: input.operation, status, message, retry_after })
}
