//! The response header `x-next-after`. On a page of the feed of events or of the feed of changes, it has the value that the client sends as
//! `after` to get the next page. On the first page of a snapshot, it has the value of `after` with which the client begins to read the feed
//! of changes. [`FeedReply`] is the type of responses to which an operation adds only this header.

use std::marker::PhantomData;

use poem::http::HeaderValue;
use poem_openapi::{
    registry::{MetaHeader, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};

use crate::http::machinery::{
    envelope_schema::header,
    success_responses::{All, ReplyShape},
};

/// The header with the value that a client sends as `after` to get the next page.
const NEXT_AFTER: &str = "x-next-after";

/// A response with a page of records and the header [`NEXT_AFTER`].
#[derive(Debug)]
pub struct FeedReply<T>(PhantomData<fn() -> T>);

/// Returns the header [`NEXT_AFTER`] with the position `reached`, after which the client continues.
pub fn next_after(reached: i64) -> Vec<(&'static str, HeaderValue)> {
    vec![(NEXT_AFTER, HeaderValue::from(reached))]
}

/// Describes [`NEXT_AFTER`] for the OpenAPI document.
pub fn next_after_header() -> MetaHeader {
    let schema = MetaSchema { minimum: Some(0.0), ..MetaSchema::new_with_format("integer", "int64") };
    header(
        NEXT_AFTER,
        "Send it as `after` for the next page of the feed. With `kinds` it may be greater than the last `sequence` of the page. On a page of \
         a snapshot: where the feed was before that page was read.",
        true,
        schema,
    )
}

impl<T: Type + 'static> ReplyShape for FeedReply<T> {
    const DATA: &'static str = All::<T>::DATA;

    fn envelope() -> String {
        All::<T>::envelope()
    }

    fn data() -> MetaSchemaRef {
        All::<T>::data()
    }

    fn headers() -> Vec<MetaHeader> {
        vec![next_after_header()]
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}
