//! The MCP tools for conversations: list them, mark one as read, and change its labels.

use serde_json::json;

use super::definition::{Effect, InputMember, Tool, pages};

const CONVERSATION: &str = "cv-204";

pub fn list_conversations() -> Option<Tool> {
    let member = |name, description, example: &str| InputMember::query("listConversations", name, description, json!(example));
    let mut members = vec![
        member("contactId", "Conversations of this contact.", "c-118"),
        member("conversationId", "This conversation alone.", CONVERSATION),
    ];
    members.extend(pages("listConversations"));
    Tool::of(
        &["listConversations"],
        "list_conversations",
        "List conversations",
        "Conversations of a contact, or one conversation, with the last message. Give `contactId` or `conversationId`.",
        Effect::Reads,
        members,
    )
}

pub fn mark_read() -> Option<Tool> {
    Tool::of(
        &["markConversationRead"],
        "mark_read",
        "Mark a conversation as read",
        "Sets the unread count of a conversation to 0.",
        Effect::Writes { idempotent: true, destructive: false },
        vec![InputMember::body("conversationId", "markConversationRead", "/conversationId", "The conversation.", json!(CONVERSATION))],
    )
}

pub fn change_labels() -> Option<Tool> {
    let member = |name, pointer, description, example| InputMember::body(name, "updateConversationLabels", pointer, description, example);
    Tool::of(
        &["updateConversationLabels"],
        "change_labels",
        "Change labels",
        "Adds labels to a conversation and removes others.",
        Effect::Writes { idempotent: true, destructive: false },
        vec![
            member("conversationId", "/conversationId", "The conversation.", json!(CONVERSATION)),
            member("add", "/addLabels", "Ids of labels to add; list_labels finds them.", json!(["l-7"])),
            member("remove", "/removeLabels", "Ids of labels to remove.", json!(["l-9"])),
        ],
    )
}
