//! Revision A, the older one: pages of at most 50, the page number echoed, totals, timestamps as text.

mod inputs;
mod message;
mod ticket;
mod user;

use poem_openapi::OpenApi;

use crate::domain::rules::{ReceivedAt, Rules};

pub const NAME: &str = "A";

/// What `--version` prints.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (contract revision A)");

pub const RULES: Rules = Rules {
    revision: NAME,
    max_page_size: 50,
    messages_default_page_size: None,
    messages_max_page_size: 15,
    received_at: ReceivedAt::Timestamp,
    page_echo: true,
    strict_cursors: false,
    conversation_history: false,
    unknown_labels_refused: false,
    user_name_fallback: true,
    contacts_by_relevance: false,
    template_operation: None,
};

/// The channels that this revision lists.
pub const CHANNELS: &[&str] = &["line", "instagram", "facebook", "lazada", "shopee", "tiktok", "whatsapp", "widget", "gmail", "outlook"];

/// Groups of operations that only this revision has.
pub fn extra() -> impl OpenApi {}

/// Kinds of events that nothing of this revision causes: it only passes on those that the other one recorded.
pub const UNCAUSED_EVENTS: &[&str] = &["ticket.assigned"];

/// Example requests to what only this revision has, or takes (`http::document::examples`).
pub const REQUESTS: &str = "[]";
/// What this revision answers to the example requests.
pub const ANSWERS: &str = include_str!("a/answers.json");

/// The events that this revision sends meanwhile.
pub const EVENTS: &str = include_str!("a/events.json");

/// Types under the names that both revisions give them.
pub mod wire {
    pub use super::{
        inputs::{CommentInput, LabelsInput, TextInput},
        message::Message,
        ticket::Ticket,
        user::User,
    };
    use crate::http::machinery::params::{PageNumber, Query};

    /// `page` of the paginated operations.
    pub type PageParam = Query<PageNumber>;
}
