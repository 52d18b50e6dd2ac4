//! Types of batched look-ups of rows by key: the look-ups of a batch share one statement. `postgres::batched_lookup` runs the batches.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::Row;

use crate::{
    domain::ids::StoreId,
    store::{error::Error, postgres::batched_lookup::LookupBatcher},
};

/// The result of a batch: the rows that were found, by their keys, or the error of the statement.
pub(in crate::store) type RowsByKey = std::result::Result<Arc<HashMap<String, Row>>, Arc<Error>>;

/// Collects look-ups into batches. Look-ups share a batch if they have the same target and read from the same server (the flag is `true`
/// for the standby).
pub(in crate::store) type KeyLookupBatcher = LookupBatcher<(LookupTarget, bool), RowsByKey>;

/// The rows in which a key is looked up. The first column of the rows is the key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::store) enum LookupTarget {
    /// The rows that a statement returns. The text is the beginning of the statement; the list of keys is appended to it.
    Listed(&'static str),
    /// The rows of a store in the table `table`, looked up by their ids.
    Rows { store: StoreId, columns: &'static str, table: &'static str },
}
