//! PostgreSQL: connections and their pool, pipelined clients, batched look-ups, transactions, TLS, a standby. Knows no table.

pub mod advisory_locks;
pub mod batched_lookup;
pub mod connection;
pub mod pipelined_clients;
pub mod pool;
pub mod relay;
pub mod replica;
mod tls;
pub mod transaction;
