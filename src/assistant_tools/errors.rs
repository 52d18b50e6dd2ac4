//! Error messages of MCP tools, written for an AI assistant: what is wrong, what would be right, and which tool helps.

use poem::http::StatusCode;

use super::{
    api_operation_calls::{self, ApiOperation},
    definition::{Place, Tool},
    prompt_injection::is_hidden,
};
use crate::http::machinery::error_responses::ApiError;

/// Why a call failed.
#[derive(Debug)]
pub enum ToolError {
    /// The arguments of the tool are wrong.
    Arguments(String),
    /// An operation refused the call.
    OperationRefused {
        operation: &'static ApiOperation,
        status: StatusCode,
        message: String,
        retry_after: Option<u32>,
    },
    /// The call asks for something that this build's revision of the API lacks, or that is impossible at present.
    Unavailable(String),
    Internal(String),
}

/// Names of arguments that hold ids. Each group has the tool that finds such ids.
const FINDERS: [(&[&str], &str); 7] = [
    (&["ticketId", "conversationId"], "list_tickets"),
    (&["contactId"], "find_contacts"),
    (&["fieldId", "fields", "fieldFilters", "ticketFieldId"], "list_fields"),
    (&["labelIds", "add", "remove"], "list_labels"),
    (&["handledBy", "assigneeUserIds", "assigneeUserId"], "list_people"),
    (&["accountId"], "list_channel_accounts"),
    (&["templateId"], "list_templates"),
];

impl ToolError {
    /// Returns the error message. It names the tool's arguments in place of the operation's parameters and properties. It recommends only
    /// tools for which `exists` returns true, that is, tools that the caller may use. If the error is internal, the returned message leaves
    /// out the reason, so the reason is logged.
    pub fn text(&self, tool: &Tool, exists: impl Fn(&str) -> bool) -> String {
        match self {
            Self::Arguments(text) | Self::Unavailable(text) => text.clone(),
            Self::Internal(reason) => {
                tracing::error!(tool = tool.name, reason, "a tool failed");
                "The server failed. The call may be repeated; if it fails again, its operator finds the reason in the log.".to_owned()
            }
            Self::OperationRefused { operation, status, message, retry_after } => {
                let mut text = in_words_of_the_tool(tool, message);
                let is_unknown = *status == StatusCode::NOT_FOUND || text.contains(" this store") || text.contains(" the store");
                let finder = FINDERS.iter().find(|(members, finder)| {
                    *finder != tool.name && exists(finder) && members.iter().any(|member| message_names(&text, member))
                });
                let hint = match *status {
                    StatusCode::FORBIDDEN => Some(format!("Ask the operator of the store for a key with the scope {}.", operation.scope)),
                    StatusCode::CONFLICT => Some(reread(tool).to_owned()),
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                        Some(format!("Repeat the call after {} seconds.", retry_after.unwrap_or(1)))
                    }
                    _ => finder.filter(|_| is_unknown).map(|(_, finder)| format!("{finder} lists what exists.")),
                };
                if let Some(hint) = hint {
                    let end = if text.ends_with('.') { "" } else { "." };
                    text.push_str(&format!("{end} {hint}"));
                }
                text
            }
        }
    }
}

/// Returns the advice after a conflict: the record to read again.
fn reread(tool: &Tool) -> &'static str {
    match tool.name {
        "set_ticket_field" => "Read the ticket again with get_ticket, and pass its `ticketFieldsUpdatedAt`.",
        "set_contact_field" => {
            "Read the contact again with get_contact, and pass its `customFieldsUpdatedAt`, or `updatedAt` if that is absent."
        }
        "create_contact" => "find_contacts finds the contact that has the address or the number.",
        _ => "Read the record again before another attempt.",
    }
}

/// Returns whether a message contains the name of an argument as a whole word.
fn message_names(message: &str, member: &str) -> bool {
    message.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == member)
}

/// Replaces the API's names of properties and operations by the names of arguments and tools, and removes hidden characters.
fn in_words_of_the_tool(tool: &Tool, message: &str) -> String {
    let mut text = message.replace(is_hidden, "");
    let mut places: Vec<(String, &str)> = tool
        .members
        .iter()
        .filter_map(|member| match member.place {
            Place::Body(pointer) => Some((format!("body{}", pointer.replace('/', ".")), member.name)),
            _ => None,
        })
        .collect();
    // Replace the longest path first, since `body.a.b` contains `body.a`.
    places.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
    for (place, member) in places {
        text = text.replace(&place, member);
    }
    text = text.replace("body.", "");
    for (operation, words) in [
        ("x-pagination-next-cursor", "nextCursor"),
        ("advancedFilters.openedAt.value", "openedAfter` or `openedBefore"),
        ("advancedFilters.openedAt.min", "openedAfter"),
        ("advancedFilters.openedAt.max", "openedBefore"),
        ("advancedFilters.labels.labelIds", "labelIds"),
        ("advancedFilters.ticketFields", "fieldFilters"),
        ("POST /messages/template", "send_message and its `templateId`, which list_templates finds"),
        ("PATCH /tickets/field-values", "set_ticket_field"),
    ] {
        text = text.replace(operation, words);
    }
    text
}

impl ToolError {
    /// Converts an error from the code of an API operation. Used by tools that call this code directly, not through the HTTP router.
    pub fn of_api(operation: &str, error: ApiError) -> Self {
        match api_operation_calls::find(operation) {
            Some(operation) => {
                Self::OperationRefused { operation, status: error.status, message: error.message, retry_after: error.retry_after }
            }
            None => Self::Internal(error.message),
        }
    }
}
