//! A distributed database: PostgreSQL with the extension Citus, which spreads the stores over the nodes of a cluster.
//! `store/SCALING.md` describes how such a database is operated.
//!
//! A program connects to one node, the coordinator. Each store is on one node (the distribution column is `store_id`), so a statement for
//! one store runs on one node. Tables by which a request finds its store are on every node (reference tables).
//!
//! Every stored transaction id is an id of the coordinator, whichever node has the row. The reason: cursors, the change log and the change
//! feed compare these ids with snapshots, and each node numbers its own transactions differently.
//! - A write transaction begins with a statement that sends the coordinator's id to the other nodes. The triggers on the nodes write that
//!   id.
//! - A statement that reads `pg_current_snapshot()` gets the snapshot of the coordinator as a bound value (`coordinator_transaction_ids`).
//!
//! Why that is correct: a transaction that writes on one node commits there before it ends on the coordinator. So once a snapshot of the
//! coordinator shows the transaction as ended, every later statement on its node sees its changes. A transaction that writes on several
//! nodes, such as the creation of an API key or the removal of a user, becomes visible on them a moment later (two-phase commit). An import
//! is such a transaction, too. After its commit, its entries in the change log get a later transaction id, so that no reader of the log
//! misses them.

mod coordinator_transaction_ids;
mod distribute;
mod store_placement;

pub use store_placement::{MovedStore, StoreNode};
