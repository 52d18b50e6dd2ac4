//! Errors of the use-cases. They are independent of HTTP; the HTTP layer maps each error to a status.

use crate::{domain::ids::MAX_ID_CHARS, search, store};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid input: a value that is not permitted, or that does not fit the state of a record. `field` is a path in the request, such as
    /// `body.labels[0]` or `pageSize`.
    #[error("`{field}` {reason}")]
    Invalid { field: String, reason: String },
    /// A record that is not in the store. `field` is the request property that contains the id of the record.
    #[error("`{field}`: {reason}")]
    NotFound { field: String, reason: String },
    /// A conflict with the current data: the record changed after the client read it, is in a state that does not permit the request, or
    /// would collide with another record. `field` is a path in the request.
    #[error("`{field}` {reason}")]
    Conflict { field: String, reason: String },
    /// The caller is not permitted to do what the request asks for. `field` is a path in the request.
    #[error("`{field}` {reason}")]
    Forbidden { field: String, reason: String },
    /// The requested data is no longer stored. `field` is the request property that asks for it.
    #[error("`{field}` {reason}")]
    Gone { field: String, reason: String },
    /// The store has reached a limit on the number of its records.
    #[error("{0}")]
    Full(String),
    /// A signed request that was accepted before.
    #[error(
        "`webhook-id` and `webhook-timestamp` are those of a request that was accepted before; to repeat a request, sign it anew with the \
         current time"
    )]
    Replayed,
    #[error("`Idempotency-Key` was used for another request; send a new key")]
    KeyReused,
    /// A request with the same idempotency key is in progress; the client may retry after `retry_after` seconds.
    #[error("{reason}")]
    InProgress { reason: String, retry_after: u32 },
    /// Temporarily unavailable; the client may retry after `retry_after` seconds.
    #[error("{reason}")]
    Unavailable { reason: String, retry_after: u32 },
    /// A failure of the server. The text is only for the log.
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

    /// Makes the error that the store has no such record. Records of other stores count as missing.
    pub fn missing(field: impl Into<String>, noun: &str, id: impl std::fmt::Display) -> Self {
        Self::not_found(field, format!("no {noun} with id `{}` in this store", shown(id)))
    }
}

/// Returns an id shortened for an error text, since the id in a request may be very long.
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
                tracing::warn!("a statement timed out on a lock, or was cancelled by the database");
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
                tracing::error!(%detail, "the database is unusable until it is repaired");
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
