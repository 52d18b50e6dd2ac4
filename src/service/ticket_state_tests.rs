//! Tests of ticket transitions on a database: the stored rows, the events, and the refusals.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Error, Renderer, Service, WriteContext, WriteOutcome,
    store_creation_and_settings::{StoreSettings, edit_store},
    test_service::service,
    ticket_updates::Closing,
    unassign_snooze_handover::Escalation,
};
use crate::{
    domain::{
        clock::Clock,
        events::{Actor, Event, EventChange},
        fake_clock_and_test_rules::MovableClock,
        ids::{StoreId, TicketId},
        inbound_messages::Inbound,
        messages::MessageExpand,
        ordered_object::Entries,
        ticket_filters::TicketFilter,
        ticket_states::TicketState,
        tickets::{Ticket, TicketExpand},
        time::Timestamp,
    },
    store::fixture::{self, Fixture, first},
};

/// Serialises the properties of an event that the tests check.
struct Heard;

impl Renderer for Heard {
    fn render(&self, _: &StoreId, event: &Event) -> Vec<u8> {
        let of = |ticket: &Ticket| json!([ticket.id.as_str(), ticket.assignee_user_id.as_ref().map(|id| id.as_str())]);
        let data = match &event.fact {
            EventChange::TicketUnassigned { ticket, previous } => json!([of(ticket), previous.as_ref().map(|id| id.as_str())]),
            EventChange::TicketClosed { ticket } => of(ticket),
            EventChange::TicketOpened { ticket, reopened } => json!([of(ticket), reopened]),
            EventChange::AiEscalated { conversation, ticket, reason } => {
                json!([conversation.id.as_str(), ticket.as_deref().map(of), reason])
            }
            _ => Value::Null,
        };
        json!([event.fact.kind(), event.actor.parts().0, data]).to_string().into_bytes()
    }
}

struct TicketStateFixture {
    fixture: Fixture,
    service: Service,
    clock: Arc<MovableClock>,
}

const NOW: i64 = 1_000_000;

impl TicketStateFixture {
    async fn open() -> Self {
        let fixture = Fixture::new().await;
        let clock = MovableClock::at(NOW);
        let service = service(fixture.db.clone(), clock.clone(), Heard);
        Self { fixture, service, clock }
    }

    fn by<T>(&self) -> WriteContext<'_, T> {
        WriteContext::alone(&self.fixture.store, Actor::User("u".into()))
    }

    fn wait(&self, millis: i64) {
        self.clock.pass(millis);
    }

    /// Returns the events recorded since the last call.
    async fn heard(&self, seen: &mut i64) -> Vec<Value> {
        self.fixture.db.number_events(None, self.clock.now()).await.unwrap();
        let recorded = self.fixture.db.events_after(&self.fixture.store, *seen, 99).await.unwrap();
        *seen += recorded.len() as i64;
        recorded.iter().map(|event| serde_json::from_slice(&event.body).unwrap()).collect()
    }

    async fn ticket(&self, id: &str) -> Ticket {
        self.fixture.db.ticket(&self.fixture.store, &id.into()).await.unwrap().unwrap()
    }

    /// Returns the tickets of a list without filters.
    async fn listed(&self) -> Vec<TicketId> {
        let page = self.service.tickets(&self.fixture.store, TicketFilter::default(), first(9), TicketExpand::default()).await.unwrap();
        page.rows.into_iter().map(|view| view.ticket.id).collect()
    }

    async fn snooze(&self, id: &str, until: i64) -> Result<Ticket, String> {
        shown(self.service.snooze_ticket(&self.by(), id.into(), Timestamp::from_millis(until), TicketExpand::default()).await)
    }

    async fn unsnooze(&self, id: &str) -> Result<Ticket, String> {
        shown(self.service.unsnooze_ticket(&self.by(), id.into(), TicketExpand::default()).await)
    }

    async fn unassign(&self, id: &str) -> Result<Ticket, String> {
        shown(self.service.unassign_ticket(&self.by(), id.into(), TicketExpand::default()).await)
    }

    async fn close(&self, id: &str) -> Result<Ticket, String> {
        let closing = Closing {
            ticket_id: id.into(),
            handled_by: None,
            is_converted: None,
            total_revenue: None,
            currency: None,
            fields: Entries::default(),
        };
        shown(self.service.close_ticket(&self.by(), closing, TicketExpand::default()).await)
    }

    async fn escalate(&self, conversation: &str, reason: Option<&str>) -> Result<(), Error> {
        let escalation = Escalation { conversation_id: conversation.into(), reason: reason.map(str::to_owned) };
        self.service.escalate(&self.by(), escalation).await.map(|_| ())
    }

    async fn receive(&self, thread: &str, external_id: &str) {
        let inbound = Inbound {
            account_id: "a1".into(),
            reference_id: thread.into(),
            external_id: external_id.into(),
            sender_id: "x".into(),
            sender_name: None,
            text: Some(external_id.into()),
            images: None,
            sent_at: None,
            email_subject: None,
            contact: None,
            not_texts: vec![],
        };
        self.service.receive(&self.fixture.store, inbound).await.unwrap();
    }
}

fn shown(result: Result<WriteOutcome<crate::domain::tickets::TicketView>, Error>) -> Result<Ticket, String> {
    match result {
        Ok(WriteOutcome::New(view)) => Ok(view.ticket),
        Ok(WriteOutcome::Replayed(_)) => Err("replayed".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn an_assignee_is_removed_once_and_from_a_closed_ticket_too() {
    let shop = TicketStateFixture::open().await;
    let mut seen = 0;
    for (id, is_open, assignee) in [("held", true, Some("u1")), ("free", true, None), ("done", false, Some("u1"))] {
        shop.fixture
            .ticket(id, |row| {
                row.is_open = is_open;
                row.closed_at = (!is_open).then_some(5);
                row.assignee_user_id = assignee.map(Into::into);
            })
            .await;
    }
    for (id, events) in [("held", 1), ("held", 0), ("free", 0), ("done", 1), ("done", 0)] {
        let ticket = shop.unassign(id).await.unwrap();
        assert_eq!(ticket, shop.ticket(id).await);
        assert_eq!(ticket.assignee_user_id, None);
        assert_eq!(ticket.updated_at.millis(), if id == "free" { 0 } else { NOW });
        let expected = json!(["ticket.unassigned", "user", [[id, null], "u1"]]);
        assert_eq!(shop.heard(&mut seen).await, vec![expected; events], "{id}");
    }
    assert_eq!(shop.ticket("done").await.closed_at.unwrap().millis(), 5);
    assert_eq!(shop.unassign("gone").await, Err("`ticketId`: no ticket with id `gone` in this store".to_owned()));
}

#[tokio::test]
async fn a_snooze_ends_by_time_message_close_or_call() {
    let shop = TicketStateFixture::open().await;
    let mut seen = 0;
    for id in ["1", "2"] {
        shop.fixture.ticket(id, |_| {}).await;
    }
    assert_eq!(shop.snooze("1", NOW).await, Err("`until` must lie in the future".to_owned()));
    assert_eq!(shop.snooze("gone", NOW + 1).await, Err("`ticketId`: no ticket with id `gone` in this store".to_owned()));
    let snoozed = shop.snooze("1", NOW + 10).await.unwrap();
    assert_eq!((snoozed.snoozed_until.unwrap().millis(), snoozed.updated_at.millis()), (NOW + 10, 0));
    assert_eq!(shop.ticket("1").await, snoozed);
    assert_eq!(shop.listed().await, ["2".into()]);
    // The snooze ends by itself when its time has come.
    shop.wait(10);
    assert_eq!(shop.listed().await.len(), 2);
    // An explicit call ends the snooze. A second call changes nothing.
    shop.snooze("1", NOW + 99).await.unwrap();
    assert_eq!(shop.unsnooze("1").await.unwrap().snoozed_until, None);
    assert_eq!(shop.unsnooze("1").await.unwrap().snoozed_until, None);
    assert_eq!(shop.listed().await.len(), 2);
    assert_eq!(shop.heard(&mut seen).await, Vec::<Value>::new());
    // An inbound message ends the snooze.
    shop.snooze("1", NOW + 99).await.unwrap();
    shop.receive("c1", "m1").await;
    let woken = shop.ticket("1").await;
    assert_eq!((woken.snoozed_until, woken.sort_at.millis(), woken.updated_at.millis()), (None, NOW + 10, 0));
    assert_eq!(shop.heard(&mut seen).await, [json!(["message.received", "contact", null])]);
    // A close ends the snooze; a reopened ticket is not snoozed again.
    shop.snooze("1", NOW + 99).await.unwrap();
    assert_eq!(shop.close("1").await.unwrap().snoozed_until, None);
    let closed = shop.ticket("1").await;
    assert_eq!((closed.snoozed_until, closed.state(Timestamp::from_millis(NOW))), (None, TicketState::Closed));
    assert_eq!(shop.snooze("1", NOW + 99).await, Err("`ticketId` names a ticket that is closed; only open tickets are snoozed".to_owned()));
    assert_eq!(shop.unsnooze("1").await.unwrap(), closed);
    shop.receive("c1", "m2").await;
    let reopened = shop.ticket("1").await;
    assert_eq!((reopened.is_open, reopened.closed_at, reopened.snoozed_until), (true, None, None));
    assert_eq!(reopened.reopened_at.unwrap().millis(), NOW + 11);
    assert_eq!(
        shop.heard(&mut seen).await,
        [
            json!(["ticket.closed", "user", ["1", null]]),
            json!(["message.received", "contact", null]),
            json!(["ticket.opened", "contact", [["1", null], true]]),
        ]
    );
}

#[tokio::test]
async fn an_escalation_names_the_open_ticket() {
    let shop = TicketStateFixture::open().await;
    let mut seen = 0;
    shop.fixture.ticket("1", |_| {}).await;
    let before = shop.ticket("1").await;
    shop.escalate("c1", Some(" angry \n")).await.unwrap();
    shop.escalate("c0", Some(" ")).await.unwrap();
    assert_eq!(shop.ticket("1").await, before);
    shop.close("1").await.unwrap();
    shop.escalate("c1", None).await.unwrap();
    assert_eq!(
        shop.heard(&mut seen).await,
        [
            json!(["ai.escalated", "ai", ["c1", ["1", null], "angry"]]),
            json!(["ai.escalated", "ai", ["c0", null, null]]),
            json!(["ticket.closed", "user", ["1", null]]),
            json!(["ai.escalated", "ai", ["c1", null, null]]),
        ]
    );
    assert_eq!(
        shop.escalate("gone", None).await.unwrap_err().to_string(),
        "`conversationId`: no conversation with id `gone` in this store"
    );
    assert!(shop.escalate("c1", Some(&"ก".repeat(1000))).await.is_ok());
    assert!(shop.escalate("c1", Some(&"a".repeat(1001))).await.is_err());
}

#[tokio::test]
async fn a_message_at_the_closing_instant_belongs_to_the_next_ticket() {
    let shop = TicketStateFixture::open().await;
    let settings = StoreSettings { reopen_window_hours: Some(0), ..StoreSettings::default() };
    edit_store(&shop.fixture.db, &shop.fixture.store, settings).await.unwrap();
    shop.receive("quick", "1").await;
    let first = shop.listed().await.remove(0);
    shop.close(first.as_str()).await.unwrap();
    shop.receive("quick", "2").await;
    let second = shop.listed().await.remove(0);
    assert_ne!(first, second);
    for (ticket, message) in [(&first, "1"), (&second, "2")] {
        let page =
            shop.service.messages(&shop.fixture.store, None, Some(ticket), fixture::first(9), MessageExpand::default()).await.unwrap();
        let found: Vec<_> = page.rows.into_iter().map(|view| view.message.text).collect();
        assert_eq!(found, [Some(message.to_owned())], "{ticket}");
    }
    let (first, second) = (shop.ticket(first.as_str()).await, shop.ticket(second.as_str()).await);
    assert!(second.opened_at > first.closed_at.unwrap(), "{first:?} {second:?}");
}
