//! Infrastructure that all HTTP operations share: routing and middleware, authentication, bodies and parameters, pagination, responses and
//! errors, and the limits of connections and memory.
//!
//! Called by the other modules of `http`, and by `revision`, `app`, `cli` and `assistant_tools`. This module contains no operations. It
//! refers to a kind of record (such as labels) only in parameters and errors that belong to this kind.

pub mod auth;
pub mod body;
pub mod compression;
pub mod connection_timeouts;
pub mod context;
pub mod cors;
pub mod cursor;
pub mod data_attached_to_requests;
pub mod discard_unread_bodies;
pub mod envelope_schema;
pub mod error_responses;
pub mod expand_parameter;
pub mod fair_share;
pub mod idempotency;
pub mod json_schema_validation;
pub mod long_poll;
pub mod middleware;
pub mod paging;
pub mod params;
pub mod query_string;
pub mod rate_limits;
pub mod routing;
pub mod shared_state;
pub mod sign_in_link_requests;
pub mod success_responses;
pub mod unsent_response_limits;
