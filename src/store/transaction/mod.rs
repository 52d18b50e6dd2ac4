//! Write transactions of requests ([`mod@write`]), which also write events, the change log and idempotency keys, and write transactions of
//! the server itself ([`system_transaction`]).

pub mod store_transaction;
pub mod stored_response_retention;
pub mod system_transaction;
#[cfg(test)]
mod write_tests;
