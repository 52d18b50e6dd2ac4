//! What leaves the store: messages to channels.
//!
//! Called by `app`; calls `service`, which keeps what is to be delivered and writes down what became of it.
//! - [`connector`]: what a channel must be able to do to be sent to, and which connector serves which account.
//! - [`simulator`]: a connector that is no channel, for development, the demo and tests.
//! - [`outbound`]: the worker that hands messages over.

pub mod connector;
pub mod guard;
pub mod outbound;
pub mod simulator;
pub mod webhooks;
pub mod worker;
