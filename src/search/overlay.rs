//! In-memory overlay of the index (memtable): the records that changed since the last commit of the index.
//!
//! Called by `search_service`, for each search and in its background worker. The change log, a table of the database, lists the changes of
//! all processes. A search first reads the new entries of the log, so the search sees every write that was acknowledged before it.
//! Concurrent searches share one read of the log (single flight). When very many entries are new, as after an import, only the worker reads
//! the log, and applies the changes in batches of [`TEXTS_PER_STATEMENT`]. A search then does not read the log, and waits for at most one
//! batch (and one page of the log).
//!
//! In a distributed database the log is spread over the nodes. While one of them is unreachable, each search reads the log of its own store
//! only, so searches of the stores on other nodes go on. The worker keeps trying to read the whole log, and then continues from its former
//! position.
//!
//! A search that does not read the log still sees the commits of this process, since `store` also passes each commit to the overlay in
//! memory. For an inserted message, `store` passes the content, too. So the overlay need not read the message from the database, nor look
//! for an older state of the message in the index.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex as Queue, Notify, RwLock as AsyncRwLock},
    time::timeout,
};

use super::{
    Error, Result,
    index::{RecordKey, text},
    index_build::{blocking, unpanicked},
    record_terms::Terms,
    searcher::{IndexSnapshot, OverlayRecord},
};
use crate::{
    domain::{
        ids::StoreId,
        search::{Searchable, SearchableKind},
    },
    store::{
        self, Db,
        change_log::{
            InsertedRecord, LoggedChange,
            reader::{ChangesSince, LogPosition, RETITLED},
        },
    },
};

/// The approximate capacity of the overlay, in records and in bytes of text.
const OVERLAY_MAX_RECORDS: usize = 1000;
const OVERLAY_MAX_BYTES: usize = 64 * 1024 * 1024;
/// The limit of entries of the change log that one read returns. An entry may name several records.
pub const MAX_LOG_ENTRIES_PER_READ: i64 = 500;
/// The limit of changed records that one read passes to the overlay. If a read has more changed records, or does not reach the end of the
/// log, the worker writes its records directly to the disk (see [`is_bulk`]).
pub const MAX_CHANGES_PER_READ: usize = 500;
/// The limit of records whose texts one SQL statement reads. The limit is small, since a text may be a megabyte long.
pub const TEXTS_PER_STATEMENT: usize = 100;
/// Up to this many bytes of text are analysed on the caller's thread. More text is analysed on another thread, where it delays no
/// request.
const INLINE_ANALYSIS_BYTES: usize = 16 * 1024;
/// The limit of log positions in [`ChangeLogProgress::ahead`].
const MAX_POSITIONS_AHEAD: usize = 20_000;
/// The error text for a log position from which the reader of the change log cannot continue.
pub const UNKNOWN_POSITION: &str =
    "either the database was restored to an older state, or it was not followed for so long that its change log was pruned";
/// The time-out of a database read. A lock is held during the read, and other searches wait for the lock.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The overlay of this process, and the state of its reader of the change log.
pub struct SearchOverlay {
    pub db: Db,
    /// The index with its overlay; `None` while no index is open, for example during its build.
    pub view: RwLock<Option<Arc<IndexSnapshot>>>,
    pub followed: Queue<ChangeLogProgress>,
    /// A search that reads the log of its store holds this lock shared. The worker holds it exclusively while it applies the log of all
    /// stores. Both read records first and put them into the overlay later, so without the lock one of them could put an older state of a
    /// record over a newer one. The lock is taken before `followed`.
    pub by_store_searches: AsyncRwLock<()>,
    /// How many searches have requested a read of the change log; also the number of the newest request.
    asked: AtomicU64,
    /// Wakes the worker: when the overlay is full, when very many changes are pending, or when the index is damaged.
    pub wake: Notify,
}

/// How much of the change log this process has applied.
#[derive(Default)]
pub struct ChangeLogProgress {
    /// The position in the change log up to which all changes are in the overlay or in the index. The index may not have committed them
    /// yet.
    pub log_position: LogPosition,
    /// Changes of this process that have not been applied yet.
    own: Vec<LoggedChange>,
    /// The log positions, after `log_position`, of changes that this process has committed and applied already.
    ahead: HashSet<i64>,
    /// The highest log position so far, of the changes read from the log and of those in `own`.
    newest: i64,
    /// Whether very many changes are pending, so that only the worker reads the log.
    pub far: bool,
    /// The number of the newest request (see [`SearchOverlay::asked`]) that a read of the log has fulfilled.
    answered: u64,
    /// Present while a node of a distributed database is unreachable: for each store, the position up to which its changes were applied.
    /// The map is removed only with exclusive access to [`SearchOverlay::by_store_searches`].
    by_store: Option<HashMap<StoreId, Arc<Queue<LogPosition>>>>,
}

/// The new state of a record.
pub struct RecordChange {
    pub key: RecordKey,
    pub record: Searchable,
    pub gone: bool,
    /// Whether the record is known to be absent from index and overlay.
    pub new: bool,
}

impl SearchOverlay {
    pub fn new(db: Db) -> Self {
        db.follow_own_changes();
        Self {
            db,
            view: RwLock::default(),
            followed: Queue::default(),
            by_store_searches: AsyncRwLock::default(),
            asked: AtomicU64::new(0),
            wake: Notify::new(),
        }
    }

    /// Returns whether the database is distributed over several nodes.
    pub fn is_distributed(&self) -> bool {
        self.db.is_distributed()
    }

    /// Returns whether an error may mean that one node of a distributed database does not answer, while the other nodes do.
    pub fn may_be_one_node(&self, error: &Error) -> bool {
        use store::Error::{Busy, Failing, Unavailable};
        self.is_distributed() && matches!(error, Error::Store(Unavailable(_) | Busy | Failing(_)))
    }

    /// Catches up before a search of this store: applies the changes that were committed before the call, by this or another process. If
    /// too many changes of other processes are pending, leaves those to the worker. While a node is unreachable, applies only the changes
    /// of the store.
    pub async fn catch_up(&self, store: &StoreId) -> Result<()> {
        let turn = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut followed = self.followed.lock().await;
        if followed.by_store.is_none() {
            match self.catch_up_with_all_stores(turn, &mut followed).await {
                Err(error) if self.may_be_one_node(&error) => followed.go_on_by_store(&error),
                caught_up => return caught_up,
            }
        }
        drop(followed);
        self.catch_up_with_store(store, turn).await
    }

    /// Applies the changes of one store. Searches of other stores do not wait for this. Returns an error if the overlay is full; the
    /// changes that were applied stay applied, so that a later search goes on from there.
    async fn catch_up_with_store(&self, store: &StoreId, turn: u64) -> Result<()> {
        let _shared = self.by_store_searches.read().await;
        let mut followed = self.followed.lock().await;
        let ChangeLogProgress { log_position, by_store: Some(positions), .. } = &mut *followed else {
            // While this search waited for the lock, the worker returned to reading the log of all stores.
            return self.catch_up_with_all_stores(turn, &mut followed).await;
        };
        let position = positions.entry(store.clone()).or_insert_with(|| Arc::new(Queue::new(log_position.clone()))).clone();
        // The log, which is read next, also lists the queued changes of this process.
        self.drop_own_changes(&mut followed);
        drop(followed);
        let late = |_| Error::from(store::Error::Unavailable("another search of the store did not end in time".to_owned()));
        let mut position = timeout(READ_TIMEOUT, position.lock()).await.map_err(late)?;
        // If an earlier read ended within a round (see `LogPosition`), the round is read again from its start: changes at positions that
        // the read has passed may have been committed since.
        *position = position.at_round_start();
        loop {
            let behind = in_time(self.db.changes_of_store_since(store, &position, MAX_LOG_ENTRIES_PER_READ)).await?;
            let behind = behind.ok_or_else(|| Error::Failed(UNKNOWN_POSITION.to_owned()))?;
            self.followed.lock().await.looks_at(&behind.changes);
            self.put_into_overlay(self.changes(behind.changes.iter()).await?).await?;
            *position = behind.log_position;
            if !behind.more {
                return Ok(());
            }
            if self.view().is_some_and(|view| is_full(&view)) {
                self.wake.notify_one();
                return Err(Error::Building);
            }
        }
    }

    /// Drops the queued changes of this process. The log lists them, so the next reader of the log applies them.
    pub fn drop_own_changes(&self, followed: &mut ChangeLogProgress) {
        followed.own.clear();
        drop(self.db.own_changes());
    }

    async fn catch_up_with_all_stores(&self, turn: u64, followed: &mut ChangeLogProgress) -> Result<()> {
        self.apply_own_changes(followed).await?;
        if followed.far || followed.answered >= turn {
            return Ok(());
        }
        let asked = self.asked.load(Ordering::Acquire);
        if in_time(self.db.may_be_behind(&followed.log_position)).await? {
            match self.behind(&followed.log_position).await? {
                Some(behind) if !is_bulk(&behind) => {
                    self.put_into_overlay(self.not_applied_yet(followed, &behind.changes).await?).await?;
                    followed.log_position = behind.log_position;
                }
                _ => {
                    followed.far = true;
                    self.wake.notify_one();
                }
            }
        }
        followed.answered = asked;
        Ok(())
    }

    /// Reads a page of the changes after this log position: at most [`MAX_LOG_ENTRIES_PER_READ`] entries of the log. `None` if the log was
    /// pruned beyond that position, or if the position is of another database.
    pub async fn behind(&self, log_position: &LogPosition) -> Result<Option<ChangesSince>> {
        in_time(self.db.changes_since(log_position, MAX_LOG_ENTRIES_PER_READ)).await
    }

    /// Applies the changes that this process has committed.
    pub async fn apply_own_changes(&self, followed: &mut ChangeLogProgress) -> Result<()> {
        followed.own.append(&mut self.db.own_changes());
        if followed.own.is_empty() {
            return Ok(());
        }
        followed.distrust_inserts(self.db.own_epoch());
        // If this fails or is cancelled, the changes stay queued for the next call.
        self.put_into_overlay(self.changes(followed.own.iter()).await?).await?;
        followed.is_ahead();
        Ok(())
    }

    /// Returns the current state of the records in these log entries. Entries that were applied before, as commits of this process, are
    /// skipped.
    pub async fn not_applied_yet(&self, followed: &mut ChangeLogProgress, logged: &[LoggedChange]) -> Result<Vec<RecordChange>> {
        followed.looks_at(logged);
        self.changes(logged.iter().filter(|change| !followed.ahead.remove(&change.position))).await
    }

    /// Returns the current state of the records in these log entries: reads it from the database, unless the entry contains it.
    async fn changes(&self, logged: impl Iterator<Item = &LoggedChange>) -> Result<Vec<RecordChange>> {
        let mut ids: HashMap<(StoreId, SearchableKind), BTreeSet<String>> = HashMap::new();
        let mut inserted: HashMap<RecordKey, Searchable> = HashMap::new();
        for one in logged {
            if let Some(InsertedRecord { record, .. }) = &one.inserted {
                inserted.insert(RecordKey::of(&record.store, record.noun, &record.id), record.clone());
            } else if let Some(noun) = one.noun() {
                ids.entry((one.store.clone(), noun)).or_default().insert(one.id.clone());
            } else if one.kind == RETITLED {
                let messages = in_time(self.db.conversation_messages(&one.store, &one.id)).await?;
                ids.entry((one.store.clone(), SearchableKind::Message)).or_default().extend(messages);
                // A write of this process may have inserted one of these messages, but queue the inserted content only later. By then the
                // content is outdated. In the new epoch the overlay does not use it, and reads the message from the database.
                self.db.end_own_epoch();
            }
        }
        let mut changes = Vec::new();
        for ((store, noun), mut ids) in ids {
            let wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
            let mut found = Vec::new();
            for part in wanted.chunks(TEXTS_PER_STATEMENT) {
                found.append(&mut in_time(self.db.searchables(&store, noun, part)).await?);
            }
            for record in found {
                ids.remove(&record.id);
                changes.push(RecordChange { key: RecordKey::of(&store, noun, &record.id), record, gone: false, new: false });
            }
            changes.extend(ids.into_iter().map(|id| {
                let key = RecordKey::of(&store, noun, &id);
                RecordChange { key, record: Searchable { store: store.clone(), noun, id, at: 0, texts: vec![] }, gone: true, new: false }
            }));
        }
        // The state that was read from the database includes the insert and all later changes of the record. So the inserted content is not
        // needed.
        for change in &changes {
            inserted.remove(&change.key);
        }
        changes.extend(inserted.into_iter().map(|(key, record)| RecordChange { key, record, gone: false, new: true }));
        Ok(changes)
    }

    /// Returns the current snapshot. It is searched without the lock, so that writers do not wait for the search.
    pub fn view(&self) -> Option<Arc<IndexSnapshot>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts the new states of records into the overlay.
    pub async fn put_into_overlay(&self, changes: Vec<RecordChange>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let bytes: usize = changes.iter().flat_map(|change| &change.record.texts).map(String::len).sum();
        let fresh = if bytes > INLINE_ANALYSIS_BYTES { blocking(move || Ok(analysed(changes))).await? } else { analysed(changes) };
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        // Without an index the changes are dropped: the build reads the records, or the worker reads the changes from the log afterwards.
        let Some(view) = view.as_mut().map(Arc::make_mut) else { return Ok(()) };
        for (key, fresh) in fresh {
            if !fresh.new {
                let stale = unpanicked(|| view.documents(key))?;
                view.stale.extend(stale);
            }
            view.fresh.insert(key, fresh.into());
        }
        // With short texts, the limit of records is reached before the limit of bytes. So the bytes of all texts are summed up only if this
        // call added much text.
        if view.fresh.len() > OVERLAY_MAX_RECORDS || (bytes > INLINE_ANALYSIS_BYTES && is_full(view)) {
            self.wake.notify_one();
        }
        Ok(())
    }
}

/// Whether the overlay has reached its capacity.
pub fn is_full(view: &IndexSnapshot) -> bool {
    let bytes = || view.fresh.values().flat_map(|fresh| &fresh.record.texts).map(String::len).sum::<usize>();
    view.fresh.len() > OVERLAY_MAX_RECORDS || bytes() > OVERLAY_MAX_BYTES
}

/// Analyses the texts of the records: returns them as records of the overlay, with their terms.
fn analysed(changes: Vec<RecordChange>) -> Vec<(RecordKey, OverlayRecord)> {
    let fresh =
        |RecordChange { key, record, gone, new }| (key, OverlayRecord { terms: Terms::of(&text(&record.texts)), record, gone, new });
    changes.into_iter().map(fresh).collect()
}

impl ChangeLogProgress {
    /// Resets the progress: the change log is read from this position on.
    pub fn go_on_from(&mut self, log_position: LogPosition) {
        *self = Self { log_position, ..Self::default() };
    }

    /// From now on, each search reads only the log of its store, since a node is unreachable.
    pub fn go_on_by_store(&mut self, reason: &Error) {
        if self.by_store.is_none() {
            tracing::warn!(%reason, "the search index cannot read the changes of all stores; each search reads those of its store");
            self.by_store = Some(HashMap::new());
        }
    }

    /// Returns whether the log is read store by store.
    pub fn is_by_store(&self) -> bool {
        self.by_store.is_some()
    }

    /// From now on searches read the log of all stores.
    pub fn go_on_with_all_stores(&mut self) {
        if self.by_store.take().is_some() {
            tracing::info!("the search index reads the changes of all stores again");
        }
    }

    fn looks_at(&mut self, logged: &[LoggedChange]) {
        self.newest = newest(self.newest, logged);
    }

    /// Drops the content of each insert in `own` whose record may already be in the overlay or the index. Such a record must not be added
    /// as a new record, so its current state is read from the database. There are two cases:
    ///
    /// - A change at the position of the insert, or at a later position, was applied before (`position <= newest`).
    /// - The record was read from the database without the log: by the index build, or together with all messages of its conversation. A
    ///   new epoch begins after each such read (see `own_epoch`), so the insert has an earlier epoch.
    fn distrust_inserts(&mut self, epoch: u64) {
        for one in &mut self.own {
            one.inserted.take_if(|inserted| one.position <= self.newest || inserted.epoch != epoch);
        }
        self.newest = newest(self.newest, &self.own);
    }

    fn is_ahead(&mut self) {
        // A change whose position is removed here is applied again when the log lists it. That is harmless: the current state of the record
        // is read again.
        if self.ahead.len() > MAX_POSITIONS_AHEAD {
            self.ahead.clear();
        }
        self.ahead.extend(self.own.drain(..).map(|change| change.position));
    }
}

fn newest(before: i64, logged: &[LoggedChange]) -> i64 {
    logged.iter().map(|one| one.position).fold(before, i64::max)
}

/// Whether there are too many changes for the overlay, or for a search to apply. A changed subject of a conversation always counts as too
/// many changes: it concerns all messages of the conversation.
pub fn is_bulk(behind: &ChangesSince) -> bool {
    behind.more || behind.changes.len() > MAX_CHANGES_PER_READ || behind.changes.iter().any(|change| change.kind == RETITLED)
}

async fn in_time<T>(answer: impl Future<Output = store::Result<T>>) -> Result<T> {
    let late = |_| Err(store::Error::Unavailable("the database did not answer in time".to_owned()));
    Ok(timeout(READ_TIMEOUT, answer).await.unwrap_or_else(late)?)
}

#[cfg(test)]
mod tests;
