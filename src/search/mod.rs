//! Search: which messages and contacts have the words, or the parts of words, that somebody typed.
//!
//! The database is the truth; an index beside it, one for each process, is made from it and can be made again at any
//! time. Called by `service` (and `cli`, to build the index); reads records and the change log from `store`.
//!
//! - `analysis` cuts texts into terms, `query` turns what was typed into conditions on them. Both are pure.
//! - `index` is the files: Tantivy keeps term dictionaries, postings with places, and merges; each commit carries the mark
//!   of the change log that it is complete up to. `folder` is where they are, `build` makes them from nothing.
//! - `columns` are what a segment tells of a document at once: its place in the order, and its id.
//! - `postings` and `searcher` find the best hits, `memory` does the same for what is not committed, `score` says how good.
//! - `front` is what was written since; `follow` answers, and keeps up with the database.
//!
//! Why the queries are evaluated here and not by Tantivy: each term begins with its store, so that no store's volume costs
//! another anything, and scores use no number of the whole index; documents and lists are laid out in the order of those
//! scores, so that a search ends once its page is full (`searcher` says how); and what a cursor says stays true while data arrives, since
//! a score depends on the record and on weights that the cursor carries.
//!
//! What is promised of a walk: the order is by score, then the newest, then id; a record that is not touched meanwhile
//! comes exactly once. One that is changed may come again, or not at all, as its score or instant moved.
//!
//! What a search sees: every write of this process that was acknowledged before, and every one of other processes, unless they
//! wrote more than a search can take in, or gave conversations other subjects: then what they write is seen once the worker has
//! that in the index. While an index is built, searches are refused and everything else goes on.

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
pub use follow::Searches;
pub use memory::matching;
pub use score::shown;
pub use searcher::{Found, Hit, Order, Search};

pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing was found.
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
