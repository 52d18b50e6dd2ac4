//! Look-ups of rows by their key. On PostgreSQL the look-ups of requests that arrive at the same time share one statement (a batch).
//!
//! On SQLite, which runs in this process, each look-up runs alone and immediately. If a batch fails because of the database as a whole
//! (`Error::of_the_database`: busy, unavailable, failing or unusable), all its requests fail with that error. If a batch fails for another
//! reason, each of its requests repeats the look-up alone.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use sea_orm::DbBackend;
use serde_json::json;

use crate::{
    domain::ids::StoreId,
    store::{
        Db, Error, Result,
        db::Reads,
        parameterised_sql::{SUBQUERY_FENCE, Sql, without_nul},
        row_decoding::Cells,
        statement::{
            key_lookup_types::{LookupTarget, RowsByKey},
            pages::PagedRow,
        },
    },
};

impl LookupTarget {
    /// Returns the statement that reads the rows with these keys. There must be at least one key, and no key twice.
    fn sql<'a>(&self, backend: DbBackend, keys: impl Iterator<Item = &'a str>) -> Sql {
        match self {
            Self::Listed(text) => {
                let mut sql = Sql::fixed(text);
                sql.texts(keys);
                sql
            }
            Self::Rows { store, columns, table } => Sql::by_ids(backend, store, (columns, table), keys),
        }
    }
}

impl Sql {
    /// Returns the statement that reads the rows of a table with these ids, of which there is at least one.
    ///
    /// For several ids, the statement makes PostgreSQL look each row up by its id. Otherwise PostgreSQL's planner might choose to read all
    /// rows of the store: its statistics may describe only other stores, and do not exist until the first ANALYZE.
    pub fn by_ids<'a>(backend: DbBackend, store: &StoreId, (columns, table): (&str, &str), ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<&str> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let mut sql = Self::of(store, "SELECT ");
        sql.push(columns).push(" FROM ");
        if backend == DbBackend::Sqlite || ids.len() == 1 {
            sql.push(table).push(" WHERE store_id = $1 AND id IN ").texts(ids);
        } else {
            sql.push("(SELECT jsonb_array_elements_text(")
                .text(&json!(ids.iter().map(|id| without_nul(id)).collect::<Vec<_>>()).to_string())
                .push("::jsonb) AS wanted) w CROSS JOIN LATERAL (SELECT * FROM ")
                .push(table)
                .push(" WHERE store_id = $1 AND id = w.wanted")
                .push(SUBQUERY_FENCE)
                .push(") ")
                .push(table);
        }
        sql
    }
}

impl Db {
    /// Returns the row of a store with this id.
    pub(in crate::store) async fn row_by_id<T: PagedRow>(&self, store: &StoreId, id: &str) -> Result<Option<T>> {
        self.by_key(LookupTarget::Rows { store: store.clone(), columns: T::columns(), table: T::table() }, id, T::decode).await
    }

    /// Returns the row of `sought` with this key. On PostgreSQL the look-ups of requests that arrive at the same time share a batch.
    pub(in crate::store) async fn by_key<T, D>(&self, sought: LookupTarget, key: &str, decode: D) -> Result<Option<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        let failed = match self.batched_rows(&sought, key).await {
            Some(Ok(rows)) => return rows.get(key).map(|row| decode(&mut Cells::postgres(row))).transpose(),
            // If the error is about the database as a whole, no request repeats its look-up: the second look-up would take as long again.
            Some(Err(error)) => error.of_the_database(),
            // No batch returned a result: SQLite has no batches, or the look-up of the batch panicked.
            None => None,
        };
        match failed {
            Some(error) => Err(error),
            None => self.first(sought.sql(self.backend(), [key].into_iter()), decode).await,
        }
    }

    async fn batched_rows(&self, sought: &LookupTarget, key: &str) -> Option<RowsByKey> {
        let Reads::Postgres(lines) = &self.reads else { return None };
        let (db, lines, asked) = (self.clone(), lines.clone(), sought.clone());
        let look_up = |keys: BTreeSet<String>| async move {
            let sql = asked.sql(db.backend(), keys.iter().map(String::as_str));
            let (mut found, mut rows) = (HashMap::with_capacity(keys.len()), Vec::new());
            db.each_row(&lines, &sql, &mut rows).await?;
            for row in rows {
                found.insert(row.try_get(0).map_err(Error::from)?, row);
            }
            Ok(Arc::new(found))
        };
        self.pending_lookups.ask((sought.clone(), self.replica().is_some()), key, look_up).await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use futures_util::future::join_all;
    use tokio::time::timeout;

    use super::*;
    use crate::{
        domain::{api_keys::SecretHash, ids::TicketId, time::Timestamp},
        store::fixture::{Fixture, counter},
    };

    #[tokio::test]
    async fn concurrent_lookups_share_one_statement_and_each_gets_its_own_result() {
        let (statements, count) = counter();
        let fixture = Fixture::open(Some(count)).await;
        let other = Fixture::new().await;
        for (shop, ids) in [(&fixture, ["a", "b", "c"]), (&other, ["a", "x", "y"])] {
            for id in ids {
                shop.ticket(id, |row| row.ticket_number = format!("{id} of {}", shop.store)).await;
            }
        }
        let wanted = ["a", "b", "c", "x", "none", "a", "b", "a\0", "'", "", "a", "b"];
        let number = async |store: &StoreId, id: &str| {
            fixture.db.ticket(store, &TicketId::from(id.to_owned())).await.unwrap().map(|ticket| ticket.number)
        };
        let before = statements.load(Ordering::Relaxed);
        let found = join_all((0..60).map(|i| number(&fixture.store, wanted[i % wanted.len()]))).await;
        let cost = statements.load(Ordering::Relaxed) - before;
        assert_eq!(cost, if fixture.db.backend() == DbBackend::Postgres { 1 } else { 60 });
        let numbers = wanted.map(|id| ["a", "b", "c"].contains(&id).then(|| format!("{id} of {}", fixture.store)));
        assert_eq!(found, numbers.into_iter().cycle().take(60).collect::<Vec<_>>());
        // Looks the same key up in two stores at the same time. On SQLite each store of a test has a database file of its own.
        if fixture.db.backend() == DbBackend::Postgres {
            let found = join_all([&fixture.store, &other.store].map(|store| number(store, "a"))).await;
            assert_eq!(found, [&fixture.store, &other.store].map(|store| Some(format!("a of {store}"))));
        }
    }

    #[tokio::test]
    async fn a_shared_lookup_checks_key_expiry_at_the_time_of_each_request() {
        let fixture = Fixture::new().await;
        let (id, hash) = fixture.key("key", true, 1000).await;
        let (unknown, db) = (SecretHash::of("another"), &fixture.db);
        let find = async |hash: &SecretHash, now: i64| {
            db.find_caller(hash, Timestamp::from_millis(now)).await.unwrap().map(|known| (known.caller.store_id, known.caller.key_id))
        };
        let found =
            join_all([(&hash, 0), (&hash, 999), (&hash, 1000), (&unknown, 0), (&hash, 998)].map(|(hash, now)| find(hash, now))).await;
        let known = Some((fixture.store.clone(), id));
        assert_eq!(found, [known.clone(), known.clone(), None, None, known]);
    }

    #[tokio::test]
    async fn a_lost_connection_is_reported_to_all_requests_of_a_shared_lookup() {
        let (statements, count) = counter();
        let fixture = Fixture::open(Some(count)).await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        fixture.ticket("a", |_| {}).await;
        fixture.db.ticket(&fixture.store, &TicketId::from("a".to_owned())).await.unwrap();
        let other = Fixture::new().await;
        // The store's id distinguishes this statement from those of other tests.
        let columns: &'static str = format!("id, pg_sleep(9.87) AS \"{}\"", fixture.store).leak();
        let sought = LookupTarget::Rows { store: fixture.store.clone(), columns, table: "tickets" };
        let before = statements.load(Ordering::Relaxed);
        let look_ups = join_all((0..5).map(|_| fixture.db.by_key(sought.clone(), "a", |cells| cells.take::<String>())));
        let there = format!("FROM pg_stat_activity WHERE query LIKE '%9.87%{}%' AND pid <> pg_backend_pid()", fixture.store);
        let count = async |what: &str| {
            other.db.first(Sql::fixed(&format!("SELECT COUNT({what}) {there}")), |cells| cells.take::<i64>()).await.unwrap()
        };
        let away = async {
            while count("*").await == Some(0) {}
            fixture.db.clone().close().await.unwrap();
            assert_eq!(count("pg_terminate_backend(pid)").await, Some(1));
        };
        let both = async { tokio::join!(look_ups, away) };
        let (got, ()) = timeout(Duration::from_secs(30), both).await.unwrap();
        assert!(got.iter().all(|got| matches!(got, Err(Error::Unavailable(_)))), "{got:?}");
        assert_eq!(statements.load(Ordering::Relaxed) - before, 1);
    }

    #[tokio::test]
    async fn a_failed_statement_of_a_shared_lookup_is_repeated_for_each_request() {
        let (statements, count) = counter();
        let fixture = Fixture::open(Some(count)).await;
        fixture.ticket("a", |_| {}).await;
        let columns = if fixture.is_sqlite() { "id, json_extract('{', '$')" } else { "id, 1 / (length(id) - length(id))" };
        let sought = LookupTarget::Rows { store: fixture.store.clone(), columns, table: "tickets" };
        let before = statements.load(Ordering::Relaxed);
        let got = join_all((0..5).map(|_| fixture.db.by_key(sought.clone(), "a", |cells| cells.take::<String>()))).await;
        assert!(got.iter().all(|got| matches!(got, Err(Error::Other(_)))), "{got:?}");
        let shared = u64::from(fixture.db.backend() == DbBackend::Postgres);
        assert_eq!(statements.load(Ordering::Relaxed) - before, shared + 5);
    }

    #[tokio::test]
    async fn a_panic_in_a_shared_lookup_does_not_fail_its_requests() {
        let armed = Arc::new(AtomicBool::new(false));
        let once = armed.clone();
        let fixture = Fixture::open(Some(Arc::new(move || assert!(!once.swap(false, Ordering::Relaxed), "on purpose")))).await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        fixture.ticket("a", |_| {}).await;
        armed.store(true, Ordering::Relaxed);
        let id = TicketId::from("a".to_owned());
        let found = join_all((0..5).map(|_| fixture.db.ticket(&fixture.store, &id))).await;
        assert!(found.iter().all(|found| matches!(found, Ok(Some(_)))), "{found:?}");
        assert!(!armed.load(Ordering::Relaxed));
    }
}
