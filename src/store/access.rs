//! Who is calling, and the server's own secrets.

use std::collections::BTreeMap;

use sea_orm::{ActiveValue::Set, ColumnTrait, DbBackend, EntityTrait, QueryFilter, sea_query::OnConflict};
use serde_json::json;

use super::{
    Db, Error, Result,
    entity::server_secrets,
    replica::Transaction,
    secret_keys::{Place, Stored},
    secrets::Secrets,
    sql::{Cells, FENCE, Listed, Sought, Sql, without_nul},
    unchanged::Unchanged,
};
use crate::domain::{
    ahead::{Ahead, Named},
    ids::StoreId,
    keys::{Caller, SecretHash},
    scopes::ScopeSet,
    time::Timestamp,
};

/// Secrets of the server, by name.
pub(super) const SECRETS: Secrets = Secrets { table: "server_secrets", owner: "name", value: "value", store: None };

const fn server_place(name: &str) -> Place<'_> {
    Place { table: SECRETS.table, store: "", owner: name }
}

/// Nearly every request looks its caller up, so this is written by hand.
const CALLERS: &str = " FROM api_key_secrets s \
     JOIN api_keys k ON k.store_id = s.store_id AND k.id = s.key_id \
     WHERE k.active = TRUE AND s.hash IN ";

/// What comes before [`CALLERS`] where they are looked up within another statement.
const WITHIN: &str = "(SELECT s.hash, s.expires_at AS until, k.*";

/// What [`CALLERS`] tells besides where there is a replica: the newest transaction that changed the store.
const NEWEST: &str = "COALESCE((SELECT c.transaction_id FROM changes c WHERE c.store_id = k.store_id AND c.transaction_id > 0 \
     ORDER BY c.transaction_id DESC LIMIT 1), 0)";

/// A caller, and what his look-up told besides.
#[derive(Debug)]
pub struct Known {
    pub caller: Caller,
    /// Where there is a replica: up to which transaction it has to show what the caller's store wrote.
    pub newest: Option<Transaction>,
    pub ahead: Ahead,
}

/// Callers that were looked up, by the hashes of their secrets, and until when they are callers.
pub(super) type Callers = Unchanged<SecretHash, (Timestamp, Caller)>;

/// Those behind secrets with these hashes, at least one, whether or not they are expired.
pub(super) fn callers_sql<'a>(with_newest: bool, hashes: impl Iterator<Item = &'a str>) -> Sql {
    let mut sql = Sql::fixed("SELECT s.hash, s.expires_at, k.expires_at, k.store_id, k.id, k.scopes, k.owner_user_id");
    if with_newest {
        sql.push(", ").push(NEWEST);
    }
    sql.push(CALLERS).texts(hashes);
    sql
}

/// Who has a secret, and which row of his store has an id: how [`callers_with_sql`] is asked for it.
pub(super) fn pair(hash: &str, id: &str) -> String {
    format!("{hash}{BETWEEN}{}", without_nul(id))
}

/// No hash contains it.
const BETWEEN: &str = "/";

/// Those behind secrets, whether or not they are expired, with rows of their stores that may not be there, each for a [`pair`].
/// PostgreSQL's own. As in [`Sql::by_ids`], nothing is left to be compared with reading all rows there are.
///
/// For one secret, which is all that most look-ups are for, it is bound by itself: the plan for many takes a tenth longer.
pub(super) fn callers_with_sql<'a>(row: (&str, &str), pairs: impl Iterator<Item = &'a str>) -> Sql {
    let mut wanted = BTreeMap::<&str, Vec<&str>>::new();
    for (hash, id) in pairs.filter_map(|pair| pair.split_once(BETWEEN)) {
        wanted.entry(hash).or_default().push(id);
    }
    let (columns, table) = row;
    let mut sql = Sql::fixed("SELECT n.hash || '");
    sql.push(BETWEEN).push("' || w.id, n.until, n.expires_at, n.store_id, n.id, n.scopes, n.owner_user_id, a.id IS NOT NULL, a.* FROM ");
    match wanted.first_key_value() {
        Some((hash, ids)) if wanted.len() == 1 => {
            sql.push(WITHIN).push(CALLERS).texts([*hash]).push(FENCE).push(") n CROSS JOIN jsonb_array_elements_text(");
            sql.text(&json!(ids).to_string()).push("::jsonb)");
        }
        _ => {
            sql.push("jsonb_each(").text(&json!(wanted).to_string()).push("::jsonb) e CROSS JOIN LATERAL ");
            sql.push(WITHIN).push(CALLERS).push("(e.key)").push(FENCE).push(") n CROSS JOIN jsonb_array_elements_text(e.value)");
        }
    }
    sql.push(" w(id) LEFT JOIN LATERAL (SELECT ").push(columns).push(" FROM ").push(table);
    sql.push(" WHERE store_id = n.store_id AND id = w.id").push(FENCE).push(") a ON TRUE");
    sql
}

/// A caller, and until when he is one.
fn decode(cells: &mut Cells<'_>) -> Result<(Timestamp, Caller)> {
    let until = cells.time()?.min(cells.time()?);
    let (store_id, key_id) = (cells.id()?, cells.id()?);
    Ok((until, Caller { store_id, key_id, scopes: ScopeSet::from_stored(&cells.take::<String>()?), owner: cells.optional_id()? }))
}

impl Db {
    /// The caller behind a secret; `None` when it is unknown, superseded, expired or its key inactive at `now`. On PostgreSQL with
    /// what the request names, unless there is a replica, which that may be read from.
    pub async fn find_caller(&self, hash: &SecretHash, named: impl FnOnce() -> Option<Named>, now: Timestamp) -> Result<Option<Known>> {
        let named = if self.backend() == DbBackend::Postgres && !self.has_replica() { named() } else { None };
        // In boxes, or each request moves the largest of them about, on SQLite too.
        let found = match named {
            None => self.caller(hash).await,
            Some(Named::Ticket(id)) => Box::pin(self.caller_with(hash, id, Ahead::Ticket)).await,
            Some(Named::Contact(id)) => Box::pin(self.caller_with(hash, id, Ahead::Contact)).await,
            Some(Named::Conversation(id)) => Box::pin(self.caller_with(hash, id, Ahead::Conversation)).await,
        };
        Ok(found?.filter(|(until, _)| *until > now).map(|(_, known)| known))
    }

    async fn caller(&self, hash: &SecretHash) -> Result<Option<(Timestamp, Known)>> {
        let kept = self.unchanged(|readers| &readers.callers);
        if let Some((until, caller)) = kept.and_then(|(state, callers)| callers.in_state(state, hash)) {
            return Ok(Some((until, Known { caller, newest: None, ahead: Ahead::Unknown })));
        }
        let with_newest = self.has_replica();
        let found = self.by_key(Sought::Callers { with_newest }, hash.as_str(), move |cells| {
            cells.skip();
            let (until, caller) = decode(cells)?;
            let newest = if with_newest { Some(Transaction(cells.take()?)) } else { None };
            Ok((until, Known { caller, newest, ahead: Ahead::Unknown }))
        });
        let found = found.await?;
        // Not what is unknown, of which there is no end.
        if let (Some((state, callers)), Some((until, known))) = (kept, &found) {
            callers.keep(state, hash.clone(), (*until, known.caller.clone()));
        }
        Ok(found)
    }

    async fn caller_with<T: Listed + Send + 'static, I: AsRef<str>>(
        &self,
        hash: &SecretHash,
        id: I,
        ahead: impl FnOnce(I, Option<Box<T>>) -> Ahead,
    ) -> Result<Option<(Timestamp, Known)>> {
        let sought = Sought::CallersWith { columns: T::COLUMNS, table: T::TABLE };
        let key = pair(hash.as_str(), id.as_ref());
        let found = self.by_key(sought, &key, |cells| {
            cells.skip();
            let caller = decode(cells)?;
            let row = if cells.flag()? { T::decode(cells).map(|row| Some(Box::new(row))) } else { Ok(None) };
            Ok((caller, row))
        });
        Ok(found.await?.map(|((until, caller), row)| {
            // What is damaged is told to whoever may see it: he looks it up again.
            let ahead = row.map_or(Ahead::Unknown, |row| ahead(id, row));
            (until, Known { caller, newest: None, ahead })
        }))
    }

    /// The secret of that name; `fresh` becomes it when there is none yet. Every process on a database gets the same. One that does not
    /// have the key of the secret gets `fresh`: cursors of other processes are unknown to it, and its search index is built anew.
    pub async fn server_secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let find = || server_secrets::Entity::find().filter(server_secrets::Column::Name.eq(name)).one(self.read());
        let mut found = find().await?;
        if found.is_none() {
            let tx = self.begin().await?;
            let sealed = self.secret_keys().seal(&fresh, server_place(name))?;
            let row = server_secrets::ActiveModel { name: Set(name.to_owned()), value: Set(sealed.bytes), key_id: Set(sealed.key_id) };
            let insert = server_secrets::Entity::insert(row);
            tx.execute(&insert.on_conflict(OnConflict::column(server_secrets::Column::Name).do_nothing().to_owned())).await?;
            tx.commit().await?;
            found = find().await?;
        }
        let row = found.ok_or_else(|| Error::Damaged(format!("the server secret {name} is gone")))?;
        let secret = self.secret_keys().open(Stored { bytes: row.value, key_id: row.key_id }, server_place(name));
        Ok(secret.unwrap_or_else(|reason| {
            tracing::error!(name, reason, "a secret of the server cannot be read; this process uses one of its own until the key is back");
            fresh
        }))
    }

    pub async fn store_exists(&self, store: &StoreId) -> Result<bool> {
        let sql = Sql::of(store, "SELECT id FROM stores WHERE id = $1");
        Ok(self.first(sql, |cells| cells.take::<String>()).await?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use futures_util::future::join_all;

    use super::*;
    use crate::store::fixture::{Fixture, counter};

    #[tokio::test]
    async fn what_a_request_names_comes_with_its_caller_and_of_his_store_alone() {
        let (statements, count) = counter();
        let fixture = Fixture::open(Some(count)).await;
        let other = Fixture::new().await;
        let mut hashes = vec![];
        for (shop, ids) in [(&fixture, ["a", "b/c"]), (&other, ["a", "x"])] {
            for id in ids {
                shop.ticket(id, |row| row.ticket_number = format!("{id} of {}", shop.store)).await;
            }
            hashes.push(shop.key("valid", true, 1000).await.1);
        }
        let (inactive, expired) = (fixture.key("inactive", false, 1000).await.1, fixture.key("expired", true, 100).await.1);
        let find = async |hash: &SecretHash, id: &str| {
            let named = || Some(Named::Ticket(id.to_owned().into()));
            fixture.db.find_caller(hash, named, Timestamp::from_millis(500)).await.unwrap()
        };
        let asked = [
            (&hashes[0], "a"),
            (&hashes[0], "b/c"),
            (&hashes[0], "x"),
            (&hashes[0], "a\0"),
            (&hashes[0], "'\"\\"),
            (&hashes[0], "a"),
            (&hashes[1], "a"),
            (&hashes[1], "x"),
            (&hashes[1], "b/c"),
            (&inactive, "a"),
            (&expired, "a"),
            (&SecretHash::of("unknown"), "a"),
        ];
        let before = statements.load(Ordering::Relaxed);
        let found = join_all(asked.map(|(hash, id)| find(hash, id))).await;
        let cost = statements.load(Ordering::Relaxed) - before;
        if fixture.is_sqlite() {
            // The other key is of another file.
            assert_eq!(cost, 8, "the key twice until it is kept, and whatever is unknown each time");
            assert!(matches!(&found[0], Some(Known { ahead: Ahead::Unknown, .. })), "{found:?}");
            return;
        }
        assert_eq!(cost, 1);
        let told = |known: Option<Known>| {
            let Known { caller, newest, ahead } = known?;
            assert!(newest.is_none());
            let Ahead::Ticket(id, ticket) = ahead else { panic!("{ahead:?}") };
            Some((caller.store_id, id.into_string(), ticket.map(|ticket| ticket.number)))
        };
        let one = |id: &str, there: bool| Some((fixture.store.clone(), id.to_owned(), there.then(|| format!("{id} of {}", fixture.store))));
        let two = |id: &str, there: bool| Some((other.store.clone(), id.to_owned(), there.then(|| format!("{id} of {}", other.store))));
        let expected = [
            one("a", true),
            one("b/c", true),
            one("x", false),
            one("a\0", false),
            one("'\"\\", false),
            one("a", true),
            two("a", true),
            two("x", true),
            two("b/c", false),
            None,
            None,
            None,
        ];
        assert_eq!(found.into_iter().map(told).collect::<Vec<_>>(), expected);
        // All of one key, which has a text of its own.
        let found = join_all(asked[..6].iter().map(|(hash, id)| find(hash, id))).await;
        assert_eq!(found.into_iter().map(told).collect::<Vec<_>>(), expected[..6]);
        assert!(join_all(["a", "b"].map(|id| find(&inactive, id))).await.iter().all(Option::is_none));
    }

    #[tokio::test]
    async fn who_is_told_again_is_one_no_longer_than_he_is_one() {
        let fixture = Fixture::new().await;
        let (key, hash) = fixture.key("valid", true, 1000).await;
        let at = async |now: i64| fixture.db.find_caller(&hash, || None, Timestamp::from_millis(now)).await.unwrap().is_some();
        for _ in 0..5 {
            assert_eq!((at(999).await, at(1000).await), (true, false));
        }
        // As another process does, by connections of its own.
        let other = Db::open(&fixture.url, 1, None).await.unwrap();
        for active in [false, true, false, true] {
            let tx = other.begin().await.unwrap();
            tx.run(&Sql::fixed(&format!("UPDATE api_keys SET active = {active} WHERE id = '{}'", key.as_str()))).await.unwrap();
            assert_eq!(at(1).await, !active, "not committed");
            tx.commit().await.unwrap();
            for _ in 0..3 {
                assert_eq!(at(1).await, active);
            }
        }
        fixture.execute(&format!("DELETE FROM api_key_secrets WHERE hash = '{}'", hash.as_str())).await.unwrap();
        assert!(!at(1).await);
        other.close().await.unwrap();
        // Nor by whoever has closed the file.
        fixture.db.clone().close().await.unwrap();
        assert!(fixture.db.find_caller(&hash, || None, Timestamp::from_millis(1)).await.is_err());
    }
}
