use std::{sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, TransactionTrait};

use super::*;
use crate::{
    domain::{
        clock::{Clock, SystemClock},
        events::{Actor, Event, Fact},
        messages::Message,
        outbound::Delivery,
        search::Noun,
    },
    store::{
        connect::{OnStatement, Writes},
        fixture::{Fixture, counter, sent},
        write::{Changed, Ordering, Write},
    },
};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

fn conversation() -> ConversationId {
    "ct".into()
}

/// The conversation `ct` with the open ticket `t`.
async fn shop() -> Option<Fixture> {
    shop_with(None).await
}

async fn shop_with(on_statement: Option<OnStatement>) -> Option<Fixture> {
    with_ticket(Fixture::open(on_statement).await).await
}

/// [`shop`] on a database of its own.
async fn alone() -> Option<Fixture> {
    with_ticket(Fixture::alone().await).await
}

async fn with_ticket(fixture: Fixture) -> Option<Fixture> {
    fixture.ticket("t", |_| {}).await;
    (fixture.db.backend() == DbBackend::Postgres).then_some(fixture)
}

/// What a send writes, up to its commit; the ticket that it told.
async fn send(write: &Write, id: &str) -> Result<Option<TicketId>> {
    let mut thread = write.conversation(&conversation()).await?.expect("the conversation");
    let ticket = write.update_open_ticket(&thread.id, {
        let mut update = write.sql("UPDATE tickets SET sort_at = ");
        update.integer(write.now().millis());
        update
    });
    let ticket = ticket.await?;
    let at = write.now();
    let account_id = thread.account_id.clone();
    let message = Message { account_id, sent_at: at, created_at: at, updated_at: at, ..sent(id, thread.id.as_str(), id) };
    write.insert_message(&message, None, Some(Delivery::Sent))?;
    thread.message_count += 1;
    write.save_counters(&thread)?;
    write.inserted(&message, None);
    let fact = Fact::MessageSent { message, ticket_id: ticket.clone() };
    write.record(&[(Event { id: format!("e{id}"), at: write.now(), actor: Actor::System, fact }, vec![1])]).await?;
    Ok(ticket)
}

/// Messages counted at the conversation, and rows of messages, events and the change log.
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
async fn all_of_it_is_written_and_the_open_ticket_told() {
    let (statements, count) = counter();
    let Some(fixture) = shop_with(Some(count)).await else { return };
    let before = written(&fixture).await;
    fixture.db.follow_own_changes();
    let mark = fixture.db.mark().await.unwrap();
    let run = statements.load(Ordering::Relaxed);
    let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    assert_eq!(send(&write, "m1").await.unwrap(), Some("t".into()));
    assert_eq!(statements.load(Ordering::Relaxed) - run, 1, "the look");
    let at = write.now();
    write.commit().await.unwrap();
    assert_eq!(statements.load(Ordering::Relaxed) - run, 2, "and all that it writes");
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 1));
    let told = Sql::of(&fixture.store, "SELECT sort_at FROM tickets WHERE store_id = $1 AND id = 't'");
    assert_eq!(fixture.db.first(told, |cells| cells.time()).await.unwrap(), Some(at));
    let logged = fixture.db.changes_since(&mark, 1_000).await.unwrap().unwrap().changes;
    let mut own = fixture.db.own_changes();
    let told = own.iter_mut().filter_map(|one| one.inserted.take()).map(|inserted| inserted.record).collect::<Vec<_>>();
    assert_eq!(own, logged.into_iter().filter(|one| one.store == fixture.store).collect::<Vec<_>>());
    assert_eq!(told, fixture.db.searchables(&fixture.store, Noun::Message, &["m1"]).await.unwrap());
}

/// The server's process that the next write is done by.
async fn process(fixture: &Fixture) -> i32 {
    let Writes::Postgres(kept) = fixture.db.writes() else { panic!("not PostgreSQL") };
    // Long enough that another is needed beside it.
    let rows = kept.rows(&Sql::fixed("SELECT pg_backend_pid() FROM pg_sleep(0.05)")).await.unwrap();
    rows[0].get(0)
}

#[tokio::test]
async fn one_that_is_dropped_leaves_nothing_and_its_connection_serves_again() {
    let Some(fixture) = shop().await else { return };
    let (before, first) = (written(&fixture).await, process(&fixture).await);
    for round in 0..3 {
        let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
        send(&write, &format!("m{round}")).await.unwrap();
        drop(write);
        assert_eq!(process(&fixture).await, first);
    }
    let missing = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    assert_eq!(missing.conversation(&"none".into()).await.unwrap(), None);
    drop(missing);
    let unwritten = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    unwritten.conversation(&conversation()).await.unwrap();
    unwritten.changed(Changed::Message(&"m1".into()));
    assert!(matches!(unwritten.commit().await, Err(Error::Raced)));
    assert_eq!(process(&fixture).await, first);
    assert_eq!(written(&fixture).await, before);
}

#[tokio::test]
async fn more_than_it_looks_at_is_not_read() {
    let Some(fixture) = shop().await else { return };
    let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    assert!(matches!(write.account(&"a1".into()).await, Err(Error::Raced)));
    send(&write, "m1").await.unwrap();
    assert!(matches!(write.conversation(&conversation()).await, Err(Error::Raced)));
    assert!(matches!(write.run(write.sql("DELETE FROM messages WHERE store_id = $1")).await, Err(Error::Raced)));
    // Nor is anything written that follows from nothing it looked at, nor more than one statement.
    let blind = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    blind.changed(Changed::Message(&"m1".into()));
    assert!(matches!(blind.commit().await, Err(Error::Raced)));
    let before = written(&fixture).await;
    for id in 0..600 {
        write.changed(Changed::Message(&format!("m{id}").into()));
    }
    assert!(matches!(write.commit().await, Err(Error::Raced)));
    assert_eq!(written(&fixture).await, before);
}

/// A conversation of which nothing else is told is written, too.
#[tokio::test]
async fn what_only_updates_is_written() {
    let Some(fixture) = shop().await else { return };
    let before = written(&fixture).await;
    let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    let mut thread = write.conversation(&conversation()).await.unwrap().unwrap();
    thread.message_count += 7;
    write.save_counters(&thread).unwrap();
    write.commit().await.unwrap();
    assert_eq!(written(&fixture).await, [before[0] + 7, before[1], before[2], before[3] + 1]);
}

/// A write that has looked, and another transaction's that is about to be committed.
async fn against(fixture: &Fixture, id: &str, other: &str) -> (Write, Option<TicketId>, DatabaseTransaction) {
    let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    let ticket = send(&write, id).await.unwrap();
    let meddler = fixture.db.read().begin().await.unwrap();
    meddler.execute_unprepared(other).await.unwrap();
    (write, ticket, meddler)
}

/// Waits until one of the database's processes waits for a row.
async fn one_waits(fixture: &Fixture) -> i32 {
    for _ in 0..1_000 {
        let waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        if let Some(process) = fixture.db.first(Sql::fixed(waiting), |cells| cells.take::<i32>()).await.unwrap() {
            return process;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody waits");
}

fn update(fixture: &Fixture, table: &str, id: &str, set: &str) -> String {
    format!("UPDATE {table} SET {set} WHERE store_id = '{}' AND id = '{id}'", fixture.store)
}

fn hold(fixture: &Fixture) -> String {
    format!("SELECT 1 FROM conversations WHERE store_id = '{}' AND id = 'ct' FOR NO KEY UPDATE", fixture.store)
}

/// What another does between the look and the end, committed before the end or while the end waits for it.
#[tokio::test]
async fn what_changed_since_the_look_undoes_it() {
    let Some(fixture) = alone().await else { return };
    let renew = update(&fixture, "conversations", "ct", "unread_count = 0");
    let (close, open) = (update(&fixture, "tickets", "t", "is_open = FALSE"), update(&fixture, "tickets", "t", "is_open = TRUE"));
    let assign = update(&fixture, "tickets", "t", "assignee_user_id = 'u'");
    for waits in [false, true] {
        for (other, races) in [(&renew, true), (&close, true), (&hold(&fixture), false), (&assign, false)] {
            let told = format!("{other}, waits: {waits}");
            let before = written(&fixture).await;
            let (write, ticket, meddler) = against(&fixture, &format!("m{told}"), other).await;
            assert_eq!(ticket, Some("t".into()), "{told}");
            let outcome = if waits {
                let end = tokio::spawn(write.commit());
                one_waits(&fixture).await;
                meddler.commit().await.unwrap();
                end.await.unwrap()
            } else {
                meddler.commit().await.unwrap();
                write.commit().await
            };
            assert_eq!(matches!(outcome, Err(Error::Raced)), races, "{told}: {outcome:?}");
            assert_eq!(written(&fixture).await, before.map(|rows| rows + i64::from(!races)), "{told}");
            fixture.execute(&open).await.unwrap();
        }
    }
    // One taken back changed nothing.
    let (write, _, meddler) = against(&fixture, "back", &renew).await;
    let end = tokio::spawn(write.commit());
    one_waits(&fixture).await;
    meddler.rollback().await.unwrap();
    end.await.unwrap().unwrap();
    // Nor may there be a ticket where none was.
    fixture.execute(&close).await.unwrap();
    let before = written(&fixture).await;
    let (write, ticket, meddler) = against(&fixture, "none", &open).await;
    assert_eq!(ticket, None);
    meddler.commit().await.unwrap();
    assert!(matches!(write.commit().await, Err(Error::Raced)));
    assert_eq!(written(&fixture).await, before);
}

#[tokio::test]
async fn of_two_that_looked_one_is_written() {
    let Some(fixture) = shop().await else { return };
    let before = written(&fixture).await;
    let one = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    let other = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    send(&one, "one").await.unwrap();
    send(&other, "other").await.unwrap();
    let (one, other) = tokio::join!(one.commit(), other.commit());
    assert!(one.is_ok() != other.is_ok(), "{one:?}, {other:?}");
    assert!(matches!(one.and(other), Err(Error::Raced)));
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 1));
}

/// Of one that nobody waits for any more nobody knows; but it is whole, and the connection serves again.
#[tokio::test]
async fn one_that_is_given_up_is_written_as_a_whole() {
    let Some(fixture) = alone().await else { return };
    let before = written(&fixture).await;
    let (write, _, meddler) = against(&fixture, "m1", &hold(&fixture)).await;
    let end = tokio::spawn(write.commit());
    let given_up = one_waits(&fixture).await;
    end.abort();
    assert!(end.await.unwrap_err().is_cancelled());
    meddler.commit().await.unwrap();
    let (one, another) = tokio::join!(process(&fixture), process(&fixture));
    let both = [one, another];
    assert!(both.contains(&given_up), "{given_up} is none of {both:?}");
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 1));
}

#[tokio::test]
async fn one_whose_connection_is_lost_is_told_and_not_repeated() {
    let Some(fixture) = alone().await else { return };
    let before = written(&fixture).await;
    let (write, _, meddler) = against(&fixture, "m1", &hold(&fixture)).await;
    let end = tokio::spawn(write.commit());
    let process = one_waits(&fixture).await;
    fixture.execute(&format!("SELECT pg_terminate_backend({process})")).await.unwrap();
    assert!(matches!(end.await.unwrap(), Err(Error::Unavailable(_))));
    meddler.commit().await.unwrap();
    assert_eq!(written(&fixture).await, before);
}

/// References are looked up with the commit, behind the rows that the statement answers.
#[tokio::test]
async fn what_the_commit_itself_refuses_is_told() {
    let Some(fixture) = alone().await else { return };
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE foreign_key_violation; END $$; \
                  CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
                  EXECUTE FUNCTION refuse()";
    fixture.execute(refuse).await.unwrap();
    let before = written(&fixture).await;
    let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    send(&write, "m1").await.unwrap();
    let outcome = write.commit().await;
    assert!(matches!(outcome, Err(Error::ForeignKey(_))), "{outcome:?}");
    assert_eq!(written(&fixture).await, before);
}
