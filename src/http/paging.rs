//! Pagination, written once: from `pageSize`, `cursor` and `page` to a page request, and from a page to its headers
//! (section 4.4).

use poem::http::HeaderValue;
use poem_openapi::{
    registry::{MetaHeader, MetaSchema},
    types::Type,
};
use serde::Serialize;

use super::{
    auth::Request,
    cursor::{Binding, Cursor},
    error::ApiError,
    params::{CursorText, Page as EchoedPage},
    reply::{Paged, Reply, header},
};
use crate::{
    domain::paging::{Page, PageRequest},
    revision,
};

const PAGE_SIZE: &str = "x-pagination-page-size";
const NEXT_CURSOR: &str = "x-pagination-next-cursor";
const PAGE: &str = "x-pagination-page";
const TOTAL: &str = "x-pagination-total";

/// One step of a walk through a collection.
#[derive(Debug)]
pub struct Walk {
    operation: &'static str,
    size: u32,
    page: Option<u64>,
    binding: Binding,
    opened: Option<Cursor>,
}

impl Walk {
    /// Opens the cursor, if there is one. `filters` in one spelling: the cursor is bound to it.
    pub fn step(
        request: &Request,
        operation: &'static str,
        size: u32,
        cursor: &CursorText,
        page: &impl EchoedPage,
        filters: &str,
    ) -> Result<Self, ApiError> {
        let binding = Binding::of(filters, size);
        let opened = match &cursor.0 {
            None => None,
            Some(text) => {
                let unknown = || {
                    ApiError::field(
                        "cursor",
                        "is not a cursor of this operation; send the `x-pagination-next-cursor` of the page before, unchanged",
                    )
                };
                let mut cursor = request.api.seal.open(request.store(), operation, text).ok_or_else(unknown)?;
                if cursor.binding != binding {
                    if request.api.service.rules().strict_cursors {
                        return Err(ApiError::field(
                            "cursor",
                            "belongs to other filters or another pageSize; repeat those of the page before",
                        ));
                    }
                    cursor.total = None;
                }
                Some(cursor)
            }
        };
        Ok(Self { operation, size, page: page.echo(), binding, opened })
    }

    /// What the service is asked for. Counted once a walk: the cursor carries the number on.
    pub fn request(&self) -> PageRequest {
        let counted = self.opened.as_ref().is_some_and(|cursor| cursor.total.is_some());
        PageRequest {
            size: self.size,
            after: self.opened.as_ref().map(|cursor| cursor.position.clone()),
            count: self.page.is_some() && !counted,
        }
    }

    /// The answer for a page.
    pub fn reply<T, U>(self, request: &Request, page: Page<U>) -> Reply<Paged<T>>
    where
        T: Type + Serialize + From<U> + 'static,
    {
        let total = self.opened.and_then(|cursor| cursor.total).or(page.total);
        let mut headers = vec![(PAGE_SIZE, HeaderValue::from(self.size))];
        if let Some(position) = page.next {
            let cursor = Cursor { position, total, binding: self.binding };
            let text = request.api.seal.close(request.store(), self.operation, &cursor);
            headers.extend(HeaderValue::from_str(&text).ok().map(|value| (NEXT_CURSOR, value)));
        }
        if let Some(number) = self.page {
            headers.push((PAGE, HeaderValue::from(number)));
            headers.extend(total.map(|total| (TOTAL, HeaderValue::from(total))));
        }
        let records: Vec<T> = page.rows.into_iter().map(T::from).collect();
        Reply::of(&request.context, &records, headers)
    }
}

/// The pagination headers of the compiled revision, for the document.
pub fn headers() -> Vec<MetaHeader> {
    let integer = || MetaSchema::new("integer");
    let mut headers = vec![
        header(PAGE_SIZE, "The page size in force.", true, integer()),
        header(NEXT_CURSOR, "Send it as `cursor` for the next page. Absent on the last page.", false, MetaSchema::new("string")),
    ];
    if revision::RULES.page_echo {
        headers.push(header(PAGE, "The `page` of the request.", true, integer()));
        headers.push(header(TOTAL, "How many records match, counted on the first page of a walk.", true, integer()));
    }
    headers
}
