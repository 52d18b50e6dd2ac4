//! Messages over bridges to local endpoints that do as they are told, with a clock that can be moved.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use futures_util::future::join_all;
use serde_json::json;

use super::*;
use crate::{
    delivery::{
        connector::Connectors,
        outbound::{Messages, Outbound},
        simulator::Simulator,
        testing::{self, Endpoint as Local, Reply, SHORT, START},
    },
    domain::{
        events::{Actor, Event},
        fixture::MovableClock,
        receive::{Inbound, Received},
        settings::Editor,
        webhooks::{ROTATION_MILLIS, SigningSecret},
    },
    service::{
        By, Renderer, Service,
        outbound::LEASE_MILLIS,
        sends::{Filling, Letter},
    },
    store::{fixture::Fixture, outbound::Claimed, queue::Room},
};

const ACCOUNT: &str = "a1";

struct Kinds;

impl Renderer for Kinds {
    fn render(&self, _: &StoreId, event: &Event) -> Vec<u8> {
        format!("{{\"kind\":\"{}\"}}", event.fact.kind()).into_bytes()
    }
}

/// A store on a database of its own: claims look at all stores.
struct Bench {
    fixture: Fixture,
    hands: Arc<MovableClock>,
    service: Service,
}

impl Bench {
    async fn new() -> Self {
        let fixture = Fixture::alone().await;
        let hands = MovableClock::at(START);
        let service = testing::service(fixture.db.clone(), hands.clone(), Kinds);
        Self { fixture, hands, service }
    }

    /// A bench whose one account has a bridge to an endpoint.
    async fn bridged(reply: Reply) -> (Self, Local, SigningSecret) {
        let (bench, local) = (Self::new().await, Local::new(reply).await);
        let secret = bench.bridge(ACCOUNT, &local.url).await.unwrap();
        (bench, local, secret)
    }

    async fn bridge(&self, account: &str, url: &str) -> Option<SigningSecret> {
        self.service.set_bridge(&Editor::command_line(self.fixture.store.clone()), &account.into(), url).await.unwrap().1
    }

    fn by(&self) -> By<'_, ()> {
        By::alone(&self.fixture.store, Actor::System)
    }

    async fn text(&self, text: &str) {
        self.service.send_text(&self.by(), "c0".into(), text.to_owned()).await.unwrap();
    }

    fn worker(&self) -> Outbound {
        self.worker_with(Connectors::none(), Targets::Any)
    }

    fn worker_with(&self, connectors: Connectors, targets: Targets) -> Outbound {
        Outbound::new(Messages::within(SHORT, self.service.clone(), connectors, targets).unwrap())
    }

    async fn claim(&self) -> Vec<Claimed> {
        let none = HashMap::new();
        self.service.claim_parcels(Room { all: 10, each: 10, busy: &none }).await.unwrap()
    }

    /// State and reason of each message that its channel does not have.
    async fn undelivered(&self) -> Vec<(String, String)> {
        let all = self.service.undelivered(&self.fixture.store).await.unwrap();
        all.into_iter().map(|one| (one.state, one.reason.unwrap_or_default())).collect()
    }

    /// Milliseconds until something is tried.
    async fn due(&self) -> Option<i64> {
        let now = self.service.world().now().millis();
        self.service.next_parcel_at().await.unwrap().map(|at| at.millis() - now)
    }

    async fn sent(&self) -> usize {
        self.fixture.db.number_events(self.service.world().now()).await.unwrap();
        self.fixture.db.events_after(&self.fixture.store, 0, 1000).await.unwrap().len()
    }

    /// What becomes of an inbound message that a channel names so.
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
        };
        self.service.receive(&self.fixture.store, inbound).await.unwrap()
    }
}

fn answers(status: &str, body: &str) -> Reply {
    Reply::Answers(status.to_owned(), body.to_owned())
}

fn takes(external_id: &str) -> Reply {
    answers("200 OK", &json!({ "externalId": external_id }).to_string())
}

fn body(seen: &testing::Seen) -> Value {
    serde_json::from_slice(&seen.body).unwrap()
}

#[tokio::test]
async fn a_message_is_handed_over_signed_and_named_by_the_answer() {
    let reply = answers("201 Created", r#"{"externalId":"x-1","referenceId":"thread 7","more":[]}"#);
    let (bench, local, secret) = Bench::bridged(reply).await;
    // Whoever serves the other accounts.
    let mut worker = bench.worker_with(Connectors::every(Arc::new(Simulator)), Targets::Any);
    bench.text("สวัสดี \u{1} simulate:refuse").await;
    worker.drain().await.unwrap();
    let seen = local.last();
    let id = seen.id().to_owned();
    assert_eq!((seen.line.as_str(), local.count()), ("POST /hooks?a=b HTTP/1.1", 1));
    assert_eq!(seen.headers["content-type"], "application/json");
    assert!(seen.headers["user-agent"].starts_with("counterpart/"), "{seen:?}");
    assert_eq!((seen.seconds(), seen.signatures()), (START / 1000, vec![seen.signed_by(&secret).as_str()]));
    let expected = json!({
        "type": "message.send", "attempt": 1, "storeId": bench.fixture.store, "messageId": id, "conversationId": "c0", "accountId": "a1",
        "channel": "line", "referenceId": "c0", "text": "สวัสดี \u{1} simulate:refuse",
    });
    assert_eq!(body(&seen), expected);
    assert_eq!((bench.undelivered().await, bench.due().await, bench.sent().await), (vec![], None, 1));
    // What a channel sends back of it is told for what it is, and the thread is known by its new name.
    let echo = bench.receive("x-1", "whatever").await;
    assert_eq!((echo.duplicate, echo.message_id.as_str()), (true, id.as_str()));
    let next = bench.receive("x-2", "thread 7").await;
    assert_eq!((next.duplicate, next.conversation_id.as_str()), (false, "c0"));
}

#[tokio::test]
async fn mails_and_templates_have_shapes_of_their_own() {
    let bench = Bench::new().await;
    let local = Local::new(takes("x")).await;
    bench.fixture.account("m1", "gmail").await;
    bench.fixture.account("w1", "whatsapp").await;
    bench.fixture.template("tpl", "w1", "greeting").await;
    for account in ["m1", "w1"] {
        bench.bridge(account, &local.url).await.unwrap();
    }
    let mailbox = |email: &str, name: Option<&str>| Mailbox { email: email.to_owned(), name: name.map(str::to_owned) };
    let bare = Letter {
        to: vec![mailbox("eva@example.com", None)],
        cc: vec![],
        bcc: vec![],
        subject: None,
        text: Some("plain".to_owned()),
        html: None,
    };
    bench.service.send_mail(&bench.by(), "m1".into(), bare.clone()).await.unwrap();
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    let first = body(&local.last());
    let (message_id, mail_id) = (first["messageId"].as_str().unwrap(), format!("<{}@counterpart.invalid>", local.last().id()));
    let expected = json!({
        "type": "message.send", "attempt": 1, "storeId": bench.fixture.store, "messageId": message_id,
        "conversationId": first["conversationId"], "accountId": "m1", "channel": "gmail", "referenceId": mail_id,
        "email": {"messageId": mail_id, "to": [{"email": "eva@example.com"}], "text": "plain"},
    });
    assert_eq!(first, expected);

    let full = Letter {
        to: vec![mailbox("eva@example.com", Some("Eva"))],
        cc: vec![mailbox("c@example.com", None)],
        bcc: vec![mailbox("b@example.com", None)],
        subject: Some("Hi".to_owned()),
        html: Some("<p>".to_owned()),
        ..bare
    };
    bench.service.send_mail_reply(&bench.by(), first["conversationId"].as_str().unwrap().into(), full).await.unwrap();
    worker.drain().await.unwrap();
    let reply = body(&local.last());
    let expected = json!({
        "messageId": format!("<{}@counterpart.invalid>", local.last().id()), "to": [{"email": "eva@example.com", "name": "Eva"}],
        "cc": [{"email": "c@example.com"}], "bcc": [{"email": "b@example.com"}], "subject": "Hi", "text": "plain", "html": "<p>",
        "inReplyTo": mail_id, "references": [mail_id],
    });
    assert_eq!((&reply["email"], reply.get("text")), (&expected, None));

    let filling = Filling { template_id: "tpl".into(), variables: vec![] };
    bench.service.send_template(&bench.by(), "w1".into(), "+66812345678".to_owned(), filling).await.unwrap();
    worker.drain().await.unwrap();
    let template = body(&local.last());
    let expected = json!({"id": "tpl", "name": "greeting", "language": "en", "variables": [], "text": ""});
    assert_eq!((&template["template"], &template["referenceId"]), (&expected, &json!("+66812345678")));
    assert_eq!((local.count(), bench.undelivered().await), (3, vec![]));
}

#[test]
fn a_message_that_a_person_may_still_send_says_so() {
    let parcel = Parcel {
        store_id: "s".into(),
        message_id: "m".into(),
        conversation_id: "c".into(),
        account_id: "a".into(),
        channel: Channel("facebook".to_owned()),
        reference_id: "r".to_owned(),
        kind: Some("human_agent".to_owned()),
        content: Content::Text(String::new()),
        actor: Actor::System,
        ticket_id: Some("t".into()),
    };
    let expected = json!({
        "type": "message.send", "attempt": 3, "storeId": "s", "messageId": "m", "conversationId": "c", "accountId": "a",
        "channel": "facebook", "referenceId": "r", "kind": "human_agent", "text": "",
    });
    assert_eq!(serde_json::to_value(Order::of(&parcel, 3)).unwrap(), expected);
}

#[test]
fn an_answer_is_judged_by_its_status_and_its_names() {
    let taken = |external: &str, reference: Option<&str>| {
        Ok(Accepted { external_id: Some(external.to_owned()), reference_id: reference.map(str::to_owned) })
    };
    let (limit, over) = ("ข".repeat(512), "ข".repeat(513));
    for (status, body, expected) in [
        (200, r#"{"externalId":"x"}"#.to_owned(), taken("x", None)),
        (299, r#"{"externalId":"x","referenceId":"r","error":"none"}"#.to_owned(), taken("x", Some("r"))),
        (200, json!({ "externalId": limit }).to_string(), taken(&limit, None)),
    ] {
        assert_eq!(judge(status, Some(5), Some(body.as_bytes())), expected, "{status} {body}");
    }
    let long = json!({ "error": format!("{}z", "y".repeat(200)) }).to_string();
    for (status, body, again, reason) in [
        (200, "", true, "no JSON object"),
        (204, "", true, "answered 204, but the answer is not understood"),
        (200, "ok", true, "no JSON object"),
        (200, "[1]", true, "no JSON object"),
        (200, "\"x\"", true, "no JSON object"),
        (200, "{}", true, "`externalId` is missing"),
        (200, r#"{"externalId":null}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":7}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":" "}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":"a\u0000b"}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":"a\nb"}"#, true, "`externalId` must be a string"),
        (200, &json!({ "externalId": over }).to_string(), true, "`externalId` must be a string of 1 to 512"),
        (200, r#"{"externalId":"x","referenceId":""}"#, true, "`referenceId` must be a string"),
        (200, r#"{"externalId":"x","referenceId":7}"#, true, "`referenceId` must be a string"),
        (101, r#"{"externalId":"x"}"#, true, "answered 101"),
        (302, r#"{"externalId":"x"}"#, true, "answered 302"),
        (408, "", true, "answered 408"),
        (425, "", true, "answered 425"),
        (429, "", true, "answered 429"),
        (500, r#"{"error":"later"}"#, true, "answered 500: later"),
        (599, "<html>", true, "answered 599"),
        (999, "", true, "answered 999"),
        (400, r#"{"error":"the number\r\nis blocked"}"#, false, "answered 400: the number  is blocked"),
        (401, "no JSON", false, "answered 401"),
        (404, r#"{"error":{"code":7}}"#, false, "answered 404"),
        (410, r#"{"externalId":"x"}"#, false, "answered 410"),
        (422, &long, false, &"y".repeat(200)),
        (499, "", false, "answered 499"),
    ] {
        let refused = judge(status, Some(7), Some(body.as_bytes())).unwrap_err();
        let after = Class::Transient { after: Some(Duration::from_millis(7)) };
        assert_eq!(refused.class, if again { after } else { Class::Permanent }, "{status} {body}");
        assert!(refused.reason.contains(reason) && !refused.reason.ends_with('z'), "{status} {body}: {}", refused.reason);
    }
    assert_eq!(judge(400, None, Some(b"{}")).unwrap_err().reason, "the bridge answered 400");
    assert!(judge(200, None, None).unwrap_err().reason.contains("longer than 65536 bytes"));
    assert_eq!(judge(403, None, None).unwrap_err().reason, "the bridge answered 403");
}

#[tokio::test]
async fn what_is_answered_decides_what_becomes_of_a_message() {
    let elsewhere = Local::new(takes("x")).await;
    let redirect = |status: &str| Reply::Says(format!("{status}\r\nlocation: {}", elsewhere.url));
    let padded = |length: usize| answers("200 OK", &format!("{{\"externalId\":\"x\"}}{}", " ".repeat(length - 18)));
    for (reply, state, reason) in [
        (takes("x"), "sent", ""),
        (padded(MAX_ANSWER), "sent", ""),
        (padded(MAX_ANSWER + 1), "pending", ""),
        (answers("200 OK", "{}"), "pending", ""),
        (redirect("302 Found"), "pending", ""),
        (redirect("307 Again"), "pending", ""),
        (redirect("308 For good"), "pending", ""),
        (answers("429 Slow down", ""), "pending", ""),
        (answers("503 Later", ""), "pending", ""),
        (Reply::Hang, "pending", ""),
        (Reply::Drip, "pending", ""),
        (Reply::Reset, "pending", ""),
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
async fn what_may_be_repeated_is_told_by_its_id() {
    let (bench, local, secret) = Bench::bridged(Reply::Hang).await;
    let mut worker = bench.worker();
    bench.text("x").await;
    let mut pauses = Vec::new();
    for reply in [Reply::Hang, Reply::Reset, Reply::Drip, answers("500 Broken", ""), answers("200 OK", "ok"), takes("x-1")] {
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
    assert_eq!((pauses.len(), seen.len()), (5, 6));
    for (seen, attempt) in seen.iter().zip(1..) {
        let told = body(seen);
        assert_eq!((seen.id(), &told["messageId"], &told["attempt"]), (local.last().id(), &json!(local.last().id()), &json!(attempt)));
        assert_eq!(seen.signatures(), [seen.signed_by(&secret)]);
    }
}

#[tokio::test]
async fn what_never_is_taken_is_given_up_with_the_reason() {
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
    // Nobody listens: the address is kept out of the reason.
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
    let (bench, local, _) = Bench::bridged(Reply::Says("503 Later\r\nretry-after: 90".to_owned())).await;
    let mut worker = bench.worker();
    bench.text("x").await;
    worker.drain().await.unwrap();
    assert_eq!(bench.due().await, Some(90_000));
    bench.hands.pass(90_000);
    local.now_says("200 Not understood\r\nretry-after: 3600");
    worker.drain().await.unwrap();
    assert_eq!(bench.due().await, Some(3_600_000));
    bench.hands.pass(3_600_000);
    // The schedule's own pause is the shortest.
    local.now_says("429 Too many\r\nretry-after: 1");
    worker.drain().await.unwrap();
    assert!(bench.due().await.unwrap() >= 24_000);
}

#[tokio::test]
async fn a_superseded_secret_signs_beside_the_new_one_for_a_day() {
    let (bench, local, first) = Bench::bridged(takes("x")).await;
    let mut worker = bench.worker();
    let mut signed = async |secrets: &[&SigningSecret]| {
        bench.text("x").await;
        worker.drain().await.unwrap();
        let seen = local.last();
        assert_eq!(seen.signatures(), secrets.iter().map(|secret| seen.signed_by(secret)).collect::<Vec<_>>());
    };
    let rotate = async || bench.service.rotate_bridge(&Editor::command_line(bench.fixture.store.clone()), &ACCOUNT.into()).await.unwrap().1;
    signed(&[&first]).await;
    let second = rotate().await;
    signed(&[&second, &first]).await;
    bench.hands.pass(ROTATION_MILLIS / 2);
    let third = rotate().await;
    signed(&[&third, &second, &first]).await;
    bench.hands.pass(ROTATION_MILLIS / 2 - 1);
    signed(&[&third, &second, &first]).await;
    bench.hands.pass(1);
    signed(&[&third, &second]).await;
    // Another address keeps the secret.
    let moved = Local::new(takes("x")).await;
    assert_eq!(bench.bridge(ACCOUNT, &moved.url).await, None);
    bench.hands.pass(ROTATION_MILLIS);
    bench.text("x").await;
    worker.drain().await.unwrap();
    let seen = moved.last();
    assert_eq!((seen.signatures(), local.count(), moved.count()), (vec![seen.signed_by(&third).as_str()], 5, 1));
}

#[tokio::test]
async fn of_those_who_begin_a_bridge_at_once_one_gets_the_secret() {
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
    assert_eq!((secrets.len(), Some(secrets)), (1, claimed.bridge.map(|endpoint| endpoint.secrets)));
}

#[tokio::test]
async fn nothing_goes_to_a_private_address() {
    let (bench, local, _) = Bench::bridged(takes("x")).await;
    let port = Url::parse(&local.url).unwrap().port().unwrap();
    let mut worker = bench.worker_with(Connectors::every(Arc::new(Simulator)), Targets::Public);
    for url in [local.url.clone(), format!("https://localhost:{port}/"), format!("https://127.0.0.1:{port}/")] {
        bench.bridge(ACCOUNT, &url).await;
        bench.text("x").await;
        worker.drain().await.unwrap();
        let (state, reason) = bench.undelivered().await.pop().unwrap();
        assert!(state == "failed" && reason.contains("not a public one"), "{url}: {state}, {reason}");
    }
    assert_eq!((local.connections.load(Ordering::SeqCst), bench.undelivered().await.len(), bench.sent().await), (0, 3, 0));
    // What has no address at all may have one later.
    bench.bridge(ACCOUNT, "https://bridge.invalid/").await;
    bench.text("x").await;
    worker.drain().await.unwrap();
    assert_eq!(bench.undelivered().await.last().map(|one| one.0.as_str()), Some("pending"));
}

#[tokio::test]
async fn a_message_that_waits_goes_where_its_account_leads_then() {
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
    // A bridge anew has a secret anew.
    assert!(bench.bridge(ACCOUNT, &moved.url).await.is_some());
    moved.now(takes("x"));
    bench.text("y").await;
    worker.drain().await.unwrap();
    assert_eq!((moved.last().signatures().len(), bench.sent().await), (1, 1));
}

#[tokio::test]
async fn an_attempt_that_nobody_ended_is_made_again() {
    let (bench, local, _) = Bench::bridged(takes("x")).await;
    bench.text("x").await;
    // By one that died.
    let claimed = bench.claim().await;
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    assert_eq!(local.count(), 0);
    bench.hands.pass(LEASE_MILLIS);
    worker.drain().await.unwrap();
    let seen = local.last();
    assert_eq!((seen.id(), &body(&seen)["attempt"]), (claimed[0].parcel.message_id.as_str(), &json!(2)));
    assert_eq!((local.count(), bench.sent().await), (1, 1));
}

#[tokio::test]
async fn a_name_that_another_message_has_stays_there() {
    let (bench, local, _) = Bench::bridged(takes("same")).await;
    let mut worker = bench.worker();
    // What the channel sends back of a message may come before the answer does.
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
