//! SQL statements: built from entities, keyset pages, as-of pages, look-ups by key.

pub mod as_of;
pub mod from_entities;
pub mod key_lookup;
pub mod key_lookup_batch;
pub mod pages;
#[cfg(test)]
mod visits;
