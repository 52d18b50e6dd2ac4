//! Tests of endpoint health: after which failures a webhook subscription is disabled.

use super::{
    endpoint::{START, TestEndpoint},
    fixture::{Bench, DAY, every},
};
use crate::{
    delivery::worker::MAX_ATTEMPTS_PER_DESTINATION,
    domain::{
        time::Timestamp,
        webhooks::{DISABLE_AFTER_MILLIS, EndpointAnswer, Replay},
    },
    service::webhooks::WebhookSettings,
};

#[tokio::test]
async fn a_410_disables_the_subscription() {
    let bench = Bench::new().await;
    let gone = TestEndpoint::says("410 Gone").await;
    let well = TestEndpoint::says("200 OK").await;
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
    assert!(outcomes.len() <= MAX_ATTEMPTS_PER_DESTINATION, "{} attempts", outcomes.len());
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "disabled").count(), 1);
    assert!(outcomes.iter().all(|outcome| outcome == "disabled" || outcome == "late"), "{outcomes:?}");
    assert_eq!((well.count(), bench.due().await), (40, None));
    bench.event().await;
    bench.pass(2 * DAY);
    let before = gone.count();
    worker.drain().await.unwrap();
    // A subscription that is enabled again gets only later events. A replay sends the earlier events.
    gone.now_says("200 OK");
    bench.event().await;
    bench.service.enable_webhook(&bench.editor(), &id, true).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!((gone.count(), bench.due().await), (before, None), "events are not queued while the subscription is disabled");
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!((gone.count(), well.count()), (before + 1, 43));
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 42);
    worker.drain().await.unwrap();
    assert_eq!((gone.count(), bench.replay(&id, Replay { missing: true, ..every() }).await), (before + 43, 0));
    assert_eq!(bench.shown(&other).await.failing_since, None);
}

#[tokio::test]
async fn five_days_without_a_success_disable_the_subscription() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("500 Broken").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(bench.shown(&id).await.failing_since.map(Timestamp::millis), Some(START));
    bench.pass(DISABLE_AFTER_MILLIS - 1);
    worker.drain().await.unwrap();
    assert!(bench.shown(&id).await.enabled);
    // A subscription is disabled after five days without a successful attempt. A success restarts this period.
    endpoint.now_says("200 OK");
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(bench.shown(&id).await.failing_since, None);
    endpoint.now_says("500 Broken");
    bench.event().await;
    worker.drain().await.unwrap();
    bench.pass(DISABLE_AFTER_MILLIS - 1);
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
async fn a_new_url_restarts_the_five_day_period_before_disabling() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("500 Broken").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    bench.event().await;
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    bench.pass(DISABLE_AFTER_MILLIS);
    let other = TestEndpoint::says("500 Broken too").await;
    bench
        .service
        .edit_webhook(&bench.editor(), &id, WebhookSettings { url: Some(other.url.clone()), ..WebhookSettings::default() })
        .await
        .unwrap();
    worker.drain().await.unwrap();
    assert_eq!((endpoint.count(), other.count(), bench.shown(&id).await.enabled), (1, 1, true));
}

#[tokio::test]
async fn responses_of_a_former_url_do_not_count_for_the_new_one() {
    let bench = Bench::new().await;
    let (id, _) = bench.hook("http://127.0.0.1:9/old").await;
    let moved = |url: &str| WebhookSettings { url: Some(url.to_owned()), ..WebhookSettings::default() };
    for (answer, outcome) in [
        (EndpointAnswer::Status(410, None), "retrying"),
        (EndpointAnswer::Status(500, None), "retrying"),
        (EndpointAnswer::None("nobody".to_owned()), "retrying"),
        (EndpointAnswer::Status(200, None), "delivered"),
    ] {
        bench.service.edit_webhook(&bench.editor(), &id, moved("http://127.0.0.1:9/old")).await.unwrap();
        bench.event().await;
        let claimed = bench.claim_at_due().await;
        bench.service.edit_webhook(&bench.editor(), &id, moved("http://127.0.0.1:9/new")).await.unwrap();
        bench.service.settle_delivery(&claimed[0], bench.attempted(answer.clone()), 0.5).await.unwrap();
        let shown = bench.shown(&id).await;
        assert_eq!((shown.enabled, shown.failing_since), (true, None), "{answer:?}");
        let last = bench.log(&id).await.pop().unwrap();
        assert_eq!((last.outcome.as_str(), last.url.as_str()), (outcome, "http://127.0.0.1:9/old"), "{answer:?}");
        // A failed attempt is repeated at the new URL.
        let next = bench.claim_at_due().await;
        assert!(next.iter().all(|one| one.webhook_delivery.url.ends_with("/new")));
        for one in &next {
            bench.service.settle_delivery(one, bench.attempted(EndpointAnswer::Status(200, None)), 0.5).await.unwrap();
        }
        assert_eq!(next.len(), usize::from(outcome == "retrying"), "{answer:?}");
    }
}
