//! The assistant tools over HTTP: `POST /mcp`.
//!
//! A request is authenticated as the contract's are, before the protocol sees it. A wrong key is 401; a tool for which the key has no scope,
//! and a request of a foreign host or origin, are 403, in the contract's envelope.

use std::sync::Arc;

use poem::{
    Endpoint, Request, Response,
    endpoint::{BoxEndpoint, EndpointExt, TowerCompatExt},
    http::{HeaderMap, Method, StatusCode},
};
use poem_openapi::OperationId;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager};
use serde_json::Value;

use super::{
    catalog,
    server::{ToolServer, lacks_scope},
    session::{Narrowing, Permits, Session},
};
use crate::http::machinery::{
    arrival::Arrival,
    auth::{identify, presented},
    context::Recipient,
    error::ApiError,
};

/// The path of the tools.
pub const PATH: &str = "/mcp";

/// The name of these requests in logs and metrics.
const OPERATION: &str = "mcp";

/// The largest message, in bytes. The longest input is an e-mail.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The most sessions that are kept for clients of older protocol revisions.
const MAX_SESSIONS: usize = 1_000;

/// The header that limits a request to tools that read.
pub const READ_ONLY: &str = "x-mcp-readonly";

/// The header that makes drafts of messages even where sends are permitted.
pub const DRAFTS_ONLY: &str = "x-mcp-drafts";

/// The header with the names of the tools to offer.
pub const TOOLS: &str = "x-mcp-tools";

/// The endpoint.
pub struct HttpTools {
    protocol: BoxEndpoint<'static>,
    sessions: Arc<LocalSessionManager>,
    permits: Permits,
}

impl HttpTools {
    /// `hosts` are the hosts, with or without port, under which clients reach the server; `origins` those of pages that may call it.
    pub fn new(server: ToolServer, permits: Permits, hosts: Vec<String>, origins: Vec<String>) -> Self {
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            // A person can be asked during a call only within a session, and is asked only before a send.
            .with_legacy_session_mode(permits.send)
            .with_json_response(true);
        let protocol = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), config);
        Self { protocol: protocol.compat().boxed(), sessions, permits }
    }

    async fn answer(&self, mut request: Request) -> poem::Result<Response> {
        let Arrival { state, context, .. } = Arrival::of(&request)?.clone();
        if request.method() != Method::POST && !self.permits.send {
            return Err(poem::error::MethodNotAllowedError.into());
        }
        let caller = identify(&request).await?.caller;
        let key = presented(&request)?.to_owned();
        context.authenticated(Recipient::Key(caller.store_id.clone(), caller.key_id.clone()), Some(caller.key_name.clone()), false);
        let body = request.take_body().into_bytes_limit(MAX_BODY_BYTES).await.map_err(|_| too_large())?;
        let message: Option<Value> = serde_json::from_slice(&body).ok();
        let method = message.as_ref().and_then(|message| message["method"].as_str());
        if method == Some("tools/call") {
            // The operations of the tool count against the rate limit.
            let tool = message.as_ref().and_then(|message| catalog::find(message["params"]["name"].as_str()?));
            if let Some(tool) = tool.filter(|tool| !tool.is_allowed(caller.scopes)) {
                return Err(ApiError::new(StatusCode::FORBIDDEN, lacks_scope(tool)).into());
            }
        } else if let Some(rate) = &state.rate {
            rate.take(&caller.store_id, &caller.key_id, context.received_at()).map_err(ApiError::from)?;
        }
        if method == Some("initialize") && self.sessions.sessions.read().await.len() >= MAX_SESSIONS {
            let busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions of assistants; try again later");
            return Err(ApiError { retry_after: Some(60), ..busy }.into());
        }
        let narrowing = narrowing(request.headers())?;
        request.extensions_mut().insert(Session { key, caller, request_id: context.request_id().to_owned(), narrowing });
        request.set_body(body);
        let response = self.protocol.call(request).await?;
        if response.status() == StatusCode::FORBIDDEN {
            let message = "this host or origin may not call the tools; `--public-url` names the host, `--cors-origin` an origin";
            return Err(ApiError::new(StatusCode::FORBIDDEN, message).into());
        }
        Ok(response)
    }
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

/// The limits that a request sets for itself. A value that is not understood is refused, since it would limit nothing.
fn narrowing(headers: &HeaderMap) -> Result<Narrowing, ApiError> {
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
    Ok(Narrowing { read_only: switch(READ_ONLY)?, drafts_only: switch(DRAFTS_ONLY)?, tools })
}

/// The names of tools, separated by commas.
pub fn named_tools(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    match names.iter().find(|name| catalog::find(name).is_none()) {
        Some(unknown) => Err(format!("has the unknown tool `{unknown}`; the tools are {}", catalog::names().join(", "))),
        None => Ok(names),
    }
}
