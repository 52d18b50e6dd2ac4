//! The MCP tool `get_inbox_guide`: tells an AI assistant what it needs to know about a store before it answers questions, such as the
//! store's channels, labels, users and fields.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{
    api_operation_calls::Input,
    definition::{Effect, Run, Tool},
    errors::ToolError,
    results, schemas,
    tool_call::{Call, Outcome},
};
use crate::revision;

/// A list in the tool's result: its name, the API operation that returns its records, and the properties of a record that the result keeps.
struct GuideList {
    name: &'static str,
    operation: &'static str,
    keeps: &'static [&'static str],
}

const PARTS: [GuideList; 6] = [
    GuideList { name: "channels", operation: "listAccounts", keeps: &["id", "channel", "name", "status"] },
    GuideList { name: "labels", operation: "listLabels", keeps: &["id", "label"] },
    GuideList { name: "teams", operation: "listTeams", keeps: &["id", "name"] },
    GuideList { name: "users", operation: "listUsers", keeps: &["userId", "name"] },
    GuideList { name: "ticketFields", operation: "listTicketFields", keeps: &["id", "name", "displayType"] },
    GuideList { name: "contactFields", operation: "listContactFields", keeps: &["id", "name", "displayType"] },
];

/// The page size with which the tool calls an operation that has pagination. It is the largest page size that both revisions of the API
/// permit.
const GUIDE_PAGE_SIZE: u32 = 50;

pub fn get_inbox_guide() -> Option<Tool> {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let mut properties = Map::new();
    for (name, schema) in [("storeId", json!({ "type": "string" })), ("revision", json!({ "type": "string" })), ("scopes", texts.clone())] {
        properties.insert(name.to_owned(), schema);
    }
    for part in &PARTS {
        let members: Map<_, _> = part.keeps.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        properties.insert(part.name.to_owned(), json!({ "type": "array", "items": { "type": "object", "properties": members } }));
    }
    properties.insert("incomplete".to_owned(), texts);
    Some(Tool {
        name: "get_inbox_guide",
        title: "Get the guide of the inbox",
        description: "Call this first: the store, the scopes of this key, and the channels, labels, teams, users and fields with their \
                      ids. Lists that the key may not read are left out; `incomplete` names those with more records."
            .to_owned(),
        effect: Effect::Reads,
        operations: &[],
        members: Vec::new(),
        output: json!({ "type": "object", "properties": properties, "required": ["storeId", "revision", "scopes"] }),
        run: Run::Code(guide),
        once: false,
    })
}

fn guide<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(async move {
        let caller = &call.session.caller;
        let scopes: Vec<&str> = caller.scopes.iter().map(|scope| scope.name()).collect();
        let mut result = json!({ "storeId": caller.store_id, "revision": revision::NAME, "scopes": scopes });
        let mut incomplete = Vec::new();
        for GuideList { name, operation, keeps } in &PARTS {
            let Ok(mut input) = Input::of(operation) else { continue };
            if !caller.scopes.contains(input.operation.scope) {
                continue;
            }
            if input.operation.parameters.contains_key("pageSize") {
                input = input.query("pageSize", Some(GUIDE_PAGE_SIZE));
            }
            let answer = call.call(&input).await?;
            let more = answer.next_cursor.is_some();
            let mut records = results::cleaned(answer.data, usize::MAX);
            for record in records.as_array_mut().into_iter().flatten() {
                if let Some(record) = record.as_object_mut() {
                    record.retain(|name, value| keeps.contains(&name.as_str()) && value.is_string());
                }
            }
            if more {
                incomplete.push(*name);
            }
            result[name] = records;
        }
        // Halve the longest list until the result is small enough.
        while schemas::size(&result) > results::MAX_BYTES {
            let longest = PARTS.iter().max_by_key(|part| result.get(part.name).map_or(0, schemas::size));
            let Some((part, records)) = longest.and_then(|part| Some((part, result.get_mut(part.name)?.as_array_mut()?))) else { break };
            records.truncate(records.len() / 2);
            if !incomplete.contains(&part.name) {
                incomplete.push(part.name);
            }
        }
        if !incomplete.is_empty() {
            result["incomplete"] = Value::from(incomplete);
        }
        Ok(Outcome::Done(result))
    })
}
