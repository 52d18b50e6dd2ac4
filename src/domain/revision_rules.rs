//! Settings of an API revision: the differences between the revisions A and B of the API contract that can be written as values. The values
//! are in `revision::a` and `revision::b`. A build serves one revision. Code that depends on a setting has ordinary branches (`if`) and no
//! `#[cfg]`, so the builds of both revisions compile and test every branch.

/// The settings of one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The name of the revision: `A` or `B`.
    pub revision: &'static str,
    /// Largest `pageSize` of the lists, except that of GET /messages (contract, section 8).
    pub max_page_size: u32,
    /// Default `pageSize` of GET /messages; `None`: the parameter is required.
    pub messages_default_page_size: Option<u32>,
    /// Largest `pageSize` of GET /messages.
    pub messages_max_page_size: u32,
    /// The format of `requestReceivedAt`.
    pub received_at: ReceivedAt,
    /// Whether lists accept the parameter `page` and repeat it in a header, and return the total number of records in `x-pagination-total`.
    pub page_echo: bool,
    /// Whether a cursor is refused if filters or `pageSize` changed since it was issued.
    pub strict_cursors: bool,
    /// Whether a ticket list that is filtered by `conversationId` alone contains the tickets of every status. If not, it contains only open
    /// tickets.
    pub conversation_history: bool,
    /// Whether an unknown label id in a label update is refused. If not, it is ignored.
    pub unknown_labels_refused: bool,
    /// Whether a user without a name is shown with a name derived from the e-mail address.
    pub user_name_fallback: bool,
    /// Whether a contact list with a search text is ordered by relevance.
    pub contacts_by_relevance: bool,
    /// The method and path of the operation that sends a template to a conversation. `None`: the revision has no such operation.
    pub template_operation: Option<&'static str>,
}

/// The formats of `requestReceivedAt` (contract, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedAt {
    /// A date-time in the form of RFC 3339.
    Timestamp,
    /// Unix time in milliseconds, as a string.
    UnixMillis,
}

/// The default `pageSize` of the lists, except that of GET /messages.
pub const DEFAULT_PAGE_SIZE: u32 = 20;

/// The fixed page size of the search operations.
pub const SEARCH_PAGE_SIZE: u32 = 10;
