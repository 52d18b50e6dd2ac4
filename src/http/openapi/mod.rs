//! Generation of the OpenAPI documents: registers the operations of the API contract, adds examples, and post-processes the documents.

pub mod components;
pub mod contract_document;
pub mod document_post_processing;
pub mod examples;
pub mod introduction;
pub mod merged_paths;
pub mod openapi_3_1;
mod openapi_links;
pub mod openapi_tags;
