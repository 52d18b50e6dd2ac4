//! Revision B, the newer one: pages of up to 100, Unix milliseconds, channel accounts and templates.

mod accounts;
mod assign;
mod inputs;
mod message;
mod search;
mod sends;
mod ticket;
mod user;

use poem_openapi::OpenApi;

use crate::domain::rules::{ReceivedAt, Rules};

pub const NAME: &str = "B";

/// What `--version` prints.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (contract revision B)");

pub const RULES: Rules = Rules {
    revision: NAME,
    max_page_size: 100,
    messages_default_page_size: Some(15),
    messages_max_page_size: 100,
    received_at: ReceivedAt::UnixMillis,
    page_echo: false,
    strict_cursors: true,
    conversation_history: true,
    unknown_labels_refused: true,
    user_name_fallback: false,
    contacts_by_relevance: true,
    template_operation: Some("POST /messages/template"),
};

/// The channels that this revision lists.
pub const CHANNELS: &[&str] =
    &["line", "instagram", "facebook", "lazada", "shopee", "tiktok", "whatsapp", "widget", "gmail", "outlook", "drunken_lullabies"];

/// Groups of operations that only this revision has.
pub fn extra() -> impl OpenApi {
    (accounts::AccountReads, assign::Assignments, search::SearchOperations, sends::Sends)
}

/// Kinds of events that nothing of this revision causes: it only passes on those that the other one recorded.
pub const UNCAUSED_EVENTS: &[&str] = &[];

/// Example requests to what only this revision has, or takes (`http::document::examples`).
pub const REQUESTS: &str = include_str!("b/requests.json");
/// What this revision answers to the example requests.
pub const ANSWERS: &str = include_str!("b/answers.json");

/// The events that this revision sends meanwhile.
pub const EVENTS: &str = include_str!("b/events.json");

/// Types under the names that both revisions give them.
pub mod wire {
    pub use super::{
        inputs::{CommentInput, LabelsInput, TextInput},
        message::Message,
        ticket::Ticket,
        user::User,
    };

    /// `page` of the paginated operations: not of this revision.
    pub type PageParam = crate::http::machinery::params::Absent;
}
