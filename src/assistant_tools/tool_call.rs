//! One call of an MCP tool: its caller, the limits of the caller, and the calls of API operations that the tool makes.

use poem::http::Method;
use rmcp::{Peer, RoleServer, model::InputResponses};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    api_operation_calls::{Answer, Api, Input, Sender},
    definition::{PAGE_SIZE, Place, Tool},
    errors::ToolError,
    results,
};
use crate::{
    domain::{
        api_keys::{Caller, hexadecimal},
        events::Actor,
    },
    http::openapi::document_post_processing::sorted,
    service::Service,
};

/// What the operator permits the tools to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolPermissions {
    /// Whether messages are sent. Otherwise they become drafts, which a user of the store releases.
    pub send: bool,
}

impl ToolPermissions {
    /// Returns the HTTP methods of the MCP endpoint. GET and DELETE are for sessions, which are needed only to ask the client's user during
    /// a call.
    pub fn methods(self) -> &'static [Method] {
        const METHODS: [Method; 3] = [Method::POST, Method::GET, Method::DELETE];
        if self.send { &METHODS } else { &METHODS[..1] }
    }
}

/// The limits that the caller sets for itself, in addition to its scopes.
#[derive(Clone, Debug, Default)]
pub struct CallerLimits {
    pub read_only: bool,
    /// Whether messages become drafts even where sends are permitted.
    pub drafts_only: bool,
    /// The names of the tools to offer; `None`: all tools.
    pub tools: Option<Vec<String>>,
}

impl CallerLimits {
    pub fn admits(&self, tool: &Tool) -> bool {
        (tool.reads() || !self.read_only) && self.tools.as_ref().is_none_or(|names| names.iter().any(|name| name == tool.name))
    }
}

/// An authenticated caller of tools.
#[derive(Clone, Debug)]
pub struct ToolCaller {
    /// The secret of the API key.
    pub key: String,
    pub caller: Caller,
    pub request_id: String,
    pub caller_limits: CallerLimits,
}

/// How the user of the client can be asked a question.
#[derive(Clone, Copy, Debug)]
pub enum ApprovalChannel<'a> {
    /// The user cannot be asked: the client does not support questions.
    None,
    /// The user can be asked during the call, as in MCP revisions before 2026-07-28.
    DuringCall(&'a Peer<RoleServer>),
    /// The user can be asked between calls, as in MCP revisions from 2026-07-28 on: the result of a call is a question, and the client
    /// repeats the call with the user's reply.
    BetweenCalls { state: Option<&'a str>, replies: Option<&'a InputResponses> },
}

/// The result of a call.
#[derive(Debug)]
pub enum Outcome {
    Done(Value),
    /// The call needs the approval of the client's user: the client asks this question, and repeats the call with the reply and `state`.
    /// `state` is signed, so that the reply counts only for this call.
    Ask {
        question: String,
        state: String,
    },
}

/// One call of a tool.
pub struct Call<'a> {
    pub tool: &'static Tool,
    pub arguments: Map<String, Value>,
    pub session: &'a ToolCaller,
    pub permits: ToolPermissions,
    pub person: ApprovalChannel<'a>,
    pub api: &'a Api,
    /// Checks messages, stores drafts, and reads the key that signs the state of a question.
    pub service: &'a Service,
}

impl Call<'_> {
    /// Returns an argument of the call. The module `arguments` has checked its type.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.argument(name)?.as_str()
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.argument(name).is_some_and(|value| *value == true)
    }

    /// Builds the input of an operation from the arguments that map to its query parameters or to its body.
    pub fn input(&self, operation: &'static str) -> Result<Input, ToolError> {
        let mut input = Input::of(operation)?;
        for member in &self.tool.members {
            let Some(value) = self.argument(member.name) else { continue };
            match member.place {
                Place::Query("cursor") => {}
                Place::Query(name) if input.operation.parameters.contains_key(name) => input = input.query(name, Some(query_text(value))),
                Place::Body(pointer) => input.set(pointer, value.clone()),
                Place::Query(_) | Place::Tool => {}
            }
        }
        if input.operation.parameters.contains_key("pageSize") && self.argument("pageSize").is_none() {
            input = input.query("pageSize", Some(PAGE_SIZE));
        }
        if let Some(cursor) = self.text("cursor") {
            input = input.after(cursor);
        }
        if input.body.is_none() && !input.operation.body.is_null() {
            input.body = Some(json!({}));
        }
        Ok(Input { idempotency_key: self.idempotency_key(), ..input })
    }

    /// Returns the idempotency key, by which equal calls are carried out once. A call has an idempotency key in two cases. A repetition
    /// would have a further effect, such as a second comment. Or the call names the version (stamp) of the record that it changes: the
    /// first call changes the version, so without the key a repetition would be refused as a conflict.
    pub fn idempotency_key(&self) -> Option<String> {
        let stamped = ["ticketFieldsUpdatedAt", "updatedAt"].iter().any(|stamp| self.arguments.contains_key(*stamp));
        (self.tool.once || stamped && !self.tool.reads()).then(|| format!("tool-{}", self.fingerprint()))
    }

    /// Returns a hash of the store, the tool and the arguments.
    pub fn fingerprint(&self) -> String {
        digest(json!([self.session.caller.store_id, self.tool.name, self.arguments]))
    }

    /// Returns the API key as the author of a change.
    pub fn actor(&self) -> Actor {
        Actor::ApiKey(self.session.caller.key_id.clone())
    }

    /// Returns the text that binds the signed state of a question to the API key, the tool and the arguments of this call.
    pub fn binding(&self) -> String {
        format!("{}/{}", self.session.caller.key_id, self.fingerprint())
    }

    /// Calls an API operation on behalf of the caller.
    pub async fn call(&self, input: &Input) -> Result<Answer, ToolError> {
        self.api.call(Sender { key: &self.session.key, request_id: &self.session.request_id }, input).await
    }

    /// Calls one of the tool's operations, with the tool's arguments.
    pub async fn run_operation(&self, operation: &'static str) -> Result<Outcome, ToolError> {
        self.records(self.input(operation)?).await.map(Outcome::Done)
    }

    /// Calls one operation, and returns its record, or a page of its records.
    pub async fn records(&self, input: Input) -> Result<Value, ToolError> {
        self.records_within(input, usize::MAX, results::MAX_BYTES).await
    }

    /// Does the same as [`Self::records`], but cuts texts to `chars` characters, and limits a page to `bytes` bytes.
    pub async fn records_within(&self, input: Input, chars: usize, bytes: usize) -> Result<Value, ToolError> {
        let Answer { data, next_cursor, replayed } = self.call(&input).await?;
        let mut data = results::cleaned(data, chars);
        if let Value::Object(record) = &mut data
            && replayed
        {
            record.insert("replayed".to_owned(), true.into());
        }
        let Value::Array(records) = data else { return Ok(data) };
        Ok(results::page(&input, records, next_cursor, bytes))
    }
}

/// Returns a hash of a JSON value. The order of an object's properties does not change the hash.
pub fn digest(value: Value) -> String {
    hexadecimal(&Sha256::digest(sorted(value).to_string()))
}

/// Converts an argument to the text of a query parameter.
fn query_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(query_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
