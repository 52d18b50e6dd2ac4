//! Crash tests: SIGKILL ends a server under load, again and again on one database. Each time the database must contain every acknowledged
//! write and no part of an unfinished write. Every event must belong to a change that is in the database.
//!
//! - [`feed_readers`] has the crash test of the event feed and of `counterpart copy`, [`search_index`] the crash test of the search index.
//! - [`load`] generates the load: concurrent writers send writes until the server is killed. [`model`] computes the state that the database
//!   must then have.
//! - `COUNTERPART_CRASH_CYCLES=100 cargo test --test crash -- --nocapture` is a long run of 100 kills; the default is a few kills.
//! - The output shows the random seed. `COUNTERPART_CRASH_SEED` sets the seed, to repeat the same random choices, though not the same
//!   timing.
//! - `COUNTERPART_TEST_POSTGRES` names a PostgreSQL server to run on. Only the server under test is killed; PostgreSQL keeps running.

/// Whether the binary under test was built for revision A, the older of the API's two revisions.
const REV_A: bool = cfg!(feature = "rev-a");

#[path = "../api/client.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod client;
#[path = "../api/contract.rs"]
mod contract;
#[path = "../api/fixture/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod fixture;
#[path = "../api/harness.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod harness;

mod feed_readers;
mod load;
mod model;
mod search_index;

use std::{
    collections::HashSet,
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use client::{Api, Call};
use harness::{ALL_SCOPES, Database, Key, Server};
use load::{Load, OPERATIONS, Operation, SeededRandom, Write};
use model::{ConversationModel, Found};
use serde_json::{Value, json};

/// The number of concurrent writers.
const WRITERS: usize = 16;

/// The minimum number of kills, unless `COUNTERPART_CRASH_CYCLES` sets it.
const CYCLES: u64 = 4;
/// The maximum number of kills, unless `COUNTERPART_CRASH_CYCLES` is larger. After the minimum number, the run continues until the server
/// has responded to each kind of operation, but not beyond the maximum.
const MOST_CYCLES: u64 = 40;

/// The store that the writers use.
const STORE: &str = "desk";

/// A page size that both revisions accept on every list.
const PAGE: usize = 15;

/// How long a server or its database may take for a step that a test waits for.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

/// SQL queries that check invariants which no API response shows. Each row that a query finds is a violation.
const NONE: [&str; 6] = [
    "SELECT c.id FROM conversations c WHERE message_count <> (SELECT COUNT(*) FROM messages m WHERE m.conversation_id = c.id)",
    "SELECT conversation_id FROM tickets WHERE is_open GROUP BY conversation_id HAVING COUNT(*) > 1",
    "SELECT ticket_number FROM tickets WHERE CAST(ticket_number AS BIGINT) > (SELECT COUNT(DISTINCT ticket_number) FROM tickets)",
    "SELECT id FROM events WHERE sequence IS NULL",
    "SELECT l.conversation_id FROM conversation_labels l JOIN conversations c ON c.id = l.conversation_id \
     WHERE c.label_ids NOT LIKE '%\"' || l.label_id || '\"%'",
    "SELECT t.id FROM tickets t JOIN conversations c ON c.id = t.conversation_id WHERE t.label_marks <> c.label_marks",
];

/// The numbers of writes by their outcome, for one kill or for the whole run.
#[derive(Debug, Default)]
struct KillCounts {
    answered: usize,
    /// The numbers of writes that were in flight when the server was killed: `happened` took effect, `lost` did not.
    happened: usize,
    lost: usize,
    /// The number of writes that were sent again: with the same idempotency key or, if they are inbound messages, with the same external
    /// id.
    repeated: usize,
    operations: HashSet<Operation>,
}

impl KillCounts {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.happened += other.happened;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.operations.extend(other.operations);
    }
}

/// The store under load, and its expected content.
struct StoreUnderLoad {
    key: Key,
    talks: Vec<ConversationModel>,
    contacts: HashSet<String>,
    /// Every event read so far, as `counterpart events` printed it.
    events: Vec<String>,
}

#[test]
fn a_killed_server_loses_no_answered_write_and_leaves_no_partial_write() {
    let cycles = setting("COUNTERPART_CRASH_CYCLES").unwrap_or(CYCLES);
    let seed = seed();

    let database = Database::fresh();
    database.store(STORE, &lines());
    let key = database.key(STORE, &ALL_SCOPES);
    let mut server = Server::start(database);
    let api = server.api_of(&key);
    let contacts = news(&api.post("/contacts/list", json!({})), &HashSet::new()).iter().map(id).collect();
    let mut world = StoreUnderLoad { key, talks: (0..WRITERS).map(ConversationModel::imported).collect(), contacts, events: Vec::new() };

    let chosen: HashSet<_> = OPERATIONS.iter().filter(|(_, weight)| *weight > 0).map(|(operation, _)| *operation).collect();
    let mut tally = KillCounts::default();
    for cycle in 0..MOST_CYCLES.max(cycles) {
        // The run ends once the server has responded to each kind of operation. On a slow machine this may take more than the minimum
        // number of cycles, since few writes get a response between two kills.
        if cycle >= cycles && tally.operations == chosen {
            break;
        }
        let mut dice = SeededRandom::new(seed, cycle, WRITERS);
        let delay = Duration::from_millis(50 + dice.roll(551) as u64);
        // An inbound message reopens a ticket that was closed within the store's reopen window. The test alternates the window between 24
        // hours and none, so that tickets are reopened in some cycles and newly opened in others.
        let reopens = cycle % 2 == 0;
        let hours = if reopens { "24" } else { "0" };
        server.database.run(&["store", "edit", "--id", STORE, "--reopen-window-hours", hours]);

        let logs;
        (server, logs) = world.crash(server, seed, cycle, delay);
        let part = world.inspect(&server, &logs, reopens);
        println!(
            "cycle {cycle}: killed after {} ms; {} answered; of those in flight {} had happened and {} had not; {} repeated",
            delay.as_millis(),
            part.answered,
            part.happened,
            part.lost,
            part.repeated
        );
        assert!(part.answered > 0, "a kill before the first answer shows nothing");
        tally.add(part);
    }
    world.compare(&server, true);
    let read = server.database.run(&["events", "--store", STORE]);
    assert!(read.lines().eq(world.events.iter().map(String::as_str)), "events differ from when they were first read");

    println!("in all: {tally:?}");
    // Checks that the run contained the cases that it should test.
    assert_eq!(tally.operations, chosen, "the operations that were answered at least once");
    assert!(tally.lost > 0, "no kill cut a write off");
    assert!(tally.repeated > 0, "no write was sent again");
    assert!(cycles < 100 || tally.happened > 0, "no kill came between a commit and its answer");
}

impl StoreUnderLoad {
    /// Puts the server under load, kills it, and starts another server on the same database. Returns the new server and the log of each
    /// writer.
    fn crash(&mut self, server: Server, seed: u64, cycle: u64, delay: Duration) -> (Server, Vec<Vec<Write>>) {
        let api = server.api_of(&self.key);
        let url = server.database.url.clone();
        let (killing, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let load = Load { api: &api, url: &url, cycle, killing: &killing, answered: &answered };
        let (talks, events) = (&self.talks, &mut self.events);
        let (database, logs) = thread::scope(|scope| {
            let load = &load;
            let write = |(number, talk)| scope.spawn(move || load.write(number, talk, SeededRandom::new(seed, cycle, number)));
            let writers: Vec<_> = talks.iter().enumerate().map(write).collect();
            let reader = scope.spawn(move || load.read_events(events, SeededRandom::new(seed, cycle, WRITERS + 1)));

            let start = Instant::now();
            while answered.load(Ordering::Relaxed) == 0 && start.elapsed() < SERVER_TIMEOUT {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(delay);
            killing.store(true, Ordering::SeqCst);
            let database = server.kill();
            let logs = writers.into_iter().map(|writer| joined(writer.join())).collect();
            joined(reader.join());
            (database, logs)
        });
        let dead = KilledSessions::of(&database);
        let server = Server::start(database);
        dead.wait(&server.database);
        (server, logs)
    }

    /// Asserts that the database matches the logs of the writers. Then sends some writes again, which must not take effect twice. Returns
    /// the numbers of writes by their outcome.
    fn inspect(&mut self, server: &Server, logs: &[Vec<Write>], reopens: bool) -> KillCounts {
        let api = server.api_of(&self.key);
        let happened = self.settle(server, logs, reopens);
        let mut tally = KillCounts::default();
        for (write, happened) in logs.iter().flatten().zip(happened.iter().flatten()) {
            match (&write.answer, happened) {
                (Some(_), _) => {
                    tally.answered += 1;
                    tally.operations.insert(write.operation);
                }
                (None, true) => tally.happened += 1,
                (None, false) if write.sent => tally.lost += 1,
                (None, false) => {}
            }
        }
        let mut again = Vec::new();
        for (log, happened) in logs.iter().zip(&happened) {
            again.push(load::repeat(&api, &server.database.url, log, happened, &mut tally.repeated));
        }
        // A repeated write that took effect before the kill must change nothing. Any other repeated write takes effect now.
        self.settle(server, &again, reopens);
        self.compare(server, false);
        for query in NONE {
            let found = ask(&server.database, query);
            assert!(found.is_empty(), "{query}\n  found {found:?}");
        }
        if server.database.url.starts_with("sqlite:") {
            assert_eq!(ask(&server.database, "PRAGMA integrity_check"), ["ok"]);
            assert_eq!(ask(&server.database, "PRAGMA foreign_key_check"), [""; 0]);
        }
        tally
    }

    /// Reads the new events, comments and contacts, and assigns them to the writes. Returns for each write whether it took effect. Panics
    /// if a write with a response did not take effect, or if the database has a change that no write explains.
    fn settle(&mut self, server: &Server, logs: &[Vec<Write>], reopens: bool) -> Vec<Vec<bool>> {
        let api = server.api_of(&self.key);
        load::take_events(&server.database.run(&["events", "--store", STORE, "--after", &self.events.len().to_string()]), &mut self.events);
        let contacts = news(&api.post("/contacts/list", json!({})), &self.contacts);
        self.contacts.extend(contacts.iter().map(id));
        let mut found: Vec<Found> = self.talks.iter_mut().map(|talk| talk.find(&api, &contacts)).collect();
        let settled: usize = self.talks.iter().map(|talk| talk.events).sum();
        for line in &self.events[settled..] {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("not an event: {line}: {error}"));
            let conversation = model::conversation_of(&event);
            let talk = self.talks.iter().position(|talk| conversation == talk.conversation);
            found[talk.unwrap_or_else(|| panic!("an event that belongs to no conversation: {line}"))].events.push_back(event);
        }
        self.talks.iter_mut().zip(logs).zip(found).map(|((talk, log), found)| talk.settle(log, found, reopens)).collect()
    }

    /// Asserts that the API's responses match the models. Compares all contacts, messages and comments if `everything` is true, otherwise
    /// only the new messages. Conversations and tickets are always compared.
    fn compare(&mut self, server: &Server, everything: bool) {
        let api = server.api_of(&self.key);
        if everything {
            let shown: HashSet<_> = news(&api.post("/contacts/list", json!({})), &HashSet::new()).iter().map(id).collect();
            assert!(shown == self.contacts, "the contacts differ from those of earlier cycles");
        }
        self.talks.iter_mut().for_each(|talk| talk.compare(&api, everything));
    }
}

/// Returns the import lines of the store: the records of `fixture::write_store`, and a conversation with an open ticket for each writer.
fn lines() -> Vec<Value> {
    let made = fixture::at("03-01T08:00");
    let line = |kind: &str, record: Value| json!({"kind": kind, "record": record});
    let mut lines = fixture::write_store();
    lines.push(line("account", json!({"id": "acc-widget", "channel": "widget", "name": "Widget", "status": "healthy"})));
    for number in 0..WRITERS {
        let (conversation, ticket) = (model::conversation(number), model::ticket(number));
        lines.push(line(
            "conversation",
            json!({
                "id": conversation, "channel": "widget", "accountId": "acc-widget", "contactId": "con-new", "displayName": "Talk",
                "referenceId": conversation, "labelIds": ["lab-0"], "isSpam": false, "createdAt": made, "updatedAt": made,
            }),
        ));
        lines.push(line(
            "ticket",
            json!({
                "id": ticket, "isOpen": true, "openedAt": made, "channel": "widget", "isSpam": false, "contactId": "con-new",
                "accountId": "acc-widget", "conversationId": conversation, "isFollowUp": false, "createdAt": made, "updatedAt": made,
            }),
        ));
    }
    lines
}

/// Reads a list, in which new rows come first, up to the first row whose id is in `known`. Returns the rows before it.
fn news(first: &Call, known: &HashSet<String>) -> Vec<Value> {
    let first = first.clone().query("pageSize", PAGE);
    let (mut rows, mut call) = (Vec::new(), first.clone());
    loop {
        let answer = call.exchange();
        for row in answer.ok().as_array().unwrap_or_else(|| panic!("not a list\n{}", answer.described())) {
            if known.contains(&id(row)) {
                return rows;
            }
            rows.push(row.clone());
        }
        let Some(cursor) = answer.header("x-pagination-next-cursor") else { return rows };
        call = first.clone().query("cursor", cursor);
    }
}

fn id(row: &Value) -> String {
    row["id"].as_str().unwrap_or_else(|| panic!("no id in {row}")).to_owned()
}

/// Runs a query on the database. Returns the first column of its rows, which must be text. Used for values that no API response contains.
fn ask(database: &Database, query: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let found = runtime.block_on(async {
        let connection = sea_orm::Database::connect(&database.url).await?;
        let statement = sea_orm::Statement::from_string(connection.get_database_backend(), query);
        let rows = sea_orm::ConnectionTrait::query_all_raw(&connection, statement).await?;
        rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, sea_orm::DbErr>>()
    });
    found.unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Returns the result of a thread. If the thread panicked, this function panics as well.
fn joined<T>(outcome: thread::Result<T>) -> T {
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the seed of the run's random choices: the value of `COUNTERPART_CRASH_SEED`, or a random number. Prints the seed, so that a
/// failed run can be repeated.
fn seed() -> u64 {
    let seed = setting("COUNTERPART_CRASH_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("COUNTERPART_CRASH_SEED={seed}");
    seed
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var_os(name)?;
    Some(text.to_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name} is no number: {}", text.display())))
}

/// The PostgreSQL sessions of killed processes. PostgreSQL notices only after a delay that a client was killed. Until then it still
/// executes the client's statements, including a commit. So the test waits for the end of these sessions. `.0` is the time of the kill, or
/// empty on SQLite.
struct KilledSessions(String);

impl KilledSessions {
    const OTHERS: &str = "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

    fn of(database: &Database) -> Self {
        if database.url.starts_with("sqlite:") {
            return Self(String::new());
        }
        Self(ask(database, "SELECT clock_timestamp()::text").remove(0))
    }

    fn wait(&self, database: &Database) {
        let start = Instant::now();
        while !self.0.is_empty() && !ask(database, &format!("{} AND backend_start < '{}'", Self::OTHERS, self.0)).is_empty() {
            assert!(start.elapsed() < SERVER_TIMEOUT, "the sessions of the killed process do not end");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns a request for the rows that belong to a conversation.
fn of_conversation(api: &Api, path: &str, conversation: &str) -> Call {
    api.get(path).query("conversationId", conversation)
}
