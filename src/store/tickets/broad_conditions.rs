//! A cache of filter conditions that many tickets fulfil.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use moka::sync::Cache;

use crate::store::sql::Sql;

/// A cache of conditions that many tickets fulfilled within the last minute, keyed by a hash of their statement and its values. If two
/// statements shared a hash, the only harm would be that a list is walked although an index could find it.
#[derive(Clone)]
pub(in crate::store) struct BroadConditions(Cache<u64, ()>, RandomState);

impl Default for BroadConditions {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(60)).build(), RandomState::new())
    }
}

impl BroadConditions {
    /// Forgets all, for tests.
    #[cfg(test)]
    pub fn clear(&self) {
        self.0.invalidate_all();
    }

    pub fn key(&self, sql: &Sql) -> u64 {
        self.1.hash_one((sql.as_str(), sql.params()))
    }

    pub fn contains(&self, key: u64) -> bool {
        self.0.contains_key(&key)
    }

    pub fn insert(&self, key: u64) {
        self.0.insert(key, ());
    }
}
