//! The database handle [`Db`]: connection pools, opening and closing.
//!
//! SQLite: WAL mode, `synchronous=FULL`, one writer at a time. A write transaction begins with BEGIN IMMEDIATE: a deferred transaction that
//! reads and then writes would fail if another transaction wrote in between, however long the busy time-out is. All writes of a server go
//! through `sqlite::group_commit`; an import and a migration have their own connections. Connections for reads are `query_only`: a SeaORM
//! pool for rare reads, and `sqlite::reader_pool` for requests. SQLite's query planner stability guarantee is on, so that each connection
//! prepares a statement only once. Without the guarantee, SQLite prepares a statement with a bound `LIMIT` again for each new value. With
//! the guarantee, SQLite never chooses a partial index by a bound value. So a condition that a partial index requires contains a literal.
//!
//! PostgreSQL: a limited number of connections for reads (`postgres::pipelined_clients`), a pool of the same size for writes
//! (`postgres::pool`), and a small SeaORM pool. Since reads have their own connections, a read that is made during a write transaction
//! never waits for another write to end. Look-ups by key are batched (`postgres::batched_lookup`).

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
    change_log::own_changes::OwnChangeQueue,
    last_failure::LastFailure,
    limits::WRITE_WAIT,
    postgres::{
        address::ServerAddress,
        pipelined_clients::PipelinedConnections,
        pool::{self, ConnectionPool},
        relay::Relay,
        replica::{self, Replica, Transaction},
        server::Server,
    },
    settings::encryption_keys::SecretKeys,
    slow_statements,
    sqlite::{
        checkpoint::WAL_HARD_LIMIT_FACTOR,
        connection::PAGE_BYTES,
        file_identity::FileIdentity,
        group_commit::Writer,
        library,
        reader_pool::Readers,
        stale_files::{refuse_foreign_log, refuse_half_restored},
    },
    statement::key_lookup_batch::KeyLookupBatcher,
    tickets::broad_conditions::BroadConditions,
};

/// The size of the SeaORM pool on PostgreSQL. The pool runs rare reads: of stores, API keys, the audit log, and, at start, the server's own
/// secrets.
const SEAORM_CONNECTIONS: u32 = 2;

/// The length of SQLite's WAL, in pages, above which a checkpoint copies it into the file. The limit is high (64 MB at the usual page
/// size): a checkpoint copies a page only once, however many writes changed the page, so a longer WAL costs less per write. With larger
/// pages the length in bytes grows in proportion.
pub(in crate::store) const LOG_PAGES: u32 = 32_000;

/// The connections for read statements that are built with [`Sql`](crate::store::sql::Sql).
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

/// A handle to the open database. Its clones share the connections.
#[derive(Clone)]
pub struct Db {
    read: DatabaseConnection,
    address: DatabaseAddress,
    /// The database file, on SQLite.
    file: Option<Arc<FileIdentity>>,
    /// The connections for read statements that are built with [`Sql`](crate::store::sql::Sql).
    reads: Reads,
    /// The connections on which transactions run.
    writes: Writes,
    own: Arc<OwnChangeQueue>,
    last_read_failure: LastFailure,
    broad: BroadConditions,
    gathered: Arc<KeyLookupBatcher>,
    on_statement: Option<OnStatement>,
    secret_keys: SecretKeys,
    replica: Option<Arc<Replica>>,
    /// Whether statements that only read run on the standby.
    on_replica: bool,
    /// The limit on concurrent statements of one store. `None`: no limit.
    share: Option<StatementLimit>,
}

/// The limit on concurrent statements of one store, for requests that read many records. It applies to statements that read an unlimited
/// number of rows (not [`RowBound::Keys`](crate::store::sql::RowBound)).
#[derive(Clone)]
pub struct StatementLimit {
    /// One permit for each statement that runs.
    pub permits: Arc<Semaphore>,
    /// Whether statements whose rows are limited by keys take a permit, too. Such a statement is then treated as one that may run long.
    pub all: bool,
}

/// A callback, called once for each statement that runs, except the statements of an import and those that maintain a SQLite file.
pub type OnStatement = Arc<dyn Fn() + Send + Sync>;

/// Where the database is.
#[derive(Clone)]
enum DatabaseAddress {
    Sqlite(Arc<SqliteConnectOptions>),
    /// The options of a connection, and the relay through which connections go, if there is one.
    Postgres(Arc<PgConnectOptions>, Option<Arc<Relay>>),
}

impl DatabaseAddress {
    /// Opens a SeaORM connection that only the caller uses. It is closed when it is dropped, also if a failure left a transaction open on
    /// it.
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
    /// Opens `sqlite://path` (created if it is missing) or `postgres://…`. `connections` is the maximum size of the pool for reads, and on
    /// PostgreSQL also of the pool for writes (at least two).
    pub async fn open(url: &str, connections: u32, on_statement: Option<OnStatement>) -> Result<Self> {
        let (address, read, file, reads, writes) = if url.starts_with("sqlite:") {
            let (address, read, file) = open_sqlite(url, connections).await?;
            let (readers, writer) = (Readers::new(file.clone(), connections), Writer::new(file.clone(), LOG_PAGES));
            (address, read, Some(file), Reads::Sqlite(readers), Writes::Sqlite(writer))
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let address = with_settings(ServerAddress::from_str(url)?);
            // Each statement of a write gets a generic plan: it finds its rows by unique keys, so the bound values do not matter to the
            // plan. By default PostgreSQL would plan the update of a ticket again for each message of a long conversation, at a noticeable
            // cost. The statements of imports keep the default.
            let planned_once = address.clone().with(|options| options.options([("plan_cache_mode", "force_generic_plan")]));
            let server = Arc::new(Server::of(&address));
            // Connects once first, since an error of SeaORM's pool does not contain the reason why a server cannot be reached.
            pool::reach(&server, WRITE_WAIT).await?;
            let options = address.first();
            let needs_relay = server.has_unreadable_certificate() || address.has_several_hosts();
            let relay = needs_relay.then(|| Relay::to(server.clone(), options.get_port())).transpose()?.map(Arc::new);
            let reads = PipelinedConnections::new(server, connections, WRITE_WAIT);
            let writes = ConnectionPool::new(Server::of(&planned_once).into(), connections.max(2), WRITE_WAIT);
            // These connections keep no prepared statements, since one that was prepared before a change of the schema could fail after it.
            let read = open_postgres(through(relay.as_deref(), options.clone().statement_cache_capacity(0)), SEAORM_CONNECTIONS).await?;
            (DatabaseAddress::Postgres(options.clone().into(), relay), read, None, Reads::Postgres(reads), Writes::Postgres(writes))
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

    /// Adds a standby. The handles that [`Db::on_replica`] returns read from the standby.
    pub async fn with_replica(self, url: &str, connections: u32) -> Result<Self> {
        if self.backend() != DbBackend::Postgres {
            return Err(Error::Unavailable("`--read-url` needs a PostgreSQL database; a SQLite file has no standby".to_owned()));
        }
        let address = ServerAddress::from_str(url)?;
        if address.has_several_hosts() || address.is_read_write() {
            let reason = "`--read-url` takes the address of one standby: one host, without `target_session_attrs=read-write`";
            return Err(Error::Unavailable(reason.to_owned()));
        }
        let server = Server::of(&with_settings(address));
        let replica = Replica::of(PipelinedConnections::new(server.into(), connections, replica::LOOK)).await;
        Ok(Self { replica: Some(Arc::new(replica)), ..self })
    }

    /// Sets the keys that secrets are encrypted with.
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

    /// Returns whether the standby shows everything up to this transaction.
    pub async fn replica_shows(&self, newest: Transaction) -> bool {
        match &self.replica {
            Some(replica) => replica.shows(newest).await,
            None => false,
        }
    }

    /// Returns a handle to the same database whose reads run on the standby. A read that fails there runs on the primary.
    #[must_use]
    pub fn on_replica(&self) -> Self {
        Self { on_replica: true, ..self.clone() }
    }

    /// Returns a handle to the same database whose read statements observe this limit on the concurrent statements of a store.
    #[must_use]
    pub fn within(&self, share: StatementLimit) -> Self {
        Self { share: Some(share), ..self.clone() }
    }

    pub(in crate::store) fn share(&self) -> Option<&StatementLimit> {
        self.share.as_ref()
    }

    /// Returns a handle to the same database without the `on_statement` callback, so that its statements are not counted.
    #[must_use]
    pub(in crate::store) fn uncounted(&self) -> Self {
        Self { on_statement: None, ..self.clone() }
    }

    /// Returns a handle to the same database whose reads run on the primary.
    #[must_use]
    pub fn on_primary(&self) -> Self {
        Self { on_replica: false, ..self.clone() }
    }

    /// Returns the standby, if the reads of this handle run on it.
    pub(in crate::store) fn replica(&self) -> Option<&Replica> {
        self.replica.as_deref().filter(|_| self.on_replica)
    }

    pub(in crate::store) fn reads(&self) -> &Reads {
        &self.reads
    }

    pub(in crate::store) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Returns the record of when a read of this process last failed because of the disk or of missing permissions.
    pub(in crate::store) fn last_read_failure(&self) -> &LastFailure {
        &self.last_read_failure
    }

    /// Returns the number of pooled connections of this process to PostgreSQL. Connections outside of the pools, such as that of an export,
    /// are not counted. `None` on SQLite.
    pub fn postgres_connections(&self) -> Option<u64> {
        let (Reads::Postgres(reads), Writes::Postgres(writes)) = (&self.reads, &self.writes) else { return None };
        let replica = self.replica.as_ref().map_or(0, |replica| replica.connections());
        let pooled = self.read.get_postgres_connection_pool().size();
        Some(reads.connections() + writes.connections() + replica + u64::from(pooled))
    }

    /// Returns the queue of the entries that this process has written to the change log and that its search index has not fetched yet.
    pub(in crate::store) fn own(&self) -> &Arc<OwnChangeQueue> {
        &self.own
    }

    /// Returns the cache of filter conditions that many tickets fulfilled when they were last counted.
    pub(in crate::store) fn broad(&self) -> &BroadConditions {
        &self.broad
    }

    /// Returns the batcher of look-ups by key, in which look-ups wait until one statement runs them.
    pub(in crate::store) fn pending_lookups(&self) -> &Arc<KeyLookupBatcher> {
        &self.gathered
    }

    /// Returns the callback that counts statements. The caller has to call it for each statement that does not run through SeaORM.
    pub(in crate::store) fn on_statement(&self) -> Option<&OnStatement> {
        self.on_statement.as_ref()
    }

    /// Opens a SeaORM connection that only the caller uses. Migrations and exports use it, so that a failed transaction of theirs does not
    /// stay open on a pooled connection.
    pub(in crate::store) async fn connect(&self) -> Result<DatabaseConnection> {
        self.address.connect().await
    }

    /// Returns the path of the database file on SQLite.
    pub(in crate::store) fn sqlite_file(&self) -> Option<&Path> {
        match &self.address {
            DatabaseAddress::Sqlite(options) => Some(options.get_filename()),
            DatabaseAddress::Postgres(..) => None,
        }
    }

    /// Opens a connection to PostgreSQL outside of any pool.
    pub(in crate::store) async fn connect_alone(&self) -> Result<PgConnection> {
        match &self.address {
            DatabaseAddress::Sqlite(_) => Err(Error::Unavailable("a SQLite database has no server to connect to".to_owned())),
            DatabaseAddress::Postgres(options, relay) => Ok(through(relay.as_deref(), (**options).clone()).connect().await?),
        }
    }

    /// Returns the database file on SQLite.
    pub(in crate::store) fn file(&self) -> Option<&FileIdentity> {
        self.file.as_deref()
    }

    /// Returns the SeaORM pool for reads. On SQLite its connections refuse writes.
    pub fn read(&self) -> &DatabaseConnection {
        &self.read
    }

    pub fn backend(&self) -> DbBackend {
        self.read.get_database_backend()
    }

    /// Closes every connection. On SQLite this runs a checkpoint; it first waits for the end of a checkpoint that is in progress.
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
        // The connection that `file` keeps open is closed last: SQLite deletes the WAL when the last connection is closed.
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
    let read = sqlite_pool(connections.max(1)).connect_lazy_with(base.clone().pragma("query_only", "ON"));
    let address = DatabaseAddress::Sqlite(base.into());
    let file = FileIdentity::of(&resolved(&file))?.into();
    Ok((address, SqlxSqliteConnector::from_sqlx_sqlite_pool(read), file))
}

fn sqlite_pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        // No test of a connection before use: a local file does not disconnect, and the test would cost as much as the query.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(WRITE_WAIT)
        .after_connect(|connection, _| Box::pin(stable_plans(connection)))
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

/// Switches SQLite's query planner stability guarantee on, so that a statement with a bound `LIMIT` is prepared once.
async fn stable_plans(connection: &mut SqliteConnection) -> std::result::Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    if library::enable_stable_query_plans(handle.as_raw_handle()) {
        Ok(())
    } else {
        Err(sqlx::Error::Protocol("this SQLite cannot keep its query plans stable".into()))
    }
}

/// Adds a callback to a SeaORM connection that logs slow statements, and counts each statement if `on_statement` is given.
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

/// Adds the settings of PostgreSQL that every connection has.
fn with_settings(address: ServerAddress) -> ServerAddress {
    let settings = [
        ("lock_timeout", "10s"),
        // No JIT: compiling the statement of a page takes far longer than reading the few thousand rows that a page reads at most.
        ("jit", "off"),
        // Writes lock the rows that they read, so READ COMMITTED is enough. The default of a database may be stricter. At a stricter level,
        // a write that had to wait for a row lock would fail (serialization failure).
        ("default_transaction_isolation", "read committed"),
    ];
    address.with(|options| options.statement_cache_capacity(256).options(settings))
}

/// Returns options for a connection that goes through the relay, if there is one.
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
        // Tests a connection before use: these connections are often idle, and a read must not fail because the server was restarted since
        // the last read.
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
                for _ in 0..2 * SEAORM_CONNECTIONS {
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
