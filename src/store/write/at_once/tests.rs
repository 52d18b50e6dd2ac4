use std::{sync::Arc, time::Duration};

use sea_orm::DbBackend;

use super::*;
use crate::{
    domain::{
        clock::{Clock, SystemClock},
        events::{Actor, Event, Fact},
        ids::MessageId,
        messages::Message,
        outbound::Delivery,
    },
    store::{
        fixture::Fixture,
        write::{Changed, Write},
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
    let fixture = Fixture::new().await;
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
    let message = Message {
        id: MessageId::from(id.to_owned()),
        conversation_id: thread.id.clone(),
        account_id: thread.account_id.clone(),
        inbound: false,
        sent_at: write.now(),
        text: Some(id.to_owned()),
        images: None,
        kind: None,
        author_user_id: None,
        is_sent_from_app: Some(true),
        sender: None,
        payload: None,
        created_at: write.now(),
        updated_at: write.now(),
    };
    write.insert_message(&message, None, Some(Delivery::Sent))?;
    thread.message_count += 1;
    write.save_counters(&thread)?;
    write.changed(Changed::Message(&message.id));
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
    let Some(fixture) = shop().await else { return };
    let before = written(&fixture).await;
    fixture.db.follow_own_changes();
    let mark = fixture.db.mark().await.unwrap();
    let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    assert_eq!(send(&write, "m1").await.unwrap(), Some("t".into()));
    assert_eq!(written(&fixture).await, before, "not before the commit");
    let at = write.now();
    write.commit().await.unwrap();
    assert_eq!(written(&fixture).await, before.map(|rows| rows + 1));
    let told = Sql::of(&fixture.store, "SELECT sort_at FROM tickets WHERE store_id = $1 AND id = 't'");
    assert_eq!(fixture.db.first(told, |cells| cells.time()).await.unwrap(), Some(at));
    let logged = fixture.db.changes_since(&mark, 1_000).await.unwrap().unwrap().changes;
    assert_eq!(fixture.db.own_changes(), logged.into_iter().filter(|one| one.store == fixture.store).collect::<Vec<_>>());
}

#[tokio::test]
async fn one_that_is_dropped_leaves_nothing_and_its_connection_serves_again() {
    let Some(fixture) = shop().await else { return };
    let before = written(&fixture).await;
    for round in 0..5 {
        let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
        send(&write, &format!("m{round}")).await.unwrap();
    }
    let missing = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
    assert_eq!(missing.conversation(&"none".into()).await.unwrap(), None);
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

/// What another does between the look and the end, committed before the end or while the end waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changed_since_the_look_undoes_it() {
    let Some(fixture) = shop().await else { return };
    let fixture = Arc::new(fixture);
    let store = fixture.store.as_str();
    let close = format!("UPDATE tickets SET is_open = FALSE WHERE store_id = '{store}' AND id = 't'");
    let renew = format!("UPDATE conversations SET unread_count = 0 WHERE store_id = '{store}' AND id = 'ct'");
    let hold = format!("SELECT 1 FROM conversations WHERE store_id = '{store}' AND id = 'ct' FOR UPDATE");
    let assign = format!("UPDATE tickets SET assignee_user_id = 'u' WHERE store_id = '{store}' AND id = 't'");
    let reopen = format!("UPDATE tickets SET is_open = TRUE WHERE store_id = '{store}' AND id = 't'");
    for waits in [false, true] {
        for (others, races) in [(&renew, true), (&close, true), (&reopen, false), (&hold, false), (&assign, false)] {
            let told = format!("{others}, waits: {waits}");
            let before = written(&fixture).await;
            let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
            let id = format!("m{}", before[1]);
            let ticket = send(&write, &id).await.unwrap();
            let other = fixture.db.begin().await.unwrap();
            sea_orm::ConnectionTrait::execute_unprepared(&*other, others).await.unwrap();
            let outcome = if waits {
                let end = tokio::spawn(write.commit());
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(!end.is_finished(), "{told}");
                other.commit().await.unwrap();
                end.await.unwrap()
            } else {
                other.commit().await.unwrap();
                write.commit().await
            };
            assert_eq!(matches!(outcome, Err(Error::Raced)), races, "{told}: {outcome:?}");
            assert_eq!(written(&fixture).await, before.map(|rows| rows + i64::from(!races)), "{told}");
            assert_eq!(ticket, Some("t".into()), "{told}");
            fixture.execute(&reopen).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_a_time_each_is_written_once_or_told() {
    let Some(fixture) = shop().await else { return };
    let fixture = Arc::new(fixture);
    let before = written(&fixture).await;
    let writers: Vec<_> = (0..40)
        .map(|i| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let write = fixture.db.write_at_once(&fixture.store, &clock()).await.unwrap();
                send(&write, &format!("m{i}")).await.unwrap();
                match write.commit().await {
                    Ok(()) => 1,
                    Err(Error::Raced) => 0,
                    Err(error) => panic!("{error}"),
                }
            })
        })
        .collect();
    let mut done = 0;
    for writer in writers {
        done += writer.await.unwrap();
    }
    assert!(done > 0);
    assert_eq!(written(&fixture).await, before.map(|rows| rows + done));
}
