//! PostgreSQL driver: connections, connection pool, pipelined clients, batched look-ups, transactions, advisory locks, TLS, reads from a
//! standby. This module does not depend on any table of the schema.

pub mod address;
pub mod advisory_locks;
pub mod batched_lookup;
pub mod connection;
pub mod pipelined_clients;
pub mod pool;
pub mod pooler_detection;
pub mod replica;
pub mod server;
pub mod sqlx_relay;
mod tls;
pub mod transaction;
