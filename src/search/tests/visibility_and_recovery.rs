//! Tests of the search service with a database: visibility of writes, and recovery after crashes and damage.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use super::*;
use crate::{
    domain::{
        clock::{Clock, SystemClock},
        ids::{ContactId, MessageId},
    },
    search::{
        Error, SearchService,
        overlay::{RecordChange, SearchOverlay},
    },
    store::{
        Db,
        change_log::reader::LogPosition,
        fixture::{Fixture, sent},
        transaction::store_transaction::Changed,
    },
    supervisor::TaskReporter,
};

struct Running {
    searches: SearchService,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(db: &Db, home: &Path) -> Self {
        let searches = SearchService::new(db.clone(), home.to_owned(), "d".into());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(searches.clone().run(async { _ = stopped.await }, TaskReporter::unheard()));
        Self { searches, stop, task }
    }

    async fn end(self) {
        _ = self.stop.send(());
        self.task.await.unwrap();
    }

    /// Aborts the task of the search service, as a crash does.
    async fn kill(self) {
        self.task.abort();
        _ = self.task.await;
    }

    async fn finds(&self, fixture: &Fixture, query: &str) -> Vec<String> {
        let wanted = Search { store: fixture.store.clone(), ..search(SearchableKind::Message, query, 100) };
        let found = self.searches.find(wanted).await.unwrap();
        ids(&found.hits).into_iter().map(str::to_owned).collect()
    }
}

/// Appends a change of a message to the change log, in the name of the process that has opened `db`.
async fn log(db: &Db, fixture: &Fixture, id: &str) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let write = db.write(&fixture.store, &clock).await.unwrap();
    write.changed(Changed::Message(&MessageId::from(id)));
    write.commit().await.unwrap();
}

/// Inserts a message as a write of this process.
async fn write(fixture: &Fixture, id: &str, text: &str) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
    let message = sent(id, "c0", text);
    write.insert_message(&message, None, None).unwrap();
    write.inserted(&message, None);
    write.commit().await.unwrap();
}

async fn soon(mut finds: impl AsyncFnMut() -> bool) {
    for _ in 0..50 {
        if finds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not within a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_seen_at_once() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    fixture.message("old", "c0", 0, |row| row.text = Some("สวัสดีครับ".into())).await;
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    assert_eq!(running.finds(&fixture, "สวัสดี").await, ["old"]);
    for number in 0..30 {
        let id = format!("own{number:02}");
        write(&fixture, &id, &format!("word{number} 订单")).await;
        assert_eq!(running.finds(&fixture, &format!("word{number}")).await, [id]);
    }
    assert_eq!(running.finds(&fixture, "订单").await.len(), 30);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_of_this_process_is_found_once_in_its_current_state() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    let change = async |text: &str| {
        fixture.execute(&format!("UPDATE messages SET text = '{text}' WHERE id = 'm'")).await.unwrap();
        log(&fixture.db, &fixture, "m").await;
    };
    write(&fixture, "m", "first same").await;
    change("second same").await;
    assert_eq!((running.finds(&fixture, "same").await, running.finds(&fixture, "first").await.len()), (vec!["m".to_owned()], 0));
    write(&fixture, "n", "third same").await;
    // During this pause, the worker commits both messages to the index.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    change("fourth same").await;
    assert_eq!((running.finds(&fixture, "same").await.len(), running.finds(&fixture, "second").await.len()), (2, 0));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!((running.finds(&fixture, "same").await.len(), running.finds(&fixture, "fourth").await), (2, vec!["m".to_owned()]));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_of_another_process_is_seen_at_once_by_each_of_many_searches() {
    let (fixture, home) = (Arc::new(Fixture::alone().await), tempfile::tempdir().unwrap());
    let running = Arc::new(Running::start(&fixture.db, home.path()).await_ready(&fixture).await);
    let other = Db::open(&fixture.url, 2, None).await.unwrap();
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let (fixture, running, other) = (fixture.clone(), running.clone(), other.clone());
        clients.spawn(async move {
            for number in 0..10 {
                let (id, word) = (format!("m{client}-{number}"), format!("word{client}x{number}"));
                fixture.message(&id, "c0", number, |row| row.text = Some(word.clone())).await;
                log(&other, &fixture, &id).await;
                assert_eq!(running.finds(&fixture, &word).await, [id]);
            }
        });
    }
    clients.join_all().await;
    let Ok(running) = Arc::try_unwrap(running) else { panic!("a client is still there") };
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_larger_than_the_overlay_is_found_beside_other_writes() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    let names: Vec<String> = (0..1300).map(|number| format!("imported{number:04}")).collect();
    fixture.import_contacts(&names).await;
    write(&fixture, "own", "zebra").await;
    assert_eq!(running.finds(&fixture, "zebra").await, ["own"]);
    let all = async |running: &Running| {
        let mut found = names.iter().step_by(100).chain(names.last());
        loop {
            let Some(name) = found.next() else { return true };
            let wanted = Search { store: fixture.store.clone(), ..search(SearchableKind::Contact, name, 100) };
            if ids(&running.searches.find(wanted).await.unwrap().hits) != [name.as_str()] {
                return false;
            }
        }
    };
    soon(async || all(&running).await).await;
    running.end().await;
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    assert!(all(&running).await);
    assert_eq!(running.finds(&fixture, "zebra").await, ["own"]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_of_a_killed_process_is_continued() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    write(&fixture, "first", "first").await;
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    write(&fixture, "second", "second").await;
    assert_eq!(running.finds(&fixture, "second").await, ["second"]);
    running.kill().await;
    write(&fixture, "third", "third").await;
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    for id in ["first", "second", "third"] {
        assert_eq!(running.finds(&fixture, id).await, [id]);
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_damaged_or_foreign_index_is_rebuilt() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    write(&fixture, "m", "text").await;
    let folder = home.path().join("d-1");
    let spoil: [fn(&Path); 5] = [
        |folder| std::fs::remove_dir_all(folder).unwrap(),
        |folder| std::fs::write(folder.join("meta.json"), "{").unwrap(),
        |folder| std::fs::remove_file(folder.join("meta.json")).unwrap(),
        |folder| {
            for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
                let bytes = std::fs::read(&file).unwrap();
                if file.extension().is_some_and(|extension| extension != "json" && extension != "lock") && !bytes.is_empty() {
                    std::fs::write(&file, vec![b'x'; bytes.len()]).unwrap();
                }
            }
        },
        |folder| {
            let meta = std::fs::read_to_string(folder.join("meta.json")).unwrap();
            std::fs::write(folder.join("meta.json"), meta.replace("\\\"database\\\":\\\"d\\\"", "\\\"database\\\":\\\"e\\\"")).unwrap();
        },
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
        assert_eq!(running.finds(&fixture, "text").await, ["m"], "before {number}");
        running.end().await;
        spoil(&folder);
    }
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    assert_eq!(running.finds(&fixture, "text").await, ["m"]);
    running.end().await;
}

#[tokio::test]
async fn the_log_position_of_an_idle_index_advances() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    let committed = || {
        let meta = std::fs::read_to_string(home.path().join("d-1/meta.json")).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
        let payload: serde_json::Value = serde_json::from_str(meta["payload"].as_str().unwrap()).unwrap();
        serde_json::from_value::<LogPosition>(payload["mark"].clone()).unwrap()
    };
    let behind = async |log_position: &LogPosition| fixture.db.changes_since(log_position, 10).await.unwrap().unwrap().changes.len();
    let transaction = if fixture.url.starts_with("sqlite:") { "0" } else { "pg_current_xact_id()::text::bigint" };
    // Inserts an entry into the change log, for a kind of records that is not indexed.
    let log =
        format!("INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) VALUES ('s', 'other', '', 1, {transaction})");
    fixture.execute(&log).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = committed();
    assert_eq!(behind(&before).await, 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3601)).await;
    tokio::time::resume();
    soon(async || committed() != before).await;
    assert_eq!(behind(&committed()).await, 0);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_database_have_an_index_each() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    let other = Db::open(&fixture.url, 2, None).await.unwrap();
    let one = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    let two = Running::start(&other, home.path()).await_ready(&fixture).await;
    write(&fixture, "m", "shared").await;
    assert_eq!(one.finds(&fixture, "shared").await, ["m"]);
    assert_eq!(two.finds(&fixture, "shared").await, ["m"]);
    assert!(home.path().join("d-1").is_dir() && home.path().join("d-2").is_dir());
    one.end().await;
    two.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_folder_searches_are_refused() {
    let fixture = Fixture::alone().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let running = Running::start(&fixture.db, file.path());
    let refused = running.searches.find(search(SearchableKind::Message, "text", 10)).await;
    assert!(matches!(refused, Err(Error::Building)), "{refused:?}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_is_found_in_its_newest_state() {
    let (fixture, home) = (Fixture::alone().await, tempfile::tempdir().unwrap());
    let running = Running::start(&fixture.db, home.path()).await_ready(&fixture).await;
    let finds = async |query: &str| {
        let wanted = Search { store: fixture.store.clone(), ..search(SearchableKind::Contact, query, 10) };
        ids(&running.searches.find(wanted).await.unwrap().hits).len()
    };
    assert_eq!((finds("Luk").await, finds("661").await), (1, 1));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
    let contact = write.contact(&ContactId::from("k1")).await.unwrap().unwrap();
    write.save_contact(&contact).await.unwrap();
    write.changed(Changed::Contact(&contact.id));
    write.commit().await.unwrap();
    assert_eq!((finds("ann").await, finds("nobody").await), (1, 0));
    running.end().await;
}

impl Running {
    /// Waits until searches are answered.
    async fn await_ready(self, fixture: &Fixture) -> Self {
        self.finds(fixture, "nothing in particular").await;
        self
    }
}

#[tokio::test]
async fn overlay_updates_do_not_wait_for_running_searches() {
    let fixture = Fixture::alone().await;
    let (view, _index, _home) = indexed(&[message("s", "old", 0, "word")]);
    let front = SearchOverlay::new(fixture.db.clone());
    *front.view.write().unwrap() = Some(view.into());
    let searching = front.view().unwrap();
    let record = message("s", "new", 1, "word");
    let change =
        |record: Searchable| RecordChange { key: RecordKey::of(&record.store, record.noun, &record.id), record, gone: false, new: true };
    front.put_into_overlay(vec![change(record)]).await.unwrap();
    // A long text is analysed on another thread, so it blocks no other task.
    assert!(front.put_into_overlay(vec![change(message("s", "long", 2, &"other ".repeat(100_000)))]).now_or_never().is_none());
    let found = |view: &IndexSnapshot| view.search(&search(SearchableKind::Message, "word", 10)).unwrap().hits.len();
    assert_eq!((found(&searching), found(&front.view().unwrap())), (1, 2));
}

#[tokio::test]
async fn the_overlay_is_full_at_a_total_size_of_long_texts() {
    let fixture = Fixture::alone().await;
    let (view, _index, _home) = indexed(&[message("s", "old", 0, "word")]);
    let front = SearchOverlay::new(fixture.db.clone());
    *front.view.write().unwrap() = Some(view.into());
    let is_woken = async |id: &str, bytes: usize| {
        let record = message("s", id, 1, &"x".repeat(bytes));
        let change = RecordChange { key: RecordKey::of(&record.store, record.noun, &record.id), record, gone: false, new: true };
        front.put_into_overlay(vec![change]).await.unwrap();
        front.wake.notified().now_or_never().is_some()
    };
    for number in 0..4 {
        assert_eq!(is_woken(&number.to_string(), 17 * 1024 * 1024).await, number == 3);
    }
}
