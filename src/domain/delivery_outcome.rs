//! Outcomes of attempts to deliver a message to its channel, or an event to a webhook, and the numbers of items that wait for delivery.
//! `service::outbound` and `service::webhooks` decide on the outcome.

use super::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// Another attempt follows.
    Retrying,
    /// No other attempt follows.
    GivenUp,
    /// Given up, and the webhook was disabled.
    Disabled,
    /// The outcome arrived after the lease of the attempt had expired: the outcome of a later attempt counts.
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

/// The limit up to which waiting items are counted.
pub const COUNT_LIMIT: u64 = 10_000;

/// The number and the age of the items that wait in an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// At most [`COUNT_LIMIT`].
    pub waiting: u64,
    /// When the oldest waiting item was created.
    pub oldest: Option<Timestamp>,
}

/// The values for the metrics page that are read from the database together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlogs {
    pub messages: Backlog,
    pub events: Backlog,
    /// The number of webhooks that are disabled because their endpoints failed.
    pub webhooks_disabled: u64,
    /// The number of enabled webhooks whose last delivery failed.
    pub webhooks_failing: u64,
    /// The size of the database in bytes, on SQLite including its WAL.
    pub bytes: u64,
}
