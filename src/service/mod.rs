//! Use-cases (application services), one file per kind of record. The modules `http`, `assistant_tools`, `cli`, `delivery` and `app` call
//! the use-cases. The use-cases call `store` and `search`, and begin and commit the transaction of every write.

pub mod account_and_template_reads;
pub mod change_feed;
#[cfg(test)]
mod change_feed_tests;
pub mod channel_bridges;
#[cfg(test)]
mod concurrent_send_tests;
pub mod contact_reads;
pub mod contact_writes;
pub mod conversation_reads;
mod conversation_threads;
pub mod conversation_writes;
pub mod credentials_account_access_audit;
#[cfg(test)]
mod draft_tests;
pub mod drafts;
mod endpoint_urls;
pub mod error;
pub mod event_feed;
pub mod export;
pub mod field_definition_reads;
mod field_patterns;
#[cfg(test)]
mod filter_tests;
pub mod import;
pub mod inbound;
#[cfg(test)]
mod key_tests;
pub mod keys;
pub mod message_reads;
pub mod outbox_processing;
#[cfg(test)]
mod read_tests;
pub mod sandbox_clock;
pub mod search;
pub mod seats;
pub mod sends;
pub mod store_creation_and_settings;
#[cfg(test)]
pub(crate) mod test_service;
pub mod ticket_reads;
#[cfg(test)]
mod ticket_state_tests;
pub mod ticket_updates;
pub mod unassign_snooze_handover;
pub mod undelivered_messages;
pub mod user_team_label_reads;
pub mod webhooks;
mod write_transaction;

use std::sync::Arc;

use tokio::sync::Notify;

use crate::{
    domain::{clock::ClocksAndIds, ids::StoreId, revision_rules::Rules, settings_access::StoreLimits, ssrf_policy::Targets},
    search::SearchService,
    store::Db,
};

pub use crate::store::{StatementLimit, api_key_auth::LookedUpCaller};
pub use error::{Error, Result};
pub use write_transaction::{IdempotentRequest, Renderer, WriteContext, WriteOutcome};

use keys::PendingKeyUses;
use sandbox_clock::Sandbox;
use write_transaction::InProgress;

/// The use-cases on one database.
#[derive(Clone)]
pub struct Service {
    db: Db,
    clocks_and_ids: ClocksAndIds,
    rules: Rules,
    events: Arc<dyn Renderer>,
    bounds: StoreLimits,
    /// The network addresses to which webhooks and bridges may lead. A bridge is an endpoint that delivers messages to their channel.
    targets: Targets,
    in_progress: InProgress,
    uses: PendingKeyUses,
    /// `None` in a process that has no search index, such as most commands.
    searches: Option<SearchService>,
    /// Notified after the commit of a write that has queued a message, or has made a queued message due.
    outbox_notify: Arc<Notify>,
    /// Notified after the commit of a write that has recorded or queued an event.
    deliveries: Arc<Notify>,
    /// The sandbox that this process serves, if any: a test database whose clock can be advanced.
    sandbox: Option<Arc<Sandbox>>,
    /// Notified when a use-case of this process commits its write transaction. All waiters wake.
    commits: Arc<Notify>,
}

impl Service {
    pub fn new(db: Db, clocks_and_ids: ClocksAndIds, rules: Rules, events: Arc<dyn Renderer>) -> Self {
        Self {
            db,
            clocks_and_ids,
            rules,
            events,
            bounds: StoreLimits::default(),
            targets: Targets::Any,
            in_progress: InProgress::default(),
            uses: PendingKeyUses::default(),
            searches: None,
            outbox_notify: Arc::default(),
            deliveries: Arc::default(),
            sandbox: None,
            commits: Arc::default(),
        }
    }

    /// Returns a copy with these limits on the numbers of webhooks and API keys of a store.
    #[must_use]
    pub fn bounded_by(self, bounds: StoreLimits) -> Self {
        Self { bounds, ..self }
    }

    /// Returns a copy that permits webhooks and bridges at these network addresses.
    #[must_use]
    pub fn delivering_to(self, targets: Targets) -> Self {
        Self { targets, ..self }
    }

    /// Returns a copy that uses this search service.
    pub fn searched_by(self, searches: SearchService) -> Self {
        Self { searches: Some(searches), ..self }
    }

    /// Returns a copy that reads from the standby of the database.
    #[must_use]
    pub fn on_replica(&self) -> Self {
        Self { db: self.db.on_replica(), ..self.clone() }
    }

    /// Returns a copy with a limit on how many statements of one store run at the same time. Unless [`StatementLimit::all`] is set, only
    /// statements that may read any number of rows count towards the limit.
    #[must_use]
    pub fn within(&self, share: StatementLimit) -> Self {
        Self { db: self.db.within(share), ..self.clone() }
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns the `Notify` that wakes its waiters when a use-case of this process commits. Commits of other processes do not wake the
    /// waiters.
    pub fn commits(&self) -> &Notify {
        &self.commits
    }

    pub fn clocks_and_ids(&self) -> &ClocksAndIds {
        &self.clocks_and_ids
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Refuses a new record if the store already has `most` records of its kind.
    fn must_be_below_limit(noun: &str, option: &str, count: i64, most: u32) -> Result<()> {
        if count < i64::from(most) {
            return Ok(());
        }
        Err(Error::Full(format!("the store has {count} {noun}, and may have {most} (`{option}`); delete one that is not needed")))
    }

    async fn must_exist(&self, store: &StoreId) -> Result<()> {
        if self.db().store_exists(store).await? { Ok(()) } else { Err(Error::not_found("store", format!("there is no store `{store}`"))) }
    }
}
