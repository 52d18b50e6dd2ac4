//! The running search of one process: it answers, and it follows the database.
//!
//! The change log tells what any process has committed. Each search looks at it first, one look for all that wait, and what is
//! new is read and put in front of the index, in memory; so a search sees every write that was acknowledged before it. A
//! worker looks as well, five times a second, and commits what is in memory to the disk about once a second. Where the log runs
//! far ahead, as after an import, the worker brings it to the disk without the detour and no search waits for that; what this
//! process itself has committed it still sees, since that is told beside the log.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    future::Future,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::available_parallelism,
    time::Duration,
};

use tantivy::TantivyError;
use tokio::{
    sync::{Mutex as Queue, Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    Error, Result,
    build::{Progress, blocking, build},
    folder::Folder,
    index::{Index, Key, text},
    memory::Terms,
    searcher::{Found, Fresh, Search, View},
};
use crate::{
    domain::{
        ids::StoreId,
        search::{Noun, Searchable},
    },
    store::{
        Db,
        changelog::{Behind, Logged, Mark, RETITLED},
    },
};

/// How often the change log is looked at where nobody searches.
const POLL: Duration = Duration::from_millis(200);
/// How long changes stay in memory, and how many of them.
const COMMIT_AFTER: Duration = Duration::from_secs(1);
const FRESH_MAX: usize = 1000;
/// Places of the log that are read at a time, and changes that are taken in at a time; where there are more, they are too many
/// for the memory.
const PLACES: i64 = 500;
const PART: usize = 500;
/// Documents between two commits while the log runs ahead.
const BULK: usize = 50_000;
/// Changes of which it is remembered that they were taken in.
const REMEMBERED: usize = 20_000;
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
    db: Db,
    parent: PathBuf,
    database: String,
    /// None while the index is built.
    view: RwLock<Option<View>>,
    ready: watch::Sender<bool>,
    followed: Queue<Followed>,
    /// How many searches have asked for a look at the log.
    asked: AtomicU64,
    /// As many searches at a time as there are processors to compute them.
    permits: Semaphore,
    damaged: AtomicBool,
    wake: Notify,
}

/// How far the database was followed.
#[derive(Default)]
struct Followed {
    /// Everything up to here is in the index, committed or not, or in front of it.
    mark: Mark,
    /// The positions of the changes behind it that are, too: those of this process.
    ahead: HashSet<i64>,
    /// The searches up to this one had their look at the log.
    answered: u64,
}

/// What a record has become.
struct Change {
    key: Key,
    record: Searchable,
    gone: bool,
}

impl Searches {
    /// The search of the database with this id; it answers once [`Searches::run`] has opened or built the index below
    /// `parent`.
    pub fn new(db: Db, parent: PathBuf, database: String) -> Self {
        db.follow_own_changes();
        let permits = available_parallelism().map_or(2, usize::from);
        Self(Arc::new(Shared {
            db,
            parent,
            database,
            view: RwLock::default(),
            ready: watch::Sender::new(false),
            followed: Queue::default(),
            asked: AtomicU64::new(0),
            permits: Semaphore::new(permits),
            damaged: AtomicBool::new(false),
            wake: Notify::new(),
        }))
    }

    /// A page of hits among everything that was acknowledged before.
    pub async fn find(&self, search: Search) -> Result<Found> {
        let mut ready = self.0.ready.subscribe();
        if !matches!(tokio::time::timeout(PATIENCE, ready.wait_for(|ready| *ready)).await, Ok(Ok(_))) {
            return Err(Error::Building);
        }
        self.0.catch_up().await?;
        if let Some(found) = self.0.find_on_the_spot(&search)? {
            return Ok(found);
        }
        let _permit = self.0.permits.acquire().await.map_err(|error| Error::Failed(error.to_string()))?;
        let shared = self.0.clone();
        let found = blocking(move || {
            let view = shared.view.read().unwrap_or_else(PoisonError::into_inner);
            Ok(view.as_ref().ok_or(Error::Building)?.search(&search)?)
        });
        found.await.map_err(|error| self.0.failed(error))
    }

    /// Opens or builds the index and follows the database until `stop` resolves. Failures are logged, and tried again.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let failed = tokio::select! {
                () = &mut stop => return,
                followed = self.work() => followed.err(),
            };
            if let Some(error) = failed {
                tracing::error!(%error, "the search index cannot be followed");
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(RECOVERY) => {}
            }
        }
    }

    async fn work(&self) -> Result<()> {
        let shared = &self.0;
        let folder = Folder::claim(&shared.parent, &shared.database, false)?;
        // The log has them too.
        drop(shared.db.own_changes());
        let rebuilt = shared.damaged.swap(false, Ordering::AcqRel);
        let opened = if rebuilt { None } else { shared.open(&folder).await? };
        let (index, mark) = match opened {
            Some(opened) => opened,
            None => {
                let (index, mark, _) = build(&shared.db, &folder, &shared.database, None).await?;
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
        let followed = follower.follow().await;
        // Whatever went wrong: nothing is answered from an index that does not follow.
        shared.ready.send_replace(false);
        *shared.view.write().unwrap_or_else(PoisonError::into_inner) = None;
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

impl Shared {
    /// A search for so little that crossing to another thread and back would cost as much again.
    fn find_on_the_spot(&self, search: &Search) -> Result<Option<Found>> {
        // Whoever changes the view may take a while.
        let Ok(view) = self.view.try_read() else { return Ok(None) };
        let Some(view) = view.as_ref() else { return Ok(None) };
        // Damage that was not there when the index was opened may show as a panic, as it may on another thread.
        let found = std::panic::catch_unwind(AssertUnwindSafe(|| view.search_if_small(search)));
        let found = found.unwrap_or_else(|_| Err(TantivyError::InternalError("a search panicked".to_owned())));
        found.map_err(|error| self.failed(error.into()))
    }

    /// What a search is told when the index fails, which is then built anew.
    fn failed(&self, error: Error) -> Error {
        let Error::Failed(reason) = error else { return error };
        tracing::error!(reason, "the search index failed and is built anew");
        self.damaged.store(true, Ordering::Release);
        self.wake.notify_one();
        Error::Building
    }

    async fn open(&self, folder: &Folder) -> Result<Option<(Index, Mark)>> {
        let (path, database) = (folder.path.clone(), self.database.clone());
        let opened = blocking(move || Ok(Index::open(&path, &database)?)).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the search index cannot be read and is built anew");
            None
        });
        match opened {
            Some((index, mark)) if self.db.changes_since(&mark, 1).await?.is_some() => Ok(Some((index, mark))),
            Some(_) => {
                tracing::warn!("the search index cannot go on from the database's change log and is built anew: {UNKNOWN}");
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Brings in what was committed before, here or by another process.
    async fn catch_up(&self) -> Result<()> {
        let turn = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut followed = self.followed.lock().await;
        self.take_in_own(&mut followed).await?;
        if followed.answered >= turn {
            return Ok(());
        }
        let asked = self.asked.load(Ordering::Acquire);
        if !self.db.may_be_behind(&followed.mark).await? {
            followed.answered = asked;
            return Ok(());
        }
        match self.db.changes_since(&followed.mark, PLACES).await? {
            Some(behind) if !behind.is_much() => {
                self.show(self.unseen(&mut followed, &behind.changes).await?)?;
                followed.mark = behind.mark;
            }
            // The worker's.
            _ => self.wake.notify_one(),
        }
        followed.answered = asked;
        Ok(())
    }

    /// Brings in what this process committed.
    async fn take_in_own(&self, followed: &mut Followed) -> Result<()> {
        let own = self.db.own_changes();
        if own.is_empty() {
            return Ok(());
        }
        match self.changes(own.iter()).await {
            Ok(changes) => {
                self.show(changes)?;
                followed.is_ahead(&own);
                Ok(())
            }
            Err(error) => {
                self.db.give_back_own_changes(own);
                Err(error)
            }
        }
    }

    /// What those records have become whose changes were not taken in before the log told of them.
    async fn unseen(&self, followed: &mut Followed, logged: &[Logged]) -> Result<Vec<Change>> {
        self.changes(logged.iter().filter(|change| !followed.ahead.remove(&change.position))).await
    }

    /// What the logged records have become.
    async fn changes(&self, logged: impl Iterator<Item = &Logged>) -> Result<Vec<Change>> {
        let mut ids: HashMap<(StoreId, Noun), BTreeSet<String>> = HashMap::new();
        for one in logged {
            if let Some(noun) = one.noun() {
                ids.entry((one.store.clone(), noun)).or_default().insert(one.id.clone());
            } else if one.kind == RETITLED {
                let messages = self.db.conversation_messages(&one.store, &one.id).await?;
                ids.entry((one.store.clone(), Noun::Message)).or_default().extend(messages);
            }
        }
        let mut changes = Vec::new();
        for ((store, noun), mut ids) in ids {
            let wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
            let found = self.db.searchables(&store, noun, &wanted).await?;
            for record in found {
                ids.remove(&record.id);
                changes.push(Change { key: Key::of(&store, noun, &record.id), record, gone: false });
            }
            changes.extend(ids.into_iter().map(|id| {
                let key = Key::of(&store, noun, &id);
                Change { key, record: Searchable { store: store.clone(), noun, id, at: 0, texts: vec![] }, gone: true }
            }));
        }
        Ok(changes)
    }

    /// Puts records in front of the index.
    fn show(&self, changes: Vec<Change>) -> Result<()> {
        let fresh: Vec<(Key, Fresh)> = changes
            .into_iter()
            .map(|Change { key, record, gone }| (key, Fresh { terms: Terms::of(&text(&record.texts)), record, gone }))
            .collect();
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        // While there is no index, whatever was committed is found by the one that follows.
        let Some(view) = view.as_mut() else { return Ok(()) };
        for (key, fresh) in fresh {
            let stale = view.documents(key)?;
            view.stale.extend(stale);
            view.fresh.insert(key, fresh);
        }
        if view.fresh.len() > FRESH_MAX {
            self.wake.notify_one();
        }
        Ok(())
    }
}

impl Followed {
    fn is_ahead(&mut self, changes: &[Logged]) {
        // Of those that were forgotten a record is taken in twice.
        if self.ahead.len() > REMEMBERED {
            self.ahead.clear();
        }
        self.ahead.extend(changes.iter().map(|change| change.position));
    }
}

impl Behind {
    /// Too much for the memory, and for a search to wait for.
    fn is_much(&self) -> bool {
        self.more || self.changes.len() > PART
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
    async fn follow(&mut self) -> Result<()> {
        self.open_view().await?;
        loop {
            let more = self.take_in().await?;
            self.commit_if_due(more).await?;
            if !more {
                self.shared.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
            }
            if self.shared.damaged.load(Ordering::Acquire) {
                return Err(Error::Failed("the index is damaged".to_owned()));
            }
            if !more {
                _ = tokio::time::timeout(POLL, self.shared.wake.notified()).await;
            }
        }
    }

    async fn open_view(&self) -> Result<()> {
        let mut followed = self.shared.followed.lock().await;
        (followed.mark, followed.ahead) = (self.committed.clone(), HashSet::new());
        // Whatever is among them is behind the mark, or was read by the one who built the index.
        drop(self.shared.db.own_changes());
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let view = View::new(index.reader.searcher(), index.fields)?;
        *self.shared.view.write().unwrap_or_else(PoisonError::into_inner) = Some(view);
        Ok(())
    }

    /// Takes a page of the change log in; whether there is more of it.
    async fn take_in(&mut self) -> Result<bool> {
        let shared = self.shared.clone();
        let mut followed = shared.followed.lock().await;
        shared.take_in_own(&mut followed).await?;
        let behind = shared.db.changes_since(&followed.mark, PLACES).await?;
        let behind = behind.ok_or_else(|| Error::Failed(UNKNOWN.to_owned()))?;
        let to_disk = self.bulk > 0 || behind.is_much();
        let mut parts = behind.changes.chunks(PART).peekable();
        while let Some(part) = parts.next() {
            let changed = shared.unseen(&mut followed, part).await?;
            let (shown, direct) = if to_disk { self.part(changed) } else { (changed, vec![]) };
            shared.show(shown)?;
            if !direct.is_empty() {
                self.write(direct).await?;
            }
            if parts.peek().is_some() {
                // Searches wait for one part at most.
                drop(followed);
                followed = shared.followed.lock().await;
            }
        }
        followed.mark = behind.mark;
        Ok(behind.more)
    }

    /// Those that are in memory already have to be replaced there, or an older state would follow a newer one to the disk.
    fn part(&self, changes: Vec<Change>) -> (Vec<Change>, Vec<Change>) {
        let view = self.shared.view.read().unwrap_or_else(PoisonError::into_inner);
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
        let waiting = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |view| view.fresh.len());
        if waiting > 0 {
            self.since.get_or_insert_with(Instant::now);
        }
        let late = self.since.is_some_and(|since| since.elapsed() >= COMMIT_AFTER);
        let mark = self.shared.followed.lock().await.mark.clone();
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
    let written: Vec<(Key, Searchable, bool)> = {
        let view = shared.view.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = view.iter().flat_map(|view| &view.fresh);
        fresh.map(|(key, fresh)| (*key, fresh.record.clone(), fresh.gone)).collect()
    };
    for (key, record, gone) in &written {
        index.remove(*key);
        if !gone {
            index.add(record)?;
        }
    }
    index.commit(mark)?;
    let mut view = shared.view.write().unwrap_or_else(PoisonError::into_inner);
    let Some(view) = view.as_mut() else { return Ok(()) };
    view.look_at(index.reader.searcher())?;
    for (key, record, gone) in written {
        if view.fresh.get(&key).is_some_and(|fresh| fresh.gone == gone && fresh.record == record) {
            view.fresh.remove(&key);
        }
    }
    let mut stale = HashSet::new();
    for key in view.fresh.keys() {
        stale.extend(view.documents(*key)?);
    }
    view.stale = stale;
    Ok(())
}
