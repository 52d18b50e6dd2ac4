//! counterpart: the data API of a customer-support inbox, in two contract revisions over one data layer.
//!
//! The rooms, in the direction in which data flows:
//!
//! - [`domain`]: nouns, rules and time. Pure.
//! - [`store`]: the database, SQLite or PostgreSQL. The only room that knows SQL.
//! - [`service`]: use-cases, one file a noun.
//! - [`cli`]: the command line, over [`config`], the settings of the process.

pub mod cli;
pub mod config;
pub mod domain;
pub mod service;
pub mod store;
