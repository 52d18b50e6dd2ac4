//! Tests of encryption at rest. The database stores the secrets of webhooks, of bridges (endpoints that pass messages on to their channel)
//! and of the server itself. It stores them encrypted, with a key that is stored outside the database. Also tests the permissions of the
//! files that a process creates.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use crate::{
    delivery_receiver::{Endpoint, PRIVATE, until},
    fixture::channels,
    harness::{ALL_SCOPES, Database, Server},
};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER: &str = "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=";
const SETTING: &str = "COUNTERPART_SECRET_KEY";

fn shop() -> Database {
    Database::with(&[("shop", channels())])
}

/// Waits until the server's log has these words. A separate thread of the server writes the log, so a line can appear after the event that
/// it reports.
#[track_caller]
fn logs(server: &Server, words: &[&str]) {
    until(&format!("{words:?} are logged"), || words.iter().all(|word| server.log().contains(word)));
}

/// Creates a webhook; returns its id and its secret.
#[track_caller]
fn hook(database: &Database, key: &str, url: &str) -> (String, String) {
    let made = database.run_with(&[(SETTING, key)], &["webhook", "create", "--store", "shop", "--url", url, "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap_or_else(|error| panic!("{made}: {error}"));
    let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
    (text("id"), text("secret"))
}

/// Returns the secrets in a table, each as its stored bytes in hexadecimal and the id of the key that encrypts it (empty if unencrypted).
fn stored(database: &Database, table: &str) -> Vec<(String, String)> {
    let value = if table == "server_secrets" { "value" } else { "secret" };
    let hex = if database.postgres.is_some() { format!("encode({value}, 'hex')") } else { format!("lower(hex({value}))") };
    let ask = |column: &str| database.ask(&format!("SELECT {column} FROM {table} ORDER BY {value}"));
    ask(&hex).into_iter().zip(ask("COALESCE(key_id, '')")).collect()
}

fn hex(secret: &str) -> String {
    let bytes = BASE64.decode(secret.trim_start_matches("whsec_")).expect("a secret");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces the stored secret of every webhook by the unencrypted `secret`.
fn make_plain(database: &Database, secret: &str) {
    let bytes = if database.postgres.is_some() { format!("'\\x{}'::bytea", hex(secret)) } else { format!("X'{}'", hex(secret)) };
    database.sql(&format!("UPDATE webhook_secrets SET secret = {bytes}, key_id = NULL"));
}

#[track_caller]
fn test_event(database: &Database, key: &str, id: &str) {
    database.run_with(&[(SETTING, key)], &["webhook", "test", "--store", "shop", "--id", id]);
}

fn attempts(database: &Database, key: &str, id: &str) -> Vec<Value> {
    let log = database.run_with(&[(SETTING, key)], &["webhook", "log", "--store", "shop", "--id", id]);
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn every_stored_secret_is_encrypted() {
    let database = shop();
    let keyed = [(SETTING, KEY)];
    let (_, first) = hook(&database, KEY, "https://example.com/");
    let second = database.run_with(&keyed, &["bridge", "set", "--store", "shop", "--account", "acc-wa", "--url", "https://example.com/"]);
    let server = Server::start_with(database, &keyed);
    for (table, secrets) in [("webhook_secrets", vec![&first]), ("bridge_secrets", vec![&second]), ("server_secrets", vec![])] {
        let stored = stored(&server.database, table);
        assert!(!stored.is_empty(), "{table}");
        for (bytes, key_id) in &stored {
            assert_eq!(key_id.len(), 16, "{table}");
            assert!(!secrets.iter().any(|secret| bytes.contains(&hex(secret))), "{table}");
        }
    }
    let listed = server.database.run_with(&keyed, &["secrets", "list"]);
    assert!(listed.lines().count() == 1 && listed.contains("\"readable\":true") && listed.contains("\"secrets\":4"), "{listed}");
}

#[test]
fn plain_secrets_are_encrypted_at_the_first_start_with_a_key() {
    let (database, endpoint) = (shop(), Endpoint::open());
    let (id, secret) = hook(&database, KEY, &endpoint.url());
    make_plain(&database, &secret);
    let server = Server::start_with(database, &[PRIVATE, &[(SETTING, KEY)]].concat());
    let now = stored(&server.database, "webhook_secrets");
    assert!(now.iter().all(|(bytes, key_id)| !bytes.contains(&hex(&secret)) && !key_id.is_empty()), "{now:?}");
    test_event(&server.database, KEY, &id);
    until("the event came", || !endpoint.seen().is_empty());
    assert!(endpoint.seen()[0].is_signed_by(&secret));
}

#[test]
fn a_wrong_key_affects_only_deliveries_with_secrets_that_it_cannot_decrypt() {
    let (database, endpoint) = (shop(), Endpoint::open());
    let (id, secret) = hook(&database, KEY, &endpoint.url());
    let bridge = ["bridge", "set", "--store", "shop", "--account", "acc-wa", "--url", &endpoint.url()].map(str::to_owned);
    database.run_with(&[(SETTING, KEY)], &bridge.iter().map(String::as_str).collect::<Vec<_>>());
    // Starts a server with the key `KEY`, so that the server's own secrets are encrypted with the same key as the secrets of webhook and
    // bridge.
    let database = Server::start_with(database, &[(SETTING, KEY)]).kill();
    let server = Server::start_with(database, &[PRIVATE, &[(SETTING, OTHER)]].concat());
    let (database, api) = (&server.database, server.api("shop", &ALL_SCOPES));
    // This server has only the key `OTHER`, so it cannot decrypt the stored secrets. Requests that need none of these secrets still
    // succeed, including pagination and writes.
    let first = api.post("/tickets/list", json!({"statuses": ["open", "closed"]})).query("pageSize", 1).send();
    let cursor = first.header("x-pagination-next-cursor").expect("a further page").to_owned();
    api.post("/tickets/list", json!({"statuses": ["open", "closed"]})).query("pageSize", 1).query("cursor", &cursor).send().ok();
    api.post("/messages", json!({"conversationId": "conv-line", "text": "hello"})).send().ok();
    api.post("/messages", json!({"conversationId": "conv-wa", "text": "over the bridge"})).send().ok();
    test_event(database, OTHER, &id);
    until("deliveries failed", || !attempts(database, OTHER, &id).is_empty());
    let attempt = attempts(database, OTHER, &id).remove(0);
    let reason = attempt["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("encrypted with the key") && reason.contains("does not have"), "{attempt}");
    until("the bridge failed", || {
        database
            .ask("SELECT COALESCE(failure, '') FROM messages WHERE conversation_id = 'conv-wa' ORDER BY sent_at DESC")
            .iter()
            .any(|failure| failure.contains("does not have"))
            || database.ask("SELECT message_id FROM outbound WHERE attempts > 0").len() == 1
    });
    assert!(endpoint.seen().is_empty());
    logs(&server, &["secrets are encrypted with a key that this server does not have"]);
    let listed = database.run_with(&[(SETTING, OTHER)], &["secrets", "list"]);
    assert!(listed.contains("\"readable\":false"), "{listed}");
    let complaint = database.fails_with(&[(SETTING, OTHER)], &["secrets", "rotate"]);
    assert!(complaint.contains("4 secrets stay as they are"), "{complaint}");
    // The last server has both keys. So it can decrypt the webhook's secret and sign the deliveries.
    let server = Server::start_with(server.kill(), &[PRIVATE, &[(SETTING, &format!("{OTHER} {KEY}"))]].concat());
    let again = ["webhook", "replay", "--store", "shop", "--id", &id, "--missing", "--since", "2020-01-01T00:00:00Z"];
    server.database.run_with(&[(SETTING, KEY)], &again);
    until("the events came", || endpoint.seen().iter().any(|seen| seen.is_signed_by(&secret)));
}

#[test]
fn secrets_cannot_be_exchanged_between_rows() {
    let (database, endpoint) = (shop(), Endpoint::open());
    let (id, _) = hook(&database, KEY, &endpoint.url());
    let (other, _) = hook(&database, KEY, "https://example.com/");
    database.sql(&format!(
        "UPDATE webhook_secrets SET secret = (SELECT s.secret FROM webhook_secrets s WHERE s.store_id = 'shop' AND s.webhook_id = '{other}') \
         WHERE store_id = 'shop' AND webhook_id = '{id}'"
    ));
    let server = Server::start_with(database, &[PRIVATE, &[(SETTING, KEY)]].concat());
    test_event(&server.database, KEY, &id);
    until("the delivery failed", || !attempts(&server.database, KEY, &id).is_empty());
    let attempt = attempts(&server.database, KEY, &id).remove(0);
    assert!(attempt["reason"].as_str().is_some_and(|reason| reason.contains("the secret is damaged")), "{attempt}");
    assert!(endpoint.seen().is_empty());
}

#[test]
fn secrets_are_reencrypted_while_a_server_runs() {
    let (database, endpoint) = (shop(), Endpoint::open());
    let file = database.folder().join("keys");
    fs::write(&file, format!("{KEY}\n")).expect("a key file");
    let named = file.display().to_string();
    let keyed = [("COUNTERPART_SECRET_KEY_FILE", named.as_str())];
    let (id, secret) = hook(&database, KEY, &endpoint.url());
    let before = stored(&database, "webhook_secrets");
    let server = Server::start_with(database, &[PRIVATE, &keyed[..]].concat());
    fs::write(&file, format!("{OTHER}\n{KEY}\n")).expect("a key file");
    let printed = server.database.run_with(&keyed, &["secrets", "rotate"]);
    let after = stored(&server.database, "webhook_secrets");
    assert!(printed.contains(&format!("encrypted 3 secrets with the key {}", after[0].1)), "{printed}");
    assert_ne!(before[0].1, after[0].1);
    // The key file now has only the new key, with which `secrets rotate` encrypted the webhook's secret again. The running server can sign
    // a delivery only if it has read the new key from the file.
    fs::write(&file, format!("{OTHER}\n")).expect("a key file");
    server.database.run_with(&keyed, &["webhook", "test", "--store", "shop", "--id", &id]);
    until("the event came", || !endpoint.seen().is_empty());
    assert!(endpoint.seen()[0].is_signed_by(&secret));
    assert!(server.database.run_with(&keyed, &["secrets", "rotate"]).contains("encrypted 0 secrets"));
}

#[test]
fn a_sqlite_file_without_a_configured_key_has_a_key_file_beside_it() {
    let (database, endpoint) = (shop(), Endpoint::open());
    if database.postgres.is_some() {
        // On PostgreSQL without a configured key, secrets are stored unencrypted. The server logs this when it starts.
        let made = database.run(&["webhook", "create", "--store", "shop", "--url", &endpoint.url()]);
        let server = Server::start(database);
        assert_eq!(stored(&server.database, "webhook_secrets"), [(hex(&made), String::new())]);
        logs(&server, &["stored as they are", "COUNTERPART_SECRET_KEY_FILE"]);
        return;
    }
    let file = database.folder().join("counterpart.db.key");
    let first = fs::read_to_string(&file).expect("a key file");
    let created = ["webhook", "create", "--store", "shop", "--url", &endpoint.url(), "--json"].map(str::to_owned);
    let created: Vec<&str> = created.iter().map(String::as_str).collect();
    let made: Value = serde_json::from_str(&database.run(&created)).expect("JSON");
    let id = made["id"].as_str().unwrap_or_default();
    let server = Server::start_with(database, PRIVATE);
    let database = &server.database;
    for round in 1..=2 {
        database.run(&["secrets", "rotate"]);
        let keys = fs::read_to_string(&file).expect("a key file");
        assert_eq!(keys.lines().count(), 2, "the new key and the one before");
        assert_eq!(keys.contains(first.trim()), round == 1);
        assert_eq!(fs::metadata(&file).expect("a key file").permissions().mode() & 0o777, 0o600);
        database.run(&["webhook", "test", "--store", "shop", "--id", id]);
        until("the event came", || endpoint.seen().len() == round);
        assert!(endpoint.seen()[round - 1].is_signed_by(made["secret"].as_str().unwrap_or_default()));
    }
}

#[test]
fn an_invalid_key_is_refused_at_the_start() {
    let database = shop();
    let complaint = database.fails_with(&[(SETTING, "c2hvcnQ=")], &["secrets", "list"]);
    assert!(complaint.contains(SETTING) && complaint.contains("32 bytes in base64") && !complaint.contains("c2hvcnQ="), "{complaint}");
    let complaint = database.fails_with(&[("COUNTERPART_SECRET_KEY_FILE", "/nowhere/keys")], &["secrets", "list"]);
    assert!(complaint.contains("`/nowhere/keys` cannot be read"), "{complaint}");
}

/// Adds the paths of all files and folders below a folder to `found`.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        found.push(entry.path());
        if entry.path().is_dir() {
            below(&entry.path(), found);
        }
    }
}

/// The test harness starts the server and the commands with a umask of 0. So the program itself must restrict the access to the files that
/// it creates.
#[test]
fn created_files_are_accessible_only_to_their_owner() {
    let database = shop();
    let export = database.folder().join("export.ndjson");
    database.run(&["export", "--store", "shop", &export.display().to_string()]);
    let server = Server::start(database);
    let api = server.api("shop", &ALL_SCOPES);
    api.post("/messages", json!({"conversationId": "conv-web", "text": "found"})).send().ok();
    let mut found = Vec::new();
    below(server.database.folder(), &mut found);
    // Leaves out the files that the tests write themselves.
    let own = |path: &PathBuf| !["server.log", "shop.ndjson"].iter().any(|name| path.ends_with(name));
    let found: Vec<_> = found.into_iter().filter(own).collect();
    assert!(found.len() > 5 && found.contains(&export), "{found:?}");
    let open = |path: &&PathBuf| fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    assert_eq!(found.iter().filter(open).collect::<Vec<_>>(), [] as [&PathBuf; 0]);
}

/// Returns the number of secrets that can be decrypted and the number of those that cannot, according to `secrets list`.
fn counted(database: &Database) -> [u64; 2] {
    let listed = database.run(&["secrets", "list"]);
    let mut counts = [0, 0];
    for line in listed.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        counts[usize::from(line["readable"] != json!(true))] += line["secrets"].as_u64().unwrap_or_default();
    }
    counts
}

/// Starts a command on a SQLite file, and does not wait for its end.
fn started(database: &Database, arguments: &[&str]) -> std::process::Child {
    std::process::Command::new(crate::harness::BINARY)
        .args(arguments)
        .env("DATABASE_URL", &database.url)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts")
}

#[test]
fn rotations_that_are_killed_or_run_at_once_lose_no_secret() {
    let database = shop();
    if database.postgres.is_some() {
        // On PostgreSQL the program creates no key file, so there is nothing to test.
        return;
    }
    let hooks: Vec<_> = (0..5).map(|_| database.run(&["webhook", "create", "--store", "shop", "--url", "https://example.com/"])).collect();
    let before = counted(&database);
    assert_eq!(before, [hooks.len() as u64 + before[0] - 5, 0]);
    for pause in [0, 20, 40, 60, 80, 100, 150, 200] {
        let mut rotation = started(&database, &["secrets", "rotate"]);
        std::thread::sleep(std::time::Duration::from_millis(pause));
        rotation.kill().expect("it is a process of this test");
        rotation.wait().expect("it is a process of this test");
        assert_eq!(counted(&database), before, "killed after {pause} ms");
    }
    let rotations: Vec<_> = (0..4).map(|_| started(&database, &["secrets", "rotate"])).collect();
    for rotation in rotations {
        let outcome = rotation.wait_with_output().expect("it ends");
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
    assert_eq!(counted(&database), before);
    database.run(&["secrets", "rotate"]);
    assert_eq!((database.run(&["secrets", "list"]).lines().count(), counted(&database)), (1, before));
}

#[test]
fn processes_that_start_at_once_encrypt_with_one_key() {
    let database = Database::of(crate::harness::BINARY);
    let starts: Vec<_> = ["a", "b", "c", "d"].map(|id| started(&database, &["store", "create", "--id", id, "--name", "Shop"])).into();
    for start in starts {
        let outcome = start.wait_with_output().expect("it ends");
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
    let file = fs::read_to_string(database.folder().join("counterpart.db.key")).expect("a key file");
    assert_eq!(file.lines().count(), 1);
}

#[test]
fn a_lost_key_of_a_sqlite_file_leaves_everything_else_working() {
    let (database, endpoint) = (shop(), Endpoint::open());
    if database.postgres.is_some() {
        return;
    }
    let made: Value =
        serde_json::from_str(&database.run(&["webhook", "create", "--store", "shop", "--url", &endpoint.url(), "--json"])).expect("JSON");
    let (id, file) = (made["id"].as_str().unwrap_or_default(), database.folder().join("counterpart.db.key"));
    let lost = fs::read_to_string(&file).expect("a key file");
    fs::remove_file(&file).expect("a key file");
    let server = Server::start_with(database, PRIVATE);
    let (database, api) = (&server.database, server.api("shop", &ALL_SCOPES));
    api.post("/messages", json!({"conversationId": "conv-line", "text": "hello"})).send().ok();
    logs(&server, &["a key that this server does not have"]);
    // The key that encrypts the webhook's secret is lost. After `webhook rotate`, the server signs deliveries with a new secret. Once the
    // lost key is back in the key file, the server signs deliveries with the old and with the new secret.
    let fresh = database.run(&["webhook", "rotate", "--store", "shop", "--id", id]);
    database.run(&["webhook", "test", "--store", "shop", "--id", id]);
    until("the event came", || endpoint.seen().iter().any(|seen| seen.is_signed_by(fresh.trim())));
    let both = format!("{}{lost}", fs::read_to_string(&file).expect("a key file"));
    fs::write(&file, both).expect("a key file");
    database.run(&["webhook", "test", "--store", "shop", "--id", id]);
    let old = made["secret"].as_str().unwrap_or_default();
    until("it is signed with both secrets", || {
        endpoint.seen().iter().any(|seen| seen.is_signed_by(old) && seen.is_signed_by(fresh.trim()))
    });
}

#[test]
fn a_key_file_damaged_while_a_server_runs_prevents_only_new_secrets() {
    let keys = tempfile::tempdir().expect("a directory for temporary files");
    let file = keys.path().join("keys");
    fs::write(&file, KEY).expect("a key file");
    let fixture = crate::settings::SettingsFixture::with(&[("COUNTERPART_SECRET_KEY_FILE", &file.display().to_string())]);
    fs::write(&file, &KEY[..20]).expect("a key file");
    let create = || fixture.call("POST", "/webhooks").json(json!({"url": "https://example.com/"})).send();
    let refused = create();
    let message = refused.fails(503);
    assert!(message.contains("a secret cannot be encrypted") && !message.contains(&KEY[..20]), "{message}");
    fixture.shop.comment("conv-free", "as ever").ok();
    fs::write(&file, KEY).expect("a key file");
    create().ok();
}

#[test]
fn nothing_of_a_plain_secret_stays_in_a_sqlite_file() {
    let database = shop();
    if database.postgres.is_some() {
        return;
    }
    let create = || database.run(&["webhook", "create", "--store", "shop", "--url", "https://example.com/"]);
    let secret = (0..25).map(|_| create()).next_back().expect("25 of them");
    // Replaces the encrypted secrets by 200 equal unencrypted ones, eight for each webhook, as a build without encryption would have stored
    // them. So many rows fill several pages of the file. If the program did not overwrite replaced secrets, some of them would stay in free
    // space of the pages. With few rows they would not, and the test would prove nothing.
    database.sql("DELETE FROM webhook_secrets; VACUUM");
    let rows = "webhooks, (VALUES (1), (2), (3), (4), (5), (6), (7), (8))";
    let plain = format!("SELECT store_id, id, X'{}' FROM {rows} ORDER BY random()", hex(&secret));
    database.sql(&format!("INSERT INTO webhook_secrets (store_id, webhook_id, secret) {plain}"));
    let bytes = BASE64.decode(secret.trim().trim_start_matches("whsec_")).expect("a secret");
    let file = database.folder().join("counterpart.db");
    let holds = || {
        // Copies the WAL into the database file (a checkpoint), so that the file has all changes.
        database.sql("PRAGMA wal_checkpoint(TRUNCATE)");
        fs::read(&file).expect("a database").windows(bytes.len()).any(|window| window == bytes)
    };
    assert!(holds());
    database.run(&["secrets", "list"]);
    assert!(!holds());
}

#[test]
fn files_that_others_may_read_are_reported_at_the_start() {
    let database = shop();
    if database.postgres.is_some() {
        return;
    }
    let server = Server::start(database);
    assert!(!server.log().contains("other accounts"), "{}", server.log());
    let database = server.kill();
    fs::set_permissions(database.folder().join("counterpart.db"), fs::Permissions::from_mode(0o644)).expect("a mode");
    let server = Server::start(database);
    logs(&server, &["other accounts", "counterpart.db", "644"]);
}
