//! Tests of advancing the clock of a sandbox (a test database): the work that falls due is done, and invalid advances are refused.

use std::{sync::Arc, time::Duration};

use poem::http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::fixture::{ClockedShop, DAY, HOUR, MINUTE};
use crate::{
    delivery::{
        channel_connector::{Accepted, Capabilities, Connector, Connectors, Sending},
        scripted_endpoints::TestEndpoint,
    },
    domain::{
        clock::{Clock, ClocksAndIds},
        events::Actor,
        outbound_messages::OutboxEntry,
        send_requests::Send,
        settings_access::CredentialKind,
        webhooks::AttemptLogPage,
    },
    http::machinery::{idempotency::IDEMPOTENCY_KEY, routing::SETTINGS_PREFIX},
    service::WriteContext,
};

/// A connector that accepts one message for each permit that the test adds to the semaphore.
struct PermitConnector(Arc<Semaphore>);

impl Connector for PermitConnector {
    fn capabilities(&self) -> Capabilities {
        Capabilities { text: true, email: true, templates: true }
    }

    fn send<'a>(&'a self, _: &'a OutboxEntry, _: i64) -> Sending<'a> {
        Box::pin(async {
            self.0.acquire().await.unwrap().forget();
            Ok(Accepted { external_id: None, reference_id: None })
        })
    }
}

#[tokio::test]
async fn a_snooze_ends_at_its_time() {
    let mut shop = ClockedShop::in_sandbox().await;
    let (_, secret) = shop.key("reader").await;
    let (_, ticket) = shop.receive("a1", "thread", "message").await;
    shop.snooze(&ticket, 3 * HOUR).await;
    assert_eq!(shop.open_tickets(&secret).await, (200, 0));
    shop.pass(3 * HOUR - 1).await;
    assert_eq!(shop.open_tickets(&secret).await, (200, 0));
    let (status, answer) = shop.request_advance(json!({ "to": shop.now().plus_millis(1) })).await;
    assert_eq!((status, &answer["data"]["ticketsWoken"]), (200, &json!(1)), "{answer}");
    assert_eq!(shop.open_tickets(&secret).await, (200, 1));
}

#[tokio::test]
async fn a_key_expires_and_a_former_secret_ends_after_two_hours() {
    let mut shop = ClockedShop::in_sandbox().await;
    let (id, former) = shop.key("rotated").await;
    let rotated = shop.set(Method::POST, "/keys/rotate", json!({ "keyId": id })).await;
    let secret = rotated["secret"].as_str().unwrap();
    shop.pass(2 * HOUR - 1).await;
    assert_eq!(shop.open_tickets(&former).await.0, 200);
    shop.pass(1).await;
    assert_eq!((shop.open_tickets(&former).await.0, shop.open_tickets(secret).await.0), (401, 200));
    let expires_at = rotated["key"]["expiresAt"].clone();
    let (status, answer) = shop.request_advance(json!({ "to": expires_at })).await;
    assert_eq!((status, &answer["data"]["keysExpired"]), (200, &json!(1)), "{answer}");
    assert_eq!(shop.open_tickets(secret).await.0, 401);
}

#[tokio::test]
async fn the_window_of_whatsapp_closes_and_an_idempotency_key_is_forgotten_after_a_day() {
    let mut shop = ClockedShop::in_sandbox().await;
    let (_, secret) = shop.key("sender").await;
    let (conversation, _) = shop.receive("wa", "+66812345678", "message").await;
    let send = async |shop: &ClockedShop, headers: &[(&str, &str)]| {
        let (status, answer) = shop.send(&secret, &conversation, "Good morning!", headers).await;
        assert!(status == 200 || answer["error"]["message"].as_str().is_some_and(|text| text.contains("24 hours")), "{answer}");
        (status, shop.fixture.rows_of("messages").await)
    };
    let once = [(IDEMPOTENCY_KEY, "first")];
    assert_eq!(send(&shop, &once).await, (200, 2));
    shop.pass(DAY - 1).await;
    assert_eq!(send(&shop, &once).await, (200, 2), "the answer is repeated");
    shop.pass(1).await;
    assert_eq!(send(&shop, &once).await, (200, 3), "the key is forgotten");
    assert_eq!(send(&shop, &[]).await, (200, 4), "the window is open");
    shop.pass(1).await;
    assert_eq!(send(&shop, &[]).await, (400, 4), "the window is closed");
}

#[tokio::test]
async fn a_draft_expires_after_seven_days() {
    let mut shop = ClockedShop::in_sandbox().await;
    let (key, _) = shop.key("assistant").await;
    let (conversation, _) = shop.receive("a1", "thread", "message").await;
    let send = Send::Text { conversation_id: conversation.as_str().into(), text: "Good morning!".to_owned() };
    let by = WriteContext::alone(&shop.fixture.store, Actor::System);
    shop.service.make_draft(&by, &key.as_str().into(), "assistant", send).await.unwrap();
    let states = async |shop: &ClockedShop| {
        let count =
            async |state: &str| shop.set(Method::GET, &format!("/drafts?state={state}"), Value::Null).await.as_array().map(Vec::len);
        (count("pending").await, count("expired").await)
    };
    shop.pass(7 * DAY - 1).await;
    assert_eq!(states(&shop).await, (Some(1), Some(0)));
    let (_, answer) = shop.request_advance(json!({ "to": shop.now().plus_millis(1) })).await;
    assert_eq!(answer["data"]["draftsExpired"], 1, "{answer}");
    assert_eq!(states(&shop).await, (Some(0), Some(1)));
}

#[tokio::test]
async fn failed_deliveries_keep_to_their_schedule_and_disable_a_webhook_after_five_days() {
    let shop = ClockedShop::in_sandbox().await;
    let endpoint = TestEndpoint::says("500 Broken").await;
    let hook = shop.webhook(&endpoint).await;
    let (conversation, _) = shop.receive("a1", "thread", "message").await;
    let began = shop.now();
    let advance = async |to| {
        let (status, answer) = shop.request_advance(json!({ "to": to })).await;
        assert_eq!(status, 200, "{answer}");
        answer["data"].clone()
    };
    advance(began.plus_millis(5_000 + 5 * MINUTE)).await;
    let log = shop.service.attempts(&shop.fixture.store, &hook.as_str().into(), AttemptLogPage::After(0), 500).await.unwrap();
    let mut at: Vec<i64> = log.iter().map(|attempt| attempt.started_at.millis() - began.millis()).collect();
    at.dedup();
    assert_eq!(at, [0, 5_000, 5_000 + 5 * MINUTE], "without jitter");
    let retried = advance(began.plus_millis(HOUR)).await;
    let grown =
        shop.service.attempts(&shop.fixture.store, &hook.as_str().into(), AttemptLogPage::After(0), 500).await.unwrap().len() - log.len();
    assert!(grown > 0);
    assert_eq!((&retried["webhookAttempts"], &retried["messageAttempts"]), (&json!(grown), &json!(0)), "{retried}");
    shop.set(Method::POST, "/conversations/escalate", json!({ "conversationId": conversation })).await;
    advance(began.plus_millis(5 * DAY - 1)).await;
    assert_eq!(shop.shown_webhook(&hook).await["enabled"], true);
    shop.set(Method::POST, "/conversations/escalate", json!({ "conversationId": conversation })).await;
    let advanced = advance(began.plus_millis(6 * DAY)).await;
    assert_eq!((&advanced["webhooksDisabled"], &shop.shown_webhook(&hook).await["enabled"]), (&json!(1), &json!(false)), "{advanced}");
    // A signature contains real time, not the sandbox's time, since the receiver compares the time of the signature with its own clock.
    assert_eq!(endpoint.last().seconds(), shop.real.now().millis() / 1000);
}

#[tokio::test]
async fn people_stay_signed_in_while_the_clock_is_advanced() {
    let mut shop = ClockedShop::in_sandbox().await;
    shop.pass(700 * DAY).await;
    shop.set(Method::GET, "/session", Value::Null).await;
    // A token expires by real time, not by the sandbox's clock.
    shop.real.pass(CredentialKind::Token.lifetime());
    assert_eq!(shop.ask(Method::GET, &format!("{SETTINGS_PREFIX}/session"), None, &[], Value::Null).await.0, 401);
}

#[tokio::test]
async fn a_clock_advance_to_an_invalid_past_or_distant_instant_is_refused() {
    let mut shop = ClockedShop::in_sandbox().await;
    shop.pass(DAY).await;
    let now = shop.now();
    let far = shop.real.clone();
    let at = |ahead: i64| json!({ "to": far.now().plus_millis(ahead) });
    for (body, said) in [
        (json!({}), "`body.to`"),
        (json!({ "to": null }), "`body.to`"),
        (json!({ "to": 5 }), "`body.to`"),
        (json!({ "to": "tomorrow" }), "`body.to`"),
        (json!({ "to": now, "by": 1 }), "`body.by`"),
        (at(DAY - 1), "`body.to` is in the past of the sandbox, whose clock shows"),
        (at(731 * DAY + 1), "`body.to` is more than two years ahead of real time; it must be at most"),
        (json!({ "to": "9999-12-31T23:59:59Z" }), "two years"),
    ] {
        let (status, answer) = shop.request_advance(body.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(said), "{body}: {status} {answer}");
    }
    assert_eq!(shop.now(), now, "refusals move nothing");
    // Two instants are accepted: the present of the sandbox, whose clock is already one day ahead of real time, and the latest permitted
    // instant.
    for ahead in [DAY, 731 * DAY] {
        assert_eq!(shop.request_advance(at(ahead)).await.0, 200);
    }
    let audit = shop.set(Method::GET, "/audit?subjectType=clock", Value::Null).await;
    let entries = audit.as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["action"]), (3, &json!("clock.advanced")));
    assert_eq!((&entries[0]["detail"]["from"], &entries[0]["detail"]["to"]), (&json!(now), &json!(shop.now())));
}

#[tokio::test]
async fn a_server_without_sandbox_refuses_to_advance_its_clock() {
    let shop = ClockedShop::on_moved_clock().await;
    let (status, answer) = shop.request_advance(json!({ "to": shop.now().plus_millis(DAY) })).await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("its database is no sandbox; `counterpart serve --sandbox`"), "{answer}");
    assert_eq!(shop.set(Method::GET, "/clock", Value::Null).await, json!({ "now": shop.now(), "sandbox": false }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_advance_is_exclusive_survives_a_disconnect_and_awaits_attempts_in_progress() {
    let gate = Arc::new(Semaphore::new(0));
    let shop = ClockedShop::over(Connectors::every(Arc::new(PermitConnector(gate.clone())))).await;
    let (_, secret) = shop.key("sender").await;
    let (conversation, _) = shop.receive("a1", "thread", "message").await;
    assert_eq!(shop.send(&secret, &conversation, "Good morning!", &[]).await.0, 200);
    let (from, to) = (shop.now(), shop.now().plus_millis(7 * DAY));
    let client = shop.request_advance(json!({ "to": to }));
    assert!(tokio::time::timeout(Duration::from_millis(300), client).await.is_err(), "an attempt is under way");
    // The client has disconnected, and the advance is still in progress.
    let clock = shop.set(Method::GET, "/clock", Value::Null).await;
    assert_eq!(clock, json!({ "now": from, "sandbox": true, "advancingTo": to }));
    let (status, answer) = shop.request_advance(json!({ "to": to })).await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("the clock is being advanced to"), "{answer}");
    gate.add_permits(1);
    while shop.set(Method::GET, "/clock", Value::Null).await["advancingTo"] != Value::Null {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(shop.now(), to);
    // The advanced time is stored: a process that starts now shows the same time.
    let ahead = shop.fixture.db.sandbox_ahead().await.unwrap().unwrap();
    let clocks_and_ids = ClocksAndIds {
        sandbox: None,
        clock: shop.real.clone(),
        ..ClocksAndIds::of(shop.real.clone(), shop.service.clocks_and_ids().ids.clone())
    };
    assert_eq!(clocks_and_ids.in_sandbox(ahead).now(), to);
}

#[tokio::test]
async fn a_sandbox_has_one_server_and_rejects_advances_of_a_former_one() {
    let shop = ClockedShop::in_sandbox().await;
    let db = &shop.fixture.db;
    let lock = db.lock_for_server().await.unwrap();
    let other = crate::store::Db::open(&shop.fixture.url, 2, None).await.unwrap();
    let refused = other.lock_for_server().await.err().unwrap().to_string();
    assert!(refused.contains("another server serves this sandbox"), "{refused}");
    drop(lock);
    let _lock = loop {
        // PostgreSQL releases the lock only once it notices that the connection is closed.
        match other.lock_for_server().await {
            Ok(lock) => break lock,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    // The other server moves the stored clock while this process still serves the sandbox: the next advance must fail.
    other.move_sandbox(0, DAY).await.unwrap();
    let (status, answer) = shop.request_advance(json!({ "to": shop.now().plus_millis(2 * DAY) })).await;
    assert_eq!(status, 503, "{answer}");
    assert_eq!(db.sandbox_ahead().await.unwrap(), Some(DAY));
    other.close().await.unwrap();
}
