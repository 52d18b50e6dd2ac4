//! Schemas that several operations share: value types, related objects, field definitions, ticket filters, and the write inputs that both
//! revisions accept.

pub mod field_definitions;
pub mod related_objects;
pub mod ticket_filters;
pub mod value_types;
pub mod write_inputs;
