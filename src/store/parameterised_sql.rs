//! The type [`Sql`]: SQL with its bound values. The module `sql_from_entities` builds an [`Sql`] from SeaORM entities (descriptions of
//! tables). SQL that is written by hand is appended piece by piece, each value with the SQL that uses it.
//!
//! Guarantees for SQL that is written by hand: `$1` is the id of the store (tenant) if the SQL was begun with [`Sql::of`], and every value
//! of a request except a limit or a flag is bound. Requests that differ only in bound values give the same SQL, so that each connection
//! prepares it once. SQLite and PostgreSQL both accept the SQL (numbered parameters, row values, booleans as literals), unless it is for
//! one database only.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeSet, sync::LazyLock};

use crate::domain::{
    clock::{Ids, RandomIds},
    ids::StoreId,
    paging::PageRequest,
    time::Timestamp,
};

/// A statement, or a part of one such as its conditions, with the values that are bound so far.
#[derive(Clone)]
pub(in crate::store) struct Sql {
    pub(in crate::store) text: String,
    pub(in crate::store) values: Vec<Param>,
    row_bound: RowBound,
    locks_rows: bool,
    /// Optimiser hints that `text` does not contain yet: byte offsets in `text`, each with the SQL to insert there (a [`SUBQUERY_FENCE`] or
    /// a [`NO_INDEX_PREFIX`]). They are inserted into the SELECT of a page of a list, but not into most statements that count a whole list.
    pub(in crate::store) fences: Vec<(usize, &'static str)>,
}

/// A bound value.
#[derive(Clone, Debug)]
pub(in crate::store) enum Param {
    Text(String),
    Integer(i64),
    Number(f64),
    Bytes(Vec<u8>),
    /// NULL instead of a text. PostgreSQL needs to know the type of a NULL.
    Null,
    NoInteger,
    NoNumber,
    Flag(bool),
    NoFlag,
}

/// What limits the number of rows that a statement reads.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum RowBound {
    /// The statement reads only rows whose keys its conditions list.
    Keys,
    /// The statement reads rows until enough of them match. It may also read many rows that do not match.
    Rows,
    /// The statement reads a whole table. On SQLite, a statement with the bound [`RowBound::Rows`] moves to another thread after a number
    /// of steps of SQLite's virtual machine. A statement on a whole table runs on that thread from the start: SQLite may count a whole
    /// table in one long step, which would block the first thread.
    Table,
}

/// SQL for the end of a subquery: it keeps PostgreSQL from turning the subquery into a join. On PostgreSQL only.
pub(in crate::store) const SUBQUERY_FENCE: &str = " OFFSET 0";

/// SQL for the position before a number column: it keeps the query planner from using an index for the comparison with that column. On
/// SQLite it works before a column of any type.
pub(in crate::store) const NO_INDEX_PREFIX: &str = "+";

/// Lengths of bound lists. A list is padded to the next of these lengths by repeating its last value, so that there are few different SQL
/// texts to prepare.
const LIST_LENGTHS: [usize; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/// The initial capacity of the SQL text, in bytes. Most statements fit, so that the text is not reallocated while it grows.
const TEXT_CAPACITY: usize = 512;

/// The most values of one list in a statement. A statement may contain several lists, and the databases allow some tens of thousands of
/// values in all.
pub(in crate::store) const LIST_MAX: usize = 1000;

impl Sql {
    /// Begins SQL whose `$1` is the id of the store.
    pub fn of(store: &StoreId, text: &str) -> Self {
        let mut sql = Self::fixed(text);
        sql.values.push(text_value(store.as_str()));
        sql
    }

    /// Begins SQL without a store, such as a complete statement. Its parameters `$1`, `$2`, … are bound in this order with [`Sql::with`].
    pub fn fixed(text: &str) -> Self {
        let mut whole = String::with_capacity(TEXT_CAPACITY.max(text.len()));
        whole.push_str(text);
        Self { text: whole, values: Vec::with_capacity(8), row_bound: RowBound::Keys, locks_rows: false, fences: Vec::new() }
    }

    /// Binds the next parameter that the SQL already contains.
    pub fn with(mut self, value: Param) -> Self {
        self.values.push(value);
        self
    }

    /// Records that no key limits the number of rows that this statement reads ([`RowBound::Rows`]).
    pub fn unbounded(&mut self) -> &mut Self {
        self.row_bound = RowBound::Rows;
        self
    }

    /// Records that this statement reads a whole table ([`RowBound::Table`]).
    pub fn of_a_table(&mut self) -> &mut Self {
        self.row_bound = RowBound::Table;
        self
    }

    /// Makes the SELECT lock the rows that it reads until the end of the transaction, and wait for transactions that have locked these
    /// rows. On PostgreSQL only.
    ///
    /// The lock is not `FOR UPDATE`, which would also block the foreign key checks of other transactions and could cause a deadlock. For
    /// example, one transaction has changed a ticket twice, and its commit has to check the ticket's foreign key to the conversation.
    /// Another transaction has locked the conversation and waits for the ticket. With `FOR UPDATE`, each would wait for the other.
    pub fn lock_rows(&mut self) -> &mut Self {
        self.locks_rows = true;
        self.push(" FOR NO KEY UPDATE")
    }

    /// Records that the SQL already contains a lock of its rows.
    pub fn note_lock(&mut self) {
        self.locks_rows = true;
    }

    /// Appends LIMIT with a literal number. With a bound number, PostgreSQL would assume that a reusable plan returns a tenth of all rows.
    /// It would find this plan too expensive and plan the statement anew at each execution, which costs as much as reading a page of a
    /// list.
    pub fn limit(&mut self, rows: i64) -> &mut Self {
        self.push(&format!(" LIMIT {rows}"))
    }

    /// Marks the end of a subquery. The statement of a page gets a [`SUBQUERY_FENCE`] here, so that the subquery is evaluated for each row.
    /// Most statements that count a whole list get none, since a join with the subquery is faster for them.
    pub fn fence(&mut self) -> &mut Self {
        self.fences.push((self.text.len(), SUBQUERY_FENCE));
        self
    }

    /// Marks the position before a number column. The statement of a page gets a [`NO_INDEX_PREFIX`] here, since the statement of a page is
    /// faster if it compares the column row by row. The total of a whole list is faster with the index of the column.
    pub fn without_index(&mut self) -> &mut Self {
        self.fences.push((self.text.len(), NO_INDEX_PREFIX));
        self
    }

    /// Returns the SQL with each [`SUBQUERY_FENCE`] and [`NO_INDEX_PREFIX`] inserted.
    pub(in crate::store) fn fenced(&self) -> String {
        let mut text = self.text.clone();
        for (at, fence) in self.fences.iter().rev() {
            text.insert_str(*at, fence);
        }
        text
    }

    /// Cuts off the SQL that begins at the byte offset `at`, and returns it. The values of the cut-off SQL stay in this [`Sql`].
    pub fn split_off(&mut self, at: usize) -> String {
        self.text.split_off(at)
    }

    pub fn locks_rows(&self) -> bool {
        self.locks_rows
    }

    pub fn row_bound(&self) -> RowBound {
        self.row_bound
    }

    /// Returns the SQL for SQLite, with `?2` instead of `$2`: values are bound by number, but SQLite would take `$2` for a name.
    pub fn for_sqlite(&self) -> String {
        self.text.replace('$', "?")
    }

    /// Returns the SQL for PostgreSQL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn params(&self) -> &[Param] {
        &self.values
    }

    pub fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bind(text_value(value))
    }

    pub fn integer(&mut self, value: i64) -> &mut Self {
        self.bind(Param::Integer(value))
    }

    /// Appends a flag as a literal. With a bound value, the planner could not choose a partial index, and PostgreSQL could not estimate
    /// which part of an index it will scan.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.push(if flag { "TRUE" } else { "FALSE" })
    }

    pub fn number(&mut self, value: f64) -> &mut Self {
        self.bind(Param::Number(value))
    }

    /// Appends a list of texts in parentheses. There must be at least one text.
    pub fn texts<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.list(values.into_iter().map(text_value).collect())
    }

    /// Appends a list of integers in parentheses. There must be at least one integer.
    pub fn integers(&mut self, values: &[i64]) -> &mut Self {
        self.list(values.iter().copied().map(Param::Integer).collect())
    }

    /// Appends ` AND ` and an upper bound on the sort column of a descending list. `test` is the column with the operator, such as `sent_at
    /// <= `.
    ///
    /// SQLite uses only one upper bound of a column with an index. On a page after a cursor, the cursor must be that bound: otherwise a
    /// deep page would read the list from its beginning. So a `+` before the column keeps SQLite from using the appended bound with the
    /// index.
    ///
    /// A client may send a cursor that lies above the appended bound, from another list. Then the statement also reads the rows between the
    /// cursor and the bound, so it counts as unbounded.
    pub fn and_below(&mut self, page: &PageRequest, test: &str, bound: Timestamp) -> &mut Self {
        if page.after.as_ref().is_some_and(|after| bound.millis() < after.at) {
            self.unbounded();
        }
        self.push(if page.after.is_some() { " AND +" } else { " AND " }).push(test).integer(bound.millis())
    }

    /// Appends the condition that `tested`, a column or an indexed expression on it, equals one of `values`. There must be at least one
    /// value, and all must have the same type. On SQLite only, which would build a temporary table for an `IN` list. No index is used: the
    /// condition tests `BETWEEN` for the least and the greatest value, and compares a row in this range with one value after the other
    /// (`CASE`).
    pub fn one_by_one(&mut self, tested: &str, mut values: Vec<Param>) -> &mut Self {
        // `BETWEEN` needs the least and the greatest value. The values are sorted only here: `text_value` may have replaced U+0000 in some
        // of them, which can change their order.
        values.sort_by(|one, other| match (one, other) {
            (Param::Number(one), Param::Number(other)) => one.total_cmp(other),
            (Param::Text(one), Param::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        });
        let values = filled(values);
        let (first, last) = (self.values.len() + 1, self.values.len() + values.len());
        self.push(&format!("{NO_INDEX_PREFIX}{tested} BETWEEN ${first} AND ${last} AND CASE {NO_INDEX_PREFIX}{tested}"));
        for value in values {
            self.push(" WHEN ").bind(value).push(" THEN TRUE");
        }
        self.push(" END")
    }

    /// Appends a list of values in parentheses. There must be at least one value.
    pub fn list(&mut self, values: Vec<Param>) -> &mut Self {
        self.push("(");
        for (i, value) in filled(values).into_iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.bind(value);
        }
        self.push(")")
    }

    fn bind(&mut self, value: Param) -> &mut Self {
        self.values.push(value);
        self.text.push('$');
        self.text.push_str(&self.values.len().to_string());
        self
    }
}

/// Pads the values to the next of [`LIST_LENGTHS`], or else to [`LIST_MAX`], by repeating the last value.
pub(in crate::store) fn filled<T: Clone>(mut values: Vec<T>) -> Vec<T> {
    let length = LIST_LENGTHS.into_iter().find(|length| *length >= values.len()).unwrap_or(values.len().max(LIST_MAX));
    if let Some(last) = values.last().filter(|_| values.len() < length).cloned() {
        values.resize(length, last);
    }
    values
}

pub(in crate::store) fn text_value(text: &str) -> Param {
    Param::Text(without_nul(text).into_owned())
}

/// Replaces U+0000, which PostgreSQL refuses in a text, by a random text. No stored text contains U+0000 or the random text, so the result
/// matches no stored text.
pub(in crate::store) fn without_nul(text: &str) -> Cow<'_, str> {
    /// The replacement. It is random, so that no stored text contains it.
    static UNMATCHABLE: LazyLock<String> = LazyLock::new(|| RandomIds.fresh());
    if text.contains('\0') { text.replace('\0', &UNMATCHABLE).into() } else { text.into() }
}

/// Removes duplicate ids and splits the rest into groups, each of which fits one statement. The ids of one page always fit one group.
pub(in crate::store) fn batches<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let distinct: Vec<&str> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    distinct.chunks(LIST_MAX).map(<[_]>::to_vec).collect()
}
