//! What this process itself appends to the change log, with inserted messages whole, so that the search index need not read them back.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::domain::{
    ids::StoreId,
    search::{Noun, Searchable},
};

/// A change that was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedChange {
    /// In the log, which may tell of several records in one place.
    pub position: i64,
    pub store: StoreId,
    pub kind: String,
    pub id: String,
    /// What the record says, where this process has inserted it.
    pub inserted: Option<Inserted>,
}

/// A record that was not there before, as it was when its write was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    pub record: Searchable,
    /// See [`Db::own_epoch`].
    pub epoch: u64,
}

impl LoggedChange {
    /// The searchable record that changed, if it is one.
    pub fn noun(&self) -> Option<Noun> {
        match self.kind.as_str() {
            "message" => Some(Noun::Message),
            "contact" => Some(Noun::Contact),
            _ => None,
        }
    }
}

/// What this process changed and the search service has not asked for yet.
#[derive(Default)]
pub(in crate::store) struct Own {
    pub followed: AtomicBool,
    pub epoch: AtomicU64,
    pub changes: Mutex<Vec<LoggedChange>>,
}

/// Of how many changes that were not asked for yet the records are kept, too, and of how many bytes each at most: twenty megabytes where
/// the search service does not ask, as while an index is built.
const RECORDS_KEPT: usize = 10_000;
const RECORD_BYTES: usize = 2_000;

/// What a write notes of its changes: kind and id, and the record where it has inserted it.
pub(in crate::store) type Noted = BTreeMap<(&'static str, String), Option<Inserted>>;

impl Own {
    /// Called after the commit, before anybody learns of it.
    pub fn add(&self, store: &StoreId, positions: Vec<i64>, noted: Noted) {
        if !self.followed.load(Ordering::Acquire) {
            return;
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for (position, ((kind, id), inserted)) in positions.into_iter().zip(noted) {
            let inserted = inserted.filter(|_| changes.len() < RECORDS_KEPT);
            let logged = LoggedChange { position, store: store.clone(), kind: kind.to_owned(), id, inserted };
            if logged.noun().is_some() {
                changes.push(logged);
            }
        }
    }

    /// Whether a record of this many bytes is handed to the index in memory. The index reads longer ones from the database, outside of the
    /// writer's turn.
    pub fn tells(&self, bytes: usize) -> bool {
        self.followed.load(Ordering::Acquire) && bytes <= RECORD_BYTES
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}
