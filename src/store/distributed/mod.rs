//! A distributed database: PostgreSQL with the extension Citus, which spreads the stores over the nodes of a cluster. `SCALING.md` describes
//! how it is operated.
//!
//! A program connects to one node, the coordinator. Each store is on one node (the distribution column is `store_id`), so a statement for
//! one store runs on one node. Tables by which a request finds its store are on every node (reference tables).
//!
//! Transaction ids are the coordinator's, whichever node stores a row: cursors, the change log and the feed of changes compare them with
//! snapshots, and each node numbers its own transactions differently.
//! - A write transaction begins with a statement that sends the coordinator's id to the other nodes. The triggers on the nodes write that
//!   id.
//! - A statement that reads `pg_current_snapshot()` gets the snapshot of the coordinator as a bound value (`transaction_ids`).
//!
//! Why that is correct: a transaction that writes on one node commits there before it ends on the coordinator. So if it has ended in a
//! snapshot of the coordinator, every later statement on its node sees its changes. A transaction that writes on several nodes, such as
//! the creation of an API key or the removal of a user, becomes visible on them a moment later (two-phase commit). An import does so, too,
//! and logs its records again after its commit.

mod distribute;
mod stores;
mod transaction_ids;

pub use stores::{MovedStore, StoreNode};
