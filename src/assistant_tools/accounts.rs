//! The MCP tools that list channel accounts and their message templates.

use serde_json::json;

use super::definition::{Effect, InputMember, Tool, pages};

pub fn list_channel_accounts() -> Option<Tool> {
    let mut members = vec![InputMember::query("listAccounts", "channel", "The channel.", json!("whatsapp"))];
    members.extend(pages("listAccounts"));
    Tool::of(
        &["listAccounts"],
        "list_channel_accounts",
        "List channel accounts",
        "The accounts that the store sends and receives with, and whether they work.",
        Effect::Reads,
        members,
    )
}

pub fn list_templates() -> Option<Tool> {
    let member = |name, description, example: &str| InputMember::query("listWhatsappTemplates", name, description, json!(example));
    Tool::of(
        &["listWhatsappTemplates"],
        "list_templates",
        "List WhatsApp templates",
        "The message templates of a WhatsApp account. Only an approved one can be sent.",
        Effect::Reads,
        vec![
            member("accountId", "The WhatsApp account.", "a-3"),
            member("search", "A part of the name or body.", "order"),
            member("language", "The language code.", "en_US"),
            member("status", "The status.", "APPROVED"),
            member("category", "The category.", "UTILITY"),
        ],
    )
}
