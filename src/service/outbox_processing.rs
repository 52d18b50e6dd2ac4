//! Use-cases with which `delivery` works through the outbox, which is the queue of outbound messages. They reserve entries for a limited
//! time (claim and lease), record the outcome of each attempt, and decide whether a message is retried.

use super::{Result, Service};
use crate::{
    domain::{
        delivery_outcome::DeliveryOutcome,
        events::EventChange,
        inbound_messages::thread_name,
        outbound_messages::{Delivery, next_attempt},
        time::Timestamp,
        undelivered_messages::FAILED_KEPT_MILLIS,
    },
    store::queues::{
        concurrency::AttemptLimits,
        outbound::{ClaimedMessage, StoreAccount},
    },
};

/// The outcome of an attempt to send a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The channel accepted the message.
    Accepted {
        /// The channel's id of the message.
        external_id: Option<String>,
        /// The channel's id of the conversation, if it differs from the stored id.
        reference_id: Option<String>,
    },
    /// The channel did not accept the message now. The message is retried later, unless this was the last permitted attempt. `after`: the
    /// pause in milliseconds that the channel asks for.
    Again { reason: String, after: Option<i64> },
    /// The message cannot be sent. It is not retried.
    Failed { reason: String },
}

/// The lease of an attempt in milliseconds: when it expires, another process may repeat the attempt.
pub const LEASE_MILLIS: i64 = 60_000;

/// The maximum length of the stored reason of a failure, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Each time a message fails, at most this many messages that failed long ago are deleted from the table of failed messages.
const PRUNED_AT_ONCE: u64 = 50;

fn sanitized_reason(reason: &str) -> String {
    reason.chars().filter(|c| *c != '\0').take(MAX_REASON_CHARS).collect()
}

impl Service {
    /// Resolves once this process has queued a message, or has made a queued message due.
    pub async fn outbox_filled(&self) {
        self.outbox_notify.notified().await;
    }

    /// Returns when the next attempt to send a message is due, in any store. `None` if no attempt is planned.
    pub async fn next_message_at(&self) -> Result<Option<Timestamp>> {
        Ok(self.db().next_message_at().await?)
    }

    /// Claims due messages, each for one attempt of at most [`LEASE_MILLIS`].
    pub async fn claim_outbox_entries(&self, room: AttemptLimits<'_, StoreAccount>) -> Result<Vec<ClaimedMessage>> {
        let now = self.clocks_and_ids().now();
        let claim = self.clocks_and_ids().ids.fresh();
        Ok(self.db().claim_outbox_entries(now, now.plus_millis(LEASE_MILLIS), &claim, room).await?)
    }

    /// Records the outcome of an attempt, and decides whether and when the message is retried. `jitter` in 0..1 varies the pause before the
    /// retry.
    pub async fn record_send_outcome(&self, claimed: &ClaimedMessage, outcome: SendOutcome, jitter: f64) -> Result<DeliveryOutcome> {
        let outbox_entry = &claimed.outbox_entry;
        let mut change = self.begin_alone(&outbox_entry.store_id, outbox_entry.actor.clone()).await?;
        let failure = match outcome {
            SendOutcome::Accepted { external_id, reference_id } => {
                // A reference id that is not valid on this channel is ignored. The attempt still counts as a success, since the channel has
                // accepted the message.
                let reference_id = reference_id
                    .and_then(|name| thread_name(outbox_entry.channel.as_str(), &name))
                    .filter(|name| *name != outbox_entry.reference_id);
                if reference_id.is_some() {
                    // To prevent deadlocks, the conversation is locked before its message, as in every write that locks both.
                    change.conversation(&outbox_entry.conversation_id).await?;
                }
                let taken = change.delete_outbox_entry(claimed).await?;
                if taken && let Some(message) = change.save_delivery(&outbox_entry.message_id, Delivery::Sent, None).await? {
                    if let Some(external_id) = external_id
                        && !change.save_external_id(&message, &external_id).await?
                    {
                        tracing::warn!(message_id = %message.id, external_id, "the channel's id of a message belongs to another message already");
                    }
                    if let Some(reference_id) = reference_id {
                        change.save_thread_id(&message, &reference_id).await?;
                    }
                    change.note(EventChange::MessageSent { message, ticket_id: outbox_entry.ticket_id.clone() });
                }
                change.end().await?;
                return Ok(if taken { DeliveryOutcome::Delivered } else { DeliveryOutcome::Late });
            }
            SendOutcome::Failed { reason } => reason,
            SendOutcome::Again { reason, after } => match next_attempt(claimed.attempts, change.now(), after, jitter) {
                Some(due_at) => {
                    tracing::info!(message_id = %outbox_entry.message_id, reason, "a message was not accepted and will be retried");
                    change.reschedule_outbox_entry(claimed, due_at, &sanitized_reason(&reason)).await?;
                    change.end().await?;
                    return Ok(DeliveryOutcome::Retrying);
                }
                None => reason,
            },
        };
        let reason = sanitized_reason(&failure);
        let taken = change.delete_outbox_entry(claimed).await?;
        if taken {
            tracing::warn!(message_id = %outbox_entry.message_id, attempts = claimed.attempts, reason, "a message could not be sent");
            change.save_delivery(&outbox_entry.message_id, Delivery::Failed, Some(&reason)).await?;
            change.prune_failed_messages(change.now().plus_millis(-FAILED_KEPT_MILLIS), PRUNED_AT_ONCE).await?;
            change.insert_failed_message(claimed).await?;
        }
        change.end().await?;
        Ok(if taken { DeliveryOutcome::GivenUp } else { DeliveryOutcome::Late })
    }
}
