//! counterpart: the data API of a customer-support inbox, in two contract revisions over one data layer.
//!
//! The rooms, in the direction in which data flows:
//!
//! - [`domain`]: nouns, rules and time. Pure.
//! - [`store`]: the database, SQLite or PostgreSQL. The only room that knows SQL.
//! - [`service`]: use-cases.

pub mod domain;
pub mod service;
pub mod store;
