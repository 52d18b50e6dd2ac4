//! Tests of the delivery of outbound messages, with a fake clock and scripted channels.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::oneshot;

use super::*;
use crate::{
    delivery::{
        channel_connector::{Accepted, Capabilities, Connector, FailureClass, SendFailure, Sending},
        scripted_endpoints::{self, START},
        worker::{MAX_ATTEMPTS_PER_DESTINATION, QUEUE_POLL_INTERVAL},
    },
    domain::{
        clock::Clock,
        events::{Actor, Event},
        fake_clock_and_test_rules::MovableClock,
        ids::{AccountId, MessageId, StoreId},
        outbound_messages::{Mailbox, OutboxEntry},
        send_requests::{self, EmailContent},
    },
    service::{Renderer, WriteContext},
    store::{Db, fixture::Fixture},
    supervisor::TaskReporter,
};

mod manual_retries;

/// Serialises events for the tests: only the kind of each event.
struct Kinds;

impl Renderer for Kinds {
    fn render(&self, _: &StoreId, event: &Event) -> Vec<u8> {
        format!("{{\"kind\":\"{}\"}}", event.fact.kind()).into_bytes()
    }
}

/// The test fixture: a store on a database of its own. A worker claims the due messages of all stores in a database, so on a shared
/// database it would also claim the messages of other tests.
struct Bench {
    fixture: Fixture,
    clock: Arc<MovableClock>,
    service: Service,
}

fn service(db: Db, clock: Arc<dyn Clock>) -> Service {
    scripted_endpoints::service(db, clock, Kinds)
}

impl Bench {
    async fn new() -> Self {
        let fixture = Fixture::alone().await;
        let clock = MovableClock::at(START);
        let service = service(fixture.db.clone(), clock.clone());
        Self { fixture, clock, service }
    }

    fn pass(&self, millis: i64) {
        self.clock.pass(millis);
    }

    fn now(&self) -> i64 {
        self.clock.now().millis()
    }

    fn by(&self) -> WriteContext<'_, ()> {
        WriteContext::alone(&self.fixture.store, Actor::System)
    }

    async fn text(&self, conversation: &str, text: &str) {
        self.service
            .send(&self.by(), send_requests::Send::Text { conversation_id: conversation.into(), text: text.to_owned() })
            .await
            .unwrap();
    }

    fn worker(&self, connector: Arc<dyn Connector>) -> Outbound {
        Outbound::new(Messages::new(self.service.clone(), Connectors::every(connector), Targets::Public).unwrap())
    }

    /// Returns the state, the failure reason and the number of attempts of each message that its channel has not accepted.
    async fn undelivered(&self) -> Vec<(String, Option<String>, Option<i64>)> {
        let all = self.service.all_undelivered(&self.fixture.store).await.unwrap();
        all.into_iter().map(|one| (one.state.as_str().to_owned(), one.reason, one.attempts)).collect()
    }

    async fn events(&self) -> usize {
        self.fixture.db.number_events(None, self.clock.now()).await.unwrap();
        self.fixture.db.events_after(&self.fixture.store, 0, 1000).await.unwrap().len()
    }
}

/// Makes attempts to send messages until no attempt is due.
async fn round(worker: &mut Outbound) {
    loop {
        worker.begin_due().await.unwrap();
        if worker.attempts.is_empty() {
            return;
        }
        while !worker.attempts.is_empty() {
            one_ends(worker).await;
        }
    }
}

async fn one_ends(worker: &mut Outbound) {
    let ended = worker.attempts.join_next_with_id().await.unwrap();
    worker.ended(ended);
}

/// A scripted channel that records the messages it gets.
struct Channel<F> {
    answer: F,
    handed: Mutex<Vec<(MessageId, i64)>>,
}

impl<F> Channel<F>
where
    F: Fn(&OutboxEntry, i64) -> std::result::Result<Accepted, SendFailure> + Send + Sync + 'static,
{
    fn new(answer: F) -> Arc<Self> {
        Arc::new(Self { answer, handed: Mutex::default() })
    }

    fn handed(&self) -> usize {
        self.handed.lock().unwrap().len()
    }
}

impl<F> Connector for Channel<F>
where
    F: Fn(&OutboxEntry, i64) -> std::result::Result<Accepted, SendFailure> + Send + Sync + 'static,
{
    fn capabilities(&self) -> Capabilities {
        Capabilities { text: true, email: false, templates: false }
    }

    fn send<'a>(&'a self, outbox_entry: &'a OutboxEntry, attempt: i64) -> Sending<'a> {
        self.handed.lock().unwrap().push((outbox_entry.message_id.clone(), attempt));
        let answer = (self.answer)(outbox_entry, attempt);
        Box::pin(async move { answer })
    }
}

fn down(after: Option<Duration>) -> SendFailure {
    SendFailure { class: FailureClass::Transient { after }, reason: "the line is down".to_owned() }
}

/// The account `full` has reached its limit of concurrent attempts, and has more due messages than one database query reads. These messages
/// must not hide the due message of another account.
#[tokio::test]
async fn a_full_account_with_a_long_queue_does_not_hide_another_account() {
    let bench = Bench::new().await;
    let store = bench.fixture.store.clone();
    let rows: Vec<String> = (0..1100).map(|n| format!("('{store}', 'old{n}', 'other{n}', 'full', '{{}}', 0, {})", START - 1000)).collect();
    let columns = "store_id, message_id, conversation_id, account_id, parcel, attempts, due_at";
    bench.fixture.execute(&format!("INSERT INTO outbound ({columns}) VALUES {}", rows.join(", "))).await.unwrap();
    bench.text("c0", "Hello").await;
    let busy = HashMap::from([((store, AccountId::from("full")), 3)]);
    let claimed = bench.service.claim_outbox_entries(AttemptLimits { all: 10, each: 3, busy: &busy }).await.unwrap();
    assert_eq!(claimed.len(), 1);
}

#[tokio::test]
async fn a_message_is_retried_with_backoff_and_then_given_up() {
    let bench = Bench::new().await;
    let channel = Channel::new(|_, _| Err(down(None)));
    let mut worker = bench.worker(channel.clone());
    bench.text("c0", "x").await;
    round(&mut worker).await;
    for (n, pause) in (1..).zip([1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]) {
        assert_eq!(channel.handed(), n);
        assert_eq!(bench.undelivered().await, [("pending".to_owned(), Some("the line is down".to_owned()), Some(n as i64))]);
        let due = bench.service.next_message_at().await.unwrap().unwrap().millis();
        let waited = due - bench.now();
        assert!((pause * 8 / 10..=pause * 12 / 10).contains(&waited), "attempt {n}: {waited}");
        bench.pass(waited - 1);
        round(&mut worker).await;
        assert_eq!(channel.handed(), n, "attempted before it is due");
        bench.pass(1);
        round(&mut worker).await;
    }
    assert_eq!(*channel.handed.lock().unwrap().iter().map(|(_, attempt)| *attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(bench.undelivered().await, [("failed".to_owned(), Some("the line is down".to_owned()), Some(7))]);
    assert_eq!((bench.service.next_message_at().await.unwrap(), bench.events().await), (None, 0));
}

#[tokio::test]
async fn a_channel_may_ask_for_a_longer_pause() {
    let bench = Bench::new().await;
    let mut worker = bench.worker(Channel::new(|_, attempt| match attempt {
        1 => Err(down(Some(Duration::from_secs(90)))),
        2 => Err(down(Some(Duration::ZERO))),
        _ => Ok(Accepted::default()),
    }));
    bench.text("c0", "x").await;
    round(&mut worker).await;
    assert_eq!(bench.service.next_message_at().await.unwrap().unwrap().millis() - bench.now(), 90_000);
    bench.pass(90_000);
    round(&mut worker).await;
    assert!(bench.service.next_message_at().await.unwrap().unwrap().millis() - bench.now() >= 4_000);
    bench.pass(6_000);
    round(&mut worker).await;
    assert_eq!((bench.undelivered().await, bench.events().await), (vec![], 1));
}

#[tokio::test]
async fn messages_of_one_conversation_are_sent_in_order() {
    let bench = Bench::new().await;
    bench.fixture.conversation("c1", |_| {}).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let got = order.clone();
    let mut worker = bench.worker(Channel::new(move |outbox_entry, attempt| {
        let text = outbox_entry.content.text().unwrap_or_default().to_owned();
        if text == "first" && attempt < 3 {
            return Err(down(None));
        }
        got.lock().unwrap().push(text);
        Ok(Accepted::default())
    }));
    for (conversation, text) in [("c0", "first"), ("c0", "second"), ("c1", "beside"), ("c0", "third")] {
        bench.text(conversation, text).await;
    }
    round(&mut worker).await;
    assert_eq!(*order.lock().unwrap(), ["beside"]);
    bench.pass(60_000);
    round(&mut worker).await;
    bench.pass(60_000);
    round(&mut worker).await;
    assert_eq!(*order.lock().unwrap(), ["beside", "first", "second", "third"]);
    assert_eq!(bench.events().await, 4);
}

#[tokio::test]
async fn the_lease_of_an_attempt_expires() {
    let bench = Bench::new().await;
    bench.text("c0", "x").await;
    let none = HashMap::new();
    let room = AttemptLimits { all: 10, each: 10, busy: &none };
    let first = bench.service.claim_outbox_entries(room).await.unwrap().remove(0);
    bench.pass(LEASE_MILLIS - 1);
    assert!(bench.service.claim_outbox_entries(room).await.unwrap().is_empty(), "the attempt is in flight");
    bench.pass(1);
    let second = bench.service.claim_outbox_entries(room).await.unwrap().remove(0);
    assert_eq!((first.attempts, second.attempts), (1, 2));
    assert_eq!(first.outbox_entry, second.outbox_entry);
    // The lease (time limit) of the first attempt has expired and the second attempt has claimed the message, so every outcome of the first
    // attempt is ignored.
    let taken = || SendOutcome::Accepted { external_id: Some("x-1".to_owned()), reference_id: None };
    bench.service.record_send_outcome(&first, taken(), 0.5).await.unwrap();
    bench.service.record_send_outcome(&first, SendOutcome::Failed { reason: "no".to_owned() }, 0.5).await.unwrap();
    bench.service.record_send_outcome(&first, SendOutcome::Again { reason: "down".to_owned(), after: None }, 0.5).await.unwrap();
    assert_eq!((bench.undelivered().await, bench.events().await), (vec![("pending".to_owned(), None, Some(2))], 0));
    assert!(bench.service.claim_outbox_entries(room).await.unwrap().is_empty());
    for _ in 0..2 {
        bench.service.record_send_outcome(&second, taken(), 0.5).await.unwrap();
    }
    assert_eq!((bench.undelivered().await, bench.events().await), (vec![], 1));
}

#[tokio::test]
async fn a_message_that_its_connector_cannot_send_fails_without_an_attempt() {
    let bench = Bench::new().await;
    bench.fixture.account("m1", "gmail").await;
    let channel = Channel::new(|_, _| Ok(Accepted::default()));
    let mut worker = bench.worker(channel.clone());
    let to = vec![Mailbox { email: "eva@example.com".to_owned(), name: None }];
    let email = EmailContent { to, cc: vec![], bcc: vec![], subject: None, text: Some("x".to_owned()), html: None };
    bench.service.send(&bench.by(), send_requests::Send::EmailNew { account_id: "m1".into(), email }).await.unwrap();
    round(&mut worker).await;
    let found = bench.undelivered().await;
    assert_eq!((found.len(), found[0].0.as_str(), channel.handed()), (1, "failed", 0));
    assert!(found[0].1.as_deref().is_some_and(|reason| reason.contains("cannot send")), "{found:?}");
}

#[tokio::test]
async fn the_channels_own_reference_id_is_kept_if_no_other_thread_has_it() {
    let bench = Bench::new().await;
    bench.fixture.conversation("c1", |_| {}).await;
    let names = |outbox_entry: &OutboxEntry, _| {
        let name = outbox_entry.content.text().unwrap_or_default().to_owned();
        Ok(Accepted { external_id: Some("the same".to_owned()), reference_id: Some(name) })
    };
    let mut worker = bench.worker(Channel::new(names));
    bench.text("c0", "new name").await;
    // The channel returns the same reference id for `c0` and `c1`. Only the first of these threads gets the id.
    bench.text("c1", "new name").await;
    round(&mut worker).await;
    let mut threads = Vec::new();
    for id in ["c0", "c1"] {
        let found = bench.fixture.db.conversation(&bench.fixture.store, &id.into()).await.unwrap().unwrap();
        threads.push(found.reference_id);
    }
    threads.sort_unstable();
    assert!(threads == ["c1", "new name"] || threads == ["c0", "new name"], "{threads:?}");
    assert_eq!((bench.undelivered().await, bench.events().await), (vec![], 2));
}

/// A channel that hangs until the test releases it, but only for the account `a1`.
#[derive(Default)]
struct Hanging {
    going: AtomicUsize,
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Connector for Hanging {
    fn capabilities(&self) -> Capabilities {
        Capabilities { text: true, email: true, templates: true }
    }

    fn send<'a>(&'a self, outbox_entry: &'a OutboxEntry, _: i64) -> Sending<'a> {
        if outbox_entry.account_id.as_str() != "a1" {
            return Box::pin(async { Ok(Accepted::default()) });
        }
        let (go, gone) = oneshot::channel();
        self.waiting.lock().unwrap().push(go);
        self.going.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            _ = gone.await;
            self.going.fetch_sub(1, Ordering::SeqCst);
            Ok(Accepted::default())
        })
    }
}

#[tokio::test]
async fn a_hanging_account_delays_only_its_own_messages() {
    let bench = Bench::new().await;
    bench.fixture.account("a2", "line").await;
    bench.fixture.conversation("other", |row| row.account_id = "a2".to_owned()).await;
    for n in 0..40 {
        bench.fixture.conversation(&format!("h{n}"), |_| {}).await;
        bench.text(&format!("h{n}"), "x").await;
    }
    bench.text("other", "x").await;
    let channel = Arc::new(Hanging::default());
    let mut worker = bench.worker(channel.clone());
    worker.begin_due().await.unwrap();
    assert_eq!(worker.attempts.len(), MAX_ATTEMPTS_PER_DESTINATION + 1);
    one_ends(&mut worker).await;
    assert_eq!(bench.events().await, 1, "the other account's message is sent");
    assert_eq!(worker.begin_due().await.unwrap(), QUEUE_POLL_INTERVAL, "messages that cannot be claimed do not cause a busy loop");
    assert_eq!(worker.attempts.len(), MAX_ATTEMPTS_PER_DESTINATION);
    // Three attempts end, so the worker sends other messages in their slots.
    for go in channel.waiting.lock().unwrap().drain(..3) {
        _ = go.send(());
    }
    for _ in 0..3 {
        one_ends(&mut worker).await;
    }
    worker.begin_due().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!((worker.attempts.len(), channel.going.load(Ordering::SeqCst)), (MAX_ATTEMPTS_PER_DESTINATION, MAX_ATTEMPTS_PER_DESTINATION));
}

/// A channel that panics if two messages of one conversation are sent at the same time.
#[derive(Default)]
struct Watching {
    going: Mutex<Vec<(MessageId, String)>>,
    handed: AtomicUsize,
}

impl Connector for Watching {
    fn capabilities(&self) -> Capabilities {
        Capabilities { text: true, email: true, templates: true }
    }

    fn send<'a>(&'a self, outbox_entry: &'a OutboxEntry, _: i64) -> Sending<'a> {
        Box::pin(async move {
            let conversation = outbox_entry.conversation_id.to_string();
            {
                let mut going = self.going.lock().unwrap();
                assert!(!going.iter().any(|(_, other)| *other == conversation), "two messages of {conversation} at once");
                going.push((outbox_entry.message_id.clone(), conversation));
            }
            self.handed.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(3)).await;
            self.going.lock().unwrap().retain(|(id, _)| *id != outbox_entry.message_id);
            Ok(Accepted::default())
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn two_workers_send_nothing_twice() {
    let bench = Bench::new().await;
    let channel = Arc::new(Watching::default());
    let (mut workers, mut stops) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let db = Db::open(&bench.fixture.url, 4, None).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker =
            Outbound::new(Messages::new(service(db, bench.clock.clone()), Connectors::every(channel.clone()), Targets::Public).unwrap());
        workers.push(tokio::spawn(worker.run(async { _ = stopped.await }, TaskReporter::unheard())));
        stops.push(stop);
    }
    for n in 0..20 {
        bench.fixture.conversation(&format!("w{n}"), |_| {}).await;
    }
    for n in 0..80 {
        bench.text(&format!("w{}", n % 20), "x").await;
    }
    let done = async {
        while !bench.undelivered().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.unwrap();
    drop(stops);
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!((channel.handed.load(Ordering::SeqCst), bench.events().await), (80, 80));
}
