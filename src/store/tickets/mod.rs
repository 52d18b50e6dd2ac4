//! Tickets: the list, its filters, and what makes filters fast.

pub mod bloom_signature;
pub mod broad_conditions;
pub mod counters;
pub mod driving_index;
pub mod filter;
#[cfg(test)]
mod labelled_tests;
pub mod list;
