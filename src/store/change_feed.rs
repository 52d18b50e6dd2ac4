//! The change feed of a store: a log of changed records, by which clients keep copies of the store up to date (change data capture). This
//! file has the state of a feed, the sequence numbers of its entries, its pages, and the deletion of old entries.
//!
//! Triggers of the database append an entry to `record_changes` for each changed record of a store whose feed is active. Before a reader
//! reads entries, it assigns sequence numbers to the committed entries that have none. Only one process at a time does so. So once a reader
//! has seen a number, no smaller number appears later. A page contains the records as they are in one snapshot, not as they were after each
//! change.
//!
//! Entries are kept for a week. A feed that was not read for a week becomes inactive. When the feed is activated again, its numbers
//! continue.

use std::{cmp, collections::HashMap, time::Duration};

use sea_orm::{
    ColumnTrait, DbBackend, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, OnConflict},
};

use crate::{
    domain::{
        ids::StoreId,
        ndjson_records::{Record, RecordKind},
        time::Timestamp,
    },
    store::{
        Db, Error, Result,
        entity::{
            change_feed_entries::{self, Column as Entry},
            change_feeds::{self, Column as Feed},
        },
        export::Export,
        numbering::NumberedTable,
        parameterised_sql::Sql,
        postgres::advisory_locks::AdvisoryLock,
        sql_from_entities::change_sql,
    },
};

const ENTRIES: NumberedTable = NumberedTable { name: "record_changes", lock: AdvisoryLock::ChangeNumbers };

/// The most entries that are deleted in one transaction.
const BATCH: u64 = 500;

/// The most entries that one statement scans. If a client requests only rare kinds of records, a page may need several such statements.
const MAX_SCANNED: i64 = 10_000;

/// How long entries are kept. A feed that was not read for this time becomes inactive.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The precision of the stored time at which a feed was last read: a read updates the stored time only if that time is at least this old.
const READ_TIME_PRECISION: Duration = Duration::from_secs(3600);

/// The value of `change_feeds.activated_by` between [`Db::activate_feed`] and [`Db::note_feed_activation`]. It is greater than all
/// transaction ids, so the comparison in [`Db::change_feed`] finds that the feed is not ready. Processes of an earlier version of the
/// program make the same comparison, so they do not treat the feed as ready either.
pub(in crate::store) const ACTIVATION_PENDING: i64 = i64::MAX;

/// The state of a store's feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFeed {
    /// Whether changes of the store's records are recorded now.
    pub is_active: bool,
    /// Whether the feed is complete. A transaction does not record its changes if it does not see the activation of the feed, so the feed
    /// is complete only once all such transactions have ended.
    pub is_ready: bool,
    /// The greatest assigned sequence number.
    pub last: i64,
    /// The greatest sequence number whose entry may have been deleted.
    pub forgotten: i64,
    used_at: i64,
}

/// A record that changed.
#[derive(Debug)]
pub struct ChangedRecord {
    /// The sequence number of the record's last entry on the page.
    pub sequence: i64,
    pub kind: RecordKind,
    pub id: String,
    /// The record as the snapshot of the page shows it. `None`: the record was deleted.
    pub record: Option<Record>,
}

/// A page of a feed.
#[derive(Debug)]
pub struct FeedPage {
    /// The changed records, each once, in the order of their sequence numbers.
    pub changes: Vec<ChangedRecord>,
    /// The sequence number after which the next page begins.
    pub reached: i64,
    /// Whether the snapshot in which the page was read contains no later change.
    pub is_last: bool,
}

impl Db {
    /// Returns the state of a store's feed, if it was ever activated.
    pub async fn change_feed(&self, store: &StoreId) -> Result<Option<ChangeFeed>> {
        let is_ready = match self.backend() {
            DbBackend::Sqlite => Expr::Constant(true.into()),
            _ => Expr::col(Feed::ActivatedBy).lte(Expr::cust("pg_snapshot_xmin(pg_current_snapshot())::text::bigint")),
        };
        let query = change_feeds::Entity::find()
            .select_only()
            .expr(is_ready)
            .columns([Feed::Active, Feed::LastSequence, Feed::Forgotten, Feed::UsedAt])
            .filter(Feed::StoreId.eq(store));
        let feed = self.select(query, |cells| {
            let (is_ready, is_active) = (cells.take()?, cells.take()?);
            Ok(ChangeFeed { is_active, is_ready, last: cells.take()?, forgotten: cells.take()?, used_at: cells.take()? })
        });
        Ok(feed.await?.pop())
    }

    /// Enables the triggers that record changes. On PostgreSQL they are disabled until a feed is first activated (migration
    /// `m0026_cheaper_sends`). The triggers of each table are enabled in a transaction of their own: a transaction that locks two tables
    /// could deadlock with a writer.
    async fn enable_change_triggers(&self) -> Result<()> {
        let disabled = "SELECT relname::text FROM pg_class JOIN pg_trigger ON tgrelid = pg_class.oid AND tgname = relname || '_recorded_on_insert' \
                        WHERE tgenabled = 'D' AND pg_table_is_visible(pg_class.oid) ORDER BY relname";
        let tables: Vec<String> = self.all(Sql::fixed(disabled), |cells| cells.take()).await?;
        for table in tables {
            let tx = self.begin().await?;
            // While this transaction waits for its lock on the table, other writers of the table wait, too. So this transaction waits two
            // seconds at most.
            tx.run(&Sql::fixed("SET LOCAL lock_timeout = '2s'")).await?;
            let mut sql = Sql::fixed("SELECT record_changes_of(");
            sql.text(&table).push(")");
            tx.all(&sql, |_| Ok(())).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Activates the feed of a store: changes of the store's records are recorded from now on. If the feed was inactive before,
    /// [`Export::changes_after`] refuses all earlier sequence numbers, since changes were not recorded while the feed was inactive.
    pub async fn activate_feed(&self, store: &StoreId, now: Timestamp) -> Result<()> {
        if self.backend() == DbBackend::Postgres {
            self.enable_change_triggers().await?;
        }
        // On PostgreSQL, `note_feed_activation` replaces `ACTIVATION_PENDING` after the transaction below has committed.
        let activated_by = if self.backend() == DbBackend::Sqlite { 0 } else { ACTIVATION_PENDING };
        let (store_id, used_at) = (store.to_string(), now.millis());
        let feed = change_feeds::Model { store_id, active: true, activated_by, last_sequence: 0, forgotten: 0, used_at };
        let next = Expr::col(Feed::LastSequence.as_column_ref()).add(1_i64);
        let mut activate_again = OnConflict::column(Feed::StoreId);
        activate_again
            .update_columns([Feed::Active, Feed::ActivatedBy, Feed::UsedAt])
            .values([(Feed::LastSequence, next.clone()), (Feed::Forgotten, next)])
            .action_and_where(Feed::Active.eq(false));
        self.execute(&change_feeds::Entity::insert(feed.into_active_model()).on_conflict(activate_again)).await.map(|_| ())
    }

    /// On PostgreSQL, stores the id of a transaction that begins after the activation of a feed has committed. Transactions with a greater
    /// id see the activation. A transaction with a smaller id may have changed a record without recording the change, so the feed is ready
    /// only once all transactions with smaller ids have ended. The id of the activating transaction is not enough: other transactions get
    /// greater ids before it commits.
    pub async fn note_feed_activation(&self, store: &StoreId) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            return Ok(());
        }
        let noted = change_feeds::Entity::update_many()
            .col_expr(Feed::ActivatedBy, Expr::cust("pg_current_xact_id()::text::bigint"))
            .filter(Feed::StoreId.eq(store))
            .filter(Feed::ActivatedBy.eq(ACTIVATION_PENDING));
        self.execute(&noted).await.map(|_| ())
    }

    /// Stores the time at which a feed was last read, unless the stored time is less than an hour old.
    pub async fn note_feed_use(&self, store: &StoreId, feed: &ChangeFeed, now: Timestamp) -> Result<()> {
        if now.millis().saturating_sub(feed.used_at) < millis(READ_TIME_PRECISION) {
            return Ok(());
        }
        let used = change_feeds::Entity::update_many().col_expr(Feed::UsedAt, Expr::value(now)).filter(Feed::StoreId.eq(store));
        self.execute(&used).await.map(|_| ())
    }

    /// Assigns sequence numbers to the committed entries that have none, of one store or of all stores.
    pub async fn number_record_changes(&self, of: Option<&StoreId>, now: Timestamp) -> Result<()> {
        let number = |store: &StoreId, positions: &[i64]| {
            let last = change_feeds::Entity::find().select_only().column(Feed::LastSequence).filter(Feed::StoreId.eq(store)).into_query();
            let mut number = ENTRIES.number(store, positions, last);
            number.value(Entry::NumberedAt, now);
            let last = change_feed_entries::Entity::find().select_only().expr(Entry::Sequence.max()).filter(Entry::StoreId.eq(store));
            let last = last.filter(Entry::Sequence.is_not_null()).into_query();
            let count = change_feeds::Entity::update_many().col_expr(Feed::LastSequence, last.into()).filter(Feed::StoreId.eq(store));
            [change_sql(&number, self.backend()), change_sql(&count, self.backend())].into_iter().collect()
        };
        self.number_rows(ENTRIES, of, number).await
    }

    /// Deletes the entries that are older than a week, and all entries of inactive feeds. Makes a feed inactive that was not read for a
    /// week. Returns the number of deleted entries.
    pub async fn prune_record_changes(&self, now: Timestamp) -> Result<u64> {
        let before = now.millis().saturating_sub(millis(KEPT));
        let feeds = self.find_all(change_feeds::Entity::find().order_by_asc(Feed::StoreId)).await?;
        if feeds.is_empty() {
            return Ok(0);
        }
        self.number_record_changes(None, now).await?;
        let mut pruned = 0;
        for feed in feeds {
            let store = StoreId::from(feed.store_id);
            let mut is_kept = feed.active;
            if feed.active && feed.used_at < before {
                let deactivated = change_feeds::Entity::update_many()
                    .col_expr(Feed::Active, Expr::value(false))
                    .filter(Feed::StoreId.eq(&store))
                    .filter(Feed::UsedAt.lt(before));
                // If the feed was read meanwhile, no row is changed.
                is_kept = self.execute(&deactivated).await? == 0;
            }
            // If the feed is inactive, all entries that were numbered up to `now` are deleted. Entries that were numbered later stay: they
            // belong to a feed that was activated again meanwhile.
            let before = if is_kept { before } else { now.millis().saturating_add(1) };
            while let Some(end) = self.end_of_old(&store, before).await? {
                pruned += self.prune_through(&store, end).await?;
            }
        }
        Ok(pruned)
    }

    /// Returns the sequence number of the last entry in the next batch to delete. `None` if no entry is old enough.
    async fn end_of_old(&self, store: &StoreId, before: i64) -> Result<Option<i64>> {
        let numbered = change_feed_entries::Entity::find()
            .select_only()
            .columns([Entry::Sequence, Entry::NumberedAt])
            .filter(Entry::StoreId.eq(store))
            .filter(Entry::Sequence.is_not_null())
            .order_by_asc(Entry::Sequence)
            .limit(BATCH);
        let oldest: Vec<(i64, Option<i64>)> = self.select(numbered, |cells| Ok((cells.take()?, cells.take()?))).await?;
        let old = oldest.into_iter().take_while(|(_, at)| at.is_none_or(|at| at < before));
        Ok(old.last().map(|(sequence, _)| sequence))
    }

    async fn prune_through(&self, store: &StoreId, end: i64) -> Result<u64> {
        let tx = self.begin().await?;
        // `forgotten` and the deletion are in one transaction, so that every snapshot shows both changes or neither. `forgotten` never
        // decreases, in whichever order two processes store it.
        let mark = change_feeds::Entity::update_many()
            .col_expr(Feed::Forgotten, Expr::value(end))
            .filter(Feed::StoreId.eq(store))
            .filter(Feed::Forgotten.lt(end));
        tx.execute(&mark).await?;
        let delete = change_feed_entries::Entity::delete_many()
            .filter(Entry::StoreId.eq(store))
            .filter(Entry::Sequence.is_not_null())
            .filter(Entry::Sequence.lte(end));
        let pruned = tx.execute(&delete).await?;
        tx.commit().await?;
        Ok(pruned)
    }
}

impl Export {
    /// Returns the records of at most `limit` entries after the sequence number `after`, each record once and as this snapshot shows it. An
    /// empty `kinds` stands for all kinds. `None`: the feed is inactive, entries after this number may have been deleted, or the number has
    /// not been assigned yet.
    pub async fn changes_after(&self, after: i64, kinds: &[RecordKind], limit: u64) -> Result<Option<FeedPage>> {
        let feed = change_feeds::Entity::find_by_id(self.store()).one(self.snapshot()).await?;
        let Some(feed) = feed.filter(|feed| feed.active && (feed.forgotten..=feed.last_sequence).contains(&after)) else { return Ok(None) };
        let (mut entries, mut reached) = (Vec::new(), after);
        while entries.is_empty() && reached < feed.last_sequence {
            let end = cmp::min(reached.saturating_add(MAX_SCANNED), feed.last_sequence);
            let mut query = change_feed_entries::Entity::find()
                .filter(Entry::StoreId.eq(self.store()))
                .filter(Entry::Sequence.is_not_null())
                .filter(Entry::Sequence.gt(reached))
                .filter(Entry::Sequence.lte(end));
            if !kinds.is_empty() {
                query = query.filter(Entry::Kind.is_in(kinds.iter().map(|kind| kind.name())));
            }
            entries = query.order_by_asc(Entry::Sequence).limit(limit).all(self.snapshot()).await?;
            let full = u64::try_from(entries.len()).is_ok_and(|found| found >= limit);
            reached = entries.last().filter(|_| full).and_then(|last| last.sequence).unwrap_or(end);
        }
        let unnumbered = change_feed_entries::Entity::find().filter(Entry::Sequence.is_null()).filter(Entry::StoreId.eq(self.store()));
        let is_last = reached == feed.last_sequence && unnumbered.one(self.snapshot()).await?.is_none();
        Ok(Some(FeedPage { changes: self.records_of_entries(entries).await?, reached, is_last }))
    }

    /// Reads the records that entries name, each once, as this snapshot shows them.
    async fn records_of_entries(&self, entries: Vec<change_feed_entries::Model>) -> Result<Vec<ChangedRecord>> {
        let mut latest: HashMap<(RecordKind, String), i64> = HashMap::new();
        for entry in entries {
            let unknown = || Error::Damaged(format!("the log of changes names the unknown kind `{}`", entry.kind));
            let kind = RecordKind::of(&entry.kind).ok_or_else(unknown)?;
            latest.insert((kind, entry.record_id), entry.sequence.unwrap_or_default());
        }
        let mut ids: HashMap<RecordKind, Vec<String>> = HashMap::new();
        for (kind, id) in latest.keys() {
            ids.entry(*kind).or_default().push(id.clone());
        }
        let mut records: HashMap<(RecordKind, String), Record> = HashMap::new();
        for (kind, ids) in ids {
            let found = self.named(kind, &ids).await?;
            records.extend(found.into_iter().map(|record| ((kind, record.id().to_owned()), record)));
        }
        let changed = latest.into_iter().map(|(key, sequence)| {
            let record = records.remove(&key);
            ChangedRecord { sequence, kind: key.0, id: key.1, record }
        });
        let mut changes: Vec<ChangedRecord> = changed.collect();
        changes.sort_unstable_by_key(|change| change.sequence);
        Ok(changes)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::clock::{Clock, SystemClock},
        store::fixture::Fixture,
    };

    /// A transaction that gets its id while the activating transaction runs may change a record without recording the change. This cannot
    /// happen on SQLite, which has one writer at a time.
    #[tokio::test]
    async fn a_feed_waits_for_transactions_that_might_have_missed_its_activation() {
        let fixture = Fixture::alone().await;
        if fixture.is_sqlite() {
            return;
        }
        let (db, store) = (fixture.db.clone(), fixture.store.clone());
        // The open transaction `blocking` locks the store's row, so the activating transaction waits for this lock after it has got its id.
        // `other` is a second `Db`, since `db` has only two connections for writes.
        let other = Db::open(&fixture.url, 1, None).await.unwrap();
        let blocking = other.begin().await.unwrap();
        blocking.script("SELECT 1 FROM stores FOR UPDATE").await.unwrap();
        let activation = tokio::spawn({
            let (db, store) = (db.clone(), store.clone());
            async move { db.activate_feed(&store, Timestamp::from_millis(1)).await }
        });
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while db.first(Sql::fixed(waiting), |cells| cells.take::<i64>()).await.unwrap() == Some(0) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let missing = db.write(&store, &clock).await.unwrap();
        missing.run(Sql::of(&store, "UPDATE contacts SET note = 'unseen' WHERE store_id = $1")).await.unwrap();
        blocking.commit().await.unwrap();
        activation.await.unwrap().unwrap();
        other.close().await.unwrap();
        let is_ready = async || db.change_feed(&store).await.unwrap().unwrap().is_ready;
        assert!(!is_ready().await, "the activation is not noted yet");
        db.note_feed_activation(&store).await.unwrap();
        assert!(!is_ready().await, "a transaction still runs that has changed a record and recorded nothing");
        missing.commit().await.unwrap();
        // The feed becomes ready when all earlier transactions have ended, also those in other databases of the server, which other tests
        // use at the same time.
        while !is_ready().await {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Runs only on PostgreSQL, since SQLite cannot disable a trigger.
    #[tokio::test]
    async fn triggers_that_record_changes_are_disabled_until_a_feed_is_activated() {
        let by_this_version = Fixture::alone().await;
        if by_this_version.is_sqlite() {
            return;
        }
        let disabled = async |fixture: &Fixture| {
            let count = "SELECT COUNT(*) FROM pg_trigger WHERE tgname LIKE '%\\_recorded\\_on\\_%' AND tgenabled = 'D'";
            fixture.db.first(Sql::fixed(count), |cells| cells.take::<i64>()).await.unwrap()
        };
        assert_eq!(disabled(&by_this_version).await, Some(15));
        by_this_version.db.activate_feed(&by_this_version.store, Timestamp::from_millis(1)).await.unwrap();
        assert_eq!(disabled(&by_this_version).await, Some(0));
        let by_an_earlier_version = Fixture::alone().await;
        let activation = "INSERT INTO change_feeds (store_id, active, activated_by, last_sequence, forgotten, used_at) \
                          SELECT id, TRUE, 0, 0, 0, 0 FROM stores";
        by_an_earlier_version.execute(activation).await.unwrap();
        assert_eq!(disabled(&by_an_earlier_version).await, Some(0));
    }
}
