//! Schemas of parts of requests and responses: value types, related objects, field definitions and ticket filters. `write_inputs` has those
//! bodies of write requests that are the same in both revisions (A and B) of the contract, the specification of the public API.

pub mod field_definitions;
pub mod related_objects;
pub mod ticket_filters;
pub mod value_types;
pub mod write_inputs;
