//! The change log: a log of changed records, which the search index follows. Reading it, and its retention.

pub mod log;
pub mod message_texts;
pub mod own_changes;
pub mod retention;

pub use own_changes::{InsertedRecord, LoggedChange};
