//! What stands in front of the index: what was written since the index was committed, in memory.
//!
//! Called by `follow`, for each search and by its worker. The change log tells what any process has committed. Each search looks
//! at it first, one look for all that wait, so that it sees every write that was acknowledged before it. Where the log runs far
//! ahead, as after an import, no search looks at it, nor waits for more than a part, until the worker has taken all of it in; what
//! this process itself has committed it still sees, since that is told beside the log: messages that it inserted with what they say,
//! so that nobody reads them again nor looks for an older state of them, which a twelfth of a send was spent on.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex as Queue, Notify},
    time::timeout,
};

use super::{
    Result,
    build::unpanicked,
    index::{Key, text},
    memory::Terms,
    searcher::{Fresh, View},
};
use crate::{
    domain::{
        ids::StoreId,
        search::{Noun, Searchable},
    },
    store::{
        self, Db,
        change_log::{
            Inserted, Logged,
            log::{Behind, Mark, RETITLED},
        },
    },
};

/// How many records are kept in memory, about.
pub const FRESH_MAX: usize = 1000;
/// Places of the log that are read at a time, and changes that are taken in at a time; where there are more, they are too many
/// for the memory.
pub const PLACES: i64 = 500;
pub const PART: usize = 500;
/// Changes of which it is remembered that they were taken in.
const REMEMBERED: usize = 20_000;
/// How long the database may take for one answer. Until then nobody else can follow.
const PATIENCE: Duration = Duration::from_secs(10);

/// What stands in front of the index of one process.
pub struct Front {
    pub db: Db,
    /// The index and what stands in front of it; none while the index is built.
    pub view: RwLock<Option<Arc<View>>>,
    pub followed: Queue<Followed>,
    /// How many searches have asked for a look at the log.
    asked: AtomicU64,
    /// Told when there is more than the memory takes.
    pub wake: Notify,
}

/// How far the database was followed.
#[derive(Default)]
pub struct Followed {
    /// Everything up to here is in the index, committed or not, or in front of it.
    pub mark: Mark,
    /// What this process changed that is not.
    own: Vec<Logged>,
    /// The positions of what it changed behind the mark that is.
    ahead: HashSet<i64>,
    /// The last position that was looked at, of the log and of `own`.
    newest: i64,
    /// Whether the log runs far ahead, and what is behind the mark is left to the worker.
    pub far: bool,
    /// The searches up to this one had their look at the log.
    answered: u64,
}

/// What a record has become.
pub struct Change {
    pub key: Key,
    pub record: Searchable,
    pub gone: bool,
    /// Whether nobody had it before.
    pub new: bool,
}

impl Front {
    pub fn new(db: Db) -> Self {
        db.follow_own_changes();
        Self { db, view: RwLock::default(), followed: Queue::default(), asked: AtomicU64::new(0), wake: Notify::new() }
    }

    /// Brings in what was committed before, here or by another process.
    pub async fn catch_up(&self) -> Result<()> {
        let turn = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut followed = self.followed.lock().await;
        self.take_in_own(&mut followed).await?;
        if followed.far || followed.answered >= turn {
            return Ok(());
        }
        let asked = self.asked.load(Ordering::Acquire);
        if in_time(self.db.may_be_behind(&followed.mark)).await? {
            match self.behind(&followed).await? {
                Some(behind) if !is_much(&behind) => {
                    self.show(self.unseen(&mut followed, &behind.changes).await?)?;
                    followed.mark = behind.mark;
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

    /// What the log tells behind the mark; nothing if it cannot.
    pub async fn behind(&self, followed: &Followed) -> Result<Option<Behind>> {
        in_time(self.db.changes_since(&followed.mark, PLACES)).await
    }

    /// Brings in what this process committed.
    pub async fn take_in_own(&self, followed: &mut Followed) -> Result<()> {
        followed.own.append(&mut self.db.own_changes());
        if followed.own.is_empty() {
            return Ok(());
        }
        followed.doubt_what_may_be_known(self.db.own_epoch());
        // If this fails, or whoever waits for it goes away, they stay for the next one.
        self.show(self.changes(followed.own.iter()).await?)?;
        followed.is_ahead();
        Ok(())
    }

    /// What those records have become whose changes were not taken in before the log told of them.
    pub async fn unseen(&self, followed: &mut Followed, logged: &[Logged]) -> Result<Vec<Change>> {
        followed.looks_at(logged);
        self.changes(logged.iter().filter(|change| !followed.ahead.remove(&change.position))).await
    }

    /// What the logged records have become.
    async fn changes(&self, logged: impl Iterator<Item = &Logged>) -> Result<Vec<Change>> {
        let mut ids: HashMap<(StoreId, Noun), BTreeSet<String>> = HashMap::new();
        let mut inserted: HashMap<Key, Searchable> = HashMap::new();
        for one in logged {
            if let Some(Inserted { record, .. }) = &one.inserted {
                inserted.insert(Key::of(&record.store, record.noun, &record.id), record.clone());
            } else if let Some(noun) = one.noun() {
                ids.entry((one.store.clone(), noun)).or_default().insert(one.id.clone());
            } else if one.kind == RETITLED {
                let messages = in_time(self.db.conversation_messages(&one.store, &one.id)).await?;
                ids.entry((one.store.clone(), Noun::Message)).or_default().extend(messages);
                // Some of them may have been inserted just now.
                self.db.end_own_epoch();
            }
        }
        let mut changes = Vec::new();
        for ((store, noun), mut ids) in ids {
            let wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
            let mut found = Vec::new();
            for part in wanted.chunks(PART) {
                found.append(&mut in_time(self.db.searchables(&store, noun, part)).await?);
            }
            for record in found {
                ids.remove(&record.id);
                changes.push(Change { key: Key::of(&store, noun, &record.id), record, gone: false, new: false });
            }
            changes.extend(ids.into_iter().map(|id| {
                let key = Key::of(&store, noun, &id);
                Change { key, record: Searchable { store: store.clone(), noun, id, at: 0, texts: vec![] }, gone: true, new: false }
            }));
        }
        // What was changed since is as it was read.
        for change in &changes {
            inserted.remove(&change.key);
        }
        changes.extend(inserted.into_iter().map(|(key, record)| Change { key, record, gone: false, new: true }));
        Ok(changes)
    }

    /// What is searched now. Nobody who brings something in waits for a search: it goes on with what it began with.
    pub fn view(&self) -> Option<Arc<View>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts records in front of the index.
    pub fn show(&self, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let fresh: Vec<(Key, Fresh)> = changes
            .into_iter()
            .map(|Change { key, record, gone, new }| (key, Fresh { terms: Terms::of(&text(&record.texts)), record, gone, new }))
            .collect();
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        // While there is no index, whatever was committed is found by the one that follows.
        let Some(view) = view.as_mut().map(Arc::make_mut) else { return Ok(()) };
        for (key, fresh) in fresh {
            if !fresh.new {
                let stale = unpanicked(|| view.documents(key))?;
                view.stale.extend(stale);
            }
            view.fresh.insert(key, fresh.into());
        }
        if view.fresh.len() > FRESH_MAX {
            self.wake.notify_one();
        }
        Ok(())
    }
}

impl Followed {
    /// Goes on from a mark, whatever was followed before.
    pub fn go_on_from(&mut self, mark: Mark) {
        *self = Self { mark, ..Self::default() };
    }

    fn looks_at(&mut self, logged: &[Logged]) {
        self.newest = newest(self.newest, logged);
    }

    /// Takes a record for one that nobody had only where it cannot have been taken in before: by what the log tells, or with a later
    /// change of it that was told here first, or by a reader of a whole conversation.
    fn doubt_what_may_be_known(&mut self, epoch: u64) {
        for one in &mut self.own {
            one.inserted.take_if(|inserted| one.position <= self.newest || inserted.epoch != epoch);
        }
        self.newest = newest(self.newest, &self.own);
    }

    fn is_ahead(&mut self) {
        // Of those that were forgotten a record is taken in twice.
        if self.ahead.len() > REMEMBERED {
            self.ahead.clear();
        }
        self.ahead.extend(self.own.drain(..).map(|change| change.position));
    }
}

fn newest(before: i64, logged: &[Logged]) -> i64 {
    logged.iter().map(|one| one.position).fold(before, i64::max)
}

/// Too much for the memory, and for a search to wait for. The messages of a conversation with another subject may be many.
pub fn is_much(behind: &Behind) -> bool {
    behind.more || behind.changes.len() > PART || behind.changes.iter().any(|change| change.kind == RETITLED)
}

async fn in_time<T>(answer: impl Future<Output = store::Result<T>>) -> Result<T> {
    let late = |_| Err(store::Error::Unavailable("the database did not answer in time".to_owned()));
    Ok(timeout(PATIENCE, answer).await.unwrap_or_else(late)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::{
            clock::{Clock, SystemClock},
            ids::ContactId,
            messages::Message,
        },
        store::{
            Write,
            fixture::{Fixture, counter, sent},
            transaction::write::Changed,
        },
    };

    /// What another process than the fixture's has in front of its index, caught up, and how many statements it has run.
    async fn elsewhere(fixture: &Fixture) -> (Front, Arc<AtomicU64>) {
        let (counted, on_statement) = counter();
        let front = Front::new(Db::open(&fixture.url, 2, Some(on_statement)).await.unwrap());
        let mark = front.db.mark().await.unwrap();
        front.followed.lock().await.go_on_from(mark);
        (front, counted)
    }

    /// Changes contacts in one transaction.
    async fn change(fixture: &Fixture, contacts: impl IntoIterator<Item = &str>) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
        for contact in contacts {
            write.changed(Changed::Contact(&ContactId::from(contact)));
        }
        write.commit().await.unwrap();
    }

    /// Inserts a message whose conversation has a subject, as has the message.
    async fn insert(fixture: &Fixture, id: &str, text: &str) -> Write {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
        let payload = Some(r#"{"email": {"subject": "its own"}}"#.to_owned());
        let message = Message { payload, ..sent(id, "mail", text) };
        write.insert_message(&message, None, None).unwrap();
        write.inserted(&message, Some("the thread's"));
        write
    }

    async fn mailbox() -> (Fixture, Front, Arc<AtomicU64>) {
        let (counted, on_statement) = counter();
        let fixture = Fixture::open(Some(on_statement)).await;
        fixture.conversation("mail", |row| row.email_subject = Some("the thread's".to_owned())).await;
        let front = Front::new(fixture.db.clone());
        (fixture, front, counted)
    }

    #[tokio::test]
    async fn what_this_process_inserted_is_known_without_reading_it() {
        let (fixture, front, counted) = mailbox().await;
        insert(&fixture, "m", "text").await.commit().await.unwrap();
        let before = counted.load(Ordering::Acquire);
        let told = front.changes(fixture.db.own_changes().iter()).await.unwrap();
        assert_eq!(counted.load(Ordering::Acquire), before);
        let read = fixture.db.searchables(&fixture.store, Noun::Message, &["m"]).await.unwrap();
        assert_eq!(read[0].texts, ["text", "its own", "the thread's"]);
        assert_eq!(told.into_iter().map(|one| (one.record, one.gone, one.new)).collect::<Vec<_>>(), [(read[0].clone(), false, true)]);
    }

    #[tokio::test]
    async fn what_may_have_been_taken_in_before_is_read() {
        let (fixture, front, counted) = mailbox().await;
        let mut followed = front.followed.lock().await;
        let read = async |followed: &mut Followed, own: Vec<Logged>| {
            let before = counted.load(Ordering::Acquire);
            followed.own.extend(own);
            front.take_in_own(followed).await.unwrap();
            counted.load(Ordering::Acquire) - before
        };
        let inserted = async |id: &str| {
            insert(&fixture, id, "text").await.commit().await.unwrap();
            fixture.db.own_changes()
        };
        let change = async |id: &str| {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
            write.changed(Changed::Message(&id.into()));
            write.commit().await.unwrap();
            fixture.db.own_changes()
        };
        let undisturbed = inserted("m1").await;
        assert_eq!(read(&mut *followed, undisturbed).await, 0);
        let with_its_change = [inserted("m2").await, change("m2").await].concat();
        assert_eq!(read(&mut *followed, with_its_change).await, 1);
        let (late, first) = (inserted("m3").await, change("m3").await);
        assert_eq!(read(&mut *followed, first).await, 1);
        assert_eq!(read(&mut *followed, late).await, 1);
        let told_by_the_log = inserted("m4").await;
        let from_the_log = [Logged { inserted: None, ..told_by_the_log[0].clone() }];
        front.unseen(&mut followed, &from_the_log).await.unwrap();
        assert_eq!(read(&mut *followed, told_by_the_log).await, 1);
        let of_another_index = insert(&fixture, "m5", "text").await;
        front.db.end_own_epoch();
        of_another_index.commit().await.unwrap();
        assert_eq!(read(&mut *followed, fixture.db.own_changes()).await, 1);
        let read_with_its_conversation = inserted("m6").await;
        let retitled = Logged { kind: RETITLED.to_owned(), id: "mail".to_owned(), position: 0, ..from_the_log[0].clone() };
        front.unseen(&mut followed, &[retitled]).await.unwrap();
        assert_eq!(read(&mut *followed, read_with_its_conversation).await, 1);
        insert(&fixture, "m7", &"long ".repeat(400)).await.commit().await.unwrap();
        assert_eq!(read(&mut *followed, fixture.db.own_changes()).await, 1);
        let again = inserted("m8").await;
        assert_eq!(read(&mut *followed, again).await, 0);
    }

    #[tokio::test]
    async fn one_look_at_the_log_serves_all_searches_that_wait_for_it() {
        let fixture = Fixture::alone().await;
        let (front, counted) = elsewhere(&fixture).await;
        let front = Arc::new(front);
        let mut statements = Vec::new();
        for searches in [1, 8] {
            change(&fixture, ["k1"]).await;
            let mark = front.followed.lock().await.mark.clone();
            let (held, asked, before) = (front.followed.lock().await, front.asked.load(Ordering::Acquire), counted.load(Ordering::Acquire));
            let waiting: Vec<_> =
                (0..searches).map(|_| front.clone()).map(|front| tokio::spawn(async move { front.catch_up().await })).collect();
            while front.asked.load(Ordering::Acquire) < asked + searches {
                tokio::task::yield_now().await;
            }
            drop(held);
            for search in waiting {
                search.await.unwrap().unwrap();
            }
            assert_ne!(front.followed.lock().await.mark, mark);
            statements.push(counted.load(Ordering::Acquire) - before);
        }
        assert!(statements[0] > 0 && statements[0] == statements[1], "{statements:?}");
    }

    #[tokio::test]
    async fn what_is_far_behind_is_left_to_the_worker() {
        let fixture = Fixture::alone().await;
        let (front, counted) = elsewhere(&fixture).await;
        let contacts: Vec<String> = (0..=PLACES).map(|contact| format!("k{contact}")).collect();
        change(&fixture, contacts.iter().map(String::as_str)).await;
        let mark = front.followed.lock().await.mark.clone();
        front.catch_up().await.unwrap();
        timeout(Duration::ZERO, front.wake.notified()).await.expect("the worker is told");
        let before = counted.load(Ordering::Acquire);
        front.catch_up().await.unwrap();
        assert_eq!(counted.load(Ordering::Acquire), before);
        let followed = front.followed.lock().await;
        assert_eq!((&followed.mark, followed.far), (&mark, true));
    }

    #[tokio::test]
    async fn what_a_search_was_to_take_in_that_was_given_up_is_taken_in_by_the_next() {
        let fixture = Fixture::alone().await;
        let front = Front::new(fixture.db.clone());
        let mut followed = front.followed.lock().await;
        change(&fixture, ["k1"]).await;
        // A file is read at once, a server is waited for.
        tokio::select! {
            biased;
            taken_in = front.take_in_own(&mut followed) => taken_in.unwrap(),
            () = std::future::ready(()) => assert_eq!(front.db.own_changes(), []),
        }
        front.take_in_own(&mut followed).await.unwrap();
        assert_eq!((followed.own.len(), followed.ahead.len()), (0, 1));
    }
}
