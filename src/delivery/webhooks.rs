//! Worker of the webhook queue: sends queued events to their subscribers, as requests signed according to Standard Webhooks.
//! `service::webhooks` decides the retries.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Mutex;
use url::Url;

use super::{
    signing_http_client::{ClientBuildError, ResponseBody, SigningHttpClient},
    worker::{OnOutcome, Queue, jitter, settle, uncounted},
};
use crate::{
    domain::{
        ids::StoreId,
        ssrf_policy::Targets,
        time::Timestamp,
        webhooks::{Attempted, EndpointAnswer, MAX_ANSWER_CHARS, WebhookDelivery},
    },
    service::{Result, Service},
    store::queues::{
        concurrency::AttemptLimits,
        deliveries::{ClaimedDelivery, StoreWebhook},
    },
};

/// Batching: the minimum time between two polls for events. A poll queues the new events in a separate write transaction. Without the
/// pause, every write could cause such a transaction, and other writers would wait for it.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The time-out of a request to an endpoint.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The reasons of failed attempts are cut to this many characters.
const MAX_REASON_CHARS: usize = 500;

/// The queue of events to be delivered to webhooks.
#[derive(Clone)]
pub struct WebhookQueue {
    service: Service,
    http_client: SigningHttpClient,
    targets: Targets,
    /// The time of the last poll for events.
    looked: Arc<Mutex<Option<Instant>>>,
    /// The minimum time between two polls for events.
    gather: Duration,
    on_outcome: OnOutcome,
}

impl WebhookQueue {
    pub fn new(service: Service, targets: Targets) -> std::result::Result<Self, ClientBuildError> {
        Ok(Self::over(SigningHttpClient::new(TIMEOUT, targets)?, service, targets))
    }

    /// Makes the queue over an HTTP client. `http_client` must have been built for these targets.
    fn over(http_client: SigningHttpClient, service: Service, targets: Targets) -> Self {
        // A sandbox is a test database whose clock can be advanced. An advance polls at many instants, and a pause at each of them would
        // make the advance slow.
        let gather = if service.clocks_and_ids().sandbox.is_some() { Duration::ZERO } else { EVENT_POLL_INTERVAL };
        Self { service, http_client, targets, looked: Arc::default(), gather, on_outcome: uncounted() }
    }

    /// Sets the callback for the outcome of each attempt.
    #[must_use]
    pub fn counted_by(self, on_outcome: OnOutcome) -> Self {
        Self { on_outcome, ..self }
    }

    /// Sends an event to its endpoint. Returns the status of the response, or the reason why there is no response. If the status reports a
    /// failure, also returns the beginning of the response's body.
    async fn answer(&self, webhook_delivery: &WebhookDelivery) -> (EndpointAnswer, Option<String>) {
        let refused = |reason: &str| (EndpointAnswer::None(reason.chars().take(MAX_REASON_CHARS).collect()), None);
        let url = match Url::parse(&webhook_delivery.url) {
            Ok(url) => url,
            Err(error) => return refused(&error.to_string()),
        };
        if let Err(reason) = self.targets.check(&url) {
            return refused(&reason.to_string());
        }
        let secrets = match &webhook_delivery.secrets {
            Ok(secrets) => secrets,
            Err(reason) => return refused(reason),
        };
        // The signature states the real time, even in a sandbox, since receivers compare its timestamp with their own clocks.
        let signed_at = self.service.clocks_and_ids().real.now();
        match self.http_client.post(url, &webhook_delivery.event_id, signed_at, secrets, webhook_delivery.body.clone()).await {
            // The status is the result, even if the body did not arrive completely.
            Ok(received) => {
                let answer = EndpointAnswer::Status(received.status, received.pause);
                let body = if answer.is_success() { None } else { beginning(&received.body) };
                (answer, body)
            }
            Err(reason) => refused(&reason),
        }
    }
}

/// Returns the beginning of a response body as text, without U+0000, which PostgreSQL cannot store.
fn beginning(body: &ResponseBody) -> Option<String> {
    let bytes = match body {
        ResponseBody::Whole(bytes) | ResponseBody::Part(bytes, _) | ResponseBody::TooLong(bytes) => bytes,
    };
    let text: String = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}").chars().take(MAX_ANSWER_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

impl Queue for WebhookQueue {
    type Claimed = ClaimedDelivery;
    type Place = StoreWebhook;

    async fn filled(&self) {
        self.service.delivery_queued().await;
    }

    async fn next_at(&self) -> Result<Option<Timestamp>> {
        let mut looked = self.looked.lock().await;
        if let Some(looked) = *looked {
            tokio::time::sleep(self.gather.saturating_sub(looked.elapsed())).await;
        }
        *looked = Some(Instant::now());
        self.service.next_delivery_at().await
    }

    fn now(&self) -> Timestamp {
        self.service.clocks_and_ids().now()
    }

    async fn claim(&self, room: AttemptLimits<'_, StoreWebhook>) -> Result<Vec<ClaimedDelivery>> {
        self.service.claim_deliveries(room).await
    }

    fn place(claimed: &ClaimedDelivery) -> StoreWebhook {
        (claimed.webhook_delivery.store_id.clone(), claimed.webhook_delivery.webhook_id.clone())
    }

    fn store((store, _): &StoreWebhook) -> &StoreId {
        store
    }

    async fn attempt(&self, claimed: ClaimedDelivery) {
        let started_at = self.now();
        let (answer, body) = self.answer(&claimed.webhook_delivery).await;
        let attempted = Attempted { started_at, ended_at: self.now(), answer, body };
        let settled = settle(&claimed.webhook_delivery.event_id, || {
            self.service.settle_delivery(&claimed, attempted.clone(), jitter(self.service.clocks_and_ids()))
        })
        .await;
        if let Some(outcome) = settled {
            (self.on_outcome)(outcome);
        }
    }
}

#[cfg(test)]
mod tests;
