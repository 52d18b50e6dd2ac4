//! Connects to a PostgreSQL server: its hosts, the options for connecting to it, and how a connection is opened.
//!
//! If the address names several hosts, a connection goes to the primary, the host that accepts writes. After a failover the next connection
//! finds the new primary: the host of the newest connection is tried first, then the others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use percent_encoding::percent_decode_str;
use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::time::{sleep, timeout};
use tokio_postgres::{
    Config, NoTls,
    config::{Host, SslMode, TargetSessionAttrs},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use crate::store::{
    Error, Result,
    error::{is_not_accepting_yet, may_be_a_failover},
    postgres::{
        address::ServerAddress,
        pipelined_connection::{Connection, PostgresResult, RowLength},
        tls,
    },
};

/// The TCP user timeout: if the server's machine acknowledges nothing for this long, the connection is lost. An idle connection is lost
/// after about the same time, by keepalives. Linux keeps these times; other systems interpret the two socket options differently.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// The TCP user timeout if the server has several hosts. It is shorter, since another host may already accept writes.
const FAILOVER_PEER_TIMEOUT: Duration = Duration::from_secs(6);
/// How long one of several hosts may take to accept a connection, and to answer on it, before the next host is tried.
const HOST_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause between two tries to connect to a server that accepts no connection.
const CONNECT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A server, and the options for connecting to it.
pub(in crate::store) struct Server {
    /// A configuration for each host. There is at least one.
    hosts: Vec<Config>,
    /// The index of the host of the newest connection.
    newest: AtomicUsize,
    mode: PgSslMode,
    /// The connection options as a URL. Its query parameters name the certificates.
    url: Url,
    /// Incremented when a prepared statement no longer fits the schema. A connection that has seen a lower value then prepares its
    /// statements anew.
    outdated: Arc<AtomicU64>,
    /// Each open connection has a clone of this handle.
    open: Arc<()>,
    unreadable_certificate: Arc<AtomicBool>,
    /// Whether a connection pooler is in front of the server (see `pooler_detection`).
    is_pooled: AtomicBool,
}

impl Server {
    pub fn of(address: &ServerAddress) -> Self {
        let first = address.first();
        Self {
            hosts: address.hosts().map(|options| config(options, address)).collect(),
            newest: AtomicUsize::new(0),
            mode: first.get_ssl_mode(),
            url: as_url(first),
            outdated: Arc::default(),
            open: Arc::default(),
            unreadable_certificate: Arc::default(),
            is_pooled: AtomicBool::new(false),
        }
    }

    /// Returns the host and port of each host, or the folder of the socket.
    pub fn address(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(host_and_port).collect();
        hosts.join(",")
    }

    /// Returns the host and port that accept writes; `None` if the server is reached by a Unix socket.
    pub async fn primary(&self) -> Result<Option<(&str, u16)>> {
        // Only a connection shows which of several hosts is the primary.
        if self.has_several_hosts() {
            self.connect_with_retry(RowLength::Short).await?.close().await;
        }
        let newest = &self.hosts[self.newest.load(Ordering::Relaxed)];
        Ok(match (newest.get_hosts().first(), newest.get_ports().first()) {
            (Some(Host::Tcp(host)), Some(port)) => Some((host, *port)),
            _ => None,
        })
    }

    fn has_several_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Returns whether the server has shown a certificate that the TLS library cannot read.
    pub fn has_unreadable_certificate(&self) -> bool {
        self.unreadable_certificate.load(Ordering::Relaxed)
    }

    pub fn is_pooled(&self) -> bool {
        self.is_pooled.load(Ordering::Relaxed)
    }

    /// Sets whether later connections go through a pooler.
    pub fn set_pooled(&self, is_pooled: bool) {
        self.is_pooled.store(is_pooled, Ordering::Relaxed);
    }

    pub fn tls_mode(&self) -> SslMode {
        tls::mode(self.mode)
    }

    pub fn connector(&self) -> Result<MakeRustlsConnect> {
        tls::connector(self.mode, &self.url, &self.unreadable_certificate)
    }

    /// Returns the number of open connections to the server.
    pub fn connections(&self) -> u64 {
        Arc::strong_count(&self.open) as u64 - 1
    }

    /// Returns whether a connection that failed with this error may soon succeed: the server is starting, has as many connections as it
    /// accepts, or one of its hosts is taking the place of the primary.
    pub fn may_soon_accept(&self, error: &tokio_postgres::Error) -> bool {
        is_not_accepting_yet(error) || (self.has_several_hosts() && may_be_a_failover(error))
    }

    /// Opens a connection, for callers that can wait: retries while the server may soon accept a connection ([`Server::may_soon_accept`]).
    pub async fn connect_with_retry(&self, rows: RowLength) -> Result<Connection> {
        loop {
            match self.connect(rows).await? {
                Err(error) if self.may_soon_accept(&error) => sleep(CONNECT_RETRY_PAUSE).await,
                other => return Ok(other?),
            }
        }
    }

    /// Opens a connection to the first host that accepts it. The outer error: the certificate files cannot be used, or none of several
    /// hosts answered in time. The inner error: no host accepts a connection. If several hosts refused, the inner error is the first
    /// permanent one (for which `may_soon_accept` is false) or, if there is none, the last.
    pub async fn connect(&self, rows: RowLength) -> Result<PostgresResult<Connection>> {
        let newest = self.newest.load(Ordering::Relaxed);
        if !self.has_several_hosts() {
            return self.connect_to(newest, rows).await;
        }
        let mut refused: Option<tokio_postgres::Error> = None;
        for host in (newest..self.hosts.len()).chain(0..newest) {
            // Without the time-out, a host that hangs would block this loop: it may still accept connections, but does not answer on them.
            let Ok(outcome) = timeout(HOST_CONNECT_TIMEOUT, self.connect_to(host, rows)).await else { continue };
            match outcome? {
                Ok(connection) => {
                    if host != newest {
                        tracing::info!(host = %host_and_port(&self.hosts[host]), "this host of the PostgreSQL server accepts writes now");
                        self.newest.store(host, Ordering::Relaxed);
                    }
                    return Ok(Ok(connection));
                }
                Err(error) => refused = refused.filter(|refused| !self.may_soon_accept(refused)).or(Some(error)),
            }
        }
        let no_answer = || Error::Unavailable(format!("no host answered within {} s", HOST_CONNECT_TIMEOUT.as_secs()));
        refused.map(Err).ok_or_else(no_answer)
    }

    /// Opens a connection to one host. The certificate files are read each time, since they may have been renewed.
    async fn connect_to(&self, host: usize, rows: RowLength) -> Result<PostgresResult<Connection>> {
        let config = &self.hosts[host];
        let connection = |client, serving| Connection::new(client, serving, rows, &self.outdated, self.is_pooled(), self.open.clone());
        if config.get_ssl_mode() == SslMode::Disable {
            return Ok(config.connect(NoTls).await.map(|(client, serving)| connection(client, Box::pin(serving) as _)));
        }
        let connected = config.connect(self.connector()?).await;
        Ok(connected.map(|(client, serving)| connection(client, Box::pin(serving) as _)))
    }
}

fn host_and_port(config: &Config) -> String {
    match (config.get_hosts().first(), config.get_ports().first()) {
        (Some(Host::Tcp(host)), Some(port)) => format!("{host}:{port}"),
        (Some(Host::Unix(folder)), _) => folder.display().to_string(),
        _ => "?".to_owned(),
    }
}

/// Returns connection options as a URL, since some options can be read only from the URL. The URL has placeholders for the host and the
/// user, since some spellings of these cannot be part of a URL.
fn as_url(options: &PgConnectOptions) -> Url {
    options.clone().host("host").username("user").to_url_lossy()
}

/// Returns the configuration of a connection to the one host of these options.
fn config(options: &PgConnectOptions, address: &ServerAddress) -> Config {
    let mut config = Config::new();
    match options.get_socket() {
        Some(folder) => config.host_path(folder),
        None => config.host(options.get_host().trim_matches(['[', ']'])),
    };
    config.port(options.get_port()).user(options.get_username());
    if let Some(password) = as_url(options).password() {
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
    let several = address.has_several_hosts();
    let peer_timeout = if several { FAILOVER_PEER_TIMEOUT } else { PEER_TIMEOUT };
    config.tcp_user_timeout(peer_timeout).keepalives_idle(peer_timeout / 2).keepalives_interval(peer_timeout / 6);
    if address.is_read_write() {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.ssl_mode(tls::mode(options.get_ssl_mode()));
    config
}

#[cfg(test)]
mod tests {
    use std::{path::Path, str::FromStr};

    use sqlx::{Connection as _, postgres::PgConnection};

    use super::*;
    use crate::store::{fixture::setting, parameterised_sql::Sql};

    fn server(url: &str) -> Server {
        Server::of(&ServerAddress::from_str(url).unwrap())
    }

    #[test]
    fn the_url_sets_host_user_options_and_tls_mode() {
        let Server { hosts, .. } = server(
            "postgres://us%40er:p%40%25%2F%C3%BC+w@[::1]:6543/da%20ta?application_name=inbox&options=-c%20search_path%3Dx&sslmode=require",
        );
        let [only] = hosts.as_slice() else { panic!("{} hosts", hosts.len()) };
        assert_eq!(only.get_hosts(), [Host::Tcp("::1".to_owned())]);
        assert_eq!(only.get_ports(), [6543]);
        assert_eq!(only.get_user(), Some("us@er"));
        assert_eq!(only.get_password(), Some("p@%/ü+w".as_bytes()));
        assert_eq!(only.get_dbname(), Some("da ta"));
        assert_eq!(only.get_application_name(), Some("inbox"));
        assert_eq!(only.get_options(), Some("-c search_path=x"));
        assert_eq!(only.get_tcp_user_timeout(), Some(&PEER_TIMEOUT));
        assert_eq!(only.get_ssl_mode(), SslMode::Require);
        // A user, a host and a folder that cannot be part of a URL.
        let odd = PgConnectOptions::new_without_pgpass().username("a/b@c:d?#").host("a:b").socket("/a folder/é");
        let odd = config(&odd.ssl_mode(PgSslMode::Allow), &ServerAddress::from_str("postgres://").unwrap());
        assert_eq!(odd.get_hosts(), [Host::Unix(Path::new("/a folder/é").to_owned())]);
        assert_eq!(odd.get_user(), Some("a/b@c:d?#"));
        assert_eq!(odd.get_ssl_mode(), SslMode::Disable);
    }

    #[tokio::test]
    async fn an_unreadable_certificate_file_is_an_error_if_the_mode_verifies() {
        for (query, got) in [
            ("sslmode=verify-full&sslrootcert=/nowhere/root.pem", "`/nowhere/root.pem`, which `sslrootcert` names, cannot be read"),
            ("sslmode=verify-ca&sslrootcert=Cargo.toml", "what `sslrootcert` names has no certificate in PEM"),
            ("sslcert=Cargo.toml", "names one of `sslcert` and `sslkey`"),
            ("sslkey=Cargo.toml", "names one of `sslcert` and `sslkey`"),
        ] {
            let error = server(&format!("postgres://user@127.0.0.1:1/name?{query}")).connect(RowLength::Short).await.err();
            assert!(matches!(&error, Some(Error::Unavailable(reason)) if reason.contains(got)), "{query}: {error:?}");
        }
        // These modes verify no certificate: the files are not read, so a missing file is no error. Only the connection fails.
        for query in ["sslmode=require&sslrootcert=/nowhere/root.pem", "sslmode=disable&sslcert=/nowhere/client.pem"] {
            assert!(
                matches!(server(&format!("postgres://user@127.0.0.1:1/name?{query}")).connect(RowLength::Short).await, Ok(Err(_))),
                "{query}"
            );
        }
    }

    /// `tests/postgres_tls.sh` starts the server, which accepts only TLS, with a certificate for `localhost`.
    #[tokio::test]
    #[ignore = "run by tests/postgres_tls.sh"]
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
            let got = server(&url).connect(RowLength::Short).await.unwrap().map(|_| ());
            assert_eq!(got.is_ok(), reached, "{url}: {got:?}");
            // sqlx accepts and refuses the same servers.
            let got = PgConnection::connect(&url).await.map(|_| ());
            assert_eq!(got.is_ok(), reached, "{url}: {got:?}");
        }
    }

    /// Uses the server of `tests/postgres_tls.sh` with a certificate of X.509 version 1.
    #[tokio::test]
    #[ignore = "run by tests/postgres_tls.sh"]
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
            // Tests a connection of SeaORM, on which the migrations run.
            db.migrate_up().await.unwrap();
            db.close().await.unwrap();
        }
        let connection =
            server(&format!("postgres://postgres@localhost:{port}/postgres")).connect(RowLength::Short).await.unwrap().unwrap();
        let got = connection.rows(&Sql::fixed("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).await.unwrap();
        assert!(got[0].get::<_, bool>(0));
    }
}
