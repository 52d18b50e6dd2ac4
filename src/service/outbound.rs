//! The way of a message to its channel, as `delivery` walks it: claimed, tried, settled (decisions, section 7).

use super::{Result, Service};
use crate::{
    domain::{
        events::Fact,
        ids::StoreId,
        outbound::{Delivery, next_attempt},
        time::Timestamp,
    },
    store::queues::{
        outbound::{Claimed, Place, Undelivered},
        room::Room,
    },
};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The channel has the message.
    Accepted {
        /// The message, as the channel names it.
        external_id: Option<String>,
        /// The thread, where the channel names it otherwise than we did.
        reference_id: Option<String>,
    },
    /// Worth another attempt, after so many milliseconds where the channel says so.
    Again { reason: String, after: Option<i64> },
    /// No attempt will do.
    Refused { reason: String },
}

/// How long an attempt may take before another process may make it, in milliseconds.
pub const LEASE_MILLIS: i64 = 60_000;

/// The longest reason that is kept, in characters.
const MAX_REASON_CHARS: usize = 500;

impl Service {
    /// Resolves once a message was put on its way by this process.
    pub async fn parcel_put(&self) {
        self.parcels.notified().await;
    }

    /// When there is something to be tried next.
    pub async fn next_parcel_at(&self) -> Result<Option<Timestamp>> {
        Ok(self.db().next_parcel_at().await?)
    }

    /// Messages that are due, each for one attempt of at most [`LEASE_MILLIS`].
    pub async fn claim_parcels(&self, room: Room<'_, Place>) -> Result<Vec<Claimed>> {
        let now = self.world().now();
        let claim = self.world().ids.fresh();
        Ok(self.db().claim_parcels(now, now.plus_millis(LEASE_MILLIS), &claim, room).await?)
    }

    /// Writes down how an attempt ended. `jitter` in 0..1 spreads the next one.
    pub async fn settle_parcel(&self, claimed: &Claimed, verdict: Verdict, jitter: f64) -> Result<()> {
        let parcel = &claimed.parcel;
        let mut change = self.begin_alone(&parcel.store_id, parcel.actor.clone()).await?;
        let failure = match verdict {
            Verdict::Accepted { external_id, reference_id } => {
                let reference_id = reference_id.filter(|name| *name != parcel.reference_id);
                if reference_id.is_some() {
                    // The thread before its message, as every other writer holds them.
                    change.conversation(&parcel.conversation_id).await?;
                }
                if change.take_parcel(claimed).await?
                    && let Some(message) = change.save_delivery(&parcel.message_id, Delivery::Sent, None).await?
                {
                    if let Some(external_id) = external_id
                        && !change.name_message(&message, &external_id).await?
                    {
                        tracing::warn!(message = %message.id, external_id, "the channel names a message as it named another before");
                    }
                    if let Some(reference_id) = reference_id {
                        change.name_thread(&message, &reference_id).await?;
                    }
                    change.note(Fact::MessageSent { message, ticket_id: parcel.ticket_id.clone() });
                }
                return change.end().await;
            }
            Verdict::Refused { reason } => reason,
            Verdict::Again { reason, after } => match next_attempt(claimed.attempts, change.now(), after, jitter) {
                Some(due_at) => {
                    tracing::info!(message = %parcel.message_id, reason, "a message was not taken and is tried again");
                    change.postpone_parcel(claimed, due_at).await?;
                    return change.end().await;
                }
                None => reason,
            },
        };
        let reason: String = failure.chars().filter(|c| *c != '\0').take(MAX_REASON_CHARS).collect();
        if change.take_parcel(claimed).await? {
            tracing::warn!(message = %parcel.message_id, attempts = claimed.attempts, reason, "a message could not be sent");
            change.save_delivery(&parcel.message_id, Delivery::Failed, Some(&reason)).await?;
        }
        change.end().await
    }

    /// The messages of a store that the channel does not have: on their way, or given up.
    pub async fn undelivered(&self, store: &StoreId) -> Result<Vec<Undelivered>> {
        Ok(self.db().undelivered(store).await?)
    }
}
