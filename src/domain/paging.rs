//! Keyset pagination (API contract, section 4.4). Each list that is paginated with these types is sorted by an instant and then by id, both
//! in the same direction. The hits of a search by relevance are sorted by score first, then by instant and id.

use super::time::Timestamp;

/// A keyset cursor: the sort key of the last row of a page, after which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The row's sort instant, in Unix milliseconds.
    pub at: i64,
    /// The row's id, which breaks ties.
    pub id: String,
    /// Set only in a search by relevance, whose hits are sorted by score first.
    pub rank: Option<Rank>,
    /// The snapshot that fixes the order of the rows for all pages of the list, so that no row is skipped or repeated. Set only for a list
    /// whose rows can move: for example, a ticket moves to the front of its list when a message arrives.
    pub as_of: Option<AsOf>,
}

/// The snapshot of the database at the moment when a client began to page through a list, in the text form that the database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsOf(pub String);

/// The state of a paginated search by relevance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The row's score.
    pub score: u32,
    /// The weight of each condition of the search, as it was computed for the first page. All pages use these weights, so that later writes
    /// do not change the scores.
    pub weights: Vec<u8>,
}

impl Position {
    /// Makes the cursor after a row of a list that is sorted by an instant and an id.
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
    /// Whether to count all rows of the list, in addition to reading the page.
    pub count: bool,
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The cursor of the next page; absent on the last page.
    pub next: Option<Position>,
    /// The number of rows of the whole list, if the request asks for the count.
    pub total: Option<u64>,
}

impl<T> Page<T> {
    /// Makes a page, without a total, from rows that were read with a limit of `size` + 1. A row beyond `size` shows that there is a next
    /// page.
    pub fn cut(mut rows: Vec<T>, size: u32, position: impl Fn(&T) -> Position) -> Self {
        let size = size as usize;
        let next = (rows.len() > size).then(|| position(&rows[size - 1]));
        rows.truncate(size);
        Self { rows, next, total: None }
    }

    /// Returns the number of rows of the whole list if this is the only page of the list; then no query needs to count them. `asked` is the
    /// request for the page.
    pub fn whole(&self, asked: &PageRequest) -> Option<u64> {
        (asked.after.is_none() && self.next.is_none()).then_some(self.rows.len() as u64)
    }

    /// Converts each row.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> Page<U> {
        Page { rows: self.rows.into_iter().map(make).collect(), next: self.next, total: self.total }
    }
}
