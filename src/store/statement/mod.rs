//! Statements: built from entities, pages of lists, look-ups by a key.

pub mod as_of;
pub mod from_entities;
pub mod key_lookup;
pub mod key_lookup_batch;
pub mod pages;
#[cfg(test)]
mod visits;
