//! What is known for a minute, by a hash of the statement that told it. Two statements that shared one would be taken for each
//! other, which 64 bits whose key nobody knows make as good as impossible.
//!
//! Called by `starts`, whose list is walked where few have something by now that many had, and `remembered`, which says itself how long
//! what it knows is true.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use super::{lock::lock, sql::Sql};

/// A statement, or a part of one, with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(u64);

pub(super) struct ForAMinute<T> {
    known: Mutex<HashMap<Name, (T, Instant)>>,
    finding_out: Mutex<HashMap<Name, Weak<Turn<()>>>>,
    hasher: RandomState,
}

const MINUTE: Duration = Duration::from_secs(60);
/// Of how many something is known.
const MOST: usize = 10_000;

impl<T> Default for ForAMinute<T> {
    fn default() -> Self {
        Self { known: Mutex::default(), finding_out: Mutex::default(), hasher: RandomState::new() }
    }
}

impl<T> ForAMinute<T> {
    pub fn name(&self, sql: &Sql) -> Name {
        Name(self.hasher.hash_one((sql.as_str(), sql.params())))
    }

    /// What `tell` makes of what is known.
    pub fn of<V>(&self, name: Name, tell: impl FnOnce(&T) -> Option<V>) -> Option<V> {
        let known = lock(&self.known);
        let (what, _) = known.get(&name).filter(|(_, since)| since.elapsed() < MINUTE)?;
        tell(what)
    }

    pub fn keep(&self, name: Name, what: T) {
        let mut known = lock(&self.known);
        if known.len() >= MOST && !known.contains_key(&name) {
            known.clear();
        }
        known.insert(name, (what, Instant::now()));
    }

    /// For whoever finds out what is not known: one at a time, so that those who come meanwhile may find it known.
    pub async fn turn(&self, name: Name) -> OwnedMutexGuard<()> {
        self.queue(name).lock_owned().await
    }

    fn queue(&self, name: Name) -> Arc<Turn<()>> {
        let mut queues = lock(&self.finding_out);
        if let Some(queue) = queues.get(&name).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::default();
        queues.insert(name, Arc::downgrade(&queue));
        queue
    }

    #[cfg(test)]
    pub fn let_a_minute_pass(&self) {
        lock(&self.known).values_mut().for_each(|(_, since)| *since -= MINUTE);
    }

    /// All that is known, of which nothing is left.
    #[cfg(test)]
    pub fn take(&self) -> HashMap<Name, (T, Instant)> {
        std::mem::take(&mut *lock(&self.known))
    }

    #[cfg(test)]
    pub fn put_back(&self, known: HashMap<Name, (T, Instant)>) {
        lock(&self.known).extend(known);
    }
}
