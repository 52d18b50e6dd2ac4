//! The definition of an MCP tool, a function that an AI assistant may call: its name, its arguments, its schemas, and the API operations
//! that it calls.
//!
//! The API contract exists in two revisions, A and B, and a build serves one of them. A tool or an argument is left out if this revision
//! lacks its operation or parameter.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{
    api_operation_calls::{self, ApiOperation},
    errors::ToolError,
    schemas,
    tool_call::{Call, Outcome},
};
use crate::domain::api_key_scopes::{Scope, ScopeSet};

/// What a call of a tool does: it only reads, it writes, or it sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Changes records.
    Writes {
        /// Whether a repetition of the call has no further effect on the records.
        idempotent: bool,
        destructive: bool,
    },
    /// Sends a message to a contact.
    Sends,
}

/// Where the value of an argument goes in the operation's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into the query parameter of this name.
    Query(&'static str),
    /// Into the request body, at this JSON pointer.
    Body(&'static str),
    /// Not into a request: the tool's own code uses the value.
    Tool,
}

/// An argument of a tool.
#[derive(Clone, Debug)]
pub struct InputMember {
    pub name: &'static str,
    pub schema: Value,
    pub required: bool,
    pub place: Place,
}

impl InputMember {
    /// Makes an argument for a query parameter of an operation; `None` if this build's contract revision lacks the parameter.
    pub fn query(operation: &str, name: &'static str, description: &str, example: Value) -> Option<Self> {
        let operation = api_operation_calls::find(operation)?;
        let schema = described(operation.parameters.get(name)?.clone(), description, example);
        Some(Self { name, schema, required: operation.requires(name), place: Place::Query(name) })
    }

    /// Makes an argument for a property of an operation's request body, by JSON pointer; `None` if this build's contract revision
    /// lacks the property.
    pub fn body(name: &'static str, operation: &str, pointer: &'static str, description: &str, example: Value) -> Option<Self> {
        let body = &api_operation_calls::find(operation)?.body;
        let schema = described(schemas::property(body, pointer)?.clone(), description, example);
        Some(Self { name, schema, required: schemas::is_required(body, pointer), place: Place::Body(pointer) })
    }

    /// Makes an argument that no operation has. The tool's own code uses its value.
    pub fn own(name: &'static str, schema: Value, description: &str, example: Value) -> Option<Self> {
        Some(Self { name, schema: described(schema, description, example), required: false, place: Place::Tool })
    }

    /// Adds a description and an example to the property `name` of the list's objects. The argument must be a list of objects.
    pub fn item(mut self, name: &str, description: &str, example: &str) -> Self {
        let property = &mut self.schema["items"]["properties"][name];
        *property = described(property.take(), description, example.into());
        self
    }

    /// Leaves the value to the tool's own code ([`Place::Tool`]), which puts it into the operation's request in another form. The argument
    /// becomes optional.
    pub fn by_tool(self) -> Self {
        Self { place: Place::Tool, required: false, ..self }
    }

    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }
}

/// The JSON Schema keywords that the schema of an argument keeps. Other keywords, such as `maxLength`, are left out to keep the list of
/// tools short. The operation checks lengths, ranges and formats, and its error messages state what is permitted.
const KEPT_SCHEMA_KEYWORDS: [&str; 5] = ["type", "enum", "items", "properties", "additionalProperties"];

/// Shortens a schema, and adds a description that ends with an example.
fn described(schema: Value, description: &str, example: Value) -> Value {
    let mut schema = short(schema);
    let example = match &example {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    schema["description"] = format!("{description} E.g. {example}").into();
    schema
}

fn short(schema: Value) -> Value {
    let Value::Object(mut object) = schema else { return json!({}) };
    object.retain(|keyword, value| KEPT_SCHEMA_KEYWORDS.contains(&keyword.as_str()) && !value.as_object().is_some_and(Map::is_empty));
    // Null means the same as leaving the argument out, so the type null is removed from the schema.
    if let Some([kind, null]) = object.get("type").and_then(Value::as_array).map(Vec::as_slice)
        && null == "null"
    {
        let kind = kind.clone();
        object.insert("type".to_owned(), kind);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner).filter(|inner| inner.is_object()) {
            *inner = short(inner.take());
        }
    }
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|property| *property = short(property.take()));
    }
    object.into()
}

/// The page size of a tool that lists records, if the caller chooses none.
pub const PAGE_SIZE: u32 = 10;

/// Returns the arguments for pagination of a list operation.
pub fn pages(operation: &str) -> Vec<Option<InputMember>> {
    let size = InputMember::query(operation, "pageSize", "10 if omitted.", json!(20));
    let cursor = InputMember::query(operation, "cursor", "The last `nextCursor`.", json!("eyJ2"));
    vec![size.map(|member| InputMember { required: false, ..member }), cursor]
}

/// The name of the argument with which a caller repeats a call on purpose. Otherwise, equal calls within 24 hours are carried out only
/// once.
pub const REPETITION: &str = "repetition";

/// Makes the argument [`REPETITION`].
pub fn repetition() -> Option<InputMember> {
    let schema = json!({ "type": "integer", "minimum": 1, "maximum": 1000 });
    InputMember::own(REPETITION, schema, "Equal calls within 24 hours count once; 2, 3 … repeat.", json!(2))
}

/// The code of a tool for which one call of a fixed operation is not enough.
pub type Code = for<'a> fn(&'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>>;

/// How a tool is carried out.
#[derive(Clone, Copy)]
pub enum Run {
    /// The tool calls this operation once, and returns its records.
    Operation(&'static str),
    Code(Code),
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(id) => f.write_str(id),
            Self::Code(_) => f.write_str("Code"),
        }
    }
}

/// The definition of a tool.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: String,
    pub effect: Effect,
    /// The operations that the tool can call; this build's contract revision may lack some of them.
    pub operations: &'static [&'static str],
    pub members: Vec<InputMember>,
    /// The schema of the structured result, before [`schemas::output`] shortens it.
    pub output: Value,
    pub run: Run,
    /// Whether equal calls within 24 hours are carried out only once. Set for tools that send messages, and for writes that are not
    /// idempotent.
    pub once: bool,
}

impl Tool {
    /// Makes a tool that calls one operation and returns the `data` of its response; `None` if this build's contract revision lacks the
    /// operation.
    pub fn of(
        operation: &'static [&'static str; 1],
        name: &'static str,
        title: &'static str,
        description: &str,
        effect: Effect,
        members: Vec<Option<InputMember>>,
    ) -> Option<Self> {
        let found = api_operation_calls::find(operation[0])?;
        Some(Self {
            name,
            title,
            description: description.to_owned(),
            effect,
            operations: operation,
            members: members.into_iter().flatten().collect(),
            output: answer_of(found),
            run: Run::Operation(operation[0]),
            once: false,
        })
    }

    /// Returns the tool's operations that this build's contract revision has.
    pub fn available(&self) -> impl Iterator<Item = &'static ApiOperation> {
        self.operations.iter().filter_map(|id| api_operation_calls::find(id))
    }

    /// Returns whether an API key with these scopes may call the tool. A tool without operations needs no scope; any other tool needs the
    /// scope of at least one of its operations.
    pub fn is_allowed(&self, scopes: ScopeSet) -> bool {
        self.operations.is_empty() || self.available().any(|operation| scopes.contains(operation.scope))
    }

    /// Returns the scopes of the tool's operations. An API key with any of these scopes may call the tool.
    pub fn scopes(&self) -> Vec<Scope> {
        let mut scopes: Vec<Scope> = self.available().map(|operation| operation.scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    pub fn reads(&self) -> bool {
        self.effect == Effect::Reads
    }

    pub fn input_schema(&self) -> Map<String, Value> {
        let properties: Map<String, Value> = self.members.iter().map(|member| (member.name.to_owned(), member.schema.clone())).collect();
        let required: Vec<&str> = self.members.iter().filter(|member| member.required).map(|member| member.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        schema
    }

    pub fn output_schema(&self) -> Value {
        schemas::output(self.output.clone())
    }
}

/// Returns the schema of the result of a tool that returns the `data` of this operation. If `data` is an object, its schema is returned
/// unchanged. If `data` is an array, the tool returns an object with the array in the property `items`, and the schema describes this
/// object.
pub fn answer_of(operation: &ApiOperation) -> Value {
    if operation.data["type"] == "array" { schemas::items(&operation.data["items"]) } else { operation.data.clone() }
}
