//! HTML pages (documentation, API reference, settings page), and downloads such as the OpenAPI documents.

pub mod contract_changes;
pub mod guide_page;
pub mod guides;
pub mod home;
pub mod layout;
pub mod markdown;
pub mod reference;
mod schema_html;
pub mod settings_page;
pub mod static_content;
