//! Write transactions: those of requests, which carry events, change log and idempotency keys with them, and those of the server itself.

pub mod idempotency;
pub mod system_transaction;
pub mod write;
#[cfg(test)]
mod write_tests;
