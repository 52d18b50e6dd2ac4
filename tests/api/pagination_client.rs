//! Client of cursor pagination: reads a list page by page to its end.

use crate::client::{Answer, Call};

/// Reads a list to its end. Returns the responses, one for each page, in order. If `size` is absent, the default page size is used.
#[track_caller]
pub fn pages(first: &Call, size: Option<usize>) -> Vec<Answer> {
    let sized = || size.map_or_else(|| first.clone(), |size| first.clone().query("pageSize", size));
    let mut pages = vec![sized().send()];
    while let Some(cursor) = next(&pages[pages.len() - 1]) {
        assert!(pages.len() < 1000, "the list has no last page\n{}", pages[0].described());
        pages.push(sized().query("cursor", cursor).send());
    }
    pages
}

/// Reads a list page by page; returns the ids of all pages, in order.
#[track_caller]
pub fn walk(first: &Call, size: usize) -> Vec<String> {
    pages(first, Some(size)).iter().flat_map(Answer::ids).collect()
}

/// Returns the cursor of the next page, or `None` if this page is the last one.
pub fn next(answer: &Answer) -> Option<String> {
    answer.header("x-pagination-next-cursor").map(str::to_owned)
}
