//! A connection to PostgreSQL: pipelining, and a cache of prepared statements.
//!
//! sqlx runs one statement at a time on a connection and waits for its result. Each wait is a switch to the server's process and back,
//! which costs both sides as much as a look-up by key. `tokio-postgres` sends a statement without waiting for earlier results. SeaORM has
//! connections of its own, made from the same options, for migrations and for rare reads.
//!
//! Guarantees:
//! - A statement stays prepared while it is among the [`STATEMENTS`] most recently used statements of its connection. If two tasks use a
//!   new statement at the same time, it is prepared twice.
//! - A caller that stops waiting leaves the connection usable.

use std::{
    future::poll_fn,
    net::IpAddr,
    pin::{Pin, pin},
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{
    TryStreamExt,
    future::{BoxFuture, maybe_done},
    poll,
};
use hashlink::LruCache;
use percent_encoding::percent_decode_str;
use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::{
    task::{JoinHandle, consume_budget},
    time::timeout,
};
use tokio_postgres::{
    Client, Config, NoTls, Row, Statement,
    config::{Host, SslMode},
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use crate::store::{
    Result,
    error::{is_outdated, reason},
    lock::lock,
    postgres::tls,
    slow_statements::StatementTimer,
    sql::{Param, Sql},
};

/// How many statements a connection keeps prepared.
const STATEMENTS: usize = 256;
/// How long an idle connection may take to respond, and a connection to close.
const PROMPT: Duration = Duration::from_secs(1);

/// The TCP user timeout, and about the time after which unanswered keepalives close an idle connection: if the server's machine
/// acknowledges nothing for this long, the connection is lost. Until then, a pooled connection with a statement in flight keeps its permit.
/// The times hold on Linux; other systems interpret these options differently.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// A command that does nothing.
pub(in crate::store) const NOTHING: &str = "";

pub(in crate::store) type PostgresResult<T> = std::result::Result<T, tokio_postgres::Error>;

/// The length of the rows that a connection returns.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum RowLength {
    Short,
    /// The rows contain stored texts, which may be long.
    Long,
}

/// A server, and the options for connecting to it.
pub(in crate::store) struct Server {
    config: Config,
    mode: PgSslMode,
    /// The connection options as a URL. Its query parameters name the certificates.
    url: Url,
    /// How often a prepared statement turned out not to fit the schema any more.
    outdated: Arc<AtomicU64>,
    open: Arc<AtomicU64>,
    unreadable_certificate: Arc<AtomicBool>,
}

/// Counts an open connection, until this value is dropped.
struct CountedConnection(Arc<AtomicU64>);

impl CountedConnection {
    fn one_more(open: &Arc<AtomicU64>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(open.clone())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    pub fn of(options: &PgConnectOptions) -> Self {
        // Some options can be read only from the options' URL. Host and user are replaced in it, since in some spellings they cannot be
        // part of a URL.
        let url = options.clone().host("host").username("user").to_url_lossy();
        let mut config = Config::new();
        match options.get_socket() {
            Some(folder) => config.host_path(folder),
            None => config.host(options.get_host().trim_matches(['[', ']'])),
        };
        config.port(options.get_port()).user(options.get_username());
        if let Some(password) = url.password() {
            config.password(percent_decode_str(password).collect::<Vec<u8>>());
        }
        if let Some(database) = options.get_database() {
            config.dbname(database);
        }
        if let Some(name) = options.get_application_name() {
            config.application_name(name);
        }
        if let Some(settings) = options.get_options() {
            config.options(settings);
        }
        config.tcp_user_timeout(PEER_TIMEOUT).keepalives_idle(PEER_TIMEOUT / 2).keepalives_interval(PEER_TIMEOUT / 6);
        config.ssl_mode(tls::mode(options.get_ssl_mode()));
        Self {
            config,
            mode: options.get_ssl_mode(),
            url,
            outdated: Arc::default(),
            open: Arc::default(),
            unreadable_certificate: Arc::default(),
        }
    }

    /// Returns the host and port, or the folder of the socket.
    pub fn address(&self) -> String {
        match (self.config.get_hosts().first(), self.config.get_ports().first()) {
            (Some(Host::Tcp(host)), Some(port)) => format!("{host}:{port}"),
            (Some(Host::Unix(folder)), _) => folder.display().to_string(),
            _ => "?".to_owned(),
        }
    }

    /// Returns the host and port; `None` if the server is reached by a Unix socket.
    pub fn tcp(&self) -> Option<(&str, u16)> {
        match (self.config.get_hosts().first(), self.config.get_ports().first()) {
            (Some(Host::Tcp(host)), Some(port)) => Some((host, *port)),
            _ => None,
        }
    }

    /// Returns whether the server has shown a certificate that the TLS library cannot read.
    pub fn has_unreadable_certificate(&self) -> bool {
        self.unreadable_certificate.load(Ordering::Relaxed)
    }

    /// Returns whether a connection may be unencrypted if the server has no TLS (`sslmode=prefer`).
    pub fn prefers_tls(&self) -> bool {
        matches!(self.mode, PgSslMode::Prefer)
    }

    pub fn connector(&self) -> Result<MakeRustlsConnect> {
        tls::connector(self.mode, &self.url, &self.unreadable_certificate)
    }

    /// Returns the number of open connections to the server.
    pub fn connections(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Opens a connection. The certificate files are read each time, since they may have been renewed.
    pub async fn connect(&self, rows: RowLength) -> Result<PostgresResult<Connection>> {
        if self.config.get_ssl_mode() == SslMode::Disable {
            return Ok(self.config.connect(NoTls).await.map(|(client, serving)| self.connection(client, serving, rows)));
        }
        let connected = self.config.connect(self.connector()?).await;
        Ok(connected.map(|(client, serving)| self.connection(client, serving, rows)))
    }

    fn connection(
        &self,
        client: Client,
        serving: impl Future<Output = PostgresResult<()>> + Send + 'static,
        rows: RowLength,
    ) -> Connection {
        let served = tokio::spawn(async move {
            let ended = match rows {
                RowLength::Short => serving.await,
                RowLength::Long => few_reads_at_a_time(serving).await,
            };
            if let Err(error) = ended {
                tracing::debug!(error = reason(&error), "a connection to PostgreSQL ended");
            }
        });
        let known = PreparedStatements { statements: LruCache::new(STATEMENTS), outdated: self.outdated.load(Ordering::Relaxed) };
        Connection {
            client,
            known: Mutex::new(known),
            outdated: self.outdated.clone(),
            served,
            _counted: CountedConnection::one_more(&self.open),
        }
    }
}

/// The most reads and writes of a connection in one poll. The runtime allows 128, whatever their size. With long texts that many would
/// occupy the runtime's thread for too long.
const IO_PER_POLL: usize = 4;

/// The number of operations that Tokio allows a task in one poll (its cooperative budget).
const COOP_BUDGET: usize = 128;

/// Runs `work` so that each poll has only `IO_PER_POLL` operations of Tokio's budget: the rest of the budget is consumed before the poll.
async fn few_reads_at_a_time<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|task| {
        for _ in IO_PER_POLL..COOP_BUDGET {
            _ = pin!(consume_budget()).poll(task);
        }
        work.as_mut().poll(task)
    })
    .await
}

/// Returns whether a URL names a server on this machine, judging by its host name or address.
pub fn is_local_server(url: &str) -> bool {
    let Ok(options) = PgConnectOptions::from_str(url) else { return false };
    // If the URL names no host, the folder of a Unix socket takes its place.
    let host = options.get_host().trim_matches(['[', ']']);
    options.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A connection on which several statements can be in flight, with its prepared statements.
pub(in crate::store) struct Connection {
    client: Client,
    known: Mutex<PreparedStatements>,
    outdated: Arc<AtomicU64>,
    served: JoinHandle<()>,
    _counted: CountedConnection,
}

/// Receives the rows of a statement as they arrive, so that a long result is never in memory as a whole in its wire format.
pub(in crate::store) trait RowSink: Send {
    /// Called when the statement begins, or begins again after its connection was lost.
    fn begin(&mut self);
    fn take(&mut self, row: Row);
}

impl RowSink for Vec<Row> {
    fn begin(&mut self) {
        self.clear();
    }

    fn take(&mut self, row: Row) {
        self.push(row);
    }
}

/// The result of a statement: its rows, and how many rows it changed.
#[derive(Default)]
pub(in crate::store) struct QueryResult {
    pub rows: Vec<Row>,
    pub affected: u64,
}

/// Awaits futures and returns their outcomes in order. The futures are polled for the first time in the same order, since the first poll of
/// a future sends its statement.
async fn in_order<T>(flying: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut begun: Vec<_> = flying.into_iter().map(maybe_done).collect();
    for one in &mut begun {
        _ = poll!(&mut *one);
    }
    let mut outcomes = Vec::with_capacity(begun.len());
    for mut one in begun {
        (&mut one).await;
        outcomes.extend(Pin::new(&mut one).take_output());
    }
    outcomes
}

/// The prepared statements of a connection.
struct PreparedStatements {
    /// The statements by their text.
    statements: LruCache<String, Statement>,
    /// The value of `Server::outdated` when this cache was last emptied. Once the server's count is higher, the cache is emptied again.
    outdated: u64,
}

impl Connection {
    /// Runs a statement outside of a transaction and passes its rows to `to`. If the schema has changed since the statement was prepared,
    /// it is prepared and run once more.
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> PostgresResult<()> {
        let _watch = StatementTimer::one(sql);
        match self.noted(self.send(sql, to).await) {
            Err(error) if is_outdated(&error) => self.noted(self.send(sql, to).await),
            outcome => outcome,
        }
    }

    /// Runs a statement outside of a transaction and returns its rows.
    #[cfg(test)]
    pub async fn rows(&self, sql: &Sql) -> PostgresResult<Vec<Row>> {
        let mut rows = Vec::new();
        self.each_row(sql, &mut rows).await?;
        Ok(rows)
    }

    async fn send(&self, sql: &Sql, to: &mut dyn RowSink) -> PostgresResult<()> {
        to.begin();
        let statement = self.prepared(sql).await?;
        let mut stream = pin!(self.client.query_raw(&statement, sql.params().iter().map(value)).await?);
        while let Some(row) = stream.as_mut().try_next().await? {
            to.take(row);
        }
        Ok(())
    }

    /// Sends one pipelined batch of a transaction: the command `begin`, statements, and the command `end`. Returns the results of the
    /// statements in order. PostgreSQL runs them one after the other. The first failure is returned: PostgreSQL runs nothing after it,
    /// and treats a COMMIT as a ROLLBACK.
    pub async fn run_pipelined(
        &self,
        begin: Option<&'static str>,
        statements: &[Sql],
        end: Option<&'static str>,
    ) -> PostgresResult<Vec<QueryResult>> {
        let _watch = StatementTimer::several(statements);
        self.noted(self.send_pipelined(begin, statements, end).await)
    }

    async fn send_pipelined(
        &self,
        begin: Option<&'static str>,
        statements: &[Sql],
        end: Option<&'static str>,
    ) -> PostgresResult<Vec<QueryResult>> {
        // All statements are prepared first: otherwise the command `end` could be sent before a statement that is still being prepared.
        let mut prepared = Vec::with_capacity(statements.len());
        for sql in statements {
            prepared.push((self.prepared(sql).await?, sql.params()));
        }
        let command = |text| -> BoxFuture<'_, PostgresResult<Option<QueryResult>>> {
            Box::pin(async move { self.command(text).await.map(|()| None) })
        };
        let mut flying: Vec<BoxFuture<'_, PostgresResult<Option<QueryResult>>>> = begin.into_iter().map(command).collect();
        for (statement, params) in &prepared {
            flying.push(Box::pin(async move { self.answer(statement, params).await.map(Some) }));
        }
        flying.extend(end.into_iter().map(command));
        let mut answers = Vec::with_capacity(statements.len());
        for outcome in in_order(flying).await {
            answers.extend(outcome?);
        }
        Ok(answers)
    }

    async fn answer(&self, statement: &Statement, params: &[Param]) -> PostgresResult<QueryResult> {
        let mut stream = pin!(self.client.query_raw(statement, params.iter().map(value)).await?);
        let mut rows = Vec::new();
        while let Some(row) = stream.as_mut().try_next().await? {
            rows.push(row);
        }
        Ok(QueryResult { rows, affected: stream.rows_affected().unwrap_or(0) })
    }

    /// Detects the error of a prepared statement that does not fit the schema any more. Every connection to the server then prepares its
    /// statements anew. Returns the outcome unchanged.
    fn noted<T>(&self, outcome: PostgresResult<T>) -> PostgresResult<T> {
        if outcome.as_ref().is_err_and(is_outdated) {
            let seen = lock(&self.known).outdated;
            // If another connection has counted the same schema change already, the count stays.
            _ = self.outdated.compare_exchange(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        outcome
    }

    /// Runs a command without values or rows.
    pub async fn command(&self, text: &'static str) -> PostgresResult<()> {
        self.client.batch_execute(text).await
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub async fn script(&self, statements: &str) -> PostgresResult<()> {
        self.client.batch_execute(statements).await
    }

    async fn prepared(&self, sql: &Sql) -> PostgresResult<Statement> {
        let known = {
            let mut known = lock(&self.known);
            let outdated = self.outdated.load(Ordering::Relaxed);
            if known.outdated != outdated {
                known.statements.clear();
                known.outdated = outdated;
            }
            known.statements.get(sql.as_str()).cloned()
        };
        if let Some(statement) = known {
            return Ok(statement);
        }
        let types: Vec<Type> = sql.params().iter().map(type_of).collect();
        let statement = self.client.prepare_typed(sql.as_str(), &types).await?;
        lock(&self.known).statements.insert(sql.as_str().to_owned(), statement.clone());
        Ok(statement)
    }

    /// Returns whether an idle connection responds in time.
    pub async fn answers(&self) -> bool {
        matches!(timeout(PROMPT, self.command(NOTHING)).await, Ok(Ok(())))
    }

    /// Returns whether the connection is known to be lost.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Closes the connection once the statements in flight have completed. Waits for that no longer than `PROMPT`.
    pub async fn close(self) {
        drop((self.client, self.known));
        if timeout(PROMPT, self.served).await.is_err() {
            tracing::debug!("a connection could not be closed in order");
        }
    }
}

fn type_of(param: &Param) -> Type {
    match param {
        Param::Text(_) | Param::Null => Type::TEXT,
        Param::Integer(_) | Param::NoInteger => Type::INT8,
        Param::Number(_) | Param::NoNumber => Type::FLOAT8,
        Param::Bytes(_) => Type::BYTEA,
        Param::Flag(_) | Param::NoFlag => Type::BOOL,
    }
}

fn value(param: &Param) -> &(dyn ToSql + Sync) {
    match param {
        Param::Text(text) => text,
        Param::Integer(number) => number,
        Param::Number(number) => number,
        Param::Bytes(bytes) => bytes,
        Param::Null => &None::<&str>,
        Param::NoInteger => &None::<i64>,
        Param::NoNumber => &None::<f64>,
        Param::Flag(flag) => flag,
        Param::NoFlag => &None::<bool>,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sea_orm::DbBackend;
    use sqlx::{Connection as _, postgres::PgConnection};

    use super::*;
    use crate::store::{
        Error,
        fixture::{Fixture, setting},
    };

    fn server(url: &str) -> Server {
        Server::of(&PgConnectOptions::from_str(url).unwrap())
    }

    #[test]
    fn the_url_sets_host_user_options_and_tls_mode() {
        let Server { config, .. } = server(
            "postgres://us%40er:p%40%25%2F%C3%BC+w@[::1]:6543/da%20ta?application_name=inbox&options=-c%20search_path%3Dx&sslmode=require",
        );
        assert_eq!(config.get_hosts(), [Host::Tcp("::1".to_owned())]);
        assert_eq!(config.get_ports(), [6543]);
        assert_eq!(config.get_user(), Some("us@er"));
        assert_eq!(config.get_password(), Some("p@%/ü+w".as_bytes()));
        assert_eq!(config.get_dbname(), Some("da ta"));
        assert_eq!(config.get_application_name(), Some("inbox"));
        assert_eq!(config.get_options(), Some("-c search_path=x"));
        assert_eq!(config.get_tcp_user_timeout(), Some(&PEER_TIMEOUT));
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
        // A user, a host and a folder that cannot be part of a URL.
        let odd = PgConnectOptions::new_without_pgpass().username("a/b@c:d?#").host("a:b").socket("/a folder/é");
        let Server { config, .. } = Server::of(&odd.ssl_mode(PgSslMode::Allow));
        assert_eq!(config.get_hosts(), [Host::Unix(Path::new("/a folder/é").to_owned())]);
        assert_eq!(config.get_user(), Some("a/b@c:d?#"));
        assert_eq!(config.get_ssl_mode(), SslMode::Disable);
    }

    #[tokio::test]
    async fn an_unreadable_certificate_file_is_an_error_if_the_mode_verifies() {
        for (query, told) in [
            ("sslmode=verify-full&sslrootcert=/nowhere/root.pem", "`/nowhere/root.pem`, which `sslrootcert` names, cannot be read"),
            ("sslmode=verify-ca&sslrootcert=Cargo.toml", "what `sslrootcert` names has no certificate in PEM"),
            ("sslcert=Cargo.toml", "names one of `sslcert` and `sslkey`"),
            ("sslkey=Cargo.toml", "names one of `sslcert` and `sslkey`"),
        ] {
            let error = server(&format!("postgres://user@127.0.0.1:1/name?{query}")).connect(RowLength::Short).await.err();
            assert!(matches!(&error, Some(Error::Unavailable(reason)) if reason.contains(told)), "{query}: {error:?}");
        }
        // These modes verify no certificate: the files are not read, so a missing one is no error. Only the connection fails.
        for query in ["sslmode=require&sslrootcert=/nowhere/root.pem", "sslmode=disable&sslcert=/nowhere/client.pem"] {
            assert!(
                matches!(server(&format!("postgres://user@127.0.0.1:1/name?{query}")).connect(RowLength::Short).await, Ok(Err(_))),
                "{query}"
            );
        }
    }

    #[tokio::test]
    async fn values_round_trip_and_few_statements_stay_prepared() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let connection = server(&fixture.url).connect(RowLength::Short).await.unwrap().unwrap();
        let params = [
            Param::Text("ü'\\".to_owned()),
            Param::Integer(i64::MIN),
            Param::Number(-0.1),
            Param::Bytes(vec![0, 255]),
            Param::Null,
            Param::NoInteger,
            Param::NoNumber,
        ];
        let sql = params.into_iter().fold(Sql::fixed("SELECT $1, $2, $3, $4, $5, $6, $7"), Sql::with);
        for _ in 0..2 {
            let rows = connection.rows(&sql).await.unwrap();
            let row = &rows[0];
            assert_eq!((row.get::<_, String>(0), row.get::<_, i64>(1), row.get::<_, f64>(2)), ("ü'\\".to_owned(), i64::MIN, -0.1));
            assert_eq!(row.get::<_, Vec<u8>>(3), [0, 255]);
            assert_eq!((row.get(4), row.get(5), row.get(6)), (None::<String>, None::<i64>, None::<f64>));
        }
        for i in 0..STATEMENTS + 10 {
            connection.rows(&Sql::fixed(&format!("SELECT {i}"))).await.unwrap();
        }
        let kept = connection.rows(&Sql::fixed("SELECT COUNT(*) FROM pg_prepared_statements")).await.unwrap()[0].get::<_, i64>(0);
        assert_eq!(usize::try_from(kept).unwrap(), STATEMENTS);
        connection.close().await;
    }

    /// `tests/tls.sh` starts the server, which accepts only TLS, with a certificate for `localhost`.
    #[tokio::test]
    #[ignore = "run by tests/tls.sh"]
    async fn a_connection_is_made_only_if_the_tls_mode_accepts_the_server() {
        let [port, folder] = ["COUNTERPART_TEST_TLS_PORT", "COUNTERPART_TEST_TLS_CERTIFICATES"].map(|name| setting(name).expect(name));
        let pem = |name: &str| format!("{folder}/{name}.pem");
        let (ours, others) = (format!("sslrootcert={}", pem("ours")), format!("sslrootcert={}", pem("others")));
        let own = format!("sslcert={}&sslkey={folder}/client.key", pem("client"));
        for (who, options, reached) in [
            ("postgres@localhost", String::new(), true),
            ("postgres@localhost", "sslmode=disable".to_owned(), false),
            ("postgres@localhost", "sslmode=require".to_owned(), true),
            ("postgres@localhost", format!("sslmode=require&{others}"), true),
            ("postgres@localhost", format!("sslmode=verify-ca&{ours}"), true),
            ("postgres@localhost", format!("sslmode=verify-ca&{others}"), false),
            ("postgres@localhost", "sslmode=verify-ca".to_owned(), false),
            ("postgres@127.0.0.1", format!("sslmode=verify-ca&{ours}"), true),
            ("postgres@localhost", format!("sslmode=verify-full&{ours}"), true),
            ("postgres@localhost", format!("sslmode=verify-full&{others}"), false),
            ("postgres@127.0.0.1", format!("sslmode=verify-full&{ours}"), false),
            ("shop@localhost", format!("sslmode=verify-full&{ours}"), false),
            ("shop@localhost", format!("sslmode=verify-full&{ours}&{own}"), true),
            ("shop@localhost", format!("sslmode=require&{own}"), true),
        ] {
            let (name, host) = who.split_once('@').unwrap();
            let url = format!("postgres://{name}@{host}:{port}/postgres?{options}");
            let told = server(&url).connect(RowLength::Short).await.unwrap().map(|_| ());
            assert_eq!(told.is_ok(), reached, "{url}: {told:?}");
            // sqlx accepts and refuses the same servers.
            let told = PgConnection::connect(&url).await.map(|_| ());
            assert_eq!(told.is_ok(), reached, "{url}: {told:?}");
        }
    }

    /// Uses the server of `tests/tls.sh` with a certificate of X.509 version 1.
    #[tokio::test]
    #[ignore = "run by tests/tls.sh"]
    async fn a_certificate_of_version_1_encrypts_but_fails_verification() {
        let [port, folder] = ["COUNTERPART_TEST_TLS_PORT", "COUNTERPART_TEST_TLS_CERTIFICATES"].map(|name| setting(name).expect(name));
        for (options, reached) in [
            ("", true),
            ("sslmode=prefer", true),
            ("sslmode=require", true),
            ("sslmode=verify-ca&sslrootcert=", false),
            ("sslmode=verify-full&sslrootcert=", false),
        ] {
            let root = if reached { String::new() } else { format!("{folder}/ours.pem") };
            let url = format!("postgres://postgres@localhost:{port}/postgres?{options}{root}");
            let outcome = crate::store::Db::open(&url, 2, None).await;
            let Ok(db) = outcome else {
                let reason = outcome.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(!reached && reason.contains("X.509 version 1"), "{url}: {reason}");
                continue;
            };
            assert!(reached, "{url}");
            // The migrations run through SeaORM.
            db.migrate_up().await.unwrap();
            db.close().await.unwrap();
        }
        let connection =
            server(&format!("postgres://postgres@localhost:{port}/postgres")).connect(RowLength::Short).await.unwrap().unwrap();
        let told = connection.rows(&Sql::fixed("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).await.unwrap();
        assert!(told[0].get::<_, bool>(0));
    }
}
