//! The database: SeaORM entities and queries, each of which starts from a store. The only room that knows SQL.
//!
//! Called by `service`. Guarantees: another store's row is never returned, a page costs a constant number of
//! statements, and no row type leaves the room: what goes out are the nouns of `domain`.

pub mod access;
pub mod accounts;
pub mod connect;
pub mod contacts;
pub mod conversations;
pub mod entity;
pub mod error;
pub mod export;
pub mod fields;
pub mod import;
pub mod messages;
mod sql;
pub mod stores;
pub mod team;
pub mod tickets;

pub use connect::{Db, Tx};
pub use error::{Error, Result};
