//! Tests of concurrent writes: messages are received and sent while tickets are closed, and a send loses a race against another write.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::{
    WriteContext,
    test_service::{Silent, service},
    ticket_updates::Closing,
};
use crate::{
    domain::{
        clock::{Clock, SystemClock},
        events::Actor,
        ids::TicketId,
        inbound_messages::Inbound,
        ordered_object::Entries,
        send_requests::Send,
        ticket_filters::{ShownTickets, TicketFilter},
        tickets::TicketExpand,
        time::Timestamp,
    },
    store::fixture::{Fixture, first},
};

fn inbound(external_id: String) -> Inbound {
    Inbound {
        account_id: "a1".into(),
        reference_id: "thread".to_owned(),
        external_id,
        sender_id: "s".to_owned(),
        sender_name: Some("Ada".to_owned()),
        text: Some("hello".to_owned()),
        images: None,
        sent_at: None,
        email_subject: None,
        contact: None,
        not_texts: vec![],
    }
}

fn closing(ticket_id: TicketId) -> Closing {
    Closing { ticket_id, handled_by: None, is_converted: None, total_revenue: None, currency: None, fields: Entries::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_leave_consistent_records() {
    const SENDS: usize = 60;
    let fixture = Arc::new(Fixture::new().await);
    let service = service(fixture.db.clone(), Arc::new(SystemClock), Silent);
    let conversation = service.receive(&fixture.store, inbound("first".to_owned())).await.unwrap().conversation_id;
    let tasks = (0..SENDS).map(|i| {
        let (fixture, service, conversation) = (fixture.clone(), service.clone(), conversation.clone());
        tokio::spawn(async move {
            service
                .send(
                    &WriteContext::alone(&fixture.store, Actor::System),
                    Send::Text { conversation_id: conversation.clone(), text: format!("answer {i}") },
                )
                .await
                .unwrap();
            if i % 3 == 0 {
                service.receive(&fixture.store, inbound(i.to_string())).await.unwrap();
            }
            if i % 7 == 0 {
                let filter = TicketFilter { conversation_id: Some(conversation), ..TicketFilter::default() };
                let now = SystemClock.now();
                let open = fixture.db.tickets(&fixture.store, &filter, ShownTickets::Open, &[], now, &first(1)).await.unwrap().rows;
                for ticket in open {
                    let by = WriteContext::alone(&fixture.store, Actor::System);
                    service.close_ticket(&by, closing(ticket.id), TicketExpand::default()).await.unwrap();
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let messages = fixture.assert_conversation_is_consistent(&conversation).await;
    assert_eq!(messages, SENDS as i64 + 1 + SENDS.div_ceil(3) as i64);
}

/// A clock that causes a race: if `left` is 1, the next reading of the clock first runs another write to the same conversation.
struct RacingClock {
    fixture: Arc<Fixture>,
    left: AtomicU32,
}

impl Clock for RacingClock {
    fn now(&self) -> Timestamp {
        // A write reads the clock for the first time at its beginning. It holds no lock then, so the other write can run.
        if self.left.load(Ordering::Relaxed) > 0 && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let meddle = self.fixture.execute("UPDATE conversations SET unread_count = 5 WHERE id = 'ct'");
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(meddle)).unwrap();
        }
        SystemClock.now()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_retried_after_a_concurrent_write_is_sent_once() {
    let fixture = Arc::new(Fixture::alone().await);
    if fixture.is_sqlite() {
        // On SQLite the write reads the clock while it holds all locks, so no other write can come between.
        return;
    }
    fixture.ticket("t", |_| {}).await;
    let clock = Arc::new(RacingClock { fixture: fixture.clone(), left: AtomicU32::new(0) });
    let service = service(fixture.db.clone(), clock.clone(), Silent);
    for (sent, meddles) in [(1, 0), (2, 1)] {
        clock.left.store(meddles, Ordering::Relaxed);
        let send = Send::Text { conversation_id: "ct".into(), text: format!("text {sent}") };
        service.send(&WriteContext::alone(&fixture.store, Actor::System), send).await.unwrap();
        assert_eq!(clock.left.load(Ordering::Relaxed), 0);
        assert_eq!(fixture.assert_conversation_is_consistent(&"ct".into()).await, sent);
    }
    let conversation = fixture.db.conversation(&fixture.store, &"ct".into()).await.unwrap().unwrap();
    assert_eq!((conversation.message_count, conversation.unread_count), (2, 5));
    assert_eq!(service.all_undelivered(&fixture.store).await.unwrap().len(), 2);
}
