//! What can be searched, and what a search finds (sections 2.6, 2.8 and 4.1).

use super::{
    ids::{ContactId, ConversationId, MessageId, StoreId},
    time::Timestamp,
};

/// The longest text that the search operations take, in characters.
pub const MAX_QUERY_CHARS: usize = 150;

/// The kinds of record that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Noun {
    Message,
    Contact,
}

/// A record as it is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searchable {
    pub store: StoreId,
    pub noun: Noun,
    pub id: String,
    /// What the newest is told by, in Unix milliseconds: when a message was sent, or a contact updated.
    pub at: i64,
    pub texts: Vec<String>,
}

/// A contact that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactHit {
    pub id: ContactId,
    pub full_name: String,
    pub phone: Option<String>,
    /// By their names in the contract.
    pub matched_fields: Vec<&'static str>,
}

/// A message that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageHit {
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub text: Option<String>,
    pub inbound: bool,
    pub sent_at: Timestamp,
    pub score: f64,
}
