//! The `/v1` contract over HTTP: what both revisions share. One file a noun (inputs, views, handlers), beside the
//! machinery that every operation uses.
//!
//! Called by `app`, which assembles it; calls `service`. Reaches what a revision spells differently through
//! `revision::wire` only. Guarantees: every answer is the envelope of section 2.1, the checks run in the order of
//! decisions, section 3, and the document is generated from the handlers that serve.
//!
//! The order of checks is the order of a handler's parameters: caller (401, 403), body (413, 415), query (400), then
//! the body's shape (400, [`body::Body::parse`]), then the service (404, 400, 409).

pub mod api;
pub mod auth;
pub mod body;
pub mod changes;
pub mod contacts;
pub mod context;
pub mod conversations;
pub mod cors;
pub mod cursor;
pub mod docs;
pub mod document;
pub mod download;
pub mod edge;
pub mod encoding;
pub mod error;
pub mod events;
pub mod examples;
pub mod expand;
pub mod fields;
pub mod filters;
pub mod home;
pub mod inputs;
pub mod labels;
pub mod merged;
pub mod messages;
pub mod operations;
pub mod paging;
pub mod params;
pub mod rate;
pub mod related;
pub mod reply;
pub mod rest;
pub mod settings;
pub mod shape;
pub mod slow;
pub mod teams;
pub mod tickets;
pub mod turns;
pub mod under_way;
pub mod users;
pub mod values;
pub mod writes;
pub mod writing;
