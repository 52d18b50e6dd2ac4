//! As-of pages: keyset pagination of a list whose rows change their sort position (move), in the order that the list had at one moment.
//!
//! That moment, called the snapshot, is when the client read the first page. The cursor of each further page names the snapshot.
//!
//! Guarantee: the pages show each row that was in the list at the snapshot once, at the sort position that it had then and with its present
//! content. Rows that were added later are not shown. A row that has since been deleted, or that no longer fulfils the filter, may be
//! missing.
//!
//! A page after a cursor merges two lists: rows that have not moved since the snapshot, and moved rows whose sort position at the snapshot
//! is on this page. Triggers write the data that distinguishes them (on PostgreSQL migration `m0020_former_sort_positions`, on SQLite
//! `m0022_cheaper_sort_position_changes_on_sqlite`). The column `placed_by` of a row is the id of the transaction that gave the row its
//! sort position (on SQLite: the number of the row's insert). The table `former_places` contains each sort position that a row has left,
//! and which transaction moved the row away (on SQLite: the number of the move).
//!
//! The cost of a page grows with the number of moves since the snapshot. A page reads one narrow row of `former_places` for each of these
//! moves: on PostgreSQL the moves in all lists of the store, on SQLite those in all lists of all stores. On SQLite the table has no index
//! by store, since the index would cost each move more time than it saves.

use std::collections::BTreeSet;

use sea_orm::{DbBackend, IdenStatic};

use crate::{
    domain::{
        ids::StoreId,
        paging::{AsOf, Page, PageRequest, Position},
    },
    store::{
        Db, Error, Result,
        parameterised_sql::{Param, SUBQUERY_FENCE, Sql},
        statement::pages::{PageSource, PagedRow, page_sql},
    },
};

/// A record type whose rows move within their list, which is sorted most recent first.
pub(in crate::store) trait MovingRow: PagedRow {}

/// SQL for a text that identifies the snapshot of the statement, for the cursor (see [`Committed`]). The text for SQLite contains the
/// number of the last move, and the number of the store's last inserted row (arrival).
const SQLITE_SNAPSHOT: &str = "(SELECT 'numbers:' || COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'former_places'), 0) || ':' || \
     COALESCE((SELECT value FROM counters WHERE store_id = $1 AND name = 'arrivals'), 0))";
/// [`SQLITE_SNAPSHOT`] for PostgreSQL. On the primary, the text contains the transaction snapshot: the lowest id that is not assigned yet,
/// and the ids of the running transactions. On a standby, a snapshot does not list the running transactions. There the text contains the id
/// below which all transactions have ended, and the ids of the store's later visible transactions. These are read from the change log, in
/// which each write of the store has an entry.
const POSTGRES_SNAPSHOT: &str = "(SELECT CASE WHEN pg_is_in_recovery() THEN \
     CONCAT('standby:', pg_snapshot_xmin(pg_current_snapshot()), ':', \
         (SELECT STRING_AGG(DISTINCT transaction_id::text, ',') FROM changes \
          WHERE store_id = $1 AND transaction_id >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint)) \
     ELSE CONCAT('primary:', pg_snapshot_xmax(pg_current_snapshot()), ':', \
         (SELECT STRING_AGG(running::text, ',') FROM pg_snapshot_xip(pg_current_snapshot()) running)) END)";

/// The moves and inserts of rows that had been committed at a snapshot.
#[derive(Debug, PartialEq, Eq)]
enum Committed {
    /// On SQLite: the moves up to the number `move_number`, and the inserts of rows (arrivals) up to the number `arrival`.
    Through { move_number: i64, arrival: i64 },
    /// On a PostgreSQL primary: the changes of the transactions with ids below `before`, except the ids in `others`.
    Except { before: i64, others: Vec<i64> },
    /// On a PostgreSQL standby: the changes of the transactions with ids below `before`, and of those with the ids in `others`.
    And { before: i64, others: Vec<i64> },
}

impl Committed {
    fn read(as_of: &AsOf) -> Option<Self> {
        let (server, rest) = as_of.0.split_once(':')?;
        let (before, others) = rest.split_once(':')?;
        if server == "numbers" {
            return Some(Self::Through { move_number: before.parse().ok()?, arrival: others.parse().ok()? });
        }
        let (before, others) = (before.parse().ok()?, others.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok()));
        let others = others.collect::<Option<Vec<i64>>>()?;
        match server {
            "primary" => Some(Self::Except { before, others }),
            "standby" => Some(Self::And { before, others }),
            _ => None,
        }
    }

    /// Adds the condition that a row of the list has not moved since the snapshot. `id` is the name of the source's id column.
    fn push_unmoved(&self, sql: &mut Sql, table: &str, id: &str) {
        // `+ 0` turns the column into an expression, for which PostgreSQL has no statistics. With statistics PostgreSQL would estimate that
        // a plan for the given number is cheaper than a generic plan, and would plan the statement anew for every page.
        self.push(sql, "(placed_by + 0)");
        if let Self::Through { move_number, .. } = self {
            sql.push(&format!(
                " AND {id} NOT IN (SELECT row_id FROM former_places WHERE store_id = $1 AND list = '{table}' AND left_by > "
            ));
            sql.integer(*move_number).push(")");
        }
    }

    /// Adds the conditions on `former_places` that select one entry for each row that has moved since the snapshot: the entry with the
    /// row's sort position at the snapshot.
    fn push_moved(&self, sql: &mut Sql, table: &str) {
        let of_list = format!("store_id = $1 AND list = '{table}' AND left_by");
        if let Self::Through { move_number, .. } = self {
            // The row's first move after the snapshot. `left_rows` tests separately whether the row had arrived by the snapshot.
            sql.push(&format!("left_by IN (SELECT MIN(left_by) FROM former_places WHERE {of_list} > "));
            sql.integer(*move_number).push(" GROUP BY row_id)");
            return;
        }
        sql.push(&of_list).push(" >= ").integer(self.first_later()).push(" AND NOT ");
        self.push(sql, "left_by");
        sql.push(" AND ");
        self.push(sql, "placed_by");
    }

    /// Adds the condition that the write with the number in `column` was committed at the snapshot. On SQLite the number is that of an
    /// arrival (the insert of a row), on PostgreSQL it is the id of a transaction.
    fn push(&self, sql: &mut Sql, column: &str) {
        match self {
            Self::Through { arrival, .. } => {
                sql.push(column).push(" <= ").integer(*arrival);
            }
            Self::Except { before, others } => {
                sql.push("(").push(column).push(" < ").integer(*before);
                if !others.is_empty() {
                    sql.push(" AND ").push(column).push(" NOT IN ").integers(others);
                }
                sql.push(")");
            }
            Self::And { before, others } => {
                sql.push("(").push(column).push(" < ").integer(*before);
                if !others.is_empty() {
                    sql.push(" OR ").push(column).push(" IN ").integers(others);
                }
                sql.push(")");
            }
        }
    }

    /// Returns the lowest number (of a move on SQLite, of a transaction on PostgreSQL) that may not have been committed at the snapshot. A
    /// scan of `former_places` starts at this number.
    fn first_later(&self) -> i64 {
        match self {
            Self::Through { move_number, .. } => move_number.saturating_add(1),
            Self::Except { before, others } => others.iter().copied().min().unwrap_or(*before).min(*before),
            Self::And { before, .. } => *before,
        }
    }
}

/// Returns the name of the sort column in a source.
fn sort_column<T: PagedRow>(source: &PageSource<'_>) -> &'static str {
    source.order.map_or(T::SORT.as_str(), |(at, _)| at)
}

/// The SQL of the total number of rows of a list.
enum Total<'a> {
    /// SQL that reads a counter, which triggers maintain.
    Kept(&'a str),
    /// SQL that counts the rows of the list.
    Counted(&'a str),
}

/// A list whose rows move, and how it is read.
pub(in crate::store) struct MovingList<'a> {
    pub source: PageSource<'a>,
    pub conditions: Sql,
    /// Adds the conditions of the list to the statement that reads moved rows by their ids. In this statement, `listed.listed_id` is the id
    /// of a moved row, read from `former_places`. A condition on it can be tested before the row itself is fetched.
    pub moved: &'a (dyn Fn(&mut Sql) + Sync),
}

impl Db {
    /// Returns a page of an as-of pagination, without a total.
    pub(in crate::store) async fn page_without_total<T: MovingRow>(&self, list: MovingList<'_>, page: &PageRequest) -> Result<Page<T>> {
        match page.after.as_ref().map(|after| (after, after.as_of.as_ref())) {
            None => self.first_page(&list.source, list.conditions, page, None).await,
            Some((after, Some(as_of))) => self.next_page(list, page, after, as_of).await,
            // The cursor names no snapshot: an earlier version of the program issued it, or it comes from a search, whose list is sorted by
            // relevance. The page has the present order.
            Some((_, None)) => self.page_of(&list.source, list.conditions, page).await,
        }
    }

    /// Like [`Db::page_without_total`], with a total if the request wants one. `push_total` adds the SQL of the total, which reads counters
    /// that triggers maintain. In this SQL, as in the list's conditions, `$1` is the id of the store. The statement of a first page also
    /// returns the total: that saves a statement, and page and total are from the same snapshot.
    pub(in crate::store) async fn page_with_kept_total<T: MovingRow>(
        &self,
        mut list: MovingList<'_>,
        page: &PageRequest,
        store: &StoreId,
        push_total: impl Fn(&mut Sql),
    ) -> Result<Page<T>> {
        if !page.count || page.after.is_some() {
            // A page after a cursor may be empty, and then has no row that could contain the total.
            let count = || {
                let mut sql = Sql::of(store, "SELECT ");
                push_total(&mut sql);
                sql
            };
            return self.page_with_separate_count(list, page, count).await;
        }
        let end = list.conditions.as_str().len();
        push_total(&mut list.conditions);
        let total = list.conditions.split_off(end);
        self.first_page(&list.source, list.conditions, page, Some(Total::Kept(&total))).await
    }

    /// Like [`Db::page_without_total`], with a total if the request wants one. The SQL `count` counts the rows, unless the first page is
    /// the whole list. The first page and its total come from one statement, so that both are from the same snapshot. This statement
    /// contains `count` as a subquery, and both use the same parameters `$1`, `$2`, …. So the bound values of the list's conditions must
    /// begin with those of `count`.
    pub(in crate::store) async fn page_with_counted_total<T: MovingRow>(
        &self,
        list: MovingList<'_>,
        page: &PageRequest,
        count: Sql,
    ) -> Result<Page<T>> {
        if !page.count || page.after.is_some() {
            return self.page_with_separate_count(list, page, || count).await;
        }
        let MovingList { source, mut conditions, .. } = list;
        conditions.unbounded();
        self.first_page(&source, conditions, page, Some(Total::Counted(count.as_str()))).await
    }

    /// Like [`Db::page_without_total`], with a total if the request wants one. A separate statement, `count`, counts the rows.
    async fn page_with_separate_count<T: MovingRow>(
        &self,
        list: MovingList<'_>,
        page: &PageRequest,
        count: impl FnOnce() -> Sql,
    ) -> Result<Page<T>> {
        let total = if page.count { Some(self.count(count()).await?) } else { None };
        Ok(Page { total, ..self.page_without_total(list, page).await? })
    }

    /// Returns the first page. Its cursors name the snapshot.
    async fn first_page<T: MovingRow>(
        &self,
        source: &PageSource<'_>,
        conditions: Sql,
        page: &PageRequest,
        total: Option<Total<'_>>,
    ) -> Result<Page<T>> {
        let snapshot = if self.backend() == DbBackend::Sqlite { SQLITE_SNAPSHOT } else { POSTGRES_SNAPSHOT };
        let (size, is_counted) = (page.size, total.is_some());
        let sql = match total {
            None => page_sql::<T>(source, conditions, page, Some(snapshot)),
            Some(Total::Kept(total)) => page_sql::<T>(source, conditions, page, Some(&format!("{snapshot}, {total}"))),
            Some(Total::Counted(count)) => {
                let mut sql = page_sql::<T>(source, conditions, page, Some(&format!("{} AS place_at", sort_column::<T>(source))));
                let columns = T::columns();
                sql.text = format!(
                    "WITH page AS MATERIALIZED ({}) SELECT {columns}, {snapshot}, (SELECT CASE WHEN COUNT(*) > {size} THEN ({count}) \
                     ELSE COUNT(*) END FROM page) FROM page ORDER BY place_at DESC, id DESC",
                    sql.text
                );
                sql
            }
        };
        let rows = self
            .all(sql, move |cells| Ok((T::decode(cells)?, cells.take::<String>()?, if is_counted { cells.take::<i64>()? } else { 0 })))
            .await?;
        let (as_of, counted) = rows.first().map_or((None, 0), |(_, as_of, total)| (Some(AsOf(as_of.clone())), *total));
        let rows = rows.into_iter().map(|(row, ..)| row).collect();
        let found = Page::cut(rows, size, |row: &T| Position { as_of: as_of.clone(), ..row.position() });
        Ok(Page { total: is_counted.then(|| u64::try_from(counted).unwrap_or(0)), ..found })
    }

    /// Returns a page after a cursor, in the order of the snapshot `as_of`.
    ///
    /// Rows that have not moved are read first, moved rows second. A row that moves between the two statements is read twice and shown
    /// once; in the other order it would be missed. For the same reason the second statement runs on the primary: a standby may show an
    /// older state than the first statement saw. The second statement is skipped if the first one returns rows and no row of the list has
    /// moved.
    async fn next_page<T: MovingRow>(&self, list: MovingList<'_>, page: &PageRequest, after: &Position, as_of: &AsOf) -> Result<Page<T>> {
        let MovingList { source, mut conditions, moved } = list;
        let committed = Committed::read(as_of).ok_or_else(|| Error::Damaged("a cursor names no snapshot of this database".to_owned()))?;
        conditions.push(" AND ");
        committed.push_unmoved(&mut conditions, T::table(), source.order.map_or("id", |(_, id)| id));
        let store = conditions.params().first().cloned();
        // `first_later` is a bound value, so that the statement has the same text for every snapshot.
        let conditions = conditions.with(Param::Integer(committed.first_later()));
        let beside = format!(
            "{}, EXISTS (SELECT 1 FROM former_places WHERE store_id = $1 AND list = '{}' AND left_by >= ${})",
            sort_column::<T>(&source),
            T::table(),
            conditions.params().len()
        );
        let sql = page_sql::<T>(&source, conditions, page, Some(&beside));
        let standing = self.all(sql, |cells| Ok((T::decode(cells)?, cells.take::<i64>()?, cells.take()?))).await?;
        let has_moved = standing.first().is_none_or(|(_, _, has_moved)| *has_moved);
        let mut rows: Vec<(T, i64)> = standing.into_iter().map(|(row, at, _)| (row, at)).collect();
        if has_moved {
            // The sort position of the first unmoved row after this page: only moved rows before or at this position can belong on the
            // page. If there is no such row, the page may be the last, and every further moved row is read.
            let from = rows.get(page.size as usize).map_or(i64::MIN, |(_, at)| *at);
            let sql = self.left_rows::<T>(store, &committed, moved, page, after, from);
            let left = self.on_primary().all(sql, |cells| Ok((T::decode(cells)?, cells.take::<i64>()?))).await?;
            merge(&mut rows, left);
        }
        let position = |(row, at): &(T, i64)| Position { at: *at, as_of: Some(as_of.clone()), ..row.position() };
        Ok(Page::cut(rows, page.size, position).map(|(row, _)| row))
    }

    /// Returns the statement that reads the moved rows that can belong on the page: at the snapshot, their sort position came after the
    /// cursor `after` in the list, and was at the instant `from` or later (the list is sorted newest first).
    fn left_rows<T: MovingRow>(
        &self,
        store: Option<Param>,
        committed: &Committed,
        moved: &dyn Fn(&mut Sql),
        page: &PageRequest,
        after: &Position,
        from: i64,
    ) -> Sql {
        let (columns, table) = (T::columns(), T::table());
        let mut sql = Sql::fixed("");
        sql.unbounded();
        sql.values.extend(store);
        sql.push(&format!("SELECT {columns}, listed_at FROM (SELECT place_at AS listed_at, row_id AS listed_id FROM former_places WHERE "));
        committed.push_moved(&mut sql, table);
        sql.push(" AND (place_at, row_id) < (").integer(after.at).push(", ").text(&after.id).push(") AND place_at >= ").integer(from);
        if self.backend() == DbBackend::Sqlite {
            // SQLite must look each row up by its id, in the index of the primary key.
            sql.push(&format!(") listed CROSS JOIN {table} INDEXED BY sqlite_autoindex_{table}_1 ON id = listed_id WHERE "));
            committed.push(&mut sql, "placed_by");
            sql.push(" AND ");
        } else {
            // Each row is looked up by itself. PostgreSQL cannot estimate how few rows there are, and might otherwise scan the table.
            sql.push(&format!(
                " ORDER BY place_at DESC, row_id DESC) listed \
                 CROSS JOIN LATERAL (SELECT * FROM {table} WHERE store_id = $1 AND id = listed_id{SUBQUERY_FENCE}) {table} WHERE "
            ));
        }
        let text = std::mem::take(&mut sql.text);
        moved(&mut sql);
        sql.text = text + &sql.fenced();
        sql.fences.clear();
        sql.push(" ORDER BY listed_at DESC, id DESC").limit(i64::from(page.size) + 1);
        sql
    }
}

/// Merges moved rows into the rows that have not moved, by their sort positions at the snapshot. Both lists have the newest first. A row
/// that is in both lists is kept once.
fn merge<T: PagedRow>(standing: &mut Vec<(T, i64)>, left: Vec<(T, i64)>) {
    let key = |(row, at): &(T, i64)| std::cmp::Reverse((*at, row.position().id));
    let ids: BTreeSet<String> = standing.iter().map(|(row, _)| row.position().id).collect();
    standing.extend(left.into_iter().filter(|(row, _)| !ids.contains(&row.position().id)));
    standing.sort_by_cached_key(key);
}
