//! What falls due.
