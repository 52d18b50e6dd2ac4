//! Tests of the assistant tools (MCP), over HTTP and over standard input and output (`stdio`). [`Assistant`] is an HTTP client of the
//! stateless revision of the protocol. `tests/mcp.sh` tests other clients and the older revisions of the protocol.

mod access;
mod drafts;
mod parity;
mod prompt_injection;
mod sends;
mod stdio;

use serde_json::{Value, json};

use crate::{
    client::{Answer, Api},
    harness::Settings,
};

pub const SERVED: Settings<'static> = &[("COUNTERPART_MCP", "true"), ("COUNTERPART_SIMULATE_CHANNELS", "true")];
pub const SENDING: Settings<'static> =
    &[("COUNTERPART_MCP", "true"), ("COUNTERPART_MCP_ALLOW_SEND", "true"), ("COUNTERPART_SIMULATE_CHANNELS", "true")];

/// An MCP client over HTTP, with an API key.
#[derive(Clone)]
pub struct Assistant {
    pub api: Api,
    headers: Vec<(String, String)>,
    /// Whether the client says that it can ask its user questions (elicitation).
    asks: bool,
}

impl Assistant {
    pub fn of(api: &Api) -> Self {
        Self { api: api.clone(), headers: Vec::new(), asks: false }
    }

    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn that_asks(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Sends one MCP request. Returns the HTTP response.
    #[track_caller]
    pub fn message(&self, method: &str, mut params: Value) -> Answer {
        let capabilities = if self.asks { json!({"elicitation": {"form": {}}}) } else { json!({}) };
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let mut call = self.api.raw("POST", "/mcp").header("accept", "application/json, text/event-stream");
        if let Some(key) = &self.api.key {
            call = call.header("x-api-key", key);
        }
        call = call.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            call = call.header("mcp-name", name);
        }
        for (name, value) in &self.headers {
            call = call.header(name, value);
        }
        call.json(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).attempt().expect("an answer")
    }

    /// Sends one MCP request. Returns the `result` of the response.
    #[track_caller]
    pub fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.message(method, params);
        let body: Value = serde_json::from_str(&answer.text).unwrap_or_else(|_| panic!("{} {}", answer.status, answer.text));
        assert!(body["result"].is_object(), "{body}");
        body["result"].clone()
    }

    #[track_caller]
    pub fn tools(&self) -> Vec<Value> {
        self.result("tools/list", json!({}))["tools"].as_array().cloned().unwrap_or_default()
    }

    #[track_caller]
    pub fn names(&self) -> Vec<String> {
        self.tools().iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    #[track_caller]
    pub fn called(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool, and asserts that it succeeds. Returns the structured result, which must equal the JSON in the result's text.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.called(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.len() <= 32 * 1024, "{tool}: {} bytes", text.len());
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Calls a tool, and asserts that its result is an error. Returns the text of the result.
    #[track_caller]
    pub fn fails(&self, tool: &str, arguments: Value) -> String {
        let result = self.called(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}
