//! Test fixture: a store ("shop") whose clock is either the clock of a sandbox or a fake clock. A sandbox is a test database whose clock is
//! advanced by requests. The test moves the fake clock.

use std::sync::Arc;

use poem::{Endpoint, EndpointExt, Request, Response, endpoint::BoxEndpoint, http::Method};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    app::{App, ClientSettings},
    delivery::{
        channel_connector::Connectors,
        channel_simulator::Simulator,
        outbound::Messages,
        scripted_endpoints::{START, TestEndpoint},
        webhooks::WebhookQueue,
        worker::Worker,
    },
    domain::{
        clock::{ClocksAndIds, RandomIds},
        fake_clock_and_test_rules::MovableClock,
        settings_access::{CredentialKind, Editor},
        ssrf_policy::Targets,
        time::Timestamp,
        token_grants::GrantSet,
        users_teams_labels::RoleKind,
        webhooks::AttemptLogPage,
    },
    http::machinery::routing::{PREFIX, SETTINGS_PREFIX},
    service::{Service, seats::NewUser},
    store::fixture::Fixture,
    telemetry::metrics::Metrics,
};

pub const MINUTE: i64 = 60 * 1000;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// How the clock of the store moves.
enum ClockControl {
    /// Requests advance the clock of a sandbox, whose delivery workers run in the background.
    Requested { _stop: watch::Sender<()> },
    /// The test moves a fake clock from one due instant to the next, and lets the delivery workers drain their queues at each instant.
    Moved { clock: Arc<MovableClock>, messages: Box<Worker<Messages>>, webhooks: Box<Worker<WebhookQueue>> },
}

pub struct ClockedShop {
    pub fixture: Fixture,
    pub service: Service,
    endpoint: BoxEndpoint<'static, Response>,
    token: String,
    /// The fake clock that stands for real time. It moves only if a test moves it.
    pub real: Arc<MovableClock>,
    passage: ClockControl,
}

impl ClockedShop {
    pub async fn in_sandbox() -> Self {
        Self::over(Connectors::every(Arc::new(Simulator))).await
    }

    /// Creates a sandbox in which these connectors send the messages.
    pub async fn over(connectors: Connectors) -> Self {
        Self::new(true, connectors).await
    }

    pub async fn on_moved_clock() -> Self {
        Self::new(false, Connectors::every(Arc::new(Simulator))).await
    }

    async fn new(in_sandbox: bool, connectors: Connectors) -> Self {
        let fixture = Fixture::alone().await;
        fixture.account("wa", "whatsapp").await;
        let (real, clock) = (MovableClock::at(START), MovableClock::at(START));
        let clocks_and_ids = ClocksAndIds::of(real.clone(), Arc::new(RandomIds));
        let clocks_and_ids = if in_sandbox {
            fixture.execute("INSERT INTO sandbox (id, ahead) VALUES (1, 0)").await.unwrap();
            clocks_and_ids.in_sandbox(0)
        } else {
            ClocksAndIds { clock: clock.clone(), has_even_pauses: true, ..clocks_and_ids }
        };
        let index = tempfile::tempdir().unwrap().keep();
        let callers = ClientSettings { connections: 4, ..ClientSettings::default() };
        let app =
            App::new(fixture.db.clone(), clocks_and_ids.clone(), Metrics::default(), callers, connectors.clone(), Targets::Any, index);
        let app = app.await.unwrap();
        let service = app.state.service.clone();
        let new = NewUser { name: "Mali".to_owned(), email: "mali@example.com".to_owned(), role: RoleKind::Owner };
        let editor = Editor::command_line(fixture.store.clone());
        let (owner, _) = service.add_user(&editor, new).await.unwrap();
        let (token, _) = service.issue(&editor, &owner, CredentialKind::Token, GrantSet::EVERYTHING).await.unwrap();
        let passage = if in_sandbox {
            let (stop, stopped) = watch::channel(());
            app.start(&stopped).unwrap();
            ClockControl::Requested { _stop: stop }
        } else {
            let messages = Worker::new(Messages::new(service.clone(), connectors, Targets::Any).unwrap());
            let webhooks = Worker::new(WebhookQueue::new(service.clone(), Targets::Any).unwrap());
            ClockControl::Moved { clock, messages: Box::new(messages), webhooks: Box::new(webhooks) }
        };
        let (endpoint, token) = (app.endpoint().boxed(), token.reveal().to_owned());
        Self { fixture, service, endpoint, token, real, passage }
    }

    pub fn now(&self) -> Timestamp {
        self.service.clocks_and_ids().now()
    }

    /// Sends a request with the API key `key`, or with the settings token if `key` is `None`. Returns the status and the body of the
    /// response.
    pub async fn ask(&self, method: Method, path: &str, key: Option<&str>, headers: &[(&str, &str)], body: Value) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri_str(path).header("content-type", "application/json");
        request = match key {
            Some(key) => request.header("x-api-key", key),
            None => request.header("authorization", format!("Bearer {}", self.token)),
        };
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.endpoint.get_response(request.body(body)).await;
        let (status, body) = (response.status().as_u16(), response.into_body().into_bytes().await.unwrap());
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Sends a request to the settings API, which must succeed. Returns the `data` of the response.
    #[track_caller]
    pub fn set(&self, method: Method, path: &str, body: Value) -> impl Future<Output = Value> {
        let path = format!("{SETTINGS_PREFIX}{path}");
        async move {
            let (status, answer) = self.ask(method.clone(), &path, None, &[], body).await;
            assert_eq!(status, 200, "{method} {path}: {answer}");
            answer["data"].clone()
        }
    }

    /// Requests an advance of the clock. Returns the status and the body of the response.
    pub async fn request_advance(&self, body: Value) -> (u16, Value) {
        self.ask(Method::POST, &format!("{SETTINGS_PREFIX}/clock/advance"), None, &[], body).await
    }

    /// Advances the clock by `millis`, and does the work that falls due until then.
    pub async fn pass(&mut self, millis: i64) {
        let to = self.now().plus_millis(millis);
        if matches!(self.passage, ClockControl::Requested { .. }) {
            let (status, answer) = self.request_advance(json!({ "to": to })).await;
            assert_eq!((status, &answer["data"]["now"]), (200, &json!(to)), "{answer}");
            return;
        }
        let ClockControl::Moved { clock, messages, webhooks } = &mut self.passage else { return };
        loop {
            messages.drain().await.unwrap();
            webhooks.drain().await.unwrap();
            let now = self.service.clocks_and_ids().now();
            let (message, event) = (self.service.next_message_at().await.unwrap(), self.service.next_delivery_at().await.unwrap());
            let Some(due) = message.into_iter().chain(event).min().filter(|due| *due <= to) else {
                clock.pass(to.millis() - now.millis());
                return;
            };
            clock.pass(due.millis() - now.millis());
        }
    }

    /// Creates an API key. Returns its id and its secret.
    pub async fn key(&self, name: &str) -> (String, String) {
        let scopes = ["tickets:read", "messages:write"];
        let made = self.set(Method::POST, "/keys", json!({ "name": name, "scopes": scopes })).await;
        (made["key"]["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
    }

    pub async fn webhook(&self, endpoint: &TestEndpoint) -> String {
        let made = self.set(Method::POST, "/webhooks", json!({ "url": endpoint.url })).await;
        made["webhook"]["id"].as_str().unwrap().to_owned()
    }

    /// Records a contact's message as if its channel had delivered it. Returns the ids of its conversation and of its ticket.
    pub async fn receive(&self, account: &str, thread: &str, id: &str) -> (String, String) {
        let body = json!({ "accountId": account, "referenceId": thread, "externalId": id, "sender": { "id": thread }, "text": "Hello?" });
        let received = self.set(Method::POST, "/messages", body).await;
        let text = |name: &str| received[name].as_str().unwrap().to_owned();
        (text("conversationId"), text("ticketId"))
    }

    pub async fn snooze(&self, ticket: &str, millis: i64) {
        self.set(Method::POST, "/tickets/snooze", json!({ "ticketId": ticket, "until": self.now().plus_millis(millis) })).await;
    }

    /// Sends a text message. Returns the status and the body of the response.
    pub async fn send(&self, key: &str, conversation: &str, text: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let body = json!({ "conversationId": conversation, "text": text });
        self.ask(Method::POST, &format!("{PREFIX}/messages"), Some(key), headers, body).await
    }

    /// Uses this API key to list the open tickets. Returns the status of the response and the number of tickets.
    pub async fn open_tickets(&self, key: &str) -> (u16, usize) {
        let (status, answer) = self.ask(Method::POST, &format!("{PREFIX}/tickets/list"), Some(key), &[], json!({})).await;
        (status, answer["data"].as_array().map_or(0, Vec::len))
    }

    pub async fn shown_webhook(&self, id: &str) -> Value {
        let all = self.set(Method::GET, "/webhooks", Value::Null).await;
        all.as_array().unwrap().iter().find(|webhook| webhook["id"] == id).unwrap().clone()
    }

    /// Returns the store's events in order, and then the attempts to deliver them to these webhooks, one line each. In the lines, numbers
    /// replace the ids, so that the lines of two stores can be compared.
    pub async fn history(&self, webhooks: &[&str]) -> Vec<String> {
        let events = self.fixture.db.events_after(&self.fixture.store, 0, 100_000).await.unwrap();
        let places: std::collections::HashMap<String, i64> = events
            .iter()
            .map(|event| (serde_json::from_slice::<Value>(&event.body).unwrap()["id"].as_str().unwrap().to_owned(), event.sequence))
            .collect();
        let mut lines: Vec<String> =
            events.iter().map(|event| format!("{} {}", event.sequence, String::from_utf8_lossy(&event.body))).collect();
        for (name, webhook) in webhooks.iter().enumerate() {
            let (mut attempts, mut after) = (Vec::new(), 0);
            loop {
                let page = self.service.attempts(&self.fixture.store, &(*webhook).into(), AttemptLogPage::After(after), 500).await.unwrap();
                let Some(last) = page.last() else { break };
                after = last.position;
                attempts.extend(page);
            }
            // Attempts of the same instant end in any order, so they are sorted by the number of their event.
            attempts.sort_by_key(|attempt| (attempt.started_at, places[&attempt.event_id]));
            lines.extend(attempts.into_iter().map(|one| {
                let place = places[&one.event_id];
                let (at, next) = (one.started_at, one.next_at);
                format!(
                    "webhook {name}, event {place}: {} at {at}, {:?} {:?} {} next {next:?}",
                    one.attempt, one.status, one.reason, one.outcome
                )
            }));
        }
        let ids = regex::Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
        let mut known = Vec::new();
        let store = self.fixture.store.as_str();
        let numbered = lines.into_iter().map(|line| {
            let line = line.replace(store, "the shop");
            let line = ids.replace_all(&line, |found: &regex::Captures<'_>| {
                let id = found[0].to_owned();
                let place = known.iter().position(|other| *other == id).unwrap_or_else(|| {
                    known.push(id);
                    known.len() - 1
                });
                format!("id {place}")
            });
            line.into_owned()
        });
        numbered.collect()
    }
}
