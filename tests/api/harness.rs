//! Test harness: starts the servers under test. Each [`Server`] is the built binary on a separate database: a SQLite file, or a new
//! PostgreSQL database if `COUNTERPART_TEST_POSTGRES` names a PostgreSQL server.

#[path = "harness/sql_on_postgres_nodes.rs"]
mod sql_on_postgres_nodes;

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{client::Api, contract::event_contract, fixture};

use sql_on_postgres_nodes::{execute, execute_on_nodes, make_cluster, on_database, run_on, workers};

pub const BINARY: &str = env!("CARGO_BIN_EXE_counterpart");

/// The environment variable with the address of a connection pooler in front of the PostgreSQL server (see `tests/pgbouncer.sh`).
const POOLER: &str = "COUNTERPART_TEST_POOLER";

/// Whether the servers under test have PostgreSQL databases.
#[allow(dead_code, reason = "not every test binary depends on the database")]
pub fn has_postgres() -> bool {
    std::env::var_os("COUNTERPART_TEST_POSTGRES").is_some()
}

/// Whether the servers under test reach PostgreSQL through a connection pooler.
#[allow(dead_code, reason = "not every test binary runs through a pooler")]
pub fn has_pooler() -> bool {
    std::env::var_os(POOLER).is_some()
}

/// Every scope that an API key can have.
pub const ALL_SCOPES: [&str; 16] = [
    "tickets:read",
    "tickets:write",
    "conversations:read",
    "conversations:write",
    "contacts:read",
    "contacts:write",
    "messages:read",
    "messages:write",
    "accounts:read",
    "accounts:write",
    "users:read",
    "users:write",
    "labels:read",
    "labels:write",
    "teams:read",
    "teams:write",
];

/// A database that is removed when this value is dropped.
pub struct Database {
    pub url: String,
    /// The path of the `counterpart` binary that runs on this database.
    binary: String,
    home: tempfile::TempDir,
    /// On PostgreSQL: the address of the PostgreSQL server, and the name of this database on it.
    pub postgres: Option<(String, String)>,
}

impl Database {
    /// Creates a migrated database without data.
    pub fn fresh() -> Self {
        Self::with(&[])
    }

    /// Creates a database with these stores, given as ids with import lines. Many tests need the same stores. So the function migrates and
    /// fills one template database for each set of stores, and copies it.
    pub fn with(stores: &[(&str, Vec<Value>)]) -> Self {
        static TEMPLATES: OnceLock<Mutex<HashMap<String, Arc<OnceLock<Template>>>>> = OnceLock::new();
        let content = stores.iter().map(|(id, lines)| format!("{id}: {}\n", Value::from(lines.clone()))).collect();
        let template = Arc::clone(TEMPLATES.get_or_init(Mutex::default).lock().expect("no panic").entry(content).or_default());
        let template = template.get_or_init(|| Template::new(stores));
        let Some((admin, original)) = &template.database.postgres else { return template.database.copied(BINARY) };
        let name = free_name();
        // `file_copy` is faster than the default strategy, which writes every page of the copy to the WAL.
        execute_on_nodes(admin, &format!("create database {name} template {original} strategy file_copy"));
        let mut database = Self::on(admin, name.clone());
        // Only a copy has the address of the pooler. The template is reached directly: a pooler would keep sessions open in it, and
        // PostgreSQL does not copy a database that has open sessions.
        if let Some(pooler) = std::env::var_os(POOLER) {
            database.url = on_database(&pooler.to_string_lossy(), &name);
        }
        database
    }

    /// Returns the database with this name on a PostgreSQL server.
    fn on(admin: &str, name: String) -> Self {
        let mut database = Self::of(BINARY);
        database.url = on_database(admin, &name);
        database.postgres = Some((admin.to_owned(), name));
        database
    }

    /// Returns a SQLite database in a new folder. The file does not exist yet: the first command on the database creates it.
    pub fn of(binary: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory for temporary files");
        let url = format!("sqlite://{}", home.path().join("counterpart.db").display());
        Self { url, binary: binary.to_owned(), home, postgres: None }
    }

    /// Copies the SQLite file, which no process may have open. Returns the copy, on which `binary` runs.
    #[allow(dead_code, reason = "not every test binary copies")]
    pub fn copied(&self, binary: &str) -> Self {
        let copy = Self::of(binary);
        // The key file may be missing: binaries that are older than the encryption of secrets create none.
        for name in ["counterpart.db", "counterpart.db.key"].iter().filter(|name| self.home.path().join(name).exists()) {
            std::fs::copy(self.home.path().join(name), copy.home.path().join(name)).expect("the file is copied");
        }
        copy
    }

    /// Runs a command on this database. Returns its standard output. A failure of the command fails the test. If the command is `events`,
    /// also checks each printed event against the OpenAPI document of the events.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        self.run_with(&[], arguments)
    }

    /// Like [`Self::run`], with additional environment variables.
    #[track_caller]
    pub fn run_with(&self, settings: Settings<'_>, arguments: &[&str]) -> String {
        let output = self.outcome(settings, arguments);
        let (printed, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "counterpart {} ended with {}:\n{printed}{complaint}", arguments.join(" "), output.status);
        if arguments.first() == Some(&"events") {
            event_contract::check_lines(&printed);
        }
        printed.trim_end().to_owned()
    }

    /// Runs a command that must fail; returns its error message.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str]) -> String {
        self.fails_with(&[], arguments)
    }

    /// Like [`Self::fails`], with additional environment variables.
    #[track_caller]
    pub fn fails_with(&self, settings: Settings<'_>, arguments: &[&str]) -> String {
        let output = self.outcome(settings, arguments);
        assert!(!output.status.success(), "counterpart {} succeeded", arguments.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn outcome(&self, settings: Settings<'_>, arguments: &[&str]) -> std::process::Output {
        self.command()
            .args(arguments)
            // The endpoints of the tests listen on this machine. This setting lets commands such as `webhook create` accept their URLs. A
            // server under test does not get the setting from this function.
            .env("COUNTERPART_ALLOW_PRIVATE_TARGETS", "true")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.binary))
    }

    /// Returns a command that runs the binary on this database, still without arguments.
    pub fn command(&self) -> Command {
        // With umask 0, the system removes no permissions from new files. So the program itself must make its files readable only by their
        // owner.
        let mut command = Command::new("sh");
        command
            .args(["-c", "umask 0 && exec \"$@\"", "sh", &self.binary])
            .env("DATABASE_URL", &self.url)
            .env("COUNTERPART_INDEX_DIR", self.index_folder());
        command
    }

    /// Creates a store from import lines.
    #[track_caller]
    pub fn store(&self, id: &str, lines: &[Value]) {
        self.run(&["store", "create", "--id", id, "--name", &format!("Store {id}")]);
        self.import(id, lines);
    }

    /// Imports lines into a store.
    #[track_caller]
    pub fn import(&self, id: &str, lines: &[Value]) {
        let file = self.home.path().join(format!("{id}.ndjson"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, text).expect("the import file is written");
        self.run(&["import", "--store", id, &file.to_string_lossy()]);
    }

    /// Creates an API key with the command `key create`. Returns its store, id and secret.
    #[track_caller]
    pub fn key(&self, store: &str, scopes: &[&str]) -> Key {
        let printed = self.run(&["key", "create", "--store", store, "--name", "Test", "--scopes", &scopes.join(","), "--json"]);
        let made: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("key create --json printed {printed}: {error}"));
        let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("no {name} in {printed}")).to_owned();
        Key { store: store.to_owned(), id: text("id"), secret: text("secret") }
    }

    /// Returns the folder with the SQLite file, the key file of its encrypted secrets, and the log of its servers.
    #[allow(dead_code, reason = "not every test binary looks there")]
    pub fn folder(&self) -> &std::path::Path {
        self.home.path()
    }

    /// Returns the folder in which the servers on this database keep their search indexes.
    pub fn index_folder(&self) -> PathBuf {
        self.home.path().join("index")
    }

    fn second_index(&self) -> String {
        self.home.path().join("index2").display().to_string()
    }

    /// Returns the address of this database on the standby that the environment variable `COUNTERPART_TEST_STANDBY` names, if the variable
    /// is set.
    fn standby(&self) -> Option<String> {
        let (_, name) = self.postgres.as_ref()?;
        let standby = std::env::var_os("COUNTERPART_TEST_STANDBY")?;
        Some(on_database(&standby.to_string_lossy(), name))
    }

    /// Returns the address at which the database is reached directly, and not through a connection pooler.
    fn direct(&self) -> String {
        self.postgres.as_ref().map_or_else(|| self.url.clone(), |(admin, name)| on_database(admin, name))
    }

    /// Executes a statement on the database directly, for states that a test cannot reach through the API, or could reach only after a long
    /// wait.
    pub fn sql(&self, statement: &str) {
        let writes = ["insert", "update", "delete", "with"].iter().any(|verb| statement.trim_start().to_lowercase().starts_with(verb));
        if !self.is_distributed() || !writes {
            return execute(&self.direct(), statement);
        }
        run_on(&self.direct(), async |connection| {
            let tx = sea_orm::TransactionTrait::begin(&connection).await?;
            sea_orm::ConnectionTrait::execute_unprepared(&tx, "select begin_distributed_write()").await?;
            sea_orm::ConnectionTrait::execute_unprepared(&tx, statement).await?;
            tx.commit().await?;
            connection.close().await
        })
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Returns whether the stores are distributed over the nodes of a cluster.
    #[allow(dead_code, reason = "not every test binary runs on a cluster")]
    pub fn is_distributed(&self) -> bool {
        self.postgres.is_some() && !workers().is_empty()
    }

    /// Creates a migrated database without data. It is on one server, even if the other test databases are distributed over a cluster.
    #[allow(dead_code, reason = "not every test binary needs one server")]
    pub fn undistributed() -> Self {
        let Some(admin) = std::env::var_os("COUNTERPART_TEST_POSTGRES").filter(|_| !workers().is_empty()) else { return Self::fresh() };
        let (admin, name) = (admin.to_string_lossy().into_owned(), free_name());
        execute(&admin, &format!("create database {name}"));
        let database = Self::on(&admin, name);
        database.run(&["migrate", "up"]);
        database
    }

    /// Makes PostgreSQL accept connections to the database (`everybody` is true), or refuse them and close the existing ones (false).
    /// Returns true. On SQLite, does nothing and returns false.
    pub fn lets_in(&self, everybody: bool) -> bool {
        let Some((admin, name)) = &self.postgres else { return false };
        execute(admin, &format!("alter database {name} with allow_connections {everybody}"));
        if !everybody {
            execute(admin, &format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"));
        }
        true
    }

    /// Runs a query on the database. Returns the first column of its rows, which must be text. Used for values that no API response
    /// contains.
    pub fn ask(&self, query: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let found = runtime.block_on(async {
            let connection = sea_orm::Database::connect(self.direct()).await?;
            let statement = sea_orm::Statement::from_string(connection.get_database_backend(), query);
            let rows = sea_orm::ConnectionTrait::query_all_raw(&connection, statement).await?;
            rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, sea_orm::DbErr>>()
        });
        found.unwrap_or_else(|error| panic!("{query}: {error}"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some((admin, name)) = &self.postgres {
            execute_on_nodes(admin, &format!("drop database if exists {name} with (force)"));
        }
    }
}

/// A database that tests copy. The value is in a static variable, which Rust does not drop when the test process ends. So a shell waits
/// until the test process ends and then removes the database.
struct Template {
    database: Database,
    _shell: Child,
}

const REMOVE: &str = r#"
cat
rm -rf -- "$1"
for node in $2; do psql --no-psqlrc --quiet --command "drop database if exists $3 with (force)" "$node"; done
"#;

impl Template {
    fn new(stores: &[(&str, Vec<Value>)]) -> Self {
        let admin = std::env::var_os("COUNTERPART_TEST_POSTGRES").map(|admin| admin.to_string_lossy().into_owned());
        let name = free_name();
        let database = admin.as_ref().map_or_else(
            || Database::of(BINARY),
            |admin| {
                execute_on_nodes(admin, &format!("create database {name}"));
                if !workers().is_empty() {
                    make_cluster(admin, &name);
                }
                Database::on(admin, name.clone())
            },
        );
        database.run(&["migrate", "up"]);
        for (id, lines) in stores {
            database.store(id, lines);
        }
        if let Some(admin) = admin.as_ref().filter(|_| !workers().is_empty()) {
            database.run(&["scale", "distribute"]);
            // Citus keeps a session in each of its databases, and PostgreSQL copies only a database without sessions.
            execute_on_nodes(admin, &format!("alter database {name} with allow_connections false"));
            execute_on_nodes(admin, &format!("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{name}'"));
        }
        let nodes: Vec<String> = admin.into_iter().flat_map(|admin| workers().into_iter().chain([admin])).collect();
        let nodes = nodes.join(" ");
        let shell = Command::new("sh")
            .args(["-c", REMOVE, "sh", &database.home.path().to_string_lossy(), &nodes, &name])
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh starts");
        Self { database, _shell: shell }
    }
}

/// Returns a new name for a PostgreSQL database, made of the process id and a counter.
fn free_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("counterpart_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An API key: its store, its id and its secret.
#[derive(Clone, Debug)]
pub struct Key {
    pub store: String,
    pub id: String,
    pub secret: String,
}

/// A running server, which a shell (the "warden") starts. The server stops when this value is dropped. It also stops when the test process
/// ends, even by a crash: then the warden's standard input closes, and the warden stops the server.
pub struct Server {
    // Rust drops the fields in the order of their declaration, so the process ends before its database is removed.
    process: Process,
    /// A second process on the same database, if `COUNTERPART_TEST_STANDBY` names a standby of the PostgreSQL server. The connections of
    /// the tests then go to the two processes alternately, and both processes read from the standby.
    second: Option<Process>,
    pub database: Database,
    pub address: String,
}

/// Additional environment variables of a server or a command, most of them settings of `counterpart`.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// Settings of a server that simulates every messaging channel (LINE, WhatsApp and so on) instead of sending through it.
pub const SIMULATED: Settings<'static> = &[("COUNTERPART_SIMULATE_CHANNELS", "true")];

pub struct Process {
    pub address: String,
    pid: String,
    warden: Child,
    leash: Option<ChildStdin>,
    /// The text that is written to the warden's standard input before the input is closed and the server stops: the line `keep`, or nothing
    /// if the warden should also remove the server's data.
    order: &'static [u8],
    _stdout: BufReader<ChildStdout>,
}

/// The shell script of the warden. It starts the server and prints the server's process id. It stops the server after it has read a line
/// from standard input, or when standard input closes. Unless the line is `keep`, it then removes the server's data: the test process may
/// have ended, and could not remove the data itself.
const WARDEN: &str = r#"
# The files of the server are readable only by their owner, whatever the umask of the environment.
umask 0
"$1" serve --listen "${COUNTERPART_LISTEN:-127.0.0.1:0}" </dev/null &
pid=$!
echo "$pid"
exec >/dev/null
read -r order
kill "$pid" 2>/dev/null
wait "$pid"
[ "$order" != keep ] || exit
[ -z "$3" ] || psql --no-psqlrc --quiet --command "drop database if exists $4 with (force)" "$3"
rm -rf -- "$2"
"#;

impl Server {
    pub fn start(database: Database) -> Self {
        Self::start_with(database, &[])
    }

    pub fn start_with(database: Database, settings: Settings<'_>) -> Self {
        let Some(standby) = database.standby() else {
            let process = Process::start(&database, settings, b"");
            return Self { address: process.address.clone(), process, second: None, database };
        };
        let settings = [settings, &[("COUNTERPART_READ_URL", &standby)]].concat();
        let process = Process::start(&database, &settings, b"");
        let second =
            Process::start(&database, &[&settings[..], &[("COUNTERPART_INDEX_DIR", &database.second_index())]].concat(), b"keep\n");
        Self { address: in_turns([process.address.clone(), second.address.clone()]), process, second: Some(second), database }
    }

    /// Returns what the servers on this database have logged so far.
    #[allow(dead_code, reason = "not every test binary reads it")]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.database.folder().join("server.log")).expect("the log")
    }

    /// Starts another server process on the same database.
    pub fn beside(&self, settings: Settings<'_>) -> Process {
        Process::start(&self.database, settings, b"keep\n")
    }

    /// Kills the server with SIGKILL. Returns its database.
    #[allow(dead_code, reason = "not every test binary kills")]
    pub fn kill(mut self) -> Database {
        self.process.order = b"keep\n";
        for process in [Some(&mut self.process), self.second.as_mut()].into_iter().flatten() {
            process.signal("-KILL");
            process.let_go();
            let _ = process.warden.wait();
        }
        self.database
    }

    /// Starts a server on a fresh database with these stores.
    pub fn with(stores: &[(&str, Vec<Value>)]) -> Self {
        Self::start(Database::with(stores))
    }

    /// Creates an API key with these scopes. Returns an API client that uses the key.
    #[track_caller]
    pub fn api(&self, store: &str, scopes: &[&str]) -> Api {
        self.api_of(&self.database.key(store, scopes))
    }

    pub fn api_of(&self, key: &Key) -> Api {
        Api { address: self.address.clone(), key: Some(key.secret.clone()), store: key.store.clone() }
    }
}

/// Starts a proxy that forwards connections to the two servers alternately. Returns the proxy's address.
fn in_turns(addresses: [String; 2]) -> String {
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = proxy.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for (caller, address) in proxy.incoming().flatten().zip(addresses.iter().cycle()) {
            // If the server was killed, it accepts no connection. The proxy then closes the client's connection: without a proxy, the
            // client would have no connection either.
            let Ok(server) = TcpStream::connect(address) else { continue };
            for (from, to) in [(&caller, &server), (&server, &caller)] {
                let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

impl Process {
    fn start(database: &Database, settings: Settings<'_>, order: &'static [u8]) -> Self {
        let log = database.home.path().join("server.log");
        let errors = std::fs::File::options().create(true).append(true).open(&log).expect("the log is created");
        let (admin, name) = database.postgres.clone().unwrap_or_default();
        let mut warden = Command::new("sh")
            .args(["-c", WARDEN, "sh", &database.binary])
            .arg(database.home.path())
            .args([admin, name])
            .env("DATABASE_URL", &database.url)
            .env("COUNTERPART_INDEX_DIR", database.index_folder())
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("sh starts");
        let leash = warden.stdin.take();
        let mut stdout = BufReader::new(warden.stdout.take().expect("a pipe"));
        let mut line = || {
            let mut line = String::new();
            match stdout.read_line(&mut line) {
                Ok(1..) => line.trim_end().to_owned(),
                _ => panic!("the server ended before it listened:\n{}", std::fs::read_to_string(&log).unwrap_or_default()),
            }
        };
        let pid = line();
        let address = loop {
            if let Some(address) = line().strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        Self { address, pid, warden, leash, order, _stdout: stdout }
    }

    fn let_go(&mut self) {
        let got = self.leash.take().map(|mut leash| leash.write_all(self.order));
        assert!(!matches!(got, Some(Err(_))), "the order is written to the warden: {got:?}");
    }

    fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([signal, &self.pid]).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.let_go();
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Ok(None) = self.warden.try_wait() {
            if Instant::now() > deadline {
                self.signal("-KILL");
                let _ = self.warden.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The server that most tests of reading operations share, and an API client for each of its two stores.
pub struct World {
    pub server: Server,
    pub one: Api,
    pub two: Api,
}

pub fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let server = Server::with(&[("one", fixture::one()), ("two", fixture::two())]);
        let (one, two) = (server.api("one", &ALL_SCOPES), server.api("two", &ALL_SCOPES));
        World { server, one, two }
    })
}

/// Returns the API client of store `one` on the shared server. Most tests use this client.
pub fn one() -> &'static Api {
    &world().one
}
