//! SQL statements: runs statements that are built from entities, and builds the statements for pages of lists and for look-ups by key. The
//! pages of an as-of list have the order that the list had when the client read the first page.

pub mod as_of;
pub mod key_lookup;
pub mod key_lookup_types;
pub mod pages;
#[cfg(test)]
mod query_cost_for_tests;
mod run_entity_statements;
