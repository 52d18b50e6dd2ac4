//! The schemas that several operations share: how values are spelled, related objects, field definitions, filters, and the inputs
//! that both revisions take.

pub mod field_definitions;
pub mod related_objects;
pub mod ticket_filters;
pub mod value_types;
pub mod write_inputs;
