//! Full-text search of messages and contacts: an inverted index (Tantivy) per process, kept up to date from the database's
//! change log.
//!
//! The database is the source of truth; the index is derived from it and can be rebuilt at any time. Called by `service`
//! (and `cli`, to build the index); reads records and the change log from `store`.
//!
//! - `analysis` is the tokenizer; `query` parses a search into conditions on terms. Both are pure.
//! - `index` is the files: Tantivy provides term dictionaries, posting lists with positions, and merges; each commit
//!   contains the mark of the change log up to which it is complete. `folder` locks their directory, `build` creates them.
//! - `columns` are the column store of a segment: the sort key and the id of a document.
//! - `postings` and `searcher` evaluate queries, `best` collects the best hits, `memory` evaluates uncommitted records,
//!   `score` is the relevance.
//! - `front` is the in-memory overlay of recent writes; `follow` answers searches and follows the database.
//!
//! Tantivy does not evaluate the queries. Each term has its store as a prefix, so the volume of one store costs another
//! nothing. Scores use no statistics of the whole index. Documents and posting lists are sorted by what decides those
//! scores, so a search terminates early once its page is full (see `searcher`). A cursor stays valid while data arrives,
//! since a score depends only on the record and on weights that the cursor contains.
//!
//! Guarantees of a walk, a paginated search: the order is by score, then newest first, then id; a record that is not
//! changed meanwhile appears exactly once. A changed record may appear again, or not at all, as its score or instant moved.
//!
//! Visibility: a search sees every write of this process that was acknowledged before, and every one of other processes.
//! The exception is a bulk write of another process, larger than a search can apply, or one that changes subjects of
//! conversations: it becomes visible once the worker has indexed it. While the index is built, searches are refused;
//! everything else works.

mod analysis;
mod best;
mod build;
mod columns;
mod folder;
mod follow;
mod front;
mod index;
mod memory;
mod postings;
mod query;
mod score;
mod searcher;
#[cfg(test)]
mod tests;

use crate::store;

pub use build::Progress;
pub use follow::{IndexState, Searches};
pub use memory::matching;
pub use score::shown;
pub use searcher::{Found, Hit, Order, Search};

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
