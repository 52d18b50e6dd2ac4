//! Write transactions: those of a request, which carry events, change log and idempotency with them, and those of chores.

pub mod chore;
pub mod idempotency;
pub mod write;
#[cfg(test)]
mod write_tests;
