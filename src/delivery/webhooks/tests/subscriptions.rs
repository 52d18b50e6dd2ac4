//! Tests of webhook subscriptions: event filters, and the secrets that sign deliveries.

use super::{
    endpoint::TestEndpoint,
    fixture::{Bench, DAY, every},
};
use crate::{
    domain::{
        settings_access::FormerSecrets,
        webhooks::{ROTATION_MILLIS, Replay},
    },
    service::{Error, webhooks::WebhookSettings},
};

#[tokio::test]
async fn a_rotation_for_a_leaked_secret_ends_all_former_secrets_at_once() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("200 OK").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    bench.service.rotate_webhook(&bench.editor(), &id, FormerSecrets::Overlap).await.unwrap();
    // With `FormerSecrets::End`, the two secrets that are valid before this rotation become invalid immediately.
    let (_, third) = bench.service.rotate_webhook(&bench.editor(), &id, FormerSecrets::End).await.unwrap();
    bench.event().await;
    bench.worker().drain().await.unwrap();
    let seen = endpoint.last();
    assert_eq!(seen.signatures(), [seen.signed_by(&third)]);
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("200 OK").await;
    let (id, first) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    let (_, second) = bench.service.rotate_webhook(&bench.editor(), &id, FormerSecrets::Overlap).await.unwrap();
    assert_ne!(first.0, second.0);
    for pause in [0, ROTATION_MILLIS - 1] {
        bench.pass(pause);
        bench.event().await;
        worker.drain().await.unwrap();
        let seen = endpoint.last();
        assert_eq!(seen.signatures(), [seen.signed_by(&second), seen.signed_by(&first)]);
    }
    // A second rotation does not shorten the time in which the secret from before the first rotation stays valid.
    let (_, third) = bench.service.rotate_webhook(&bench.editor(), &id, FormerSecrets::Overlap).await.unwrap();
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
async fn a_subscription_gets_only_events_of_its_kinds_and_account() {
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
        let endpoint = TestEndpoint::says("200 OK").await;
        bench.hook_for(&endpoint.url, kinds, account).await;
        endpoints.push(endpoint);
    }
    bench.event().await;
    bench.label("c0", "l1").await;
    bench.label("elsewhere", "l1").await;
    bench.contact_event(None).await;
    bench.worker().drain().await.unwrap();
    assert_eq!(endpoints.iter().map(TestEndpoint::count).collect::<Vec<_>>(), [4, 2, 2, 1, 1]);
}

#[tokio::test]
async fn a_change_of_a_subscription_applies_to_later_events() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("200 OK").await;
    let mut worker = bench.worker();
    // This event is recorded before the subscription is created, but gets its sequence number only later. It must not be delivered.
    bench.event().await;
    let (id, _) = bench.hook_for(&endpoint.url, &["ticket.closed"], None).await;
    bench.event().await;
    let all = WebhookSettings { kinds: Some(None), ..WebhookSettings::default() };
    bench.service.edit_webhook(&bench.editor(), &id, all).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 0);
    bench.service.enable_webhook(&bench.editor(), &id, false).await.unwrap();
    bench.event().await;
    bench.service.enable_webhook(&bench.editor(), &id, true).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 0);
    bench.event().await;
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 1);
}

#[tokio::test]
async fn disabling_drops_queued_deliveries() {
    let bench = Bench::new().await;
    let endpoint = TestEndpoint::says("500 Broken").await;
    let (id, _) = bench.hook(&endpoint.url).await;
    let mut worker = bench.worker();
    bench.event().await;
    worker.drain().await.unwrap();
    bench.service.enable_webhook(&bench.editor(), &id, false).await.unwrap();
    assert_eq!(bench.due().await, None);
    let refused = bench.service.replay(&bench.editor(), &id, every(), false).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict { .. }), "{refused:?}");
    assert!(matches!(bench.service.test_webhook(&bench.editor(), &id).await.unwrap_err(), Error::Conflict { .. }));
    assert_eq!(bench.service.replay(&bench.editor(), &id, every(), true).await.unwrap(), 1);
    endpoint.now_says("200 OK");
    bench.service.enable_webhook(&bench.editor(), &id, true).await.unwrap();
    bench.pass(DAY);
    worker.drain().await.unwrap();
    assert_eq!(endpoint.count(), 1);
    assert_eq!(bench.replay(&id, Replay { missing: true, ..every() }).await, 1);
    worker.drain().await.unwrap();
    let seen = endpoint.seen();
    assert_eq!((seen.len(), seen[0].id(), &seen[0].body), (2, seen[1].id(), &seen[1].body));
}
