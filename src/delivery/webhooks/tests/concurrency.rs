//! Tests of the concurrency of webhook delivery: leases (time-limited claims of an attempt), the limit per endpoint, and workers that run
//! concurrently with writers.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use tokio::sync::oneshot;

use super::{
    endpoint::{SHORT, ScriptedReply, TestEndpoint},
    fixture::{Bench, MINUTE, escalate, every, numbered, service},
};
use crate::{
    delivery::{
        webhooks::WebhookQueue,
        worker::{MAX_ATTEMPTS_PER_DESTINATION, Worker},
    },
    domain::{
        ids::StoreId,
        settings_access::Editor,
        ssrf_policy::Targets,
        webhooks::{AttemptLogPage, EndpointAnswer, Replay},
    },
    service::{
        Error, Service,
        store_creation_and_settings::{StoreSettings, create_store},
        webhooks::{LEASE_MILLIS, WebhookSettings},
    },
    store::{
        Db,
        queues::{concurrency::AttemptLimits, deliveries::ClaimedDelivery},
    },
    supervisor::TaskReporter,
};

#[tokio::test]
async fn the_lease_of_an_attempt_expires() {
    let bench = Bench::new().await;
    let (id, _) = bench.hook("http://127.0.0.1:1/").await;
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let first = bench.claim().await.remove(0);
    bench.pass(LEASE_MILLIS - 1);
    assert!(bench.claim().await.is_empty(), "the attempt is in flight");
    bench.pass(1);
    let second = bench.claim().await.remove(0);
    assert_eq!((first.attempts, second.attempts, &first.webhook_delivery), (1, 2, &second.webhook_delivery));
    // The lease of the first attempt has expired, so its outcomes are late. They are written to the attempt log, but do not change the
    // retry schedule.
    bench.service.settle_delivery(&first, bench.attempted(EndpointAnswer::Status(500, None)), 0.5).await.unwrap();
    bench.service.settle_delivery(&first, bench.attempted(EndpointAnswer::Status(200, None)), 0.5).await.unwrap();
    assert!(bench.claim().await.is_empty());
    bench.service.settle_delivery(&second, bench.attempted(EndpointAnswer::None("down".to_owned())), 0.5).await.unwrap();
    assert_eq!(bench.due().await, Some(5 * MINUTE), "the second attempt keeps the second pause");
    let log = bench.log(&id).await;
    let got: Vec<_> = log.iter().map(|one| (one.attempt, one.status, one.reason.as_deref(), one.outcome.as_str())).collect();
    assert_eq!(got, [(1, Some(500), None, "late"), (1, Some(200), None, "late"), (2, None, Some("down"), "retrying")]);
    // The late success counts as a delivery, so a replay of missing events does not send the event again.
    bench.service.enable_webhook(&bench.editor(), &id, false).await.unwrap();
    assert_eq!(bench.service.replay(&bench.editor(), &id, Replay { missing: true, ..every() }, true).await.unwrap(), 0);
}

#[tokio::test]
async fn deleting_a_subscription_during_an_attempt_leaves_no_attempt_log() {
    let bench = Bench::new().await;
    let (id, _) = bench.hook("http://127.0.0.1:1/").await;
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let claimed = bench.claim().await.remove(0);
    bench.service.delete_webhook(&bench.editor(), &id).await.unwrap();
    bench.service.settle_delivery(&claimed, bench.attempted(EndpointAnswer::Status(200, None)), 0.5).await.unwrap();
    assert!(bench.fixture.db.attempts(bench.store(), &id, AttemptLogPage::After(0), 10).await.unwrap().is_empty());
    assert!(matches!(bench.service.attempts(bench.store(), &id, AttemptLogPage::After(0), 10).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn concurrent_attempts_are_limited_per_endpoint_and_shared_fairly() {
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
    let claimed = bench.service.claim_deliveries(AttemptLimits { all: 16, each: 6, busy: &busy }).await.unwrap();
    let of = |claimed: &[ClaimedDelivery], n: usize| claimed.iter().filter(|one| one.webhook_delivery.webhook_id == places[n].1).count();
    assert_eq!([0, 1, 2].map(|n| of(&claimed, n)), [0, 0, 3], "the endpoint with the fewest attempts in flight comes first");
    let claimed = bench.service.claim_deliveries(AttemptLimits { all: 100, each: 6, busy: &busy }).await.unwrap();
    assert_eq!([0, 1, 2].map(|n| of(&claimed, n)), [2, 0, 6]);
}

/// The time limit for a delivery to a healthy endpoint: long enough for a busy machine, and much shorter than the time-out of the endpoint
/// that hangs.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn hanging_endpoints_delay_only_their_own_store() {
    let bench = Bench::new().await;
    let hanging = TestEndpoint::new(ScriptedReply::Hang).await;
    for _ in 0..40 {
        bench.hook(&hanging.url).await;
    }
    for _ in 0..MAX_ATTEMPTS_PER_DESTINATION {
        bench.event().await;
    }
    let mut worker = bench.worker_within(Duration::from_secs(60), Targets::Any);
    for _ in 0..4 {
        worker.begin_due().await.unwrap();
    }
    let store = StoreId::from(format!("{} beside", bench.store()));
    let named = StoreSettings { name: Some("Beside".to_owned()), ..StoreSettings::default() };
    create_store(bench.service.db(), bench.service.clocks_and_ids(), store.clone(), named).await.unwrap();
    let (editor, well) = (Editor::command_line(store), TestEndpoint::says("200 OK").await);
    let settings = WebhookSettings { url: Some(well.url.clone()), ..WebhookSettings::default() };
    let (webhook, _) = bench.service.create_webhook(&editor, settings).await.unwrap();
    bench.service.test_webhook(&editor, &webhook.id).await.unwrap();
    worker.begin_due().await.unwrap();
    let arrives = async {
        while well.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, arrives).await.expect("another store's event arrives");
}

#[tokio::test]
async fn a_hanging_endpoint_delays_only_its_own_events() {
    let bench = Bench::new().await;
    let hanging = TestEndpoint::new(ScriptedReply::Hang).await;
    bench.hook(&hanging.url).await;
    let mut well = Vec::new();
    for _ in 0..3 {
        let endpoint = TestEndpoint::says("200 OK").await;
        bench.hook(&endpoint.url).await;
        well.push(endpoint);
    }
    for _ in 0..50 {
        bench.event().await;
    }
    let mut worker = bench.worker_within(Duration::from_secs(60), Targets::Any);
    while well.iter().any(|endpoint| endpoint.count() < 50) {
        worker.begin_due().await.unwrap();
        assert!(worker.attempts.len() <= 4 * MAX_ATTEMPTS_PER_DESTINATION);
        // `begin_due` also handles attempts that have ended. If it has handled the last attempt that gets a response, only attempts that
        // hang are left. So this wait for the end of an attempt has a time-out.
        if let Ok(Some(ended)) = tokio::time::timeout(SHORT, worker.attempts.join_next_with_id()).await {
            worker.ended(ended);
        }
    }
    assert!(hanging.connections.load(Ordering::SeqCst) <= MAX_ATTEMPTS_PER_DESTINATION);
}

/// Makes a service with a separate connection pool, as in another process.
async fn another(bench: &Bench) -> Service {
    service(Db::open(&bench.fixture.url, 4, None).await.unwrap(), bench.clock.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn every_event_of_concurrent_writers_reaches_every_endpoint_once() {
    let bench = Bench::new().await;
    let mut endpoints = Vec::new();
    for kinds in [&[][..], &["ai.escalated"][..], &["ticket.closed"][..]] {
        let endpoint = TestEndpoint::new(ScriptedReply::Slowly("200 OK")).await;
        bench.hook_for(&endpoint.url, kinds, None).await;
        endpoints.push(endpoint);
    }
    let (mut workers, mut stops) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(WebhookQueue::new(another(&bench).await, Targets::Any).unwrap());
        workers.push(tokio::spawn(worker.run(async { _ = stopped.await }, TaskReporter::unheard())));
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
async fn disabling_during_deliveries_leaves_nothing_queued() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::new(ScriptedReply::Slowly("500 Broken")).await;
    let (id, _) = bench.hook(&endpoint.url).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(WebhookQueue::new(another(&bench).await, Targets::Any).unwrap());
    let worker = tokio::spawn(worker.run(async { _ = stopped.await }, TaskReporter::unheard()));
    let (writer, store) = (another(&bench).await, bench.store().clone());
    let writer = tokio::spawn(async move {
        for _ in 0..60 {
            escalate(&writer, &store, "c0").await;
        }
    });
    let operator = another(&bench).await;
    for n in 0..20 {
        operator.enable_webhook(&bench.editor(), &id, n % 2 == 1).await.unwrap();
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    operator.enable_webhook(&bench.editor(), &id, false).await.unwrap();
    writer.await.unwrap();
    drop(stop);
    worker.await.unwrap();
    assert_eq!(bench.due().await, None);
    operator.delete_webhook(&bench.editor(), &id).await.unwrap();
}
