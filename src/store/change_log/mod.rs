//! The change log: a log of changed records, which the search index follows. These modules read the log and delete its old entries; write
//! transactions append to it.

pub mod log;
pub mod message_texts;
pub mod own_changes;
pub mod retention;

pub use own_changes::{InsertedRecord, LoggedChange};
