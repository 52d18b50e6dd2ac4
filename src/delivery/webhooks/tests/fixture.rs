//! Test fixture of webhook delivery: a store with subscriptions, a fake clock, and a worker that makes all due attempts on request.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::endpoint::{SHORT, START};
use crate::{
    delivery::{signing_http_client::SigningHttpClient, webhooks::WebhookQueue, worker::Worker},
    domain::{
        clock::{Clock, ClocksAndIds, Ids, RandomIds},
        events::{self, Actor, Event, EventChange, FieldChange},
        fake_clock_and_test_rules::{MovableClock, RULES},
        ids::{StoreId, WebhookId},
        settings_access::{Editor, StoreLimits},
        ssrf_policy::Targets,
        webhooks::{AttemptLogPage, Attempted, EndpointAnswer, LoggedAttempt, Replay, SECRET_BYTES, SigningSecret, Webhook},
    },
    service::{
        Renderer, Service, WriteContext, conversation_writes::LabelUpdate, unassign_snooze_handover::Escalation, webhooks::WebhookSettings,
    },
    store::{
        Db,
        fixture::Fixture,
        queues::{concurrency::AttemptLimits, deliveries::ClaimedDelivery},
    },
};

pub(super) const MINUTE: i64 = 60_000;
pub(super) const DAY: i64 = 24 * 60 * MINUTE;

/// Serialises events for the tests: only the properties that the tests check.
struct Brief;

impl Renderer for Brief {
    fn render(&self, _: &StoreId, event: &Event) -> Vec<u8> {
        format!("{{\"id\":\"{}\",\"type\":\"{}\",\"text\":\"ฟ\\u0000 é\"}}", event.id, event.fact.kind()).into_bytes()
    }
}

/// The test fixture: a store on a database of its own. A worker claims the due events of all stores in a database, so on a shared database
/// it would also claim the events of other tests.
pub(super) struct Bench {
    pub(super) fixture: Fixture,
    pub(super) clock: Arc<MovableClock>,
    pub(super) service: Service,
}

pub(super) fn service(db: Db, clock: Arc<dyn Clock>) -> Service {
    let service = Service::new(db, ClocksAndIds::of(clock, Arc::new(RandomIds)), RULES, Arc::new(Brief));
    service.bounded_by(StoreLimits { webhooks: 1000, ..StoreLimits::default() })
}

/// Records one event of the account `a1`: the escalation of a conversation.
pub(super) async fn escalate(service: &Service, store: &StoreId, conversation: &str) {
    let by = WriteContext::alone(store, Actor::System);
    service.escalate(&by, Escalation { conversation_id: conversation.into(), reason: None }).await.unwrap();
}

pub(super) fn every() -> Replay {
    Replay::default()
}

impl Bench {
    pub(super) async fn new() -> Self {
        let fixture = Fixture::alone().await;
        let clock = MovableClock::at(START);
        let service = service(fixture.db.clone(), clock.clone());
        Self { fixture, clock, service }
    }

    pub(super) fn store(&self) -> &StoreId {
        &self.fixture.store
    }

    pub(super) fn pass(&self, millis: i64) {
        self.clock.pass(millis);
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.now().millis()
    }

    pub(super) async fn hook(&self, url: &str) -> (WebhookId, SigningSecret) {
        self.hook_for(url, &[], None).await
    }

    pub(super) async fn hook_for(&self, url: &str, kinds: &[&str], account: Option<&str>) -> (WebhookId, SigningSecret) {
        let kinds = (!kinds.is_empty()).then(|| kinds.iter().map(|kind| (*kind).to_owned()).collect());
        let settings = WebhookSettings { url: Some(url.to_owned()), kinds: Some(kinds), account_id: Some(account.map(Into::into)) };
        let (webhook, secret) = self.service.create_webhook(&self.editor(), settings).await.unwrap();
        (webhook.id, secret)
    }

    /// Creates a subscription without checking its URL.
    pub(super) async fn unchecked_hook(&self, url: &str) -> WebhookId {
        let now = self.clock.now();
        let webhook = Webhook {
            id: WebhookId::from(RandomIds.fresh()),
            url: url.to_owned(),
            kinds: Vec::new(),
            account_id: None,
            enabled: true,
            disabled_reason: None,
            failing_since: None,
            created_at: now,
            updated_at: now,
        };
        let write = self.fixture.db.write(self.store(), &(self.clock.clone() as Arc<dyn Clock>)).await.unwrap();
        write.insert_webhook(&webhook, &SigningSecret(vec![7; SECRET_BYTES])).await.unwrap();
        write.commit().await.unwrap();
        webhook.id
    }

    pub(super) async fn event(&self) {
        escalate(&self.service, self.store(), "c0").await;
    }

    pub(super) async fn label(&self, conversation: &str, label: &str) {
        let by = WriteContext::alone(self.store(), Actor::System);
        let update = LabelUpdate { conversation_id: conversation.into(), add: vec![label.into()], remove: vec![] };
        self.service.update_conversation_labels(&by, update).await.unwrap();
    }

    /// Records an event without an account; `body` replaces the event's body.
    pub(super) async fn contact_event(&self, body: Option<&[u8]>) {
        self.contact_events(1, body).await;
    }

    /// Records `count` events without an account in one transaction. `body` is as in `contact_event`.
    pub(super) async fn contact_events(&self, count: usize, body: Option<&[u8]>) {
        let contact = self.fixture.db.contact(self.store(), &"k1".into()).await.unwrap().unwrap();
        let events: Vec<_> = (0..count)
            .map(|_| {
                let change = FieldChange { field_id: "f1".into(), old: None, new: None };
                let fact = EventChange::ContactFieldUpdated { contact: contact.clone(), change };
                let event = Event { id: RandomIds.fresh(), at: self.clock.now(), actor: Actor::System, fact };
                let body = body.map_or_else(|| Brief.render(self.store(), &event), <[u8]>::to_vec);
                (event, body)
            })
            .collect();
        let write = self.fixture.db.write(self.store(), &(self.clock.clone() as Arc<dyn Clock>)).await.unwrap();
        write.record(&events).await.unwrap();
        write.commit().await.unwrap();
    }

    pub(super) fn worker(&self) -> Worker<WebhookQueue> {
        self.worker_within(SHORT, Targets::Any)
    }

    pub(super) fn worker_within(&self, timeout: Duration, targets: Targets) -> Worker<WebhookQueue> {
        self.worker_over(SigningHttpClient::new(timeout, targets).unwrap(), targets)
    }

    pub(super) fn worker_over(&self, http_client: SigningHttpClient, targets: Targets) -> Worker<WebhookQueue> {
        Worker::new(WebhookQueue::over(http_client, self.service.clone(), targets))
    }

    /// Returns the milliseconds until the next attempt is due.
    pub(super) async fn due(&self) -> Option<i64> {
        self.service.next_delivery_at().await.unwrap().map(|at| at.millis() - self.now())
    }

    pub(super) async fn shown(&self, id: &WebhookId) -> Webhook {
        self.service.webhooks(self.store()).await.unwrap().into_iter().find(|webhook| webhook.id == *id).unwrap()
    }

    pub(super) fn editor(&self) -> Editor {
        Editor::command_line(self.store().clone())
    }

    pub(super) async fn log(&self, id: &WebhookId) -> Vec<LoggedAttempt> {
        self.service.attempts(self.store(), id, AttemptLogPage::After(0), 500).await.unwrap()
    }

    pub(super) async fn outcomes(&self, id: &WebhookId) -> Vec<String> {
        self.log(id).await.into_iter().map(|attempt| attempt.outcome).collect()
    }

    pub(super) async fn replay(&self, id: &WebhookId, replay: Replay) -> i64 {
        let counted = self.service.replay(&self.editor(), id, replay.clone(), true).await.unwrap();
        let queued = self.service.replay(&self.editor(), id, replay, false).await.unwrap();
        assert_eq!(counted, queued, "the dry run counts other events than the replay queues");
        queued
    }

    pub(super) async fn claim(&self) -> Vec<ClaimedDelivery> {
        let none = HashMap::new();
        self.service.claim_deliveries(AttemptLimits { all: 100, each: 100, busy: &none }).await.unwrap()
    }

    /// Moves the clock to the next due time, and claims the deliveries that are due then.
    pub(super) async fn claim_at_due(&self) -> Vec<ClaimedDelivery> {
        let Some(due) = self.due().await else { return Vec::new() };
        self.pass(due.max(0));
        self.claim().await
    }

    pub(super) fn attempted(&self, answer: EndpointAnswer) -> Attempted {
        Attempted { started_at: self.clock.now(), ended_at: self.clock.now(), answer, body: None }
    }
}

pub(super) fn numbered(sequence: i64, body: &[u8]) -> Vec<u8> {
    events::numbered(sequence, body).unwrap()
}
