//! The store: one data layer on SeaORM, for SQLite and PostgreSQL. The only room that knows SQL.
//!
//! Guarantees: a row of another store is never returned; a page costs a constant number of statements; no row type leaves the room, only
//! the nouns of `domain`.
//!
//! # Map
//!
//! Each line may use those above it, never those below (`tests/architecture/rooms.rs` holds that).
//!
//! | Layer | Modules |
//! |---|---|
//! | basics | `error`, `lock`, `limits`, `last_failure`, `sql` (a text and its values), `rows` (cells of a result), `entity` (every table) |
//! | drivers | `sqlite` (connection, reader pool, group commit, checkpoint, copies), `postgres` (connection, pool, pipelined clients, batched look-ups, transaction, TLS, standby) |
//! | database | `db` (open, close), `migrate`, `executor` (runs a read), `transaction` (runs a write), `write_health` |
//! | statements | `statement`: from entities, pages, look-ups by key |
//! | nouns | everything else, a file or a folder a noun, reads and writes together |
//!
//! # Glossary
//!
//! - **Entity**: the SeaORM description of a table; `entity::schema_tests` compares each with the migrated table.
//! - **Group commit**: writers of a SQLite file take turns in one transaction and share its commit.
//! - **WAL**, **checkpoint**: SQLite's write-ahead log, and copying it into the file.
//! - **Pipelining**: statements leave on a connection to PostgreSQL without waiting for earlier answers. A **flight** is such a sequence.
//! - **Batched look-up**: requests for rows by key that wait at the same time share one statement.
//! - **Keyset page**: a page that begins behind the sort values of a row, not at an offset.
//! - **As-of page**: a keyset page in the order that its list had when the walk over it began.
//! - **Bloom filter**: bits beside a ticket that prove that it lacks a label or a value.
//! - **Driving index**: the index that a filtered list is read from.
//! - **Change log**: a row for each changed record, which the search index follows.
//! - **Change feed**: the log of changed records of all kinds, which copies of a store follow.
//! - **Outbox**: rows for messages or events that still have to be delivered. A **lease** is a claim that ends by itself.
//! - **Idempotency key**: a client's name for a write; the answer is kept and repeated.
//! - **Hold**: lock a row until the end of the transaction (`FOR NO KEY UPDATE`); SQLite's one writer holds all rows.
//!
//! # How to
//!
//! - **Add a column**: a migration; the field in the entity; the member of the noun in `domain`; its line in the noun's `COLUMNS` and
//!   `decode` where requests read it, and in the functions that write the row; the member of the wire type in `revision`.
//! - **Add a query**: an `impl Db` in the noun's file, with `Entity::find()` on [`Db::read`] where it is cold. Where each request runs it,
//!   an `Sql` of fixed shape, run by [`Db::all`](executor).
//! - **Add a write**: an `impl Write` in the noun's file: `insert` or `update` with the columns that are set, or `execute` with
//!   `Entity::update_many()` or `delete_many()`. Rows that decide are held first, in the order that `transaction::write` gives.
//! - **Add a table**: a migration; an entity, which the macro in `entity/mod.rs` lists; its removal with the store.

mod accounts;
pub mod api_key_auth;
pub mod backup;
pub mod change_feed;
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
mod former_places;
pub mod import;
mod inbound_rows;
mod last_failure;
mod limits;
mod lock;
mod messages;
mod migrate;
mod postgres;
pub mod queues;
#[cfg(test)]
mod read_tests;
pub mod record_copy;
mod request_rows;
mod rows;
pub mod sandbox;
pub mod searchable_records;
pub mod settings;
pub mod slow_statements;
mod sql;
mod sqlite;
mod statement;
mod team;
mod tickets;
pub mod transaction;
#[cfg(test)]
mod visit_tests;
#[cfg(test)]
mod walk_tests;
mod write_health;

pub use db::{Db, OnStatement, Share};
pub use error::{Error, Result};
pub(crate) use postgres::connection::is_beside;
pub use transaction::write::Write;
