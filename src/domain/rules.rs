//! What differs between the revisions by value. Both sets of values are plain data, injected by the composition root,
//! so that every branch on them is compiled and tested in both builds.

/// The values of one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `A` or `B`.
    pub revision: &'static str,
    /// Largest `pageSize` (section 8).
    pub max_page_size: u32,
    /// `pageSize` of GET /messages when it is not sent; `None`: it must be sent.
    pub messages_default_page_size: Option<u32>,
    /// Largest `pageSize` of GET /messages.
    pub messages_max_page_size: u32,
    /// How `requestReceivedAt` is written.
    pub received_at: ReceivedAt,
    /// Whether `page` is read and echoed, and `x-pagination-total` sent.
    pub page_echo: bool,
    /// Whether a cursor is refused when filters or `pageSize` changed since it was made.
    pub strict_cursors: bool,
    /// Whether `conversationId` alone lists a conversation's tickets in every status.
    pub conversation_history: bool,
    /// Whether an unknown label id in a label update is refused, or passed over.
    pub unknown_labels_refused: bool,
    /// Whether a user without a name is shown with a made-up one.
    pub user_name_fallback: bool,
    /// Whether the contact list is ordered by relevance where it is searched.
    pub contacts_by_relevance: bool,
    /// What sends a template to a conversation, if anything does.
    pub template_operation: Option<&'static str>,
}

/// The two ways in which `requestReceivedAt` is written (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedAt {
    /// RFC 3339.
    Timestamp,
    /// Unix time in milliseconds, as a string.
    UnixMillis,
}

/// `pageSize` when it is not sent.
pub const DEFAULT_PAGE_SIZE: u32 = 20;

/// The page size of the search operations, which nobody chooses.
pub const SEARCH_PAGE_SIZE: u32 = 10;
