//! The address of the database: the options with which connections to it are opened, and the file that a `sqlite://` URL names.

use std::{path::Path, str::FromStr, sync::Arc};

use sea_orm::{DatabaseConnection, SqlxPostgresConnector, SqlxSqliteConnector};
use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::store::{
    Error, Result,
    postgres::{address::ServerAddress, connect_to_primary::Server, pooler_detection, sqlx_proxy::Relay},
    sqlite::{
        checkpoint::WAL_HARD_LIMIT_FACTOR,
        connection::PAGE_BYTES,
        file_identity::FileIdentity,
        foreign_wal_check::{refuse_foreign_log, refuse_half_restored},
        sqlite_ffi,
    },
    wait_limit::WAIT_LIMIT,
};

/// Once SQLite's WAL has this many pages, a checkpoint copies it into the file. The limit is high (64 MB at the page size of new files): a
/// checkpoint copies a page only once, however many writes changed the page, so a longer WAL costs less per write. With larger pages the
/// length in bytes grows in proportion.
pub(in crate::store) const LOG_PAGES: u32 = 32_000;

/// The address of the database.
#[derive(Clone)]
pub(in crate::store) enum DatabaseAddress {
    Sqlite(Arc<SqliteConnectOptions>),
    Postgres {
        server: Arc<Server>,
        /// The options of SeaORM's connections.
        options: Arc<PgConnectOptions>,
        /// The relay through which SeaORM's connections go, if there is one: a local proxy (`postgres::sqlx_proxy`).
        relay: Option<Arc<Relay>>,
    },
}

impl DatabaseAddress {
    /// Opens a SeaORM connection that only the caller uses. It is closed when it is dropped, also if a failure left a transaction open on
    /// it.
    pub async fn connect(&self) -> Result<DatabaseConnection> {
        match self {
            Self::Sqlite(options) => {
                let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(WAIT_LIMIT).connect_with((**options).clone()).await;
                Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool.map_err(|error| unopened(options.get_filename(), error))?))
            }
            Self::Postgres { options, relay, .. } => {
                let options = (**options).clone();
                let options = relay.as_ref().map_or(options.clone(), |relay| relay.through(options));
                let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(WAIT_LIMIT).connect_with(options).await?;
                Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
            }
        }
    }
}

/// Opens the file of a `sqlite://` URL, and creates it if it is missing.
pub(in crate::store) async fn open_sqlite(url: &str) -> Result<(DatabaseAddress, Arc<FileIdentity>)> {
    sqlite_ffi::prepare()?;
    let (path, options) = url.split_once('?').unwrap_or((url, ""));
    let name = path.trim_start_matches("sqlite:").trim_start_matches("//");
    if name.is_empty() || name == ":memory:" || options.split('&').any(|option| option == "mode=memory") {
        let reason = "every connection would have a database of its own in memory; name a file, such as sqlite://counterpart.db";
        return Err(Error::Unavailable(format!("`{url}` names no file: {reason}")));
    }
    let base = SqliteConnectOptions::from_str(url)
        .map_err(unreadable)?
        .page_size(PAGE_BYTES)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(WAIT_LIMIT)
        .foreign_keys(true)
        .pragma("wal_autocheckpoint", (WAL_HARD_LIMIT_FACTOR * LOG_PAGES).to_string())
        .statement_cache_capacity(256)
        .disable_statement_logging();
    let file = base.get_filename().to_owned();
    // SQLite's WAL is next to the file itself, not next to a symbolic link to it.
    let resolved = |file: &Path| std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    refuse_half_restored(&resolved(&file))?;
    refuse_foreign_log(&resolved(&file))?;
    // This connection creates the file and sets its journal mode. Later connections do not create a file, so that a file that was deleted
    // while the server runs is not replaced by an empty one.
    DatabaseAddress::Sqlite(base.clone().create_if_missing(true).into()).connect().await?.close().await?;
    let address = DatabaseAddress::Sqlite(base.into());
    let file = FileIdentity::of(&resolved(&file))?.into();
    Ok((address, file))
}

fn unreadable(error: sqlx::Error) -> Error {
    Error::Unavailable(format!("the database URL cannot be read: {error}"))
}

/// Returns the error for a SQLite file that cannot be opened, with the reason. SQLite's own message does not contain the reason.
fn unopened(file: &Path, error: sqlx::Error) -> Error {
    let sqlx::Error::Database(inner) = &error else { return error.into() };
    let is = |number: &str| inner.code().is_some_and(|code| code == number);
    let (cannot_open, damaged, message) = (is("14"), is("11"), inner.message().to_owned());
    if let busy @ Error::Busy = Error::from(error) {
        return busy;
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let reason = if !cannot_open {
        message
    } else if !folder.is_dir() {
        format!("there is no folder `{}`", folder.display())
    } else if file.exists() {
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(file);
        opened.err().map_or(message, |error| error.to_string())
    } else {
        format!("it cannot be made in the folder `{}`", folder.display())
    };
    if damaged {
        let right = "`counterpart restore` puts a back-up in its place, and takes a log away that belongs to another file";
        return Error::Unusable(format!("the SQLite file `{}` is damaged: {reason}; {right}", file.display()));
    }
    let right = "name a file that can be written, in a folder that exists and can be written, such as sqlite://counterpart.db";
    Error::Unavailable(format!("the SQLite file `{}` cannot be opened: {reason}; {right}", file.display()))
}

/// Adds the settings that every session on PostgreSQL gets.
pub(in crate::store) fn with_settings(address: ServerAddress) -> ServerAddress {
    // sqlx would ask for `extra_float_digits`, which PgBouncer refuses; PostgreSQL's own default suits.
    address.with(|options| {
        options
            .statement_cache_capacity(256)
            .extra_float_digits(None)
            .options(pooler_detection::SESSION_SETTINGS)
            .options([pooler_detection::MARK])
    })
}
