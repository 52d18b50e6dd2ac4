//! What hands messages to a channel.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{
    domain::outbound::{Content, Parcel},
    service::outbound::Verdict,
};

/// What a connector can hand over.
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

/// What a channel answers to a message that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The message, as the channel names it.
    pub external_id: Option<String>,
    /// The thread, where the channel names it otherwise than the parcel does.
    pub reference_id: Option<String>,
}

/// Whether another attempt may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It may, after the pause that the channel asks for, if it asks.
    Transient { after: Option<Duration> },
    /// None will.
    Permanent,
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotTaken {
    pub class: Class,
    /// For the operator.
    pub reason: String,
}

pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<Accepted, NotTaken>> + Send + 'a>>;

/// Hands messages to a channel.
pub trait Connector: Send + Sync + 'static {
    fn capabilities(&self) -> Capabilities;

    /// Hands one message over. `attempt` counts from 1; the parcel is the same each time, and a channel that can should
    /// tell a repetition by its `message_id`: an attempt whose end nobody saw is made again.
    fn send<'a>(&'a self, parcel: &'a Parcel, attempt: i64) -> Sending<'a>;
}

/// Which connector serves a message whose account has no bridge.
#[derive(Clone, Default)]
pub struct Connectors {
    every: Option<Arc<dyn Connector>>,
}

impl Connectors {
    /// No connector at all: only channels of our own take messages.
    pub fn none() -> Self {
        Self::default()
    }

    /// One connector for every channel.
    pub fn every(connector: Arc<dyn Connector>) -> Self {
        Self { every: Some(connector) }
    }

    pub fn of(&self, _: &Parcel) -> Option<&Arc<dyn Connector>> {
        self.every.as_ref()
    }
}

impl From<Result<Accepted, NotTaken>> for Verdict {
    fn from(sent: Result<Accepted, NotTaken>) -> Self {
        match sent {
            Ok(Accepted { external_id, reference_id }) => Self::Accepted { external_id, reference_id },
            Err(NotTaken { class: Class::Permanent, reason }) => Self::Refused { reason },
            Err(NotTaken { class: Class::Transient { after }, reason }) => {
                Self::Again { reason, after: after.map(|after| i64::try_from(after.as_millis()).unwrap_or(i64::MAX)) }
            }
        }
    }
}
