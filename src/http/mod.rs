//! The HTTP layer: the public API, the settings API, and HTML pages.
//!
//! The specification of the public API is called the contract. It has two revisions, A and B, and a build of this program serves one of
//! them. This module has the part that both revisions share. What differs comes from the module `revision`: types from `revision::wire`,
//! and values from `revision::RULES`.
//!
//! The modules, from the lowest layer to the highest. A module imports only modules that stand before it in this list (`tests/architecture`
//! checks this).
//!
//! - [`machinery`]: infrastructure that every operation uses.
//! - [`schemas`]: JSON types that several operations return or accept.
//! - [`operations`]: the operations of the contract, one file for each kind of record.
//! - [`openapi`]: the OpenAPI document of the contract.
//! - [`events`]: the JSON of events. A record in an event has the same JSON type as in the response of an operation.
//! - [`settings`]: the settings API, with an OpenAPI document of its own.
//! - [`pages`]: HTML pages for people: documentation, and the settings page.
//!
//! `app` calls this module to assemble the routes; `cli`, `assistant_tools` and `revision` also call it. This module calls `service`.
//!
//! Guarantees:
//! - Every response of an operation is an envelope: a JSON object with the request id and with `data` or `error` (contract, section 2.1).
//! - The checks of a request run in a fixed order. The framework (poem-openapi) makes the first checks in the
//!   order of the handler's parameters: caller (401, 403), body (413, 415), query (400). Then the handler checks the shape of the body
//!   (400, [`machinery::body::Body::parse`]), and the service checks the rest (404, 400, 409).
//! - Each OpenAPI document is generated from the handlers and types with which the server processes requests and writes events.

pub mod events;
pub mod machinery;
pub mod openapi;
pub mod operations;
pub mod pages;
pub mod schemas;
pub mod settings;
