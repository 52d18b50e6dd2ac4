//! Tests of message delivery over bridges (operators' HTTP endpoints for channel accounts), with scripted local endpoints and a fake clock.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use futures_util::future::join_all;
use serde_json::json;

use super::*;
use crate::{
    delivery::{
        channel_connector::Connectors,
        channel_simulator::Simulator,
        outbound::{Messages, Outbound},
        scripted_endpoints::{self, SHORT, START, ScriptedReply, TestEndpoint as Local},
    },
    domain::{
        events::{Actor, Event},
        fake_clock_and_test_rules::MovableClock,
        inbound_messages::{Inbound, Received},
        send_requests::{EmailContent, FilledTemplate, Send},
        settings_access::{Editor, FormerSecrets},
        webhooks::{ROTATION_MILLIS, SigningSecret},
    },
    service::{Renderer, Service, WriteContext, outbox_processing::LEASE_MILLIS},
    store::{
        fixture::Fixture,
        queues::{concurrency::AttemptLimits, outbound::ClaimedMessage},
    },
};

mod wire_format;

const ACCOUNT: &str = "a1";

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
    hands: Arc<MovableClock>,
    service: Service,
}

impl Bench {
    async fn new() -> Self {
        let fixture = Fixture::alone().await;
        let hands = MovableClock::at(START);
        let service = scripted_endpoints::service(fixture.db.clone(), hands.clone(), Kinds);
        Self { fixture, hands, service }
    }

    /// Creates the fixture with an account whose bridge is a local endpoint that sends this reply. Returns the fixture, the endpoint, and
    /// the signing secret of the bridge.
    async fn bridged(reply: ScriptedReply) -> (Self, Local, SigningSecret) {
        let (bench, local) = (Self::new().await, Local::new(reply).await);
        let secret = bench.bridge(ACCOUNT, &local.url).await.unwrap();
        (bench, local, secret)
    }

    async fn bridge(&self, account: &str, url: &str) -> Option<SigningSecret> {
        self.service.set_bridge(&Editor::command_line(self.fixture.store.clone()), &account.into(), url).await.unwrap().1
    }

    fn by(&self) -> WriteContext<'_, ()> {
        WriteContext::alone(&self.fixture.store, Actor::System)
    }

    async fn text(&self, text: &str) {
        self.service.send(&self.by(), Send::Text { conversation_id: "c0".into(), text: text.to_owned() }).await.unwrap();
    }

    fn worker(&self) -> Outbound {
        self.worker_with(Connectors::none(), Targets::Any)
    }

    fn worker_with(&self, connectors: Connectors, targets: Targets) -> Outbound {
        Outbound::new(Messages::within(SHORT, self.service.clone(), connectors, targets).unwrap())
    }

    async fn claim(&self) -> Vec<ClaimedMessage> {
        let none = HashMap::new();
        self.service.claim_outbox_entries(AttemptLimits { all: 10, each: 10, busy: &none }).await.unwrap()
    }

    /// Returns the state and reason of each message that its channel has not accepted.
    async fn undelivered(&self) -> Vec<(String, String)> {
        let all = self.service.all_undelivered(&self.fixture.store).await.unwrap();
        all.into_iter().map(|one| (one.state.as_str().to_owned(), one.reason.unwrap_or_default())).collect()
    }

    /// Returns the milliseconds until the next attempt is due.
    async fn due(&self) -> Option<i64> {
        let now = self.service.clocks_and_ids().now().millis();
        self.service.next_message_at().await.unwrap().map(|at| at.millis() - now)
    }

    async fn sent(&self) -> usize {
        self.fixture.db.number_events(None, self.service.clocks_and_ids().now()).await.unwrap();
        self.fixture.db.events_after(&self.fixture.store, 0, 1000).await.unwrap().len()
    }

    /// Receives an inbound message: `external_id` is the channel's id of the message, `reference_id` the channel's id of its thread.
    async fn receive(&self, external_id: &str, reference_id: &str) -> Received {
        let inbound = Inbound {
            account_id: ACCOUNT.into(),
            reference_id: reference_id.to_owned(),
            external_id: external_id.to_owned(),
            sender_id: "u1".to_owned(),
            sender_name: None,
            text: Some("hello".to_owned()),
            images: None,
            sent_at: None,
            email_subject: None,
            contact: None,
            not_texts: vec![],
        };
        self.service.receive(&self.fixture.store, inbound).await.unwrap()
    }
}

fn answers(status: &str, body: &str) -> ScriptedReply {
    ScriptedReply::Answers(status.to_owned(), body.to_owned())
}

fn takes(external_id: &str) -> ScriptedReply {
    answers("200 OK", &json!({ "externalId": external_id }).to_string())
}

fn body(seen: &scripted_endpoints::ReceivedRequest) -> Value {
    serde_json::from_slice(&seen.body).unwrap()
}

#[tokio::test]
async fn the_response_decides_the_state_of_a_message() {
    let elsewhere = Local::new(takes("x")).await;
    let redirect = |status: &str| ScriptedReply::Says(format!("{status}\r\nlocation: {}", elsewhere.url));
    let padded = |length: usize| answers("200 OK", &format!("{{\"externalId\":\"x\"}}{}", " ".repeat(length - 18)));
    for (reply, state, reason) in [
        (takes("x"), "sent", ""),
        (padded(MAX_RESPONSE_BYTES), "sent", ""),
        (
            padded(MAX_RESPONSE_BYTES + 1),
            "pending",
            "the bridge answered 200, but the answer is not understood: it is longer than 65536 bytes",
        ),
        (answers("200 OK", "{}"), "pending", "the bridge answered 200, but the answer is not understood: `externalId` is missing"),
        (redirect("302 Found"), "pending", "the bridge answered 302"),
        (redirect("307 Again"), "pending", "the bridge answered 307"),
        (redirect("308 For good"), "pending", "the bridge answered 308"),
        (answers("429 Slow down", ""), "pending", "the bridge answered 429"),
        (answers("503 Later", ""), "pending", "the bridge answered 503"),
        (ScriptedReply::Hang, "pending", "no answer within 0 seconds"),
        (ScriptedReply::Unended(""), "pending", "the bridge answered 200, but the answer is not understood: no answer within 0 seconds"),
        (
            ScriptedReply::Unended(r#"{"externalId":"x"#),
            "pending",
            "the bridge answered 200, but the answer is not understood: no answer within 0 seconds",
        ),
        // The response never ends, but all of its JSON arrives.
        (ScriptedReply::Unended(r#"{"externalId":"x"}"#), "sent", ""),
        (ScriptedReply::Reset, "pending", "Connection reset by peer (os error 104)"),
        (answers("403 No", r#"{"error":"blocked"}"#), "failed", "the bridge answered 403: blocked"),
        (answers("410 Gone", "gone"), "failed", "the bridge answered 410"),
    ] {
        let (bench, _local, _) = Bench::bridged(reply.clone()).await;
        bench.text("x").await;
        bench.worker().drain().await.unwrap();
        let expected = if state == "sent" { vec![] } else { vec![(state.to_owned(), reason.to_owned())] };
        assert_eq!(bench.undelivered().await, expected, "{reply:?}");
        assert_eq!((bench.sent().await, bench.due().await.is_some()), (usize::from(state == "sent"), state == "pending"), "{reply:?}");
    }
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0, "a redirect was followed");
}

#[tokio::test]
async fn every_attempt_has_the_message_id_as_its_idempotency_key() {
    let (bench, local, secret) = Bench::bridged(ScriptedReply::Hang).await;
    let mut worker = bench.worker();
    bench.text("x").await;
    let mut pauses = Vec::new();
    for reply in [
        ScriptedReply::Hang,
        ScriptedReply::Reset,
        ScriptedReply::Unended(""),
        answers("500 Broken", ""),
        answers("200 OK", "ok"),
        takes("x-1"),
    ] {
        local.now(reply);
        worker.drain().await.unwrap();
        if let Some(due) = bench.due().await {
            pauses.push(due);
            bench.hands.pass(due);
        }
    }
    assert_eq!((bench.undelivered().await, bench.sent().await), (vec![], 1));
    for (pause, expected) in pauses.iter().zip([1_000, 5_000, 30_000, 120_000, 600_000]) {
        assert!((expected * 8 / 10..=expected * 12 / 10).contains(pause), "{pauses:?}");
    }
    let seen = local.seen();
    // Attempt 2 has two requests: the first connection ended without a response, so the client repeated the request immediately on another
    // connection.
    let attempts = [1, 2, 2, 3, 4, 5, 6];
    assert_eq!((pauses.len(), seen.len()), (5, attempts.len()));
    for (seen, attempt) in seen.iter().zip(attempts) {
        let got = body(seen);
        assert_eq!((seen.id(), &got["messageId"], &got["attempt"]), (local.last().id(), &json!(local.last().id()), &json!(attempt)));
        assert_eq!(seen.signatures(), [seen.signed_by(&secret)]);
    }
}

#[tokio::test]
async fn a_permanent_failure_is_final_and_keeps_its_reason() {
    let (bench, local, _) = Bench::bridged(answers("500 Broken", r#"{"error":"no line"}"#)).await;
    let mut worker = bench.worker();
    bench.text("x").await;
    worker.drain().await.unwrap();
    while let Some(due) = bench.due().await {
        bench.hands.pass(due);
        worker.drain().await.unwrap();
    }
    assert_eq!((local.count(), bench.sent().await), (7, 0));
    assert_eq!(bench.undelivered().await, [("failed".to_owned(), "the bridge answered 500: no line".to_owned())]);
    // No server listens at this URL. The failure reason must not contain the URL.
    bench.bridge(ACCOUNT, "http://127.0.0.1:1/secret").await;
    bench.text("x").await;
    worker.drain().await.unwrap();
    while let Some(due) = bench.due().await {
        bench.hands.pass(due);
        worker.drain().await.unwrap();
    }
    let (state, reason) = bench.undelivered().await.pop().unwrap();
    assert!(state == "failed" && reason.contains("refused") && !reason.contains("secret"), "{reason}");
}

#[tokio::test]
async fn a_bridge_may_ask_for_a_longer_pause() {
    let (bench, local, _) = Bench::bridged(ScriptedReply::Says("503 Later\r\nretry-after: 90".to_owned())).await;
    let mut worker = bench.worker();
    bench.text("x").await;
    worker.drain().await.unwrap();
    assert_eq!(bench.due().await, Some(90_000));
    bench.hands.pass(90_000);
    local.now_says("200 Not understood\r\nretry-after: 3600");
    worker.drain().await.unwrap();
    assert_eq!(bench.due().await, Some(3_600_000));
    bench.hands.pass(3_600_000);
    // A `retry-after` below the pause of the retry schedule is ignored: the schedule's pause is the minimum.
    local.now_says("429 Too many\r\nretry-after: 1");
    worker.drain().await.unwrap();
    assert!(bench.due().await.unwrap() >= 24_000);
}

#[tokio::test]
async fn after_a_rotation_the_former_secret_also_signs_for_a_day() {
    let (bench, local, first) = Bench::bridged(takes("x")).await;
    let mut worker = bench.worker();
    let mut signed = async |secrets: &[&SigningSecret]| {
        bench.text("x").await;
        worker.drain().await.unwrap();
        let seen = local.last();
        assert_eq!(seen.signatures(), secrets.iter().map(|secret| seen.signed_by(secret)).collect::<Vec<_>>());
    };
    let editor = Editor::command_line(bench.fixture.store.clone());
    let rotate = async |former| bench.service.rotate_bridge(&editor, &ACCOUNT.into(), former).await.unwrap().1;
    signed(&[&first]).await;
    let second = rotate(FormerSecrets::Overlap).await;
    signed(&[&second, &first]).await;
    bench.hands.pass(ROTATION_MILLIS / 2);
    let third = rotate(FormerSecrets::Overlap).await;
    signed(&[&third, &second, &first]).await;
    bench.hands.pass(ROTATION_MILLIS / 2 - 1);
    signed(&[&third, &second, &first]).await;
    bench.hands.pass(1);
    signed(&[&third, &second]).await;
    // `FormerSecrets::End` is for leaked secrets: requests are no longer signed with former secrets.
    let third = rotate(FormerSecrets::End).await;
    signed(&[&third]).await;
    // A new URL of the bridge does not change its secret.
    let moved = Local::new(takes("x")).await;
    assert_eq!(bench.bridge(ACCOUNT, &moved.url).await, None);
    bench.hands.pass(ROTATION_MILLIS);
    bench.text("x").await;
    worker.drain().await.unwrap();
    let seen = moved.last();
    assert_eq!((seen.signatures(), local.count(), moved.count()), (vec![seen.signed_by(&third).as_str()], 6, 1));
}

#[tokio::test]
async fn concurrent_creations_of_a_bridge_return_its_secret_only_once() {
    let bench = Bench::new().await;
    let set = (0..6).map(|n| {
        let (service, store) = (bench.service.clone(), bench.fixture.store.clone());
        tokio::spawn(async move {
            service.set_bridge(&Editor::command_line(store), &ACCOUNT.into(), &format!("https://example.com/{n}")).await.unwrap().1
        })
    });
    let secrets: Vec<SigningSecret> = join_all(set).await.into_iter().filter_map(std::result::Result::unwrap).collect();
    bench.text("x").await;
    let claimed = bench.claim().await.remove(0);
    assert_eq!((secrets.len(), Some(secrets)), (1, claimed.bridge.and_then(|endpoint| endpoint.secrets.ok())));
}

#[tokio::test]
async fn nothing_goes_to_a_private_address() {
    let (bench, local, _) = Bench::bridged(takes("x")).await;
    let port = Url::parse(&local.url).unwrap().port().unwrap();
    let mut worker = bench.worker_with(Connectors::every(Arc::new(Simulator)), Targets::Public);
    for url in [local.url.clone(), format!("https://127.0.0.1:{port}/")] {
        bench.bridge(ACCOUNT, &url).await;
        bench.text("x").await;
        worker.drain().await.unwrap();
        let (state, reason) = bench.undelivered().await.pop().unwrap();
        assert!(state == "failed" && reason.contains("not a public one"), "{url}: {state}, {reason}");
    }
    assert_eq!((local.connections.load(Ordering::SeqCst), bench.undelivered().await.len(), bench.sent().await), (0, 2, 0));
}

#[tokio::test]
async fn a_host_name_with_a_private_address_fails_like_an_unknown_host() {
    let (bench, local, _) = Bench::bridged(takes("x")).await;
    let port = Url::parse(&local.url).unwrap().port().unwrap();
    let mut worker = bench.worker_with(Connectors::every(Arc::new(Simulator)), Targets::Public);
    let mut ends = Vec::new();
    bench.text("x").await;
    for url in [format!("https://localhost:{port}/"), "https://bridge.invalid/".to_owned()] {
        bench.bridge(ACCOUNT, &url).await;
        worker.drain().await.unwrap();
        ends.push(bench.undelivered().await.pop().unwrap());
        bench.hands.pass(bench.due().await.unwrap());
    }
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0].0, "pending");
    assert_eq!(local.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_queued_message_goes_to_the_current_bridge_of_its_account() {
    let (bench, local, _) = Bench::bridged(answers("500 Broken", "")).await;
    let moved = Local::new(answers("500 Broken", "")).await;
    let mut worker = bench.worker();
    bench.text("x").await;
    worker.drain().await.unwrap();
    bench.bridge(ACCOUNT, &moved.url).await;
    bench.hands.pass(bench.due().await.unwrap());
    worker.drain().await.unwrap();
    assert_eq!((local.count(), moved.count(), moved.last().id()), (1, 1, local.last().id()));
    bench.service.remove_bridge(&Editor::command_line(bench.fixture.store.clone()), &ACCOUNT.into()).await.unwrap();
    bench.hands.pass(bench.due().await.unwrap());
    worker.drain().await.unwrap();
    assert_eq!((moved.count(), bench.undelivered().await), (1, vec![("failed".to_owned(), "no_connector".to_owned())]));
    // A new bridge has a new secret.
    assert!(bench.bridge(ACCOUNT, &moved.url).await.is_some());
    moved.now(takes("x"));
    bench.text("y").await;
    worker.drain().await.unwrap();
    assert_eq!((moved.last().signatures().len(), bench.sent().await), (1, 1));
}

#[tokio::test]
async fn an_unsettled_attempt_is_retried_after_its_lease() {
    let (bench, local, _) = Bench::bridged(takes("x")).await;
    bench.text("x").await;
    // The test claims the message as a worker that then dies. The next attempt is made only after this claim has expired, at the end of its
    // lease.
    let claimed = bench.claim().await;
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    assert_eq!(local.count(), 0);
    bench.hands.pass(LEASE_MILLIS);
    worker.drain().await.unwrap();
    let seen = local.last();
    assert_eq!((seen.id(), &body(&seen)["attempt"]), (claimed[0].outbox_entry.message_id.as_str(), &json!(2)));
    assert_eq!((local.count(), bench.sent().await), (1, 1));
}

#[tokio::test]
async fn an_external_id_is_not_moved_from_one_message_to_another() {
    let (bench, local, _) = Bench::bridged(takes("same")).await;
    let mut worker = bench.worker();
    // The channel may report a sent message as inbound (echo) before the bridge responds to the send.
    let former = bench.receive("same", "c0").await;
    bench.text("first").await;
    bench.text("second").await;
    worker.drain().await.unwrap();
    let again = bench.receive("same", "c0").await;
    assert_eq!((again.duplicate, again.message_id), (true, former.message_id));
    assert_eq!((local.count(), bench.undelivered().await), (2, vec![]));
    local.now(takes("free"));
    bench.text("third").await;
    worker.drain().await.unwrap();
    assert_eq!(bench.receive("free", "c0").await.message_id.as_str(), local.last().id());
}
