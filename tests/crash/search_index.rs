//! Crash tests of the search index. The process is killed while the index is built and while records arrive. Between the end of one process
//! and the start of the next, the index may be deleted, or a file of it truncated or overwritten. At the end the index is deleted while a
//! process runs. Each time, a search must find exactly those contacts of the complete contact list whose names contain the query.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    REV_A, SERVER_TIMEOUT, STORE,
    client::{Api, Call},
    fixture::at,
    harness::{ALL_SCOPES, Database, Server},
    id,
    load::SeededRandom,
    seed, setting,
};

/// The number of cycles, unless `COUNTERPART_CRASH_CYCLES` sets it. In each cycle, a server under load is killed.
const CYCLES: u64 = 4;
const CONTACTS: usize = 2000;
const WRITERS: usize = 4;
/// `WORDS`: each contact's name has one of these words. `PARTS`: the queries of the searches, which are these words and parts of them.
const WORDS: [&str; 3] = ["silver", "สินค้าชำรุด", "订单号"];
const PARTS: [&str; 6] = ["silver", "silv", "สินค้าชำรุด", "ค้าชำ", "订单号", "单号"];

fn lines() -> Vec<Value> {
    let contact = |number: usize| {
        let name = format!("{} n{number}", WORDS[number % 3]);
        json!({"kind": "contact", "record": {
            "id": format!("c-{number}"), "fullName": name, "firstName": name, "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00"),
        }})
    };
    (0..CONTACTS).map(contact).collect()
}

/// A kind of damage that the test does to the index while no process runs.
#[derive(Clone, Copy, Debug)]
enum IndexDamage {
    Nothing,
    Delete,
    Truncate,
    Overwrite,
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        fs::read_dir(folder).map_or_else(|_| vec![], |entries| entries.map(|entry| entry.expect("an entry").path()).collect())
    };
    let mut files: Vec<PathBuf> = entries(folder).iter().flat_map(|entry| if entry.is_dir() { entries(entry) } else { vec![] }).collect();
    files.sort();
    files
}

impl IndexDamage {
    fn carry_out(self, folder: &Path, dice: &mut SeededRandom) {
        let files = files(folder);
        if files.is_empty() {
            return;
        }
        let file = &files[dice.roll(files.len())];
        let bytes = fs::read(file).expect("a file of the index");
        match self {
            Self::Nothing => {}
            Self::Delete => fs::remove_dir_all(folder).expect("the index is deleted"),
            Self::Truncate => fs::write(file, &bytes[..dice.roll(bytes.len() + 1)]).expect("a file is cut short"),
            Self::Overwrite => {
                let mut bytes = bytes;
                let from = dice.roll(bytes.len() + 1);
                bytes.iter_mut().skip(from).take(512).for_each(|byte| *byte = dice.roll(256) as u8);
                fs::write(file, bytes).expect("a file is overwritten");
            }
        }
    }
}

/// Reads all pages of a list. Returns the rows. Retries requests that are refused because the index is being built.
fn rows(first: &Call) -> Vec<Value> {
    let start = Instant::now();
    let (mut rows, mut call) = (Vec::new(), first.clone());
    loop {
        let answer = call.exchange();
        if answer.status == 503 {
            assert!(start.elapsed() < SERVER_TIMEOUT, "the index is not built\n{}", answer.described());
            thread::sleep(Duration::from_millis(100));
            continue;
        }
        rows.extend(answer.ok().as_array().expect("a list").iter().cloned());
        let Some(cursor) = answer.header("x-pagination-next-cursor") else { return rows };
        call = first.clone().query("cursor", cursor);
    }
}

/// Reads the complete contact list. Asserts for each query of [`PARTS`] that a search finds exactly the contacts whose names contain the
/// query.
fn compare(api: &Api, what: &str) {
    let size = if REV_A { 50 } else { 100 };
    let list = |body: Value| rows(&api.post("/contacts/list", body).query("pageSize", size));
    let all: Vec<(String, String)> =
        list(json!({})).iter().map(|row| (id(row), row["fullName"].as_str().unwrap_or_default().to_owned())).collect();
    assert!(all.len() >= CONTACTS, "{} contacts", all.len());
    for part in PARTS {
        let found: Vec<String> = list(json!({"search": part})).iter().map(id).collect();
        let expected: BTreeSet<&String> = all.iter().filter(|(_, name)| name.contains(part)).map(|(id, _)| id).collect();
        let once: BTreeSet<&String> = found.iter().collect();
        assert_eq!(once.len(), found.len(), "{what}: {part} finds something twice");
        assert!(once == expected, "{what}: {part} finds {} of {}", once.intersection(&expected).count(), expected.len());
    }
}

/// Creates contacts one after the other until the server is killed or `stop` is set.
fn write(api: &Api, writer: usize, cycle: u64, stop: &AtomicBool, answered: &AtomicUsize) {
    for serial in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let body = json!({"firstName": format!("{} w{writer}c{cycle}s{serial}", WORDS[serial % 3])});
        match api.post("/contacts", body).attempt() {
            Ok(answer) => _ = answer.ok(),
            Err(error) => return assert!(stop.load(Ordering::SeqCst), "a living server gave no answer: {error}"),
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_search_finds_what_a_scan_finds_after_damage_to_the_index() {
    let cycles = setting("COUNTERPART_CRASH_CYCLES").unwrap_or(CYCLES);
    let seed = seed();
    let database = Database::fresh();
    database.store(STORE, &lines());
    let key = database.key(STORE, &ALL_SCOPES);
    let folder = database.index_folder();
    let mut database = database;
    let answered = AtomicUsize::new(0);
    for cycle in 0..cycles {
        let mut dice = SeededRandom::new(seed, cycle, 100);
        let spoil = [IndexDamage::Delete, IndexDamage::Nothing, IndexDamage::Truncate, IndexDamage::Overwrite][cycle as usize % 4];
        spoil.carry_out(&folder, &mut dice);
        // In half of the cycles the server is killed after a random delay, perhaps while it builds the index. In the other cycles the test
        // first waits until a write has succeeded.
        let arrived = answered.load(Ordering::Relaxed) + (cycle + cycle / 4) as usize % 2;
        let delay = Duration::from_millis([dice.roll(300), dice.roll(3000)][dice.roll(2)] as u64);
        let server = Server::start(database);
        let (api, stop) = (server.api_of(&key), AtomicBool::new(false));
        database = thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (api, stop, answered) = (&api, &stop, &answered);
                scope.spawn(move || write(api, writer, cycle, stop, answered));
            }
            let start = Instant::now();
            while answered.load(Ordering::Relaxed) < arrived && start.elapsed() < SERVER_TIMEOUT {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(delay);
            stop.store(true, Ordering::SeqCst);
            server.kill()
        });
        println!(
            "cycle {cycle}: {spoil:?} before, killed after {} ms; {} answered in all",
            delay.as_millis(),
            answered.load(Ordering::Relaxed)
        );
        // In about half of the cycles, truncates a file of the index that the killed process left.
        if dice.roll(2) == 0 {
            IndexDamage::Truncate.carry_out(&folder, &mut dice);
        }
        let server = Server::start(database);
        compare(&server.api_of(&key), &format!("cycle {cycle}"));
        database = server.kill();
    }
    assert!(answered.load(Ordering::Relaxed) > 0, "nothing arrived");

    let server = Server::start(database);
    let (api, stop) = (server.api_of(&key), AtomicBool::new(false));
    compare(&api, "before the index of the running process is deleted");
    // The server may be adding files to the folder, so the folder is renamed first, and then deleted.
    let aside = folder.with_extension("deleted");
    fs::rename(&folder, &aside).expect("the index is there");
    fs::remove_dir_all(&aside).expect("no process adds files to the moved folder");
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&api, WRITERS, cycles, &stop, &answered));
        // Searches succeed, or are refused while a new index is built. All other requests succeed.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(4) {
            let searched = api.post("/contacts/list", json!({"search": "silver"})).exchange();
            assert!([200, 503].contains(&searched.status), "{}", searched.described());
            api.post("/contacts/list", json!({})).exchange().ok();
            thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::SeqCst);
        writer.join().expect("a writer");
    });
    compare(&api, "after the index of the running process was deleted");
    let start = Instant::now();
    while files(&folder).is_empty() {
        assert!(start.elapsed() < SERVER_TIMEOUT, "no new index is built");
        thread::sleep(Duration::from_millis(50));
    }
    compare(&api, "once a new index is built");
}
