//! The HTTP layer: the part of the contract's API that both revisions share, the settings API, and HTML pages. Its modules are listed
//! from the lowest layer to the highest. Of these modules, a module imports only those above it in this list (`tests/architecture` checks
//! this rule):
//!
//! - [`machinery`]: infrastructure that every operation uses.
//! - [`schemas`]: JSON types that several operations return or accept.
//! - [`operations`]: the operations of the contract, one file for each kind of record.
//! - [`document`]: the OpenAPI document of the contract.
//! - [`events`]: the JSON of events. A record in an event has the same JSON type as in the response of an operation.
//! - [`settings`]: the settings API, with an OpenAPI document of its own.
//! - [`pages`]: HTML pages for people: documentation, and the settings page.
//!
//! Called by `app`, which assembles the routes, by `cli`, by `assistant_tools` and by `revision`; calls `service`. What differs between the
//! revisions comes from the module `revision`, such as types from `wire` and values from `RULES`. Guarantees: every response of an
//! operation is an envelope (contract, section 2.1), the checks of a request run in a fixed order (our decisions, section 3), and each
//! OpenAPI document is generated from the handlers and types with which the server processes requests and writes events.
//!
//! The framework (poem-openapi) checks a request in the order of its handler's parameters: caller (401, 403), body (413, 415), query (400).
//! Then the handler checks the shape of the body (400, [`machinery::body::Body::parse`]), and the service checks the rest (404, 400, 409).

pub mod document;
pub mod events;
pub mod machinery;
pub mod operations;
pub mod pages;
pub mod schemas;
pub mod settings;
