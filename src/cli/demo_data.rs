//! The demo store.
