//! The OpenAPI document, generated from the handlers.

pub mod contract;
pub mod examples;
pub mod merged_paths;
