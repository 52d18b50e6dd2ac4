//! Crash test of two readers of a store. One is a client of the event feed, with which the server lists the recorded events. The other is
//! the process `counterpart copy`, which keeps a copy of the store's records. Under load, SIGKILL ends the server and the copying process
//! again and again. The client continues reading the event feed after each kill, and must get each event exactly once. The copy must be
//! equal to an export, byte for byte.
//!
//! `COUNTERPART_CRASH_CYCLES` sets the minimum number of kills, `COUNTERPART_FEED_WRITES` the minimum number of writes. The command for a
//! long run is `COUNTERPART_FEED_WRITES=100000 cargo test --test crash feeds -- --nocapture`.

use std::{
    fs,
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    KilledSessions, SERVER_TIMEOUT, STORE, WRITERS,
    client::Api,
    fixture::ANN,
    harness::{ALL_SCOPES, Database, Server},
    joined, lines,
    load::{LABELS, SeededRandom, label_id},
    model, seed, setting,
};

/// The minimum number of kills, unless `COUNTERPART_CRASH_CYCLES` sets it.
const CYCLES: u64 = 4;

/// A client of the event feed, which remembers the sequence number of the last event that it received.
struct Reader {
    token: String,
    after: i64,
}

impl Reader {
    /// Reads the event feed until the server is killed.
    fn read(&mut self, api: &Api, killing: &AtomicBool) {
        loop {
            let call = api.anonymous().raw("GET", "/settings/v1/events").query("after", self.after).query("wait", 5).query("limit", 500);
            let Ok(answer) = call.header("authorization", &format!("Bearer {}", self.token)).attempt() else {
                assert!(killing.load(Ordering::SeqCst), "a living server gave no answer");
                return;
            };
            self.take(&answer.ok());
        }
    }

    /// Asserts that the events of a page follow the last received event without a gap. Updates `after`.
    fn take(&mut self, page: &Value) {
        for event in page.as_array().into_iter().flatten() {
            assert_eq!(event["sequence"], self.after + 1, "{event}");
            self.after += 1;
        }
    }
}

/// Sends random writes until the server is killed.
fn write(api: &Api, number: usize, cycle: u64, mut dice: SeededRandom, killing: &AtomicBool, answered: &AtomicUsize) {
    let (conversation, ticket) = (model::conversation(number), model::ticket(number));
    for serial in 0.. {
        let value = format!("w{number}.{cycle}.{serial}");
        let call = match dice.roll(6) {
            0 => api.post("/messages", json!({"conversationId": conversation, "text": value})),
            1 => api.post("/messages/internal-comments", json!({"conversationId": conversation, "text": value})),
            2 => api.post("/contacts", json!({"firstName": "Kim", "email": format!("{value}@example.com")})),
            3 => api.call("PATCH", "/tickets/field-values").json(json!({"ticketId": ticket, "ticketFieldId": "f-text", "newValue": value})),
            4 => {
                let (add, remove) = (label_id(serial % LABELS), label_id((serial + 1) % LABELS));
                api.call("PATCH", "/conversations/labels")
                    .json(json!({"conversationId": conversation, "addLabels": [add], "removeLabels": [remove]}))
            }
            _ => api.post("/conversations/mark-read", json!({"conversationId": conversation})),
        };
        match call.attempt() {
            Ok(answer) => assert_eq!(answer.status, 200, "{}", answer.described()),
            Err(error) => return assert!(killing.load(Ordering::SeqCst), "a living server gave no answer: {error}"),
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts `counterpart copy`, which follows the change feed and updates the copy until the process is killed.
fn follow(database: &Database, to: &str, url: &str, token: &str) -> Child {
    let mut command = database.command();
    command.args(["copy", "--to", to, "--url", url]).env("COUNTERPART_TOKEN", token).stdin(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the copy starts")
}

fn kill(mut copy: Child) {
    assert!(matches!(copy.try_wait(), Ok(None)), "the copy ended by itself");
    copy.kill().expect("the copy is killed");
    copy.wait().expect("the copy ends");
}

#[test]
fn event_feeds_and_store_copies_miss_nothing_when_server_and_copy_are_killed() {
    let (cycles, writes) = (setting("COUNTERPART_CRASH_CYCLES").unwrap_or(CYCLES), setting("COUNTERPART_FEED_WRITES").unwrap_or(0));
    let seed = seed();
    let database = Database::fresh();
    database.store(STORE, &lines());
    let (key, token) = (database.key(STORE, &ALL_SCOPES), database.run(&["settings", "token", "--store", STORE, "--user", ANN]));
    let file = database.folder().join("copy.ndjson");
    let to = file.to_string_lossy().into_owned();
    let mut server = Server::start(database);
    let address = server.address.clone();
    let url = format!("http://{address}");
    let mut reader = Reader { token: token.clone(), after: 0 };
    let (mut cycle, mut total, begun) = (0, 0, Instant::now());
    let mut copy = follow(&server.database, &to, &url, &token);
    while cycle < cycles || total < writes {
        let api = server.api_of(&key);
        let (killing, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut dice = SeededRandom::new(seed, cycle, WRITERS);
        let database = thread::scope(|scope| {
            let (api, killing, answered) = (&api, &killing, &answered);
            let write = |number| scope.spawn(move || write(api, number, cycle, SeededRandom::new(seed, cycle, number), killing, answered));
            let writers: Vec<_> = (0..WRITERS).map(write).collect();
            let reading = scope.spawn(|| reader.read(api, killing));
            let start = Instant::now();
            while answered.load(Ordering::Relaxed) == 0 && start.elapsed() < SERVER_TIMEOUT {
                thread::sleep(Duration::from_millis(1));
            }
            // After a random time, starts a new copying process and kills the old one. After another random time, kills the server. The new
            // copying process waits until the server is restarted.
            thread::sleep(Duration::from_millis(100 + dice.roll(900) as u64));
            kill(std::mem::replace(&mut copy, follow(&server.database, &to, &url, &token)));
            thread::sleep(Duration::from_millis(100 + dice.roll(900) as u64));
            killing.store(true, Ordering::SeqCst);
            let database = server.kill();
            writers.into_iter().for_each(|writer| joined(writer.join()));
            joined(reading.join());
            database
        });
        let dead = KilledSessions::of(&database);
        server = Server::start_with(database, &[("COUNTERPART_LISTEN", &address)]);
        dead.wait(&server.database);
        total += answered.load(Ordering::Relaxed) as u64;
        cycle += 1;
        // Creates a user and deletes it, so that the copy has to delete a record.
        let role = json!({"kind": "user", "record": {"id": "seat-passing", "email": format!("p{cycle}@example.com")}});
        server.database.import(STORE, &[role]);
        let removal = server.api_of(&key).anonymous().raw("DELETE", "/settings/v1/users").query("id", "seat-passing");
        removal.header("authorization", &format!("Bearer {token}")).exchange().ok();
        // A large export takes long. So after the minimum number of cycles, a long run compares the copy only in every tenth cycle.
        if cycle <= cycles || cycle % 10 == 0 {
            kill(copy);
            compare(&server.database, &to, &url, &token);
            copy = follow(&server.database, &to, &url, &token);
        }
    }
    kill(copy);
    compare(&server.database, &to, &url, &token);
    let api = server.api_of(&key);
    loop {
        let call = api.anonymous().raw("GET", "/settings/v1/events").query("after", reader.after).query("limit", 500);
        let page = call.header("authorization", &format!("Bearer {token}")).exchange().ok();
        if page == json!([]) {
            break;
        }
        reader.take(&page);
    }
    let events = server.database.run(&["events", "--store", STORE]).lines().count();
    assert_eq!(reader.after, events as i64);
    println!("{cycle} kills of each side, {total} writes in {:?}, {events} events", begun.elapsed());
}

/// Brings the copy up to date, and asserts that it is equal to an export.
fn compare(database: &Database, to: &str, url: &str, token: &str) {
    database.run_with(&[("COUNTERPART_TOKEN", token)], &["copy", "--to", to, "--url", url, "--once"]);
    let (copied, exported) = (fs::read_to_string(to).expect("the copy"), database.run(&["export", "--store", STORE]));
    assert!(copied.trim_end() == exported, "the copy of {} lines differs from {} lines", copied.lines().count(), exported.lines().count());
}
