//! The OpenAPI document, generated from the handlers, and the operations under their whole paths.

pub mod canonical;
pub mod components;
pub mod contract;
pub mod examples;
pub mod introduction;
mod links;
pub mod merged_paths;
pub mod openapi_3_1;
pub mod tags;
