//! counterpart: the data API of a customer-support inbox, in two contract revisions over one data layer.
//!
//! The rooms, in the direction in which data flows:
//!
//! - [`cli`] is the command line, over [`config`], the settings of the process.
//! - [`app`] puts everything together and serves it; [`telemetry`] logs and counts; [`supervisor`] restarts background tasks;
//!   [`readiness`] is whether the process can do its work.
//! - [`http`] is the contract as both revisions share it; [`revision`] is what they do not share, and the only place
//!   that knows which one this build serves.
//! - [`service`] holds the use-cases, one file a noun.
//! - [`delivery`] hands messages to their channels, and events to those who subscribed to them.
//! - [`search`] finds messages and contacts by what is in them.
//! - [`store`] is the database, SQLite or PostgreSQL: the only room that knows SQL.
//! - [`domain`] holds the nouns and their rules, and knows none of the others.
//!
//! Comments name a section of the contract as "section 4.3", and what we decided where it is silent as "decisions, section 6". The first
//! is the specification that integrators hold; what the second came to stands in `features.md`, "Our decisions".

#![warn(clippy::unwrap_used, clippy::expect_used)]
// These macros panic where the stream cannot be written: `cli::print` and `cli::note` do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod app;
pub mod cli;
pub mod config;
pub mod delivery;
pub mod domain;
pub mod http;
pub mod readiness;
pub mod revision;
pub mod search;
pub mod service;
pub mod store;
pub mod supervisor;
pub mod telemetry;
