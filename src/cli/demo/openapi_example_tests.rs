//! Golden tests of the examples in the OpenAPI documents (`http::openapi::examples`): they must equal the responses and the events of a
//! fresh demo store. To update the recorded examples, run `cargo test --lib record_the_examples -- --ignored`, once for each API revision.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Mutex,
};

use poem::{
    Endpoint, EndpointExt, Request, Response,
    endpoint::BoxEndpoint,
    http::{Method, StatusCode},
};
use serde_json::{Map, Value, json};

mod error_examples;

use super::*;
use crate::{
    delivery::{outbound::Messages, sign_in_mails::Mailer, worker::Worker},
    domain::{
        clock::Ids,
        fake_clock_and_test_rules::MovableClock,
        token_grants::GrantSet,
        webhooks::{Attempted, EndpointAnswer},
    },
    http::{
        machinery::{idempotency::IDEMPOTENCY_KEY, rate_limits::RateLimit, routing::SETTINGS_PREFIX},
        openapi::{
            contract_document::{self, Route},
            examples::{self, ExampleRequest, Examples, RECORDED_AT},
        },
        settings as settings_api,
    },
    service::{Service, webhooks::WebhookSettings},
    store::queues::concurrency::AttemptLimits,
};

/// Makes ids. An id depends on the name of the API operation and on how many ids this operation made before. So an example stays the same
/// when an operation is inserted before it.
#[derive(Default)]
struct NamedIds(Mutex<(u32, u16)>);

impl NamedIds {
    fn begin(&self, name: &str) {
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        *self.0.lock().unwrap() = (hash, 0);
    }
}

impl Ids for NamedIds {
    fn fresh(&self) -> String {
        let mut next = self.0.lock().unwrap();
        next.1 += 1;
        format!("019e8232-6000-7000-8000-{:08x}{:04x}", next.0, next.1)
    }
}

/// A demo store behind all HTTP routes of the server. No background task delivers messages or events.
struct ExampleServer {
    endpoint: BoxEndpoint<'static, Response>,
    service: Service,
    ids: Arc<NamedIds>,
    key: Secret,
    token: Secret,
    link: Secret,
    folder: tempfile::TempDir,
}

impl ExampleServer {
    /// Creates the demo store in a sandbox, whose clock can be advanced, on a server that sends e-mail.
    async fn new() -> Self {
        Self::made(true).await
    }

    /// Creates the demo store as `counterpart demo` does: not in a sandbox, and without e-mail.
    async fn ordinary() -> Self {
        Self::made(false).await
    }

    async fn made(in_sandbox: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", folder.path().join("demo.db").display()), 1, None).await.unwrap();
        let ids = Arc::new(NamedIds::default());
        let mut clocks_and_ids = ClocksAndIds::of(MovableClock::at(RECORDED_AT), ids.clone());
        if in_sandbox {
            db.migrate_sandbox_up().await.unwrap();
            clocks_and_ids = clocks_and_ids.in_sandbox(0);
        } else {
            db.migrate_up().await.unwrap();
        }
        let Ok((key, link)) = fill(&db, &clocks_and_ids).await else { panic!("the demo store is not filled") };
        let service = service(db, clocks_and_ids);
        let (token, _) = service
            .issue(&Editor::command_line(STORE.into()), &demo_data::owner(), CredentialKind::Token, GrantSet::EVERYTHING)
            .await
            .unwrap();
        let endpoint = poem::endpoint::make_sync(|_| Response::default()).boxed();
        let mut bench = Self { endpoint, service, ids, key, token, link, folder };
        let app = bench.app(None).await;
        tokio::spawn(app.clone().follow());
        app.rest();
        bench.endpoint = app.endpoint().boxed();
        bench
    }

    /// Returns an application on the demo store, with a rate limit if one is given.
    async fn app(&self, rate: Option<RateLimit>) -> App {
        let (connectors, index) = (Connectors::every(Arc::new(Simulator)), self.folder.path().join("demo.index"));
        // No e-mail is sent, since the task that sends e-mails does not run.
        let mailer = Mailer::new("smtp://127.0.0.1", "inbox@example.com".parse().unwrap(), "http://127.0.0.1:8080".to_owned()).unwrap();
        let mailer = self.service.clocks_and_ids().sandbox.is_some().then_some(mailer);
        let callers = ClientSettings { rate, mailer, ..ClientSettings::default() };
        let (db, clocks_and_ids) = (self.service.db().clone(), self.service.clocks_and_ids().clone());
        App::new(db, clocks_and_ids, Metrics::default(), callers, connectors, Targets::Public, index).await.unwrap()
    }

    /// Creates an API key with one scope; returns its secret.
    async fn key_with(&self, scope: Scope) -> Secret {
        let new = NewKey { name: scope.to_string(), scopes: [scope].into_iter().collect(), owner: None };
        self.service.create_key(&Editor::command_line(STORE.into()), new).await.unwrap().1
    }

    /// Returns the body of an example request. The body for `openSession` contains this demo store's link to the settings page.
    fn body(&self, operation: &str, example: &ExampleRequest) -> Option<Value> {
        if operation == "openSession" { Some(json!({ "link": self.link.reveal() })) } else { example.body.clone() }
    }

    async fn answer(&self, route: &Route, example: &ExampleRequest) -> Value {
        self.answer_with(route, example, None).await
    }

    /// Sends a request, with the idempotency key if one is given, and returns the response.
    async fn answer_with(&self, route: &Route, example: &ExampleRequest, idempotency_key: Option<&str>) -> Value {
        self.ids.begin(&route.operation_id);
        if route.operation_id == "listAttempts" {
            self.deliver().await;
        }
        let (mut query, body) = (query_of(&example.query), self.body(&route.operation_id, example));
        if route.operation_id == "endCredential" {
            let credentials = self.service.credentials(&STORE.into()).await.unwrap();
            let session = credentials.iter().find(|credential| credential.kind == CredentialKind::Session).unwrap();
            query = format!("credentialId={}", session.id);
        }
        let request = || {
            let mut request = Request::builder()
                .method(route.method.parse::<Method>().unwrap())
                .uri_str(format!("{}?{query}", route.path))
                .header("x-api-key", self.key.reveal())
                .header("authorization", format!("Bearer {}", self.token.reveal()));
            if let Some(key) = idempotency_key {
                request = request.header(IDEMPOTENCY_KEY, key);
            }
            request.body(body.as_ref().map(Value::to_string).unwrap_or_default())
        };
        let mut response = self.endpoint.get_response(request()).await;
        // Repeats the request until the search index is ready.
        while response.status() == StatusCode::SERVICE_UNAVAILABLE {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            response = self.endpoint.get_response(request()).await;
        }
        let (status, text) = (response.status(), response.into_body().into_string().await.unwrap());
        assert_eq!(status, StatusCode::OK, "{} {query} {body:?}: {text}", route.operation_id);
        let mut data: Value = serde_json::from_str::<Value>(&text).unwrap()["data"].take();
        if let Some(items) = data.as_array_mut() {
            // Two items are enough for an example of a list.
            items.truncate(2);
        }
        mask_random_values(&mut data);
        data
    }

    /// Takes the due webhook deliveries from the queue, and records a successful attempt for each without sending it. Returns the bodies of
    /// the deliveries.
    async fn deliver(&self) -> Vec<Value> {
        let (busy, mut sent) = (HashMap::new(), Vec::new());
        for claimed in self.service.claim_deliveries(AttemptLimits { all: 99, each: 99, busy: &busy }).await.unwrap() {
            sent.push(serde_json::from_slice(&claimed.webhook_delivery.body).unwrap());
            let started_at = self.service.clocks_and_ids().now();
            let (ended_at, answer) = (started_at.plus_millis(84), EndpointAnswer::Status(204, None));
            let attempted = Attempted { started_at, ended_at, answer, body: None };
            self.service.settle_delivery(&claimed, attempted, 0.5).await.unwrap();
        }
        sent
    }
}

fn query_of(pairs: &Map<String, Value>) -> String {
    let one = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = |value: &Value| match value {
        Value::Array(values) => values.iter().map(one).collect::<Vec<_>>().join(","),
        value => one(value),
    };
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs.iter().map(|(name, value)| (name, text(value)))).finish()
}

const SECRET: &str = "cp_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd";
const SIGNING_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

const CREDENTIAL_ID: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Replaces the random values of a response by constants. Also replaces the revision A of the API by B, since both revisions share one file
/// with examples of the settings API.
fn mask_random_values(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask_random_values),
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member.as_str()) {
                    ("secret", Some(secret)) => *member = if secret.starts_with("whsec_") { SIGNING_SECRET } else { SECRET }.into(),
                    ("masked", Some(masked)) => {
                        let kept: String = masked.chars().take(masked.chars().count() - 4).collect();
                        *member = format!("{kept}{}", &SECRET[SECRET.len() - 4..]).into();
                    }
                    ("credentialId", Some(_)) => *member = CREDENTIAL_ID.into(),
                    ("apiRevision", Some(_)) => *member = "B".into(),
                    // The JSON text of an event, which contains the revision.
                    ("body", Some(text)) => *member = text.replace("\"apiRevision\":\"A\"", "\"apiRevision\":\"B\"").into(),
                    _ => mask_random_values(member),
                }
            }
        }
        _ => {}
    }
}

/// Returns every operation of a document, with its full path.
fn routes(document: &Value, prefix: &str) -> Vec<Route> {
    contract_document::routes(document).into_iter().map(|route| Route { path: format!("{prefix}{}", route.path), ..route }).collect()
}

/// Creates a demo store, and sends all example requests of a document to it. Returns the responses by operation.
async fn answers(examples: &Examples, document: Value, prefix: &str) -> BTreeMap<String, Value> {
    let bench = ExampleServer::new().await;
    let routes = routes(&document, prefix).into_iter();
    let mut routes: HashMap<String, Route> = routes.map(|route| (route.operation_id.clone(), route)).collect();
    let mut answers = BTreeMap::new();
    for request in &examples.requests {
        let route = routes.remove(&request.operation).unwrap_or_else(|| panic!("there is no {}", request.operation));
        answers.insert(route.operation_id.clone(), bench.answer(&route, request).await);
    }
    assert!(routes.is_empty(), "without an example request: {:?}", routes.keys());
    answers
}

/// Returns the first event of each kind. The events are caused by the example requests to the API, and by some requests to the settings
/// API.
async fn events() -> BTreeMap<String, Value> {
    const BESIDE: [&str; 4] = ["escalateConversation", "unassignTicket", "receiveMessage", "testWebhook"];
    let (bench, settings) = (ExampleServer::new().await, settings_api::examples());
    // The webhook is created here without an HTTP request. Over HTTP, the request would take the first id, and the webhook the second. So
    // one id is discarded: the webhook then has the same id as over HTTP.
    bench.ids.begin("createWebhook");
    bench.ids.fresh();
    let all = WebhookSettings { url: Some("https://hooks.example.com/counterpart".to_owned()), ..WebhookSettings::default() };
    bench.service.create_webhook(&Editor::command_line(STORE.into()), all).await.unwrap();
    let routes = [routes(&contract_document::document(), PREFIX), routes(&settings_api::document(), SETTINGS_PREFIX)].concat();
    let beside = settings.requests.iter().filter(|request| BESIDE.contains(&request.operation.as_str()));
    for request in examples::contract().requests.iter().chain(beside) {
        let route = routes.iter().find(|route| route.operation_id == request.operation).unwrap();
        bench.answer(route, request).await;
        if request.operation == "sendTextMessage" {
            // Each message is delivered before the next is sent, since several messages would be delivered in random order.
            let connectors = Connectors::every(Arc::new(Simulator));
            Worker::new(Messages::new(bench.service.clone(), connectors, Targets::Public).unwrap()).drain().await.unwrap();
        }
    }
    bench.service.next_delivery_at().await.unwrap();
    let (mut sent, mut events) = (bench.deliver().await, BTreeMap::new());
    sent.sort_by_key(|event| event["sequence"].as_i64());
    for event in sent {
        events.entry(event["type"].as_str().unwrap().to_owned()).or_insert(event);
    }
    events
}

/// Returns five sets of examples: the responses and the errors of the API, the responses and the errors of the settings API, and the
/// events. Each set has the expected examples, the actual ones, and the path of the file with the expected ones.
async fn all() -> [(BTreeMap<String, Value>, BTreeMap<String, Value>, String); 5] {
    let (contract, settings) = (examples::contract(), settings_api::examples());
    let given = answers(&contract, contract_document::document(), PREFIX).await;
    let folder = format!("src/revision/{}", revision::NAME.to_lowercase());
    let plain = |errors: &error_examples::Errors| errors.iter().map(|(operation, own)| (operation.clone(), json!(own))).collect();
    let refused = error_examples::errors(&contract, &contract_document::document(), false).await;
    let refused = (plain(&contract.errors), plain(&refused), format!("{folder}/example_errors.json"));
    let contract = (contract.answers, given, format!("{folder}/example_responses.json"));
    let given = answers(&settings, settings_api::document(), SETTINGS_PREFIX).await;
    let refused_settings = error_examples::errors(&settings, &settings_api::document(), true).await;
    let refused_settings = (plain(&settings.errors), plain(&refused_settings), "src/http/settings/example_errors.json".to_owned());
    let settings = (settings.answers, given, "src/http/settings/example_responses.json".to_owned());
    [contract, refused, settings, refused_settings, (examples::events(), events().await, format!("{folder}/example_events.json"))]
}

#[tokio::test]
async fn the_examples_equal_the_responses_of_the_demo() {
    for (written, given, file) in all().await {
        let stale = given.iter().filter(|(operation, data)| written.get(*operation) != Some(data));
        let stale: Vec<_> = stale.map(|(operation, data)| format!("{operation}: {data}")).collect();
        assert!(stale.is_empty(), "the responses differ from {file}:\n{}", stale.join("\n"));
        assert_eq!(given.len(), written.len(), "{file} has answers for which there is no request");
    }
}

#[tokio::test]
#[ignore = "writes to the sources"]
async fn record_the_examples() {
    for (_, given, file) in all().await {
        let lines: Vec<String> = given.iter().map(|(operation, data)| format!("  {}: {data}", json!(operation))).collect();
        std::fs::write(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file), format!("{{\n{}\n}}\n", lines.join(",\n"))).unwrap();
    }
}
