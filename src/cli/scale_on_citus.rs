//! `counterpart scale`: spreads the stores of a PostgreSQL database over the nodes of a Citus cluster.

use clap::{Args, Subcommand};

use super::{CliResult, Failed, StoreArg, note, print};
use crate::{app::open, config::Config, domain::ids::StoreId};

#[derive(Debug, Subcommand)]
pub enum ScaleCommand {
    /// Distribute the tables over the nodes of a Citus cluster; stop every server first. Does nothing if they are distributed already
    Distribute,
    /// List every store and the node that has its records, one JSON object per line
    Status,
    /// Move a store's records to another node while servers run. Writes to the store, and to other stores in its shard, may wait meanwhile
    Move(MoveArgs),
}

#[derive(Args, Debug)]
pub struct MoveArgs {
    #[command(flatten)]
    store: StoreArg,
    /// The node to move to [default: the node with the fewest shards]
    #[arg(long, env = "COUNTERPART_TO", value_name = "HOST:PORT")]
    to: Option<String>,
}

impl ScaleCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let db = open(config).await?;
        match self {
            Self::Distribute => {
                let is_new = db.distribute().await?;
                note(if is_new { "The tables are distributed. Start the servers again." } else { "The tables are distributed already." });
            }
            Self::Status => {
                let stores = db.store_nodes().await?;
                let not_distributed = || Failed("the database is not distributed; all stores are on its one server".to_owned());
                for one in stores.ok_or_else(not_distributed)? {
                    let line = serde_json::json!({ "store": one.store, "node": one.node, "shard": one.shard, "alone": one.is_alone });
                    print(&line.to_string())?;
                }
            }
            Self::Move(MoveArgs { store, to }) => {
                let store = StoreId::from(store.store);
                match db.move_store(&store, to.as_deref()).await? {
                    Some(moved) => note(&format!("The store `{store}` moved from {} to {}.", moved.from, moved.to)),
                    None => note(&format!("The store `{store}` is on that node already.")),
                }
            }
        }
        Ok(db.close().await?)
    }
}
