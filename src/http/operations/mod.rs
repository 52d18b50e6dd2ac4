//! The operations of the public API, whose specification is called the contract. There is one file for each kind of record, with the schema
//! of the record in responses, and the handlers that read and write the record.

pub mod contacts;
pub mod conversations;
pub mod labels;
pub mod messages;
pub mod teams;
pub mod tickets;
pub mod users;
