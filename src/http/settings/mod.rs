//! The settings plane: what a store's owners and admins change that the contract has no operation for, under a prefix and
//! a document of their own (decisions, sections 1, 6 and 7). One file a noun, as in `operations`; it shares
//! `machinery`: bodies, parameters, envelope, failures.
//!
//! Called by `app`; calls `service`. Guarantees: the same in both revisions (an event's `data` is free-form here, and the
//! envelope's arrival time is always a date-time); every operation but the one that opens a session knows who asks, and
//! refuses users who are neither owner nor admin; every change is written down in the transaction that makes it.

mod audit;
mod auth;
mod bridges;
mod document;
mod events;
mod inbox;
mod keys;
pub mod page;
mod params;
mod session;
mod tags;
mod team;
mod webhooks;

pub use bridges::BridgeView;
pub use document::{docs, document, examples, plane};
pub use keys::KeyView;
pub use session::LINK_FRAGMENT;
pub use webhooks::{AttemptView, WebhookView};
