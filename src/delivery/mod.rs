//! Delivery workers: one sends outbound messages to channels, the other sends events to webhooks. Each takes its items from a queue in the
//! database, under leases (time-limited claims).
//!
//! Called by `app`. Calls `service`, which stores the queues, records the outcome of each attempt, and decides whether and when an attempt
//! is retried (`service::outbox_processing`, `service::webhooks`).
//! - [`worker`]: the queue worker that both queues share.
//! - [`outbound`]: the message queue. [`channel_connector`]: the interface of a channel adapter. [`channel_bridge`]: the connector to
//!   bridges, which are HTTP endpoints of the operator. [`channel_simulator`]: a fake connector for development, the demo and tests.
//! - [`webhooks`]: the event queue, and the signed requests that deliver its events.
//! - [`sign_in_mails`]: e-mails with links to the settings page, which need no queue in the database.
//! - [`signing_http_client`]: the HTTP client for requests to bridges and webhooks. [`ssrf_guard`]: its SSRF guard.

pub mod channel_bridge;
pub mod channel_connector;
pub mod channel_simulator;
pub mod outbound;
#[cfg(test)]
pub(crate) mod scripted_endpoints;
pub mod sign_in_mails;
mod signing_http_client;
pub mod ssrf_guard;
pub mod webhooks;
pub mod worker;
