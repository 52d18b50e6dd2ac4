//! Outbound HTTP client with SSRF protection, and the signing of requests (Standard Webhooks).
//!
//! Called by `webhooks` and `channel_bridge`. DNS names resolve only to addresses that `ssrf_guard` permits. Redirects are not followed,
//! and no proxy is used. The time-out covers the whole response. A URL with a literal IP address involves no DNS, so the guard does not see
//! it: callers check it with [`Targets::check`] first.
//!
//! Connections are reused for later requests. A receiver may close a connection just as the client writes the next request to it; this
//! is no failure of the receiver. So the client repeats a request whose connection ended without a response: once, immediately, on a new
//! connection.

use std::{
    error::Error as _,
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{
    Client, Request, Response,
    dns::Resolve,
    header::{CONTENT_TYPE, RETRY_AFTER},
    redirect::Policy,
};
use url::Url;

use super::ssrf_guard::{Guard, SystemResolver};
use crate::domain::{retry_backoff::LONGEST_ASKED, ssrf_policy::Targets, time::Timestamp, webhooks::SigningSecret};

/// The maximum number of bytes of a response body that are read.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The error if the HTTP client cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ClientBuildError {
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the HTTP client cannot be built: {0}")]
    Http(#[from] reqwest::Error),
}

/// An HTTP client that signs its requests, and connects only to permitted targets.
#[derive(Clone)]
pub struct SigningHttpClient {
    client: Client,
    /// A client without a connection pool: each request opens a new connection.
    unpooled: Client,
    /// The time-out of a request. It covers the whole response.
    timeout: Duration,
}

/// The response of an endpoint. Its body is what arrived within the time-out.
pub struct EndpointResponse {
    pub status: u16,
    /// The pause that `Retry-After` asks for, in milliseconds.
    pub pause: Option<i64>,
    pub body: ResponseBody,
}

/// The body of a response.
pub enum ResponseBody {
    Whole(Vec<u8>),
    /// The body ended too early or did not end: the bytes that arrived, and the reason of the failure.
    Part(Vec<u8>, String),
    /// The body is longer than [`MAX_RESPONSE_BYTES`]: the bytes before this limit.
    TooLong(Vec<u8>),
}

impl SigningHttpClient {
    pub fn new(timeout: Duration, targets: Targets) -> Result<Self, ClientBuildError> {
        Self::naming(timeout, targets, Arc::new(SystemResolver))
    }

    /// Makes a client as [`Self::new`] does, but with the DNS resolver `names` instead of the system's resolver.
    pub(super) fn naming(timeout: Duration, targets: Targets, names: Arc<dyn Resolve>) -> Result<Self, ClientBuildError> {
        let client = client_of(timeout, targets, names.clone(), usize::MAX)?;
        Ok(Self { client, unpooled: client_of(timeout, targets, names, 0)?, timeout })
    }

    /// Sends a signed POST of JSON, with one signature per secret. `id` is the idempotency key. An error is the reason why there is no
    /// response.
    pub async fn post(
        &self,
        url: Url,
        id: &str,
        at: Timestamp,
        secrets: &[SigningSecret],
        body: Vec<u8>,
    ) -> Result<EndpointResponse, String> {
        let begun = Instant::now();
        let reason = |error: reqwest::Error| reason(&error, self.timeout);
        let request = self.signed(url, id, at, secrets, body).map_err(reason)?;
        let again = request.try_clone();
        let mut sent = self.client.execute(request).await;
        if sent.as_ref().is_err_and(was_closed)
            && let Some(mut again) = again
        {
            *again.timeout_mut() = Some(self.timeout.saturating_sub(begun.elapsed()));
            sent = self.unpooled.execute(again).await;
        }
        let mut response = sent.map_err(reason)?;
        let body = self.read(&mut response).await;
        Ok(EndpointResponse { status: response.status().as_u16(), pause: pause(&response, at), body })
    }

    fn signed(&self, url: Url, id: &str, at: Timestamp, secrets: &[SigningSecret], body: Vec<u8>) -> reqwest::Result<Request> {
        let seconds = at.millis().div_euclid(1000);
        let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, seconds, &body)).collect();
        self.client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signatures.join(" "))
            .body(body)
            .build()
    }

    async fn read(&self, response: &mut Response) -> ResponseBody {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > MAX_RESPONSE_BYTES => {
                    body.extend_from_slice(&chunk[..MAX_RESPONSE_BYTES - body.len()]);
                    return ResponseBody::TooLong(body);
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return ResponseBody::Whole(body),
                Err(error) => return ResponseBody::Part(body, reason(&error, self.timeout)),
            }
        }
    }
}

/// Returns whether the connection of a request ended without a response.
fn was_closed(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

fn client_of(timeout: Duration, targets: Targets, names: Arc<dyn Resolve>, kept: usize) -> Result<Client, ClientBuildError> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Guard { targets, names })
        // A proxy would resolve the host name itself, so the SSRF guard could not check the addresses.
        .no_proxy()
        .redirect(Policy::none())
        .user_agent(concat!("counterpart/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(kept)
        .build()?)
}

/// Returns the pause in milliseconds that `Retry-After` asks for.
fn pause(response: &Response, now: Timestamp) -> Option<i64> {
    response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| parse_retry_after(text, now))
}

/// Parses either form of `Retry-After`, seconds or an HTTP date. Returns the pause in milliseconds: at most [`LONGEST_ASKED`], and 0 for a
/// date in the past. `None` if the text has neither form.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<i64> {
    let text = text.trim();
    let pause = match text.parse::<i64>() {
        Ok(seconds) => seconds.saturating_mul(1000),
        Err(_) => {
            let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
            date.timestamp_millis().saturating_sub(now.millis())
        }
    };
    Some(pause.clamp(0, LONGEST_ASKED))
}

/// Returns the root cause of an error as text, without the URL, which may contain a secret.
fn reason(error: &reqwest::Error, timeout: Duration) -> String {
    if error.is_timeout() {
        return format!("no answer within {} seconds", timeout.as_secs());
    }
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_or_a_date() {
        let now = Timestamp::from_millis(1_445_412_480_000);
        for (text, asked) in [
            ("120", Some(120_000)),
            (" 0 ", Some(0)),
            ("-5", Some(0)),
            ("99999999999999", Some(LONGEST_ASKED)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(super::parse_retry_after(text, now), asked, "{text:?}");
        }
    }
}
