//! Keyset pagination: pages and totals of lists.

use std::borrow::Cow;

#[cfg(test)]
use sea_orm::DbBackend;
use sea_orm::{EntityTrait, IdenStatic};

use crate::{
    domain::{
        ids::StoreId,
        paging::{Page, PageRequest, Position},
    },
    store::{Db, Result, parameterised_sql::Sql, row_decoding::Row},
};

/// A record type that is listed in pages.
pub(in crate::store) trait PagedRow: Row + Send + 'static {
    /// The column by which the list is sorted. Rows with the same value are sorted by `id`.
    const SORT: <Self::Entity as EntityTrait>::Column;
    const NEWEST_FIRST: bool = true;

    fn position(&self) -> Position;
}

/// The source that a list is read from.
pub(in crate::store) struct PageSource<'a> {
    /// The text after `FROM`: the table, or a join that has the columns of the table.
    pub table: Cow<'a, str>,
    /// The names that the columns of the sort instant and of the id have in this source, if these names differ from those in the table.
    pub order: Option<(&'static str, &'static str)>,
}

impl<'a> From<&'a str> for PageSource<'a> {
    fn from(table: &'a str) -> Self {
        Cow::Borrowed(table).into()
    }
}

impl<'a> From<Cow<'a, str>> for PageSource<'a> {
    fn from(table: Cow<'a, str>) -> Self {
        Self { table, order: None }
    }
}

impl Db {
    /// Returns a page of the rows that fulfil `conditions`, a SQL text that may follow `WHERE`; with a total if the request wants one.
    pub(in crate::store) async fn page<T: PagedRow>(&self, conditions: Sql, page: &PageRequest) -> Result<Page<T>> {
        let count = count_sql(T::table(), conditions.clone());
        let found = self.page_of(&T::table().into(), conditions, page).await?;
        let total = match found.whole(page) {
            _ if !page.count => None,
            None => Some(self.count(count).await?),
            whole => whole,
        };
        Ok(Page { total, ..found })
    }

    /// Like [`Db::page`], but from a source that the caller chooses, and without a total.
    pub(in crate::store) async fn page_of<T: PagedRow>(
        &self,
        source: &PageSource<'_>,
        conditions: Sql,
        page: &PageRequest,
    ) -> Result<Page<T>> {
        let rows = self.all(page_sql::<T>(source, conditions, page, None), T::decode).await?;
        Ok(Page::cut(rows, page.size, T::position))
    }

    /// Returns the rows of a table with these ids. There are at most as many ids as a page has rows.
    pub(in crate::store) async fn rows_by_id<T: PagedRow>(&self, store: &StoreId, ids: &[&str]) -> Result<Vec<T>> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        let sql = Sql::by_ids(self.backend(), store, (T::columns(), T::table()), ids.iter().copied());
        self.all(sql, T::decode).await
    }

    /// Runs a statement that returns one number, such as that of [`count_sql`], and returns the number.
    pub(in crate::store) async fn count(&self, sql: Sql) -> Result<u64> {
        let count: Option<i64> = self.first(sql, |cells| cells.take()).await?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    /// Returns the database's query plan for a page, one step a line.
    #[cfg(test)]
    pub(in crate::store) async fn page_plan<T: PagedRow>(
        &self,
        source: impl Into<PageSource<'_>>,
        conditions: Sql,
        page: &PageRequest,
    ) -> Result<Vec<String>> {
        let mut sql = page_sql::<T>(&source.into(), conditions, page, None);
        let sqlite = self.backend() == DbBackend::Sqlite;
        sql.text = format!("{} {}", if sqlite { "EXPLAIN QUERY PLAN" } else { "EXPLAIN" }, sql.text);
        self.all(sql, move |cells| {
            (0..if sqlite { 3 } else { 0 }).for_each(|_| cells.skip());
            cells.take()
        })
        .await
    }
}

/// Returns the statement that counts the rows of a whole list. Leaves out the fences: SQL parts that keep the query planner from joining a
/// subquery ([`SUBQUERY_FENCE`](crate::store::parameterised_sql::SUBQUERY_FENCE)) or from using an index. Fences mainly help statements
/// that end after one page. [`fenced_count_sql`] keeps the fences.
pub(in crate::store) fn count_sql(table: &str, mut conditions: Sql) -> Sql {
    conditions.unbounded();
    conditions.fences.clear();
    conditions.text = format!("SELECT COUNT(*) FROM {table} WHERE {}", conditions.text);
    conditions
}

/// Returns the statement that counts the rows of a list and keeps the fences of its subqueries (see
/// [`SUBQUERY_FENCE`](crate::store::parameterised_sql::SUBQUERY_FENCE)), for conditions that let few rows through to these subqueries.
pub(in crate::store) fn fenced_count_sql(table: &str, mut conditions: Sql) -> Sql {
    conditions.text = conditions.fenced();
    count_sql(table, conditions)
}

/// Returns the statement of a page. It reads one row more than the page holds, to find out whether there is another page. `sql` contains
/// the conditions of the list. `beside` are further columns of each row.
pub(in crate::store) fn page_sql<T: PagedRow>(source: &PageSource<'_>, mut sql: Sql, page: &PageRequest, beside: Option<&str>) -> Sql {
    let PageSource { table, order } = source;
    let (columns, (at, id)) = (T::columns(), order.unwrap_or((T::SORT.as_str(), "id")));
    let (behind, direction) = if T::NEWEST_FIRST { ("<", "DESC") } else { (">", "ASC") };
    let (comma, beside) = beside.map_or(("", ""), |beside| (", ", beside));
    sql.text = format!("SELECT {columns}{comma}{beside} FROM {table} WHERE {}", sql.fenced());
    sql.fences.clear();
    if let Some(after) = &page.after {
        sql.push(&format!(" AND ({at}, {id}) {behind} (")).integer(after.at).push(", ").text(&after.id).push(")");
    }
    sql.push(&format!(" ORDER BY {at} {direction}, {id} {direction}")).limit(i64::from(page.size) + 1);
    sql
}
