//! In-memory queue of the entries that this process appends to the change log, the log of changed records that the search index follows. An
//! entry for an inserted message may contain the message itself, so that the search index need not read it from the database.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::domain::{
    ids::StoreId,
    search::{Searchable, SearchableKind},
};

/// A change that was appended to the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedChange {
    /// The position of the change's entry in the change log. Changes of several records may share an entry.
    pub position: i64,
    pub store: StoreId,
    pub kind: String,
    pub id: String,
    /// The record itself, if this process has inserted it and kept it in memory.
    pub inserted: Option<InsertedRecord>,
}

/// A newly inserted record, as its write committed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertedRecord {
    pub record: Searchable,
    /// The value of [`Db::own_epoch`](crate::store::Db::own_epoch) when the write began.
    pub epoch: u64,
}

impl LoggedChange {
    /// Returns the kind of the record that changed, if records of that kind are searchable.
    pub fn noun(&self) -> Option<SearchableKind> {
        match self.kind.as_str() {
            "message" => Some(SearchableKind::Message),
            "contact" => Some(SearchableKind::Contact),
            _ => None,
        }
    }
}

/// The queue of this process's changes that the search service has not fetched yet. It stays empty until the search service sets
/// `followed`.
#[derive(Default)]
pub(in crate::store) struct OwnChangeQueue {
    pub followed: AtomicBool,
    pub epoch: AtomicU64,
    pub changes: Mutex<Vec<LoggedChange>>,
}

/// How many queued changes keep their records, and the most bytes of such a record. Together these limit the memory for records to twenty
/// megabytes while the search service fetches nothing, for example while it builds an index.
const RECORDS_KEPT: usize = 10_000;
const RECORD_BYTES: usize = 2_000;

/// The changes of one write: kind and id of each record, and the record itself if the write inserted it and keeps it for the search index.
pub(in crate::store) type WriteChangeLog = BTreeMap<(&'static str, String), Option<InsertedRecord>>;

impl OwnChangeQueue {
    /// Adds the changes of a write to the queue. Called after the commit and before the request is acknowledged, so that a search after the
    /// acknowledgement finds the changed records.
    pub fn add(&self, store: &StoreId, positions: Vec<i64>, noted: WriteChangeLog) {
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

    /// Returns whether a record of this many bytes is passed to the search index in memory. The index reads longer records from the
    /// database, since copying them would lengthen the write.
    pub fn tells(&self, bytes: usize) -> bool {
        self.followed.load(Ordering::Acquire) && bytes <= RECORD_BYTES
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}
