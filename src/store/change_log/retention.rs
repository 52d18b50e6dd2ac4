//! Deletes old entries of the change log, the log of changed records that the search index follows.
//!
//! Guarantees: entries of the last week are kept. The newest entries are kept whatever their age. On PostgreSQL these are the entries of
//! the newest transaction of each store: a process compares the id of this transaction with the snapshot of a standby, to find out whether
//! the standby is up to date. On SQLite this is the newest entry of the whole log.
//!
//! A reader of the log finds out whether entries that it has not read were deleted. For this, the transaction that deletes entries also
//! stores up to which point it has deleted them (`forgotten_changes`). On SQLite the point is a log position, on PostgreSQL a transaction
//! id.
//!
//! On PostgreSQL an entry is deleted only if the transaction that wrote it is older than every transaction that still runs. The change of
//! the entry is then visible in every snapshot that a reader takes afterwards, so such a reader does not need the entry. A transaction that
//! never ends, such as a forgotten prepared transaction, prevents deletions, just as it prevents VACUUM from removing rows.

use std::{cmp, time::Duration};

use sea_orm::{
    ColumnTrait, Condition, DbBackend, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, Query},
};

use crate::{
    domain::time::Timestamp,
    store::{
        Db, Result,
        change_feed::ACTIVATION_PENDING,
        entity::{
            change_feeds,
            change_log_entries::{self, Column},
            forgotten_changes,
        },
        parameterised_sql::Sql,
        sql_from_entities::change_sql,
    },
};

/// How long the entries of the log are kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many entries of the log are read, and deleted, in one batch. The number is small, since on SQLite other writers wait for the
/// deletion.
const BATCH_ENTRIES: u64 = 500;
/// The most batches in one call of [`Db::prune_change_log`].
const MAX_BATCHES: u32 = 500;

/// SQL for the id of the oldest running transaction; if none runs, the next id to be assigned.
const OLDEST_RUNNING_ID: &str = "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)";
/// SQL for the least transaction id that is not assigned yet in the statement's snapshot.
const NEXT_TRANSACTION_ID: &str = "(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint)";
/// SQL for the database's clock, in milliseconds. If the clock of this process is ahead of the database's clock, the age of an entry is
/// measured with the database's clock, so that no entry is deleted too early.
const CLOCK: &str = "(SELECT (extract(epoch FROM now()) * 1000)::bigint)";

/// The position in the log that the current pass has reached. A pass goes through the old entries of the log once, in several calls of
/// [`Db::prune_change_log`]. An entry that one pass may not delete yet is checked again in the next pass.
#[derive(Debug, Default)]
pub struct RetentionPass(i64);

impl Db {
    /// Continues a pass that deletes entries older than a week. Returns the number of deleted entries. `ahead`: by how many milliseconds
    /// `now` is intentionally ahead of the database's clock. It is 0 except in a sandbox, a database for tests whose clock can be advanced.
    pub async fn prune_change_log(&self, now: Timestamp, ahead: i64, pass: &mut RetentionPass) -> Result<u64> {
        let kept = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
        let now = match self.backend() {
            DbBackend::Sqlite => now.millis(),
            _ => {
                let clock = self.first(Sql::fixed(&format!("SELECT {CLOCK}")), |cells| cells.take::<i64>()).await?;
                clock.map_or(now.millis(), |clock| cmp::min(clock.saturating_add(ahead), now.millis()))
            }
        };
        let before = now.saturating_sub(kept);
        let mut pruned = 0;
        for _ in 0..MAX_BATCHES {
            let next = change_log_entries::Entity::find()
                .select_only()
                .columns([Column::Position, Column::ChangedAt])
                .filter(Column::Position.gt(pass.0))
                .order_by_asc(Column::Position)
                .limit(BATCH_ENTRIES);
            let places: Vec<(i64, i64)> = self.select(next, |cells| Ok((cells.take()?, cells.take()?))).await?;
            let Some((last, _)) = places.into_iter().rfind(|(_, at)| *at < before) else {
                *pass = RetentionPass::default();
                break;
            };
            pruned += self.prune_entries(pass.0, last, before).await?;
            pass.0 = last;
        }
        Ok(pruned)
    }

    /// Deletes the entries at positions after `after` and up to `last` that were logged before the time `before`. Returns their number.
    async fn prune_entries(&self, after: i64, last: i64, before: i64) -> Result<u64> {
        let old = Condition::all()
            .add(Column::Position.gt(after))
            .add(Column::Position.lte(last))
            .add(Column::ChangedAt.lt(before))
            .add(self.is_not_newest());
        // What `forgotten_changes` contains: on SQLite a position, on PostgreSQL a transaction id.
        let (point, has_ended) = match self.backend() {
            DbBackend::Sqlite => (Column::Position, None),
            _ => (Column::TransactionId, Some(Expr::col(Column::TransactionId).lt(Expr::cust(OLDEST_RUNNING_ID)))),
        };
        let mut query = Query::select();
        query.expr(point.max()).from(change_log_entries::Entity).cond_where(old.clone()).and_where_option(has_ended);
        let through = self.select(query, |cells| cells.take::<Option<i64>>()).await?.pop().flatten();
        let Some(through) = through else { return Ok(0) };
        let noted = forgotten_changes::Entity::update_many()
            .col_expr(forgotten_changes::Column::Through, Expr::value(through))
            .filter(forgotten_changes::Column::Through.lt(through));
        if self.is_distributed() {
            // The entries and `forgotten_changes` are on several nodes, whose changes do not become visible at the same time. So the new
            // `forgotten_changes.through` is committed before the deletion. Readers read `through` after the entries, so they notice every
            // deletion.
            self.execute(&noted).await?;
        }
        // One transaction, so that every snapshot shows both the deletion and the new value of `through`, or neither. The deletion comes
        // first, as in earlier versions of the program: two processes that lock in different orders could wait for each other.
        let tx = self.begin().await?;
        let pruned = tx.execute(&change_log_entries::Entity::delete_many().filter(old).filter(point.lte(through))).await?;
        tx.execute(&noted).await?;
        tx.commit().await?;
        Ok(pruned)
    }

    /// Returns the condition that an entry is not among the newest, which are kept: on SQLite the newest entry of the log, on PostgreSQL
    /// the entries of the newest transaction of each store.
    fn is_not_newest(&self) -> Expr {
        let mut newest = Query::select();
        newest.from_as(change_log_entries::Entity, "n");
        if self.backend() == DbBackend::Sqlite {
            newest.expr(Expr::col(("n", Column::Position)).max());
            return Expr::col(Column::Position).lt(newest);
        }
        newest
            .expr(Expr::col(("n", Column::TransactionId)).max())
            .and_where(Expr::col(("n", Column::StoreId)).equals((change_log_entries::Entity, Column::StoreId)))
            .and_where(Expr::col(("n", Column::TransactionId)).gt(Expr::Constant(0_i64.into())));
        Expr::col(Column::TransactionId).lt(newest)
    }

    /// Gives new transaction ids to entries of the change log whose transaction ids this database server has not assigned yet. A database
    /// that was restored from a dump of another server has such ids. They look like ids of future transactions: readers of the log would
    /// read the entries again and again, and a standby would never count as up to date. Also resets such ids in `forgotten_changes` and
    /// `change_feeds` to 0.
    pub async fn assign_local_transaction_ids(&self) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            return Ok(());
        }
        // A change feed becomes ready once all transactions before `activated_by` have ended. With a transaction id of another server, that
        // might never happen.
        let feeds = change_feeds::Entity::update_many()
            .col_expr(change_feeds::Column::ActivatedBy, Expr::value(0_i64))
            .filter(Expr::col(change_feeds::Column::ActivatedBy).gte(Expr::cust(NEXT_TRANSACTION_ID)))
            .filter(change_feeds::Column::ActivatedBy.lt(ACTIVATION_PENDING));
        let entries = change_log_entries::Entity::update_many()
            .col_expr(Column::TransactionId, Expr::cust("pg_current_xact_id()::text::bigint"))
            .filter(Expr::col(Column::TransactionId).gt(Expr::Constant(0_i64.into())))
            .filter(Expr::col(Column::TransactionId).gte(Expr::cust(NEXT_TRANSACTION_ID)));
        let through = forgotten_changes::Entity::update_many()
            .col_expr(forgotten_changes::Column::Through, Expr::value(0_i64))
            .filter(Expr::col(forgotten_changes::Column::Through).gte(Expr::cust(OLDEST_RUNNING_ID)));
        let backend = self.backend();
        let tx = self.begin().await?;
        for update in [change_sql(&entries, backend)?, change_sql(&through, backend)?, change_sql(&feeds, backend)?] {
            tx.run(&self.with_coordinator_snapshot(update).await?).await?;
        }
        tx.commit().await
    }
}

#[cfg(test)]
mod tests {
    use std::{ops::Range, sync::Arc};

    use super::*;
    use crate::{
        domain::{
            clock::Clock,
            fake_clock_and_test_rules::MovableClock,
            ids::{ContactId, StoreId},
        },
        store::{change_log::reader::LogPosition, fixture::Fixture, transaction::store_transaction::Changed},
    };

    impl Fixture {
        async fn log(&self, store: &str, at: i64, contacts: Range<usize>) {
            let clock: Arc<dyn Clock> = MovableClock::at(at);
            let write = self.db.write(&StoreId::from(store), &clock).await.unwrap();
            for contact in contacts {
                write.changed(Changed::Contact(&ContactId::from(format!("c{contact}"))));
            }
            write.commit().await.unwrap();
        }

        async fn prune_entries(&self, now: i64, pass: &mut RetentionPass) -> u64 {
            self.db.prune_change_log(Timestamp::from_millis(now), 0, pass).await.unwrap()
        }

        /// Deletes entries that were logged before `at`, until `expected` entries are deleted. The deletion is retried, since running
        /// transactions of other tests delay deletions on PostgreSQL.
        async fn prune_before(&self, at: i64, expected: usize) {
            let (mut pass, mut pruned) = (RetentionPass::default(), 0);
            for _ in 0..500 {
                pruned += self.prune_entries(WEEK.saturating_add(at), &mut pass).await;
                if pruned >= expected as u64 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(pruned, expected as u64);
        }

        async fn mark_now(&self) -> LogPosition {
            self.db.log_position().await.unwrap()
        }

        /// Returns the log position of the end of the log. On PostgreSQL it first waits until all transactions with entries in the log have
        /// ended.
        async fn log_position(&self) -> LogPosition {
            let ended = match self.db.backend() {
                DbBackend::Sqlite => "SELECT TRUE".to_owned(),
                _ => format!("SELECT COALESCE(MAX(transaction_id), 0) < {OLDEST_RUNNING_ID} FROM changes"),
            };
            while self.db.first(Sql::fixed(&ended), |cells| cells.take()).await.unwrap() != Some(true) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.mark_now().await
        }

        /// Returns the number of changes after a log position. `None` if some of them were deleted or the position belongs to another
        /// database.
        async fn changes_after(&self, log_position: &LogPosition) -> Option<usize> {
            Some(self.db.changes_since(log_position, 10_000).await.unwrap()?.changes.len())
        }
    }

    const WEEK: i64 = 7 * 24 * 3600 * 1000;

    #[tokio::test]
    async fn old_log_entries_are_deleted_and_the_newest_is_kept() {
        const OLD: usize = 1200;
        let fixture = Fixture::alone().await;
        let first = fixture.log_position().await;
        fixture.log("s", 7, 0..OLD).await;
        let second = fixture.log_position().await;
        fixture.log("s", 10, OLD..OLD + 3).await;
        assert_eq!(fixture.changes_after(&first).await, Some(OLD + 3));
        assert_eq!(fixture.prune_entries(WEEK + 7, &mut RetentionPass::default()).await, 0);
        let last = fixture.log_position().await;
        fixture.prune_before(10, OLD).await;
        assert_eq!(fixture.changes_after(&first).await, None);
        assert_eq!(fixture.changes_after(&second).await, Some(3));
        assert_eq!(fixture.changes_after(&last).await, Some(0));
        let sqlite = fixture.db.backend() == DbBackend::Sqlite;
        fixture.prune_before(i64::MAX, if sqlite { 2 } else { 0 }).await;
        assert_eq!(fixture.changes_after(&last).await, Some(0));
        assert_eq!(fixture.changes_after(&fixture.log_position().await).await, Some(0));
    }

    #[tokio::test]
    async fn a_reader_behind_deleted_log_entries_is_refused_between_pages() {
        let fixture = Fixture::alone().await;
        let first = fixture.db.log_position().await.unwrap();
        for at in 0..9 {
            fixture.log("s", at, 0..1).await;
        }
        let begun = fixture.db.changes_since(&first, 3).await.unwrap().unwrap();
        assert_eq!((begun.changes.len(), begun.more), (3, true));
        assert_eq!(fixture.changes_after(&begun.log_position).await, Some(6));
        fixture.prune_before(5, 5).await;
        assert_eq!(fixture.changes_after(&begun.log_position).await, None);
    }

    #[tokio::test]
    async fn many_kept_entries_do_not_prevent_the_deletion_of_later_ones() {
        let fixture = Fixture::alone().await;
        // Logs more old entries than one call reads. On PostgreSQL all of them are kept as the newest entries of their store, since one
        // transaction wrote them.
        let kept = usize::try_from(BATCH_ENTRIES * u64::from(MAX_BATCHES)).unwrap() + 1;
        fixture.log("idle", 1, 0..kept).await;
        fixture.log("s", 2, 0..2).await;
        fixture.log("s", 3, 2..3).await;
        let sqlite = fixture.db.backend() == DbBackend::Sqlite;
        fixture.prune_before(4, if sqlite { kept + 2 } else { 2 }).await;
    }

    #[tokio::test]
    async fn a_log_position_stays_valid_after_its_entry_is_deleted() {
        let fixture = Fixture::alone().await;
        fixture.log("s", 1, 0..1).await;
        let log_position = fixture.log_position().await;
        fixture.log("s", 2, 1..2).await;
        fixture.prune_before(3, 1).await;
        assert_eq!(fixture.changes_after(&log_position).await, Some(1));
    }

    #[tokio::test]
    async fn an_entry_with_a_future_time_does_not_prevent_deletion_of_others() {
        let fixture = Fixture::alone().await;
        let first = fixture.log_position().await;
        fixture.log("s", i64::MAX / 2, 0..1).await;
        fixture.log("s", 1, 1..4).await;
        fixture.log("s", 2, 4..5).await;
        fixture.prune_before(3, 3).await;
        assert_eq!(fixture.changes_after(&first).await, None);
    }

    #[tokio::test]
    async fn log_entries_from_another_server_s_dump_are_not_reported_again() {
        let fixture = Fixture::alone().await;
        if fixture.db.backend() == DbBackend::Sqlite {
            return;
        }
        fixture.log("s", 1, 0..3).await;
        let before = fixture.log_position().await;
        fixture.execute("UPDATE changes SET transaction_id = transaction_id + 1000000000").await.unwrap();
        assert_eq!(fixture.changes_after(&fixture.mark_now().await).await, Some(3));
        fixture.execute("UPDATE forgotten_changes SET through = 1000000000").await.unwrap();
        assert_eq!(fixture.changes_after(&fixture.mark_now().await).await, None);
        fixture.db.assign_local_transaction_ids().await.unwrap();
        assert_eq!(fixture.changes_after(&before).await, Some(3));
        let log_position = fixture.log_position().await;
        assert_eq!(fixture.changes_after(&log_position).await, Some(0));
        fixture.log("s", 2, 3..4).await;
        fixture.db.assign_local_transaction_ids().await.unwrap();
        assert_eq!(fixture.changes_after(&log_position).await, Some(1));
        fixture.execute("ALTER TABLE changes RENAME TO former").await.unwrap();
        fixture.execute("CREATE TABLE changes (LIKE former INCLUDING ALL)").await.unwrap();
        assert_eq!(fixture.changes_after(&log_position).await, None);
        assert_eq!(fixture.changes_after(&fixture.log_position().await).await, Some(0));
    }
}
