//! Statements: built from entities, pages of lists, look-ups by a key.

pub mod by_key;
pub mod from_entities;
pub mod lookups;
pub mod pages;
#[cfg(test)]
mod visits;
