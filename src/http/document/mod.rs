//! Generation of the OpenAPI documents: registers the operations of the API contract, adds examples, and post-processes the documents.

pub mod canonical_form;
pub mod components;
pub mod contract;
pub mod examples;
pub mod introduction;
mod links;
pub mod merged_paths;
pub mod openapi_3_1;
pub mod openapi_tags;
