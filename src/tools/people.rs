//! The tool that lists users and teams.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    call::{Call, Outcome},
    definition::{Effect, InputMember, Run, Tool, pages},
    operations,
    problems::Problem,
    schemas,
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
    Some(Tool { operations: &["listUsers", "listTeams"], output: either(["listUsers", "listTeams"]), run: Run::Code(list), ..tool })
}

fn list<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, Problem>> {
    Box::pin(call.run_operation(if call.text("kind") == Some("teams") { "listTeams" } else { "listUsers" }))
}

/// The schema of a list of records that are all of one of two operations: the members of both, required where both require them.
pub fn either(ids: [&str; 2]) -> Value {
    let [one, other] = ids.map(|id| operations::find(id).map(|operation| operation.data["items"].clone()).unwrap_or_default());
    let names = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    let mut properties = other["properties"].as_object().cloned().unwrap_or_default();
    for (name, schema) in one["properties"].as_object().cloned().unwrap_or_default() {
        let differs = properties.get(&name).is_some_and(|known| known != &schema);
        // A member that is not the same in both keeps its type alone.
        let schema = if differs && properties[&name]["type"] == schema["type"] { json!({ "type": schema["type"] }) } else { schema };
        properties.insert(name, schema);
    }
    let required: Vec<Value> = names(&one).into_iter().filter(|name| names(&other).contains(name)).collect();
    schemas::items(&json!({ "type": "object", "properties": properties, "required": required }))
}
