//! What a use-case can fail with. Knows no HTTP; the edge gives each a status.

use crate::{domain::ids::MAX_ID_CHARS, search, store};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Input that does not fit a definition or a state. `field` as the request spells it: `body.labels[0]`, `pageSize`.
    #[error("`{field}` {reason}")]
    Invalid { field: String, reason: String },
    /// A record that is not in the store. `field` is the member that names it, as the request spells it.
    #[error("`{field}`: {reason}")]
    NotFound { field: String, reason: String },
    /// The record changed, is in another state, or would collide with another. `field` as the request spells it.
    #[error("`{field}` {reason}")]
    Conflict { field: String, reason: String },
    /// The caller may not do this. `field` as the request spells it.
    #[error("`{field}` {reason}")]
    Forbidden { field: String, reason: String },
    /// The store has as many of something as it may have.
    #[error("{0}")]
    Full(String),
    #[error("`Idempotency-Key` was used for another request; send a new key")]
    KeyReused,
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

    pub fn conflict(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Conflict { field: field.into(), reason: reason.into() }
    }

    pub fn forbidden(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Forbidden { field: field.into(), reason: reason.into() }
    }

    pub fn not_found(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::NotFound { field: field.into(), reason: reason.into() }
    }

    /// No such record in the store, which includes another store's.
    pub fn missing(field: impl Into<String>, noun: &str, id: impl std::fmt::Display) -> Self {
        Self::not_found(field, format!("no {noun} with id `{}` in this store", shown(id)))
    }
}

/// An id as a message shows it: a request may send any text for one.
pub(super) fn shown(id: impl std::fmt::Display) -> String {
    let text = id.to_string();
    match text.char_indices().nth(MAX_ID_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Busy => {
                tracing::warn!("a statement gave up waiting for another one, or was cancelled by the database");
                Self::Unavailable { reason: "another write is in progress; try again".to_owned(), retry_after: 5 }
            }
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
            store::Error::SecretKey(detail) => {
                tracing::error!(%detail, "a secret cannot be encrypted");
                Self::Unavailable { reason: "a secret cannot be encrypted at present; try again later".to_owned(), retry_after: 60 }
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
