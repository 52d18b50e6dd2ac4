//! The OpenAPI document, generated from the handlers, and the operations under their whole paths.

pub mod contract;
pub mod examples;
pub mod merged_paths;
pub mod tags;
