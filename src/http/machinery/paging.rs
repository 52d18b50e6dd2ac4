//! Keyset pagination for all operations: converts `pageSize`, `cursor` and `page` to a page request, and a page to a response with
//! pagination headers (API contract, section 4.4). `params` refuses a `pageSize` above the limit of the revision.

use std::marker::PhantomData;

use poem::http::HeaderValue;
use poem_openapi::{
    registry::{MetaHeader, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde::Serialize;

use super::{
    auth::AuthenticatedRequest,
    cursor::{Binding, Cursor},
    envelope_schema::header,
    error_responses::ApiError,
    params::{CursorText, EchoedPage},
    success_responses::{All, Reply, ReplyShape},
};
use crate::{
    domain::paging::{Page, PageRequest},
    revision,
};

const PAGE_SIZE: &str = "x-pagination-page-size";
pub const NEXT_CURSOR: &str = "x-pagination-next-cursor";
const PAGE: &str = "x-pagination-page";
const TOTAL: &str = "x-pagination-total";

/// The request for one page of a list, after its cursor was checked.
#[derive(Debug)]
pub struct PageStep {
    operation: &'static str,
    size: u32,
    page: Option<u64>,
    binding: Binding,
    opened: Option<Cursor>,
}

impl PageStep {
    /// Checks the cursor of a list whose filters are parameters of the URL, and returns the page to be read. `filters` is the canonical text
    /// of these filters. A cursor that was issued for other filters may be refused (see [`OpenedCursor::step`]).
    pub fn step(
        request: &AuthenticatedRequest,
        operation: &'static str,
        size: u32,
        cursor: &CursorText,
        page: &impl EchoedPage,
        filters: &str,
    ) -> Result<Self, ApiError> {
        OpenedCursor::read(request, operation, cursor)?.step(request, size, page, filters)
    }

    /// Returns the page request for the service. In the contract revision whose lists return a total, the rows are counted unless the
    /// cursor of the request contains the total.
    pub fn request(&self) -> PageRequest {
        let counted = self.opened.as_ref().is_some_and(|cursor| cursor.total.is_some());
        PageRequest {
            size: self.size,
            after: self.opened.as_ref().map(|cursor| cursor.position.clone()),
            count: self.page.is_some() && !counted,
        }
    }

    /// Makes the response: the records of a page, and the pagination headers.
    pub fn reply<T, U>(self, request: &AuthenticatedRequest, page: Page<U>) -> Reply<Paged<T>>
    where
        T: Type + Serialize + From<U> + 'static,
    {
        let began = self.opened.as_ref().map_or(request.context.received_at(), |cursor| cursor.began);
        let total = self.opened.and_then(|cursor| cursor.total).or(page.total);
        let mut headers = vec![(PAGE_SIZE, HeaderValue::from(self.size))];
        if let Some(position) = page.next {
            let cursor = Cursor { position, total, binding: self.binding, began };
            let text = request.state.seal.sealed(request.store(), self.operation, &cursor);
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

/// The cursor of a request, if there is one: its authentication code is verified, but its filters and page size are not yet compared with
/// those of the request. An operation whose filters are in the request body opens the cursor before it parses the body, since query
/// parameters are checked first.
#[derive(Debug)]
pub struct OpenedCursor {
    operation: &'static str,
    cursor: Option<Cursor>,
}

impl OpenedCursor {
    pub fn read(request: &AuthenticatedRequest, operation: &'static str, cursor: &CursorText) -> Result<Self, ApiError> {
        let open = |text: &String| match request.state.seal.open(request.store(), operation, text) {
            None => {
                let right = "send the `x-pagination-next-cursor` of the page before, unchanged";
                Err(format!("is not a cursor of this operation, or of an earlier version of the server; {right}"))
            }
            Some(cursor) if cursor.has_expired(request.context.received_at()) => {
                Err("is of a list whose first page was read more than seven days ago; begin again without `cursor`".to_owned())
            }
            Some(cursor) => Ok(cursor),
        };
        let open = |text: &String| open(text).map_err(|reason| ApiError::field("cursor", reason));
        Ok(Self { operation, cursor: cursor.0.as_ref().map(open).transpose()? })
    }

    /// Returns the request for a page. `filters` is the canonical text of the request's filters. A cursor that is bound to other filters or
    /// another page size is refused in the contract revision with the setting `strict_cursors`. The other revision accepts the cursor, but
    /// ignores the total in it.
    pub fn step(self, request: &AuthenticatedRequest, size: u32, page: &impl EchoedPage, filters: &str) -> Result<PageStep, ApiError> {
        let Self { operation, cursor: mut opened } = self;
        let binding = Binding::of(filters, size);
        if let Some(cursor) = opened.as_mut().filter(|cursor| cursor.binding != binding) {
            if request.state.service.rules().strict_cursors {
                return Err(ApiError::field("cursor", "belongs to other filters or another pageSize; repeat those of the page before"));
            }
            cursor.total = None;
        }
        Ok(PageStep { operation, size, page: page.echo(), binding, opened })
    }
}

/// The response of an operation with pagination: one page of records.
#[derive(Debug)]
pub struct Paged<T>(PhantomData<fn() -> T>);

impl<T: Type + 'static> ReplyShape for Paged<T> {
    const DATA: &'static str = All::<T>::DATA;

    fn envelope() -> String {
        All::<T>::envelope()
    }

    fn data() -> MetaSchemaRef {
        All::<T>::data()
    }

    fn headers() -> Vec<MetaHeader> {
        headers()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

/// Describes the pagination headers for the OpenAPI document. They depend on the contract revision for which the program is compiled.
fn headers() -> Vec<MetaHeader> {
    let integer = || MetaSchema::new("integer");
    let mut headers = vec![
        header(PAGE_SIZE, "The page size in force.", true, integer()),
        header(NEXT_CURSOR, "Send it as `cursor` for the next page. Absent on the last page.", false, MetaSchema::new("string")),
    ];
    if revision::RULES.page_echo {
        headers.push(header(PAGE, "The `page` of the request.", true, integer()));
        headers.push(header(TOTAL, "How many records match, counted when the first page was read.", true, integer()));
    }
    headers
}
