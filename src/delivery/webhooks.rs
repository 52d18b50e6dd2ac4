//! Events to the endpoints that subscribed to them: signed attempts in the form of Standard Webhooks.

use std::{
    error::Error as _,
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{
    Client,
    header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
    redirect::Policy,
};
use tokio::sync::Mutex;
use url::Url;

use super::{
    guard::Targets,
    worker::{Queue, jitter, settle},
};
use crate::{
    domain::{
        retry::LONGEST_ASKED,
        time::Timestamp,
        webhooks::{Answer, Attempted, Shipment},
    },
    service::{Result, Service},
    store::{
        queue::Room,
        webhooks::{Claimed, Place},
    },
};

/// The least time between two looks for events. Queueing them is a write of its own: many at once, or writers would wait
/// for it as often as they write.
const GATHER: Duration = Duration::from_millis(20);

/// How long an endpoint has to answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The most of an answer that is read, so that the connection can be used again. What it says does not matter.
const MAX_ANSWER: usize = 64 * 1024;

/// The longest reason that is kept, in characters.
const MAX_REASON_CHARS: usize = 500;

/// The queue of events.
#[derive(Clone)]
pub struct Webhooks {
    service: Service,
    client: Client,
    targets: Targets,
    /// When it was last looked for events.
    looked: Arc<Mutex<Option<Instant>>>,
    timeout: Duration,
}

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    #[error("no TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("no HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

impl Webhooks {
    pub fn new(service: Service, targets: Targets) -> std::result::Result<Self, NoClient> {
        Self::within(TIMEOUT, service, targets)
    }

    fn within(timeout: Duration, service: Service, targets: Targets) -> std::result::Result<Self, NoClient> {
        let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(targets)
            // A proxy would make the connection in our place, unguarded.
            .no_proxy()
            .redirect(Policy::none())
            .timeout(timeout)
            .pool_idle_timeout(Duration::from_secs(30))
            .build()?;
        Ok(Self { service, client, targets, looked: Arc::default(), timeout })
    }

    async fn answer(&self, shipment: &Shipment, started_at: Timestamp) -> Answer {
        let refused = |reason: &str| Answer::None(reason.chars().take(MAX_REASON_CHARS).collect());
        let url = match Url::parse(&shipment.url) {
            Ok(url) => url,
            Err(error) => return refused(&error.to_string()),
        };
        if let Err(reason) = self.targets.check(&url) {
            return refused(reason);
        }
        let seconds = started_at.millis().div_euclid(1000);
        let signatures: Vec<String> =
            shipment.secrets.iter().map(|secret| secret.sign(&shipment.event_id, seconds, &shipment.body)).collect();
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("counterpart/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &shipment.event_id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signatures.join(" "))
            .body(shipment.body.clone());
        // The time-out is over all of it: an endpoint that drips is one that does not answer.
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => return refused(&told(&error, self.timeout)),
        };
        let mut read = 0;
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => read += chunk.len(),
                Ok(None) => break,
                Err(error) => return refused(&told(&error, self.timeout)),
            }
            if read > MAX_ANSWER {
                break;
            }
        }
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| asked(text, started_at));
        Answer::Status(response.status().as_u16(), asked)
    }
}

/// A pause in milliseconds out of `Retry-After`: seconds, or a date.
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
fn told(error: &reqwest::Error, timeout: Duration) -> String {
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

impl Queue for Webhooks {
    type Claimed = Claimed;
    type Place = Place;

    async fn filled(&self) {
        self.service.delivery_queued().await;
    }

    async fn next_at(&self) -> Result<Option<Timestamp>> {
        let mut looked = self.looked.lock().await;
        if let Some(looked) = *looked {
            tokio::time::sleep(GATHER.saturating_sub(looked.elapsed())).await;
        }
        *looked = Some(Instant::now());
        self.service.next_delivery_at().await
    }

    fn now(&self) -> Timestamp {
        self.service.world().now()
    }

    async fn claim(&self, room: Room<'_, Place>) -> Result<Vec<Claimed>> {
        self.service.claim_deliveries(room).await
    }

    fn place(claimed: &Claimed) -> Place {
        (claimed.shipment.store_id.clone(), claimed.shipment.webhook_id.clone())
    }

    async fn attempt(&self, claimed: Claimed) {
        let started_at = self.now();
        let answer = self.answer(&claimed.shipment, started_at).await;
        let attempted = Attempted { started_at, ended_at: self.now(), answer };
        settle(&claimed.shipment.event_id, || self.service.settle_delivery(&claimed, attempted.clone(), jitter())).await;
    }
}

#[cfg(test)]
mod tests;
