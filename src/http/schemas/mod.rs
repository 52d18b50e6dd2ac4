//! Schemas that several operations share: value types, related objects, field definitions, ticket filters, and those bodies of write
//! requests that are the same in both revisions of the contract (`write_inputs`).

pub mod field_definitions;
pub mod related_objects;
pub mod ticket_filters;
pub mod value_types;
pub mod write_inputs;
