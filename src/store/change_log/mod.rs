//! The change log: what the search index follows, and how long it is kept.

pub mod log;
pub mod message_texts;
pub mod own_changes;
pub mod retention;

pub use own_changes::{Inserted, LoggedChange};
