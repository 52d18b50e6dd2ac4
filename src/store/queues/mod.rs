//! Outboxes: what is claimed for an attempt under a lease, and the limits of concurrent attempts.

pub mod backlog;
pub mod concurrency;
pub mod deliveries;
pub mod outbound;
pub mod undelivered;
