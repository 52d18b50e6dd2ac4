//! Tests of the overlay of the search index: which changes it applies, and with how many SQL statements.

use std::sync::Arc;

use super::*;
use crate::{
    domain::{
        clock::{Clock, SystemClock},
        ids::ContactId,
        messages::Message,
    },
    store::{
        Write,
        fixture::{Fixture, counter, sent},
        transaction::store_transaction::Changed,
    },
};

/// Opens an overlay, as another process would, that counts as having applied all changes in the log. Also returns a counter of the
/// overlay's SQL statements.
async fn elsewhere(fixture: &Fixture) -> (SearchOverlay, Arc<AtomicU64>) {
    let (counted, on_statement) = counter();
    let front = SearchOverlay::new(Db::open(&fixture.url, 2, Some(on_statement)).await.unwrap());
    let log_position = front.db.log_position().await.unwrap();
    front.followed.lock().await.go_on_from(log_position);
    (front, counted)
}

/// Logs changes of contacts, all in one transaction.
async fn change(fixture: &Fixture, contacts: impl IntoIterator<Item = &str>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
    for contact in contacts {
        write.changed(Changed::Contact(&ContactId::from(contact)));
    }
    write.commit().await.unwrap();
}

/// Inserts a message with a subject, in a conversation with a subject. Returns the transaction, which is not committed yet.
async fn insert(fixture: &Fixture, id: &str, text: &str) -> Write {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
    let payload = Some(r#"{"email": {"subject": "its own"}}"#.to_owned());
    let message = Message { payload, ..sent(id, "mail", text) };
    write.insert_message(&message, None, None).unwrap();
    write.inserted(&message, Some("the thread's"));
    write
}

async fn mailbox() -> (Fixture, SearchOverlay, Arc<AtomicU64>) {
    let (counted, on_statement) = counter();
    let fixture = Fixture::open(Some(on_statement)).await;
    fixture.conversation("mail", |row| row.email_subject = Some("the thread's".to_owned())).await;
    let front = SearchOverlay::new(fixture.db.clone());
    (fixture, front, counted)
}

#[tokio::test]
async fn an_insert_of_this_process_is_applied_without_a_database_read() {
    let (fixture, front, counted) = mailbox().await;
    insert(&fixture, "m", "text").await.commit().await.unwrap();
    let before = counted.load(Ordering::Acquire);
    let got = front.changes(fixture.db.own_changes().iter()).await.unwrap();
    assert_eq!(counted.load(Ordering::Acquire), before);
    let read = fixture.db.searchables(&fixture.store, SearchableKind::Message, &["m"]).await.unwrap();
    assert_eq!(read[0].texts, ["text", "its own", "the thread's"]);
    assert_eq!(got.into_iter().map(|one| (one.record, one.gone, one.new)).collect::<Vec<_>>(), [(read[0].clone(), false, true)]);
}

#[tokio::test]
async fn a_possibly_already_applied_record_is_read_from_the_database() {
    let (fixture, front, counted) = mailbox().await;
    let mut followed = front.followed.lock().await;
    let read = async |followed: &mut ChangeLogProgress, own: Vec<LoggedChange>| {
        let before = counted.load(Ordering::Acquire);
        followed.own.extend(own);
        front.apply_own_changes(followed).await.unwrap();
        counted.load(Ordering::Acquire) - before
    };
    let inserted = async |id: &str| {
        insert(&fixture, id, "text").await.commit().await.unwrap();
        fixture.db.own_changes()
    };
    let change = async |id: &str| {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
        write.changed(Changed::Message(&id.into()));
        write.commit().await.unwrap();
        fixture.db.own_changes()
    };
    let undisturbed = inserted("m1").await;
    assert_eq!(read(&mut *followed, undisturbed).await, 0);
    let with_its_change = [inserted("m2").await, change("m2").await].concat();
    assert_eq!(read(&mut *followed, with_its_change).await, 1);
    let (late, first) = (inserted("m3").await, change("m3").await);
    assert_eq!(read(&mut *followed, first).await, 1);
    assert_eq!(read(&mut *followed, late).await, 1);
    let told_by_the_log = inserted("m4").await;
    let from_the_log = [LoggedChange { inserted: None, ..told_by_the_log[0].clone() }];
    front.not_applied_yet(&mut followed, &from_the_log).await.unwrap();
    assert_eq!(read(&mut *followed, told_by_the_log).await, 1);
    let of_another_index = insert(&fixture, "m5", "text").await;
    front.db.end_own_epoch();
    of_another_index.commit().await.unwrap();
    assert_eq!(read(&mut *followed, fixture.db.own_changes()).await, 1);
    let read_with_its_conversation = inserted("m6").await;
    let retitled = LoggedChange { kind: RETITLED.to_owned(), id: "mail".to_owned(), position: 0, ..from_the_log[0].clone() };
    front.not_applied_yet(&mut followed, &[retitled]).await.unwrap();
    assert_eq!(read(&mut *followed, read_with_its_conversation).await, 1);
    insert(&fixture, "m7", &"long ".repeat(400)).await.commit().await.unwrap();
    assert_eq!(read(&mut *followed, fixture.db.own_changes()).await, 1);
    let again = inserted("m8").await;
    assert_eq!(read(&mut *followed, again).await, 0);
}

#[tokio::test]
async fn concurrent_searches_share_one_read_of_the_log() {
    let fixture = Fixture::alone().await;
    let (front, counted) = elsewhere(&fixture).await;
    let front = Arc::new(front);
    let mut statements = Vec::new();
    for searches in [1, 8] {
        change(&fixture, ["k1"]).await;
        let log_position = front.followed.lock().await.log_position.clone();
        let (held, asked, before) = (front.followed.lock().await, front.asked.load(Ordering::Acquire), counted.load(Ordering::Acquire));
        let waiting: Vec<_> = (0..searches)
            .map(|_| (front.clone(), fixture.store.clone()))
            .map(|(front, store)| tokio::spawn(async move { front.catch_up(&store).await }))
            .collect();
        while front.asked.load(Ordering::Acquire) < asked + searches {
            tokio::task::yield_now().await;
        }
        drop(held);
        for search in waiting {
            search.await.unwrap().unwrap();
        }
        assert_ne!(front.followed.lock().await.log_position, log_position);
        statements.push(counted.load(Ordering::Acquire) - before);
    }
    assert!(statements[0] > 0 && statements[0] == statements[1], "{statements:?}");
}

#[tokio::test]
async fn a_search_leaves_a_change_log_far_ahead_to_the_worker() {
    let fixture = Fixture::alone().await;
    let (front, counted) = elsewhere(&fixture).await;
    let contacts: Vec<String> = (0..=MAX_LOG_ENTRIES_PER_READ).map(|contact| format!("k{contact}")).collect();
    change(&fixture, contacts.iter().map(String::as_str)).await;
    let log_position = front.followed.lock().await.log_position.clone();
    front.catch_up(&fixture.store).await.unwrap();
    timeout(Duration::ZERO, front.wake.notified()).await.expect("the worker is woken");
    let before = counted.load(Ordering::Acquire);
    front.catch_up(&fixture.store).await.unwrap();
    assert_eq!(counted.load(Ordering::Acquire), before);
    let followed = front.followed.lock().await;
    assert_eq!((&followed.log_position, followed.far), (&log_position, true));
}

#[tokio::test]
async fn while_a_database_node_is_down_a_search_reads_only_its_store_s_changes() {
    let fixture = Fixture::alone().await;
    if fixture.url.starts_with("sqlite:") {
        return;
    }
    let (front, _) = elsewhere(&fixture).await;
    let (view, _index, _home) = super::super::tests::indexed(&[]);
    *front.view.write().unwrap() = Some(view.into());
    let contacts: Vec<String> = (0..=MAX_LOG_ENTRIES_PER_READ).map(|contact| format!("k{contact}")).collect();
    for contact in &contacts {
        change(&fixture, [contact.as_str()]).await;
    }
    let of_another_store = "INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) \
                            VALUES ('other', 'contact', 'k', 0, pg_current_xact_id()::text::bigint)";
    fixture.execute(of_another_store).await.unwrap();
    let applied = || front.view().unwrap().fresh.len();
    // The worker has read the first change of a round (see `LogPosition`). Changes that are committed later may have lower positions.
    let before = front.followed.lock().await.log_position.clone();
    let before = front.db.changes_since(&before, 1).await.unwrap().unwrap().log_position;
    assert!(!before.is_between_rounds());
    front.followed.lock().await.go_on_from(before.clone());
    front.followed.lock().await.go_on_by_store(&Error::Building);
    front.catch_up(&fixture.store).await.unwrap();
    assert_eq!(applied(), contacts.len());
    front.catch_up(&fixture.store).await.unwrap();
    assert_eq!(front.followed.lock().await.log_position, before, "the log of all stores was not read");
    front.catch_up(&"other".into()).await.unwrap();
    assert_eq!(applied(), contacts.len() + 1);
    front.followed.lock().await.go_on_with_all_stores();
    change(&fixture, ["a later one"]).await;
    front.catch_up(&fixture.store).await.unwrap();
    assert!(front.followed.lock().await.far, "the log of all stores is read again, from where it was");
}

#[tokio::test]
async fn changes_of_a_cancelled_search_are_applied_by_the_next() {
    let fixture = Fixture::alone().await;
    let front = SearchOverlay::new(fixture.db.clone());
    let mut followed = front.followed.lock().await;
    change(&fixture, ["k1"]).await;
    // On SQLite the future is ready at its first poll. On PostgreSQL it is dropped while it waits for the database.
    tokio::select! {
        biased;
        taken_in = front.apply_own_changes(&mut followed) => taken_in.unwrap(),
        () = std::future::ready(()) => assert_eq!(front.db.own_changes(), []),
    }
    front.apply_own_changes(&mut followed).await.unwrap();
    assert_eq!((followed.own.len(), followed.ahead.len()), (0, 1));
}
