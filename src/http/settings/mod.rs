//! The settings plane: the HTTP API with which a store's owners and admins manage what the contract has no operation for. It has a separate
//! path prefix and a separate OpenAPI document (decisions, sections 1, 6 and 7). There is one file for each noun, as in `operations`.
//! Bodies, parameters, envelope and failures come from `machinery`.
//!
//! Called by `app`; calls `service`. Guarantees:
//! - The plane is the same in both revisions: an event's `data` is free-form here, and `requestReceivedAt` is always a date-time.
//! - Every operation authenticates its caller, except those that open a session and send links by e-mail. Users who are neither owner nor
//!   admin are refused, and so are tokens without the grant of the operation.
//! - Every change is recorded in the audit log, in the transaction that makes the change. Inbound messages are no changes: they are
//!   recorded as events.

mod audit;
mod auth;
mod bridges;
mod changes;
mod clock;
mod credentials;
mod deliveries;
mod drafts;
mod events;
mod feeds;
mod grants;
mod inbound_caller;
mod inbox;
mod keys;
mod openapi_document;
mod params;
mod seats_and_access;
mod session;
mod tags;
mod undelivered;
mod webhooks;

pub use bridges::BridgeView;
pub use deliveries::AttemptView;
pub use keys::KeyView;
pub use openapi_document::{document, examples, plane};
pub use webhooks::WebhookView;
