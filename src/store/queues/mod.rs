//! Outboxes: what is claimed for an attempt under a lease, and the room that attempts have.

pub mod backlog;
pub mod concurrency;
pub mod deliveries;
pub mod outbound;
