//! Revision A of the API contract, the older one: its limits ([`RULES`]), its examples and its record types. Its lists have at most 50
//! records per page, and the list of messages at most 15. They accept a page number (the parameter `page`), and return this number and the
//! total number of records in headers. Its responses give `requestReceivedAt` in RFC 3339.

mod message_schema;
mod request_bodies;
mod ticket_schema;
mod user_schema;

use poem_openapi::OpenApi;

use crate::domain::revision_rules::{ReceivedAt, Rules};

pub const NAME: &str = "A";

/// What `--version` prints after the name of the program.
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

/// The channels that the OpenAPI document of this revision lists.
pub const CHANNELS: &[&str] = &["line", "instagram", "facebook", "lazada", "shopee", "tiktok", "whatsapp", "widget", "gmail", "outlook"];

/// Returns the operations that only this revision has: none.
pub fn extra() -> impl OpenApi {}

/// Kinds of events that nothing in this revision causes. The OpenAPI document of the events leaves them out. For example, only revision B
/// has an operation that assigns tickets. A build of revision A delivers such an event only if a build of revision B recorded it in the
/// same database.
pub const UNCAUSED_EVENTS: &[&str] = &["ticket.assigned"];

/// Example requests that only this revision has: none. The value is a JSON array, which `http::openapi::examples` reads.
pub const REQUESTS: &str = "[]";
/// Example requests that the server refuses, to operations that only this revision has: none. The value is a JSON array.
pub const REFUSALS: &str = "[]";
/// The recorded responses of this revision to the example requests.
pub const ANSWERS: &str = include_str!("a/example_responses.json");

/// The recorded error responses of this revision to the example requests that are refused.
pub const ERRORS: &str = include_str!("a/example_errors.json");

/// The recorded events that the example requests cause in this revision.
pub const EVENTS: &str = include_str!("a/example_events.json");

/// Types whose shape depends on the revision, under the same names in both revisions.
pub mod wire {
    pub use super::{
        message_schema::Message,
        request_bodies::{CommentInput, LabelsInput, TextInput, send_of},
        ticket_schema::Ticket,
        user_schema::User,
    };
    use crate::http::machinery::params::{PageNumber, Query};

    /// The query parameter `page` of the paginated operations.
    pub type PageParam = Query<PageNumber>;
}
