//! The write transaction of a use-case. One commit stores the changed rows, the domain events (transactional outbox), and the response to a
//! request with an idempotency key.
//!
//! A use-case begins with [`Service::begin`], changes rows through [`WriteTransaction`], notes an `EventChange` for each event, and ends
//! with [`WriteTransaction::finish`]. `finish` renders and records the events, stores the response under the idempotency key, and commits.
//! A use-case that takes no idempotency key begins with [`Service::begin_alone`] or [`Service::begin_edit`], and ends with
//! [`WriteTransaction::end`].

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hasher},
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{Error, Result, Service};
use crate::{
    domain::{
        drafts::Release,
        events::{Actor, Event, EventChange},
        ids::{MessageId, StoreId},
        outbound_messages::OutboxEntry,
        settings_access::{Editor, Entry},
    },
    store::{self, Write, transaction::store_transaction::StoredResponse},
};

/// Serialises an event in the format of the API revision. Called inside the write transaction. The returned bytes are stored. Before
/// delivery only the sequence number is inserted into them (`domain::events::numbered`).
pub trait Renderer: Send + Sync + 'static {
    fn render(&self, store: &StoreId, event: &Event) -> Vec<u8>;
}

/// The context of a write: store, actor, and idempotency.
pub struct WriteContext<'a, T> {
    pub store: &'a StoreId,
    pub actor: Actor,
    pub once: Option<IdempotentRequest<'a, T>>,
    /// The author of a settings change. `None` for any other write.
    pub editor: Option<&'a Editor>,
    /// Set if the write sends a draft. The draft is marked as released (approved and sent) in the same transaction.
    pub release: Option<&'a Release>,
    /// Whether the write is a dry run: all checks and changes are made, and then rolled back.
    pub is_dry_run: bool,
}

impl<'a, T> WriteContext<'a, T> {
    /// Makes the context of a write without an idempotency key.
    pub fn alone(store: &'a StoreId, actor: Actor) -> Self {
        Self { store, actor, once: None, editor: None, release: None, is_dry_run: false }
    }

    /// Makes the context of a change of settings.
    pub fn editor(editor: &'a Editor) -> Self {
        Self { editor: Some(editor), ..Self::alone(&editor.store_id, editor.actor()) }
    }

    /// Adds an idempotency key: a repeated request gets the first response.
    pub fn once(self, once: Option<IdempotentRequest<'a, T>>) -> Self {
        Self { once, ..self }
    }

    /// Makes the context of a write that sends a draft. The same transaction marks the draft as released (approved and sent).
    pub fn with_draft_release(self, release: &'a Release) -> Self {
        Self { release: Some(release), ..self }
    }

    /// Makes the write a dry run, which is rolled back at its end. A dry run shows whether the write would be refused.
    pub fn as_dry_run(self) -> Self {
        Self { is_dry_run: true, ..self }
    }
}

/// A request with an idempotency key.
pub struct IdempotentRequest<'a, T> {
    pub operation: &'static str,
    pub key: &'a str,
    /// A hash of the request's body or, for a tool call of an assistant, of the tool and its arguments. A request with the same key and
    /// another hash is refused.
    pub request_hash: String,
    /// Serialises the response's `data` for storage.
    pub render: fn(&T) -> Vec<u8>,
}

/// The result of a write.
#[derive(Debug)]
pub enum WriteOutcome<T> {
    New(T),
    /// The stored `data` of the response to the first request with this key.
    Replayed(Vec<u8>),
}

/// How long the response to a request with an idempotency key is stored.
const KEPT_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// One in this many writes with an idempotency key also deletes expired responses. Not every write does, since the search for expired
/// responses costs as much as storing a response.
const CLEANUP_ONE_IN: u64 = 8;

/// Returns whether the write with this key deletes expired responses. The key is hashed, so that the choice does not depend on the pattern
/// of a store's keys.
fn deletes_expired_responses(key: &str) -> bool {
    let mut hasher = DefaultHasher::new();
    hasher.write(key.as_bytes());
    hasher.finish().is_multiple_of(CLEANUP_ONE_IN)
}

/// How many times a request checks whether another process is executing a request with the same idempotency key, and the pause between two
/// checks.
const KEY_LOCK_CHECKS: usize = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The requests with an idempotency key that this process is executing.
#[derive(Clone, Default)]
pub(super) struct InProgress(Arc<Mutex<HashSet<String>>>);

/// Guard that marks the request with one idempotency key as in progress, until the guard is dropped.
struct KeyLock {
    all: InProgress,
    name: String,
}

impl InProgress {
    fn hold(&self, name: String) -> Option<KeyLock> {
        let fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        fresh.then(|| KeyLock { all: self.clone(), name })
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// A write transaction in progress, with the events and audit log entries that are recorded at its end.
pub(super) struct WriteTransaction<'s> {
    service: &'s Service,
    write: Write,
    actor: Actor,
    facts: Vec<EventChange>,
    editor: Option<Editor>,
    entries: Vec<Entry>,
    /// Whether a message was queued or made due.
    dispatched: bool,
    /// Whether a test event or replayed events were queued for a webhook.
    delivers: bool,
    is_dry_run: bool,
    held: Option<KeyLock>,
}

/// The start of a write: a new transaction, or the stored response of an earlier request with the same idempotency key.
#[expect(clippy::large_enum_variant, reason = "it lives for the length of one match")]
pub(super) enum WriteStart<'s> {
    Fresh(WriteTransaction<'s>),
    Replay(Vec<u8>),
}

impl Service {
    pub(super) async fn begin<T>(&self, by: &WriteContext<'_, T>) -> Result<WriteStart<'_>> {
        let Some(once) = &by.once else { return Ok(WriteStart::Fresh(self.begin_by(by).await?)) };
        let busy = || Error::InProgress { reason: "`Idempotency-Key` belongs to a request that is in progress".to_owned(), retry_after: 1 };
        let name = format!("{}\u{1f}{}\u{1f}{}", by.store, once.operation, once.key);
        let held = self.in_progress.hold(name).ok_or_else(busy)?;
        let mut change = self.begin_by(by).await?;
        // An earlier request with the same key may just have been refused. It holds the lock on the key until its rollback has reached the
        // database. So this request tries to get the lock several times.
        let mut looks = 0;
        while !change.try_named_lock(&format!("{}\u{1f}{}", once.operation, once.key)).await? {
            looks += 1;
            if looks == KEY_LOCK_CHECKS {
                return Err(busy());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        if let Some(kept) = change.kept(once.operation, once.key, change.now().plus_millis(-KEPT_MILLIS)).await? {
            if kept.request_hash != once.request_hash {
                return Err(Error::KeyReused);
            }
            // `end` waits until the first request is durable. The stored response is returned only after that.
            change.end().await?;
            return Ok(WriteStart::Replay(kept.body));
        }
        change.held = Some(held);
        Ok(WriteStart::Fresh(change))
    }

    pub(super) async fn begin_by<T>(&self, by: &WriteContext<'_, T>) -> Result<WriteTransaction<'_>> {
        let begun = self.begin_alone(by.store, by.actor.clone()).await?;
        let mut change = WriteTransaction { editor: by.editor.cloned(), is_dry_run: by.is_dry_run, ..begun };
        if let Some(release) = by.release {
            self.release_in_transaction(&mut change, release).await?;
        }
        Ok(change)
    }

    /// Begins a write without an idempotency key.
    pub(super) async fn begin_alone(&self, store: &StoreId, actor: Actor) -> Result<WriteTransaction<'_>> {
        Ok(self.change(self.db().write(store, &self.clocks_and_ids().clock).await?, actor))
    }

    fn change(&self, write: Write, actor: Actor) -> WriteTransaction<'_> {
        WriteTransaction {
            service: self,
            write,
            actor,
            facts: Vec::new(),
            editor: None,
            entries: Vec::new(),
            dispatched: false,
            delivers: false,
            is_dry_run: false,
            held: None,
        }
    }

    /// Begins a change of settings without an idempotency key.
    pub(super) async fn begin_edit(&self, editor: &Editor) -> Result<WriteTransaction<'_>> {
        Ok(WriteTransaction { editor: Some(editor.clone()), ..self.begin_alone(&editor.store_id, editor.actor()).await? })
    }
}

impl Deref for WriteTransaction<'_> {
    type Target = Write;

    fn deref(&self) -> &Write {
        &self.write
    }
}

impl WriteTransaction<'_> {
    /// Sets the actor of a write that has begun already. For example, the contact of an inbound message becomes the actor once the contact
    /// is found.
    pub fn caused_by(&mut self, actor: Actor) {
        self.actor = actor;
    }

    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns the editor of this change of settings. `None` for any other write.
    pub fn editor(&self) -> Option<&Editor> {
        self.editor.as_ref()
    }

    /// Returns whether this write is a dry run, which is rolled back.
    pub fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Queues a message, which a worker sends after the commit.
    pub fn dispatch(&mut self, outbox_entry: &OutboxEntry) -> store::Result<()> {
        self.dispatched = true;
        self.write.put_outbox_entry(outbox_entry)
    }

    /// Makes the next attempt to send a queued message due, as [`Write::make_messages_due`] does. The commit wakes the worker.
    pub async fn make_message_due(&mut self, id: &MessageId) -> store::Result<Option<bool>> {
        self.dispatched = true;
        self.write.make_messages_due(id).await
    }

    /// Notes an event. At the end of the write, events are recorded in the order in which they were noted.
    pub fn note(&mut self, fact: EventChange) {
        self.facts.push(fact);
    }

    /// Makes the server itself the editor of this settings change.
    pub fn set_system_editor(&mut self) {
        self.editor = Some(Editor::system(self.write.store().clone()));
    }

    /// Notes an audit log entry. The entry is ignored unless the write is a change of settings.
    pub fn audit(&mut self, mut entry: Entry) {
        if let Some(detail) = entry.detail.as_object_mut() {
            // Properties that are null are left out.
            detail.retain(|_, value| !value.is_null());
        }
        self.entries.push(entry);
    }

    /// Makes the commit wake the webhook worker.
    pub fn deliver(&mut self) {
        self.delivers = true;
    }

    /// Stores the response if the request has an idempotency key, records the events and the audit log entries, and commits. A dry run is
    /// rolled back.
    pub async fn finish<T>(self, by: &WriteContext<'_, T>, answer: T) -> Result<WriteOutcome<T>> {
        if let Some(once) = by.once.as_ref().filter(|_| !self.is_dry_run) {
            let kept = StoredResponse { request_hash: once.request_hash.clone(), body: (once.render)(&answer) };
            self.write.keep(once.operation, once.key, kept)?;
            if deletes_expired_responses(once.key) {
                self.write.prune_stored_responses(self.write.now().plus_millis(-KEPT_MILLIS)).await?;
            }
        }
        self.end().await?;
        Ok(WriteOutcome::New(answer))
    }

    /// Records the events and the audit log entries, and commits. A dry run is rolled back.
    pub async fn end(self) -> Result<()> {
        if self.is_dry_run {
            return Ok(self.write.run_waiting().await?);
        }
        let record = |fact| {
            let event = Event { id: self.service.clocks_and_ids().ids.fresh(), at: self.write.now(), actor: self.actor.clone(), fact };
            let body = self.service.events.render(self.write.store(), &event);
            (event, body)
        };
        let events: Vec<_> = self.facts.into_iter().map(record).collect();
        self.write.record(&events).await?;
        if let Some(editor) = &self.editor {
            self.write.audit(editor, &self.entries).await?;
        }
        self.write.commit().await?;
        self.service.commits.notify_waiters();
        if self.dispatched {
            self.service.outbox_notify.notify_one();
        }
        if self.delivers || !events.is_empty() {
            self.service.deliveries.notify_one();
        }
        drop(self.held);
        Ok(())
    }
}

/// Begins a write. If a response is stored under its idempotency key, returns this response from the calling use-case.
macro_rules! begin {
    ($service:expr, $by:expr) => {
        match $service.begin($by).await? {
            $crate::service::write_transaction::WriteStart::Fresh(change) => change,
            $crate::service::write_transaction::WriteStart::Replay(body) => return Ok($crate::service::WriteOutcome::Replayed(body)),
        }
    };
}
pub(super) use begin;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::{
            clock::{Clock, Ids, RandomIds},
            fake_clock_and_test_rules::MovableClock,
        },
        service::test_service::{Silent, service},
        store::fixture::Fixture,
    };

    #[test]
    fn every_pattern_of_idempotency_keys_triggers_deletion_of_expired_responses() {
        let numbered = (0..800).map(|i| format!("order-{i}"));
        let random = (0..800).map(|_| RandomIds.fresh());
        let doubled = (0..800).map(|i| format!("{i}-{i}"));
        let counts = [numbered.collect::<Vec<_>>(), random.collect(), doubled.collect()];
        let counts = counts.map(|keys| keys.into_iter().filter(|key| deletes_expired_responses(key)).count());
        assert!(counts.iter().all(|count| (40..200).contains(count)), "{counts:?}");
    }

    #[tokio::test]
    async fn expired_responses_are_deleted_faster_than_new_ones_are_stored() {
        let fixture = Fixture::new().await;
        let clock = MovableClock::at(0);
        let service = service(fixture.db.clone(), clock.clone(), Silent);
        let write = async |key: &str| {
            let once = IdempotentRequest { operation: "op", key, request_hash: "h".to_owned(), render: |()| Vec::new() };
            let by = WriteContext::alone(&fixture.store, Actor::System).once(Some(once));
            let WriteStart::Fresh(change) = service.begin(&by).await.unwrap() else { panic!("{key} was kept") };
            assert!(matches!(change.finish(&by, ()).await.unwrap(), WriteOutcome::New(())));
        };
        for day in 0..2 {
            for i in 0..40 {
                write(&format!("{day}-{i}")).await;
            }
            clock.pass(KEPT_MILLIS + 1);
        }
        let looker: Arc<dyn Clock> = MovableClock::at(0);
        let look = fixture.db.write(&fixture.store, &looker).await.unwrap();
        for i in 0..40 {
            let old = look.kept("op", &format!("0-{i}"), look.now().plus_millis(-1)).await.unwrap();
            assert!(old.is_none(), "0-{i}");
        }
    }
}
