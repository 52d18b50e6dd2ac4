//! Pages for people, and the downloads beside them.

pub mod api_reference;
pub mod changes;
pub mod home;
pub mod static_content;
