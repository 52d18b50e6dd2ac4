//! SQLite driver: connections, reader pool, group commit of the single writer, checkpoints, copies, checks of the files. This module does
//! not depend on any table of the schema.

pub mod checkpoint;
mod checkpoint_task;
pub mod connection;
pub mod file_identity;
pub mod foreign_wal_check;
pub mod group_commit;
pub mod per_thread_slots;
pub mod reader_pool;
pub mod snapshot_copy;
pub mod sqlite_ffi;
