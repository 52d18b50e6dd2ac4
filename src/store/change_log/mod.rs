//! The change log: a log of changed records, which the search index follows. The modules read it, and delete its old entries.

pub mod log;
pub mod message_texts;
pub mod own_changes;
pub mod retention;

pub use own_changes::{InsertedRecord, LoggedChange};
