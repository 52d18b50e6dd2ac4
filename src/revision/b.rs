//! Revision B of the API contract, the newer one: its limits ([`RULES`]), its examples and its record types. Its lists have at most 100
//! records per page. Its responses give `requestReceivedAt` in Unix milliseconds. Only this revision has operations for channel accounts,
//! searches, assignments, e-mails and templates.

mod channel_accounts;
mod email_and_template_sends;
mod message_schema;
mod request_bodies;
mod search_operations;
mod ticket_assignment;
mod ticket_schema;
mod user_schema;

use poem_openapi::OpenApi;

use crate::domain::revision_rules::{ReceivedAt, Rules};

pub const NAME: &str = "B";

/// What `--version` prints after the name of the program.
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

/// The channels that the OpenAPI document of this revision lists.
pub const CHANNELS: &[&str] =
    &["line", "instagram", "facebook", "lazada", "shopee", "tiktok", "whatsapp", "widget", "gmail", "outlook", "drunken_lullabies"];

/// Returns the operations that only this revision has.
pub fn extra() -> impl OpenApi {
    (channel_accounts::AccountReads, ticket_assignment::Assignments, search_operations::SearchOperations, email_and_template_sends::Sends)
}

/// Kinds of events that nothing in this revision causes. The OpenAPI document of the events leaves them out. Empty: this revision can cause
/// events of every kind.
pub const UNCAUSED_EVENTS: &[&str] = &[];

/// Example requests that only this revision has, since revision A lacks their operation (such as `assignTickets`) or a part of their input.
/// The value is a JSON array, which `http::openapi::examples` reads.
pub const REQUESTS: &str = include_str!("b/example_requests.json");
/// Example requests that the server refuses, to operations that only this revision has. The value is a JSON array.
pub const REFUSALS: &str = include_str!("b/refused_requests.json");
/// The recorded responses of this revision to the example requests.
pub const ANSWERS: &str = include_str!("b/example_responses.json");

/// The recorded error responses of this revision to the example requests that are refused.
pub const ERRORS: &str = include_str!("b/example_errors.json");

/// The recorded events that the example requests cause in this revision.
pub const EVENTS: &str = include_str!("b/example_events.json");

/// Types whose shape depends on the revision, under the same names in both revisions.
pub mod wire {
    pub use super::{
        email_and_template_sends::send_of,
        message_schema::Message,
        request_bodies::{CommentInput, LabelsInput, TextInput},
        ticket_schema::Ticket,
        user_schema::User,
    };

    /// The query parameter `page` of paginated operations. This revision does not have it, and ignores any value of it.
    pub type PageParam = crate::http::machinery::params::IgnoredParam;
}
