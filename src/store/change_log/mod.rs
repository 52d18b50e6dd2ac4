//! The change log: what the search index follows, and how long it is kept.

pub mod log;
pub mod retention;
