//! Golden tests of the error examples in the OpenAPI documents. For each operation and each error status in its document, the example must
//! equal the demo store's response to a refused request.

use poem::listener::{Acceptor, Listener, TcpListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
pub use crate::http::openapi::examples::Errors;
use crate::http::{
    machinery::{body, idempotency::IDEMPOTENCY_KEY, rate_limits::RateLimit},
    openapi::examples::{EVERY_OPERATION, ExampleError, ExampleRequest, RefusedRequest},
};

/// The maximum number of times that a request is repeated until it is refused, for example by a limit on the number of a store's records.
const UNTIL_REFUSED: usize = 200;

/// Records the error responses for each operation of one OpenAPI document.
struct Recorder<'e> {
    examples: &'e Examples,
    routes: Vec<Route>,
    document: &'e Value,
    /// Whether the document is that of the settings API.
    settings: bool,
    found: Errors,
}

/// An HTTP request that can be changed before it is sent.
#[derive(Clone)]
struct EditableRequest {
    route: Route,
    query: String,
    body: Option<String>,
    headers: Vec<(&'static str, String)>,
}

impl EditableRequest {
    fn request(&self) -> Request {
        let mut request =
            Request::builder().method(self.route.method.parse::<Method>().unwrap()).uri_str(format!("{}?{}", self.route.path, self.query));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(self.body.clone().unwrap_or_default())
    }

    fn with(&self, name: &'static str, value: &str) -> Self {
        let mut sent = self.clone();
        sent.headers.retain(|(known, _)| *known != name);
        sent.headers.push((name, value.to_owned()));
        sent
    }

    fn without(&self, name: &str) -> Self {
        let mut sent = self.clone();
        sent.headers.retain(|(known, _)| *known != name);
        sent
    }
}

async fn refused(endpoint: &BoxEndpoint<'static, Response>, sent: &EditableRequest, status: u16) -> ExampleError {
    let response = endpoint.get_response(sent.request()).await;
    let (found, text) = (response.status().as_u16(), response.into_body().into_string().await.unwrap());
    assert_eq!(found, status, "{} {} {:?}: {text}", sent.route.operation_id, sent.query, sent.body);
    said(&serde_json::from_str(&text).unwrap())
}

fn said(answer: &Value) -> ExampleError {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ExampleError { message: text(&answer["error"]["message"]), store_id: text(&answer["storeId"]) }
}

impl Recorder<'_> {
    fn route(&self, operation: &str) -> &Route {
        self.routes.iter().find(|route| route.operation_id == operation).unwrap_or_else(|| panic!("there is no {operation}"))
    }

    /// Returns the document's entry for an operation.
    fn described(&self, route: &Route) -> &Value {
        let path = route.path.strip_prefix(if self.settings { SETTINGS_PREFIX } else { PREFIX }).unwrap();
        &self.document["paths"][path][route.method.to_lowercase()]
    }

    fn documents(&self, route: &Route, status: u16) -> bool {
        self.described(route)["responses"].get(status.to_string()).is_some()
    }

    fn example(&self, operation: &str) -> &ExampleRequest {
        self.examples.requests.iter().find(|request| request.operation == operation).unwrap()
    }

    fn sent(&self, bench: &ExampleServer, operation: &str, refusal: Option<&RefusedRequest>) -> EditableRequest {
        let (route, example) = (self.route(operation).clone(), self.example(operation));
        let query = refusal.and_then(|refusal| refusal.query.as_ref()).unwrap_or(&example.query);
        let body = refusal.and_then(|refusal| refusal.body.clone()).or_else(|| bench.body(operation, example));
        let credential = if self.settings {
            ("authorization", format!("Bearer {}", bench.token.reveal()))
        } else {
            ("x-api-key", bench.key.reveal().to_owned())
        };
        let headers = match body {
            Some(_) => vec![credential, ("content-type", "application/json".to_owned())],
            None => vec![credential],
        };
        EditableRequest { query: query_of(query), body: body.map(|body| body.to_string()), headers, route }
    }

    fn keep(&mut self, operation: &str, status: u16, error: ExampleError) {
        self.found.entry(operation.to_owned()).or_default().insert(status, error);
    }

    fn refusals(&self, operation: &str, when: impl Fn(u16) -> bool) -> Vec<RefusedRequest> {
        self.examples.refusals.iter().filter(|refusal| refusal.operation == operation && when(refusal.status)).cloned().collect()
    }

    /// Records the errors that depend on the request alone, and the conflicts (409) that an earlier request causes.
    async fn of_requests(&mut self) {
        let bench = ExampleServer::new().await;
        let examples = self.examples.clone();
        for example in &examples.requests {
            let operation = &example.operation;
            let plain = self.sent(&bench, operation, None);
            for refusal in self.refusals(operation, |status| status != 409) {
                let error = refused(&bench.endpoint, &self.sent(&bench, operation, Some(&refusal)), refusal.status).await;
                self.keep(operation, refusal.status, error);
            }
            if self.documents(&plain.route, 401) && self.refusals(operation, |status| status == 401).is_empty() {
                let stranger = if self.settings { plain.with("authorization", "Bearer unknown") } else { plain.without("x-api-key") };
                let error = refused(&bench.endpoint, &stranger, 401).await;
                self.keep(operation, 401, error);
            }
            if self.documents(&plain.route, 415) {
                let error = refused(&bench.endpoint, &plain.with("content-type", "text/plain"), 415).await;
                self.keep(operation, 415, error);
                let long = EditableRequest { body: Some(" ".repeat(body::LIMIT + 1)), ..plain.clone() };
                let error = refused(&bench.endpoint, &long, 413).await;
                self.keep(operation, 413, error);
            }
            let with_key = plain.with(IDEMPOTENCY_KEY, operation);
            let takes_key = self.takes_key(&plain.route);
            bench.answer_with(&plain.route, example, takes_key.then_some(operation.as_str())).await;
            for refusal in self.refusals(operation, |status| status == 409) {
                for request in &refusal.before {
                    bench.answer(self.route(&request.operation), request).await;
                }
                // The sandbox accepts `advanceClock` and `sendLink`, since its clock can be advanced and its server sends e-mail. An
                // ordinary demo store refuses them.
                let ordinary =
                    if ["advanceClock", "sendLink"].contains(&operation.as_str()) { Some(ExampleServer::ordinary().await) } else { None };
                let bench = ordinary.as_ref().unwrap_or(&bench);
                let sent = self.sent(bench, operation, Some(&refusal));
                let mut left = UNTIL_REFUSED;
                while left > 0 && bench.endpoint.get_response(sent.request()).await.status() == StatusCode::OK {
                    left -= 1;
                }
                let error = refused(&bench.endpoint, &sent, 409).await;
                self.keep(operation, 409, error);
                for request in &refusal.after {
                    bench.answer(self.route(&request.operation), request).await;
                }
            }
            if takes_key && self.refusals(operation, |status| status == 409).is_empty() {
                // Sends the same idempotency key with another body, which must be a conflict (409).
                let other = self.refusals(operation, |status| status == 404).remove(0);
                let other = EditableRequest { body: other.body.map(|body| body.to_string()), ..with_key };
                let error = refused(&bench.endpoint, &other, 409).await;
                self.keep(operation, 409, error);
            }
        }
    }

    fn takes_key(&self, route: &Route) -> bool {
        self.described(route)["parameters"].to_string().contains("IdempotencyKey")
    }

    /// Records the error for a message that is delivered twice with the signature of a bridge (an operator's endpoint for a channel
    /// account).
    async fn of_signatures(&mut self) {
        if !self.settings {
            return;
        }
        let bench = ExampleServer::new().await;
        let mut body = self.example("receiveMessage").body.clone().unwrap();
        body["storeId"] = STORE.into();
        let account = body["accountId"].as_str().unwrap().into();
        let set = bench.service.set_bridge(&Editor::command_line(STORE.into()), &account, "https://bridge.example.com/line").await.unwrap();
        let (secret, body, seconds) = (set.1.unwrap(), body.to_string(), RECORDED_AT / 1000);
        let signed = self.sent(&bench, "receiveMessage", None).without("authorization").with("webhook-id", "msg-1");
        let signed = signed.with("webhook-timestamp", &seconds.to_string());
        let signed = signed.with("webhook-signature", &secret.sign("msg-1", seconds, body.as_bytes()));
        let signed = EditableRequest { body: Some(body), ..signed };
        assert_eq!(bench.endpoint.get_response(signed.request()).await.status(), StatusCode::OK);
        let error = refused(&bench.endpoint, &signed, 409).await;
        self.keep("receiveMessage", 409, error);
    }

    /// For every operation whose document lists the error `status`: sends the example request, edited by `change`, and records the error.
    async fn of_every(
        &mut self,
        bench: &ExampleServer,
        endpoint: &BoxEndpoint<'static, Response>,
        status: u16,
        change: impl Fn(EditableRequest) -> EditableRequest,
    ) {
        // `sendLink` only adds its request to a queue, so a broken database does not make it fail.
        let affected = |route: &&Route| self.documents(route, status) && (status < 500 || route.operation_id != "sendLink");
        let routes: Vec<Route> = self.routes.iter().filter(affected).cloned().collect();
        for route in routes {
            let sent = change(self.sent(bench, &route.operation_id, None));
            let error = refused(endpoint, &sent, status).await;
            self.keep(&route.operation_id, status, error);
        }
    }

    async fn of_permissions(&mut self) {
        let bench = ExampleServer::new().await;
        if self.settings {
            let role = json!({ "kind": "role", "record": { "id": "owner", "name": "Owner", "kind": "agent" } }).to_string();
            let spool = RereadableInput::copy(Cursor::new(role)).unwrap();
            import::run(bench.service.db(), bench.service.clocks_and_ids(), &STORE.into(), spool, Options::default()).await.unwrap();
            // The owner now has the role of an agent, so the settings API refuses the owner's requests. `sendLink` checks no role. It
            // refuses a request whose `Origin` header names another site.
            let foreign = |sent: EditableRequest| {
                if sent.route.operation_id == "sendLink" { sent.with("origin", "https://example.org") } else { sent }
            };
            return self.of_every(&bench, &bench.endpoint, 403, foreign).await;
        }
        let keys = [bench.key_with(Scope::LabelsRead).await, bench.key_with(Scope::TeamsRead).await];
        let key = |sent: EditableRequest| {
            let lacking = usize::from(sent.route.scope == "labels:read");
            sent.with("x-api-key", keys[lacking].reveal())
        };
        self.of_every(&bench, &bench.endpoint, 403, key).await;
    }

    async fn of_rates(&mut self) {
        let bench = ExampleServer::new().await;
        let limited = bench.app(Some(RateLimit::new(1, None))).await.endpoint();
        if !self.settings {
            let limited = limited.boxed();
            limited.get_response(self.sent(&bench, "listTicketFields", None).request()).await;
            return self.of_every(&bench, &limited, 429, |sent| sent).await;
        }
        // The rate limit counts refused tokens per client address. Only a request over a TCP connection has a client address.
        let acceptor = TcpListener::bind("127.0.0.1:0").into_acceptor().await.unwrap();
        let address = acceptor.local_addr().remove(0);
        let address = *address.as_socket_addr().unwrap();
        let server = tokio::spawn(poem::Server::new_with_acceptor(acceptor).run(limited));
        let request =
            format!("GET {SETTINGS_PREFIX}/keys HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer unknown\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        for _ in 0..2 {
            let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
            connection.write_all(request.as_bytes()).await.unwrap();
            answer.clear();
            connection.read_to_string(&mut answer).await.unwrap();
        }
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
        self.found.entry(EVERY_OPERATION.to_owned()).or_default().insert(429, said(&serde_json::from_str(body).unwrap()));
        server.abort();
    }

    /// Records the errors of a damaged database, and of a database whose file was deleted.
    async fn of_failures(&mut self) {
        let bench = ExampleServer::new().await;
        let file = bench.folder.path().join("demo.db");
        // Stores a value of the wrong type.
        let damage = if self.settings { "UPDATE grants SET expires_at = 'soon'" } else { "UPDATE api_keys SET scopes = x'ff'" };
        crate::store::fixture::damage(&file, damage);
        self.of_every(&bench, &bench.endpoint, 500, |sent| sent).await;
        std::fs::remove_file(&file).unwrap();
        self.of_every(&bench, &bench.endpoint, 503, |sent| sent).await;
    }
}

/// Returns the errors of every operation of a document. For each status except 400 and 404, the most frequent error is listed once, under
/// [`EVERY_OPERATION`].
pub async fn errors(examples: &Examples, document: &Value, settings: bool) -> Errors {
    let routes = routes(document, if settings { SETTINGS_PREFIX } else { PREFIX });
    let mut recorder = Recorder { examples, routes, document, settings, found: Errors::new() };
    recorder.of_requests().await;
    recorder.of_signatures().await;
    recorder.of_permissions().await;
    recorder.of_rates().await;
    recorder.of_failures().await;
    let mut found = std::mem::take(&mut recorder.found);
    let mut every = found.remove(EVERY_OPERATION).unwrap_or_default();
    for status in [401, 403, 409, 413, 415, 429, 500, 503] {
        let mut uses: BTreeMap<ExampleError, usize> = BTreeMap::new();
        found.values().filter_map(|own| own.get(&status)).for_each(|error| *uses.entry(error.clone()).or_default() += 1);
        if let Some((error, _)) = uses.into_iter().max_by_key(|(_, uses)| *uses) {
            found.values_mut().for_each(|own| {
                if own.get(&status) == Some(&error) {
                    own.remove(&status);
                }
            });
            every.insert(status, error);
        }
    }
    for route in &recorder.routes {
        for status in [400, 401, 403, 404, 409, 413, 415, 429, 500, 503].into_iter().filter(|status| recorder.documents(route, *status)) {
            let known = every.contains_key(&status) || found.get(&route.operation_id).is_some_and(|own| own.contains_key(&status));
            assert!(known, "{} has no example of {status}", route.operation_id);
        }
    }
    found.insert(EVERY_OPERATION.to_owned(), every);
    found.retain(|_, own| !own.is_empty());
    found
}
