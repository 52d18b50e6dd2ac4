//! What a use-case can fail with. Knows no HTTP; the edge gives each a status.

use crate::{search, store};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Input that does not fit a definition or a state. `field` as the request spells it: `body.labels[0]`, `pageSize`.
    #[error("`{field}` {reason}")]
    Invalid { field: String, reason: String },
    /// A record that is not in the store; the text says which.
    #[error("{0}")]
    NotFound(String),
    /// The record changed, or would collide with another.
    #[error("{0}")]
    Conflict(String),
    /// The same request is being carried out; worth a retry after so many seconds.
    #[error("{reason}")]
    InProgress { reason: String, retry_after: u32 },
    /// Not now; worth a retry after so many seconds.
    #[error("{reason}")]
    Unavailable { reason: String, retry_after: u32 },
    /// Ours to fix. The text is for the log alone.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), reason: reason.into() }
    }

    /// No such record in the store, which includes another store's.
    pub fn missing(noun: &str, id: impl std::fmt::Display) -> Self {
        Self::NotFound(format!("no {noun} with id `{id}` in this store"))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Busy => Self::Unavailable { reason: "another write is in progress; try again".to_owned(), retry_after: 5 },
            store::Error::Raced => Self::Unavailable { reason: "others are writing to the same; try again".to_owned(), retry_after: 1 },
            store::Error::Unavailable(detail) => {
                tracing::error!(%detail, "the database cannot be reached");
                Self::Unavailable { reason: "the database cannot be reached; try again".to_owned(), retry_after: 5 }
            }
            store::Error::Failing(detail) => {
                tracing::error!(%detail, "the database cannot do its work");
                Self::Unavailable { reason: "the database cannot do this at present; try again".to_owned(), retry_after: 5 }
            }
            store::Error::Unusable(detail) => {
                tracing::error!(%detail, "the database is unusable until it is mended");
                Self::Unavailable { reason: "the database is out of order; try again later".to_owned(), retry_after: 60 }
            }
            other @ (store::Error::Unique(_) | store::Error::ForeignKey(_) | store::Error::Damaged(_) | store::Error::Other(_)) => {
                Self::Internal(other.to_string())
            }
        }
    }
}

impl From<search::Error> for Error {
    fn from(error: search::Error) -> Self {
        match error {
            search::Error::Building => {
                Self::Unavailable { reason: "the search index is being built; try again".to_owned(), retry_after: 5 }
            }
            search::Error::Store(error) => error.into(),
            search::Error::Failed(_) => Self::Internal(error.to_string()),
        }
    }
}
