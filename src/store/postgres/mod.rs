//! PostgreSQL driver: connections, connection pool, pipelined clients, batched look-ups, transactions, advisory locks, TLS, reads from a
//! standby. This module does not depend on any table of the schema.

pub mod address;
pub mod advisory_locks;
pub mod batched_lookup;
pub mod connect_to_primary;
pub mod pipelined_clients;
pub mod pipelined_connection;
pub mod pipelined_transaction;
pub mod pool;
pub mod pooler_detection;
pub mod replica;
pub mod sqlx_proxy;
mod tls;
