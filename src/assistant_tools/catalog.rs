//! The catalog of the MCP tools (functions that an AI assistant may call), in the order in which clients see them. A new tool is added
//! here.
//!
//! The API contract exists in two revisions, A and B, and a build serves one of them. A tool is left out if this revision lacks its
//! operations.

use std::sync::LazyLock;

use super::{
    accounts, contacts, conversations, definition::Tool, field_definitions, labels, message_sending, messages_and_comments,
    store_overview_tool, tickets, users_and_teams,
};

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let tools = [
        store_overview_tool::get_inbox_guide(),
        tickets::list_tickets(),
        tickets::get_ticket(),
        conversations::list_conversations(),
        messages_and_comments::read_thread(),
        contacts::get_contact(),
        contacts::find_contacts(),
        contacts::list_contacts(),
        messages_and_comments::search_messages(),
        field_definitions::list_fields(),
        users_and_teams::list_people(),
        labels::list_labels(),
        accounts::list_channel_accounts(),
        accounts::list_templates(),
        tickets::set_ticket_field(),
        tickets::close_ticket(),
        tickets::assign_tickets(),
        conversations::mark_read(),
        conversations::change_labels(),
        contacts::create_contact(),
        contacts::set_contact_field(),
        messages_and_comments::add_comment(),
        message_sending::send_message(),
        message_sending::start_conversation(),
    ];
    tools.into_iter().flatten().collect()
});

/// Returns the tools that this build offers.
pub fn tools() -> &'static [Tool] {
    &TOOLS
}

pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

pub fn names() -> Vec<&'static str> {
    TOOLS.iter().map(|tool| tool.name).collect()
}
