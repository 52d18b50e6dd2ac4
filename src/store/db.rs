//! The database: opening and closing it.
//!
//! SQLite: write-ahead log, `synchronous=FULL`, one writer at a time. The writer's transaction begins IMMEDIATE: a deferred
//! read-modify-write loses to a competitor whatever the busy time-out. All writes of a server go through `sqlite::group_commit`; an
//! import and a migration have connections of their own. Readers are `query_only`: a pool of SeaORM's for cold reads, and
//! `sqlite::reader_pool` for requests. A statement is prepared once for each connection: the query planner stability guarantee is on,
//! since without it every bound `LIMIT` costs a new preparation. Its price: a bound value never selects a partial index, so where one
//! should serve, the condition is a literal.
//!
//! PostgreSQL: bounded connections for reads (`postgres::pipelined_clients`) and as many for writes (`postgres::pool`), so that a write
//! that looks something up never waits for another write to end, and a small pool of SeaORM's. Look-ups by key are batched
//! (`postgres::batched_lookup`).

use std::{path::Path, str::FromStr, sync::Arc};

use sea_orm::{DatabaseConnection, DbBackend, SqlxPostgresConnector, SqlxSqliteConnector};
use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgConnection, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::Semaphore;

use crate::store::{
    Error, Result,
    change_log::own_changes::Own,
    last_failure::LastFailure,
    limits::WRITE_WAIT,
    postgres::{
        connection::Server,
        pipelined_clients::PipelinedConnections,
        pool::{self, ConnectionPool},
        relay::Relay,
        replica::{self, Replica, Transaction},
    },
    settings::encryption_keys::SecretKeys,
    slow_statements,
    sqlite::{
        checkpoint::LAST,
        connection::PAGE_BYTES,
        file_identity::FileIdentity,
        group_commit::Writer,
        library,
        reader_pool::Readers,
        stale_files::{refuse_foreign_log, refuse_half_restored},
    },
    statement::key_lookup_batch::Gathered,
    tickets::broad_conditions::BroadConditions,
};

/// Connections to PostgreSQL, through SeaORM, for records that are rarely read: stores, keys, the audit log, secrets of the server at its
/// start.
const FOR_ENTITIES: u32 = 2;

/// The length of SQLite's write-ahead log, in pages, above which a checkpoint copies it into the file. It is large (64 MB at the usual page
/// size), since a checkpoint copies a page that many writes changed only once: with a quarter of this length a send costs 4 to 6 %
/// more. With larger pages the length in bytes grows in proportion.
pub(in crate::store) const LOG_PAGES: u32 = 32_000;

/// Connections for the statements of `sql` that only read.
#[derive(Clone)]
pub(in crate::store) enum Reads {
    Sqlite(Arc<Readers>),
    Postgres(PipelinedConnections),
}

/// The writer of SQLite, or the connections for writes on PostgreSQL.
#[derive(Clone)]
pub(in crate::store) enum Writes {
    Sqlite(Writer),
    Postgres(ConnectionPool),
}

/// The open database.
#[derive(Clone)]
pub struct Db {
    read: DatabaseConnection,
    address: DatabaseAddress,
    /// On SQLite.
    file: Option<Arc<FileIdentity>>,
    /// The connections on which statements of `sql` run.
    reads: Reads,
    /// The connections on which transactions run.
    writes: Writes,
    own: Arc<Own>,
    last_read_failure: LastFailure,
    broad: BroadConditions,
    gathered: Arc<Gathered>,
    on_statement: Option<OnStatement>,
    secret_keys: SecretKeys,
    replica: Option<Arc<Replica>>,
    /// Whether statements that only read run on the replica.
    on_replica: bool,
    /// `None`: no statement waits for other statements of its store.
    share: Option<Share>,
}

/// A store's share of the statements that their keys do not bound, for requests that read many records.
#[derive(Clone)]
pub struct Share {
    /// One permit for each statement that runs.
    pub permits: Arc<Semaphore>,
    /// Whether statements that keys bound take a permit, too: then they may run long, and are the last statements of their request.
    pub all: bool,
}

/// Called once for each statement that was run, except the statements of an import and those that look after a SQLite file.
pub type OnStatement = Arc<dyn Fn() + Send + Sync>;

/// Where the database is.
#[derive(Clone)]
enum DatabaseAddress {
    Sqlite(Arc<SqliteConnectOptions>),
    /// With the relay through which the connections go, if there is one.
    Postgres(Arc<PgConnectOptions>, Option<Arc<Relay>>),
}

impl DatabaseAddress {
    /// A connection through SeaORM that belongs to the caller alone. It is closed with its owner, in whatever state a failure leaves it.
    async fn connect(&self) -> Result<DatabaseConnection> {
        match self {
            Self::Sqlite(options) => {
                let pool = sqlite_pool(1).connect_with((**options).clone()).await;
                Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool.map_err(|error| unopened(options.get_filename(), error))?))
            }
            Self::Postgres(options, relay) => open_postgres(through(relay.as_deref(), (**options).clone()), 1).await,
        }
    }
}

impl Db {
    /// Opens `sqlite://path` (made if it is missing) or `postgres://…`. `connections` bounds each pool: of readers, and on
    /// PostgreSQL of writers.
    pub async fn open(url: &str, connections: u32, on_statement: Option<OnStatement>) -> Result<Self> {
        let (address, read, file, reads, writes) = if url.starts_with("sqlite:") {
            let (address, read, file) = open_sqlite(url, connections).await?;
            let (readers, writer) = (Readers::new(file.clone(), connections), Writer::new(file.clone(), LOG_PAGES));
            (address, read, Some(file), Reads::Sqlite(readers), Writes::Sqlite(writer))
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let options = postgres_options(url)?;
            // The statements of requests that write find their rows by unique keys, whatever the values: they are planned once, unlike
            // those of imports. Left to itself, PostgreSQL plans the change of a ticket anew for each message of a long conversation,
            // which is a fifth of the cost of such a message.
            let planned_once = options.clone().options([("plan_cache_mode", "force_generic_plan")]);
            let server = Arc::new(Server::of(&options));
            // The pool of SeaORM does not tell why a server cannot be reached.
            pool::reach(&server, WRITE_WAIT).await?;
            let relay =
                server.has_unreadable_certificate().then(|| Relay::to(server.clone(), options.get_port())).transpose()?.map(Arc::new);
            let reads = PipelinedConnections::new(server, connections, WRITE_WAIT);
            let writes = ConnectionPool::new(Server::of(&planned_once).into(), connections.max(2), WRITE_WAIT);
            // Nothing stays prepared on these connections: rare reads have to outlast a change of the schema.
            let read = open_postgres(through(relay.as_deref(), options.clone().statement_cache_capacity(0)), FOR_ENTITIES).await?;
            (DatabaseAddress::Postgres(options.into(), relay), read, None, Reads::Postgres(reads), Writes::Postgres(writes))
        } else {
            return Err(Error::Unavailable("the database URL must begin with sqlite:// or postgres://".to_owned()));
        };
        Ok(Self {
            read: watched(read, on_statement.as_ref()),
            address,
            file,
            reads,
            writes,
            own: Arc::default(),
            last_read_failure: LastFailure::default(),
            broad: BroadConditions::default(),
            gathered: Arc::default(),
            on_statement,
            secret_keys: SecretKeys::default(),
            replica: None,
            on_replica: false,
            share: None,
        })
    }

    /// The same database, with a standby to read from.
    pub async fn with_replica(self, url: &str, connections: u32) -> Result<Self> {
        if self.backend() != DbBackend::Postgres {
            return Err(Error::Unavailable("`--read-url` needs a PostgreSQL database; a SQLite file has no standby".to_owned()));
        }
        let server = Server::of(&postgres_options(url)?);
        let replica = Replica::of(PipelinedConnections::new(server.into(), connections, replica::LOOK)).await;
        Ok(Self { replica: Some(Arc::new(replica)), ..self })
    }

    /// The same database, with the keys that secrets are encrypted with.
    #[must_use]
    pub fn with_secret_keys(self, secret_keys: SecretKeys) -> Self {
        Self { secret_keys, ..self }
    }

    pub fn secret_keys(&self) -> &SecretKeys {
        &self.secret_keys
    }

    pub fn has_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// Whether the standby shows everything up to this transaction.
    pub async fn replica_shows(&self, newest: Transaction) -> bool {
        match &self.replica {
            Some(replica) => replica.shows(newest).await,
            None => false,
        }
    }

    /// The same database, read from the standby; where that fails, from the primary.
    #[must_use]
    pub fn on_replica(&self) -> Self {
        Self { on_replica: true, ..self.clone() }
    }

    /// The same database, with its statements within a store's share.
    #[must_use]
    pub fn within(&self, share: Share) -> Self {
        Self { share: Some(share), ..self.clone() }
    }

    pub(in crate::store) fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// The same database, with its statements not counted.
    #[must_use]
    pub(in crate::store) fn uncounted(&self) -> Self {
        Self { on_statement: None, ..self.clone() }
    }

    /// The same database, read from the primary.
    #[must_use]
    pub fn on_primary(&self) -> Self {
        Self { on_replica: false, ..self.clone() }
    }

    /// The standby, if this database is read from it.
    pub(in crate::store) fn replica(&self) -> Option<&Replica> {
        self.replica.as_deref().filter(|_| self.on_replica)
    }

    pub(in crate::store) fn reads(&self) -> &Reads {
        &self.reads
    }

    pub(in crate::store) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// When a read of this process last failed because of the disk or of missing permissions.
    pub(in crate::store) fn last_read_failure(&self) -> &LastFailure {
        &self.last_read_failure
    }

    /// The number of connections of this process to PostgreSQL, except those that a command has for itself. `None` on SQLite.
    pub fn postgres_connections(&self) -> Option<u64> {
        let (Reads::Postgres(reads), Writes::Postgres(writes)) = (&self.reads, &self.writes) else { return None };
        let replica = self.replica.as_ref().map_or(0, |replica| replica.connections());
        let pooled = self.read.get_postgres_connection_pool().size();
        Some(reads.connections() + writes.connections() + replica + u64::from(pooled))
    }

    /// The changes that this process commits to the change log.
    pub(in crate::store) fn own(&self) -> &Arc<Own> {
        &self.own
    }

    /// Conditions of filters that many tickets fulfilled.
    pub(in crate::store) fn broad(&self) -> &BroadConditions {
        &self.broad
    }

    /// Look-ups by key that share a batch.
    pub(in crate::store) fn gathered(&self) -> &Arc<Gathered> {
        &self.gathered
    }

    /// To be called for each statement that SeaORM does not see.
    pub(in crate::store) fn on_statement(&self) -> Option<&OnStatement> {
        self.on_statement.as_ref()
    }

    /// A connection through SeaORM of the caller's own, for work that must leave nothing behind on a pooled connection: migrations and
    /// exports.
    pub(in crate::store) async fn connect(&self) -> Result<DatabaseConnection> {
        self.address.connect().await
    }

    /// The path of a SQLite database.
    pub(in crate::store) fn sqlite_file(&self) -> Option<&Path> {
        match &self.address {
            DatabaseAddress::Sqlite(options) => Some(options.get_filename()),
            DatabaseAddress::Postgres(..) => None,
        }
    }

    /// A connection to PostgreSQL outside of any pool.
    pub(in crate::store) async fn connect_alone(&self) -> Result<PgConnection> {
        match &self.address {
            DatabaseAddress::Sqlite(_) => Err(Error::Unavailable("a SQLite database has no server to connect to".to_owned())),
            DatabaseAddress::Postgres(options, relay) => Ok(through(relay.as_deref(), (**options).clone()).connect().await?),
        }
    }

    /// The file of a SQLite database.
    pub(in crate::store) fn file(&self) -> Option<&FileIdentity> {
        self.file.as_deref()
    }

    /// The connections of SeaORM for reads. On SQLite the database refuses a write through them.
    pub fn read(&self) -> &DatabaseConnection {
        &self.read
    }

    pub fn backend(&self) -> DbBackend {
        self.read.get_database_backend()
    }

    /// Closes every connection. On SQLite the write-ahead log is copied into the file; if a copy is under way, once that has ended.
    pub async fn close(self) -> Result<()> {
        match &self.reads {
            Reads::Sqlite(readers) => readers.close().await,
            Reads::Postgres(lines) => lines.close().await,
        }
        match &self.writes {
            Writes::Sqlite(writer) => writer.close().await,
            Writes::Postgres(kept) => kept.close().await,
        }
        if let Some(replica) = &self.replica {
            replica.close().await;
        }
        self.read.close().await?;
        // Last: with this connection SQLite removes the log.
        if let Some(file) = &self.file {
            file.close();
        }
        Ok(())
    }
}

async fn open_sqlite(url: &str, connections: u32) -> Result<(DatabaseAddress, DatabaseConnection, Arc<FileIdentity>)> {
    library::prepare()?;
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
        .busy_timeout(WRITE_WAIT)
        .foreign_keys(true)
        .pragma("wal_autocheckpoint", (LAST * LOG_PAGES).to_string())
        .statement_cache_capacity(256)
        .disable_statement_logging();
    let file = base.get_filename().to_owned();
    // The log lies beside the file, not beside a link to it.
    let resolved = |file: &Path| std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    refuse_half_restored(&resolved(&file))?;
    refuse_foreign_log(&resolved(&file))?;
    // This connection makes the file and sets its journal mode. No later connection does: a file that was removed meanwhile is not to be
    // made anew.
    DatabaseAddress::Sqlite(base.clone().create_if_missing(true).into()).connect().await?.close().await?;
    let read = sqlite_pool(connections.max(1)).connect_lazy_with(base.clone().pragma("query_only", "ON"));
    let address = DatabaseAddress::Sqlite(base.into());
    let file = FileIdentity::of(&resolved(&file))?.into();
    Ok((address, SqlxSqliteConnector::from_sqlx_sqlite_pool(read), file))
}

fn sqlite_pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        // A local file does not go away; asking before each use would cost as much as the query.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(WRITE_WAIT)
        .after_connect(|connection, _| Box::pin(stable_plans(connection)))
}

fn unreadable(error: sqlx::Error) -> Error {
    Error::Unavailable(format!("the database URL cannot be read: {error}"))
}

/// Why a SQLite file cannot be opened: SQLite itself only says that it cannot.
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

/// Switches the query planner stability guarantee on, so that a statement with a bound `LIMIT` is prepared once.
async fn stable_plans(connection: &mut SqliteConnection) -> std::result::Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    if library::keep_plans(handle.as_raw_handle()) {
        Ok(())
    } else {
        Err(sqlx::Error::Protocol("this SQLite cannot keep its query plans stable".into()))
    }
}

/// A connection through SeaORM whose statements are timed, and counted if `on_statement` is given.
fn watched(mut connection: DatabaseConnection, on_statement: Option<&OnStatement>) -> DatabaseConnection {
    let on_statement = on_statement.cloned();
    connection.set_metric_callback(move |info| {
        slow_statements::note(info.elapsed, || info.statement.sql.clone());
        if let Some(on_statement) = &on_statement {
            on_statement();
        }
    });
    connection
}

fn postgres_options(url: &str) -> Result<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url).map_err(unreadable)?;
    let settings = [
        ("lock_timeout", "10s"),
        // A page looks at a few thousand rows at most; compiling its statement takes a hundred times as long.
        ("jit", "off"),
        // Writes lock the rows that they read. A database may have another default, under which a write that waited for a lock fails.
        ("default_transaction_isolation", "read committed"),
    ];
    Ok(options.statement_cache_capacity(256).options(settings).disable_statement_logging())
}

/// The options of a connection through the relay, if there is one.
fn through(relay: Option<&Relay>, options: PgConnectOptions) -> PgConnectOptions {
    match relay {
        Some(relay) => relay.through(options),
        None => options,
    }
}

async fn open_postgres(options: PgConnectOptions, connections: u32) -> Result<DatabaseConnection> {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(WRITE_WAIT)
        // Reads are rare on these connections, and must not fail because the server was restarted meanwhile.
        .test_before_acquire(true)
        .connect_with(options)
        .await?;
    Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
}

#[cfg(test)]
mod tests {
    use sea_orm::EntityTrait;

    use super::*;
    use crate::store::{entity::stores, fixture::Fixture, sql::Sql};

    #[tokio::test]
    async fn a_file_that_is_made_has_small_pages() {
        let Fixture { db, .. } = &Fixture::alone().await;
        if db.backend() == DbBackend::Sqlite {
            let bytes: Option<i64> = db.first(Sql::fixed("PRAGMA page_size"), |cells| cells.take()).await.unwrap();
            assert_eq!(bytes, Some(PAGE_BYTES.into()));
        }
    }

    #[tokio::test]
    async fn what_is_read_rarely_outlasts_a_change_of_the_schema() {
        let Fixture { db, .. } = &Fixture::alone().await;
        if db.backend() == DbBackend::Postgres {
            for kind in ["varchar(1000)", "text"] {
                // Enough reads for each connection of the pool.
                for _ in 0..2 * FOR_ENTITIES {
                    stores::Entity::find().all(db.read()).await.unwrap();
                }
                let tx = db.begin().await.unwrap();
                tx.script(&format!("ALTER TABLE stores ALTER COLUMN name TYPE {kind}")).await.unwrap();
                tx.commit().await.unwrap();
            }
            stores::Entity::find().all(db.read()).await.unwrap();
        }
    }
}
