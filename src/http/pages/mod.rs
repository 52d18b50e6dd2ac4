//! HTML pages, and downloads such as the OpenAPI documents.

pub mod api_reference;
pub mod changes;
pub mod home;
pub mod static_content;
