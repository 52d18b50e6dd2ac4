//! Reads over all stores, for the background work of the server, such as finding messages that are due.
//!
//! In a distributed database (see `SCALING.md`) such a read needs every node. While a node does not answer, the server reads each store
//! separately, so that the stores on the other nodes are still served.

use sea_orm::{EntityTrait, QueryOrder, QuerySelect};

use crate::{
    domain::ids::StoreId,
    store::{Db, Result, entity::stores, parameterised_sql::Sql, row_decoding::Cells, sql_from_entities::IntoSql},
};

impl Db {
    /// Runs a read over all stores: `sql(None)`. If this read fails in a distributed database, reads each store separately with
    /// `sql(Some(store))`, and leaves out the stores whose read fails. If every such read fails, returns the first error.
    pub(in crate::store) async fn across_stores<S, T, D>(&self, sql: impl Fn(Option<&StoreId>) -> S, decode: D) -> Result<Vec<T>>
    where
        S: IntoSql,
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Clone + Send + 'static,
    {
        let error = match self.all(sql(None).into_sql(self.backend())?, decode.clone()).await {
            Err(error) if self.is_distributed() => error,
            outcome => return outcome,
        };
        let (mut found, mut has_answered) = (Vec::new(), false);
        let stores = stores::Entity::find().select_only().column(stores::Column::Id).order_by_asc(stores::Column::Id);
        for store in self.select(stores, |cells| cells.take::<StoreId>()).await? {
            if let Ok(rows) = self.all(sql(Some(&store)).into_sql(self.backend())?, decode.clone()).await {
                found.extend(rows);
                has_answered = true;
            }
        }
        if has_answered { Ok(found) } else { Err(error) }
    }
}

impl Sql {
    /// Appends the condition that `column` is the id of `store`. Appends nothing if `store` is `None`.
    pub(in crate::store) fn and_of_store(&mut self, column: &str, store: Option<&StoreId>) -> &mut Self {
        match store {
            Some(store) => self.push(" AND ").push(column).push(" = ").text(store.as_str()),
            None => self,
        }
    }
}
