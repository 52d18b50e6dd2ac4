//! Tests of the retry schedule of webhooks: when an attempt to deliver an event is made, which bytes it sends, and which
//! responses end the retries.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{
    endpoint::{ScriptedReply, TestEndpoint, TestServer},
    fixture::{Bench, DAY, MINUTE, numbered},
};
use crate::domain::{
    clock::Clock,
    time::Timestamp,
    webhooks::{Attempted, EndpointAnswer, PAUSES},
};

#[tokio::test]
async fn an_event_is_retried_on_schedule_with_the_same_bytes_and_then_given_up() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("500 Broken").await;
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
        assert_eq!(endpoint.count(), n, "attempted before it is due");
        bench.pass(1);
        worker.drain().await.unwrap();
    }
    assert_eq!((endpoint.count(), bench.due().await), (10, None));
    let last = bench.log(&id).await.pop().unwrap();
    assert_eq!((last.attempt, last.outcome.as_str(), last.next_at), (10, "given_up", None));
    assert!(bench.shown(&id).await.enabled, "three days of failures do not disable a subscription, five do");
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

#[tokio::test]
async fn backoff_counts_from_the_end_of_the_attempt() {
    let bench = Bench::new().await;
    bench.hook("http://127.0.0.1:1/").await;
    bench.event().await;
    assert_eq!(bench.due().await, Some(0));
    let claimed = bench.claim().await.remove(0);
    let started_at = bench.clock.now();
    bench.pass(12_000);
    let attempted = Attempted { started_at, ended_at: bench.clock.now(), answer: EndpointAnswer::Status(503, None), body: None };
    bench.service.settle_delivery(&claimed, attempted, 0.5).await.unwrap();
    assert_eq!(bench.due().await, Some(5_000));
    assert_eq!(bench.log(&claimed.webhook_delivery.webhook_id).await[0].took, 12_000);
}

#[tokio::test]
async fn retry_after_may_lengthen_the_pause() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("429 Too Many\r\nretry-after: 3600").await;
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
    // A `retry-after` below the pause of the retry schedule is ignored: the schedule's pause is the minimum.
    endpoint.now_says("503 Later\r\nretry-after: 1");
    worker.drain().await.unwrap();
    assert!(bench.due().await.unwrap() >= 24 * MINUTE);
}

#[tokio::test]
async fn only_a_2xx_is_a_success() {
    let bench = Bench::new().await;
    let elsewhere = TestEndpoint::says("200 OK").await;
    let mut worker = bench.worker();
    for (reply, status, reason) in [
        (ScriptedReply::Says("204 No Content".to_owned()), Some(204), ""),
        (ScriptedReply::Says("299 Odd".to_owned()), Some(299), ""),
        (ScriptedReply::Says(format!("302 Found\r\nlocation: {}", elsewhere.url)), Some(302), ""),
        (ScriptedReply::Says(format!("307 Again\r\nlocation: {}", elsewhere.url)), Some(307), ""),
        (ScriptedReply::Says("404 Not Found".to_owned()), Some(404), ""),
        (ScriptedReply::Hang, None, "no answer within"),
        (ScriptedReply::Unended(""), Some(200), ""),
        (ScriptedReply::Reset, None, "reset"),
    ] {
        let endpoint = TestEndpoint::new(reply.clone()).await;
        let (id, _) = bench.hook(&endpoint.url).await;
        bench.event().await;
        worker.drain().await.unwrap();
        let attempt = bench.log(&id).await.remove(0);
        let outcome = if matches!(status, Some(200..300)) { "delivered" } else { "retrying" };
        assert_eq!((attempt.status, attempt.outcome.as_str(), attempt.kind.as_str()), (status, outcome, "ai.escalated"), "{reply:?}");
        assert!(attempt.reason.as_deref().unwrap_or_default().contains(reason), "{reply:?}: {attempt:?}");
        bench.service.delete_webhook(&bench.editor(), &id).await.unwrap();
    }
    let (id, _) = bench.hook("http://127.0.0.1:1/secret").await;
    bench.event().await;
    worker.drain().await.unwrap();
    let reason = bench.log(&id).await.remove(0).reason.unwrap();
    assert!(reason.contains("refused") && !reason.contains("secret"), "{reason}");
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0, "a redirect was followed");
}

#[tokio::test]
async fn a_corrupt_event_does_not_block_the_others() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("200 OK").await;
    bench.hook(&endpoint.url).await;
    bench.event().await;
    bench.contact_event(Some(b"{\"no JSON")).await;
    bench.event().await;
    bench.worker().drain().await.unwrap();
    assert_eq!((endpoint.count(), bench.due().await), (2, None));
}

#[tokio::test]
async fn a_keep_alive_connection_closed_by_the_receiver_is_no_failed_attempt() {
    let bench = Bench::new().await;
    let requests = AtomicUsize::new(0);
    // The server reads the second request, on the connection of the first, and resets the connection without a response.
    let server = TestServer::new(move |_| match requests.fetch_add(1, Ordering::SeqCst) {
        1 => ScriptedReply::Reset,
        _ => ScriptedReply::Says("200 OK".to_owned()),
    })
    .await;
    let (id, _) = bench.hook(&server.url()).await;
    let mut worker = bench.worker();
    for _ in 0..2 {
        bench.event().await;
        worker.drain().await.unwrap();
    }
    assert_eq!(bench.outcomes(&id).await, ["delivered", "delivered"]);
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}
