//! The HTTP client of everything that is sent to an address which somebody gave us.
//!
//! Called by `webhooks` and `bridge`, whose posts it signs. No name leads it to an address that `guard` forbids, it follows
//! no redirect and no proxy, and its time-out is over the whole of an answer. A URL that spells an address out looks no name
//! up: whoever sends to one asks [`Targets::check`] first.

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

/// The most of an answer that is read.
pub const MAX_ANSWER: usize = 64 * 1024;

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    #[error("no TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("no HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// A client that connects to these targets alone, each answer to be whole within `timeout`.
pub fn guarded(timeout: Duration, targets: Targets) -> Result<Client, NoClient> {
    naming(timeout, targets, Arc::new(MachineNames))
}

/// [`guarded`], with names of the caller's.
pub(super) fn naming(timeout: Duration, targets: Targets, names: Arc<dyn Resolve>) -> Result<Client, NoClient> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Guard { targets, names })
        // A proxy would make the connection in our place, unguarded.
        .no_proxy()
        .redirect(Policy::none())
        .user_agent(concat!("counterpart/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .build()?)
}

/// A POST of JSON, signed with each secret. `id` is what a repetition is told by.
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

/// The body of an answer. None: it is longer than [`MAX_ANSWER`].
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

/// The pause in milliseconds that an answer asks for.
pub fn pause(response: &Response, now: Timestamp) -> Option<i64> {
    response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| asked(text, now))
}

/// Seconds, or a date.
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

/// An error with what caused it, which is where the reason stands; without the address, which may hold a secret.
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
    fn a_pause_is_asked_for_in_seconds_or_by_a_date() {
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
