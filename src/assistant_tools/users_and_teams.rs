//! The MCP tool that lists users and teams of the store.

use futures_util::future::BoxFuture;
use serde_json::json;

use super::{
    definition::{Effect, InputMember, Run, Tool, pages},
    errors::ToolError,
    schemas,
    tool_call::{Call, Outcome},
};

pub fn list_people() -> Option<Tool> {
    let kind = json!({ "type": "string", "enum": ["users", "teams"] });
    let mut members = vec![InputMember::own("kind", kind, "Users or teams.", json!("users")).map(InputMember::required)];
    members.extend(pages("listTeams"));
    let tool = Tool::of(
        &["listUsers"],
        "list_people",
        "List users or teams",
        "The users of the store, all at once, or its teams, in pages. Assignees and authors are `userId`s.",
        Effect::Reads,
        members,
    )?;
    Some(Tool {
        operations: &["listUsers", "listTeams"],
        output: schemas::either(["listUsers", "listTeams"]),
        run: Run::Code(list),
        ..tool
    })
}

fn list<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(async move {
        if call.text("kind") == Some("teams") {
            return call.run_operation("listTeams").await;
        }
        for member in ["cursor", "pageSize"] {
            if call.arguments.contains_key(member) {
                let reason = format!("`{member}` is for teams: users are listed all at once. Leave `{member}` out.");
                return Err(ToolError::Arguments(reason));
            }
        }
        call.run_operation("listUsers").await
    })
}
