//! Tests of the replay of recorded events to a webhook.

use super::{
    endpoint::{ReceivedRequest, START, TestEndpoint},
    fixture::{Bench, DAY, MINUTE, every},
};
use crate::domain::{
    time::Timestamp,
    webhooks::{EndpointAnswer, Replay},
};

#[tokio::test]
async fn a_replay_sends_events_again() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("200 OK").await;
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
    let ids = |seen: &[ReceivedRequest]| seen.iter().map(|seen| seen.id().to_owned()).collect::<Vec<_>>();
    let all = ids(&endpoint.seen());
    for (replay, expected) in [
        (every(), &all[..]),
        (Replay { since: at(1), ..every() }, &all[1..]),
        (Replay { until: at(1), ..every() }, &all[..1]),
        (Replay { since: at(1), until: at(2), ..every() }, &all[1..2]),
        (Replay { event: Some(second.id().to_owned()), ..every() }, &all[1..2]),
        (Replay { event: Some(second.id().to_owned()), until: at(1), ..every() }, &[]),
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
    // An event whose attempt is in flight is skipped and not counted.
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let going = bench.claim().await.remove(0);
    assert_eq!(bench.replay(&id, every()).await, 3);
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 0);
    bench.service.settle_delivery(&going, bench.attempted(EndpointAnswer::Status(200, None)), 0.5).await.unwrap();
    worker.drain().await.unwrap();
    // Events that were given up after all attempts count as missing.
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
        bench.service.enable_webhook(&bench.editor(), &id, true).await.unwrap();
    }
    endpoint.now_says("200 OK");
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 1);
    worker.drain().await.unwrap();
    assert_eq!(bench.log(&id).await.pop().map(|last| (last.attempt, last.outcome)), Some((1, "delivered".to_owned())));
}

#[tokio::test]
async fn a_test_event_goes_to_one_endpoint_and_can_be_replayed() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("200 OK").await;
    let other = TestEndpoint::says("200 OK").await;
    let (id, secret) = bench.hook_for(&endpoint.url, &["ticket.closed"], None).await;
    bench.hook(&other.url).await;
    let mut worker = bench.worker();
    let event = bench.service.test_webhook(&bench.editor(), &id).await.unwrap();
    worker.drain().await.unwrap();
    let seen = endpoint.last();
    let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((seen.id(), &body["id"], &body["type"]), (event.as_str(), &event.as_str().into(), &"webhook.test".into()));
    assert_eq!(seen.signatures(), [seen.signed_by(&secret)]);
    assert_eq!((other.count(), bench.log(&id).await[0].kind.as_str()), (0, "webhook.test"));
    assert!(bench.fixture.db.events_after(bench.store(), 0, 10).await.unwrap().is_empty(), "a test event is not recorded in the store");
    assert_eq!(bench.replay(&id, every()).await, 0, "only a replay by its id sends a test event again");
    assert_eq!(bench.replay(&id, Replay { event: Some(event.clone()), missing: true, ..every() }).await, 0);
    assert_eq!(bench.replay(&id, Replay { event: Some(event.clone()), ..every() }).await, 1);
    worker.drain().await.unwrap();
    assert_eq!((endpoint.count(), endpoint.last().id(), endpoint.last().body), (2, event.as_str(), seen.body));
}
