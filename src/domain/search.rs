//! The records that the search index contains, and search results (API contract, sections 2.6, 2.8 and 4.1).

use super::{
    ids::{ContactId, ConversationId, MessageId, StoreId},
    time::Timestamp,
};

/// The maximum number of characters in a search text.
pub const MAX_QUERY_CHARS: usize = 150;

/// The kinds of searchable records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchableKind {
    Message,
    Contact,
}

/// A record as the search index contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searchable {
    pub store: StoreId,
    pub noun: SearchableKind,
    pub id: String,
    /// The sort instant in Unix milliseconds: the `sort_at` of a message (see [`super::messages::Message`]), or when a contact was updated.
    pub at: i64,
    pub texts: Vec<String>,
}

/// A contact found by a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactHit {
    pub id: ContactId,
    pub full_name: String,
    pub phone: Option<String>,
    /// The properties that match, by their names in the contract.
    pub matched_fields: Vec<&'static str>,
}

/// A message found by a search.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageHit {
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub text: Option<String>,
    pub inbound: bool,
    pub sent_at: Timestamp,
    pub score: f64,
}
