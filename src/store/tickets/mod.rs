//! Tickets: the paginated list, its filters, and the indexes, Bloom filters and counters that make them fast.

pub mod bloom_filters;
pub mod broad_condition_cache;
pub mod counters;
pub mod driving_index;
pub mod filter;
#[cfg(test)]
mod labelled_tickets_tests;
pub mod ticket_queries;
