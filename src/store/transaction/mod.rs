//! Write transactions: of requests ([`mod@write`], with events, change log and idempotency keys), and of the server itself
//! ([`system_transaction`]).

pub mod stored_response_retention;
pub mod system_transaction;
pub mod write;
#[cfg(test)]
mod write_tests;
