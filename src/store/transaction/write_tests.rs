//! Tests of write transactions that run the statements of sending a message: what is stored after a commit, a rollback, a conflict or a
//! lost connection.

use std::{sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, TransactionTrait};

use crate::{
    domain::{
        clock::{Clock, SystemClock},
        events::{Actor, Event, EventChange},
        ids::{ConversationId, TicketId},
        messages::Message,
        outbound_messages::Delivery,
        search::SearchableKind,
    },
    store::{
        Error, Result,
        db::Writes,
        fixture::{Fixture, counter, sent},
        parameterised_sql::Sql,
        row_decoding::Cells,
        transaction::store_transaction::{Changed, Write},
    },
};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

fn conversation() -> ConversationId {
    "ct".into()
}

/// Adds the open ticket `t` with its conversation `ct` to the fixture.
async fn with_ticket(fixture: Fixture) -> Fixture {
    fixture.ticket("t", |_| {}).await;
    fixture
}

/// Runs the statements of sending a message, without the commit. Marks the conversation's open ticket as answered, and returns its id.
async fn send(write: &Write, id: &str) -> Result<Option<TicketId>> {
    let (mut thread, ticket) = write.conversation_with_ticket(&conversation()).await?.expect("the conversation");
    let at = write.now();
    if let Some(ticket) = &ticket {
        write.bump_answered_ticket(ticket, at)?;
    }
    let account_id = thread.account_id.clone();
    let message = Message { account_id, sent_at: at, created_at: at, updated_at: at, ..sent(id, thread.id.as_str(), id) };
    write.insert_message(&message, None, Some(Delivery::Sent))?;
    thread.message_count += 1;
    write.save_counters(&thread)?;
    write.inserted(&message, None);
    let fact = EventChange::MessageSent { message, ticket_id: ticket.clone() };
    write.record(&[(Event { id: format!("e{id}"), at: write.now(), actor: Actor::System, fact }, vec![1])]).await?;
    Ok(ticket)
}

/// Returns the conversation's message count, and the store's numbers of messages, events and change log entries.
async fn written(fixture: &Fixture) -> [i64; 4] {
    let rows = |table: &str| format!("(SELECT COUNT(*) FROM {table} WHERE store_id = $1)");
    let sql = format!(
        "SELECT message_count, {}, {}, {} FROM conversations WHERE store_id = $1 AND id = 'ct'",
        rows("messages"),
        rows("events"),
        rows("changes")
    );
    let cells = |cells: &mut Cells<'_>| Ok([cells.take()?, cells.take()?, cells.take()?, cells.take()?]);
    fixture.db.first(Sql::of(&fixture.store, &sql), cells).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_send_is_written_as_a_whole_in_few_statements() {
    let (statements, count) = counter();
    let fixture = with_ticket(Fixture::open(Some(count)).await).await;
    let before = written(&fixture).await;
    fixture.db.follow_own_changes();
    let log_position = fixture.db.log_position().await.unwrap();
    let run = statements.load(std::sync::atomic::Ordering::Relaxed);
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    assert_eq!(send(&write, "m1").await.unwrap(), Some("t".into()));
    let at = write.now();
    write.commit().await.unwrap();
    // Two reads (conversation, ticket) and five writes (ticket, message, conversation, event, change log).
    assert_eq!(statements.load(std::sync::atomic::Ordering::Relaxed) - run, 7);
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 1));
    let noted = Sql::of(&fixture.store, "SELECT sort_at FROM tickets WHERE store_id = $1 AND id = 't'");
    assert_eq!(fixture.db.first(noted, |cells| cells.take()).await.unwrap(), Some(at));
    let logged = fixture.db.changes_since(&log_position, 1_000).await.unwrap().unwrap().changes;
    let mut own = fixture.db.own_changes();
    let inserted = own.iter_mut().filter_map(|one| one.inserted.take()).map(|inserted| inserted.record).collect::<Vec<_>>();
    assert_eq!(own, logged.into_iter().filter(|one| one.store == fixture.store).collect::<Vec<_>>());
    assert_eq!(inserted, fixture.db.searchables(&fixture.store, SearchableKind::Message, &["m1"]).await.unwrap());
}

/// Returns the id of the PostgreSQL process behind the next connection from the pool for writes. 0 on SQLite.
async fn process(fixture: &Fixture) -> i64 {
    let Writes::Postgres(kept) = &fixture.db.writes else { return 0 };
    // The statement sleeps, so that a second call at the same time needs another connection.
    let rows = kept.rows(&Sql::fixed("SELECT pg_backend_pid()::bigint FROM pg_sleep(0.05)")).await.unwrap();
    rows[0].get(0)
}

#[tokio::test]
async fn a_dropped_write_is_rolled_back_and_its_connection_is_reused() {
    let fixture = with_ticket(Fixture::new().await).await;
    let (before, first) = (written(&fixture).await, process(&fixture).await);
    for round in 0..3 {
        let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
        send(&write, &format!("m{round}")).await.unwrap();
        drop(write);
        // The connection of the dropped write may still be rolling back, and is then not the next one from the pool. So the test looks at
        // both connections of the pool.
        let (one, another) = tokio::join!(process(&fixture), process(&fixture));
        assert!([one, another].contains(&first), "{first} is none of {one}, {another}");
    }
    let missing = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    assert!(missing.conversation_with_ticket(&"none".into()).await.unwrap().is_none());
    drop(missing);
    let unwritten = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    unwritten.conversation(&conversation()).await.unwrap();
    unwritten.changed(Changed::Message(&"m1".into()));
    unwritten.commit().await.unwrap();
    assert_eq!(written(&fixture).await, [before[0], before[1], before[2], before[3] + 1]);
}

/// Runs a statement in a transaction on another connection and returns that transaction, which holds its locks. For PostgreSQL.
async fn other_transaction(fixture: &Fixture, statement: &str) -> DatabaseTransaction {
    let transaction = fixture.db.connect().await.unwrap().begin().await.unwrap();
    transaction.execute_unprepared(statement).await.unwrap();
    transaction
}

/// Waits until a PostgreSQL process waits for a lock, and returns the id of that process.
async fn wait_for_lock_wait(fixture: &Fixture) -> i64 {
    for _ in 0..1_000 {
        let waiting = "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        if let Some(process) = fixture.db.first(Sql::fixed(waiting), |cells| cells.take::<i64>()).await.unwrap() {
            return process;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no process waits for a lock");
}

fn update(fixture: &Fixture, table: &str, id: &str, set: &str) -> String {
    format!("UPDATE {table} SET {set} WHERE store_id = '{}' AND id = '{id}'", fixture.store)
}

fn lock_row(fixture: &Fixture, table: &str, id: &str) -> String {
    format!("SELECT 1 FROM {table} WHERE store_id = '{}' AND id = '{id}' FOR NO KEY UPDATE", fixture.store)
}

/// A send that had to wait for another transaction's locks sees the changes of that transaction: it does not mark a closed ticket as
/// answered, and it increments the new value of the message count.
#[tokio::test]
async fn a_send_that_waited_for_another_transaction_sees_its_changes() {
    let fixture = with_ticket(Fixture::alone().await).await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    let count = update(&fixture, "conversations", "ct", "message_count = message_count + 5");
    let close = format!("{}; {}", lock_row(&fixture, "conversations", "ct"), update(&fixture, "tickets", "t", "is_open = FALSE"));
    for (id, statement, counted, expected) in [("m1", count, 6, Some("t")), ("m2", close, 1, None)] {
        let before = written(&fixture).await;
        let other = other_transaction(&fixture, &statement).await;
        let (db, store) = (fixture.db.clone(), fixture.store.clone());
        let sending = tokio::spawn(async move {
            let write = db.write(&store, &clock()).await.unwrap();
            let ticket = send(&write, id).await.unwrap();
            write.commit().await.unwrap();
            ticket
        });
        wait_for_lock_wait(&fixture).await;
        other.commit().await.unwrap();
        assert_eq!(sending.await.unwrap(), expected.map(TicketId::from));
        assert_eq!(written(&fixture).await, [before[0] + counted, before[1] + 1, before[2] + 1, before[3] + 1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_sends_to_one_conversation_are_all_written() {
    let fixture = with_ticket(Fixture::new().await).await;
    let before = written(&fixture).await;
    let sends = (0..20).map(|i| {
        let (db, store) = (fixture.db.clone(), fixture.store.clone());
        tokio::spawn(async move {
            let write = db.write(&store, &clock()).await.unwrap();
            send(&write, &format!("m{i}")).await.unwrap();
            write.commit().await.unwrap();
        })
    });
    for send in sends.collect::<Vec<_>>() {
        send.await.unwrap();
    }
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 20));
}

/// A commit whose future is dropped writes the send as a whole or not at all, and its connection can be used again.
#[tokio::test]
async fn a_send_with_a_cancelled_commit_is_written_completely_or_not_at_all() {
    let fixture = with_ticket(Fixture::alone().await).await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    let before = written(&fixture).await;
    // This lock blocks the last batch of the send, which inserts the message.
    let other = other_transaction(&fixture, "LOCK TABLE messages IN SHARE MODE").await;
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    send(&write, "m1").await.unwrap();
    let end = tokio::spawn(write.commit());
    let given_up = wait_for_lock_wait(&fixture).await;
    end.abort();
    assert!(end.await.unwrap_err().is_cancelled());
    other.commit().await.unwrap();
    let (one, another) = tokio::join!(process(&fixture), process(&fixture));
    assert!([one, another].contains(&given_up), "{given_up} is none of {one}, {another}");
    let after = written(&fixture).await;
    assert!(after == before || after == before.map(|rows| rows + 1), "{before:?}, {after:?}");
}

#[tokio::test]
async fn a_send_whose_connection_is_lost_is_refused_and_not_repeated() {
    let fixture = with_ticket(Fixture::alone().await).await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    let before = written(&fixture).await;
    let other = other_transaction(&fixture, "LOCK TABLE messages IN SHARE MODE").await;
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    send(&write, "m1").await.unwrap();
    let end = tokio::spawn(write.commit());
    let process = wait_for_lock_wait(&fixture).await;
    fixture.execute(&format!("SELECT pg_terminate_backend({process}::int)")).await.unwrap();
    assert!(matches!(end.await.unwrap(), Err(Error::Unavailable(_))));
    other.commit().await.unwrap();
    assert_eq!(written(&fixture).await, before);
}

/// The first pipelined batch of a write changes nothing, so it can be repeated. If the idle connection from the pool turns out to be lost,
/// the batch is sent again on another connection.
#[tokio::test]
async fn a_send_starts_on_another_connection_if_the_idle_one_is_lost() {
    let fixture = with_ticket(Fixture::alone().await).await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    let before = written(&fixture).await;
    let lost = process(&fixture).await;
    fixture.execute(&format!("SELECT pg_terminate_backend({lost}) WHERE {lost} <> pg_backend_pid()")).await.unwrap();
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    send(&write, "m1").await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 1));
}

/// PostgreSQL checks deferred foreign keys at the commit, after it has returned the results of the statements.
#[tokio::test]
async fn a_constraint_violation_at_the_commit_is_an_error() {
    let fixture = with_ticket(Fixture::alone().await).await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE foreign_key_violation; END $$; \
                  CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
                  EXECUTE FUNCTION refuse()";
    fixture.execute(refuse).await.unwrap();
    let before = written(&fixture).await;
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    send(&write, "m1").await.unwrap();
    let outcome = write.commit().await;
    assert!(matches!(outcome, Err(Error::ForeignKey(_))), "{outcome:?}");
    assert_eq!(written(&fixture).await, before);
}

/// If a statement fails before the COMMIT in the same batch, nothing is written, although PostgreSQL reports no error for the COMMIT.
#[tokio::test]
async fn a_failed_statement_in_the_batch_of_the_commit_is_an_error() {
    let fixture = with_ticket(Fixture::new().await).await;
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    send(&write, "m1").await.unwrap();
    write.commit().await.unwrap();
    let before = written(&fixture).await;
    let write = fixture.db.write(&fixture.store, &clock()).await.unwrap();
    let refused = match send(&write, "m1").await {
        Ok(_) => write.commit().await,
        Err(error) => {
            drop(write);
            Err(error)
        }
    };
    assert!(matches!(refused, Err(Error::Unique(_))), "{refused:?}");
    assert_eq!(written(&fixture).await, before);
}
