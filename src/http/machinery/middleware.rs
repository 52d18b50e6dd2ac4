//! The middleware, which is the outermost layer of the HTTP server. It gives each request its context, and converts each rejection, panic
//! and time-out of the inner layers to an error response. It measures and logs each request once.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};
use poem::{
    Endpoint, Request, Response,
    endpoint::BoxEndpoint,
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
};
use poem_openapi::OperationId;
use tokio::{
    task::spawn_blocking,
    time::{error::Elapsed, timeout},
};
use tracing::Instrument;

use super::{
    compression,
    context::{Context, Recipient},
    cors::{self, Cors},
    data_attached_to_requests::RequestData,
    discard_unread_bodies::{self, UnreadBody},
    envelope_schema::{JSON, REQUEST_ID},
    error_responses::{ApiError, ErrorDetail, RATE_LIMIT, RATE_LIMIT_POLICY, UsedUpRate},
    idempotency::{IDEMPOTENCY_KEY, MAX_KEY_CHARS},
    query_string::QueryString,
    routing::{Operations, in_settings},
    shared_state::SharedState,
    success_responses::{self, EnvelopeContent, Long},
    unsent_response_limits,
};
use crate::domain::revision_rules::ReceivedAt;

/// The longest time that a request may take, including the receipt of its body.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The time that a long poll (`long_poll`) gets in addition to [`REQUEST_LIMIT`]. The sum is shorter than the time limit of a connection
/// (`connection_timeouts`), so that the request still gets a response.
const WAITING_LIMIT: Duration = Duration::from_secs(5);

/// The inner endpoints: the operations and pages of the server.
pub struct InnerEndpoints {
    pub operations: Operations,
    /// Serves every request whose path is not that of an operation.
    pub pages: BoxEndpoint<'static>,
}

impl InnerEndpoints {
    fn call(&self, request: Request) -> BoxFuture<'_, poem::Result<Response>> {
        match self.operations.find(&request).unwrap_or(Ok(&*self.pages)) {
            Ok(endpoint) => endpoint.call(request),
            Err(error) => Box::pin(ready(Err(error.into()))),
        }
    }
}

/// The middleware around everything that is served.
pub struct Middleware {
    pub served: InnerEndpoints,
    pub state: Arc<SharedState>,
    pub cors: Cors,
}

impl Endpoint for Middleware {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let started = std::time::Instant::now();
        let settings = in_settings(request.uri().path());
        let form = if settings { ReceivedAt::Timestamp } else { self.state.service.rules().received_at };
        let context = Context::arrive(request.headers(), self.state.service.clocks_and_ids(), form);
        let query = QueryString::read(request.uri().query().unwrap_or_default());
        request.set_data(RequestData { state: self.state.clone(), context: context.clone(), query });
        let path = request.uri().path().to_owned();
        // A HEAD request is handled like GET, and the body is removed at the end. So `content-length` is the same as in the response to
        // GET.
        let head = request.method() == Method::HEAD;
        if head {
            request.set_method(Method::GET);
        }
        let idempotency_key = request.header(IDEMPOTENCY_KEY).filter(|key| key.len() <= MAX_KEY_CHARS).map(str::to_owned);
        let gzip = compression::accepts_gzip(request.headers());
        let origin = self.cors.allowed_origin(&path, request.headers());
        let unread = discard_unread_bodies::watch(&mut request);
        let served = if origin.is_some() && cors::is_preflight(request.method(), request.headers()) {
            Box::pin(ready(Ok(cors::preflight(&self.allowed(&path)))))
        } else {
            self.served.call(request)
        };
        let served = AssertUnwindSafe(served).catch_unwind();
        // Every log line of the request contains the request id.
        let span = tracing::error_span!("request", request_id = context.request_id());
        let answer = context.beside(limited(&context, served)).instrument(span).await;
        let (mut operation, mut too_late) = (None, false);
        let mut response = match answer {
            Ok(Ok(Ok(response))) => {
                operation = response.data::<OperationId>().map(|id| id.0);
                self.counted(&context, &path, gzip, response).await
            }
            Ok(Ok(Err(rejection))) => {
                operation = rejection.data::<OperationId>().map(|id| id.0);
                let error = ApiError::from_rejection(rejection);
                self.failure(&context, &path, error)
            }
            Ok(Err(_)) => {
                tracing::error!(request_id = context.request_id(), path, "a handler panicked");
                self.failure(&context, &path, ApiError::internal())
            }
            Err(_) => {
                too_late = true;
                let error = ApiError {
                    retry_after: Some(1),
                    ..ApiError::new(
                        StatusCode::SERVICE_UNAVAILABLE,
                        format!("the request took longer than {} seconds", REQUEST_LIMIT.as_secs()),
                    )
                };
                self.failure(&context, &path, error)
            }
        };
        if head {
            response = without_body(response).await;
        }
        if let Ok(id) = HeaderValue::from_str(context.request_id()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if self.cors.concerns(&path) {
            response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
        }
        if let Some(origin) = origin {
            cors::allow(origin, response.headers_mut());
        }
        if settings {
            // A response may contain a secret that is shown only once, so no cache may store it.
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let status = response.status();
        let (operation, took) = (operation.unwrap_or("none"), started.elapsed());
        self.state.metrics.request(operation, status.as_u16(), took.saturating_sub(context.waiting_time()));
        log(&context, operation, &path, status, took, idempotency_key.as_deref());
        // The remaining request body is read in a separate task. Nothing is awaited from here on, so that the response is sent first.
        if let Some(rest) = unread.and_then(UnreadBody::rest) {
            if rest.closes || too_late {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            tokio::spawn(rest.drain());
        }
        Ok(response)
    }
}

/// Runs a request, and returns its outcome, or an error if the request takes too long. A long poll may take longer than other requests.
async fn limited<T>(context: &Context, served: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut served = pin!(served);
    match timeout(REQUEST_LIMIT, served.as_mut()).await {
        Err(_) if context.is_waiting() => timeout(WAITING_LIMIT, served).await,
        outcome => outcome,
    }
}

/// Writes the log line of a request, with its path. Query strings and bodies are not logged, since they contain texts and data of people.
fn log(context: &Context, operation: &str, path: &str, status: StatusCode, took: Duration, idempotency_key: Option<&str>) {
    let (request_id, status, milliseconds) = (context.request_id(), status.as_u16(), took.as_secs_f64() * 1000.0);
    let (store, key, user, bridge) = match context.recipient() {
        Some(Recipient::Key(store, key)) => (Some(store.as_str()), Some(key.as_str()), None, None),
        Some(Recipient::Manager(store, user)) => (Some(store.as_str()), None, Some(user.as_str()), None),
        Some(Recipient::Bridge(store, account)) => (Some(store.as_str()), None, None, Some(account.as_str())),
        None => (None, None, None, None),
    };
    let key_name = context.key_name();
    if status >= 500 {
        tracing::warn!(request_id, operation, path, status, milliseconds, store, key, key_name, user, bridge, idempotency_key, "failed");
    } else {
        tracing::info!(request_id, operation, path, status, milliseconds, store, key, key_name, user, bridge, idempotency_key, "answered");
    }
}

async fn without_body(mut response: Response) -> Response {
    let length = response.take_body().into_bytes().await.map_or(0, |bytes| bytes.len());
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

/// Compresses bytes with gzip on a separate thread, so that other requests are not delayed.
async fn packed(bytes: Bytes) -> Option<Bytes> {
    spawn_blocking(move || compression::gzip(&bytes)).await.ok()?.ok().map(Bytes::from)
}

impl Middleware {
    /// Returns a short response unchanged. A long response (of more than 64 KiB, marked with [`Long`]) is compressed if the client accepts
    /// gzip, and its bytes count as unsent from here on (`unsent_response_limits`). If the unsent bytes exceed a limit and the request only
    /// reads, the long response is dropped and an error response is returned.
    async fn counted(&self, context: &Context, path: &str, gzip: bool, mut response: Response) -> Response {
        let (Some(recipient), Some(Long)) = (context.recipient(), response.data()) else {
            // A short response is recorded with the length 0, since `fair_share` only distinguishes responses below and above 1 MiB. An
            // error response is not recorded, since it says nothing about the length of successful responses.
            if response.status().is_success() {
                context.answered(0);
            }
            return response;
        };
        let Ok(mut bytes) = response.take_body().into_bytes().await else { return self.failure(context, path, ApiError::internal()) };
        context.answered(bytes.len());
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
        if gzip && let Some(packed) = packed(bytes.clone()).await {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            bytes = packed;
        }
        match self.state.under_way.count(recipient, bytes, !context.is_repeatable()) {
            Ok(bytes) => {
                response.headers_mut().insert(header::CONTENT_LENGTH, bytes.len().into());
                response.set_body(unsent_response_limits::body(bytes));
                response
            }
            Err(much) => self.failure(context, path, much.into()),
        }
    }

    fn failure(&self, context: &Context, path: &str, error: ApiError) -> Response {
        let detail = ErrorDetail { message: error.message, status_code: error.status.as_u16().into() };
        let body = success_responses::bytes(context, &EnvelopeContent::Error(detail)).unwrap_or_default();
        let mut response = Response::builder().status(error.status).content_type(JSON).body(body);
        let headers = response.headers_mut();
        if let Some(seconds) = error.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(UsedUpRate { policy, requests_per_second, seconds }) = error.used_up {
            for (name, text) in [
                (RATE_LIMIT, format!("\"{policy}\";r=0;t={seconds}")),
                (RATE_LIMIT_POLICY, format!("\"{policy}\";q={requests_per_second};w=1")),
            ] {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(text)) {
                    headers.insert(name, value);
                }
            }
        }
        if error.status == StatusCode::METHOD_NOT_ALLOWED
            && let Ok(allowed) = HeaderValue::from_str(&self.allowed(path))
        {
            headers.insert(header::ALLOW, allowed);
        }
        response
    }

    /// Returns the methods that a path accepts, for response headers. A path that is not in the routing table belongs to a page, and pages
    /// accept GET.
    fn allowed(&self, path: &str) -> String {
        let mut methods = self.served.operations.methods(path);
        if methods.is_empty() {
            methods.push(Method::GET.as_str());
        }
        if methods.contains(&Method::GET.as_str()) {
            methods.push(Method::HEAD.as_str());
        }
        methods.join(", ")
    }
}
