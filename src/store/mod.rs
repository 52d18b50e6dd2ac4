//! The database: SeaORM entities and queries, each of which starts from a store. The only room that knows SQL.
//!
//! Called by `service`. Guarantees: another store's row is never returned, a page costs a constant number of
//! statements, and no row type leaves the room: what goes out are the nouns of `domain`.

mod accounts;
pub mod api_key_auth;
pub mod change_log;
mod contacts;
mod conversations;
mod db;
pub mod entity;
mod error;
pub mod events;
mod executor;
pub mod export;
pub mod fields;
#[cfg(test)]
pub(crate) mod fixture;
pub mod import;
mod inbound_rows;
mod lock;
mod messages;
mod postgres;
pub mod queues;
#[cfg(test)]
mod read_tests;
mod request_rows;
mod rows;
pub mod search;
pub mod settings;
mod sql;
mod sqlite;
mod statement;
mod team;
mod tickets;
pub mod transaction;
#[cfg(test)]
mod visit_tests;
mod write_health;

pub use db::{Db, OnStatement};
pub use error::{Error, Result};
pub(crate) use postgres::connection::is_beside;
pub use transaction::write::Write;
