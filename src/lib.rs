//! counterpart: the data API of a customer-support inbox, in two contract revisions over one data layer.
//!
//! The top-level modules (`tests/architecture` calls them rooms), in the direction in which data flows:
//!
//! - [`cli`] is the command line; [`config`] has the options that all commands share.
//! - [`app`] assembles the parts, serves requests, and starts the background tasks and the maintenance jobs; [`telemetry`] logs and counts;
//!   [`supervisor`] restarts background tasks; [`readiness`] reports whether the process can do its work.
//! - [`http`] is the part of the contract that both revisions share; [`revision`] is the part in which they differ, and the only module
//!   in which a Cargo feature selects the code of one revision.
//! - [`assistant_tools`] serves assistants: each tool calls operations of [`http`].
//! - [`service`] implements the use-cases, one file per kind of record; files that end in `_writes` change records.
//! - [`delivery`] delivers messages to their channels, and events to webhooks.
//! - [`search`] is the full-text search of messages and contacts.
//! - [`store`] is the database layer, for SQLite and PostgreSQL: the only module that contains SQL, apart from tests.
//! - [`domain`] defines the kinds of records and their rules, and imports none of the other modules.
//!
//! "contract, section 4.3" in a comment cites the specification that integrators have. "our decisions, section 6" cites a decision of ours
//! about a point on which the contract is silent; `features.md`, "Our decisions", lists the results of these decisions.

#![warn(clippy::unwrap_used, clippy::expect_used)]
// `println!` and `eprintln!` panic if the stream cannot be written; `cli::print` and `cli::note` do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod app;
pub mod assistant_tools;
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
