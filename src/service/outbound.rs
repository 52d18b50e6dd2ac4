//! The message outbox as `delivery` uses it: claims entries under a lease, records the outcome of an attempt, and decides whether a message
//! is retried (decisions, section 7).

use super::{Result, Service};
use crate::{
    domain::{
        delivery_outcome::DeliveryOutcome,
        events::Fact,
        outbound::{Delivery, next_attempt},
        receive::thread_name,
        time::Timestamp,
        undelivered::FAILED_KEPT_MILLIS,
    },
    store::queues::{
        concurrency::Room,
        outbound::{ClaimedMessage, StoreAccount},
    },
};

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The channel accepted the message.
    Accepted {
        /// The channel's id of the message.
        external_id: Option<String>,
        /// The channel's id of the thread, if it differs from ours.
        reference_id: Option<String>,
    },
    /// Retry, after the pause in milliseconds that the channel asks for, if any.
    Again { reason: String, after: Option<i64> },
    /// Do not retry.
    Refused { reason: String },
}

/// The lease of an attempt in milliseconds: when it expires, another process may repeat the attempt.
pub const LEASE_MILLIS: i64 = 60_000;

/// The limit of characters in a stored reason.
const MAX_REASON_CHARS: usize = 500;

/// When a message fails, at most this many entries of messages that failed long ago are deleted.
const FORGOTTEN_AT_ONCE: u64 = 50;

fn kept_reason(reason: &str) -> String {
    reason.chars().filter(|c| *c != '\0').take(MAX_REASON_CHARS).collect()
}

impl Service {
    /// Resolves once this process has queued a message.
    pub async fn parcel_put(&self) {
        self.parcels.notified().await;
    }

    /// Returns when the next message is due.
    pub async fn next_parcel_at(&self) -> Result<Option<Timestamp>> {
        Ok(self.db().next_parcel_at().await?)
    }

    /// Claims due messages, each for one attempt of at most [`LEASE_MILLIS`].
    pub async fn claim_parcels(&self, room: Room<'_, StoreAccount>) -> Result<Vec<ClaimedMessage>> {
        let now = self.world().now();
        let claim = self.world().ids.fresh();
        Ok(self.db().claim_parcels(now, now.plus_millis(LEASE_MILLIS), &claim, room).await?)
    }

    /// Records the outcome of an attempt, and decides whether and when the message is retried. `jitter` in 0..1 varies the pause before the
    /// retry.
    pub async fn settle_parcel(&self, claimed: &ClaimedMessage, verdict: Verdict, jitter: f64) -> Result<DeliveryOutcome> {
        let parcel = &claimed.parcel;
        let mut change = self.begin_alone(&parcel.store_id, parcel.actor.clone()).await?;
        let failure = match verdict {
            Verdict::Accepted { external_id, reference_id } => {
                // An id that no thread on this channel can have is ignored: the message was sent nevertheless.
                let reference_id =
                    reference_id.and_then(|name| thread_name(parcel.channel.as_str(), &name)).filter(|name| *name != parcel.reference_id);
                if reference_id.is_some() {
                    // Lock order: the thread before its message, as in every other writer.
                    change.conversation(&parcel.conversation_id).await?;
                }
                let taken = change.take_parcel(claimed).await?;
                if taken && let Some(message) = change.save_delivery(&parcel.message_id, Delivery::Sent, None).await? {
                    if let Some(external_id) = external_id
                        && !change.name_message(&message, &external_id).await?
                    {
                        tracing::warn!(message_id = %message.id, external_id, "the channel's id of a message belongs to another message already");
                    }
                    if let Some(reference_id) = reference_id {
                        change.name_thread(&message, &reference_id).await?;
                    }
                    change.note(Fact::MessageSent { message, ticket_id: parcel.ticket_id.clone() });
                }
                change.end().await?;
                return Ok(if taken { DeliveryOutcome::Delivered } else { DeliveryOutcome::Late });
            }
            Verdict::Refused { reason } => reason,
            Verdict::Again { reason, after } => match next_attempt(claimed.attempts, change.now(), after, jitter) {
                Some(due_at) => {
                    tracing::info!(message_id = %parcel.message_id, reason, "a message was not accepted and will be retried");
                    change.postpone_parcel(claimed, due_at, &kept_reason(&reason)).await?;
                    change.end().await?;
                    return Ok(DeliveryOutcome::Retrying);
                }
                None => reason,
            },
        };
        let reason = kept_reason(&failure);
        let taken = change.take_parcel(claimed).await?;
        if taken {
            tracing::warn!(message_id = %parcel.message_id, attempts = claimed.attempts, reason, "a message could not be sent");
            change.save_delivery(&parcel.message_id, Delivery::Failed, Some(&reason)).await?;
            change.forget_failed_messages(change.now().plus_millis(-FAILED_KEPT_MILLIS), FORGOTTEN_AT_ONCE).await?;
            change.insert_failed_message(claimed).await?;
        }
        change.end().await?;
        Ok(if taken { DeliveryOutcome::GivenUp } else { DeliveryOutcome::Late })
    }
}
