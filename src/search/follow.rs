//! The running search of one process: it answers, and it follows the database.
//!
//! What was written since the index was committed stands in front of it, in memory (`front`). A search catches up with that first.
//! A worker does so as well, five times a second, and commits it to the disk about once a second. Where the change log runs far
//! ahead, as after an import, the worker brings it to the disk without the detour.

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
    build::{Progress, blocking, build, unpanicked},
    folder::Folder,
    front::{Change, FRESH_MAX, Front, PART, is_much},
    index::{Index, Key},
    searcher::{Found, Fresh, Search, View},
};
use crate::{
    store::{Db, change_log::log::Mark},
    supervisor::Pulse,
};

/// How often the worker looks at the change log.
const POLL: Duration = Duration::from_millis(200);
/// How long changes stay in memory.
const COMMIT_AFTER: Duration = Duration::from_secs(1);
/// Documents between two commits while the log runs ahead.
const BULK: usize = 50_000;
/// How long a search waits for an index that is being built: that of a small database takes no longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// After how long the mark of the index goes to the disk where nothing else does: behind one that is too old the log is forgotten.
const REMARK: Duration = Duration::from_secs(3600);
const UNKNOWN: &str = "either the database was put back in time, or nobody followed it for so long that changes were forgotten";
/// How long the worker rests when it failed.
const RECOVERY: Duration = Duration::from_secs(3);

/// The search of one process.
#[derive(Clone)]
pub struct Searches(Arc<Shared>);

struct Shared {
    parent: PathBuf,
    database: String,
    front: Front,
    ready: watch::Sender<bool>,
    /// As many searches at a time as there are processors to compute them.
    permits: Semaphore,
    damaged: AtomicBool,
}

impl Searches {
    /// The search of the database with this id; it answers once [`Searches::run`] has opened or built the index below
    /// `parent`.
    pub fn new(db: Db, parent: PathBuf, database: String) -> Self {
        let permits = available_parallelism().map_or(2, usize::from);
        Self(Arc::new(Shared {
            front: Front::new(db),
            parent,
            database,
            ready: watch::Sender::new(false),
            permits: Semaphore::new(permits),
            damaged: AtomicBool::new(false),
        }))
    }

    /// A page of hits among everything that was acknowledged before.
    pub async fn find(&self, search: Search) -> Result<Found> {
        let mut ready = self.0.ready.subscribe();
        if !matches!(tokio::time::timeout(PATIENCE, ready.wait_for(|ready| *ready)).await, Ok(Ok(_))) {
            return Err(Error::Building);
        }
        self.0.clone().answer(search).await.map_err(|error| self.0.failed(error))
    }

    /// Opens or builds the index and follows the database until `stop` resolves. Failures are logged, and tried again.
    pub async fn run(self, stop: impl Future<Output = ()>, pulse: Pulse) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let failed = tokio::select! {
                () = &mut stop => return,
                followed = self.work(&pulse) => followed.err(),
            };
            if let Some(error) = failed {
                tracing::error!(%error, "the search index cannot be followed");
                pulse.failed();
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(RECOVERY) => {}
            }
        }
    }

    async fn work(&self, pulse: &Pulse) -> Result<()> {
        let shared = &self.0;
        // A run before this one may have broken off.
        shared.close_view();
        let folder = Folder::claim(&shared.parent, &shared.database, false)?;
        let rebuilt = shared.damaged.swap(false, Ordering::AcqRel);
        let opened = if rebuilt { None } else { shared.open(&folder).await? };
        let (index, mark) = match opened {
            Some(opened) => opened,
            None => {
                let (index, mark, _) = build(&shared.front.db, &folder, &shared.database, Some(progress(pulse))).await?;
                (index, mark)
            }
        };
        let mut follower = Follower {
            shared: shared.clone(),
            index: Arc::new(Mutex::new(index)),
            committed: mark,
            committed_at: Instant::now(),
            bulk: 0,
            since: None,
        };
        let followed = follower.follow(pulse).await;
        // Whatever went wrong: nothing is answered from an index that does not follow.
        shared.close_view();
        if matches!(followed, Err(Error::Failed(_))) {
            shared.damaged.store(true, Ordering::Release);
        }
        followed
    }

    /// Builds the index anew, for a process that does nothing else, and tells of how many records.
    pub async fn reindex(db: &Db, parent: &Path, database: &str, progress: Option<Progress>) -> Result<u64> {
        let folder = Folder::claim(parent, database, true)?;
        let (_, _, records) = build(db, &folder, database, progress).await?;
        Ok(records)
    }
}

/// Reports the progress of a build to the supervisor.
fn progress(pulse: &Pulse) -> Progress {
    let pulse = pulse.clone();
    Arc::new(move |_, _| pulse.beat())
}

impl Shared {
    /// Answers nothing until an index follows the database.
    fn close_view(&self) {
        self.ready.send_replace(false);
        *self.front.view.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn answer(self: Arc<Self>, search: Search) -> Result<Found> {
        self.front.catch_up().await?;
        if let Some(found) = self.find_on_the_spot(&search)? {
            return Ok(found);
        }
        let _permit = self.permits.acquire().await.map_err(|error| Error::Failed(error.to_string()))?;
        let shared = self.clone();
        blocking(move || {
            let view = shared.front.view();
            Ok(shared.complete(&view)?.search(&search)?)
        })
        .await
    }

    /// A search for so little that crossing to another thread and back would cost as much again.
    fn find_on_the_spot(&self, search: &Search) -> Result<Option<Found>> {
        // Whoever changes the view may take a while.
        let Ok(view) = self.front.view.try_read() else { return Ok(None) };
        let view = self.complete(&view)?;
        Ok(unpanicked(|| view.search_if_small(search))?)
    }

    /// The view, unless it is one that was opened since and has not caught up yet.
    fn complete<'a>(&self, view: &'a Option<Arc<View>>) -> Result<&'a View> {
        view.as_deref().filter(|_| *self.ready.borrow()).ok_or(Error::Building)
    }

    /// What a search is told when the index fails, which is then built anew.
    fn failed(&self, error: Error) -> Error {
        let Error::Failed(reason) = error else { return error };
        tracing::error!(reason, "the search index failed and is built anew");
        self.damaged.store(true, Ordering::Release);
        self.front.wake.notify_one();
        Error::Building
    }

    async fn open(&self, folder: &Folder) -> Result<Option<(Index, Mark)>> {
        let (path, database) = (folder.path.clone(), self.database.clone());
        let opened = blocking(move || Ok(Index::open(&path, &database)?)).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the search index cannot be read and is built anew");
            None
        });
        match opened {
            Some((index, mark)) if self.front.db.changes_since(&mark, 1).await?.is_some() => Ok(Some((index, mark))),
            Some(_) => {
                tracing::warn!("the search index cannot go on from the database's change log and is built anew: {UNKNOWN}");
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

/// The one who writes the index.
struct Follower {
    shared: Arc<Shared>,
    index: Arc<Mutex<Index>>,
    /// Where the index would be gone on with after a crash, and since when.
    committed: Mark,
    committed_at: Instant,
    /// Documents in the index that are not committed.
    bulk: usize,
    /// Since when something waits for a commit.
    since: Option<Instant>,
}

impl Follower {
    /// Follows until something fails. The first time through, it catches up before anything is answered.
    async fn follow(&mut self, pulse: &Pulse) -> Result<()> {
        self.open_view().await?;
        loop {
            pulse.beat();
            let more = self.take_in().await?;
            self.commit_if_due(more).await?;
            pulse.succeeded();
            if !more {
                self.shared.front.followed.lock().await.far = false;
                self.shared.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
            }
            if self.shared.damaged.load(Ordering::Acquire) {
                return Err(Error::Failed("the index is damaged".to_owned()));
            }
            if !more {
                _ = tokio::time::timeout(POLL, self.shared.front.wake.notified()).await;
            }
        }
    }

    async fn open_view(&self) -> Result<()> {
        let mut followed = self.shared.front.followed.lock().await;
        followed.go_on_from(self.committed.clone());
        // Whatever is among them is behind the mark, or was read by the one who built the index.
        self.shared.front.db.end_own_epoch();
        drop(self.shared.front.db.own_changes());
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let view = View::new(index.reader.searcher(), index.fields)?;
        *self.shared.front.view.write().unwrap_or_else(PoisonError::into_inner) = Some(view.into());
        Ok(())
    }

    /// Takes a page of the change log in; whether there is more of it.
    async fn take_in(&mut self) -> Result<bool> {
        let shared = self.shared.clone();
        let mut followed = shared.front.followed.lock().await;
        shared.front.take_in_own(&mut followed).await?;
        let behind = shared.front.behind(&followed).await?;
        let behind = behind.ok_or_else(|| Error::Failed(UNKNOWN.to_owned()))?;
        let to_disk = self.bulk > 0 || is_much(&behind);
        followed.far |= to_disk;
        let mut parts = behind.changes.chunks(PART).peekable();
        while let Some(part) = parts.next() {
            let changed = shared.front.unseen(&mut followed, part).await?;
            let (shown, direct) = if to_disk { self.part(changed) } else { (changed, vec![]) };
            shared.front.show(shown)?;
            if !direct.is_empty() {
                self.write(direct).await?;
            }
            if parts.peek().is_some() {
                // Searches wait for one part at most.
                drop(followed);
                followed = shared.front.followed.lock().await;
            }
        }
        followed.mark = behind.mark;
        Ok(behind.more)
    }

    /// Those that are in memory already have to be replaced there, or an older state would follow a newer one to the disk.
    fn part(&self, changes: Vec<Change>) -> (Vec<Change>, Vec<Change>) {
        let view = self.shared.front.view.read().unwrap_or_else(PoisonError::into_inner);
        changes.into_iter().partition(|change| view.as_ref().is_some_and(|view| view.fresh.contains_key(&change.key)))
    }

    async fn write(&mut self, changes: Vec<Change>) -> Result<()> {
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

    async fn commit_if_due(&mut self, more: bool) -> Result<()> {
        let waiting = self.shared.front.view.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |view| view.fresh.len());
        if waiting > 0 {
            self.since.get_or_insert_with(Instant::now);
        }
        let late = self.since.is_some_and(|since| since.elapsed() >= COMMIT_AFTER);
        let mark = self.shared.front.followed.lock().await.mark.clone();
        let behind = mark != self.committed && self.committed_at.elapsed() >= REMARK;
        let due = self.bulk >= BULK || waiting > FRESH_MAX || (!more && (self.bulk > 0 || (waiting > 0 && late) || behind));
        if !due {
            return Ok(());
        }
        let (shared, index, committed) = (self.shared.clone(), self.index.clone(), mark.clone());
        blocking(move || commit(&shared, &mut index.lock().unwrap_or_else(PoisonError::into_inner), &mark)).await?;
        (self.bulk, self.since) = (0, None);
        (self.committed, self.committed_at) = (committed, Instant::now());
        Ok(())
    }
}

/// Brings what is in memory to the disk. What changes meanwhile stays in memory.
fn commit(shared: &Shared, index: &mut Index, mark: &Mark) -> Result<()> {
    let written: Vec<(Key, Arc<Fresh>)> = {
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
    index.commit(mark)?;
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
