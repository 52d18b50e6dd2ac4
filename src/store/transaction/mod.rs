//! Write transactions: the transactions of requests, which carry events, change log and idempotency keys with them, and those of chores.

pub mod chore;
pub mod idempotency;
pub mod write;
#[cfg(test)]
mod write_tests;
