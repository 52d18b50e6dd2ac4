//! The tags in the OpenAPI document of the API contract.

use poem_openapi::Tags;

/// The kinds of records by which operations are grouped.
#[derive(Debug, Tags)]
pub enum Tag {
    /// Pieces of work raised against a conversation, and the definitions of their fields.
    Tickets,
    /// Threads with a contact on one channel account.
    Conversations,
    /// The store's customers, and the definitions of their fields.
    Contacts,
    /// Customer-facing messages and internal comments.
    Messages,
    /// Users of the store: teammates, and people who were invited and have not joined yet.
    Users,
    /// Labels of conversations.
    Labels,
    /// Teams of users.
    Teams,
    /// Channel accounts and their message templates.
    Accounts,
}
