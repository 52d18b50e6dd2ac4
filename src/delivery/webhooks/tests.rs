//! Deliveries to local endpoints that do as they are told, with a clock that can be moved.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::*;
use crate::{
    delivery::worker::{PLACE_MAX, Worker},
    domain::{
        clock::{Clock, Ids, RandomIds, World},
        events::{Actor, Event, Fact, FieldChange},
        ids::{StoreId, WebhookId},
        rules::{ReceivedAt, Rules},
        webhooks::{PATIENCE_MILLIS, PAUSES, ROTATION_MILLIS, SigningSecret, Webhook},
    },
    service::{
        By, Error, Renderer,
        conversation_writes::LabelUpdate,
        ticket_states::Escalation,
        webhooks::{LEASE_MILLIS, Settings},
    },
    store::{
        Db,
        fixture::Fixture,
        webhooks::{Logged, Replay},
    },
};

/// When the tests begin.
const START: i64 = 1_700_000_000_000;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// How long an endpoint has in these tests.
const SHORT: Duration = Duration::from_millis(400);

struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Tells of an event what the tests look at.
struct Brief;

impl Renderer for Brief {
    fn render(&self, _: &StoreId, event: &Event) -> Vec<u8> {
        format!("{{\"id\":\"{}\",\"type\":\"{}\",\"text\":\"ฟ\\u0000 é\"}}", event.id, event.fact.kind()).into_bytes()
    }
}

const RULES: Rules = Rules {
    revision: "test",
    max_page_size: 100,
    messages_default_page_size: None,
    messages_max_page_size: 100,
    received_at: ReceivedAt::Timestamp,
    page_echo: false,
    strict_cursors: false,
    conversation_history: true,
    unknown_labels_refused: true,
    user_name_fallback: false,
    contacts_by_relevance: true,
    template_operation: None,
};

/// A store on a database of its own: claims look at all stores.
struct Bench {
    fixture: Fixture,
    hands: Arc<Hands>,
    service: Service,
}

fn service(db: Db, clock: Arc<dyn Clock>) -> Service {
    Service::new(db, World { clock, ids: Arc::new(RandomIds) }, RULES, Arc::new(Brief))
}

/// Records one event of the account `a1`.
async fn escalate(service: &Service, store: &StoreId, conversation: &str) {
    let by = By { store, actor: Actor::System, once: None };
    service.escalate(&by, Escalation { conversation_id: conversation.into(), reason: None }).await.unwrap();
}

fn every() -> Replay {
    Replay::default()
}

impl Bench {
    async fn new() -> Self {
        let fixture = Fixture::alone().await;
        let hands = Arc::new(Hands(AtomicI64::new(START)));
        let service = service(fixture.db.clone(), hands.clone());
        Self { fixture, hands, service }
    }

    fn store(&self) -> &StoreId {
        &self.fixture.store
    }

    fn pass(&self, millis: i64) {
        self.hands.0.fetch_add(millis, Ordering::SeqCst);
    }

    fn now(&self) -> i64 {
        self.hands.now().millis()
    }

    async fn hook(&self, url: &str) -> (WebhookId, SigningSecret) {
        self.hook_for(url, &[], None).await
    }

    async fn hook_for(&self, url: &str, kinds: &[&str], account: Option<&str>) -> (WebhookId, SigningSecret) {
        let kinds = Some(kinds.iter().map(|kind| (*kind).to_owned()).collect());
        let settings = Settings { url: Some(url.to_owned()), kinds, account_id: Some(account.map(Into::into)) };
        let (webhook, secret) = self.service.create_webhook(self.store(), settings).await.unwrap();
        (webhook.id, secret)
    }

    async fn event(&self) {
        escalate(&self.service, self.store(), "c0").await;
    }

    async fn label(&self, conversation: &str, label: &str) {
        let by = By { store: self.store(), actor: Actor::System, once: None };
        let update = LabelUpdate { conversation_id: conversation.into(), add: vec![label.into()], remove: vec![] };
        self.service.update_conversation_labels(&by, update).await.unwrap();
    }

    /// An event that has no account; with a body of the caller's.
    async fn contact_event(&self, body: Option<&[u8]>) {
        let contact = self.fixture.db.contact(self.store(), &"k1".into()).await.unwrap().unwrap();
        let change = FieldChange { field_id: "f1".into(), old: None, new: None };
        let fact = Fact::ContactFieldUpdated { contact, change };
        let event = Event { id: RandomIds.fresh(), at: self.hands.now(), actor: Actor::System, fact };
        let body = body.map_or_else(|| Brief.render(self.store(), &event), <[u8]>::to_vec);
        let write = self.fixture.db.write(self.store(), &(self.hands.clone() as Arc<dyn Clock>)).await.unwrap();
        write.record(&[(event, body)]).await.unwrap();
        write.commit().await.unwrap();
    }

    fn worker(&self) -> Worker<Webhooks> {
        self.worker_within(SHORT, Targets::Any)
    }

    fn worker_within(&self, timeout: Duration, targets: Targets) -> Worker<Webhooks> {
        Worker::new(Webhooks::within(timeout, self.service.clone(), targets).unwrap())
    }

    /// Milliseconds until something is tried.
    async fn due(&self) -> Option<i64> {
        self.service.next_delivery_at().await.unwrap().map(|at| at.millis() - self.now())
    }

    async fn shown(&self, id: &WebhookId) -> Webhook {
        self.service.webhooks(self.store()).await.unwrap().into_iter().find(|webhook| webhook.id == *id).unwrap()
    }

    async fn log(&self, id: &WebhookId) -> Vec<Logged> {
        self.service.attempts(self.store(), id, 0).await.unwrap()
    }

    async fn outcomes(&self, id: &WebhookId) -> Vec<String> {
        self.log(id).await.into_iter().map(|attempt| attempt.outcome).collect()
    }

    async fn replay(&self, id: &WebhookId, replay: Replay) -> i64 {
        let counted = self.service.replay(self.store(), id, replay.clone(), true).await.unwrap();
        let queued = self.service.replay(self.store(), id, replay, false).await.unwrap();
        assert_eq!(counted, queued, "a dry run tells something else");
        queued
    }

    async fn claim(&self) -> Vec<Claimed> {
        let none = HashMap::new();
        self.service.claim_deliveries(Room { all: 100, each: 100, busy: &none }).await.unwrap()
    }

    fn attempted(&self, answer: Answer) -> Attempted {
        Attempted { started_at: self.hands.now(), ended_at: self.hands.now(), answer }
    }
}

/// A request that an endpoint was sent.
#[derive(Clone, Debug)]
struct Seen {
    line: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Seen {
    fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    fn seconds(&self) -> i64 {
        self.headers["webhook-timestamp"].parse().unwrap()
    }

    fn signatures(&self) -> Vec<&str> {
        self.headers["webhook-signature"].split(' ').collect()
    }

    fn signed_by(&self, secret: &SigningSecret) -> String {
        secret.sign(self.id(), self.seconds(), &self.body)
    }
}

#[derive(Clone, Debug)]
enum Reply {
    /// A status line and headers.
    Says(String),
    /// The same after a while, in which nothing else may come for the event.
    Slowly(&'static str),
    Hang,
    Reset,
    /// Begins an answer and never ends it.
    Drip,
}

/// A local HTTP server.
#[derive(Clone)]
struct Endpoint {
    url: String,
    name: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    reply: Arc<Mutex<Reply>>,
    connections: Arc<AtomicUsize>,
    going: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    async fn new(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint = Self {
            url: format!("http://127.0.0.1:{port}/hooks?a=b"),
            name: format!("http://localhost:{port}/hooks?a=b"),
            seen: Arc::default(),
            reply: Arc::new(Mutex::new(reply)),
            connections: Arc::default(),
            going: Arc::default(),
        };
        let server = endpoint.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                server.connections.fetch_add(1, Ordering::SeqCst);
                let server = server.clone();
                tokio::spawn(async move { server.talk(stream).await });
            }
        });
        endpoint
    }

    async fn says(status: &str) -> Self {
        Self::new(Reply::Says(status.to_owned())).await
    }

    fn now_says(&self, status: &str) {
        *self.reply.lock().unwrap() = Reply::Says(status.to_owned());
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().cloned().unwrap()
    }

    async fn talk(&self, mut stream: TcpStream) {
        let reply = self.reply.lock().unwrap().clone();
        if matches!(reply, Reply::Reset) {
            // Closed with something unread: the other side is told that the connection was reset.
            _ = stream.read_u8().await;
            return;
        }
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let line = lines.next().unwrap().to_owned();
        let pairs = lines.map(|line| line.split_once(": ").unwrap());
        let headers: HashMap<String, String> = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let length: usize = headers["content-length"].parse().unwrap();
        while bytes.len() < end + 4 + length {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
        }
        let seen = Seen { line, headers, body: bytes[end + 4..].to_vec() };
        let id = seen.id().to_owned();
        self.seen.lock().unwrap().push(seen);
        let answer = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        match reply {
            Reply::Says(status) => _ = stream.write_all(answer(&status).as_bytes()).await,
            Reply::Slowly(status) => {
                {
                    let mut going = self.going.lock().unwrap();
                    assert!(!going.contains(&id), "{id} twice at once");
                    going.push(id.clone());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                self.going.lock().unwrap().retain(|other| *other != id);
                _ = stream.write_all(answer(status).as_bytes()).await;
            }
            Reply::Hang => std::future::pending().await,
            Reply::Drip => {
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
                while stream.write_all(b".").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Reply::Reset => {}
        }
    }
}

#[test]
fn a_pause_is_asked_for_in_seconds_or_by_a_date() {
    let now = Timestamp::from_millis(1_445_412_480_000);
    for (text, pause) in [
        ("120", Some(120_000)),
        (" 0 ", Some(0)),
        ("-5", Some(0)),
        ("99999999999999", Some(LONGEST_ASKED)),
        ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
        ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(asked(text, now), pause, "{text:?}");
    }
}

#[tokio::test]
async fn an_event_is_tried_by_schedule_with_the_same_bytes_and_then_given_up() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("500 Broken").await;
    let (id, secret) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    bench.event().await;
    worker.drain().await.unwrap();
    for (n, pause) in (1..).zip(PAUSES) {
        assert_eq!(endpoint.count(), n);
        let waited = bench.due().await.unwrap();
        assert!((pause * 8 / 10..=pause * 12 / 10).contains(&waited), "after attempt {n}: {waited}");
        let logged = bench.log(&id).await.pop().unwrap();
        assert_eq!((logged.attempt, logged.outcome.as_str(), logged.status), (n as i64, "retrying", Some(500)));
        assert_eq!(logged.next_at.map(Timestamp::millis), Some(bench.now() + waited));
        bench.pass(waited - 1);
        worker.drain().await.unwrap();
        assert_eq!(endpoint.count(), n, "tried before it is due");
        bench.pass(1);
        worker.drain().await.unwrap();
    }
    assert_eq!((endpoint.count(), bench.due().await), (10, None));
    let last = bench.log(&id).await.pop().unwrap();
    assert_eq!((last.attempt, last.outcome.as_str(), last.next_at), (10, "given_up", None));
    assert!(bench.shown(&id).await.enabled, "three days are no five");
    let seen = endpoint.seen();
    let event = bench.fixture.db.events_after(bench.store(), 0, 10).await.unwrap().remove(0);
    assert_eq!(seen[0].body, numbered(event.sequence, &event.body));
    for attempt in &seen {
        assert_eq!(attempt.line, "POST /hooks?a=b HTTP/1.1");
        assert_eq!(attempt.headers["content-type"], "application/json");
        assert_eq!((attempt.id(), &attempt.body), (seen[0].id(), &seen[0].body));
        assert_eq!(attempt.signatures(), [attempt.signed_by(&secret)]);
    }
    assert!(seen.windows(2).all(|two| two[0].seconds() < two[1].seconds() && two[0].signatures() != two[1].signatures()));
}

fn numbered(sequence: i64, body: &[u8]) -> Vec<u8> {
    crate::domain::events::numbered(sequence, body).unwrap()
}

#[tokio::test]
async fn a_pause_begins_when_the_attempt_ends() {
    let bench = Bench::new().await;
    bench.hook("http://127.0.0.1:1/").await;
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let claimed = bench.claim().await.remove(0);
    let started_at = bench.hands.now();
    bench.pass(12_000);
    let attempted = Attempted { started_at, ended_at: bench.hands.now(), answer: Answer::Status(503, None) };
    bench.service.settle_delivery(&claimed, attempted, 0.5).await.unwrap();
    assert_eq!(bench.due().await, Some(5_000));
    assert_eq!(bench.log(&claimed.shipment.webhook_id).await[0].took, 12_000);
}

#[tokio::test]
async fn an_endpoint_may_ask_for_a_longer_pause() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("429 Too Many\r\nretry-after: 3600").await;
    bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(bench.due().await, Some(60 * MINUTE));
    bench.pass(60 * MINUTE);
    endpoint.now_says("503 Later\r\nRetry-After: 99999999");
    worker.drain().await.unwrap();
    assert_eq!(bench.due().await, Some(DAY));
    bench.pass(DAY);
    // The schedule's own pause is the shortest.
    endpoint.now_says("503 Later\r\nretry-after: 1");
    worker.drain().await.unwrap();
    assert!(bench.due().await.unwrap() >= 24 * MINUTE);
}

#[tokio::test]
async fn only_a_success_is_one() {
    let bench = Bench::new().await;
    let elsewhere = Endpoint::says("200 OK").await;
    let mut worker = bench.worker();
    for (reply, status, reason) in [
        (Reply::Says("204 No Content".to_owned()), Some(204), ""),
        (Reply::Says("299 Odd".to_owned()), Some(299), ""),
        (Reply::Says(format!("302 Found\r\nlocation: {}", elsewhere.url)), Some(302), ""),
        (Reply::Says(format!("307 Again\r\nlocation: {}", elsewhere.url)), Some(307), ""),
        (Reply::Says("404 Not Found".to_owned()), Some(404), ""),
        (Reply::Hang, None, "no answer within"),
        (Reply::Drip, None, "no answer within"),
        (Reply::Reset, None, "reset"),
    ] {
        let endpoint = Endpoint::new(reply.clone()).await;
        let (id, _) = bench.hook(&endpoint.url).await;
        bench.event().await;
        worker.drain().await.unwrap();
        let attempt = bench.log(&id).await.remove(0);
        let outcome = if matches!(status, Some(200..300)) { "delivered" } else { "retrying" };
        assert_eq!((attempt.status, attempt.outcome.as_str(), attempt.kind.as_str()), (status, outcome, "ai.escalated"), "{reply:?}");
        assert!(attempt.reason.as_deref().unwrap_or_default().contains(reason), "{reply:?}: {attempt:?}");
        bench.service.delete_webhook(bench.store(), &id).await.unwrap();
    }
    let (id, _) = bench.hook("http://127.0.0.1:1/secret").await;
    bench.event().await;
    worker.drain().await.unwrap();
    let reason = bench.log(&id).await.remove(0).reason.unwrap();
    assert!(reason.contains("refused") && !reason.contains("secret"), "{reason}");
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0, "a redirect was followed");
}

#[tokio::test]
async fn nothing_connects_to_a_private_address() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    let mut worker = bench.worker_within(SHORT, Targets::Public);
    for url in [&endpoint.url, &endpoint.name] {
        let (id, _) = bench.hook(url).await;
        bench.event().await;
        worker.drain().await.unwrap();
        let attempt = bench.log(&id).await.remove(0);
        assert!(attempt.reason.as_deref().is_some_and(|reason| reason.contains("not a public one")), "{attempt:?}");
    }
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 0);
    bench.pass(DAY);
    bench.worker().drain().await.unwrap();
    assert_eq!(endpoint.count(), 3, "both names work where it is allowed");
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_told_nothing_more() {
    let bench = Bench::new().await;
    let gone = Endpoint::says("410 Gone").await;
    let well = Endpoint::says("200 OK").await;
    let (id, _) = bench.hook(&gone.url).await;
    let (other, _) = bench.hook(&well.url).await;
    for _ in 0..40 {
        bench.event().await;
    }
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    let shown = bench.shown(&id).await;
    assert_eq!((shown.enabled, shown.disabled_reason.as_deref()), (false, Some("the endpoint answered 410 Gone")));
    let outcomes = bench.outcomes(&id).await;
    assert!(outcomes.len() <= PLACE_MAX, "{} attempts", outcomes.len());
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "disabled").count(), 1);
    assert!(outcomes.iter().all(|outcome| outcome == "disabled" || outcome == "late"), "{outcomes:?}");
    assert_eq!((well.count(), bench.due().await), (40, None));
    bench.event().await;
    bench.pass(2 * DAY);
    let before = gone.count();
    worker.drain().await.unwrap();
    // Enabled again, it is told of what happens from now on, and of the rest by a replay.
    gone.now_says("200 OK");
    bench.event().await;
    bench.service.enable_webhook(bench.store(), &id, true).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!((gone.count(), bench.due().await), (before, None), "what happened while it was disabled is not queued");
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!((gone.count(), well.count()), (before + 1, 43));
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 42);
    worker.drain().await.unwrap();
    assert_eq!((gone.count(), bench.replay(&id, Replay { missing: true, ..every() }).await), (before + 43, 0));
    assert_eq!(bench.shown(&other).await.failing_since, None);
}

#[tokio::test]
async fn five_days_of_nothing_but_failures_disable() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("500 Broken").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(bench.shown(&id).await.failing_since.map(Timestamp::millis), Some(START));
    bench.pass(PATIENCE_MILLIS - 1);
    worker.drain().await.unwrap();
    assert!(bench.shown(&id).await.enabled);
    // A success begins it anew.
    endpoint.now_says("200 OK");
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(bench.shown(&id).await.failing_since, None);
    endpoint.now_says("500 Broken");
    bench.event().await;
    worker.drain().await.unwrap();
    bench.pass(PATIENCE_MILLIS - 1);
    bench.event().await;
    worker.drain().await.unwrap();
    assert!(bench.shown(&id).await.enabled, "the time before the success does not count");
    bench.pass(1);
    bench.event().await;
    worker.drain().await.unwrap();
    let shown = bench.shown(&id).await;
    assert_eq!((shown.enabled, shown.disabled_reason.as_deref()), (false, Some("nothing but failures for 5 days")));
    assert_eq!((bench.outcomes(&id).await.iter().filter(|outcome| *outcome == "disabled").count(), bench.due().await), (1, None));
}

#[tokio::test]
async fn another_address_has_its_own_time() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("500 Broken").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    bench.event().await;
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    bench.pass(PATIENCE_MILLIS);
    let other = Endpoint::says("500 Broken too").await;
    bench.service.edit_webhook(bench.store(), &id, Settings { url: Some(other.url.clone()), ..Settings::default() }).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!((endpoint.count(), other.count(), bench.shown(&id).await.enabled), (1, 1, true));
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    let (id, first) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    let (_, second) = bench.service.rotate_webhook(bench.store(), &id).await.unwrap();
    assert_ne!(first.0, second.0);
    for pause in [0, ROTATION_MILLIS - 1] {
        bench.pass(pause);
        bench.event().await;
        worker.drain().await.unwrap();
        let seen = endpoint.last();
        assert_eq!(seen.signatures(), [seen.signed_by(&second), seen.signed_by(&first)]);
    }
    // One that is superseded in its turn takes nothing from the one before it.
    let (_, third) = bench.service.rotate_webhook(bench.store(), &id).await.unwrap();
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(endpoint.last().signatures().len(), 3);
    bench.pass(1);
    bench.event().await;
    worker.drain().await.unwrap();
    let seen = endpoint.last();
    assert_eq!(seen.signatures(), [seen.signed_by(&third), seen.signed_by(&second)]);
    bench.pass(ROTATION_MILLIS);
    bench.event().await;
    worker.drain().await.unwrap();
    let seen = endpoint.last();
    assert_eq!(seen.signatures(), [seen.signed_by(&third)]);
}

#[tokio::test]
async fn kinds_and_account_choose_events() {
    let bench = Bench::new().await;
    bench.fixture.account("a2", "line").await;
    bench.fixture.conversation("elsewhere", |row| row.account_id = "a2".to_owned()).await;
    bench.fixture.named_label("l1", "VIP", 0).await;
    let mut endpoints = Vec::new();
    for (kinds, account) in [
        (&[][..], None),
        (&["conversation.label_added", "ticket.closed"][..], None),
        (&[][..], Some("a1")),
        (&["conversation.label_added", "contact.contact_field_updated"][..], Some("a2")),
        (&["contact.contact_field_updated"][..], None),
    ] {
        let endpoint = Endpoint::says("200 OK").await;
        bench.hook_for(&endpoint.url, kinds, account).await;
        endpoints.push(endpoint);
    }
    bench.event().await;
    bench.label("c0", "l1").await;
    bench.label("elsewhere", "l1").await;
    bench.contact_event(None).await;
    bench.worker().drain().await.unwrap();
    assert_eq!(endpoints.iter().map(Endpoint::count).collect::<Vec<_>>(), [4, 2, 2, 1, 1]);
}

#[tokio::test]
async fn a_change_of_a_subscription_is_for_what_happens_after_it() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    let mut worker = bench.worker();
    // Recorded, and not numbered yet.
    bench.event().await;
    let (id, _) = bench.hook_for(&endpoint.url, &["ticket.closed"], None).await;
    bench.event().await;
    let all = Settings { kinds: Some(vec![]), ..Settings::default() };
    bench.service.edit_webhook(bench.store(), &id, all).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 0);
    bench.service.enable_webhook(bench.store(), &id, false).await.unwrap();
    bench.event().await;
    bench.service.enable_webhook(bench.store(), &id, true).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 0);
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 1);
}

#[tokio::test]
async fn disabling_drops_what_waits() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("500 Broken").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    bench.event().await;
    worker.drain().await.unwrap();
    bench.service.enable_webhook(bench.store(), &id, false).await.unwrap();
    assert_eq!(bench.due().await, None);
    let refused = bench.service.replay(bench.store(), &id, every(), false).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert!(matches!(bench.service.test_webhook(bench.store(), &id).await.unwrap_err(), Error::Conflict(_)));
    assert_eq!(bench.service.replay(bench.store(), &id, every(), true).await.unwrap(), 1);
    endpoint.now_says("200 OK");
    bench.service.enable_webhook(bench.store(), &id, true).await.unwrap();
    bench.pass(DAY);
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 1);
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 1);
    worker.drain().await.unwrap();
    let seen = endpoint.seen();
    assert_eq!((seen.len(), seen[0].id(), &seen[0].body), (2, seen[1].id(), &seen[1].body));
}

#[tokio::test]
async fn events_are_sent_again() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    let (id, _) = bench.hook_for(&endpoint.url, &["ai.escalated"], None).await;
    let mut worker = bench.worker();
    for _ in 0..3 {
        bench.event().await;
        bench.contact_event(None).await;
        worker.drain().await.unwrap();
        bench.pass(1_000);
    }
    let at = |seconds: i64| Some(Timestamp::from_millis(START + seconds * 1_000));
    let second = endpoint.seen()[1].clone();
    let ids = |seen: &[Seen]| seen.iter().map(|seen| seen.id().to_owned()).collect::<Vec<_>>();
    let all = ids(&endpoint.seen());
    for (replay, expected) in [
        (every(), &all[..]),
        (Replay { since: at(1), ..every() }, &all[1..]),
        (Replay { until: at(1), ..every() }, &all[..1]),
        (Replay { since: at(1), until: at(2), ..every() }, &all[1..2]),
        (Replay { event: Some(second.id().to_owned()), ..every() }, &all[1..2]),
        (Replay { event: Some(second.id().to_owned()), until: at(1), ..every() }, &[]),
        (Replay { event: Some("nobody".to_owned()), ..every() }, &[]),
        (Replay { missing: true, ..every() }, &[]),
        (Replay { since: at(3), ..every() }, &[]),
    ] {
        let before = endpoint.count();
        assert_eq!(bench.replay(&id, replay.clone()).await, expected.len() as i64, "{replay:?}");
        worker.drain().await.unwrap();
        let mut sent = ids(&endpoint.seen()[before..]);
        sent.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(sent, expected, "{replay:?}");
    }
    let again = endpoint.seen().into_iter().rfind(|seen| seen.id() == second.id()).unwrap();
    assert_eq!(again.body, second.body);
    assert!(again.seconds() > second.seconds());
    // One that is being tried is left alone, and not counted.
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let going = bench.claim().await.remove(0);
    assert_eq!(bench.replay(&id, every()).await, 3);
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 0);
    bench.service.settle_delivery(&going, bench.attempted(Answer::Status(200, None)), 0.5).await.unwrap();
    worker.drain().await.unwrap();
    // What was given up is missing.
    endpoint.now_says("500 Broken");
    bench.event().await;
    for _ in 0..10 {
        worker.drain().await.unwrap();
        bench.pass(30 * 60 * MINUTE / 5);
    }
    bench.pass(2 * DAY);
    while bench.due().await.is_some() {
        worker.drain().await.unwrap();
        bench.pass(2 * DAY / 5);
    }
    if !bench.shown(&id).await.enabled {
        bench.service.enable_webhook(bench.store(), &id, true).await.unwrap();
    }
    endpoint.now_says("200 OK");
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 1);
    worker.drain().await.unwrap();
    assert_eq!(bench.log(&id).await.pop().map(|last| (last.attempt, last.outcome)), Some((1, "delivered".to_owned())));
}

#[tokio::test]
async fn a_test_event_goes_to_one_endpoint_and_can_be_sent_again() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    let other = Endpoint::says("200 OK").await;
    let (id, secret) = bench.hook_for(&endpoint.url, &["ticket.closed"], None).await;
    bench.hook(&other.url).await;
    let mut worker = bench.worker();
    let event = bench.service.test_webhook(bench.store(), &id).await.unwrap();
    worker.drain().await.unwrap();
    let seen = endpoint.last();
    let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((seen.id(), &body["id"], &body["type"]), (event.as_str(), &event.as_str().into(), &"webhook.test".into()));
    assert_eq!(seen.signatures(), [seen.signed_by(&secret)]);
    assert_eq!((other.count(), bench.log(&id).await[0].kind.as_str()), (0, "webhook.test"));
    assert!(bench.fixture.db.events_after(bench.store(), 0, 10).await.unwrap().is_empty(), "a test is no event of the store");
    assert_eq!(bench.replay(&id, every()).await, 0, "a test is sent again by its name alone");
    assert_eq!(bench.replay(&id, Replay { event: Some(event.clone()), missing: true, ..every() }).await, 0);
    assert_eq!(bench.replay(&id, Replay { event: Some(event.clone()), ..every() }).await, 1);
    worker.drain().await.unwrap();
    assert_eq!((endpoint.count(), endpoint.last().id(), endpoint.last().body), (2, event.as_str(), seen.body));
}

#[tokio::test]
async fn an_attempt_is_a_lease_that_runs_out() {
    let bench = Bench::new().await;
    let (id, _) = bench.hook("http://127.0.0.1:1/").await;
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let first = bench.claim().await.remove(0);
    bench.pass(LEASE_MILLIS - 1);
    assert!(bench.claim().await.is_empty(), "the attempt goes on");
    bench.pass(1);
    let second = bench.claim().await.remove(0);
    assert_eq!((first.attempts, second.attempts, &first.shipment), (1, 2, &second.shipment));
    // The one that was given up for dead was slow only: it is told in the log, and changes no more.
    bench.service.settle_delivery(&first, bench.attempted(Answer::Status(500, None)), 0.5).await.unwrap();
    bench.service.settle_delivery(&first, bench.attempted(Answer::Status(200, None)), 0.5).await.unwrap();
    assert!(bench.claim().await.is_empty());
    bench.service.settle_delivery(&second, bench.attempted(Answer::None("down".to_owned())), 0.5).await.unwrap();
    assert_eq!(bench.due().await, Some(5 * MINUTE), "the second attempt keeps the second pause");
    let log = bench.log(&id).await;
    let told: Vec<_> = log.iter().map(|one| (one.attempt, one.status, one.reason.as_deref(), one.outcome.as_str())).collect();
    assert_eq!(told, [(1, Some(500), None, "late"), (1, Some(200), None, "late"), (2, None, Some("down"), "retrying")]);
    // It arrived, whoever was told.
    bench.service.enable_webhook(bench.store(), &id, false).await.unwrap();
    assert_eq!(bench.service.replay(bench.store(), &id, Replay { missing: true, ..every() }, true).await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_removed_while_it_is_tried_leaves_nothing() {
    let bench = Bench::new().await;
    let (id, _) = bench.hook("http://127.0.0.1:1/").await;
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let claimed = bench.claim().await.remove(0);
    bench.service.delete_webhook(bench.store(), &id).await.unwrap();
    bench.service.settle_delivery(&claimed, bench.attempted(Answer::Status(200, None)), 0.5).await.unwrap();
    assert!(bench.fixture.db.attempts(bench.store(), &id, 0, 10).await.unwrap().is_empty());
    assert!(matches!(bench.service.attempts(bench.store(), &id, 0).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn a_place_has_its_limit_and_what_is_left_goes_round() {
    let bench = Bench::new().await;
    let mut places = Vec::new();
    for _ in 0..3 {
        places.push((bench.store().clone(), bench.hook("http://127.0.0.1:1/").await.0));
    }
    for _ in 0..20 {
        bench.event().await;
    }
    assert_eq!(bench.due().await, Some(0));
    let busy = HashMap::from([(places[0].clone(), 4), (places[1].clone(), 6)]);
    let claimed = bench.service.claim_deliveries(Room { all: 6, each: 6, busy: &busy }).await.unwrap();
    let of = |claimed: &[Claimed], n: usize| claimed.iter().filter(|one| one.shipment.webhook_id == places[n].1).count();
    assert_eq!([0, 1, 2].map(|n| of(&claimed, n)), [1, 0, 5], "who has the least going on comes first");
    let claimed = bench.service.claim_deliveries(Room { all: 100, each: 6, busy: &busy }).await.unwrap();
    assert_eq!([0, 1, 2].map(|n| of(&claimed, n)), [2, 0, 6]);
}

#[tokio::test]
async fn an_endpoint_that_hangs_delays_its_own_alone() {
    let bench = Bench::new().await;
    let hanging = Endpoint::new(Reply::Hang).await;
    bench.hook(&hanging.url).await;
    let mut well = Vec::new();
    for _ in 0..3 {
        let endpoint = Endpoint::says("200 OK").await;
        bench.hook(&endpoint.url).await;
        well.push(endpoint);
    }
    for _ in 0..50 {
        bench.event().await;
    }
    let mut worker = bench.worker_within(Duration::from_secs(60), Targets::Any);
    while well.iter().any(|endpoint| endpoint.count() < 50) {
        worker.begin_due().await.unwrap();
        assert!(worker.attempts.len() <= 4 * PLACE_MAX);
        let ended = worker.attempts.join_next().await.unwrap();
        worker.ended(ended);
    }
    assert!(hanging.connections.load(Ordering::SeqCst) <= PLACE_MAX);
}

#[tokio::test]
async fn a_damaged_event_keeps_nothing_from_being_sent() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    bench.hook(&endpoint.url).await;
    bench.event().await;
    bench.contact_event(Some(b"{\"no JSON")).await;
    bench.event().await;
    bench.worker().drain().await.unwrap();
    assert_eq!((endpoint.count(), bench.due().await), (2, None));
}

/// A connection pool of its own, as another process would have.
async fn another(bench: &Bench) -> Service {
    service(Db::open(&bench.fixture.url, 4, None).await.unwrap(), bench.hands.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn every_event_of_concurrent_writers_goes_to_everybody_once() {
    let bench = Bench::new().await;
    let mut endpoints = Vec::new();
    for kinds in [&[][..], &["ai.escalated"][..], &["ticket.closed"][..]] {
        let endpoint = Endpoint::new(Reply::Slowly("200 OK")).await;
        bench.hook_for(&endpoint.url, kinds, None).await;
        endpoints.push(endpoint);
    }
    let (mut workers, mut stops) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(Webhooks::new(another(&bench).await, Targets::Any).unwrap());
        workers.push(tokio::spawn(worker.run(async { _ = stopped.await })));
        stops.push(stop);
    }
    let mut writers = Vec::new();
    for n in 0..6 {
        let conversation = format!("w{n}");
        bench.fixture.conversation(&conversation, |_| {}).await;
        let (writer, store) = (another(&bench).await, bench.store().clone());
        writers.push(tokio::spawn(async move {
            for _ in 0..15 {
                escalate(&writer, &store, &conversation).await;
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let done = async {
        while bench.due().await.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.unwrap();
    drop(stops);
    for worker in workers {
        worker.await.unwrap();
    }
    let recorded = bench.fixture.db.events_after(bench.store(), 0, 1000).await.unwrap();
    assert_eq!(recorded.iter().map(|event| event.sequence).collect::<Vec<_>>(), (1..=90).collect::<Vec<_>>());
    let mut expected: Vec<Vec<u8>> = recorded.iter().map(|event| numbered(event.sequence, &event.body)).collect();
    expected.sort_unstable();
    for endpoint in &endpoints[..2] {
        let mut bodies: Vec<Vec<u8>> = endpoint.seen().into_iter().map(|seen| seen.body).collect();
        bodies.sort_unstable();
        assert_eq!(bodies.len(), 90);
        assert!(bodies == expected);
    }
    assert_eq!(endpoints[2].count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn disabling_amid_deliveries_leaves_nothing_queued() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::new(Reply::Slowly("500 Broken")).await;
    let (id, _) = bench.hook(&endpoint.url).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(Webhooks::new(another(&bench).await, Targets::Any).unwrap());
    let worker = tokio::spawn(worker.run(async { _ = stopped.await }));
    let (writer, store) = (another(&bench).await, bench.store().clone());
    let writer = tokio::spawn(async move {
        for _ in 0..60 {
            escalate(&writer, &store, "c0").await;
        }
    });
    let operator = another(&bench).await;
    for n in 0..20 {
        operator.enable_webhook(bench.store(), &id, n % 2 == 1).await.unwrap();
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    operator.enable_webhook(bench.store(), &id, false).await.unwrap();
    writer.await.unwrap();
    drop(stop);
    worker.await.unwrap();
    assert_eq!(bench.due().await, None);
    operator.delete_webhook(bench.store(), &id).await.unwrap();
}
