//! The changes that this process itself appends to the change log. They carry inserted messages whole, so that the search index need not
//! read them back.

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
    /// The position in the log. One position may stand for several records.
    pub position: i64,
    pub store: StoreId,
    pub kind: String,
    pub id: String,
    /// The record, if this process has inserted it.
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

/// The changes of this process that the search service has not fetched yet.
#[derive(Default)]
pub(in crate::store) struct Own {
    pub followed: AtomicBool,
    pub epoch: AtomicU64,
    pub changes: Mutex<Vec<LoggedChange>>,
}

/// How many unfetched changes also keep their records, and how many bytes such a record has at most. That limits the memory to twenty
/// megabytes while the search service fetches nothing, as while an index is built.
const RECORDS_KEPT: usize = 10_000;
const RECORD_BYTES: usize = 2_000;

/// The changes of one write: kind and id, and the record if the write has inserted it.
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
