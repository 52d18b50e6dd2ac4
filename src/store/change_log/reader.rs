//! Reads the change log, which names the searchable records that changed.
//!
//! Writes and imports append to the log, the search index reads it, and `retention` deletes its old entries. Guarantees: a reader that
//! continues from a log position ([`LogPosition`]) misses no change that was committed after that position, in whatever order transactions
//! commit. If such changes were deleted, [`Db::changes_since`] returns `None`. A change may be returned twice.

use std::sync::{PoisonError, atomic::Ordering};

use sea_orm::{
    ColumnTrait, Condition, DbBackend, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, JoinType, Order, Query},
};
use serde::{Deserialize, Serialize};

use crate::{
    domain::ids::StoreId,
    store::{
        Db, Error, Result,
        change_log::own_change_queue::LoggedChange,
        entity::{
            change_log_entries::{self, Column},
            forgotten_changes,
        },
        parameterised_sql::{Param, Sql},
        row_decoding::Cells,
        sql_from_entities::among,
    },
};

/// A position in the change log (log position): how far a reader of the log has come.
///
/// On SQLite, a log position is the position of the last entry that was read. On PostgreSQL, the positions of entries are not in the order
/// of commits, so a log position is a snapshot: the reader has read all changes that are visible in the snapshot. To continue, the reader
/// takes a later snapshot (`next`). It reads the changes that are visible only in the later snapshot, page by page in the order of
/// positions. Reading them to the end is called a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// On SQLite the position of the last change that was read. On PostgreSQL the position that the current round has reached.
    position: i64,
    /// A fingerprint of the database, by which a restored database is noticed: on SQLite the time of the change at `position`, on
    /// PostgreSQL the ids of the server, of the database and of the log's table.
    witness: String,
    /// On PostgreSQL the snapshot whose changes were all read.
    snapshot: String,
    /// On PostgreSQL the snapshot whose changes will all be read at the end of the current round. `None` between two rounds.
    next: Option<String>,
}

impl LogPosition {
    /// Returns the position before the first page of the current round.
    pub fn at_round_start(&self) -> Self {
        match self.next {
            Some(_) => Self { position: 0, next: None, ..self.clone() },
            None => self.clone(),
        }
    }

    /// Returns whether no round is in progress.
    pub fn is_between_rounds(&self) -> bool {
        self.next.is_none()
    }
}

/// The kind of the log entry of a conversation whose subject an import has changed. The search index contains the subject with each message
/// of the conversation, so it reads these messages again. No other write changes the subject of an existing conversation.
pub const RETITLED: &str = "retitled";

/// The separator of the record ids in one entry of the log. No id contains it.
pub(in crate::store) const BETWEEN_IDS: &str = "\n";

/// SQL for the `witness` of a [`LogPosition`] on PostgreSQL.
pub(in crate::store) const DATABASE_FINGERPRINT: &str = "CONCAT((SELECT system_identifier FROM pg_control_system()), ' ', \
     (SELECT oid FROM pg_database WHERE datname = current_database()), ' ', 'changes'::regclass::oid)";

/// A condition on PostgreSQL: the snapshot `$1` of a log position is not in the future of this database, and no change that came after the
/// snapshot was deleted.
const SNAPSHOT_IS_VALID: &str = "pg_snapshot_xmax($1::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) \
     AND pg_snapshot_xmin($1::pg_snapshot)::text::bigint > (SELECT MAX(through) FROM forgotten_changes)";

/// Conditions on PostgreSQL for changes that the snapshot `$1` did not show. `BEGUN_AFTER`: changes of transactions that began after the
/// snapshot. `IN_PROGRESS_THEN`: changes of transactions that were in progress at the time of the snapshot. `BEGUN_AFTER` compares with the
/// snapshot's xmax, since the snapshot's xmin may be far back because of a long transaction.
const BEGUN_AFTER: &str = "transaction_id >= pg_snapshot_xmax($1::pg_snapshot)::text::bigint";
const IN_PROGRESS_THEN: &str = "transaction_id = ANY(ARRAY(SELECT x::text::bigint FROM pg_snapshot_xip($1::pg_snapshot) x))";

/// The columns that [`logged`] decodes.
const LOGGED: [Column; 4] = [Column::Position, Column::StoreId, Column::Kind, Column::RecordIds];

/// A page of changes from the log.
#[derive(Debug)]
pub struct ChangesSince {
    pub changes: Vec<LoggedChange>,
    /// The log position after these changes.
    pub log_position: LogPosition,
    pub more: bool,
}

impl Db {
    /// Starts the queue of this process's own changes: from now on [`Db::own_changes`] returns the changes that this process commits.
    pub fn follow_own_changes(&self) {
        self.own_changes.followed.store(true, Ordering::Release);
    }

    /// Takes the queued changes of searchable records that this process has committed since the last call.
    pub fn own_changes(&self) -> Vec<LoggedChange> {
        std::mem::take(&mut *self.own_changes.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the current epoch, a counter. If the write that inserted a record began in an earlier epoch, the search index may already
    /// have read that record from the database, possibly in a newer state. So the index does not use the record that this process kept in
    /// memory, and reads it from the database.
    pub fn own_epoch(&self) -> u64 {
        self.own_changes.epoch()
    }

    /// Begins the next epoch. The search index calls this after it has read records that the log did not name, such as all messages of a
    /// conversation.
    pub fn end_own_epoch(&self) {
        self.own_changes.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the log position of the current end of the log.
    pub async fn log_position(&self) -> Result<LogPosition> {
        let found = match self.backend() {
            DbBackend::Sqlite => {
                let last = change_log_entries::Entity::find()
                    .select_only()
                    .columns([Column::Position, Column::ChangedAt])
                    .order_by_desc(Column::Position)
                    .limit(1);
                let log_position = |cells: &mut Cells<'_>| {
                    Ok(LogPosition { position: cells.take()?, witness: cells.take::<i64>()?.to_string(), ..LogPosition::default() })
                };
                self.select(last, log_position).await?.pop()
            }
            _ => {
                let now = Sql::fixed(&format!("SELECT {DATABASE_FINGERPRINT}, pg_current_snapshot()::text"));
                let log_position =
                    |cells: &mut Cells<'_>| Ok(LogPosition { witness: cells.take()?, snapshot: cells.take()?, ..LogPosition::default() });
                self.first(now, log_position).await?
            }
        };
        Ok(found.unwrap_or_default())
    }

    /// Returns whether there may be changes after a log position. On SQLite the result is exact, and getting it is cheaper than reading the
    /// changes. On PostgreSQL it is always `true`.
    pub async fn may_be_behind(&self, log_position: &LogPosition) -> Result<bool> {
        match self.backend() {
            DbBackend::Sqlite => {
                let last = change_log_entries::Entity::find().select_only().expr(Column::Position.max());
                let last = self.select(last, |cells| cells.take::<Option<i64>>()).await?.pop().flatten();
                Ok(last.unwrap_or_default() != log_position.position)
            }
            _ => Ok(true),
        }
    }

    /// Returns the changes after a log position, from at most `limit` entries of the log. `None` if some of them were deleted, or if the
    /// position seems to belong to another database.
    pub async fn changes_since(&self, log_position: &LogPosition, limit: i64) -> Result<Option<ChangesSince>> {
        match self.backend() {
            DbBackend::Sqlite => self.sqlite_changes(log_position, limit).await,
            _ if self.is_distributed() => self.distributed_changes(log_position, limit, None).await,
            _ => self.postgres_changes(log_position, limit).await,
        }
    }

    /// Like [`Db::changes_since`], but returns only the changes of one store. In a distributed database this needs only the node of the
    /// store. SQLite is not supported.
    pub async fn changes_of_store_since(&self, store: &StoreId, log_position: &LogPosition, limit: i64) -> Result<Option<ChangesSince>> {
        self.distributed_changes(log_position, limit, Some(store)).await
    }

    async fn sqlite_changes(&self, log_position: &LogPosition, limit: i64) -> Result<Option<ChangesSince>> {
        // Reads one row more than `limit`, since the entry at the log position itself comes first, unless it was deleted. The reader
        // already has this entry.
        let places = limit.saturating_add(1).unsigned_abs();
        let entries = change_log_entries::Entity::find()
            .filter(Column::Position.gte(log_position.position))
            .order_by_asc(Column::Position)
            .limit(places)
            .into_query();
        let mut query = Query::select();
        query
            .column(forgotten_changes::Column::Through)
            .column(("c", Column::ChangedAt))
            .columns(LOGGED.map(|column| ("c", column)))
            .from(forgotten_changes::Entity)
            .join_subquery(JoinType::LeftJoin, entries, "c", Expr::Constant(true.into()))
            .order_by(("c", Column::Position), Order::Asc);
        let rows = self
            .select(query, |cells| {
                let (through, at): (i64, Option<i64>) = (cells.take()?, cells.take()?);
                Ok((through, at.map(|at| Ok::<_, Error>((at.to_string(), logged(cells)?))).transpose()?))
            })
            .await?;
        let through = rows.first().map_or(0, |(through, _)| *through);
        let mut rows: Vec<(String, LoggedChange)> = rows.into_iter().filter_map(|(_, row)| row).collect();
        let known = match rows.first() {
            Some((at, first)) if first.position == log_position.position => *at == log_position.witness && through <= log_position.position,
            _ => through == log_position.position,
        };
        if !known {
            return Ok(None);
        }
        rows.retain(|(_, place)| place.position > log_position.position);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut reached = log_position.clone();
        if let Some((at, last)) = rows.last() {
            (reached.position, reached.witness) = (last.position, at.clone());
        }
        let more = is_full(rows.len(), limit);
        Ok(Some(ChangesSince { changes: rows.into_iter().flat_map(|(_, logged)| each(logged)).collect(), log_position: reached, more }))
    }

    /// Returns the changes that the current snapshot shows and the snapshot of the log position did not show. Among these are changes of
    /// transactions that were in progress at the log position and have committed since. Their entries may be at positions that the reader
    /// has already passed.
    async fn postgres_changes(&self, log_position: &LogPosition, limit: i64) -> Result<Option<ChangesSince>> {
        let rows = self
            .all(postgres_changes_sql(log_position, limit), |cells| {
                let (now, known, found): (String, bool, bool) = (cells.take()?, cells.take()?, cells.take()?);
                Ok((now, known, found.then(|| logged(cells)).transpose()?))
            })
            .await?;
        let Some((now, true, _)) = rows.first() else { return Ok(None) };
        let now = now.clone();
        Ok(Some(page_of_round(log_position, &now, rows.into_iter().filter_map(|(.., row)| row).collect(), limit)))
    }

    /// Like [`Db::postgres_changes`], in a distributed database: the log is on several nodes, and all other values are on the coordinator.
    /// The snapshot is taken before the log is read: the log then shows at least the changes that the snapshot shows. Whether entries were
    /// deleted is read last: before entries are deleted, `forgotten_changes` is updated, so this read notices every deletion.
    async fn distributed_changes(&self, log_position: &LogPosition, limit: i64, store: Option<&StoreId>) -> Result<Option<ChangesSince>> {
        let now = self.first(Sql::fixed("SELECT pg_current_snapshot()::text"), |cells| cells.take::<String>()).await?.unwrap_or_default();
        let (end, in_progress) = unseen_of(&log_position.snapshot)?;
        let query = change_log_entries::Entity::find()
            .select_only()
            .columns(LOGGED)
            .filter(Expr::col(Column::TransactionId).gt(Expr::Constant(0_i64.into())))
            .filter(Condition::any().add(Column::TransactionId.gte(end)).add(among(Column::TransactionId, in_progress)))
            .filter(Column::Position.gt(log_position.position))
            .filter(Condition::all().add_option(store.map(|store| Column::StoreId.eq(store))))
            .order_by_asc(Column::Position)
            .limit(limit.unsigned_abs());
        let rows = self.select(query, logged).await?;
        let known = Sql::fixed(&format!("SELECT {SNAPSHOT_IS_VALID} AND {DATABASE_FINGERPRINT} = $2"))
            .with(Param::Text(log_position.snapshot.clone()))
            .with(Param::Text(log_position.witness.clone()));
        let is_known = self.first(known, |cells| cells.take()).await? == Some(true);
        Ok(is_known.then(|| page_of_round(log_position, &now, rows, limit)))
    }
}

/// Makes a page from the entries that were read after the log position `log_position`, on PostgreSQL. `now` is the current snapshot.
fn page_of_round(log_position: &LogPosition, now: &str, rows: Vec<LoggedChange>, limit: i64) -> ChangesSince {
    let next = log_position.next.clone().unwrap_or_else(|| now.to_owned());
    let more = is_full(rows.len(), limit);
    let reached = match rows.last() {
        Some(last) if more => LogPosition { position: last.position, next: Some(next), ..log_position.clone() },
        _ => LogPosition { position: 0, snapshot: next, next: None, ..log_position.clone() },
    };
    ChangesSince { changes: rows.into_iter().flat_map(each).collect(), log_position: reached, more }
}

/// Returns the transactions that a snapshot did not show: the least id that was not assigned yet, and the ids of those in progress. The
/// text of a snapshot has three parts: `xmin:xmax:ids in progress`.
fn unseen_of(snapshot: &str) -> Result<(i64, Vec<i64>)> {
    let damaged = || Error::Damaged(format!("`{snapshot}` is no snapshot"));
    let mut parts = snapshot.split(':').skip(1);
    let end = parts.next().and_then(|end| end.parse().ok()).ok_or_else(damaged)?;
    let in_progress = parts.next().unwrap_or_default().split(',').filter(|id| !id.is_empty()).map(|id| id.parse().map_err(|_| damaged()));
    Ok((end, in_progress.collect::<Result<_>>()?))
}

/// Returns the statement that reads a page of the log after a position, on PostgreSQL.
fn postgres_changes_sql(log_position: &LogPosition, limit: i64) -> Sql {
    let unseen = |which: &str| format!("SELECT * FROM changes WHERE transaction_id > 0 AND {which} AND position > $2");
    // The first page of a round finds the unseen changes by transaction id, since there are few. Later pages of a round continue by
    // position. A first page by position would scan the whole log, even if there is nothing new.
    let unseen = match log_position.next {
        // PostgreSQL would estimate a condition `transaction_id = x` from statistics. After an import, which writes many entries in one
        // transaction, it would then scan the whole log. `BETWEEN` and the order make PostgreSQL use the index `changes_by_transaction`.
        None => format!(
            "{} UNION ALL SELECT c.* FROM (SELECT x::text::bigint AS id FROM pg_snapshot_xip($1::pg_snapshot) x) x CROSS JOIN LATERAL \
             ({} ORDER BY transaction_id, position LIMIT {limit}) c",
            unseen(BEGUN_AFTER),
            unseen("transaction_id BETWEEN x.id AND x.id")
        ),
        Some(_) => unseen(&format!("({BEGUN_AFTER} OR {IN_PROGRESS_THEN})")),
    };
    Sql::fixed(&format!(
        "SELECT s.now::text, s.known, c.position IS NOT NULL, c.position, c.store_id, c.kind, c.record_ids \
         FROM (SELECT pg_current_snapshot() AS now, {SNAPSHOT_IS_VALID} AND {DATABASE_FINGERPRINT} = $3 AS known) s \
         LEFT JOIN (SELECT * FROM ({unseen}) u ORDER BY position LIMIT {limit}) c ON TRUE ORDER BY c.position"
    ))
    .with(Param::Text(log_position.snapshot.clone()))
    .with(Param::Integer(log_position.position))
    .with(Param::Text(log_position.witness.clone()))
}

fn is_full(rows: usize, limit: i64) -> bool {
    i64::try_from(rows).is_ok_and(|rows| rows >= limit)
}

/// Decodes one entry of the log. The `id` of the result contains all record ids of the entry; [`each`] splits them.
fn logged(cells: &mut Cells<'_>) -> Result<LoggedChange> {
    Ok(LoggedChange { position: cells.take()?, store: cells.take()?, kind: cells.take()?, id: cells.take()?, inserted: None })
}

fn each(place: LoggedChange) -> Vec<LoggedChange> {
    let LoggedChange { position, store, kind, id: ids, .. } = place;
    let one = |id: &str| LoggedChange { position, store: store.clone(), kind: kind.clone(), id: id.to_owned(), inserted: None };
    ids.split(BETWEEN_IDS).map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::clock::{Clock, SystemClock},
        store::{fixture::Fixture, transaction::store_transaction::Changed},
    };

    #[test]
    fn a_postgres_snapshot_is_parsed_into_its_unseen_transactions() {
        assert_eq!(unseen_of("10:20:12,15").unwrap(), (20, vec![12, 15]));
        assert_eq!(unseen_of("10:10:").unwrap(), (10, vec![]));
        for damaged in ["", "10", "10:x:", "10:20:1,x"] {
            assert!(unseen_of(damaged).is_err(), "{damaged}");
        }
    }

    #[tokio::test]
    async fn each_record_of_an_import_is_reported_from_few_log_entries() {
        const CONTACTS: usize = 120;
        let fixture = Fixture::alone().await;
        let log_position = fixture.db.log_position().await.unwrap();
        let mut expected: Vec<String> = (0..CONTACTS).map(|i| format!("k {i}")).collect();
        fixture.import_contacts(&expected).await;
        let since = async |log_position: &LogPosition, limit| fixture.db.changes_since(log_position, limit).await.unwrap().unwrap();
        let all = since(&log_position, 10).await;
        let contacts = all.changes.iter().filter(|one| one.noun() == Some(crate::domain::search::SearchableKind::Contact));
        let mut got: Vec<&str> = contacts.map(|one| one.id.as_str()).collect();
        got.sort_unstable();
        expected.sort_unstable();
        assert_eq!((got, all.more), (expected.iter().map(String::as_str).collect(), false));
        assert_eq!(since(&all.log_position, 10).await.changes, []);
        // A page may end between two entries of the import.
        let first = since(&log_position, 2).await;
        assert!(first.more && first.changes.len() < CONTACTS, "{first:?}");
        let rest = since(&first.log_position, 10).await;
        assert_eq!(first.changes.len() + rest.changes.len(), all.changes.len());
    }

    /// Every process reads the log several times per second, so a read must be cheap if there is nothing new.
    #[tokio::test]
    async fn an_import_does_not_make_later_reads_of_the_log_expensive() {
        let fixture = Fixture::alone().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let import = "INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) \
                      SELECT 's', 'message', 'm' || i, 0, pg_current_xact_id()::text::bigint FROM generate_series(1, 20000) i";
        fixture.execute(import).await.unwrap();
        fixture.execute("ANALYZE changes").await.unwrap();
        let other = Db::open(&fixture.url, 2, None).await.unwrap();
        let in_progress = other.begin().await.unwrap();
        in_progress
            .run(&Sql::fixed(
                "INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) \
                                     VALUES ('s', 'message', 'slow', 0, pg_current_xact_id()::text::bigint)",
            ))
            .await
            .unwrap();
        let log_position = fixture.db.log_position().await.unwrap();
        let cost = fixture.db.query_cost(postgres_changes_sql(&log_position, 1_000)).await;
        assert!(cost < 100, "{cost} rows were read to find nothing");
        in_progress.commit().await.unwrap();
        let page = fixture.db.changes_since(&log_position, 1_000).await.unwrap().unwrap();
        assert_eq!(page.changes.iter().map(|change| change.id.as_str()).collect::<Vec<_>>(), ["slow"]);
    }

    #[tokio::test]
    async fn a_process_knows_its_own_changes_with_their_log_positions() {
        let fixture = Fixture::alone().await;
        let (db, clock): (_, Arc<dyn Clock>) = (&fixture.db, Arc::new(SystemClock));
        db.follow_own_changes();
        let log_position = db.log_position().await.unwrap();
        // The second write has more changes than fit one `INSERT`.
        for ids in [0..1, 1..1_200] {
            let write = db.write(&fixture.store, &clock).await.unwrap();
            for id in ids {
                write.changed(Changed::Message(&format!("m{id}").into()));
            }
            write.commit().await.unwrap();
        }
        let own = db.own_changes();
        assert_eq!(own.len(), 1_200);
        assert_eq!(own, db.changes_since(&log_position, 10_000).await.unwrap().unwrap().changes);
    }

    #[tokio::test]
    async fn transactions_open_at_a_log_position_are_reported_once_committed() {
        let fixture = Fixture::alone().await;
        if fixture.db.backend() == DbBackend::Sqlite {
            // SQLite has one writer at a time, so positions are in the order of commits.
            return;
        }
        let log = async |tx: &crate::store::transaction::system_transaction::SystemTransaction, id: &str| {
            let place = format!("VALUES ('s', 'message', '{id}', 0, pg_current_xact_id()::text::bigint)");
            let insert = format!("INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) {place}");
            tx.run(&Sql::fixed(&insert)).await.unwrap();
        };
        let since = async |log_position: &LogPosition, limit| {
            let behind = fixture.db.changes_since(log_position, limit).await.unwrap().unwrap();
            (behind.changes.into_iter().map(|change| change.id).collect::<Vec<_>>(), behind.log_position)
        };
        let other = Db::open(&fixture.url, 2, None).await.unwrap();
        let (slow, slower) = (other.begin().await.unwrap(), other.begin().await.unwrap());
        log(&slow, "slow").await;
        log(&slower, "slower").await;
        let write = async |id: &str| {
            let tx = fixture.db.begin().await.unwrap();
            log(&tx, id).await;
            tx.commit().await.unwrap();
        };
        write("before").await;
        let first = fixture.db.log_position().await.unwrap();
        write("after").await;
        let (got, second) = since(&first, 10).await;
        assert_eq!(got, ["after"]);
        assert_eq!(since(&second, 10).await.0, [""; 0]);
        slow.commit().await.unwrap();
        let (got, third) = since(&second, 10).await;
        assert_eq!(got, ["slow"]);
        slower.commit().await.unwrap();
        assert_eq!(since(&third, 10).await.0, ["slower"]);
        // Reads pages of at most one entry. Every page continues at the log position where the page before it ended.
        let (mut log_position, mut all) = (first, Vec::new());
        for _ in 0..5 {
            let (got, next) = since(&log_position, 1).await;
            all.extend(got);
            log_position = next;
        }
        assert_eq!(all, ["slow", "slower", "after"]);
    }

    #[tokio::test]
    async fn a_log_position_of_another_history_is_not_recognised() {
        let fixture = Fixture::alone().await;
        fixture.import_contacts(&["one".to_owned()]).await;
        let log_position = fixture.db.log_position().await.unwrap();
        let known = async |log_position: &LogPosition| fixture.db.changes_since(log_position, 1).await.unwrap().is_some();
        assert!(known(&log_position).await);
        assert!(!known(&LogPosition { witness: format!("{}0", log_position.witness), ..log_position.clone() }).await);
        let ahead = match fixture.db.backend() {
            DbBackend::Sqlite => LogPosition { position: log_position.position + 1, ..log_position },
            _ => LogPosition { snapshot: "2000000000:2000000000:".to_owned(), ..log_position },
        };
        assert!(!known(&ahead).await);
    }
}
