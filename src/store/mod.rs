//! The store: the data access layer, for SQLite and PostgreSQL, on SeaORM. It is the only layer that contains SQL.
//!
//! Guarantees: a request for one store (a tenant) never returns a row of another store. A page of a list costs a constant number of
//! statements. The layer returns the record types of `domain`, never its own row types.
//!
//! # Map
//!
//! A layer may use the layers above it in this table, never those below it. `tests/architecture/module_layers.rs` tests this.
//!
//! | Layer | Modules |
//! |---|---|
//! | basics | `entity` (every table), `parameterised_sql`, `sql_from_entities`, `stored_values`, `row_decoding`, `error`, `mutex`, `wait_limit`, … |
//! | drivers | `sqlite` (connections, group commit, checkpoint, file copy), `postgres` (connections, look-ups, transaction, TLS, standby) |
//! | database | `database_address`, `db` (open, close), `migrate`, `read_executor` (runs a read), `transaction` (runs a write), `database_health` |
//! | statements | `statement`: runs statements built from entities; builds the statements for pages and for look-ups by key |
//! | record types | all other modules: reads and writes of the record types, change log, change feed, import, export, back-up, sandbox |
//!
//! # Glossary
//!
//! - **Store** ([`StoreId`](crate::domain::ids::StoreId)): a tenant, whose id is in the column `store_id`. The name of this module has the
//!   other meaning, the data access layer.
//! - **Record type**, **noun**: a type of `domain` such as a ticket, a message or a contact.
//! - **Entity**: the SeaORM description of a table; `entity::schema_tests` compares each with the migrated table.
//! - **Group commit**: write transactions on a SQLite file share one commit. A **turn** (`GroupMember`) is the savepoint of one of them.
//! - **WAL**, **checkpoint**: SQLite's write-ahead log, and the copying of its pages into the database file.
//! - **Pipelining**: sending statements to PostgreSQL without waiting for earlier results. A **flight** is one pipelined batch.
//! - **Batched look-up** (`LookupBatcher`): look-ups of rows by key that wait at the same time share one statement.
//! - **Keyset page**: a page that begins after the sort values of a row, not at an offset.
//! - **As-of page** (`AsOf`): a keyset page in the order that its list had when the pagination began. For it, `former_places` contains the
//!   sort positions that rows had before they moved. `placed_by` and `left_by` identify the move to a position and the move away from it:
//!   by a transaction id on PostgreSQL, by a sequence number on SQLite.
//! - **Bloom filter**, **marks** (`BloomBits`, `label_marks`): bits stored with a ticket. A bit that is not set proves that the ticket
//!   lacks a value, so a statement with a **pre-filter** (`BloomPreFilter`) skips the ticket without a look-up.
//! - **Driving index** (`DrivingCondition`): the index that a filtered list is read from, which belongs to one condition of the filter.
//! - **Change log** (`changes`): a row for each changed record, which the search index follows up to a **log position** (`LogPosition`).
//! - **Change feed** (`record_changes`): the log of changed records of all kinds, which copies of a store follow.
//! - **Outbox** (`outbound`, `deliveries`): rows for messages or events that still have to be delivered.
//! - **Claim**, **lease**: a worker's reservation of an outbox entry, and the time at which the reservation expires.
//! - **Prune**: delete rows that are older than their retention time.
//! - **Idempotency key**: a client's name for a write; the response is stored and sent again when the client repeats the request.
//!
//! # How to
//!
//! - **Add a column**: a migration, which `migrations/src/lib.rs` names twice; the field in the entity; the field of the record type in
//!   `domain`; the column in the record type's list (`stored_record!`) or, if it has none, in its `columns` and `decode` and in the
//!   functions that write the row; the field of the API type in `revision`, and its line in the `From` below it. Then run the commands of
//!   `docs/contributing.md` that write the OpenAPI documents anew. A column of a ticket that requests do not change belongs in `NOT_SAVED`
//!   (`ticket_conversation_contact_writes`). If the column is exported and imported, also the field in `domain::ndjson_records` and its
//!   name in `ndjson_record_columns`: in the plain list if the column has the type of the field, otherwise under `optional` or `exported`,
//!   and in `import::row_mapping`. Rules for imported values are in `service::import::record_validation`.
//! - **Add a query**: an `impl Db` in the file of the record type (tickets: `tickets/ticket_queries.rs`), with `Entity::find()`. Pass it to
//!   [`Db::select`] if keys limit the rows that it reads, and otherwise to [`Db::scan`], which observes the limit on a store's statements.
//!   Compare a flag with `is(column, true)`: `.eq(true)` would bind the flag, and keep SQLite from using partial indexes. If each request
//!   runs the query: a `FixedQuery`, whose SQL is built once, run by [`Db::all`](read_executor). Test it in the same file with
//!   `fixture::Fixture`, which uses SQLite, or PostgreSQL with `COUNTERPART_TEST_POSTGRES`.
//! - **Add a write**: an `impl Write` in the file of the record type: `insert` or `update` with the columns that are set, or `execute`,
//!   which returns the number of changed rows, with `Entity::update_many()`, `delete_many()` or `insert(row).on_conflict(…)`. First lock
//!   the rows that decide what is written, in the order that `transaction::store_transaction` states.
//! - **Add a table**: a migration; an entity, which `entity/mod.rs` names as a module and in the macro; a record type in `domain`; a file
//!   with its `stored_record!`, queries and writes. For a Citus cluster, `SCALING.md` says where a table is: `distributed::distribute`
//!   names reference tables, tables without `store_id`, and tables whose primary key is `position`.

mod across_stores;
pub mod api_key_auth;
pub mod backup_and_restore;
pub mod change_feed;
pub mod change_feed_copy;
pub mod change_log;
mod channel_accounts;
mod contacts;
mod conversations;
mod database_address;
mod database_health;
mod db;
pub mod distributed;
pub mod entity;
mod error;
pub mod events;
pub mod export;
pub mod field_definitions;
#[cfg(test)]
pub(crate) mod fixture;
mod former_position_retention;
pub mod import;
mod last_failure;
#[cfg(test)]
mod list_tests;
mod message_writes;
mod messages;
mod migrate;
mod mutex;
mod ndjson_record_columns;
mod numbering;
#[cfg(test)]
mod page_cost_tests;
#[cfg(test)]
mod pagination_tests;
mod parameterised_sql;
mod postgres;
pub mod queues;
mod read_executor;
mod row_decoding;
pub mod sandbox_database;
pub mod searchable_records;
pub mod settings;
pub mod slow_statements;
mod sql_from_entities;
mod sqlite;
mod statement;
mod stored_values;
mod ticket_conversation_contact_writes;
mod tickets;
pub mod transaction;
mod users_teams_labels;
pub mod wait_limit;

pub use db::{Db, OnStatement, StatementLimit};
pub use error::{Error, Result};
pub(crate) use postgres::address::is_local_server;
pub use transaction::store_transaction::Write;
