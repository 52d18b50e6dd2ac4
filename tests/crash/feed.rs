//! Crash test of the feeds: SIGKILL ends the server, and the copy that follows it, again and again under load. A reader that resumes gets
//! each event once, and the copy is equal to an export, byte for byte.
//!
//! `COUNTERPART_CRASH_CYCLES` sets how often the server is killed, `COUNTERPART_FEED_WRITES` how many writes there are at least:
//! `COUNTERPART_FEED_WRITES=100000 cargo test --test crash feeds -- --nocapture` is the long run.

use std::{
    fs,
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    Dead, PATIENCE, STORE, WRITERS,
    client::Api,
    fixture::ANN,
    harness::{ALL_SCOPES, Database, Server},
    joined, lines,
    load::{Dice, LABELS, label_id},
    model, seed, setting,
};

/// The number of kills, unless `COUNTERPART_CRASH_CYCLES` sets it.
const CYCLES: u64 = 4;

/// A client of the feed of events, which keeps the last sequence number that it received.
struct Reader {
    token: String,
    after: i64,
}

impl Reader {
    /// Reads until the server is gone.
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

    /// Takes a page, which must go on where the last one ended.
    fn take(&mut self, page: &Value) {
        for event in page.as_array().into_iter().flatten() {
            assert_eq!(event["sequence"], self.after + 1, "{event}");
            self.after += 1;
        }
    }
}

/// Writes at random until the server is gone.
fn write(api: &Api, number: usize, cycle: u64, mut dice: Dice, killing: &AtomicBool, answered: &AtomicUsize) {
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

/// A copy that follows the server until it is killed.
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
fn feeds_and_copies_lose_nothing_when_server_and_reader_are_killed() {
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
        let mut dice = Dice::new(seed, cycle, WRITERS);
        let database = thread::scope(|scope| {
            let (api, killing, answered) = (&api, &killing, &answered);
            let write = |number| scope.spawn(move || write(api, number, cycle, Dice::new(seed, cycle, number), killing, answered));
            let writers: Vec<_> = (0..WRITERS).map(write).collect();
            let reading = scope.spawn(|| reader.read(api, killing));
            let start = Instant::now();
            while answered.load(Ordering::Relaxed) == 0 && start.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(1));
            }
            // The reader is killed first, and another one takes its place; then the server is killed, and the reader waits for the next.
            thread::sleep(Duration::from_millis(100 + dice.roll(900) as u64));
            kill(std::mem::replace(&mut copy, follow(&server.database, &to, &url, &token)));
            thread::sleep(Duration::from_millis(100 + dice.roll(900) as u64));
            killing.store(true, Ordering::SeqCst);
            let database = server.kill();
            writers.into_iter().for_each(|writer| joined(writer.join()));
            joined(reading.join());
            database
        });
        let dead = Dead::of(&database);
        server = Server::start_with(database, &[("COUNTERPART_LISTEN", &address)]);
        dead.wait(&server.database);
        total += answered.load(Ordering::Relaxed) as u64;
        cycle += 1;
        // A seat comes and goes, so that the copy has something to remove.
        let role = json!({"kind": "user", "record": {"id": "seat-passing", "email": format!("p{cycle}@example.com")}});
        server.database.import(STORE, &[role]);
        let removal = server.api_of(&key).anonymous().raw("DELETE", "/settings/v1/users").query("id", "seat-passing");
        removal.header("authorization", &format!("Bearer {token}")).exchange().ok();
        // The long run compares now and then, since an export of much takes long.
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

/// Brings the copy up to date; it must then be equal to an export.
fn compare(database: &Database, to: &str, url: &str, token: &str) {
    database.run_with(&[("COUNTERPART_TOKEN", token)], &["copy", "--to", to, "--url", url, "--once"]);
    let (copied, exported) = (fs::read_to_string(to).expect("the copy"), database.run(&["export", "--store", STORE]));
    assert!(copied.trim_end() == exported, "the copy of {} lines differs from {} lines", copied.lines().count(), exported.lines().count());
}
