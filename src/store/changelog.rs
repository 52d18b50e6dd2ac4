//! The change log: which searchable records changed, in order.
//!
//! Called by `search`, and by `write` and `import`, which write it. Guarantees: whoever follows the log from a [`Mark`] misses no
//! change that was committed after it, in whatever order transactions commit; a change may come twice. What is older than
//! [`KEPT`] is forgotten, and a mark from before that is not known any more.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sea_orm::DbBackend;
use serde::{Deserialize, Serialize};

use super::{
    Db, Result,
    connect::Writes,
    sql::{Cells, Param, Sql},
};
use crate::domain::{ids::StoreId, search::Noun, time::Timestamp};

/// What of the change log was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// On SQLite every change up to here. On PostgreSQL how far the current round through the log has come.
    position: i64,
    /// On SQLite, when that change was made: a database that was put back in time has another, or none. On PostgreSQL when the
    /// snapshot was seen.
    at: i64,
    /// On PostgreSQL the snapshot whose changes were seen, and the one that will be seen once the round is over.
    snapshot: String,
    next: Option<String>,
}

/// A change that was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// In the log, which may tell of several records in one place.
    pub position: i64,
    pub store: StoreId,
    pub kind: String,
    pub id: String,
}

impl Logged {
    /// The searchable record that changed, if it is one.
    pub fn noun(&self) -> Option<Noun> {
        match self.kind.as_str() {
            "message" => Some(Noun::Message),
            "contact" => Some(Noun::Contact),
            _ => None,
        }
    }
}

/// The kind under which an import logs conversations: with one, its messages may have got another subject. No other write
/// changes the subject of a conversation that is there.
pub const RETITLED: &str = "retitled";

/// What stands between the ids of records that the log tells of in one place. No id contains it.
pub(super) const BETWEEN_IDS: &str = "\n";

/// How long the log is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How old a mark on PostgreSQL may get, by the clock of the database: a day is left for clocks that differ.
const KNOWN: Duration = Duration::from_secs(6 * 24 * 3600);
/// Places of the log that are looked at, and forgotten, at a time: few, since other writers wait for them on SQLite. And how many
/// times without a pause.
const FORGOTTEN: i64 = 500;
const ROUNDS: u32 = 100;

/// PostgreSQL's clock, in milliseconds.
const CLOCK: &str = "(extract(epoch FROM now()) * 1000)::bigint";

/// What this process changed and nobody has asked for yet.
#[derive(Default)]
pub(super) struct Own {
    followed: AtomicBool,
    changes: Mutex<Vec<Logged>>,
}

impl Own {
    /// Called after the commit, before anybody learns of it.
    pub fn add(&self, store: &StoreId, records: impl IntoIterator<Item = (i64, (&'static str, String))>) {
        if !self.followed.load(Ordering::Acquire) {
            return;
        }
        let logged = records.into_iter();
        let logged = logged.map(|(position, (kind, id))| Logged { position, store: store.clone(), kind: kind.to_owned(), id });
        let logged = logged.filter(|logged| logged.noun().is_some());
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).extend(logged);
    }
}

impl Db {
    /// From now on [`Db::own_changes`] tells what this process commits.
    pub fn follow_own_changes(&self) {
        self.own().followed.store(true, Ordering::Release);
    }

    /// Every searchable record that this process changed since it was last asked.
    pub fn own_changes(&self) -> Vec<Logged> {
        std::mem::take(&mut *self.own().changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has these told again by [`Db::own_changes`].
    pub fn give_back_own_changes(&self, changes: Vec<Logged>) {
        self.own().changes.lock().unwrap_or_else(PoisonError::into_inner).extend(changes);
    }

    /// Where the log ends now.
    pub async fn mark(&self) -> Result<Mark> {
        let sql = match self.backend() {
            DbBackend::Sqlite => "SELECT position, changed_at, '' FROM changes ORDER BY position DESC LIMIT 1".to_owned(),
            _ => format!("SELECT 0::bigint, {CLOCK}, pg_current_snapshot()::text"),
        };
        let found = self.first(Sql::fixed(&sql), mark).await?;
        Ok(found.unwrap_or_default())
    }

    /// Whether a mark is one of this database, as far as can be told, and nothing was forgotten that came after it.
    pub async fn knows_mark(&self, mark: &Mark) -> Result<bool> {
        let sql = match self.backend() {
            DbBackend::Sqlite if mark.position == 0 => Sql::fixed("SELECT 1 WHERE (SELECT COALESCE(MIN(position), 1) FROM changes) = 1"),
            DbBackend::Sqlite => Sql::fixed("SELECT 1 FROM changes WHERE position = $1 AND changed_at = $2")
                .with(Param::Integer(mark.position))
                .with(Param::Integer(mark.at)),
            _ => Sql::fixed(&format!(
                "SELECT 1 WHERE pg_snapshot_xmax($1::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) AND $2 > {CLOCK} - $3"
            ))
            .with(Param::Text(mark.snapshot.clone()))
            .with(Param::Integer(mark.at))
            .with(Param::Integer(millis(KNOWN))),
        };
        Ok(self.first(sql, |cells| cells.take::<i32>()).await?.is_some())
    }

    /// What stands in at most `limit` places of the log behind a mark, the mark behind them, and whether there may be more.
    pub async fn changes_since(&self, mark: &Mark, limit: i64) -> Result<(Vec<Logged>, Mark, bool)> {
        match self.backend() {
            DbBackend::Sqlite => self.sqlite_changes(mark, limit).await,
            _ => self.postgres_changes(mark, limit).await,
        }
    }

    async fn sqlite_changes(&self, mark: &Mark, limit: i64) -> Result<(Vec<Logged>, Mark, bool)> {
        let sql = Sql::fixed(
            "SELECT changed_at, position, store_id, kind, record_ids FROM changes WHERE position > $1 ORDER BY position LIMIT $2",
        )
        .with(Param::Integer(mark.position))
        .with(Param::Integer(limit));
        let rows = self.all(sql, |cells| Ok((cells.take::<i64>()?, logged(cells)?))).await?;
        let mut reached = mark.clone();
        if let Some((at, last)) = rows.last() {
            (reached.position, reached.at) = (last.position, *at);
        }
        let more = is_full(rows.len(), limit);
        Ok((rows.into_iter().flat_map(|(_, logged)| each(logged)).collect(), reached, more))
    }

    /// What the snapshot of the mark did not show and the current one does. A transaction that ran then and has ended since
    /// is among it, wherever its positions are.
    async fn postgres_changes(&self, mark: &Mark, limit: i64) -> Result<(Vec<Logged>, Mark, bool)> {
        let sql = Sql::fixed(&format!(
            "SELECT s.now::text, {CLOCK}, c.position IS NOT NULL, c.position, c.store_id, c.kind, c.record_ids \
             FROM (SELECT pg_current_snapshot() AS now) s LEFT JOIN (SELECT * FROM changes WHERE transaction_id > 0 \
                 AND transaction_id >= pg_snapshot_xmin($1::pg_snapshot)::text::bigint \
                 AND NOT pg_visible_in_snapshot(transaction_id::text::xid8, $1::pg_snapshot) \
                 AND position > $2 ORDER BY position LIMIT $3) c ON TRUE ORDER BY c.position"
        ))
        .with(Param::Text(mark.snapshot.clone()))
        .with(Param::Integer(mark.position))
        .with(Param::Integer(limit));
        let rows = self
            .all(sql, |cells| {
                let (now, at, found): (String, i64, bool) = (cells.take()?, cells.take()?, cells.take()?);
                Ok((now, at, found.then(|| logged(cells)).transpose()?))
            })
            .await?;
        let at = rows.first().map_or(mark.at, |(_, at, _)| *at);
        let next = mark.next.clone().or_else(|| rows.first().map(|(now, ..)| now.clone()));
        let rows: Vec<Logged> = rows.into_iter().filter_map(|(.., row)| row).collect();
        let more = is_full(rows.len(), limit);
        let reached = match (rows.last(), next) {
            (Some(last), next) if more => Mark { position: last.position, next, ..mark.clone() },
            (_, Some(snapshot)) => Mark { position: 0, snapshot, next: None, at },
            (_, None) => mark.clone(),
        };
        Ok((rows.into_iter().flat_map(each).collect(), reached, more))
    }

    /// Forgets the oldest of what was logged longer ago than it is kept, but for the newest place: of each store on PostgreSQL,
    /// where a standby is compared with it, and of all on SQLite, by which a mark is known. How many places that were.
    pub async fn forget_changes(&self, now: Timestamp) -> Result<u64> {
        let before = now.millis().saturating_sub(millis(KEPT));
        let (mut forgotten, mut seen) = (0, 0);
        for _ in 0..ROUNDS {
            let sql = Sql::fixed("SELECT position, changed_at FROM changes WHERE position > $1 ORDER BY position LIMIT $2")
                .with(Param::Integer(seen))
                .with(Param::Integer(FORGOTTEN));
            let places: Vec<(i64, i64)> = self.all(sql, |cells| Ok((cells.take()?, cells.take()?))).await?;
            let Some((last, _)) = places.into_iter().take_while(|(_, at)| *at < before).last() else { break };
            let superseded = match self.backend() {
                DbBackend::Sqlite => "position < (SELECT MAX(position) FROM changes)",
                _ => {
                    "transaction_id < \
                     (SELECT MAX(n.transaction_id) FROM changes n WHERE n.store_id = changes.store_id AND n.transaction_id > 0)"
                }
            };
            let sql = Sql::fixed(&format!("DELETE FROM changes WHERE position > $1 AND position <= $2 AND {superseded}"))
                .with(Param::Integer(seen))
                .with(Param::Integer(last));
            forgotten += self.run_alone(sql).await?;
            seen = last;
        }
        Ok(forgotten)
    }

    /// Runs one statement in a transaction of its own; the number of rows that it changed.
    async fn run_alone(&self, sql: Sql) -> Result<u64> {
        Ok(match self.writes() {
            Writes::Sqlite(writer) => {
                let turn = writer.turn().await?;
                let rows = turn.run(&sql)?;
                turn.commit().await?;
                rows
            }
            Writes::Postgres(kept) => {
                let begun = kept.begin().await?;
                let rows = begun.run(&sql).await?;
                begun.commit().await?;
                rows
            }
        })
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn is_full(rows: usize, limit: i64) -> bool {
    i64::try_from(rows).is_ok_and(|rows| rows >= limit)
}

fn mark(cells: &mut Cells<'_>) -> Result<Mark> {
    Ok(Mark { position: cells.take()?, at: cells.take()?, snapshot: cells.take()?, next: None })
}

/// A place of the log, with all its ids.
fn logged(cells: &mut Cells<'_>) -> Result<Logged> {
    Ok(Logged { position: cells.take()?, store: cells.id()?, kind: cells.take()?, id: cells.take()? })
}

fn each(place: Logged) -> Vec<Logged> {
    let Logged { position, store, kind, id: ids } = place;
    ids.split(BETWEEN_IDS).map(|id| Logged { position, store: store.clone(), kind: kind.clone(), id: id.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::{clock::Clock, ids::ContactId},
        store::{fixture::Fixture, write::Changed},
    };

    #[tokio::test]
    async fn what_an_import_brings_is_told_record_by_record_from_few_places_of_the_log() {
        const CONTACTS: usize = 120;
        let fixture = Fixture::alone().await;
        let mark = fixture.db.mark().await.unwrap();
        let mut expected: Vec<String> = (0..CONTACTS).map(|i| format!("k {i}")).collect();
        fixture.import_contacts(&expected).await;
        let (logged, reached, more) = fixture.db.changes_since(&mark, 10).await.unwrap();
        let mut told: Vec<&str> = logged.iter().filter(|one| one.noun() == Some(Noun::Contact)).map(|one| one.id.as_str()).collect();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!((told, more), (expected.iter().map(String::as_str).collect(), false));
        assert_eq!(fixture.db.changes_since(&reached, 10).await.unwrap().0, []);
        // A page may end between two of them.
        let (first, between, more) = fixture.db.changes_since(&mark, 2).await.unwrap();
        assert!(more && first.len() < CONTACTS, "{more} {}", first.len());
        let (rest, _, _) = fixture.db.changes_since(&between, 10).await.unwrap();
        assert_eq!(first.len() + rest.len(), logged.len());
    }

    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0)
        }
    }

    #[tokio::test]
    async fn what_was_logged_long_ago_is_forgotten_and_a_mark_from_before_is_not_known() {
        const OLD: usize = 1200;
        let fixture = Fixture::alone().await;
        let log = async |at: i64, contacts: std::ops::Range<usize>| {
            let clock: Arc<dyn Clock> = Arc::new(At(at));
            let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
            for contact in contacts {
                write.changed(Changed::Contact(&ContactId::from(format!("c{contact}"))));
            }
            write.commit().await.unwrap();
        };
        let told = async |mark: &Mark| fixture.db.changes_since(mark, 10_000).await.unwrap().0.len();
        let first = fixture.db.mark().await.unwrap();
        log(7, 0..OLD).await;
        log(10, OLD..OLD + 3).await;
        assert_eq!(told(&first).await, OLD + 3);
        let forget = async |now: i64| fixture.db.forget_changes(Timestamp::from_millis(now)).await.unwrap();
        assert_eq!(forget(millis(KEPT)).await, 0);
        assert_eq!(forget(millis(KEPT) + 10).await, OLD as u64);
        assert_eq!(told(&first).await, 3);
        let sqlite = fixture.db.backend() == DbBackend::Sqlite;
        let stale = Mark { at: first.at - millis(KNOWN), ..first.clone() };
        assert!(!fixture.db.knows_mark(&stale).await.unwrap());
        assert_eq!(fixture.db.knows_mark(&first).await.unwrap(), !sqlite);
        // The newest stays, however old it is.
        let last = fixture.db.mark().await.unwrap();
        forget(i64::MAX).await;
        assert!((1..=3).contains(&told(&first).await));
        assert!(fixture.db.knows_mark(&last).await.unwrap());
        assert_eq!(forget(i64::MAX).await, 0);
    }
}
