//! Outbound HTTP client with SSRF protection, and the signing of requests (Standard Webhooks).
//!
//! Called by `webhooks` and `bridge`. DNS names resolve only to addresses that `guard` permits; redirects and proxies are
//! not followed; the time-out covers the whole response. A URL with a literal IP address involves no DNS: callers check it
//! with [`Targets::check`] first.

use std::{error::Error as _, sync::Arc, time::Duration};

use reqwest::{
    Client, RequestBuilder, Response,
    dns::Resolve,
    header::{CONTENT_TYPE, RETRY_AFTER},
    redirect::Policy,
};
use url::Url;

use super::guard::{Guard, MachineNames};
use crate::domain::targets::Targets;
use crate::domain::{retry::LONGEST_ASKED, time::Timestamp, webhooks::SigningSecret};

/// Response bodies are read up to this many bytes.
pub const MAX_ANSWER: usize = 64 * 1024;

/// The client could not be built.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    #[error("no TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("no HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// A client that connects only to permitted targets. `timeout` covers the whole response.
pub fn guarded(timeout: Duration, targets: Targets) -> Result<Client, NoClient> {
    naming(timeout, targets, Arc::new(MachineNames))
}

/// [`guarded`], with the DNS resolver of the caller.
pub(super) fn naming(timeout: Duration, targets: Targets, names: Arc<dyn Resolve>) -> Result<Client, NoClient> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Guard { targets, names })
        // A proxy would make the connection without the guard.
        .no_proxy()
        .redirect(Policy::none())
        .user_agent(concat!("counterpart/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .build()?)
}

/// A signed POST of JSON, with one signature per secret. `id` is the idempotency key.
pub fn signed(client: &Client, url: Url, id: &str, at: Timestamp, secrets: &[SigningSecret], body: Vec<u8>) -> RequestBuilder {
    let seconds = at.millis().div_euclid(1000);
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, seconds, &body)).collect();
    client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds)
        .header("webhook-signature", signatures.join(" "))
        .body(body)
}

/// The body of a response; `None` if it is longer than [`MAX_ANSWER`].
pub async fn read(response: &mut Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The pause in milliseconds that `Retry-After` asks for.
pub fn pause(response: &Response, now: Timestamp) -> Option<i64> {
    response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| asked(text, now))
}

/// Either form of `Retry-After`: seconds, or an HTTP date.
fn asked(text: &str, now: Timestamp) -> Option<i64> {
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

/// The root cause of an error. Without the URL, which may contain a secret.
pub(super) fn told(error: &reqwest::Error, timeout: Duration) -> String {
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
            assert_eq!(super::asked(text, now), asked, "{text:?}");
        }
    }
}
