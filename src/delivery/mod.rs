//! What leaves the store: messages to channels, and events to webhooks.
//!
//! Called by `app`; calls `service`, which keeps what is to be delivered and writes down what became of it.
//! - [`worker`]: empties a queue, whichever of the two.
//! - [`outbound`]: the queue of messages. [`connector`]: what a channel must be able to do to be sent to, and which
//!   connector serves which account. [`bridge`]: the connector to an endpoint of the store's own choice. [`simulator`]: a
//!   connector that is no channel, for development, the demo and tests.
//! - [`webhooks`]: the queue of events, and the signed attempts.
//! - [`client`]: what posts both. [`guard`]: where nothing is delivered to.

pub mod bridge;
mod client;
pub mod connector;
pub mod guard;
pub mod outbound;
pub mod simulator;
#[cfg(test)]
mod testing;
pub mod webhooks;
pub mod worker;
