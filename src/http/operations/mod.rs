//! The operations of the contract, one file per kind of record: the record's schema in responses, and the handlers that read and write it.

pub mod contacts;
pub mod conversations;
pub mod labels;
pub mod messages;
pub mod teams;
pub mod tickets;
pub mod users;
