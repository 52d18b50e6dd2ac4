//! The HTTP layer: the API of the contract, as far as both revisions share it, the settings API, and HTML pages. Its layers, the lowest
//! first; a layer imports only from itself and from the layers above it in this list (`tests/architecture` checks this):
//!
//! - [`machinery`]: infrastructure that every operation uses.
//! - [`schemas`]: JSON types that several operations return or accept.
//! - [`operations`]: the operations of the contract, one file for each kind of record.
//! - [`document`]: the OpenAPI document of the contract.
//! - [`events`]: the JSON of events, with the record types of the operations.
//! - [`settings`]: the settings API, with an OpenAPI document of its own.
//! - [`pages`]: HTML pages for people: documentation, and the settings page.
//!
//! Called by `app`, which assembles it, and by `cli`; calls `service`. Everything that differs between the revisions comes from the module
//! `revision`: types from `wire`, values from `RULES`. Guarantees: every response is an envelope (contract, section 2.1), the checks run in
//! a fixed order (our decisions, section 3), and the OpenAPI document is generated from the handlers that serve the requests.
//!
//! The order of checks is the order of a handler's parameters: caller (401, 403), body (413, 415), query (400), then
//! the body's shape (400, [`machinery::body::Body::parse`]), then the service (404, 400, 409).

pub mod document;
pub mod events;
pub mod machinery;
pub mod operations;
pub mod pages;
pub mod schemas;
pub mod settings;
