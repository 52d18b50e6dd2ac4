//! What the search index is made from: the change log, and records as they are looked for.
//!
//! Called by `search`. Guarantees: whoever follows the log from a [`Mark`] misses no change that was committed after it,
//! in whatever order transactions commit; a change may come twice.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::DbBackend;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Db, Result,
    sql::{Cells, Param, Sql, batches},
};
use crate::domain::{
    ids::StoreId,
    search::{Noun, Searchable},
};

/// What of the change log was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// On SQLite every change up to here. On PostgreSQL how far the current round through the log has come.
    position: i64,
    /// On SQLite, when that change was made: a database that was put back in time has another, or none.
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

const MESSAGES: &str = "SELECT m.id, m.sent_at, m.text, m.payload, c.email_subject FROM messages m \
     LEFT JOIN conversations c ON c.store_id = m.store_id AND c.id = m.conversation_id WHERE m.store_id = $1";
const CONTACTS: &str =
    "SELECT id, updated_at, full_name, email, phone, secondary_emails, secondary_phones, note FROM contacts WHERE store_id = $1";

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
            DbBackend::Sqlite => "SELECT position, changed_at, '' FROM changes ORDER BY position DESC LIMIT 1",
            _ => "SELECT 0::bigint, 0::bigint, pg_current_snapshot()::text",
        };
        let found = self.first(Sql::fixed(sql), mark).await?;
        Ok(found.unwrap_or_default())
    }

    /// Whether a mark is one of this database, as far as can be told.
    pub async fn knows_mark(&self, mark: &Mark) -> Result<bool> {
        let sql = match self.backend() {
            DbBackend::Sqlite if mark.position == 0 => return Ok(true),
            DbBackend::Sqlite => Sql::fixed("SELECT 1 FROM changes WHERE position = $1 AND changed_at = $2")
                .with(Param::Integer(mark.position))
                .with(Param::Integer(mark.at)),
            _ => Sql::fixed("SELECT 1 WHERE pg_snapshot_xmax($1::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())")
                .with(Param::Text(mark.snapshot.clone())),
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
        let sql = Sql::fixed(
            "SELECT s.now::text, c.position IS NOT NULL, c.position, c.store_id, c.kind, c.record_ids \
             FROM (SELECT pg_current_snapshot() AS now) s LEFT JOIN (SELECT * FROM changes WHERE transaction_id > 0 \
                 AND transaction_id >= pg_snapshot_xmin($1::pg_snapshot)::text::bigint \
                 AND NOT pg_visible_in_snapshot(transaction_id::text::xid8, $1::pg_snapshot) \
                 AND position > $2 ORDER BY position LIMIT $3) c ON TRUE ORDER BY c.position",
        )
        .with(Param::Text(mark.snapshot.clone()))
        .with(Param::Integer(mark.position))
        .with(Param::Integer(limit));
        let rows = self
            .all(sql, |cells| {
                let (now, found): (String, bool) = (cells.take()?, cells.take()?);
                Ok((now, found.then(|| logged(cells)).transpose()?))
            })
            .await?;
        let next = mark.next.clone().or_else(|| rows.first().map(|(now, _)| now.clone()));
        let rows: Vec<Logged> = rows.into_iter().filter_map(|(_, row)| row).collect();
        let more = is_full(rows.len(), limit);
        let reached = match (rows.last(), next) {
            (Some(last), next) if more => Mark { position: last.position, next, ..mark.clone() },
            (_, Some(snapshot)) => Mark { position: 0, snapshot, next: None, at: 0 },
            (_, None) => mark.clone(),
        };
        Ok((rows.into_iter().flat_map(each).collect(), reached, more))
    }

    /// Those of the records that are there.
    pub async fn searchables(&self, store: &StoreId, noun: Noun, ids: &[&str]) -> Result<Vec<Searchable>> {
        let mut found = Vec::with_capacity(ids.len());
        for batch in batches(ids.iter().copied()) {
            let mut sql = Sql::of(store, text_of(noun));
            sql.push(if noun == Noun::Message { " AND m.id" } else { " AND id" });
            match self.backend() {
                DbBackend::Sqlite => sql.push(" IN ").texts(batch),
                // Of a list of values PostgreSQL may think that the whole table is walked sooner.
                _ => sql.push(" IN (SELECT jsonb_array_elements_text(").text(&json!(batch).to_string()).push("::jsonb))"),
            };
            found.extend(self.read_searchables(store, noun, sql).await?);
        }
        Ok(found)
    }

    /// At most `limit` records of a store behind an id, in the order of ids.
    pub async fn searchables_after(&self, store: &StoreId, noun: Noun, after: &str, limit: i64) -> Result<Vec<Searchable>> {
        let mut sql = Sql::of(store, text_of(noun));
        let id = if noun == Noun::Message { "m.id" } else { "id" };
        sql.push(&format!(" AND {id} > ")).text(after).push(&format!(" ORDER BY {id} LIMIT ")).integer(limit);
        self.read_searchables(store, noun, sql).await
    }

    async fn read_searchables(&self, store: &StoreId, noun: Noun, sql: Sql) -> Result<Vec<Searchable>> {
        let store = store.clone();
        self.all(sql, move |cells| {
            let (id, at) = (cells.take()?, cells.take()?);
            let texts = if noun == Noun::Message { message_texts(cells)? } else { contact_texts(cells)? };
            Ok(Searchable { store: store.clone(), noun, id, at, texts })
        })
        .await
    }

    pub async fn conversation_messages(&self, store: &StoreId, conversation: &str) -> Result<Vec<String>> {
        let mut sql = Sql::of(store, "SELECT id FROM messages WHERE store_id = $1 AND conversation_id = ");
        sql.text(conversation);
        self.all(sql, |cells| cells.take()).await
    }

    /// How many searchable records there are.
    pub async fn count_searchables(&self) -> Result<u64> {
        let mut sql = Sql::fixed("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM contacts)");
        sql.unbounded();
        Ok(self.first(sql, |cells| cells.take::<i64>()).await?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }
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
    place.id.split(BETWEEN_IDS).map(|id| Logged { id: id.to_owned(), ..place.clone() }).collect()
}

fn text_of(noun: Noun) -> &'static str {
    match noun {
        Noun::Message => MESSAGES,
        Noun::Contact => CONTACTS,
    }
}

/// Text and subjects: the message's own, and the conversation's if that is another.
fn message_texts(cells: &mut Cells<'_>) -> Result<Vec<String>> {
    let (text, payload, subject): (Option<String>, Option<String>, Option<String>) = (cells.take()?, cells.take()?, cells.take()?);
    let own = payload.filter(|payload| payload.contains("\"subject\"")).and_then(|payload| own_subject(&payload));
    let subject = subject.filter(|subject| own.as_ref() != Some(subject));
    Ok([text, own, subject].into_iter().flatten().collect())
}

fn own_subject(payload: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Payload {
        email: Option<Email>,
    }
    #[derive(Deserialize)]
    struct Email {
        subject: Option<String>,
    }
    // A payload of another shape has no subject.
    serde_json::from_str::<Payload>(payload).ok()?.email?.subject
}

fn contact_texts(cells: &mut Cells<'_>) -> Result<Vec<String>> {
    let (name, email, phone): (String, Option<String>, Option<String>) = (cells.take()?, cells.take()?, cells.take()?);
    let (emails, phones): (Option<Vec<String>>, Option<Vec<String>>) = (cells.optional_json()?, cells.optional_json()?);
    let note: Option<String> = cells.take()?;
    let several = emails.into_iter().chain(phones).flatten();
    Ok([Some(name), email, phone].into_iter().flatten().chain(several).chain(note).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{records::Line, time::Timestamp},
        store::{fixture::Fixture, import::Batch},
    };

    #[tokio::test]
    async fn what_an_import_brings_is_told_record_by_record_from_few_places_of_the_log() {
        const CONTACTS: usize = 120;
        let fixture = Fixture::alone().await;
        let mark = fixture.db.mark().await.unwrap();
        let contacts = (0..CONTACTS).map(|i| {
            let at = "2026-01-01T00:00:00.000Z";
            let record = json!({"id": format!("k {i}"), "fullName": "F", "firstName": "F", "createdAt": at, "updatedAt": at});
            Line { number: 1, record: serde_json::from_value(record).unwrap() }
        });
        let mut import = fixture.db.begin_import(&fixture.store, Timestamp::from_millis(1)).await.unwrap().unwrap();
        import.put(Batch { contacts: contacts.collect(), ..Batch::default() }).await.unwrap().unwrap();
        import.commit().await.unwrap();
        let (logged, reached, more) = fixture.db.changes_since(&mark, 10).await.unwrap();
        let mut told: Vec<&str> = logged.iter().filter(|one| one.noun() == Some(Noun::Contact)).map(|one| one.id.as_str()).collect();
        told.sort_unstable();
        let mut expected: Vec<String> = (0..CONTACTS).map(|i| format!("k {i}")).collect();
        expected.sort_unstable();
        assert_eq!((told, more), (expected.iter().map(String::as_str).collect(), false));
        assert_eq!(fixture.db.changes_since(&reached, 10).await.unwrap().0, []);
        // A page may end between two of them.
        let (first, between, more) = fixture.db.changes_since(&mark, 2).await.unwrap();
        assert!(more && first.len() < CONTACTS, "{more} {}", first.len());
        let (rest, _, _) = fixture.db.changes_since(&between, 10).await.unwrap();
        assert_eq!(first.len() + rest.len(), logged.len());
    }
}
