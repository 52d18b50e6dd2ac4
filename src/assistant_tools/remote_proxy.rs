//! MCP relay (proxy): serves the tools of another counterpart server, which `--url` names, over standard input and output.
//!
//! The other server decides what the API key may do. This process may have options that limit the tools (`CallerLimits`); the relay sends
//! them as headers. If the other server has a question for the user, the relay passes the question on to the client.

use std::time::Duration;

use poem::http::StatusCode;
use reqwest::Client;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, DiscoverResult, ElicitRequestParams,
        ElicitationCapability, FormElicitationCapability, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
        InputRequest, InputRequiredResult, InputResponses, ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig,
    },
    service::RequestContext,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    approval_flow::REPLY_LIMIT,
    http_endpoint::{DRAFTS_ONLY, PATH, READ_ONLY, TOOLS},
    server::asks,
    tool_call::CallerLimits,
};
use crate::http::machinery::{auth::API_KEY, envelope_schema::JSON};

/// The longest time that the other server may take for a response.
const ANSWER_LIMIT: Duration = Duration::from_secs(35);

/// The maximum number of times that the other server may respond to a call with a question.
const MAX_QUESTIONS: usize = 3;

/// The prefix of the property names in `_meta` that the protocol reserves for itself.
const META: &str = "io.modelcontextprotocol/";

/// The relay to one counterpart server.
#[derive(Clone)]
pub struct RemoteTools {
    client: Client,
    url: String,
    key: String,
    caller_limits: CallerLimits,
    described: ServerConfig,
}

impl RemoteTools {
    /// Connects to the server with the base URL `url`. Fails if the server does not serve the tools, or refuses the API key.
    pub async fn connect(client: Client, url: &str, key: String, caller_limits: CallerLimits) -> Result<Self, String> {
        let url = format!("{}{PATH}", url.trim_end_matches('/'));
        let mut relay = Self { client, url, key, caller_limits, described: ServerConfig::default() };
        let found: DiscoverResult =
            relay.send("server/discover", None, json!({}), false).await.map_err(|error| error.message.to_string())?;
        let implementation = Implementation::new("counterpart", env!("CARGO_PKG_VERSION"));
        relay.described = ServerConfig::new(found.capabilities).with_server_info(implementation);
        relay.described.instructions = found.instructions;
        Ok(relay)
    }

    /// Sends one request. `name`: the tool, resource or prompt that the request names. `asks`: whether the client can ask its user
    /// questions.
    async fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        name: Option<&str>,
        params: impl Serialize,
        asks: bool,
    ) -> Result<T, ErrorData> {
        let internal = |reason: String| ErrorData::internal_error(reason, None);
        let mut params = serde_json::to_value(params).map_err(|error| internal(error.to_string()))?;
        if !params.is_object() {
            params = json!({});
        }
        let mut capabilities = ClientCapabilities::default();
        if asks {
            let mut elicitation = ElicitationCapability::default();
            elicitation.form = Some(FormElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        let version = ProtocolVersion::V_2026_07_28;
        params["_meta"] = json!({
            format!("{META}protocolVersion"): version,
            format!("{META}clientInfo"): { "name": "counterpart mcp", "version": env!("CARGO_PKG_VERSION") },
            format!("{META}clientCapabilities"): capabilities,
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = self
            .client
            .post(&self.url)
            .timeout(ANSWER_LIMIT)
            .header(API_KEY, &self.key)
            .header("content-type", JSON)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", version.as_str())
            .header("mcp-method", method);
        for (header, is_on) in [(READ_ONLY, self.caller_limits.read_only), (DRAFTS_ONLY, self.caller_limits.drafts_only)] {
            if is_on {
                request = request.header(header, "true");
            }
        }
        if let Some(tools) = &self.caller_limits.tools {
            request = request.header(TOOLS, tools.join(","));
        }
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        let response = request.body(message.to_string()).send().await;
        let response = response.map_err(|error| internal(format!("{} cannot be reached: {error}", self.url)))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| internal(format!("{} broke off its answer: {error}", self.url)))?;
        let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if let Ok(error) = serde_json::from_value::<ErrorData>(body["error"].clone()) {
            return Err(error);
        }
        if body["result"].is_object() {
            return serde_json::from_value(body["result"].take()).map_err(|error| internal(format!("{}: {error}", self.url)));
        }
        Err(ErrorData::invalid_request(self.refusal(status, &body), None))
    }

    /// Returns the error message for a response that is not a message of the protocol.
    fn refusal(&self, status: StatusCode, body: &Value) -> String {
        match (status, body["error"]["message"].as_str()) {
            (StatusCode::NOT_FOUND, _) => format!("there are no tools at {}; start that server with `serve --mcp`", self.url),
            (_, Some(message)) => message.to_owned(),
            (status, None) => format!("{} answered {status}, which is no answer of a counterpart server", self.url),
        }
    }

    /// Sends a tool call. If the server has a question and the client uses a protocol revision before 2026-07-28, asks the client's user
    /// and repeats the call with the reply.
    async fn call(&self, mut request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let (asks, rounds) = asks(context);
        for asked in 0..=MAX_QUESTIONS {
            let name = request.name.clone();
            let result: Value = self.send("tools/call", Some(&name), &request, asks).await?;
            let Ok(question) = serde_json::from_value::<InputRequiredResult>(result.clone()) else {
                let result: CallToolResult =
                    serde_json::from_value(result).map_err(|error| ErrorData::internal_error(format!("{}: {error}", self.url), None))?;
                return Ok(result.into());
            };
            if rounds {
                return Ok(question.into());
            }
            if asked == MAX_QUESTIONS {
                break;
            }
            request.request_state = question.request_state;
            request.input_responses = Some(self.replies(question.input_requests.unwrap_or_default(), context).await?);
        }
        Ok(CallToolResult::error(vec![ContentBlock::text("The server asked too many questions. Nothing was sent.")]).into())
    }

    /// Asks the client's user each question, and returns the replies.
    async fn replies(
        &self,
        questions: impl IntoIterator<Item = (String, InputRequest)>,
        context: &RequestContext<RoleServer>,
    ) -> Result<InputResponses, ErrorData> {
        let mut replies = InputResponses::new();
        for (name, question) in questions {
            let InputRequest::Elicitation(question) = question else { continue };
            let form: ElicitRequestParams = question.params;
            let reply = context.peer.create_elicitation_with_timeout(form, Some(REPLY_LIMIT)).await;
            let reply = reply.map_err(|error| ErrorData::internal_error(format!("the person could not be asked: {error}"), None))?;
            replies.insert(name, json!(reply));
        }
        Ok(replies)
    }
}

impl ServerHandler for RemoteTools {
    fn get_info(&self) -> ServerConfig {
        self.described.clone()
    }

    async fn list_tools(&self, page: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        self.send("tools/list", None, page, false).await
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        self.call(request, &context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.send("resources/list", None, page, false).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let read: ReadResourceResult = self.send("resources/read", Some(&uri), request, false).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.send("prompts/list", None, page, false).await
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name.clone();
        let prompt: GetPromptResult = self.send("prompts/get", Some(&name), request, false).await?;
        Ok(prompt.into())
    }
}
