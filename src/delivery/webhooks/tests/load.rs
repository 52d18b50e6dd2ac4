//! Load test of delivery: many events to ten endpoints, of which one is healthy. It checks what arrives and when, and that
//! the attempt log equals what the endpoints saw.
//!
//! `COUNTERPART_DELIVERY_EVENTS=10000 cargo test --lib webhooks::tests::load -- --nocapture` runs the test with many events. Without the
//! variable, the test records few events.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    endpoint::{START, ScriptedReply, TestEndpoint, TestServer},
    fixture::{Bench, every, numbered, service},
};
use crate::{
    delivery::{
        webhooks::WebhookQueue,
        worker::{MAX_ATTEMPTS_PER_DESTINATION, Worker},
    },
    domain::{
        ids::WebhookId,
        ssrf_policy::Targets,
        webhooks::{AttemptLogPage, DISABLE_AFTER_MILLIS, LoggedAttempt, PAUSES, Replay},
    },
    store::{Db, fixture::setting},
};

/// The default number of events.
const EVENTS: usize = 200;

/// The time-out of a request to an endpoint in this test: long enough for a healthy endpoint on a busy machine.
const PATIENT: Duration = Duration::from_secs(2);

/// The pause that the busy endpoint asks for, in milliseconds.
const ASKED: i64 = 90_000;

/// (period, offset): the endpoints `Hangs` and `Drips` are slow for one event of each group of `period` events, the event at the index
/// `offset` of the group. Slow events are rare, since a slow attempt occupies a slot of the worker for the whole time-out.
const SLOW: (usize, usize) = (50, 7);

/// When an attempt is due, the test moves the clock a little beyond the due time: by 1 / `STRIDE` of the time since the start of the test.
/// So the test makes attempts with almost the same due time together, and no attempt is delayed by more than this margin.
const STRIDE: i64 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndpointBehaviour {
    Well,
    Broken,
    /// Responds 500 to the first four attempts of each event.
    Recovers,
    /// Responds 429 with a `retry-after` to the first attempt of each event.
    Busy,
    /// Responds 302, with the location of an endpoint that would respond 200.
    Moved,
    Gone,
    /// Does not respond to the first attempt of some events.
    Hangs,
    /// Resets the connection at the first two attempts of each event: after it has read the request, and again after the client has
    /// repeated the request.
    Resets,
    /// Begins a response 200 that never ends, at the first attempt of some events.
    Drips,
    /// Responds 500 until every event was given up, then 200.
    RecoversTooLate,
}

const MANNERS: [EndpointBehaviour; 10] = [
    EndpointBehaviour::Well,
    EndpointBehaviour::Broken,
    EndpointBehaviour::Recovers,
    EndpointBehaviour::Busy,
    EndpointBehaviour::Moved,
    EndpointBehaviour::Gone,
    EndpointBehaviour::Hangs,
    EndpointBehaviour::Resets,
    EndpointBehaviour::Drips,
    EndpointBehaviour::RecoversTooLate,
];

/// The requests for one event that an endpoint received.
struct ReceivedEvent {
    /// The number of events that arrived before this event.
    place: usize,
    body: Vec<u8>,
    /// Whether every attempt had this body.
    same: bool,
    /// Each attempt: the signature's timestamp in seconds, and the reply.
    attempts: Vec<(i64, ScriptedReply)>,
    resets: usize,
}

/// An endpoint with its subscription.
struct Subscriber {
    manner: EndpointBehaviour,
    id: WebhookId,
    got: Arc<Mutex<HashMap<String, ReceivedEvent>>>,
    /// Whether an endpoint with the behaviour `RecoversTooLate` has recovered and responds 200.
    recovered: Arc<AtomicBool>,
}

impl Subscriber {
    async fn new(bench: &Bench, manner: EndpointBehaviour, elsewhere: &str) -> Self {
        let (got, recovered): (Arc<Mutex<HashMap<String, ReceivedEvent>>>, Arc<AtomicBool>) = Default::default();
        let (keep, well, elsewhere) = (got.clone(), recovered.clone(), elsewhere.to_owned());
        let server = TestServer::new(move |request| {
            let mut keep = keep.lock().unwrap();
            let (place, seconds) = (keep.len(), request.seconds());
            let got = keep.entry(request.id().to_owned()).or_insert_with(|| ReceivedEvent {
                place,
                body: request.body.clone(),
                same: true,
                attempts: Vec::new(),
                resets: 0,
            });
            got.same &= got.body == request.body;
            let slow = got.place % SLOW.0 == SLOW.1;
            let says = |status: &str| ScriptedReply::Says(status.to_owned());
            let reply = match (manner, got.attempts.len() + 1) {
                (EndpointBehaviour::Broken, _) | (EndpointBehaviour::Recovers, 1..=4) => says("500 Broken"),
                (EndpointBehaviour::RecoversTooLate, _) if !well.load(Ordering::SeqCst) => says("500 Broken"),
                (EndpointBehaviour::Busy, 1) => says(&format!("429 Too Many\r\nretry-after: {}", ASKED / 1000)),
                (EndpointBehaviour::Moved, _) => says(&format!("302 Found\r\nlocation: {elsewhere}")),
                (EndpointBehaviour::Gone, _) => says("410 Gone"),
                (EndpointBehaviour::Hangs, 1) if slow => ScriptedReply::Hang,
                (EndpointBehaviour::Drips, 1) if slow => ScriptedReply::Unended(""),
                (EndpointBehaviour::Resets, _) if got.resets < 4 => ScriptedReply::Reset,
                _ => says("200 OK"),
            };
            got.resets += usize::from(matches!(reply, ScriptedReply::Reset));
            // Every second reset belongs to the same attempt as the reset before it: the client repeated the request on another connection.
            if !matches!(reply, ScriptedReply::Reset) || !got.resets.is_multiple_of(2) {
                got.attempts.push((seconds, reply.clone()));
            }
            reply
        })
        .await;
        let (id, _) = bench.hook(&server.url()).await;
        Self { manner, id, got, recovered }
    }

    /// Returns the number of attempts that reached the endpoint.
    fn attempts(&self) -> usize {
        self.got.lock().unwrap().values().map(|got| got.attempts.len()).sum()
    }

    /// Compares the attempt log with what the endpoint saw, attempt by attempt. Also checks that the times follow the retry schedule, and
    /// that the bodies are those of recorded events. Returns the number of attempts by outcome and status.
    async fn compare(&self, bench: &Bench, recorded: &HashSet<Vec<u8>>) -> BTreeMap<(String, Option<i64>), usize> {
        let mut log: HashMap<String, Vec<LoggedAttempt>> = HashMap::new();
        let mut after = 0;
        loop {
            let page = bench.service.attempts(bench.store(), &self.id, AttemptLogPage::After(after), 500).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.position;
            for one in page {
                log.entry(one.event_id.clone()).or_default().push(one);
            }
        }
        let got = self.got.lock().unwrap();
        assert_eq!(log.len(), got.len(), "{:?}", self.manner);
        let mut outcomes = BTreeMap::new();
        for (event, got) in &*got {
            let logged = &log[event];
            assert!(got.same && recorded.contains(&got.body), "{:?}: {event} has another body", self.manner);
            assert_eq!(logged.len(), got.attempts.len(), "{:?}: {event}", self.manner);
            for (n, (one, (seconds, reply))) in logged.iter().zip(&got.attempts).enumerate() {
                let context = format!("{:?}: attempt {n} of {logged:?}", self.manner);
                assert_eq!(one.started_at.millis().div_euclid(1000), *seconds, "{context}");
                let status = match reply {
                    ScriptedReply::Says(status) => Some(status[..3].parse::<i64>().unwrap()),
                    ScriptedReply::Unended(_) => Some(200),
                    _ => None,
                };
                let reason = match reply {
                    ScriptedReply::Says(_) | ScriptedReply::Unended(_) => None,
                    ScriptedReply::Reset => Some("reset"),
                    _ => Some("no answer within"),
                };
                assert_eq!(one.status, status, "{context}");
                assert_eq!(one.reason.is_some(), reason.is_some(), "{context}");
                assert!(one.reason.as_deref().unwrap_or_default().contains(reason.unwrap_or_default()), "{context}");
                let before = n.checked_sub(1).map(|n| &logged[n]);
                // A replay restarts the count of attempts.
                let attempt = before.filter(|before| before.next_at.is_some()).map_or(1, |before| before.attempt + 1);
                assert_eq!(one.attempt, attempt, "{context}");
                if let Some(due) = before.and_then(|before| before.next_at) {
                    let (due, began) = (due.millis(), one.started_at.millis());
                    assert!((due..=due + (due - START) / STRIDE).contains(&began), "{context}");
                }
                let ended = one.started_at.millis() + one.took;
                if let Some(due) = one.next_at {
                    let pause = PAUSES[usize::try_from(one.attempt - 1).unwrap()];
                    let allowed = if status == Some(429) { ASKED..=ASKED } else { pause * 8 / 10..=pause * 12 / 10 };
                    assert!(allowed.contains(&(due.millis() - ended)), "{context}");
                }
                *outcomes.entry((one.outcome.clone(), status)).or_default() += 1;
            }
        }
        outcomes
    }

    /// Returns the number of attempts by outcome and status that this endpoint must cause before any replay.
    fn expected(&self, events: usize) -> BTreeMap<(String, Option<i64>), usize> {
        let slow = (0..events).filter(|place| place % SLOW.0 == SLOW.1).count();
        let counts = match self.manner {
            EndpointBehaviour::Well => vec![("delivered", Some(200), events)],
            EndpointBehaviour::Broken | EndpointBehaviour::RecoversTooLate => {
                vec![("retrying", Some(500), 9 * events), ("given_up", Some(500), events)]
            }
            EndpointBehaviour::Recovers => vec![("retrying", Some(500), 4 * events), ("delivered", Some(200), events)],
            EndpointBehaviour::Busy => vec![("retrying", Some(429), events), ("delivered", Some(200), events)],
            EndpointBehaviour::Moved => vec![("retrying", Some(302), 9 * events), ("given_up", Some(302), events)],
            // The other attempts had begun before the first response disabled the subscription.
            EndpointBehaviour::Gone => vec![("disabled", Some(410), 1), ("late", Some(410), self.attempts() - 1)],
            EndpointBehaviour::Hangs => vec![("retrying", None, slow), ("delivered", Some(200), events)],
            EndpointBehaviour::Drips => vec![("delivered", Some(200), events)],
            EndpointBehaviour::Resets => vec![("retrying", None, 2 * events), ("delivered", Some(200), events)],
        };
        let counts = counts.into_iter().filter(|(_, _, count)| *count > 0);
        counts.map(|(outcome, status, count)| ((outcome.to_owned(), status), count)).collect()
    }
}

/// Makes the attempts that are due and moves the clock to the next due moment, until the queue is empty.
async fn finish(bench: &Bench, worker: &mut Worker<WebhookQueue>) {
    worker.drain().await.unwrap();
    while let Some(wait) = bench.due().await {
        let due = bench.now() + wait;
        bench.pass(wait + (due - START) / STRIDE);
        worker.drain().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn endpoints_that_recover_get_all_events_and_broken_ones_are_disabled() {
    let events = setting("COUNTERPART_DELIVERY_EVENTS").map_or(EVENTS, |text| text.parse().expect("the number of events is a number"));
    let mut bench = Bench::new().await;
    // Several database connections, as in a server.
    bench.service = service(Db::open(&bench.fixture.url, 8, None).await.unwrap(), bench.clock.clone());
    let elsewhere = TestEndpoint::says("200 OK").await;
    let mut subscribers = Vec::new();
    for manner in MANNERS {
        subscribers.push(Subscriber::new(&bench, manner, &elsewhere.url).await);
    }
    let of = |manner| subscribers.iter().find(|one| one.manner == manner).unwrap();
    let mut worker = bench.worker_within(PATIENT, Targets::Any);

    for made in (0..events).step_by(500) {
        bench.contact_events((events - made).min(500), None).await;
    }
    let began = Instant::now();
    worker.drain().await.unwrap();
    print_rate("at once", &subscribers, 0, began);
    let (began, before) = (Instant::now(), all(&subscribers));
    finish(&bench, &mut worker).await;
    print_rate("by the schedule", &subscribers, before, began);

    let bodies = recorded(&bench).await;
    assert_eq!(bodies.len(), events);
    for one in &subscribers {
        assert_eq!(one.compare(&bench, &bodies).await, one.expected(events), "{:?}", one.manner);
        assert!(one.manner == EndpointBehaviour::Gone || one.got.lock().unwrap().len() == events, "{:?}", one.manner);
    }
    assert!(of(EndpointBehaviour::Gone).attempts() <= MAX_ATTEMPTS_PER_DESTINATION);
    for one in &subscribers {
        assert_eq!(bench.shown(&one.id).await.enabled, one.manner != EndpointBehaviour::Gone, "{:?}", one.manner);
    }

    // The endpoint that recovers too late has no successful delivery, so all events are missing for it. A replay with `missing` first
    // counts them (a dry run), and then sends them.
    let late = of(EndpointBehaviour::RecoversTooLate);
    late.recovered.store(true, Ordering::SeqCst);
    let (began, before) = (Instant::now(), all(&subscribers));
    let missing = Replay { missing: true, ..every() };
    let counted = bench.service.replay(&bench.editor(), &late.id, missing.clone(), true).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!((counted, all(&subscribers)), (events as i64, before), "a dry run sends nothing");
    assert_eq!(bench.service.replay(&bench.editor(), &late.id, missing.clone(), false).await.unwrap(), counted);
    worker.drain().await.unwrap();
    print_rate("again", &subscribers, before, began);
    assert_eq!(all(&subscribers), before + events, "another endpoint got an event");
    assert_eq!(bench.replay(&late.id, missing.clone()).await, 0);
    for one in [
        EndpointBehaviour::Well,
        EndpointBehaviour::Recovers,
        EndpointBehaviour::Busy,
        EndpointBehaviour::Hangs,
        EndpointBehaviour::Resets,
        EndpointBehaviour::Drips,
    ]
    .map(of)
    {
        assert_eq!(bench.replay(&one.id, missing.clone()).await, 0, "{:?}", one.manner);
    }
    let mut expected = late.expected(events);
    expected.insert(("delivered".to_owned(), Some(200)), events);
    assert_eq!(late.compare(&bench, &bodies).await, expected);

    // Five days after its first failure, an endpoint without a success is disabled when one more event fails.
    bench.pass((START + DISABLE_AFTER_MILLIS - bench.now()).max(0));
    bench.contact_events(1, None).await;
    finish(&bench, &mut worker).await;
    let bodies = recorded(&bench).await;
    for one in &subscribers {
        let shown = bench.shown(&one.id).await;
        let fails = match one.manner {
            EndpointBehaviour::Gone => Some("the endpoint answered 410 Gone"),
            EndpointBehaviour::Broken | EndpointBehaviour::Moved => Some("nothing but failures for 5 days"),
            _ => None,
        };
        assert_eq!((shown.enabled, shown.disabled_reason.as_deref()), (fails.is_none(), fails), "{:?}", one.manner);
        let outcomes = one.compare(&bench, &bodies).await;
        let disabled: usize = outcomes.iter().filter(|((outcome, _), _)| outcome == "disabled").map(|(_, count)| count).sum();
        assert_eq!(disabled, usize::from(fails.is_some()), "{:?}", one.manner);
        if fails.is_none() {
            assert_eq!(outcomes[&("delivered".to_owned(), Some(200))], events + 1, "{:?}", one.manner);
        }
    }
    assert!(of(EndpointBehaviour::Gone).attempts() <= MAX_ATTEMPTS_PER_DESTINATION);
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0, "a redirect was followed");
}

/// Returns the bodies of the recorded events, as they must be sent.
async fn recorded(bench: &Bench) -> HashSet<Vec<u8>> {
    let recorded = bench.fixture.db.events_after(bench.store(), 0, i64::from(u32::MAX)).await.unwrap();
    recorded.iter().map(|event| numbered(event.sequence, &event.body)).collect()
}

fn all(subscribers: &[Subscriber]) -> usize {
    subscribers.iter().map(Subscriber::attempts).sum()
}

fn print_rate(what: &str, subscribers: &[Subscriber], before: usize, began: Instant) {
    let (attempts, seconds) = (all(subscribers) - before, began.elapsed().as_secs_f64());
    println!("{what}: {attempts} attempts in {seconds:.1} s, {:.0} a second", attempts as f64 / seconds);
}
