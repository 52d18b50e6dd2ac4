//! Tickets: the paginated list, its filters, and the indexes, Bloom filters and counters that make them fast.

pub mod bloom_signature;
pub mod broad_conditions;
pub mod counters;
pub mod driving_index;
pub mod filter;
#[cfg(test)]
mod labelled_tests;
pub mod list;
