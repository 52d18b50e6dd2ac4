//! Worker of the outbound message queue (outbox): sends each queued message to its channel. `service::outbound` decides the retries.
//!
//! Each attempt is settled in a separate transaction, so a message counts as sent only after its channel has accepted it.
//! Messages of one conversation are sent in order, one at a time; conversations are sent in parallel.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{
    bridge::BridgeConnectors,
    client::NoClient,
    connector::{Connector, Connectors},
    worker::{OnOutcome, Queue, Worker, jitter, settle, uncounted},
};
use crate::{
    domain::{ids::StoreId, outbound::NO_CONNECTOR, targets::Targets, time::Timestamp},
    service::{
        Result, Service,
        outbound::{LEASE_MILLIS, Verdict},
    },
    store::queues::{
        concurrency::Room,
        outbound::{ClaimedMessage, StoreAccount},
    },
};

/// The time-out of an attempt: half of its lease, so that the outcome is recorded before another worker can claim the
/// message.
const TIMEOUT: Duration = Duration::from_millis(LEASE_MILLIS as u64 / 2);

/// The message queue.
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
    /// Makes the queue. `connectors` serve the accounts without a bridge.
    pub fn new(service: Service, connectors: Connectors, targets: Targets) -> std::result::Result<Self, NoClient> {
        Self::within(TIMEOUT, service, connectors, targets)
    }

    /// Makes the queue as [`Messages::new`] does, with another time-out for bridges.
    pub(super) fn within(
        timeout: Duration,
        service: Service,
        connectors: Connectors,
        targets: Targets,
    ) -> std::result::Result<Self, NoClient> {
        Ok(Self {
            bridges: BridgeConnectors::new(timeout, service.world().real.clone(), targets)?,
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
    async fn send(&self, claimed: &ClaimedMessage) -> Verdict {
        let parcel = &claimed.parcel;
        let bridge = claimed.bridge.as_ref().map(|endpoint| self.bridges.to(endpoint));
        let connector: &dyn Connector = match (&bridge, self.connectors.of(parcel)) {
            (Some(bridge), _) => bridge,
            (None, Some(connector)) => connector.as_ref(),
            (None, None) => return Verdict::Refused { reason: NO_CONNECTOR.to_owned() },
        };
        if !connector.capabilities().cover(&parcel.content) {
            return Verdict::Refused { reason: "the channel's connector cannot send this kind of message".to_owned() };
        }
        match tokio::time::timeout(TIMEOUT, connector.send(parcel, claimed.attempts)).await {
            Ok(sent) => sent.into(),
            Err(_) => Verdict::Again { reason: "the channel did not answer in time".to_owned(), after: None },
        }
    }
}

impl Queue for Messages {
    type Claimed = ClaimedMessage;
    type Place = StoreAccount;

    async fn filled(&self) {
        self.service.parcel_put().await;
    }

    async fn next_at(&self) -> Result<Option<Timestamp>> {
        self.service.next_parcel_at().await
    }

    fn now(&self) -> Timestamp {
        self.service.world().now()
    }

    async fn claim(&self, room: Room<'_, StoreAccount>) -> Result<Vec<ClaimedMessage>> {
        self.service.claim_parcels(room).await
    }

    fn place(claimed: &ClaimedMessage) -> StoreAccount {
        (claimed.parcel.store_id.clone(), claimed.parcel.account_id.clone())
    }

    fn store((store, _): &StoreAccount) -> &StoreId {
        store
    }

    async fn attempt(&self, claimed: ClaimedMessage) {
        let verdict = self.send(&claimed).await;
        let settled = settle(claimed.parcel.message_id.as_str(), || {
            self.service.settle_parcel(&claimed, verdict.clone(), jitter(self.service.world()))
        })
        .await;
        if let Some(outcome) = settled {
            (self.on_outcome)(outcome);
        }
    }
}
