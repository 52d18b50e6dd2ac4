//! Full-text search of messages and contacts: an inverted index (Tantivy) per process, kept up to date from the database's change log (a
//! log of changed records).
//!
//! The database is the source of truth; the index is derived from it and can be rebuilt at any time. Called by `service`, which searches,
//! by `app`, which runs the background worker, and by `cli`, which rebuilds the index. Reads records and the change log from `store`.
//!
//! - `analysis` is the tokenizer; `query` parses a search into conditions on terms. Both do no I/O.
//! - `index` is the inverted index on disk. Tantivy provides term dictionaries, posting lists with positions, and merges. Each commit
//!   contains the position in the change log up to which the index is complete. `index_directory` locks the folder of the index;
//!   `index_build` builds an index from the database.
//! - `fast_fields` is the column store of a segment: the sort key and the id of each document.
//! - `postings` and `searcher` evaluate queries on the index, `record_terms` evaluates them on records that the index does not contain yet.
//!   `top_hits` collects the best hits, and `score` computes the relevance.
//! - `overlay` is the in-memory overlay of recent writes; `search_service` answers searches and follows the database.
//!
//! Queries are evaluated by `searcher`, not by Tantivy. Each term begins with the id of its store (the tenant), so a large store does not
//! slow down the searches of other stores. Scores use no statistics of the whole index. Documents and posting lists are sorted by the
//! properties that determine the scores, so a search terminates early once its page is full (see `searcher`). A cursor stays valid while
//! records are written, since a score depends only on the record and on weights that the cursor contains.
//!
//! Guarantees for a client that pages through the hits: the order is by score, then newest first, then by id. A record that does not change
//! between the first page and the last appears exactly once. A record that changes in this time may appear twice or not at all, since its
//! score or its time, and so its place in the order, may change.
//!
//! Visibility: a search sees every write that was acknowledged before the search, whichever process made it. There is one exception. The
//! search leaves the changes of other processes to the background worker if there are more of them than a search can apply, or if one of
//! them changed the subject of a conversation, which concerns all messages of the conversation. Such changes become visible once the worker
//! has indexed them. While the index is being built, searches are refused; all other operations work.

mod analysis;
mod fast_fields;
mod index;
mod index_build;
mod index_directory;
mod overlay;
mod postings;
mod query;
mod record_terms;
mod score;
mod search_service;
mod searcher;
#[cfg(test)]
mod tests;
mod top_hits;

use crate::store;

pub use index_build::Progress;
pub use record_terms::matching;
pub use score::shown;
pub use search_service::{IndexState, SearchService};
pub use searcher::{Hit, HitPage, Search, SortOrder};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the search index is being built")]
    Building,
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The index cannot be read or written.
    #[error("the search index: {0}")]
    Failed(String),
}

impl From<tantivy::TantivyError> for Error {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
