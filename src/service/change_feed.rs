//! Use-cases of the change feed (change data capture): a reader keeps a copy of a store's records. The reader begins with a snapshot of all
//! records, and then follows the feed of changed records.
//!
//! The reader pages through the snapshot, kind by kind. Then it reads the feed from the sequence number that the first page of the snapshot
//! named. The pages of a snapshot are read at different times. A record that changes between the first and the last page is in the feed,
//! too, and so the reader's copy becomes equal to the store. The first page of a snapshot activates the feed. Until then, the feed records
//! no changes.

use std::time::Duration;

use super::{Error, Result, Service};
use crate::{
    domain::{
        ids::StoreId,
        ndjson_records::{Record, RecordKind},
    },
    store::{self, change_feed::ChangeFeed},
};

pub use crate::store::change_feed::{ChangedRecord, FeedPage};

/// A request that activates the feed waits until the transactions that ran at the activation have ended: it checks them at most
/// `FEED_ACTIVATION_CHECKS` times, with the pause `BETWEEN_LOOKS` in between.
const FEED_ACTIVATION_CHECKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A page of a snapshot.
#[derive(Debug)]
pub struct SnapshotPage {
    /// Records of one kind, in the order of their ids.
    pub records: Vec<Record>,
    /// The last sequence number of the feed before the page was read.
    pub start: i64,
}

impl Service {
    /// Returns the changes of records of these kinds after the sequence number `after`, from at most `limit` entries of the feed. If
    /// `kinds` is empty, returns changes of all kinds. Changes that have no sequence number yet get one first. If other writers hold the
    /// write lock for too long, changes without a number are left out. Fails with [`Error::Gone`] if the feed is not active, if some
    /// changes after `after` were deleted, or if the number `after` has not been assigned yet.
    pub async fn changes_after(&self, store: &StoreId, after: i64, kinds: &[RecordKind], limit: u64) -> Result<FeedPage> {
        let db = self.db();
        let all_numbered = match db.number_record_changes(Some(store), self.clocks_and_ids().now()).await {
            Ok(()) => true,
            Err(store::Error::Busy) => {
                tracing::warn!("other writers hold the write lock; changes without a sequence number come later");
                false
            }
            Err(error) => return Err(error.into()),
        };
        let known = |feed: &ChangeFeed| feed.is_active && (feed.forgotten..=feed.last).contains(&after);
        let feed = db.change_feed(store).await?.filter(known).ok_or_else(|| gone(after))?;
        db.note_feed_use(store, &feed, self.clocks_and_ids().now()).await?;
        if feed.last == after {
            return Ok(FeedPage { changes: vec![], reached: after, is_last: all_numbered });
        }
        let export = db.begin_export(store).await?.ok_or_else(|| gone(after))?;
        export.changes_after(after, kinds, limit).await?.ok_or_else(|| gone(after))
    }

    /// Returns at most `limit` records of the kind `kind` whose ids are greater than `after_id`, in the order of ids. Activates the
    /// store's feed if it is not active.
    pub async fn snapshot_page(&self, store: &StoreId, kind: RecordKind, after_id: Option<&str>, limit: u64) -> Result<SnapshotPage> {
        let start = self.active_feed(store).await?.last;
        let export = self.db().begin_export(store).await?.ok_or_else(|| no_store(store))?;
        Ok(SnapshotPage { records: export.page(kind, after_id, limit).await?, start })
    }

    /// Activates the feed of a store unless it is active, waits until the feed records every change, and returns the feed.
    async fn active_feed(&self, store: &StoreId) -> Result<ChangeFeed> {
        let db = self.db();
        for _ in 0..FEED_ACTIVATION_CHECKS {
            match db.change_feed(store).await?.filter(|feed| feed.is_active) {
                Some(feed) if feed.is_ready => {
                    db.note_feed_use(store, &feed, self.clocks_and_ids().now()).await?;
                    return Ok(feed);
                }
                Some(_) => {
                    // The feed is ready once all transactions have ended that began before the activation. `note_feed_activation` stores
                    // which transactions these are. The process that activated the feed may have ended before this step, so this process
                    // repeats the step. If the step was already done, it changes nothing.
                    db.note_feed_activation(store).await?;
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                }
                None => {
                    self.must_exist(store).await?;
                    db.activate_feed(store, self.clocks_and_ids().now()).await?;
                    db.note_feed_activation(store).await?;
                }
            }
        }
        let reason = "a database transaction that began before the feed of changes still runs; try again".to_owned();
        Err(Error::Unavailable { reason, retry_after: 5 })
    }
}

fn no_store(store: &StoreId) -> Error {
    Error::not_found("store", format!("there is no store `{store}`"))
}

fn gone(after: i64) -> Error {
    Error::Gone {
        field: "after".to_owned(),
        reason: format!(
            "is {after}, and the changes after it are not kept: changes are recorded from the first GET /changes/snapshot on, for 7 days, as \
             long as they are read. Read a new snapshot, and go on with its `x-next-after`; `counterpart copy` does so by itself"
        ),
    }
}
