//! The contract over HTTP: what both revisions share. Rooms, the lowest first; a room imports from itself and from those above it in
//! this list (`tests/architecture`):
//!
//! - [`machinery`]: what every operation uses.
//! - [`schemas`]: what several operations show or take.
//! - [`operations`]: one file a noun.
//! - [`document`]: the OpenAPI document.
//! - [`events`]: what subscribers read, in the shapes of the operations.
//! - [`settings`]: the settings plane, with a document of its own.
//! - [`pages`]: pages for people.
//!
//! Called by `app`, which assembles it, and by `cli`; calls `service`. Reaches what a revision spells differently through `revision`
//! only: shapes through `wire`, values through `RULES`. Guarantees: every answer is the envelope of section 2.1, the checks run in the order of
//! decisions, section 3, and the document is generated from the handlers that serve.
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
