//! A SQL statement: a text and its bound values. `statement` builds a statement from entities; a text that is written by hand grows with
//! its values.
//!
//! Guarantees for texts that are written by hand: `$1` is always the store; every value but a limit is bound; the same shape of a request
//! gives the same text, so that each connection prepares it once; SQLite and PostgreSQL understand it alike (numbered parameters, row
//! values, booleans as literals), except for parts that are marked as one database's own.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::BTreeSet,
    hash::{Hash, Hasher},
    sync::LazyLock,
};

use crate::domain::{
    clock::{Ids, RandomIds},
    ids::StoreId,
    paging::PageRequest,
    time::Timestamp,
};

/// A statement, or its conditions, with the values bound so far.
#[derive(Clone)]
pub(in crate::store) struct Sql {
    pub(in crate::store) text: String,
    pub(in crate::store) values: Vec<Param>,
    reach: Reach,
    locks_rows: bool,
    /// The places in the text where a page adds a [`FENCE`] or an [`ASIDE`].
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

/// What bounds the rows that a statement looks at.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum Reach {
    /// Its keys.
    Keys,
    /// How soon the statement finds the rows that it looks for.
    Rows,
    /// Nothing: all rows of a table, which SQLite may count in one step.
    Table,
}

impl Hash for Param {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        std::mem::discriminant(self).hash(hasher);
        match self {
            Self::Text(text) => text.hash(hasher),
            Self::Integer(number) => number.hash(hasher),
            Self::Number(number) => number.to_bits().hash(hasher),
            Self::Bytes(bytes) => bytes.hash(hasher),
            Self::Flag(flag) => flag.hash(hasher),
            Self::Null | Self::NoInteger | Self::NoNumber | Self::NoFlag => {}
        }
    }
}

/// At the end of a subquery, keeps it from being joined with the rows around it. PostgreSQL's own.
pub(in crate::store) const FENCE: &str = " OFFSET 0";

/// Before a column of numbers, keeps the indexes that have the column from being used for it. On SQLite this works before any column.
pub(in crate::store) const ASIDE: &str = "+";

/// Lengths of bound lists. A list is filled up to the next length with its last value, so that there are few different texts.
const LIST_LENGTHS: [usize; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/// The room for a text, in bytes. Most statements fit, so that their text need not move while it grows.
const ROOM: usize = 512;

/// The most values that one list of a statement is given. The databases allow some ten thousand a statement.
pub(in crate::store) const LIST_MAX: usize = 1000;

impl Sql {
    /// Begins a text whose `$1` is the store.
    pub fn of(store: &StoreId, text: &str) -> Self {
        let mut sql = Self::fixed(text);
        sql.values.push(text_value(store.as_str()));
        sql
    }

    /// A text that is already whole; its `$n` are bound in their order with [`Sql::with`].
    pub fn fixed(text: &str) -> Self {
        let mut whole = String::with_capacity(ROOM.max(text.len()));
        whole.push_str(text);
        Self { text: whole, values: Vec::with_capacity(8), reach: Reach::Keys, locks_rows: false, fences: Vec::new() }
    }

    /// Binds the next `$n` of a whole text.
    pub fn with(mut self, value: Param) -> Self {
        self.values.push(value);
        self
    }

    /// Notes that no key bounds the rows that this statement looks at.
    pub fn unbounded(&mut self) -> &mut Self {
        self.reach = Reach::Rows;
        self
    }

    /// Notes that this statement looks at a table as a whole.
    pub fn of_a_table(&mut self) -> &mut Self {
        self.reach = Reach::Table;
        self
    }

    /// Locks the rows until the end of the transaction, waiting for transactions that have locked them. PostgreSQL's own. Not `FOR UPDATE`:
    /// that is for rows whose key goes, and keeps other transactions from referring to them. If a transaction changes a ticket twice, it
    /// checks the ticket's reference to its conversation at the commit, while it has the ticket locked; the transaction that has locked the
    /// conversation may be waiting for that ticket.
    pub fn lock_rows(&mut self) -> &mut Self {
        self.locks_rows = true;
        self.push(" FOR NO KEY UPDATE")
    }

    /// Notes that the text locks its rows by itself.
    pub fn note_lock(&mut self) {
        self.locks_rows = true;
    }

    /// Limits the number of rows. The number is a literal: for a bound number PostgreSQL expects a tenth of all rows, and therefore plans
    /// the statement each time it is run, which costs as much as finding a page of a list does.
    pub fn limit(&mut self, rows: i64) -> &mut Self {
        self.push(&format!(" LIMIT {rows}"))
    }

    /// Marks the end of a subquery. The statement of a page gets a [`FENCE`] here, so that the subquery is evaluated for each row; most
    /// statements that count a whole list do not, since joining the subquery is faster for them.
    pub fn fence(&mut self) -> &mut Self {
        self.fences.push((self.text.len(), FENCE));
        self
    }

    /// Notes that a number is named next. For a page it is better compared row by row; for the total of a whole list it is better looked
    /// up.
    pub fn aside(&mut self) -> &mut Self {
        self.fences.push((self.text.len(), ASIDE));
        self
    }

    /// The text with its fences.
    pub(in crate::store) fn fenced(&self) -> String {
        let mut text = self.text.clone();
        for (at, fence) in self.fences.iter().rev() {
            text.insert_str(*at, fence);
        }
        text
    }

    /// Removes the text from `at` on and returns it; its values stay bound.
    pub fn split_off(&mut self, at: usize) -> String {
        self.text.split_off(at)
    }

    pub fn locks_rows(&self) -> bool {
        self.locks_rows
    }

    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The text as SQLite takes it when its values are bound by position: to it `$2` is a name, and only `?2` a number.
    pub fn for_sqlite(&self) -> String {
        self.text.replace('$', "?")
    }

    /// The text as PostgreSQL takes it.
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

    pub fn optional_text(&mut self, value: Option<&str>) -> &mut Self {
        self.bind(value.map_or(Param::Null, text_value))
    }

    pub fn bytes(&mut self, value: Vec<u8>) -> &mut Self {
        self.bind(Param::Bytes(value))
    }

    pub fn integer(&mut self, value: i64) -> &mut Self {
        self.bind(Param::Integer(value))
    }

    /// Pushes a flag as a literal: a bound value would not select a partial index, nor tell PostgreSQL which half of an index it walks.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.push(if flag { "TRUE" } else { "FALSE" })
    }

    pub fn number(&mut self, value: f64) -> &mut Self {
        self.bind(Param::Number(value))
    }

    /// `(…)` of at least one value.
    pub fn texts<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.list(values.into_iter().map(text_value).collect())
    }

    /// `(…)` of at least one value.
    pub fn integers(&mut self, values: &[i64]) -> &mut Self {
        self.list(values.iter().copied().map(Param::Integer).collect())
    }

    /// Pushes ` AND ` and the test of an upper bound on a descending list's sort column. Behind a cursor the bound is kept out of the
    /// index: SQLite uses one upper bound only, and it must be the cursor's, or deep pages start over. A cursor of another walk may stand
    /// above the bound; then the rows between the two are read.
    pub fn and_below(&mut self, page: &PageRequest, test: &str, bound: Timestamp) -> &mut Self {
        if page.after.as_ref().is_some_and(|after| bound.millis() < after.at) {
            self.unbounded();
        }
        self.push(if page.after.is_some() { " AND +" } else { " AND " }).push(test).integer(bound.millis())
    }

    /// Pushes a test whether a column, or the part of it that an index holds, is one of `values`: at least one value, all of one kind.
    /// The values are compared one after the other if the column lies within their bounds, and no index is used for the test. SQLite's
    /// own.
    pub fn one_by_one(&mut self, tested: &str, mut values: Vec<Param>) -> &mut Self {
        // Sorted as they are bound, which may differ from how they were sent.
        values.sort_by(|one, other| match (one, other) {
            (Param::Number(one), Param::Number(other)) => one.total_cmp(other),
            (Param::Text(one), Param::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        });
        let values = filled(values);
        let (first, last) = (self.values.len() + 1, self.values.len() + values.len());
        self.push(&format!("{ASIDE}{tested} BETWEEN ${first} AND ${last} AND CASE {ASIDE}{tested}"));
        for value in values {
            self.push(" WHEN ").bind(value).push(" THEN TRUE");
        }
        self.push(" END")
    }

    /// `(…)` of at least one value.
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

/// Fills the values up to the next of `LIST_LENGTHS`.
fn filled(mut values: Vec<Param>) -> Vec<Param> {
    let length = LIST_LENGTHS.into_iter().find(|length| *length >= values.len()).unwrap_or(values.len().max(LIST_MAX));
    if let Some(last) = values.last().filter(|_| values.len() < length).cloned() {
        values.resize(length, last);
    }
    values
}

pub(in crate::store) fn text_value(text: &str) -> Param {
    Param::Text(without_nul(text).into_owned())
}

/// Replaces U+0000, which PostgreSQL refuses in a text. No stored text contains U+0000, nor the text that takes its place.
pub(in crate::store) fn without_nul(text: &str) -> Cow<'_, str> {
    /// Random, so that it cannot be stored.
    static NOWHERE: LazyLock<String> = LazyLock::new(|| RandomIds.fresh());
    if text.contains('\0') { text.replace('\0', &NOWHERE).into() } else { text.into() }
}

/// Each id once, in groups that fit one statement; a page's ids are always one group.
pub(in crate::store) fn batches<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let distinct: Vec<&str> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    distinct.chunks(LIST_MAX).map(<[_]>::to_vec).collect()
}
