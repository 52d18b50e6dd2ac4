//! The MCP tool that lists the definitions of ticket fields, or of contact fields.

use futures_util::future::BoxFuture;
use serde_json::json;

use super::{
    definition::{Effect, InputMember, Run, Tool},
    errors::ToolError,
    schemas,
    tool_call::{Call, Outcome},
};

pub fn list_fields() -> Option<Tool> {
    let kind = json!({ "type": "string", "enum": ["ticket", "contact"] });
    let tool = Tool::of(
        &["listTicketFields"],
        "list_fields",
        "List fields",
        "The field definitions of tickets or contacts: ids, names, types and options.",
        Effect::Reads,
        vec![InputMember::own("kind", kind, "Whose fields.", json!("ticket")).map(InputMember::required)],
    )?;
    const OPERATIONS: [&str; 2] = ["listTicketFields", "listContactFields"];
    Some(Tool { operations: &OPERATIONS, output: schemas::either(OPERATIONS), run: Run::Code(list), ..tool })
}

fn list<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(call.run_operation(if call.text("kind") == Some("contact") { "listContactFields" } else { "listTicketFields" }))
}
