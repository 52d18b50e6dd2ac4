//! The operations of the public API, whose specification is called the contract. There is one file for each kind of record, with the
//! handlers that read and write the record. The file also has the response schema of the record, unless the schema differs between the
//! revisions A and B of the contract: such schemas are in [`crate::revision::wire`].

pub mod contacts;
pub mod conversations;
pub mod labels;
pub mod messages;
pub mod teams;
pub mod tickets;
pub mod users;
