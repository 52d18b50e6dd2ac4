//! What is looked up by a key, and the batches of such look-ups.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::Row;

use crate::{
    domain::ids::StoreId,
    store::{error::Error, postgres::batched_lookup::Gather},
};

/// The rows that were found, by their keys.
pub(in crate::store) type RowsByKey = std::result::Result<Arc<HashMap<String, Row>>, Arc<Error>>;

/// What is looked up, and whether on the standby.
pub(in crate::store) type Gathered = Gather<(Sought, bool), RowsByKey>;

/// What is looked up by a key. Its first column is the key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::store) enum Sought {
    /// Rows that a statement finds which ends before its list of keys.
    Listed(&'static str),
    /// Rows of a store, by their ids.
    Rows { store: StoreId, columns: &'static str, table: &'static str },
}
