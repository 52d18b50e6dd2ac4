//! The worker that hands messages to their channels.
//!
//! It claims what is due, tries it, and has the service settle each attempt in a transaction of its own, so that a
//! message counts as sent only once the channel has it. Messages of one conversation go one after the other; many
//! conversations go at once, an account at most [`ACCOUNT_MAX`] of them, so that a channel that hangs delays its own
//! messages alone. A process that dies leaves its claims to the others, or to its successor, for when they run out.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::connector::Connectors;
use crate::{
    domain::outbound::NO_CONNECTOR,
    service::{
        Result, Service,
        outbound::{LEASE_MILLIS, Verdict},
    },
    store::outbound::{Claimed, Place, Room},
};

/// Attempts at a time.
const MAX: usize = 256;

/// Attempts at a time with one account.
const ACCOUNT_MAX: usize = 16;

/// How long an attempt may take: half of the lease, so that the end is written down before another may try.
const TIMEOUT: Duration = Duration::from_millis(LEASE_MILLIS as u64 / 2);

/// Pauses after which an end is written down that could not be at first: a message that the channel has would be sent a
/// second time. Together they are shorter than what is left of the lease.
const SETTLING: [Duration; 4] = [Duration::from_millis(20), Duration::from_millis(500), Duration::from_secs(3), Duration::from_secs(10)];

/// How long the worker rests when nothing wakes it: another process may have put a message on its way.
const REST: Duration = Duration::from_secs(1);

/// How long it rests after the database failed it.
const RECOVERY: Duration = Duration::from_secs(5);

/// Hands messages to their channels.
pub struct Outbound {
    service: Service,
    connectors: Connectors,
    /// Attempts that go on; each gives its account back.
    attempts: JoinSet<Place>,
    busy: HashMap<Place, usize>,
}

impl Outbound {
    pub fn new(service: Service, connectors: Connectors) -> Self {
        Self { service, connectors, attempts: JoinSet::new(), busy: HashMap::new() }
    }

    /// Works until `stop` resolves, then ends what it began.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let rest = match self.begin_due().await {
                Ok(rest) => rest,
                Err(error) => {
                    tracing::error!(%error, "no message can be claimed");
                    RECOVERY
                }
            };
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = self.attempts.join_next() => self.ended(ended),
                () = self.service.parcel_put() => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
        while let Some(ended) = self.attempts.join_next().await {
            self.ended(ended);
        }
    }

    /// Begins what is due; how long to rest if nothing happens.
    async fn begin_due(&mut self) -> Result<Duration> {
        while let Some(ended) = self.attempts.try_join_next() {
            self.ended(ended);
        }
        let room = MAX.saturating_sub(self.attempts.len());
        if room == 0 {
            // Until an attempt ends.
            return Ok(REST);
        }
        let Some(next) = self.service.next_parcel_at().await? else { return Ok(REST) };
        let wait = next.millis().saturating_sub(self.service.world().now().millis());
        if wait > 0 {
            return Ok(Duration::from_millis(u64::try_from(wait).unwrap_or(0)).clamp(Duration::from_millis(1), REST));
        }
        let claimed = self.service.claim_parcels(Room { all: room, each: ACCOUNT_MAX, busy: &self.busy }).await?;
        // What is due and cannot be claimed waits for an attempt that goes on, here or elsewhere.
        let rest = if claimed.is_empty() { REST } else { Duration::ZERO };
        for one in claimed {
            let place = (one.parcel.store_id.clone(), one.parcel.account_id.clone());
            *self.busy.entry(place.clone()).or_default() += 1;
            let (service, connectors) = (self.service.clone(), self.connectors.clone());
            self.attempts.spawn(async move {
                attempt(&service, &connectors, &one).await;
                place
            });
        }
        Ok(rest)
    }

    fn ended(&mut self, ended: std::result::Result<Place, tokio::task::JoinError>) {
        match ended {
            Ok(place) => {
                if let Some(attempts) = self.busy.get_mut(&place) {
                    *attempts -= 1;
                    if *attempts == 0 {
                        self.busy.remove(&place);
                    }
                }
            }
            // Its account stays one short until the process ends, which is better than a worker that ends.
            Err(error) => tracing::error!(%error, "an attempt to send a message broke off"),
        }
    }
}

/// Tries one message and writes down how that ended.
async fn attempt(service: &Service, connectors: &Connectors, claimed: &Claimed) {
    let verdict = match connectors.of(&claimed.parcel) {
        None => Verdict::Refused { reason: NO_CONNECTOR.to_owned() },
        Some(connector) if !connector.capabilities().cover(&claimed.parcel.content) => {
            Verdict::Refused { reason: "the channel's connector cannot send this kind of message".to_owned() }
        }
        Some(connector) => {
            let connector = Arc::clone(connector);
            match tokio::time::timeout(TIMEOUT, connector.send(&claimed.parcel, claimed.attempts)).await {
                Ok(sent) => sent.into(),
                Err(_) => Verdict::Again { reason: "the channel did not answer in time".to_owned(), after: None },
            }
        }
    };
    let mut pauses = SETTLING.iter();
    while let Err(error) = service.settle_parcel(claimed, verdict.clone(), jitter()).await {
        let Some(pause) = pauses.next() else {
            tracing::error!(%error, message = %claimed.parcel.message_id, "the end of an attempt could not be written down; it is made again");
            return;
        };
        tracing::warn!(%error, message = %claimed.parcel.message_id, "the end of an attempt could not be written down yet");
        tokio::time::sleep(*pause).await;
    }
}

/// A number in 0..1.
fn jitter() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
