//! Write transactions of two kinds. A transaction on one store ([`store_transaction`]) also writes events, the change log and idempotency
//! keys. A transaction of the server itself ([`system_transaction`]) belongs to no store.

pub mod store_transaction;
pub mod stored_response_retention;
pub mod system_transaction;
#[cfg(test)]
mod write_tests;
