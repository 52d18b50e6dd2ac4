//! Outcomes of attempts to deliver a message to its channel, or an event to a webhook, and the numbers of items that wait for delivery.
//! `service::outbox_processing` and `service::webhooks` decide on the outcome.

use super::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// The attempt failed, and another attempt follows.
    Retrying,
    /// The attempt failed, and no other attempt follows.
    GivenUp,
    /// The attempt failed, no other attempt follows, and the webhook was disabled.
    Disabled,
    /// The outcome does not decide about retries: it arrived after the attempt's lease (time limit) had expired, or after the webhook was
    /// disabled or deleted.
    Late,
}

impl DeliveryOutcome {
    /// Returns the name of the outcome in the log of attempts and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retrying => "retrying",
            Self::GivenUp => "given_up",
            Self::Disabled => "disabled",
            Self::Late => "late",
        }
    }
}

/// The items that wait in a delivery queue are counted up to this number only.
pub const COUNT_LIMIT: u64 = 10_000;

/// The number and the age of the items that wait in a delivery queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of waiting items, at most [`COUNT_LIMIT`].
    pub waiting: u64,
    /// When the oldest waiting item was created.
    pub oldest: Option<Timestamp>,
}

/// The values that the server reads from the database for the metrics page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlogs {
    pub messages: Backlog,
    pub events: Backlog,
    /// The number of webhooks that are disabled because their endpoints failed.
    pub webhooks_disabled: u64,
    /// The number of enabled webhooks whose last delivery attempt failed.
    pub webhooks_failing: u64,
    /// The size of the database in bytes, on SQLite including its WAL.
    pub bytes: u64,
}
