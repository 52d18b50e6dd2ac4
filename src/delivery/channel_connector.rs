//! The connector interface (channel adapter): sends a message to a channel, and classifies a failure as transient or permanent.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{
    domain::outbound_messages::{Content, OutboxEntry},
    service::outbox_processing::SendOutcome,
};

/// The kinds of content that a connector can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub text: bool,
    pub email: bool,
    pub templates: bool,
}

impl Capabilities {
    pub fn cover(self, content: &Content) -> bool {
        match content {
            Content::Text(_) => self.text,
            Content::Email(_) => self.email,
            Content::Template(_) => self.templates,
        }
    }
}

/// A channel's acceptance of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The channel's id of the message.
    pub external_id: Option<String>,
    /// The channel's id of the thread, if it differs from the `reference_id` in the [`OutboxEntry`].
    pub reference_id: Option<String>,
}

/// Whether a failed attempt may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The attempt may be retried. `after`: the pause that the channel asks for, if it asks for one.
    Transient { after: Option<Duration> },
    /// The attempt must not be retried.
    Permanent,
}

/// A failed attempt to send a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SendFailure {
    pub class: FailureClass,
    /// The reason of the failure, as it is shown to the operator.
    pub reason: String,
}

pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<Accepted, SendFailure>> + Send + 'a>>;

/// A channel adapter.
pub trait Connector: Send + Sync + 'static {
    fn capabilities(&self) -> Capabilities;

    /// Sends one message. `attempt` counts from 1. Delivery is at least once: an attempt whose end was not recorded is repeated
    /// with the same outbox entry, so a channel should deduplicate by `message_id` if it can.
    fn send<'a>(&'a self, outbox_entry: &'a OutboxEntry, attempt: i64) -> Sending<'a>;
}

/// The fallback connector: sends the messages of accounts that have no bridge (HTTP endpoint of the operator). `every` is `None` if there
/// is no fallback.
#[derive(Clone, Default)]
pub struct Connectors {
    every: Option<Arc<dyn Connector>>,
}

impl Connectors {
    /// Returns `Connectors` without a fallback: only bridges send messages.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns `Connectors` with one fallback connector for every channel.
    pub fn every(connector: Arc<dyn Connector>) -> Self {
        Self { every: Some(connector) }
    }

    pub fn of(&self, _: &OutboxEntry) -> Option<&Arc<dyn Connector>> {
        self.every.as_ref()
    }
}

impl From<Result<Accepted, SendFailure>> for SendOutcome {
    fn from(sent: Result<Accepted, SendFailure>) -> Self {
        match sent {
            Ok(Accepted { external_id, reference_id }) => Self::Accepted { external_id, reference_id },
            Err(SendFailure { class: FailureClass::Permanent, reason }) => Self::Failed { reason },
            Err(SendFailure { class: FailureClass::Transient { after }, reason }) => {
                Self::Again { reason, after: after.map(|after| i64::try_from(after.as_millis()).unwrap_or(i64::MAX)) }
            }
        }
    }
}
