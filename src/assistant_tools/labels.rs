//! The MCP tool that lists the labels of the store.

use serde_json::json;

use super::definition::{Effect, InputMember, Tool, pages};

pub fn list_labels() -> Option<Tool> {
    let mut members = vec![InputMember::query("listLabels", "searchTerm", "A part of the label's name.", json!("refund"))];
    members.extend(pages("listLabels"));
    Tool::of(&["listLabels"], "list_labels", "List labels", "The labels of the store, by name.", Effect::Reads, members)
}
