//! The tool that lists field definitions.

use futures_util::future::BoxFuture;
use serde_json::json;

use super::{
    call::{Call, Outcome},
    definition::{Effect, InputMember, Run, Tool},
    problems::Problem,
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
    Some(Tool { operations: &["listTicketFields", "listContactFields"], output: fields_of_both(), run: Run::Code(list), ..tool })
}

/// The schema that fields of tickets and of contacts fulfil.
fn fields_of_both() -> serde_json::Value {
    super::people::either(["listTicketFields", "listContactFields"])
}

fn list<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, Problem>> {
    Box::pin(call.run_operation(if call.text("kind") == Some("contact") { "listContactFields" } else { "listTicketFields" }))
}
