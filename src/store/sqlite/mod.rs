//! SQLite: connections, the reader pool, the group commit of the one writer, the checkpoint, copies. Knows no table.

pub mod checkpoint;
mod checkpoint_task;
pub mod connection;
pub mod copy;
pub mod file_identity;
pub mod group_commit;
pub mod library;
pub mod reader_pool;
pub mod reader_slots;
pub mod stale_files;
