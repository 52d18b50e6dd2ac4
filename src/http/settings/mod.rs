//! The settings API: the HTTP API with which a store's owners and admins manage what the public API has no operation for, such as API keys.
//! It has a separate path prefix and a separate OpenAPI document. There is one file for each kind of record. The code for bodies,
//! parameters, errors and the response envelope (the JSON object around `data`) is in `http::machinery`.
//!
//! `app` calls this module, and `cli` uses its OpenAPI document and the types that commands print. This module calls `service`. Guarantees:
//! - The settings API is the same in both revisions (A and B) of the public API. The records in events differ between the revisions, so the
//!   schema of an event permits any object as `data`. The property `requestReceivedAt` of responses is a date-time in both revisions.
//! - Every operation authenticates its caller, except the operations that open a session or send links by e-mail. Users who are neither
//!   owner nor admin are refused, and so are tokens without the grant (permission) of the operation.
//! - Every change of a record is recorded in the audit log, in the transaction that makes the change. An inbound message (a message from a
//!   contact) is not recorded in the audit log, but as an event.
//!
//! # How to add an operation
//!
//! 1. Write the handler in the file of its kind of record, in the `#[OpenApi]` block. Its first parameter is
//!    `GrantedRequest<required_grants::…>`, and its doc comment is its public documentation.
//! 2. A new group of operations (a new struct with an `#[OpenApi]` block) is registered in [`settings_operations`], in
//!    `openapi_document.rs`; a new tag goes to `openapi_tags.rs`.
//! 3. A new grant is added to `domain::token_grants::Grant`, and to `required_grants!` in `required_grants.rs`.
//! 4. Add an example request to `example_requests.json`, and to `refused_requests.json` a request for each error status that needs its own
//!    example. Record the responses (`example_responses.json`, `example_errors.json`): `cargo test --lib record_the_examples -- --ignored`.
//! 5. Add the operation to the table `OPERATIONS` in `tests/api/settings/token_grants.rs`, under its grant.
//! 6. Write the committed documents: `counterpart openapi --settings --output openapi/settings.json` and `counterpart openapi --settings
//!    --format routes --output openapi/settings.routes`.

mod audit;
mod auth;
mod change_feed;
mod channel_bridges;
mod clock;
mod credentials;
mod deliveries;
mod drafts;
mod event_feed;
mod inbound_auth;
mod inbound_messages;
mod keys;
mod next_after_header;
mod openapi_document;
mod openapi_tags;
mod params;
mod required_grants;
mod seats_and_account_access;
mod session;
mod unassign_snooze_handover;
mod undelivered_messages;
mod webhooks;

pub use channel_bridges::BridgeView;
pub use deliveries::AttemptView;
pub use keys::KeyView;
pub use openapi_document::{document, examples, settings_operations};
pub use webhooks::WebhookView;
