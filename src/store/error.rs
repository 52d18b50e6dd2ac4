//! The error type of the store. It classifies the errors of all database drivers by what a caller can do about them.

use std::{error::Error as _, io::ErrorKind};

use sea_orm::{DbErr, RuntimeErr};
use tokio_postgres::error::{Severity, SqlState};

pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the database, classified by what a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A unique index refused a row. The value is the database's message, which names the index or its columns.
    #[error("a unique index refused the row: {0}")]
    Unique(String),
    /// A foreign key would refer to a row that does not exist.
    #[error("a foreign key refused the row: {0}")]
    ForeignKey(String),
    /// A lock or statement time-out has passed, or the transaction conflicts with another one (deadlock, serialization failure). A later
    /// attempt may succeed.
    #[error("the database is busy")]
    Busy,
    /// There is no connection: the server cannot be reached, refuses connections, or the pool has none free in time. Also: the URL or the
    /// file of the database cannot be used, or a statement broke off because its connection was lost, its schema changed, or the database
    /// was closed.
    #[error("no connection to the database: {0}")]
    Unavailable(String),
    /// The database can be reached but cannot do its work: its disk is full or fails, or its server is read-only. A later attempt may
    /// succeed.
    #[error("the database cannot do its work: {0}")]
    Failing(String),
    /// The database is damaged, or its tables are missing. An operator has to repair it.
    #[error("the database is unusable: {0}")]
    Unusable(String),
    /// The keys that secrets are encrypted with cannot be used.
    #[error("{0}")]
    SecretKey(String),
    /// A stored value cannot be read.
    #[error("a stored value is damaged: {0}")]
    Damaged(String),
    #[error(transparent)]
    Other(DbErr),
}

impl From<DbErr> for Error {
    fn from(error: DbErr) -> Self {
        if let DbErr::ConnectionAcquire(reason) = &error {
            return Self::Unavailable(reason.to_string());
        }
        sqlx_error(&error).and_then(Self::from_sqlx).unwrap_or(Self::Other(error))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::from_sqlx(&error).unwrap_or_else(|| Self::Other(DbErr::Custom(error.to_string())))
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        if is_outdated(&error) {
            return Self::Unavailable(format!("the schema changed meanwhile: {}", reason(&error)));
        }
        let classified = error.as_db_error().and_then(|inner| Self::of_code(inner.code().code(), inner.message()));
        let away = is_lost(&error) || of_the_network(&error).is_some();
        classified.unwrap_or_else(|| if away { Self::Unavailable(reason(&error)) } else { Self::Other(DbErr::Custom(reason(&error))) })
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        // SQLite's extended result codes for a violated unique index, primary key and foreign key.
        match error.sqlite_error().map(|error| error.extended_code) {
            Some(2067 | 1555) => return Self::Unique(error.to_string()),
            Some(787) => return Self::ForeignKey(error.to_string()),
            _ => {}
        }
        // The primary code is the lowest byte of the extended one.
        let code = error.sqlite_error().map(|error| error.extended_code & 0xff);
        let text = || error.to_string();
        code.and_then(|code| Self::of_sqlite(code, &text())).unwrap_or_else(|| Self::Other(DbErr::Custom(text())))
    }
}

/// Returns whether the error means that a prepared statement no longer fits the schema, or no longer exists on the server.
pub(in crate::store) fn is_outdated(error: &tokio_postgres::Error) -> bool {
    let Some(error) = error.as_db_error() else { return false };
    match error.code().code() {
        // PostgreSQL's `feature_not_supported`, which has many causes. Only the routine `RevalidateCachedQuery` reports a cached plan whose
        // result type changed.
        "0A000" => error.routine() == Some("RevalidateCachedQuery"),
        code => code == "26000",
    }
}

/// Returns whether the error means that the connection was lost; the statement may then succeed on another connection.
pub(super) fn is_lost(error: &tokio_postgres::Error) -> bool {
    let ends = |severity| matches!(severity, Severity::Fatal | Severity::Panic);
    error.is_closed() || error.as_db_error().is_some_and(|error| error.parsed_severity().is_some_and(ends))
}

/// Returns whether the server refused a connection because it is still starting or has as many connections as it accepts.
pub(super) fn is_not_accepting_yet(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => [SqlState::TOO_MANY_CONNECTIONS, SqlState::CANNOT_CONNECT_NOW].contains(code),
        None => of_the_network(error) == Some(ErrorKind::ConnectionRefused),
    }
}

/// Returns whether a failover may be the reason why one of several hosts refused or lost a connection: the host is unreachable, is shutting
/// down, or is a standby.
pub(super) fn may_be_a_failover(error: &tokio_postgres::Error) -> bool {
    // Class 57: the server starts, stops, or was terminated. Other errors that end a connection, such as a wrong password, are permanent.
    let stops = error.code().is_some_and(|code| code.code().starts_with("57"));
    // `InvalidData`: the certificate was refused.
    error.is_closed() || stops || of_the_network(error).is_some_and(|kind| kind != ErrorKind::InvalidData)
}

/// Returns the network error because of which a server could not be reached. If the driver (tokio-postgres) cannot encode a value, it
/// reports an I/O error of kind `InvalidInput`; that is not a network error.
fn of_the_network(error: &tokio_postgres::Error) -> Option<ErrorKind> {
    let kind = error.source()?.downcast_ref::<std::io::Error>()?.kind();
    (kind != ErrorKind::InvalidInput).then_some(kind)
}

/// Returns the text of an error with its cause. The `Display` of `tokio_postgres::Error` shows only the kind of the error.
pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(inner), _) => format!("{} ({})", inner.message(), inner.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// Returns the error of sqlx that an error of SeaORM contains.
fn sqlx_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Exec(RuntimeErr::SqlxError(inner))
        | DbErr::Query(RuntimeErr::SqlxError(inner))
        | DbErr::Conn(RuntimeErr::SqlxError(inner)) => Some(inner),
        _ => None,
    }
}

impl Error {
    /// Returns a copy of the error if it is about the database as a whole and not about one statement. The copy is for other callers, for
    /// example for those whose look-ups shared the failed statement.
    pub(super) fn of_the_database(&self) -> Option<Self> {
        match self {
            Self::Busy => Some(Self::Busy),
            Self::Unavailable(reason) => Some(Self::Unavailable(reason.clone())),
            Self::Failing(reason) => Some(Self::Failing(reason.clone())),
            Self::Unusable(reason) => Some(Self::Unusable(reason.clone())),
            _ => None,
        }
    }

    fn from_sqlx(error: &sqlx::Error) -> Option<Self> {
        match error {
            sqlx::Error::Database(inner) if inner.is_unique_violation() => Some(Self::Unique(inner.message().to_owned())),
            sqlx::Error::Database(inner) if inner.is_foreign_key_violation() => Some(Self::ForeignKey(inner.message().to_owned())),
            sqlx::Error::Database(inner) => {
                let code = inner.code()?;
                // The codes of SQLite are numbers below 10,000, those of PostgreSQL have five characters.
                match code.parse::<i32>().ok().filter(|_| code.len() < 5) {
                    Some(number) => Self::of_sqlite(number & 0xff, inner.message()),
                    None => Self::of_code(&code, inner.message()),
                }
            }
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => {
                Some(Self::Unavailable(error.to_string()))
            }
            _ => None,
        }
    }

    /// Returns the error for an SQLSTATE code of PostgreSQL. `None` for codes that are not classified.
    fn of_code(code: &str, message: &str) -> Option<Self> {
        match code {
            "23505" => Some(Self::Unique(message.to_owned())),
            "23503" => Some(Self::ForeignKey(message.to_owned())),
            // Lock and statement time-outs, an object that is in use, and conflicts with another transaction: deadlocks and serialization
            // failures.
            "55P03" | "55006" | "57014" | "40P01" | "40001" => Some(Self::Busy),
            // The server accepts no connections, closes a connection, has too many, or does not have the database.
            "55000" | "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25P03" | "25P04" | "40003" | "53300" | "3D000" => {
                Some(Self::Unavailable(message.to_owned()))
            }
            // A connection broke, or the server refused it.
            code if code.starts_with("08") || code.starts_with("28") => Some(Self::Unavailable(message.to_owned())),
            // The server is read-only, has reached a limit of its disk, memory or settings, its disk fails or lacks a file, or it has an
            // internal error.
            "25006" | "53000" | "53100" | "53200" | "53400" | "54001" | "58000" | "58030" | "58P01" | "XX000" => {
                Some(Self::Failing(message.to_owned()))
            }
            // A table, schema, column or function is missing, has another type, or may not be used; stored data is damaged.
            "42P01" | "3F000" | "42703" | "42704" | "42804" | "42846" | "42883" | "42P10" | "42501" | "23502" | "XX001" | "XX002" => {
                Some(Self::Unusable(message.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the error for a primary result code of SQLite (https://www.sqlite.org/rescode.html). `None` for codes that are not
    /// classified.
    fn of_sqlite(code: i32, message: &str) -> Option<Self> {
        use libsqlite3_sys as sqlite;
        match code {
            sqlite::SQLITE_BUSY | sqlite::SQLITE_LOCKED => Some(Self::Busy),
            sqlite::SQLITE_CANTOPEN => Some(Self::Unavailable(message.to_owned())),
            sqlite::SQLITE_FULL
            | sqlite::SQLITE_IOERR
            | sqlite::SQLITE_NOMEM
            | sqlite::SQLITE_READONLY
            | sqlite::SQLITE_PERM
            | sqlite::SQLITE_PROTOCOL
            | sqlite::SQLITE_NOLFS => Some(Self::Failing(message.to_owned())),
            sqlite::SQLITE_CORRUPT | sqlite::SQLITE_NOTADB => Some(Self::Unusable(message.to_owned())),
            // SQLite's general error code. Only the message distinguishes a missing table or column from a mistake in a statement.
            sqlite::SQLITE_ERROR
                if ["no such table", "no such column", "has no column named"].iter().any(|text| message.contains(text)) =>
            {
                Some(Self::Unusable(message.to_owned()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use super::*;
    use crate::store::fixture::Fixture;

    #[tokio::test]
    async fn postgres_error_codes_are_classified_as_busy_unavailable_or_other() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        for code in ["55P03", "57014", "40P01", "40001", "55000", "57P01", "57P03", "53300", "22012"] {
            let tx = fixture.db.begin().await.unwrap();
            let raise = format!("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$");
            let error = tx.script(&raise).await.unwrap_err();
            let classified = match error {
                Error::Busy => "busy",
                Error::Unavailable(_) => "away",
                _ => "wrong",
            };
            let expected = match &code[..2] {
                "40" => "busy",
                "22" => "wrong",
                _ if matches!(code, "55P03" | "57014") => "busy",
                _ => "away",
            };
            assert_eq!(classified, expected, "{code}: {error:?}");
        }
    }
}
