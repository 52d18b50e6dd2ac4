//! The change log: a log of changed records, which the search index follows. These modules read the log and delete its old entries; write
//! transactions append to it.

pub mod own_change_queue;
pub mod reader;
pub mod retention;
pub mod searchable_message;

pub use own_change_queue::{InsertedRecord, LoggedChange};
