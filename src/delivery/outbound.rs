//! Worker of the outbound message queue (outbox): sends each queued message to its channel. `service::outbox_processing` decides the
//! retries.
//!
//! The outcome of each attempt is recorded in a transaction after the attempt. So a message counts as sent only after its channel has
//! accepted it. Messages of one conversation are sent in order, one at a time; messages of different conversations are sent in parallel.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{
    channel_bridge::BridgeConnectors,
    channel_connector::{Connector, Connectors},
    signing_http_client::ClientBuildError,
    worker::{OnOutcome, Queue, Worker, jitter, settle, uncounted},
};
use crate::{
    domain::{ids::StoreId, outbound_messages::NO_CONNECTOR, ssrf_policy::Targets, time::Timestamp},
    service::{
        Result, Service,
        outbox_processing::{LEASE_MILLIS, SendOutcome},
    },
    store::queues::{
        concurrency::AttemptLimits,
        outbound::{ClaimedMessage, StoreAccount},
    },
};

/// The time-out of an attempt to send a message. It is half of the lease (the time for which a worker claims the message), so that the
/// outcome is recorded before another worker can claim the message.
const TIMEOUT: Duration = Duration::from_millis(LEASE_MILLIS as u64 / 2);

/// The queue of outbound messages.
#[derive(Clone)]
pub struct Messages {
    service: Service,
    bridges: BridgeConnectors,
    connectors: Connectors,
    on_outcome: OnOutcome,
}

/// The worker of the message queue.
pub type Outbound = Worker<Messages>;

impl Messages {
    /// Makes the queue. The messages of an account go to its bridge (HTTP endpoint of the operator); `connectors` send those of accounts
    /// without a bridge.
    pub fn new(service: Service, connectors: Connectors, targets: Targets) -> std::result::Result<Self, ClientBuildError> {
        Self::within(TIMEOUT, service, connectors, targets)
    }

    /// Makes the queue as [`Messages::new`] does, but with the time-out `timeout` for requests to bridges.
    pub(super) fn within(
        timeout: Duration,
        service: Service,
        connectors: Connectors,
        targets: Targets,
    ) -> std::result::Result<Self, ClientBuildError> {
        Ok(Self {
            bridges: BridgeConnectors::new(timeout, service.clocks_and_ids().real.clone(), targets)?,
            service,
            connectors,
            on_outcome: uncounted(),
        })
    }

    /// Sets the callback for the outcome of each attempt.
    #[must_use]
    pub fn counted_by(self, on_outcome: OnOutcome) -> Self {
        Self { on_outcome, ..self }
    }

    /// Makes one attempt to send a message. Returns its outcome.
    async fn send(&self, claimed: &ClaimedMessage) -> SendOutcome {
        let outbox_entry = &claimed.outbox_entry;
        let bridge = claimed.bridge.as_ref().map(|endpoint| self.bridges.to(endpoint));
        let connector: &dyn Connector = match (&bridge, self.connectors.of(outbox_entry)) {
            (Some(bridge), _) => bridge,
            (None, Some(connector)) => connector.as_ref(),
            (None, None) => return SendOutcome::Failed { reason: NO_CONNECTOR.to_owned() },
        };
        if !connector.capabilities().cover(&outbox_entry.content) {
            return SendOutcome::Failed { reason: "the channel's connector cannot send this kind of message".to_owned() };
        }
        match tokio::time::timeout(TIMEOUT, connector.send(outbox_entry, claimed.attempts)).await {
            Ok(sent) => sent.into(),
            Err(_) => SendOutcome::Again { reason: "the channel did not answer in time".to_owned(), after: None },
        }
    }
}

impl Queue for Messages {
    type Claimed = ClaimedMessage;
    type Place = StoreAccount;

    async fn filled(&self) {
        self.service.outbox_filled().await;
    }

    async fn next_at(&self) -> Result<Option<Timestamp>> {
        self.service.next_message_at().await
    }

    fn now(&self) -> Timestamp {
        self.service.clocks_and_ids().now()
    }

    async fn claim(&self, room: AttemptLimits<'_, StoreAccount>) -> Result<Vec<ClaimedMessage>> {
        self.service.claim_outbox_entries(room).await
    }

    fn place(claimed: &ClaimedMessage) -> StoreAccount {
        (claimed.outbox_entry.store_id.clone(), claimed.outbox_entry.account_id.clone())
    }

    fn store((store, _): &StoreAccount) -> &StoreId {
        store
    }

    async fn attempt(&self, claimed: ClaimedMessage) {
        let outcome = self.send(&claimed).await;
        let settled = settle(claimed.outbox_entry.message_id.as_str(), || {
            self.service.record_send_outcome(&claimed, outcome.clone(), jitter(self.service.clocks_and_ids()))
        })
        .await;
        if let Some(outcome) = settled {
            (self.on_outcome)(outcome);
        }
    }
}
