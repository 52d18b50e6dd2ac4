//! The MCP endpoint: serves the assistant tools over HTTP at `POST /mcp`.
//!
//! A request is authenticated in the same way as a request to the API, before rmcp, the library that implements MCP, handles it. A wrong
//! key gets 401. A call of a tool for which the key has no scope gets 403, and so does a request whose host or origin is not permitted.
//! These errors have the format of the API's errors.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use poem::{
    Endpoint, Request, Response,
    endpoint::{BoxEndpoint, EndpointExt, TowerCompatExt},
    http::{HeaderMap, Method, StatusCode, header},
};
use poem_openapi::OperationId;
use rmcp::{
    model::ErrorCode,
    transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager},
};
use serde_json::{Value, json};

use super::{
    catalog,
    server::{ToolServer, lacks_scope},
    tool_call::{CallerLimits, ToolCaller, ToolPermissions},
};
use crate::{
    domain::ids::KeyId,
    http::machinery::{
        auth::{identify, presented},
        context::{Recipient, is_own_origin},
        data_attached_to_requests::RequestData,
        envelope_schema::JSON,
        error_responses::ApiError,
    },
};

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// The operation name of requests to the endpoint, in logs and metrics.
const OPERATION: &str = "mcp";

/// The largest permitted request body, in bytes. It has room for the longest input of a tool, an e-mail.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The largest number of sessions that an API key may have open. Only clients of MCP revisions before 2026-07-28 open sessions, one each.
/// An idle session ends after five minutes.
const MAX_SESSIONS: usize = 50;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The header that limits a request to tools that only read.
pub const READ_ONLY: &str = "x-mcp-readonly";

/// The header that turns each message into a draft, which a user has to approve, even if the operator permits the tools to send messages.
pub const DRAFTS_ONLY: &str = "x-mcp-drafts";

/// The header with the names of the tools to offer.
pub const TOOLS: &str = "x-mcp-tools";

/// The MCP endpoint, with the owner of each session.
pub struct HttpTools {
    protocol: BoxEndpoint<'static>,
    sessions: Arc<LocalSessionManager>,
    /// The API key that opened each session, by session id.
    owners: Mutex<HashMap<String, KeyId>>,
}

impl HttpTools {
    /// Makes the endpoint. `hosts`: the hosts, with or without port, under which clients reach the server. `origins`: the origins whose
    /// pages may call the endpoint.
    pub fn new(server: ToolServer, permits: ToolPermissions, hosts: Vec<String>, origins: Vec<String>) -> Self {
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            // Sessions are needed only to ask the client's user during a call, and the user is asked only before a message is sent.
            .with_legacy_session_mode(permits.send)
            .with_json_response(true);
        let protocol = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), config);
        Self { protocol: protocol.compat().boxed(), sessions, owners: Mutex::default() }
    }

    async fn answer(&self, mut request: Request) -> poem::Result<Response> {
        let RequestData { state, context, .. } = RequestData::of(&request)?.clone();
        let caller = identify(&request).await?.caller;
        let key = presented(&request)?.to_owned();
        context.authenticated(Recipient::Key(caller.store_id.clone(), caller.key_id.clone()), Some(caller.key_name.clone()), false);
        let body = request.take_body().into_bytes_limit(MAX_BODY_BYTES).await.map_err(|_| too_large())?;
        let message: Option<Value> = serde_json::from_slice(&body).ok();
        let method = message.as_ref().and_then(|message| message["method"].as_str());
        if let Some(rate) = &state.rate {
            rate.take(&caller.store_id, &caller.key_id, context.received_at()).map_err(ApiError::from)?;
        }
        if method == Some("tools/call") {
            let tool = message.as_ref().and_then(|message| catalog::find(message["params"]["name"].as_str()?));
            if let Some(tool) = tool.filter(|tool| !tool.is_allowed(caller.scopes)) {
                return Err(ApiError::new(StatusCode::FORBIDDEN, lacks_scope(tool)).into());
            }
        }
        if request.method() == Method::POST
            && let Some(fault) = malformed(&body, message.as_ref())
        {
            return Ok(fault);
        }
        let key_id = caller.key_id.clone();
        if let Some(session) = request.header(SESSION) {
            self.must_own(session, &key_id)?;
        } else if method == Some("initialize") {
            self.must_be_below_limit(&key_id).await?;
        }
        // Pages of the server's own origin may always call the endpoint, so their `Origin` header is removed. rmcp, the protocol library,
        // checks any other origin against the `origins` of [`Self::new`].
        if request.header(header::ORIGIN).is_some_and(|origin| is_own_origin(&request, origin)) {
            request.headers_mut().remove(header::ORIGIN);
        }
        let caller_limits = caller_limits(request.headers())?;
        request.extensions_mut().insert(ToolCaller { key, caller, request_id: context.request_id().to_owned(), caller_limits });
        request.set_body(body);
        let response = self.protocol.call(request).await?;
        if response.status() == StatusCode::FORBIDDEN {
            let message = "this host or origin may not call the tools; `--public-url` names the host, `--cors-origin` an origin";
            return Err(ApiError::new(StatusCode::FORBIDDEN, message).into());
        }
        if let Some(session) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
            self.owners().insert(session.to_owned(), key_id);
        }
        Ok(response)
    }

    /// Locks the map of session owners. The map is valid even if its lock is poisoned, since each change of the map is a single method
    /// call.
    fn owners(&self) -> MutexGuard<'_, HashMap<String, KeyId>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a session that another key opened.
    fn must_own(&self, session: &str, key: &KeyId) -> Result<(), ApiError> {
        match self.owners().get(session) {
            Some(owner) if owner != key => Err(ApiError::new(StatusCode::NOT_FOUND, "there is no such session; begin with `initialize`")),
            _ => Ok(()),
        }
    }

    /// Refuses a new session if the API key already has [`MAX_SESSIONS`] open sessions.
    async fn must_be_below_limit(&self, key: &KeyId) -> Result<(), ApiError> {
        let open: HashSet<String> = self.sessions.sessions.read().await.keys().map(ToString::to_string).collect();
        let mut owners = self.owners();
        owners.retain(|session, _| open.contains(session));
        if owners.values().filter(|owner| *owner == key).count() < MAX_SESSIONS {
            return Ok(());
        }
        let reason = format!("this key has {MAX_SESSIONS} open sessions; end one, or wait five minutes");
        Err(ApiError { retry_after: Some(60), ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, reason) })
    }
}

/// Returns an error response if the body is not a message of the protocol.
fn malformed(body: &[u8], message: Option<&Value>) -> Option<Response> {
    let (code, reason) = match message {
        None if std::str::from_utf8(body).is_err() => (ErrorCode::PARSE_ERROR, "the body is not UTF-8"),
        None => (ErrorCode::PARSE_ERROR, "the body is not JSON"),
        Some(Value::Object(members)) if ["method", "result", "error"].iter().any(|name| members.contains_key(*name)) => return None,
        Some(_) => (ErrorCode::INVALID_REQUEST, "the body is not a message of JSON-RPC 2.0: an object with `method`; there are no batches"),
    };
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": reason } });
    Some(Response::builder().status(StatusCode::BAD_REQUEST).content_type(JSON).body(error.to_string()))
}

impl Endpoint for HttpTools {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        match self.answer(request).await {
            Ok(mut response) => {
                response.set_data(OperationId(OPERATION));
                Ok(response)
            }
            Err(mut error) => {
                error.set_data(OperationId(OPERATION));
                Err(error)
            }
        }
    }
}

fn too_large() -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a message is at most {MAX_BODY_BYTES} bytes long"))
}

/// Reads the headers with which a request limits what its tools may do. An invalid value is an error: if it were ignored, the request could
/// do more than its sender wanted.
fn caller_limits(headers: &HeaderMap) -> Result<CallerLimits, ApiError> {
    let text = |name: &str| match headers.get(name).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim())),
        Some(Err(_)) => Err(ApiError::field(name, "must be text")),
    };
    let switch = |name: &str| match text(name)? {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ApiError::field(name, "must be `true` or `false`")),
    };
    let tools = text(TOOLS)?.map(|list| named_tools(list).map_err(|reason| ApiError::field(TOOLS, reason))).transpose()?;
    Ok(CallerLimits { read_only: switch(READ_ONLY)?, drafts_only: switch(DRAFTS_ONLY)?, tools })
}

/// Parses the names of tools, separated by commas. An unknown name is an error.
pub fn named_tools(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    match names.iter().find(|name| catalog::find(name).is_none()) {
        Some(unknown) => Err(format!("has the unknown tool `{unknown}`; the tools are {}", catalog::names().join(", "))),
        None => Ok(names),
    }
}
