//! The database: SeaORM entities and queries, each of which starts from a store. The only room that knows SQL.
//!
//! Called by `service`. Guarantees: another store's row is never returned, a page costs a constant number of
//! statements, and no row type leaves the room: what goes out are the nouns of `domain`.

pub mod access;
pub mod accounts;
pub mod audit;
mod begun;
pub mod bridges;
pub mod changelog;
mod changes;
pub mod connect;
pub mod contacts;
pub mod conversations;
mod copying;
pub mod entity;
pub mod error;
pub mod events;
pub mod export;
pub mod fields;
mod file_identity;
#[cfg(test)]
pub(crate) mod fixture;
pub mod forgetting;
mod gather;
mod idempotency;
pub mod import;
mod kept;
mod keys;
#[cfg(test)]
mod labelled_tests;
mod lines;
mod lock;
mod marks;
pub mod messages;
pub mod outbound;
mod postgres;
pub mod queue;
#[cfg(test)]
mod read_tests;
mod readers;
pub mod receive;
pub mod replica;
pub mod search;
mod secrets;
mod settings;
mod spots;
mod sql;
mod sqlite;
mod starts;
pub mod stores;
pub mod team;
mod ticket_filters;
pub mod tickets;
mod totals;
mod transaction;
#[cfg(test)]
mod visit_tests;
pub mod webhooks;
pub mod write;
mod write_probe;
#[cfg(test)]
mod write_tests;
mod writer;

pub use connect::{Db, OnStatement};
pub use error::{Error, Result};
pub(crate) use postgres::is_beside;
pub use write::Write;
