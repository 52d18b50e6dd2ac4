//! Keyset pages (section 4.4). Every paginated list is ordered by an instant and, within it, by id, in one direction; a
//! search by relevance before both.

use super::time::Timestamp;

/// The last row of a page: where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The row's sort instant, in Unix milliseconds.
    pub at: i64,
    /// The row's id, which breaks ties.
    pub id: String,
    /// Where relevance comes before the instant.
    pub rank: Option<Rank>,
}

/// What a walk in the order of relevance carries on from page to page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The row's score.
    pub score: u32,
    /// What each condition of the search weighs, fixed with the first page: scores do not move while data arrives.
    pub weights: Vec<u8>,
}

impl Position {
    /// A place in the order of an instant.
    pub fn new(at: Timestamp, id: &str) -> Self {
        Self { at: at.millis(), id: id.to_owned(), rank: None }
    }
}

/// Which page is wanted.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Rows a page, at least 1.
    pub size: u32,
    /// Rows behind this one; absent for the first page.
    pub after: Option<Position>,
    /// Whether all rows that match the filters are to be counted too.
    pub count: bool,
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Where the next page begins; absent when there is no further row.
    pub next: Option<Position>,
    /// How many rows match, when that was asked for.
    pub total: Option<u64>,
}

impl<T> Page<T> {
    /// A page of rows that were read with one row more than asked for; not counted.
    pub fn cut(mut rows: Vec<T>, size: u32, position: impl Fn(&T) -> Position) -> Self {
        let size = size as usize;
        let next = (rows.len() > size).then(|| position(&rows[size - 1]));
        rows.truncate(size);
        Self { rows, next, total: None }
    }

    /// How many rows match, where the first page has them all.
    pub fn whole(&self, asked: &PageRequest) -> Option<u64> {
        (asked.after.is_none() && self.next.is_none()).then_some(self.rows.len() as u64)
    }

    /// The same page of something made from each row.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> Page<U> {
        Page { rows: self.rows.into_iter().map(make).collect(), next: self.next, total: self.total }
    }
}
