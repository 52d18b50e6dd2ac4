//! Keyset pagination (section 4.4). Every paginated list is ordered by an instant and then by id, in one direction; a
//! search by relevance before both.

use super::time::Timestamp;

/// A keyset cursor: the last row of a page, behind which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The row's sort instant, in Unix milliseconds.
    pub at: i64,
    /// The row's id, which breaks ties.
    pub id: String,
    /// Set where relevance comes before the instant.
    pub rank: Option<Rank>,
    /// Set where rows move within the list: the moment that every page shows the list's order of.
    pub as_of: Option<AsOf>,
}

/// The moment at which a walk over the pages of a list began, as the database writes it down: what was committed by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsOf(pub String);

/// The state of a paginated search by relevance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The row's score.
    pub score: u32,
    /// The weight of each condition, fixed with the first page, so that scores do not change while data arrives.
    pub weights: Vec<u8>,
}

impl Position {
    /// A position in a list ordered by an instant.
    pub fn new(at: Timestamp, id: &str) -> Self {
        Self { at: at.millis(), id: id.to_owned(), rank: None, as_of: None }
    }
}

/// A page request.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Rows per page, at least 1.
    pub size: u32,
    /// The cursor; absent for the first page.
    pub after: Option<Position>,
    /// Whether to count all matching rows too.
    pub count: bool,
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The cursor of the next page; absent on the last page.
    pub next: Option<Position>,
    /// The number of matching rows, if requested.
    pub total: Option<u64>,
}

impl<T> Page<T> {
    /// A page from rows that were read with one row more than requested; without a count.
    pub fn cut(mut rows: Vec<T>, size: u32, position: impl Fn(&T) -> Position) -> Self {
        let size = size as usize;
        let next = (rows.len() > size).then(|| position(&rows[size - 1]));
        rows.truncate(size);
        Self { rows, next, total: None }
    }

    /// The number of matching rows, if the first page contains all of them.
    pub fn whole(&self, asked: &PageRequest) -> Option<u64> {
        (asked.after.is_none() && self.next.is_none()).then_some(self.rows.len() as u64)
    }

    /// Converts each row.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> Page<U> {
        Page { rows: self.rows.into_iter().map(make).collect(), next: self.next, total: self.total }
    }
}
