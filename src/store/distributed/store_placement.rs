//! Where the stores of a distributed database are, and moving a store to another node.

use crate::{
    domain::ids::StoreId,
    store::{
        Db, Error, Result,
        parameterised_sql::{Param, Sql},
    },
};

/// A store of a distributed database, and the node that has its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreNode {
    pub store: StoreId,
    /// The host and port of the node.
    pub node: String,
    /// The id of the shard of `tickets` that has the store's tickets. Shards of other tables with the same stores are on the same node.
    pub shard: i64,
    /// Whether no other store is in this shard.
    pub is_alone: bool,
}

/// Where a store was moved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedStore {
    pub from: String,
    pub to: String,
}

const STORES: &str = "SELECT x.id, x.shard, CONCAT(n.nodename, ':', n.nodeport), COUNT(*) OVER (PARTITION BY x.shard) = 1 \
     FROM (SELECT id, get_shard_id_for_distribution_column('tickets', id) AS shard FROM stores) x \
     JOIN pg_dist_placement p ON p.shardid = x.shard JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary' \
     ORDER BY x.id";

/// The nodes that may have stores, those with the fewest shards first.
const NODES: &str = "SELECT CONCAT(n.nodename, ':', n.nodeport) FROM pg_dist_node n LEFT JOIN pg_dist_placement p ON p.groupid = n.groupid \
     WHERE n.shouldhaveshards AND n.isactive AND n.noderole = 'primary' GROUP BY 1 ORDER BY COUNT(p.placementid), 1";

impl Db {
    /// Returns where each store is, in the order of store ids. `None`: the database is not distributed.
    pub async fn store_nodes(&self) -> Result<Option<Vec<StoreNode>>> {
        if !self.is_distributed() {
            return Ok(None);
        }
        let stores = self.all(Sql::fixed(STORES), |cells| {
            Ok(StoreNode { store: cells.take()?, shard: cells.take()?, node: cells.take()?, is_alone: cells.take()? })
        });
        Ok(Some(stores.await?))
    }

    /// Moves a store to the node `to` (host and port), or to the other node with the fewest shards. If the store shares its shard with
    /// other stores, Citus first gives it a shard of its own; meanwhile the writes of all stores in the old shard wait. Then Citus moves
    /// the shard. The store's writes wait while the last changes are copied. Returns `None` if the store is on the node `to` already.
    pub async fn move_store(&self, store: &StoreId, to: Option<&str>) -> Result<Option<MovedStore>> {
        let unusable = |reason: String| Err(Error::Unusable(reason));
        let Some(stores) = self.store_nodes().await? else {
            return unusable("the database is not distributed; run `counterpart scale distribute` first".to_owned());
        };
        let Some(from) = stores.into_iter().find(|one| one.store == *store) else {
            return unusable(format!("there is no store `{store}`"));
        };
        let nodes: Vec<String> = self.all(Sql::fixed(NODES), |cells| cells.take()).await?;
        let to = match to {
            Some(to) if nodes.iter().any(|node| node == to) => to.to_owned(),
            Some(to) => return unusable(format!("no node `{to}` takes stores; the nodes are {}", nodes.join(", "))),
            None => match nodes.iter().find(|node| **node != from.node) {
                Some(node) => node.clone(),
                None => return unusable("the cluster has no other node that takes stores".to_owned()),
            },
        };
        if to == from.node {
            return Ok(None);
        }
        let connection = self.connect_alone().await?;
        let shard = if from.is_alone {
            from.shard
        } else {
            let isolate = "SELECT isolate_tenant_to_new_shard('tickets', $1::text, 'CASCADE', 'block_writes')";
            let rows = connection.rows(&Sql::fixed(isolate).with(Param::Text(store.to_string()))).await?;
            rows.first().map_or(Ok(from.shard), |row| row.try_get(0))?
        };
        let [source, target] = [&from.node, &to].map(|node| node.rsplit_once(':').unwrap_or((node, "")));
        let mut sql = Sql::fixed("SELECT citus_move_shard_placement(");
        sql.integer(shard);
        for (host, port) in [source, target] {
            let port = port.parse().map_err(|_| Error::Damaged(format!("`{port}` is no port of a node")))?;
            sql.push(", ").text(host).push("::text, ").integer(port).push("::bigint::integer");
        }
        sql.push(", 'force_logical')::text");
        connection.rows(&sql).await?;
        connection.close().await;
        Ok(Some(MovedStore { from: from.node, to }))
    }
}
