//! Tests of the command line as a new user sees it: creating a store, error messages for mistakes, the demo, completions and manual pages,
//! and health checks.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder without a database, in which commands run.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterpart"));
        command.args(arguments).env_remove("DATABASE_URL").current_dir(self.path());
        command
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        text(self.command(arguments).output().unwrap(), true, arguments)
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str]) -> String {
        text(self.command(arguments).output().unwrap(), false, arguments)
    }

    fn files(&self) -> usize {
        self.path().read_dir().unwrap().count()
    }
}

/// Asserts that a command succeeded if `succeeds` is true, and that it failed otherwise. Returns its output or its error message.
#[track_caller]
fn text(output: Output, succeeds: bool, arguments: &[&str]) -> String {
    let (printed, complaint) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.success(), succeeds, "{arguments:?}: {printed}{complaint}");
    if succeeds { printed } else { complaint }
}

#[test]
fn a_store_is_created_with_an_owner_and_a_link_to_its_settings() {
    let folder = Folder::new();
    let owner = ["--owner-name", "Ann", "--owner-email", "ann@example.com"];
    let made = folder.ok(&[&["store", "create", "--id", "shop", "--name", "Shop"][..], &owner].concat());
    let [store, user, link] = made.lines().collect::<Vec<_>>()[..] else { panic!("three lines: {made}") };
    assert_eq!((store, user.len()), ("shop", 36));
    assert!(link.starts_with("http://127.0.0.1:8080/settings#link="), "{link}");
    assert!(folder.ok(&["settings", "link", "--store", "shop", "--user", user]).starts_with("http"));
    let bob = folder.ok(&["user", "create", "--store", "shop", "--name", "Bob", "--email", "bob@example.com", "--role", "owner"]);
    let users: Vec<Value> =
        folder.ok(&["user", "list", "--store", "shop"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = users.iter().map(|user| (user["userId"].as_str().unwrap(), user["role"].as_str().unwrap())).collect();
    assert_eq!(seen, [(user, "Owner"), (bob.trim(), "Owner")], "both have the one role");
    for (arguments, said) in [
        (&["user", "create", "--store", "shop", "--name", "B", "--email", "bob@example.com"][..], "belongs to another user"),
        (&["user", "create", "--store", "shop", "--name", "B", "--email", "bob"], "`bob` is not an e-mail address"),
        (&["user", "create", "--store", "shop", "--name", " ", "--email", "c@example.com"], "and not be blank"),
        (&["user", "create", "--store", "none", "--name", "B", "--email", "c@example.com"], "there is no store `none`"),
        (&["user", "create", "--store", "shop", "--name", "B", "--email", "c@example.com", "--role", "king"], "owner, admin, agent"),
        (&["user", "list", "--store", "none"], "there is no store `none`"),
        (&["store", "create", "--id", "s2", "--name", "S", "--owner-name", "A"], "--owner-email"),
        (&["store", "create", "--id", "s2", "--name", "S", "--owner-name", "A", "--owner-email", "a"], "is not an e-mail address"),
    ] {
        let complaint = folder.fails(arguments);
        assert!(complaint.contains(said), "{arguments:?}: {complaint}");
    }
    assert_eq!(folder.ok(&["store", "list"]).lines().count(), 1, "a refused command creates nothing");
}

#[test]
fn import_accepts_the_example_that_it_prints() {
    let folder = Folder::new();
    let schema: Value = serde_json::from_str(&folder.ok(&["import", "--schema"])).unwrap();
    assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(13));
    std::fs::write(folder.path().join("example.ndjson"), folder.ok(&["import", "--example"])).unwrap();
    assert_eq!(folder.files(), 1, "neither command creates a database");
    folder.ok(&["store", "create", "--id", "shop", "--name", "Shop"]);
    assert!(folder.ok(&["import", "--store", "shop", "example.ndjson"]).starts_with("imported 13 records"));
    assert!(folder.fails(&["import", "example.ndjson"]).contains("--store"));
}

#[test]
fn a_command_that_only_reads_creates_no_database() {
    let folder = Folder::new();
    for arguments in [
        &["store", "list"][..],
        &["user", "list", "--store", "shop"],
        &["key", "list", "--store", "shop"],
        &["webhook", "list", "--store", "shop"],
        &["export", "--store", "shop"],
        &["events", "--store", "shop"],
        &["migrate", "status"],
        &["migrate", "down", "--yes"],
        &["secrets", "list"],
        &["reindex"],
    ] {
        let complaint = folder.fails(arguments);
        assert!(complaint.contains("there is no database `counterpart.db`"), "{arguments:?}: {complaint}");
    }
    assert_eq!(folder.files(), 0);
    // The path in a database URL may be percent-encoded.
    let url = ["--database-url", "sqlite://my%20shop.db"];
    folder.ok(&[&["store", "create", "--id", "shop", "--name", "Shop"][..], &url].concat());
    assert!(folder.path().join("my shop.db").exists());
    assert_eq!(folder.ok(&[&["store", "list"][..], &url].concat()).lines().count(), 1);
}

#[test]
fn an_environment_variable_with_the_value_no_turns_a_switch_off() {
    let folder = Folder::new();
    folder.ok(&["store", "create", "--id", "shop", "--name", "Shop"]);
    let with = |variable: &str, arguments: &[&str]| text(folder.command(arguments).env(variable, "no").output().unwrap(), false, arguments);
    assert!(with("COUNTERPART_EXAMPLE", &["import", "--store", "shop"]).contains("--example"));
    assert!(with("COUNTERPART_MISSING", &["webhook", "replay", "--store", "shop", "--id", "hook"]).contains("--all"));
}

#[test]
fn databases_of_other_programs_and_of_newer_versions_are_refused() {
    let folder = Folder::new();
    let tables =
        |file: &rusqlite::Connection| -> i64 { file.query_row("SELECT COUNT(*) FROM sqlite_schema", (), |row| row.get(0)).unwrap() };
    let other = rusqlite::Connection::open(folder.path().join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE accounts_of_another (id)").unwrap();
    let complaint = folder.fails(&["store", "list", "--database-url", "sqlite://other.db"]);
    assert!(complaint.contains("`accounts_of_another` of another program"), "{complaint}");
    assert_eq!(tables(&other), 1);

    folder.ok(&["store", "create", "--id", "shop", "--name", "Shop"]);
    let own = rusqlite::Connection::open(folder.path().join("counterpart.db")).unwrap();
    own.execute("INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_of_tomorrow', 0)", ()).unwrap();
    let complaint = folder.fails(&["store", "list"]);
    assert!(complaint.contains("`m9999_of_tomorrow`") && complaint.contains("newer version"), "{complaint}");
}

#[test]
fn removing_data_needs_confirmation() {
    let folder = Folder::new();
    folder.ok(&["store", "create", "--id", "shop", "--name", "Shop"]);
    let complaint = folder.fails(&["migrate", "down", "--steps", "50"]);
    assert!(complaint.contains("--yes") && complaint.contains("m0001"), "{complaint}");
    assert_eq!(folder.ok(&["store", "list"]).lines().count(), 1);
    folder.ok(&["migrate", "down", "--yes"]);
    assert!(folder.ok(&["migrate", "status"]).contains("pending"));
}

#[test]
fn a_malformed_option_is_reported_with_a_correct_example() {
    let folder = Folder::new();
    for (arguments, said) in [
        (&["serve", "--listen", ":8080"][..], "0.0.0.0:8080"),
        (&["serve", "--listen", "8080"], "such as 127.0.0.1:8080"),
        (&["serve", "--listen", "127.0.0.1:http"], "`http` is no port"),
        (&["serve", "--log", "nonsense"], "`nonsense` is no level"),
        (&["serve", "--log", "counterpart=loud"], "error"),
        (&["store", "list", "--database-url", "postgres://postgres:secret@127.0.0.1:1/shop"], "`127.0.0.1:1`"),
    ] {
        let complaint = folder.fails(arguments);
        assert!(complaint.contains(said) && !complaint.contains("secret"), "{arguments:?}: {complaint}");
    }
    assert_eq!(folder.files(), 0);
    folder.ok(&["store", "create", "--id", "shop", "--name", "Shop"]);
    for (value, succeeds) in [("1", true), ("yes", true), ("", true), ("off", true), ("perhaps", false)] {
        let output = folder.command(&["store", "list"]).env("COUNTERPART_ALLOW_PRIVATE_TARGETS", value).output().unwrap();
        text(output, succeeds, &[value]);
    }
}

#[test]
fn an_option_without_effect_is_refused() {
    let folder = Folder::new();
    let complaint = folder.fails(&["demo", "--database-url", "sqlite://x.db"]);
    assert!(complaint.contains("`--database-url` does nothing with `demo`") && complaint.contains("`--keep FILE`"), "{complaint}");
    let listing = |value: &str| {
        let mut command = folder.command(&["openapi", "--format", "routes"]);
        command.env("COUNTERPART_DRY_RUN", value).output().unwrap()
    };
    let complaint = text(listing("yes"), false, &["openapi"]);
    assert!(complaint.contains("COUNTERPART_DRY_RUN does nothing with `openapi`; unset it"), "{complaint}");
    text(listing("off"), true, &["openapi"]);
    assert_eq!(folder.files(), 0);
}

/// Starts `counterpart demo`, sends a request with the printed API key, and stops the demo. Returns the API key and the status of the
/// response.
fn demo(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let mut child =
        folder.command(&[&["demo", "--listen", "127.0.0.1:0"], arguments].concat()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut after = |label: &str| lines.find_map(|line| Some(line.strip_prefix(label)?.trim().to_owned())).unwrap();
    let (base, key) = (after("Base URL"), after("API key"));
    let request = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", &format!("x-api-key: {key}"), &format!("{base}/users")];
    let status = Command::new("curl").args(request).output().unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    child.wait().unwrap();
    (key, String::from_utf8(status.stdout).unwrap())
}

#[test]
fn a_demo_is_stored_with_keep() {
    let folder = Folder::new();
    let (first, status) = demo(&folder, &[]);
    assert_eq!((&*status, folder.files()), ("200", 0), "nothing is left");
    let (kept, status) = demo(&folder, &["--keep", "shop.db"]);
    assert_eq!(status, "200");
    assert_ne!(first, kept);
    let (again, status) = demo(&folder, &["--keep", "shop.db"]);
    assert_eq!(status, "200");
    assert_ne!(kept, again);
    let database = ["--database-url", "sqlite://shop.db"];
    folder.ok(&[&database[..], &["key", "create", "--store", "demo", "--name", "demo", "--scopes", "users:read"]].concat());
    demo(&folder, &["--keep", "shop.db"]);
    let keys = folder.ok(&[&database[..], &["key", "list", "--store", "demo"]].concat());
    assert_eq!(keys.matches("\"demo\"").count(), 2, "one key at a time beside one's own: {keys}");
    // The file name may contain characters that have a meaning in URLs.
    let (_, status) = demo(&folder, &["--keep", "50% of? #1.db"]);
    assert!(status == "200" && folder.path().join("50% of? #1.db").exists());
    // A demo that is killed early can leave a database that has the demo's store but no records. Creates such a database. The next demo
    // adds the records.
    folder.ok(&["--database-url", "sqlite://half.db", "store", "create", "--id", "demo", "--name", "Demo shop"]);
    let (_, status) = demo(&folder, &["--keep", "half.db"]);
    assert_eq!(status, "200");
    // `demo` refuses a database that has another store.
    folder.ok(&["store", "create", "--id", "mine", "--name", "Mine"]);
    let complaint = folder.fails(&["demo", "--listen", "127.0.0.1:0", "--keep", "counterpart.db"]);
    assert!(complaint.contains("holds other stores"), "{complaint}");
}

#[test]
fn shell_completions_and_manual_pages_are_generated() {
    let folder = Folder::new();
    for (shell, word) in [("bash", "complete -F"), ("zsh", "#compdef counterpart"), ("fish", "complete -c counterpart")] {
        assert!(folder.ok(&["completions", shell]).contains(word), "{shell}");
    }
    assert!(folder.fails(&["completions", "sh"]).contains("bash"));
    folder.ok(&["man", "."]);
    let page = std::fs::read_to_string(folder.path().join("counterpart-serve.1")).unwrap();
    assert!(page.contains("COUNTERPART_LISTEN"), "{page}");
    assert!(folder.path().join("counterpart-key-create.1").exists());
    assert!(folder.fails(&["man", "nowhere"]).contains("`nowhere`"));
}

#[test]
fn a_health_check_succeeds_only_for_a_ready_server() {
    let folder = Folder::new();
    let health = |address: &str| ["health", "--listen", address].map(str::to_owned);
    let asked = |address: &str, succeeds| {
        let arguments = health(address);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // `health` may run with the environment of the server, so it must accept environment variables that concern only `serve`.
        text(folder.command(&arguments).env("COUNTERPART_SIMULATE_CHANNELS", "true").output().unwrap(), succeeds, &arguments)
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap().to_string();
    drop(free);
    assert!(asked(&nobody, false).contains("cannot be asked"));

    let mut server = Running(
        folder
            .command(&["serve", "--listen", "0.0.0.0:0"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("listening on http://").to_owned();
    assert_eq!(asked(&address, true).trim(), r#"{"status":"ready"}"#);
    // Renames the database file, so that the server is no longer ready. Waits until the cached result of the readiness check expires.
    std::fs::rename(folder.path().join("counterpart.db"), folder.path().join("other.db")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(asked(&address, false).contains("not ready"), "{address}");
}

/// A child process that is killed when this value is dropped.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
