//! Queues of outgoing messages and of webhook deliveries. A worker claims an entry for a limited time before it attempts to send the entry.
//! The number of concurrent attempts is limited.

pub mod backlog_metrics;
pub mod concurrency;
pub mod deliveries;
pub mod outbound;
pub mod undelivered_messages;
