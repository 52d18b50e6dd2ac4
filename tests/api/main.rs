//! End-to-end tests of the HTTP API with the built binary. The same tests run for both revisions of the API (A and B) and for both
//! databases.
//!
//! - [`client`] sends HTTP requests. [`contract`] checks every request and response against the published OpenAPI document.
//! - [`coverage`] checks which share of the operations, responses and properties in the OpenAPI documents occurred while the tests ran.
//! - [`harness`] starts and stops servers. [`delivery_receiver`] receives the deliveries of servers. [`fixture`] has the data of the
//!   stores. [`pagination_client`] reads lists page by page.
//! - [`writes`] has the tests of the operations that change something, each on a separate server. [`settings`] has the tests of the
//!   settings API, which has a separate OpenAPI document. [`assistant_tools`] has the tests of the assistant tools (MCP).
//! - The other modules test the operations that read, the commands, and rules of the whole server. Most of them share one server, on which
//!   they change nothing but API keys.
//!
//! `COUNTERPART_TEST_POSTGRES` names a PostgreSQL server, on which each server under test gets its database. Without this variable, each
//! server under test has a SQLite file.

/// Whether the binary under test was built for revision A, the older one. Where the revisions differ, the tests branch on this value.
const REV_A: bool = cfg!(feature = "rev-a");

mod client;
mod contract;
mod delivery_receiver;
mod fixture;
mod harness;
mod pagination_client;

mod accounts;
mod api_keys;
mod assistant_tools;
mod backup;
mod caching_compression_cors;
mod channel_bridges;
mod common_failures;
mod common_http_behaviour;
mod concurrent_and_reverted_migrations;
mod contacts;
mod conversations;
mod coverage;
mod early_responses;
mod encryption_at_rest;
mod expand;
mod fair_scheduling;
mod field_definitions;
mod fuzz;
mod internal_comments;
mod labels;
mod limits;
mod malformed_requests;
mod messages;
mod metrics;
mod one_store_per_statement;
mod openapi_documents;
mod pagination;
mod postgres_isolation_and_encoding;
mod request_log;
mod runbook;
mod scopes;
mod search;
mod search_edges;
mod settings;
mod statement_counts;
mod teams;
mod templates;
mod tenant_isolation;
mod ticket_field_filters;
mod ticket_filters;
mod tickets;
mod unusable_read_replica;
mod users;
mod webhooks;
mod writes;
