//! The HTTP API of a customer-support inbox. The specification of the API, called the contract, has two revisions, A and B. A build serves
//! one of them. The code of the use-cases and of the database layer is the same in both builds.
//!
//! The top-level modules (`tests/architecture` calls them rooms), the outermost first:
//!
//! - [`cli`] is the command line; [`config`] has the options that all commands share.
//! - [`app`] assembles the server from the other modules, serves requests, and starts the background tasks and the maintenance jobs.
//!   [`telemetry`] writes the log and the metrics; [`supervisor`] restarts background tasks; [`readiness`] reports whether the process can
//!   do its work.
//! - [`http`] implements what both revisions of the contract share, and [`revision`] what differs between them. Only [`revision`] selects
//!   the code of one revision by a Cargo feature.
//! - [`assistant_tools`] is a server of the Model Context Protocol (MCP) for AI assistants. Its tools call operations of [`http`].
//! - [`service`] implements the use-cases, one file per kind of record; files that end in `_writes` change records.
//! - [`delivery`] delivers messages to their channels, and events to webhooks.
//! - [`search`] is the full-text search of messages and contacts.
//! - [`store`] is the database layer, for SQLite and PostgreSQL: the only module that contains SQL, apart from tests.
//! - [`domain`] defines the kinds of records and their rules, and imports none of the other modules.
//!
//! "contract, section 4.3" in a comment cites the contract, a document that integrators have. Where the contract leaves a choice open,
//! `features.md` records under "Our decisions" what this project chose.

#![warn(clippy::unwrap_used, clippy::expect_used)]
// Output is written with `cli::print` and `cli::note`: `println!` and `eprintln!` panic if the output stream is closed.
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
