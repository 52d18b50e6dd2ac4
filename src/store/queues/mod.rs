//! Outboxes of messages and webhook deliveries: entries are claimed for an attempt under a lease, within limits of concurrency.

pub mod backlog;
pub mod concurrency;
pub mod deliveries;
pub mod outbound;
pub mod undelivered_messages;
