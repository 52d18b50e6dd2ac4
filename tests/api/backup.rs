//! Tests of the commands `backup` and `restore`: back-ups of a SQLite file while a server writes, and restores after the server was killed.
//! On PostgreSQL `backup` and `restore` are refused.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    client::Api,
    fixture::{ANN, write_store},
    harness::{ALL_SCOPES, Database, Server},
    writes::parsed,
};

/// The names of the contacts that the writer threads of a test ask the server to create: `asked` has every name that was sent,
/// `acknowledged` only those whose request succeeded.
#[derive(Default)]
struct Made {
    asked: Mutex<BTreeSet<String>>,
    acknowledged: Mutex<BTreeSet<String>>,
}

fn now(names: &Mutex<BTreeSet<String>>) -> BTreeSet<String> {
    names.lock().expect("no writer panics").clone()
}

impl Made {
    /// Delivers inbound messages to the server, each from a new contact, until `stop` is set or the server is killed.
    fn write(&self, server: &Api, token: &str, writer: &str, stop: &AtomicBool) {
        for n in 0.. {
            // The name ends in a letter, so that no name is a prefix of another. Otherwise a search for one name would find other contacts,
            // since a search finds every word that begins with the query.
            let name = format!("{writer}{n}q");
            let message = json!({"accountId": "acc-line", "referenceId": name, "externalId": name, "sender": {"id": name, "name": name}, "text": "x"});
            self.asked.lock().expect("no writer panics").insert(name.clone());
            let call = server.raw("POST", "/settings/v1/messages").header("authorization", &format!("Bearer {token}")).json(message);
            let Ok(answer) = call.attempt() else { return };
            answer.ok();
            self.acknowledged.lock().expect("no writer panics").insert(name);
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    fn wait_for(&self, more: usize) {
        let from = now(&self.acknowledged).len();
        while now(&self.acknowledged).len() < from + more {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the names of all contacts of the store `desk`, according to an export.
fn contacts(database: &Database) -> BTreeSet<String> {
    let records = parsed(&database.run(&["export", "--store", "desk"]));
    let contacts = records.into_iter().filter(|line| line["kind"] == "contact");
    contacts.map(|line| line["record"]["firstName"].as_str().unwrap_or_default().to_owned()).collect()
}

fn found(server: &Server, name: &str) -> usize {
    let api = server.api("desk", &ALL_SCOPES);
    api.post("/contacts/list", json!({"search": name})).send().ids().len()
}

fn database() -> Option<Database> {
    let database = Database::with(&[("desk", write_store())]);
    database.postgres.is_none().then_some(database)
}

/// Backs up a database while four threads write through its server, and kills the server. Starts another server on the database, sends it
/// more writes and kills it too. Then restores the back-up, and asserts that the restored database has every write that was acknowledged
/// before the back-up began and no write that was sent after the back-up ended.
fn drill(round: usize) {
    let Some(database) = database() else { return };
    let token = database.run(&["settings", "token", "--store", "desk", "--user", ANN]);
    let server = Server::start(database);
    let (made, stop) = (Made::default(), AtomicBool::new(false));
    let backup = server.database.folder().join("backup.db").display().to_string();
    let (held, asked, database) = thread::scope(|scope| {
        let api = server.api("desk", &ALL_SCOPES);
        for writer in ["a", "b", "c", "d"] {
            let (made, stop, api, token) = (&made, &stop, api.clone(), &token);
            scope.spawn(move || made.write(&api, token, writer, stop));
        }
        made.wait_for(20 + round % 7);
        let held = now(&made.acknowledged);
        server.database.run(&["backup", &backup]);
        let asked = now(&made.asked);
        made.wait_for(20);
        (held, asked, server.kill())
    });
    let server = Server::start(database);
    let later = Made::default();
    thread::scope(|scope| {
        let (later, token, stop, api) = (&later, &token, &stop, server.api("desk", &ALL_SCOPES));
        scope.spawn(move || later.write(&api, token, "e", stop));
        later.wait_for(5);
        stop.store(true, Ordering::Relaxed);
    });
    let said = server.database.fails(&["restore", &backup]);
    assert!(said.contains("is open in another process; stop it first"), "{said}");
    let database = server.kill();
    assert!(Path::new(&format!("{}-wal", file(&database))).exists(), "the killed server left a log");
    database.run(&["restore", &backup]);
    let server = Server::start(database);
    let restored = contacts(&server.database);
    assert!(held.is_subset(&restored), "lost: {:?}", held.difference(&restored));
    let known: BTreeSet<_> = asked.iter().cloned().chain(contacts_of_the_fixture()).collect();
    assert!(restored.is_subset(&known), "from after the back-up: {:?}", restored.difference(&known));
    for name in held.iter().step_by(5) {
        assert_eq!(found(&server, name), 1, "{name}");
    }
    for name in now(&later.acknowledged) {
        assert_eq!(found(&server, &name), 0, "{name}");
    }
}

fn contacts_of_the_fixture() -> impl Iterator<Item = String> {
    let records = write_store().into_iter().filter(|line| line["kind"] == "contact");
    records.map(|line| line["record"]["firstName"].as_str().unwrap_or_default().to_owned())
}

fn file(database: &Database) -> String {
    database.url.trim_start_matches("sqlite://").to_owned()
}

/// Executes a statement on a SQLite file, which is created if it does not exist.
fn sql(path: &str, statement: &str) {
    let file = rusqlite::Connection::open(path).expect("the file can be opened");
    file.execute_batch(statement).expect("a sound statement");
}

#[test]
fn a_backup_under_load_is_restored_after_a_kill() {
    (0..2).for_each(drill);
}

#[test]
#[ignore = "50 drills take minutes: cargo test --test api -- --ignored backup::fifty_backups_under_load_are_restored_after_a_kill"]
fn fifty_backups_under_load_are_restored_after_a_kill() {
    (0..50).for_each(drill);
}

#[test]
fn a_write_ahead_log_of_another_file_is_refused() {
    let Some(database) = database() else { return };
    let server = Server::start(database);
    let backup = server.database.folder().join("backup.db").display().to_string();
    server.database.run(&["backup", &backup]);
    server.database.run(&["store", "create", "--id", "later", "--name", "Later"]);
    let database = server.kill();
    let (path, log) = (file(&database), format!("{}-wal", file(&database)));
    let whole = std::fs::read(&log).expect("the killed server left a log");
    // Copies the back-up over the database file without `restore`. The write-ahead log beside it still belongs to the former file.
    std::fs::copy(&backup, &path).expect("it is copied");
    for command in [&["export", "--store", "desk"][..], &["backup", "other.db"], &["migrate", "up"]] {
        let said = database.fails(command);
        assert!(said.contains(&format!("`{log}` does not belong to `{path}`")) && said.contains("counterpart restore"), "{said}");
    }
    assert_eq!(std::fs::read(&log).expect("it is there"), whole, "the log is not merged into the file");
    database.run(&["restore", &backup]);
    assert!(contacts(&database).len() > 2);
    assert_eq!(database.run(&["backup", &format!("{backup}2")]).lines().count(), 1);
}

#[test]
fn a_file_that_is_no_backup_is_refused_and_the_database_stays() {
    let Some(database) = database() else { return };
    let before = contacts(&database);
    let folder = database.folder().to_owned();
    let at = |name: &str| folder.join(name).display().to_string();
    database.run(&["backup", &at("sound.db")]);
    let sound = std::fs::read(at("sound.db")).expect("the back-up");
    let mut torn = sound.clone();
    let middle = torn.len() / 2;
    torn[middle..middle + 20_000].fill(0xa5);
    std::fs::write(at("torn.db"), torn).expect("written");
    std::fs::write(at("text.db"), "no database").expect("written");
    std::fs::write(at("short.db"), &sound[..sound.len() / 2]).expect("written");
    sql(&at("other.db"), "CREATE TABLE shop (id INTEGER)");
    database.run(&["backup", &at("newer.db")]);
    sql(&at("newer.db"), "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 0)");
    for (name, reason) in [
        ("torn.db", "cannot be used: "),
        ("text.db", "cannot be used: file is not a database"),
        ("short.db", "cannot be used: "),
        ("other.db", "it is no database of counterpart"),
        ("newer.db", "a newer version of counterpart made"),
        ("none.db", "cannot be used: No such file"),
        ("counterpart.db", "is the database itself"),
    ] {
        let said = database.fails(&["restore", &at(name)]);
        assert!(said.contains(reason) && said.contains(&format!("`{}`", at(name))), "{name}: {said}");
        assert_eq!(contacts(&database), before, "{name}");
    }
    assert_eq!(beside(&database, ".partial"), Vec::<String>::new(), "nothing is left");
    let said = database.fails(&["backup", &at("sound.db")]);
    assert!(said.contains("is there already; name a new file"), "{said}");
    assert_eq!(std::fs::read(at("sound.db")).expect("the back-up"), sound);
}

#[test]
fn an_interrupted_restore_is_reported_and_can_be_repeated() {
    let Some(database) = database() else { return };
    let (path, before) = (file(&database), contacts(&database));
    let restoring = format!("{path}.restoring");
    database.run(&["backup", &restoring]);
    let other = database.folder().join("other.db").display().to_string();
    for command in
        [&["store", "create", "--id", "s", "--name", "S"][..], &["backup", &other], &["restore", &path.replace("counterpart.db", "x.db")]]
    {
        let said = database.fails(command);
        assert!(said.contains(&format!("run `counterpart restore {restoring}`")) || said.contains("No such file"), "{command:?}: {said}");
    }
    // Simulates a restore that was killed after it had given the former database a second name. This name contains the modification time of
    // the copied back-up. So the repeated restore must use the same name, and not add another.
    let copied = std::fs::metadata(&restoring).and_then(|found| found.modified()).expect("a time");
    let copied = chrono::DateTime::<chrono::Utc>::from(copied).format("%Y-%m-%dT%H-%M-%S.000Z").to_string();
    let kept = format!("{path}.before-{copied}");
    std::fs::hard_link(&path, &kept).expect("linked");
    database.run(&["restore", &restoring]);
    assert!(!Path::new(&restoring).exists());
    assert_eq!(contacts(&database), before);
    assert_eq!(beside(&database, ".before-"), [Path::new(&kept).file_name().unwrap_or_default().to_string_lossy()]);
}

/// Returns the names of the files in the database's folder whose names contain `part`.
fn beside(database: &Database, part: &str) -> Vec<String> {
    let entries = std::fs::read_dir(database.folder()).expect("the folder").filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.contains(part)).collect()
}

#[test]
fn a_restore_keeps_mode_and_links_and_creates_a_missing_database() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let Some(database) = database() else { return };
    let path = file(&database);
    let at = |name: &str| database.folder().join(name).display().to_string();
    database.run(&["backup", &at("backup.db")]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).expect("a mode");
    // From here on, `DATABASE_URL` names a symbolic link to the database file.
    symlink(&path, at("link.db")).expect("a link");
    let url = format!("sqlite://{}", at("link.db"));
    let before = contacts(&database);
    database.run_with(&[("DATABASE_URL", &url)], &["store", "create", "--id", "later", "--name", "Later"]);
    database.run_with(&[("DATABASE_URL", &url)], &["restore", &at("backup.db")]);
    assert!(Path::new(&at("link.db")).is_symlink());
    assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o660);
    assert!(!database.run(&["store", "list"]).contains("later"));
    assert_eq!(contacts(&database), before);
    let former = beside(&database, ".before-");
    assert_eq!(former.len(), 1, "{former:?}");
    let said = database.fails(&["restore", &path]);
    assert!(said.contains("is the database itself"), "{said}");
    // The restore fails, because the back-up is not a database. It must create no file at the path of the new database.
    let nothing = format!("sqlite://{}", at("nothing.db"));
    std::fs::write(at("text"), "no database").expect("written");
    database.fails_with(&[("DATABASE_URL", &nothing)], &["restore", &at("text")]);
    assert_eq!(beside(&database, "nothing.db"), Vec::<String>::new());
    let nowhere = format!("sqlite://{}", at("new.db"));
    database.run_with(&[("DATABASE_URL", &nowhere)], &["restore", &at("backup.db")]);
    assert!(!beside(&database, "new.db").iter().any(|name| name.contains("before") || name.contains("partial")));
    assert!(database.run_with(&[("DATABASE_URL", &nowhere)], &["store", "list"]).contains("desk"));
}

#[test]
fn backup_and_restore_of_postgres_are_refused_with_its_tools_named() {
    let database = Database::fresh();
    if database.postgres.is_none() {
        return;
    }
    for (command, instead) in [("backup", "pg_dump"), ("restore", "pg_restore")] {
        let said = database.fails(&[command, "file.db"]);
        assert!(said.contains(instead), "{said}");
    }
}
