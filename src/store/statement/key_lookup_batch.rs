//! Types of batched key look-ups: what a batch reads and returns. `postgres::batched_lookup` runs the batches.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::Row;

use crate::{
    domain::ids::StoreId,
    store::{error::Error, postgres::batched_lookup::LookupBatcher},
};

/// The rows that were found, by their keys.
pub(in crate::store) type RowsByKey = std::result::Result<Arc<HashMap<String, Row>>, Arc<Error>>;

/// Batches look-ups. Look-ups share a batch if they read from the same target and from the same server (`true`: the standby).
pub(in crate::store) type KeyLookupBatcher = LookupBatcher<(LookupTarget, bool), RowsByKey>;

/// The rows to look up by a key. Their first column is the key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::store) enum LookupTarget {
    /// Rows of a statement. The text is the statement up to the list of keys, which follows it.
    Listed(&'static str),
    /// Rows of a store, by their ids.
    Rows { store: StoreId, columns: &'static str, table: &'static str },
}
