//! A cache of filter conditions that many tickets fulfil.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use moka::sync::Cache;

use crate::store::parameterised_sql::Sql;

/// The cache. A condition stays in the cache for one minute. Meanwhile the module `driving_index`, which chooses the index of a ticket
/// list, does not count the tickets of this condition again. The key is a hash of the condition's SQL and parameters. If two conditions
/// have the same hash, the tickets of the second condition are not counted. The list is then scanned although an index could find the rows,
/// which costs more but returns the same rows.
#[derive(Clone)]
pub(in crate::store) struct BroadConditions(Cache<u64, ()>, RandomState);

impl Default for BroadConditions {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(60)).build(), RandomState::new())
    }
}

impl BroadConditions {
    /// Empties the cache, for tests.
    #[cfg(test)]
    pub fn clear(&self) {
        self.0.invalidate_all();
    }

    pub fn key(&self, sql: &Sql) -> u64 {
        self.1.hash_one((sql.as_str(), format!("{:?}", sql.params())))
    }

    pub fn contains(&self, key: u64) -> bool {
        self.0.contains_key(&key)
    }

    pub fn insert(&self, key: u64) {
        self.0.insert(key, ());
    }
}
