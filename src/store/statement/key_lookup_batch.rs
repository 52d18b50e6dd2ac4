//! What a batch of key look-ups asks for and returns. The PostgreSQL driver batches them (`postgres::batched_lookup`).

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::Row;

use crate::{
    domain::ids::StoreId,
    store::{error::Error, postgres::batched_lookup::Gather},
};

/// The rows that were found, by their keys.
pub(in crate::store) type RowsByKey = std::result::Result<Arc<HashMap<String, Row>>, Arc<Error>>;

/// The batches of look-ups, by what is looked up and whether on the standby.
pub(in crate::store) type Gathered = Gather<(Sought, bool), RowsByKey>;

/// The rows to look up by a key. Their first column is the key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::store) enum Sought {
    /// Rows of a statement. This text of it ends where the list of keys follows.
    Listed(&'static str),
    /// Rows of a store, by their ids.
    Rows { store: StoreId, columns: &'static str, table: &'static str },
}
