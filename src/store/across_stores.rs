//! Reads over all stores, for the background work of the server, such as finding messages that are due.
//!
//! In a distributed database (see `SCALING.md`) such a read needs every node. While a node does not answer, the server reads each store
//! separately, so that the stores on the other nodes are still served.

use sea_orm::{EntityTrait, QueryOrder, QuerySelect};

use crate::{
    domain::ids::StoreId,
    store::{Db, Result, entity::stores, row_decoding::Cells, sql_from_entities::ReadStatement},
};

impl Db {
    /// Runs a read over all stores: `query(None)`. If this read fails in a distributed database, reads each store separately with
    /// `query(Some(store))`, and leaves out the stores whose read fails. If every such read fails, returns the first error.
    pub(in crate::store) async fn across_stores<Q, T, D>(&self, query: impl Fn(Option<&StoreId>) -> Q, decode: D) -> Result<Vec<T>>
    where
        Q: ReadStatement,
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Clone + Send + 'static,
    {
        let error = match self.select(query(None), decode.clone()).await {
            Err(error) if self.is_distributed() => error,
            outcome => return outcome,
        };
        let (mut found, mut has_answered) = (Vec::new(), false);
        let stores = stores::Entity::find().select_only().column(stores::Column::Id).order_by_asc(stores::Column::Id);
        for store in self.select(stores, |cells| cells.take::<StoreId>()).await? {
            if let Ok(rows) = self.select(query(Some(&store)), decode.clone()).await {
                found.extend(rows);
                has_answered = true;
            }
        }
        if has_answered { Ok(found) } else { Err(error) }
    }
}
