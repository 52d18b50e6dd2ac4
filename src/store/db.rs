//! The database handle [`Db`]: connection pools, opening and closing.
//!
//! SQLite: WAL mode, `synchronous=FULL`, one writer at a time. A write transaction begins with BEGIN IMMEDIATE: a deferred transaction that
//! reads and then writes would fail if another transaction wrote in between, however long the busy time-out is. All writes of a server go
//! through `sqlite::group_commit`; an import and a migration have their own connections. The pooled connections for reads
//! (`sqlite::reader_pool`) are `query_only`.
//!
//! SQLite's query planner stability guarantee is on, except on the connections of SeaORM. Without it, SQLite would prepare a statement with
//! a bound `LIMIT` again for each new value. With it, each connection prepares a statement only once. The price is that SQLite never uses a
//! partial index for a condition with a bound value, so such conditions contain literals.
//!
//! PostgreSQL: a limited number of connections for reads (`postgres::pipelined_clients`), and a pool of the same size for writes
//! (`postgres::pool`). Since reads have their own connections, a read that is made during a write transaction never waits for the
//! connection of another write. Look-ups by key are batched (`postgres::batched_lookup`).
//!
//! Migrations and exports run through SeaORM's own drivers, each on a connection that is opened for it. All other statements run on the
//! connections above, with two exceptions, for which a separate connection is opened: the lock that permits one server for a sandbox (a
//! database for tests, `store::sandbox_database`), and moving a store to another node (`distributed::store_placement`).

use std::{path::Path, str::FromStr, sync::Arc};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, SqliteTransactionMode, TransactionOptions, TransactionTrait,
};
use tokio::{sync::Semaphore, time::timeout};

use crate::store::{
    Error, Result,
    change_log::own_change_queue::OwnChangeQueue,
    database_address::{DatabaseAddress, LOG_PAGES, open_sqlite, with_settings},
    last_failure::LastFailure,
    postgres::{
        address::ServerAddress,
        connect_to_primary::Server,
        pipelined_clients::PipelinedConnections,
        pipelined_connection::{Connection, RowLength},
        pool::{self, ConnectionPool},
        replica::{self, Replica, Transaction},
        sqlx_proxy::Relay,
    },
    settings::encryption_keys::SecretKeys,
    sqlite::{file_identity::FileIdentity, group_commit::Writer, reader_pool::Readers},
    statement::key_lookup_types::KeyLookupBatcher,
    tickets::broad_condition_cache::BroadConditions,
    wait_limit::WAIT_LIMIT,
};

/// The connections for read statements that are built with [`Sql`](crate::store::parameterised_sql::Sql).
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
    address: DatabaseAddress,
    /// The database file of SQLite. `None` on PostgreSQL.
    pub(in crate::store) file: Option<Arc<FileIdentity>>,
    /// The connections for read statements that are built with [`Sql`](crate::store::parameterised_sql::Sql).
    pub(in crate::store) reads: Reads,
    /// The connections on which write transactions run.
    pub(in crate::store) writes: Writes,
    /// The entries that this process has written to the change log and that its search index has not fetched yet.
    pub(in crate::store) own_changes: Arc<OwnChangeQueue>,
    /// When a read of this process last failed because the database could not do its work ([`Error::Failing`]).
    pub(in crate::store) last_read_failure: LastFailure,
    /// The filter conditions that many tickets fulfilled at the last count.
    pub(in crate::store) broad_conditions: BroadConditions,
    /// The look-ups by key that wait until one statement runs them.
    pub(in crate::store) pending_lookups: Arc<KeyLookupBatcher>,
    /// Counts statements. The code that runs a statement has to call it.
    pub(in crate::store) on_statement: Option<OnStatement>,
    secret_keys: SecretKeys,
    /// Whether the tables are distributed over the nodes of a cluster (see `distributed`).
    is_distributed: bool,
    replica: Option<Arc<Replica>>,
    /// Whether read-only statements run on the standby.
    on_replica: bool,
    /// The limit on concurrent statements of one store. `None`: no limit.
    pub(in crate::store) statement_limit: Option<StatementLimit>,
}

/// The limit on concurrent statements of one store, for requests that read many records. Statements that look up rows by a list of keys
/// ([`RowBound::Keys`](crate::store::parameterised_sql::RowBound)) are exempt from the limit, unless `all` is set.
#[derive(Clone)]
pub struct StatementLimit {
    /// The semaphore from which a statement takes one permit while it runs. On SQLite only a long statement takes a permit: one that runs
    /// on a blocking thread.
    pub permits: Arc<Semaphore>,
    /// Whether the limit also applies to look-ups by a list of keys. If so, such a look-up is treated as a statement that may run long.
    pub all: bool,
}

/// A callback that is called for each statement that runs. It is not called for the statements of imports, exports, migrations and queue
/// metrics, nor for those with which this program checks or maintains its connections and files.
pub type OnStatement = Arc<dyn Fn() + Send + Sync>;

/// What a transaction on a separate connection is for.
#[derive(Clone, Copy)]
pub(in crate::store) enum TransactionKind {
    Read,
    /// All reads show the same state of the database.
    Snapshot,
    Write,
}

impl Db {
    /// Opens `sqlite://path` (created if it is missing) or `postgres://…`. On PostgreSQL `connections` is the maximum number of connections
    /// for reads, and also the maximum number of connections for writes (at least two each). On SQLite it is the maximum number of reads on
    /// blocking threads.
    pub async fn open(url: &str, connections: u32, on_statement: Option<OnStatement>) -> Result<Self> {
        let (address, file, reads, writes) = if url.starts_with("sqlite:") {
            let (address, file) = open_sqlite(url).await?;
            let (readers, writer) = (Readers::new(file.clone(), connections), Writer::new(file.clone(), LOG_PAGES));
            (address, Some(file), Reads::Sqlite(readers), Writes::Sqlite(writer))
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let address = with_settings(ServerAddress::from_str(url)?);
            // The statements of writes get generic plans: nearly all find their rows by keys, so the bound values do not matter to the
            // plan. By default PostgreSQL would plan the update of a ticket again for each message of a long conversation, at a noticeable
            // cost. An import sets the default again for its own transaction.
            let planned_once = address.clone().with(|options| options.options([("plan_cache_mode", "force_generic_plan")]));
            let server = Arc::new(Server::of(&address));
            pool::check_reachable(&server, WAIT_LIMIT).await?;
            let options = address.first();
            if server.is_pooled() {
                tracing::warn!(
                    server = %server.address(),
                    "a connection pooler is in front of PostgreSQL; statements are prepared again for each use"
                );
            }
            let needs_relay = server.has_unreadable_certificate() || address.has_several_hosts();
            let relay = needs_relay.then(|| Relay::to(server.clone(), options.get_port())).transpose()?.map(Arc::new);
            let writer = Server::of(&planned_once);
            writer.set_pooled(server.is_pooled());
            let reads = PipelinedConnections::new(server.clone(), connections, WAIT_LIMIT);
            let writes = ConnectionPool::new(writer.into(), connections.max(2), WAIT_LIMIT);
            let address = DatabaseAddress::Postgres { server, options: options.clone().into(), relay };
            (address, None, Reads::Postgres(reads), Writes::Postgres(writes))
        } else {
            return Err(Error::Unavailable("the database URL must begin with sqlite:// or postgres://".to_owned()));
        };
        let db = Self {
            address,
            file,
            reads,
            writes,
            own_changes: Arc::default(),
            last_read_failure: LastFailure::default(),
            broad_conditions: BroadConditions::default(),
            pending_lookups: Arc::default(),
            on_statement,
            secret_keys: SecretKeys::default(),
            is_distributed: false,
            replica: None,
            on_replica: false,
            statement_limit: None,
        };
        Ok(Self { is_distributed: db.detect_distribution().await?, ..db })
    }

    /// Adds a standby. The handles that [`Db::on_replica`] returns read from the standby.
    pub async fn with_replica(self, url: &str, connections: u32) -> Result<Self> {
        if self.backend() != DbBackend::Postgres {
            return Err(Error::Unavailable("`--read-url` needs a PostgreSQL database; a SQLite file has no standby".to_owned()));
        }
        if self.is_distributed {
            return Err(Error::Unavailable("`--read-url` needs one server; this database is distributed over several".to_owned()));
        }
        let address = ServerAddress::from_str(url)?;
        if address.has_several_hosts() || address.is_read_write() {
            let reason = "`--read-url` takes the address of one standby: one host, without `target_session_attrs=read-write`";
            return Err(Error::Unavailable(reason.to_owned()));
        }
        let server = Server::of(&with_settings(address));
        // A standby that does not answer now may be behind a connection pooler, so it is treated as if it were.
        if !matches!(timeout(replica::LOOK, pool::check_reachable(&server, replica::LOOK)).await, Ok(Ok(()))) {
            server.set_pooled(true);
        }
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

    /// Returns whether the tables are distributed over the nodes of a cluster.
    pub fn is_distributed(&self) -> bool {
        self.is_distributed
    }

    pub fn has_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// Returns whether the standby shows the changes of all transactions up to the transaction `newest`.
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
    pub fn within(&self, limit: StatementLimit) -> Self {
        Self { statement_limit: Some(limit), ..self.clone() }
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

    /// Returns the number of connections of this process to PostgreSQL. SeaORM's connections, such as that of an export, are not counted.
    /// `None` on SQLite.
    pub fn postgres_connections(&self) -> Option<u64> {
        let (Reads::Postgres(reads), Writes::Postgres(writes)) = (&self.reads, &self.writes) else { return None };
        let replica = self.replica.as_ref().map_or(0, |replica| replica.connections());
        Some(reads.connections() + writes.connections() + replica)
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
            DatabaseAddress::Postgres { .. } => None,
        }
    }

    /// Opens a SeaORM connection as [`Db::connect`] does, and begins a transaction on it.
    pub(in crate::store) async fn begin_alone(&self, kind: TransactionKind) -> Result<(DatabaseConnection, DatabaseTransaction)> {
        let connection = self.connect().await?;
        let is_sqlite = self.backend() == DbBackend::Sqlite;
        let immediate = (is_sqlite && matches!(kind, TransactionKind::Write)).then_some(SqliteTransactionMode::Immediate);
        let options = TransactionOptions { sqlite_transaction_mode: immediate, ..TransactionOptions::default() };
        let tx = connection.begin_with_options(options).await?;
        // In SQLite every transaction reads from one snapshot.
        if !is_sqlite && matches!(kind, TransactionKind::Snapshot) {
            tx.execute_unprepared("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?;
        }
        if self.is_pooled() {
            // A pooler lends the same session to one connection after the other. The session may still have prepared statements of earlier
            // connections, under the names that sqlx gives to its own.
            tx.execute_unprepared("DEALLOCATE ALL").await?;
        }
        Ok((connection, tx))
    }

    /// Opens a connection to PostgreSQL that belongs to no pool. No other connection shares its session.
    pub(in crate::store) async fn connect_alone(&self) -> Result<Connection> {
        match &self.address {
            DatabaseAddress::Sqlite(_) => Err(Error::Unavailable("a SQLite database has no server to connect to".to_owned())),
            DatabaseAddress::Postgres { server, .. } if server.is_pooled() => {
                let reason = "a connection pooler is in front of PostgreSQL; name PostgreSQL itself instead";
                Err(Error::Unavailable(reason.to_owned()))
            }
            DatabaseAddress::Postgres { server, .. } => Ok(server.connect(RowLength::Short).await??),
        }
    }

    /// Returns whether a connection pooler lends sessions of PostgreSQL to several connections.
    fn is_pooled(&self) -> bool {
        matches!(&self.address, DatabaseAddress::Postgres { server, .. } if server.is_pooled())
    }

    pub fn backend(&self) -> DbBackend {
        match self.address {
            DatabaseAddress::Sqlite(_) => DbBackend::Sqlite,
            DatabaseAddress::Postgres { .. } => DbBackend::Postgres,
        }
    }

    /// Closes the connections; a connection in use is closed when its statement or transaction ends. When the last connection to a SQLite
    /// file is closed, SQLite runs a checkpoint.
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
        // `file` keeps one connection open, so that SQLite does not delete the WAL while the server runs. This connection is closed last,
        // and SQLite then deletes the WAL.
        if let Some(file) = &self.file {
            file.close();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::EntityTrait;

    use super::*;
    use crate::store::{entity::stores, fixture::Fixture, parameterised_sql::Sql, sqlite::connection::PAGE_BYTES};

    #[tokio::test]
    async fn a_new_sqlite_database_has_the_configured_page_size() {
        let Fixture { db, .. } = &Fixture::alone().await;
        if db.backend() == DbBackend::Sqlite {
            let bytes: Option<i64> = db.first(Sql::fixed("PRAGMA page_size"), |cells| cells.take()).await.unwrap();
            assert_eq!(bytes, Some(PAGE_BYTES.into()));
        }
    }

    #[tokio::test]
    async fn entity_queries_succeed_after_a_schema_change() {
        let Fixture { db, .. } = &Fixture::alone().await;
        if db.backend() == DbBackend::Postgres {
            for kind in ["varchar(1000)", "text"] {
                // There are more reads than connections in the pool, so that each connection runs the statement.
                for _ in 0..4 {
                    db.find_all(stores::Entity::find()).await.unwrap();
                }
                let tx = db.begin().await.unwrap();
                tx.script(&format!("ALTER TABLE stores ALTER COLUMN name TYPE {kind}")).await.unwrap();
                tx.commit().await.unwrap();
            }
            db.find_all(stores::Entity::find()).await.unwrap();
        }
    }
}
