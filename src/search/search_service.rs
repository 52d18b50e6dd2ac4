//! Search service of one process: answers searches, and keeps the index up to date from the database's change log.
//!
//! Changes since the last index commit are in an in-memory overlay (`overlay`). A search first catches up with the change log. A background
//! worker also catches up, several times a second, and regularly commits the overlay to the disk. When very many changes are pending, as
//! after an import, the worker writes the changed records directly to the disk.

use std::{
    collections::HashSet,
    future::Future,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::available_parallelism,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use super::{
    Error, Result,
    index::{Index, RecordKey},
    index_build::{Progress, blocking, build, unpanicked},
    index_directory::{Folder, bytes_of},
    overlay::{RecordChange, SearchOverlay, TEXTS_PER_STATEMENT, UNKNOWN_POSITION, is_bulk, is_full},
    searcher::{HitPage, IndexSnapshot, OverlayRecord, Search},
};
use crate::{
    store::{Db, change_log::reader::LogPosition},
    supervisor::TaskReporter,
};

/// Poll interval of the worker for the change log.
const POLL: Duration = Duration::from_millis(200);
/// Interval at which the worker tries to read the whole change log again while a node of a distributed database is unreachable.
const NODE_RETRY: Duration = Duration::from_secs(1);
/// How long changes stay only in memory before they are committed, unless very many changes are pending.
const COMMIT_AFTER: Duration = Duration::from_secs(1);
/// The number of changes per index commit while very many changes are pending.
const BULK: usize = 50_000;
/// How long a search waits for an index that is being built: long enough for a small database.
const BUILD_WAIT: Duration = Duration::from_secs(2);
/// The interval at which the worker commits the log position of an idle index. The change log is pruned over time, and an index whose
/// position was pruned cannot continue from the log.
const COMMIT_POSITION_AFTER: Duration = Duration::from_secs(3600);
/// An index that was rebuilt after a failure counts as working after its first commit, or once the worker has run this long without a
/// failure.
const PROVEN: Duration = Duration::from_secs(60);
/// Backoff of the worker after a failure.
const RECOVERY: Duration = Duration::from_secs(3);

/// The search service of one process.
#[derive(Clone)]
pub struct SearchService(Arc<SearchState>);

struct SearchState {
    parent: PathBuf,
    database: String,
    front: SearchOverlay,
    ready: watch::Sender<bool>,
    /// Limits concurrent searches, except those on the caller's thread ([`SearchState::search_inline`]), to the number of processors.
    permits: Semaphore,
    processors: u32,
    damaged: AtomicBool,
    /// When the index last contained every change of the database.
    caught_up: Mutex<Instant>,
    /// The folder of the index, once this process has locked it.
    path: Mutex<Option<PathBuf>>,
}

/// The state of an index.
#[derive(Clone, Copy, Debug)]
pub struct IndexState {
    /// Whether searches are answered.
    pub is_ready: bool,
    /// The time since the index last contained every change of the database. Until it does so for the first time: the time since the start
    /// of the process.
    pub lag: Duration,
    pub bytes: u64,
}

impl SearchService {
    /// Creates the search service of the database with this id. Searches are answered once [`SearchService::run`] has opened or built the
    /// index below `parent`.
    pub fn new(db: Db, parent: PathBuf, database: String) -> Self {
        let processors = available_parallelism().map_or(2, usize::from).try_into().unwrap_or(u32::MAX);
        Self(Arc::new(SearchState {
            front: SearchOverlay::new(db),
            parent,
            database,
            ready: watch::Sender::new(false),
            processors,
            permits: Semaphore::new(processors as usize),
            damaged: AtomicBool::new(false),
            caught_up: Mutex::new(Instant::now()),
            path: Mutex::default(),
        }))
    }

    /// Returns the state of the index. Reads the sizes of its files.
    pub async fn state(&self) -> Result<IndexState> {
        let path = self.0.path.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let bytes = blocking(move || Ok(path.map_or(Ok(0), |path| bytes_of(&path))?)).await?;
        let caught_up = *self.0.caught_up.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(IndexState { is_ready: *self.0.ready.borrow(), lag: caught_up.elapsed(), bytes })
    }

    /// Returns a page of hits. Every write that was acknowledged before is visible, except the writes that the documentation of the module
    /// `search` names.
    pub async fn find(&self, search: Search) -> Result<HitPage> {
        let mut ready = self.0.ready.subscribe();
        if !matches!(tokio::time::timeout(BUILD_WAIT, ready.wait_for(|ready| *ready)).await, Ok(Ok(_))) {
            return Err(Error::Building);
        }
        self.0.clone().answer(search).await.map_err(|error| self.0.failed(error))
    }

    /// Opens or builds the index and follows the database until `stop` resolves. Failures are logged and retried.
    pub async fn run(self, stop: impl Future<Output = ()>, reporter: TaskReporter) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let failed = tokio::select! {
                () = &mut stop => return,
                followed = self.work(&reporter) => followed.err(),
            };
            if let Some(error) = failed {
                tracing::error!(%error, "the search index cannot follow the database");
                // In a distributed database, the cause may be one unreachable node. Then the server stays ready, since it can still serve
                // the stores of the other nodes.
                if !self.0.front.is_distributed() {
                    reporter.failed();
                }
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(RECOVERY) => {}
            }
        }
    }

    async fn work(&self, reporter: &TaskReporter) -> Result<()> {
        let shared = &self.0;
        // An earlier call may have failed and left its view (the snapshot that searches use) open.
        shared.close_view();
        let folder = Folder::claim(&shared.parent, &shared.database, false)?;
        *shared.path.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.path.clone());
        let rebuilt = shared.damaged.swap(false, Ordering::AcqRel);
        let opened = if rebuilt { None } else { shared.open(&folder).await? };
        let (index, log_position) = match opened {
            Some(opened) => opened,
            None => {
                let (index, log_position, _) = build(&shared.front.db, &folder, &shared.database, Some(progress(reporter))).await?;
                (index, log_position)
            }
        };
        let mut follower = IndexWorker {
            shared: shared.clone(),
            index: Arc::new(Mutex::new(index)),
            committed: log_position,
            committed_at: Instant::now(),
            bulk: 0,
            since: None,
            had_failed: rebuilt,
        };
        let followed = follower.follow(reporter).await;
        // An index that no longer follows the database must not be searched, whatever the failure was.
        shared.close_view();
        if matches!(followed, Err(Error::Failed(_))) {
            shared.damaged.store(true, Ordering::Release);
        }
        followed
    }

    /// Rebuilds the index in the first folder of the index directory, and returns the number of records. Called by `counterpart reindex`,
    /// whose process does nothing else.
    pub async fn reindex(db: &Db, parent: &Path, database: &str, progress: Option<Progress>) -> Result<u64> {
        let folder = Folder::claim(parent, database, true)?;
        let (_, _, records) = build(db, &folder, database, progress).await?;
        Ok(records)
    }
}

/// Reports the progress of a build to the supervisor.
fn progress(reporter: &TaskReporter) -> Progress {
    let reporter = reporter.clone();
    Arc::new(move |_, _| reporter.beat())
}

impl SearchState {
    /// Closes the view (the snapshot of index and overlay that searches use): searches are refused until an index is open and up to date
    /// again.
    fn close_view(&self) {
        self.ready.send_replace(false);
        *self.front.view.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn answer(self: Arc<Self>, search: Search) -> Result<HitPage> {
        self.front.catch_up(&search.store).await?;
        if let Some(found) = self.search_inline(&search)? {
            return Ok(found);
        }
        let wanted = search.clone();
        if let Some(found) = self.search(1, move |view| Ok(view.search_if_usual(&wanted)?)).await? {
            return Ok(found);
        }
        // A prefix takes memory for each word to which it expands. So a search whose prefix expands to very many words takes all permits:
        // only one such search runs at a time.
        self.search(self.processors, move |view| Ok(view.search(&search)?)).await
    }

    /// Waits for this many permits, and runs a search on a thread where it blocks no async task.
    async fn search<T: Send + 'static>(
        self: &Arc<Self>,
        permits: u32,
        search: impl FnOnce(&IndexSnapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _permits = self.permits.acquire_many(permits).await.map_err(|error| Error::Failed(error.to_string()))?;
        let shared = self.clone();
        blocking(move || search(shared.complete(&shared.front.view())?)).await
    }

    /// Searches on the caller's thread, if the search is so small that a switch of threads would cost as much. `None` if the search is
    /// larger, or if a writer holds the lock of the view.
    fn search_inline(&self, search: &Search) -> Result<Option<HitPage>> {
        // This thread must not wait for a writer that holds the lock.
        let Ok(view) = self.front.view.try_read() else { return Ok(None) };
        let view = self.complete(&view)?;
        Ok(unpanicked(|| view.search_if_small(search))?)
    }

    /// Returns the view for a search. Returns an error while there is no view, or while it is not up to date yet.
    fn complete<'a>(&self, view: &'a Option<Arc<IndexSnapshot>>) -> Result<&'a IndexSnapshot> {
        view.as_deref().filter(|_| *self.ready.borrow()).ok_or(Error::Building)
    }

    /// Returns the error for the caller of a search. If the index failed, marks it as damaged, so that the worker rebuilds it.
    fn failed(&self, error: Error) -> Error {
        let Error::Failed(reason) = error else { return error };
        tracing::error!(reason, "the search index failed and is rebuilt");
        self.damaged.store(true, Ordering::Release);
        self.front.wake.notify_one();
        Error::Building
    }

    async fn open(&self, folder: &Folder) -> Result<Option<(Index, LogPosition)>> {
        let (path, database) = (folder.path.clone(), self.database.clone());
        let opened = blocking(move || Ok(Index::open(&path, &database)?)).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the search index cannot be read and is rebuilt");
            None
        });
        let Some((index, log_position)) = opened else { return Ok(None) };
        let goes_on = match self.front.behind(&log_position).await {
            // While a node is unreachable, the position cannot be checked. The worker checks it when it reads the log.
            Err(error) if self.front.may_be_one_node(&error) => true,
            behind => behind?.is_some(),
        };
        if !goes_on {
            tracing::warn!("the search index cannot continue from the database's change log and is rebuilt: {UNKNOWN_POSITION}");
        }
        Ok(goes_on.then_some((index, log_position)))
    }
}

/// The worker that writes the index.
struct IndexWorker {
    shared: Arc<SearchState>,
    index: Arc<Mutex<Index>>,
    /// The position in the change log and the time of the last commit. After a crash the index continues from that position.
    committed: LogPosition,
    committed_at: Instant,
    /// The number of changes that were written directly to the index, not by way of the overlay, since the last commit.
    bulk: usize,
    /// Since when the overlay has had records to commit.
    since: Option<Instant>,
    /// Whether the index was rebuilt after a failure and does not count as working yet (see [`PROVEN`]).
    had_failed: bool,
}

impl IndexWorker {
    /// Applies the changes of the database until an error occurs. Searches are answered once all pending changes have been applied.
    async fn follow(&mut self, reporter: &TaskReporter) -> Result<()> {
        self.open_view().await?;
        let began = Instant::now();
        loop {
            reporter.beat();
            let applied = match self.apply_log_page().await {
                Err(error) if self.shared.front.may_be_one_node(&error) => {
                    self.shared.front.followed.lock().await.go_on_by_store(&error);
                    None
                }
                more => Some(more?),
            };
            let more = applied == Some(true);
            let committed = self.commit_if_due(more).await?;
            // A rebuilt index counts as working after a commit, or after `PROVEN` without a failure.
            if committed || !self.had_failed || began.elapsed() >= PROVEN {
                self.had_failed = false;
                reporter.succeeded();
            }
            if applied == Some(false) {
                *self.shared.caught_up.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                self.shared.front.followed.lock().await.far = false;
            }
            if !more {
                self.shared.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
            }
            if self.shared.damaged.load(Ordering::Acquire) {
                return Err(Error::Failed("the index is damaged".to_owned()));
            }
            if !more {
                let interval = if applied.is_some() { POLL } else { NODE_RETRY };
                _ = tokio::time::timeout(interval, self.shared.front.wake.notified()).await;
            }
        }
    }

    async fn open_view(&self) -> Result<()> {
        let _exclusive = self.shared.front.by_store_searches.write().await;
        let mut followed = self.shared.front.followed.lock().await;
        followed.go_on_from(self.committed.clone());
        // The queued changes of this process are dropped: those up to the log position of the index are in the index, and the log lists the
        // others. A write may queue an insert only after this, although the build has already read the message. The new epoch marks such an
        // insert as old, so the overlay reads the message from the database.
        self.shared.front.db.end_own_epoch();
        self.shared.front.drop_own_changes(&mut followed);
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let view = IndexSnapshot::new(index.reader.searcher(), index.fields)?;
        *self.shared.front.view.write().unwrap_or_else(PoisonError::into_inner) = Some(view.into());
        Ok(())
    }

    /// Applies a page of the change log. Returns whether the log has further pages.
    async fn apply_log_page(&mut self) -> Result<bool> {
        let shared = self.shared.clone();
        let mut followed = shared.front.followed.lock().await;
        let mut exclusive = None;
        if followed.is_by_store() {
            // A node was unreachable. The log is first read without a lock, so that no search waits if the node still does not answer.
            let log_position = followed.log_position.clone();
            drop(followed);
            shared.front.behind(&log_position).await?;
            exclusive = Some(shared.front.by_store_searches.write().await);
            followed = shared.front.followed.lock().await;
            // The queued changes of this process are dropped, since the log also lists them: on the page that is read now, or on a later
            // page.
            shared.front.drop_own_changes(&mut followed);
        }
        let is_new_round = followed.log_position.is_between_rounds();
        shared.front.apply_own_changes(&mut followed).await?;
        let behind = shared.front.behind(&followed.log_position).await?;
        let behind = behind.ok_or_else(|| Error::Failed(UNKNOWN_POSITION.to_owned()))?;
        let to_disk = self.bulk > 0 || is_bulk(&behind);
        followed.far |= to_disk;
        let mut parts = behind.changes.chunks(TEXTS_PER_STATEMENT).peekable();
        while let Some(part) = parts.next() {
            let changed = shared.front.not_applied_yet(&mut followed, part).await?;
            let (shown, direct) = if to_disk { self.part(changed) } else { (changed, vec![]) };
            shared.front.put_into_overlay(shown).await?;
            if !direct.is_empty() {
                self.write(direct).await?;
            }
            if parts.peek().is_some() {
                // `followed` is unlocked between two parts, so that a search waits for at most one part.
                drop(followed);
                followed = shared.front.followed.lock().await;
                if exclusive.is_none() && followed.is_by_store() {
                    // A node has become unreachable meanwhile, so each search now applies the changes of its own store. The next call reads
                    // the page again, and holds `by_store_searches` exclusively.
                    return Ok(true);
                }
            }
        }
        followed.log_position = behind.log_position;
        // Searches may return from the log of their own store to the log of all stores if two conditions are true. The page was a whole
        // round (see `LogPosition`), so that it had all changes up to this call. Its changes were few: searches apply only few changes.
        let is_current = exclusive.is_some() && !behind.more && is_new_round && !to_disk;
        if is_current {
            followed.go_on_with_all_stores();
        }
        Ok(behind.more)
    }

    /// Splits changes into those for the overlay and those for the disk. A record that is in the overlay must be replaced there: otherwise
    /// the commit of the overlay would overwrite the newer state on the disk with the older one.
    fn part(&self, changes: Vec<RecordChange>) -> (Vec<RecordChange>, Vec<RecordChange>) {
        let view = self.shared.front.view.read().unwrap_or_else(PoisonError::into_inner);
        changes.into_iter().partition(|change| view.as_ref().is_some_and(|view| view.fresh.contains_key(&change.key)))
    }

    async fn write(&mut self, changes: Vec<RecordChange>) -> Result<()> {
        self.bulk += changes.len();
        let index = self.index.clone();
        blocking(move || {
            let index = index.lock().unwrap_or_else(PoisonError::into_inner);
            for change in &changes {
                index.remove(change.key);
                if !change.gone {
                    index.add(&change.record)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Commits to the disk if a commit is due; returns whether it has committed.
    async fn commit_if_due(&mut self, more: bool) -> Result<bool> {
        let view = self.shared.front.view();
        let waits = view.as_ref().is_some_and(|view| !view.fresh.is_empty());
        let full = view.is_some_and(|view| is_full(&view));
        if waits {
            self.since.get_or_insert_with(Instant::now);
        }
        let late = self.since.is_some_and(|since| since.elapsed() >= COMMIT_AFTER);
        let log_position = self.shared.front.followed.lock().await.log_position.clone();
        let behind = log_position != self.committed && self.committed_at.elapsed() >= COMMIT_POSITION_AFTER;
        let due = self.bulk >= BULK || full || (!more && (self.bulk > 0 || (waits && late) || behind));
        if !due {
            return Ok(false);
        }
        let (shared, index, committed) = (self.shared.clone(), self.index.clone(), log_position.clone());
        blocking(move || commit(&shared, &mut index.lock().unwrap_or_else(PoisonError::into_inner), &log_position)).await?;
        (self.bulk, self.since) = (0, None);
        (self.committed, self.committed_at) = (committed, Instant::now());
        Ok(true)
    }
}

/// Commits the overlay to the disk. Records that change during the commit stay in the overlay.
fn commit(shared: &SearchState, index: &mut Index, log_position: &LogPosition) -> Result<()> {
    let written: Vec<(RecordKey, Arc<OverlayRecord>)> = {
        let view = shared.front.view.read().unwrap_or_else(PoisonError::into_inner);
        view.iter().flat_map(|view| &view.fresh).map(|(key, fresh)| (*key, fresh.clone())).collect()
    };
    for (key, fresh) in &written {
        if !fresh.new {
            index.remove(*key);
        }
        if !fresh.gone {
            index.add_with(&fresh.record, &fresh.terms)?;
        }
    }
    index.commit(log_position)?;
    let mut view = shared.front.view.write().unwrap_or_else(PoisonError::into_inner);
    let Some(view) = view.as_mut().map(Arc::make_mut) else { return Ok(()) };
    view.look_at(index.reader.searcher())?;
    for (key, written) in written {
        if view.fresh.get(&key).is_some_and(|fresh| Arc::ptr_eq(fresh, &written)) {
            view.fresh.remove(&key);
        }
    }
    let mut stale = HashSet::new();
    for (key, _) in view.fresh.iter().filter(|(_, fresh)| !fresh.new) {
        stale.extend(view.documents(*key)?);
    }
    view.stale = stale;
    Ok(())
}
