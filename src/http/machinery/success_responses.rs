//! Successful responses: writes the envelope (the JSON object around `data`; API contract, section 2.1), and serializes `data` directly
//! into it. The type parameter of [`Reply`] is used only for the OpenAPI document.

use std::{io, marker::PhantomData};

use poem::{IntoResponse, Response, http::HeaderValue};
use poem_openapi::{
    ApiResponse,
    registry::{MetaHeader, MetaMediaType, MetaResponse, MetaResponses, MetaSchemaRef, Registry},
    types::Type,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    auth::AuthenticatedRequest,
    context::Context,
    envelope_schema::{JSON, envelope, request_id_header},
    unsent_response_limits::SLICE,
};
use crate::service::WriteOutcome;

/// The content of an envelope: the data of a successful response, or the error.
#[derive(Debug)]
pub enum EnvelopeContent<T> {
    Data(T),
    Error(T),
}

/// Serializes an envelope. If the envelope may be long, its length is computed first, and memory of exactly that length is allocated: a
/// buffer that grows needs its old and its new block of memory at the same time.
pub fn bytes<T: Serialize>(context: &Context, content: &EnvelopeContent<T>) -> serde_json::Result<Vec<u8>> {
    let mut length = CountingWriter(4096);
    if context.may_be_long() {
        length.0 = 0;
        write(&mut length, context, content)?;
    }
    let mut bytes = Vec::with_capacity(length.0);
    write(&mut bytes, context, content)?;
    Ok(bytes)
}

fn write<T: Serialize>(out: &mut impl io::Write, context: &Context, content: &EnvelopeContent<T>) -> serde_json::Result<()> {
    let (name, content) = match content {
        EnvelopeContent::Data(data) => ("data", data),
        EnvelopeContent::Error(error) => ("error", error),
    };
    let plain = |out: &mut dyn io::Write, text: &str| out.write_all(text.as_bytes()).map_err(serde_json::Error::io);
    plain(out, "{\"requestId\":")?;
    serde_json::to_writer(&mut *out, context.request_id())?;
    plain(out, ",\"requestReceivedAt\":\"")?;
    plain(out, &context.received_at_text())?;
    plain(out, "\",\"storeId\":")?;
    serde_json::to_writer(&mut *out, context.store_id())?;
    plain(out, ",\"")?;
    plain(out, name)?;
    plain(out, "\":")?;
    serde_json::to_writer(&mut *out, content)?;
    plain(out, "}")
}

/// A writer that only counts the bytes that are written.
struct CountingWriter(usize);

impl io::Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the OpenAPI document says about a successful response: its envelope, its `data` and its headers.
pub trait ReplyShape: Send + 'static {
    /// The name of the envelope's schema.
    fn envelope() -> String;
    /// The description of `data` in the OpenAPI document.
    const DATA: &'static str;
    /// The schema of `data`.
    fn data() -> MetaSchemaRef;
    /// The response headers in addition to `x-request-id`.
    fn headers() -> Vec<MetaHeader> {
        vec![]
    }
    fn register(registry: &mut Registry);
}

/// A response with one record.
#[derive(Debug)]
pub struct One<T>(PhantomData<fn() -> T>);

/// A response with all records of a list, without pagination.
#[derive(Debug)]
pub struct All<T>(PhantomData<fn() -> T>);

impl<T: Type + 'static> ReplyShape for One<T> {
    const DATA: &'static str = "The result: the requested record, or what the request created or changed.";

    fn envelope() -> String {
        format!("{}Envelope", T::name())
    }

    fn data() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: Type + 'static> ReplyShape for All<T> {
    const DATA: &'static str = "The records, in the order that the operation promises.";

    fn envelope() -> String {
        format!("{}ListEnvelope", T::name())
    }

    fn data() -> MetaSchemaRef {
        <Vec<T> as Type>::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

/// A successful response: its serialized envelope, and the headers in addition to `x-request-id`. `S` describes the response in the OpenAPI
/// document.
#[derive(Debug)]
pub struct Reply<S> {
    bytes: Vec<u8>,
    headers: Vec<(&'static str, HeaderValue)>,
    shape: PhantomData<fn() -> S>,
}

impl<T: Type + Serialize + 'static> Reply<One<T>> {
    pub fn one(request: &AuthenticatedRequest, record: T) -> Self {
        Self::of(&request.context, &record, vec![])
    }
}

impl<T: Type + Serialize + 'static> Reply<All<T>> {
    pub fn all(request: &AuthenticatedRequest, records: impl IntoIterator<Item = impl Into<T>>) -> Self {
        let records: Vec<T> = records.into_iter().map(Into::into).collect();
        Self::of(&request.context, &records, vec![])
    }
}

/// Converts the stored `data` of an earlier write to JSON that is copied unchanged into the envelope of the response.
fn kept(data: Vec<u8>) -> Box<RawValue> {
    String::from_utf8(data).ok().and_then(|text| RawValue::from_string(text).ok()).unwrap_or_default()
}

/// The header that marks the stored response to an earlier request with the same idempotency key.
pub const REPLAYED: &str = "idempotency-replayed";

impl<S: ReplyShape> Reply<S> {
    /// Makes the response to a write: a new response, or the stored response to an earlier request with the same idempotency key.
    pub fn written<V, T: From<V> + Serialize>(request: &AuthenticatedRequest, outcome: WriteOutcome<V>) -> Self {
        Self::outcome::<V, T>(&request.context, outcome)
    }

    /// Like [`Self::written`], for a request without an API key.
    pub fn outcome<V, T: From<V> + Serialize>(context: &Context, outcome: WriteOutcome<V>) -> Self {
        match outcome {
            WriteOutcome::New(answer) => Self::of(context, &T::from(answer), vec![]),
            WriteOutcome::Replayed(data) => Self::of(context, &kept(data), vec![(REPLAYED, HeaderValue::from_static("true"))]),
        }
    }
}

impl<S> Reply<S> {
    pub fn of(context: &Context, data: &impl Serialize, headers: Vec<(&'static str, HeaderValue)>) -> Self {
        #[expect(clippy::expect_used, reason = "string keys and finite numbers only: writing them to memory cannot fail")]
        let bytes = bytes(context, &EnvelopeContent::Data(data)).expect("plain data");
        Self { bytes, headers, shape: PhantomData }
    }
}

/// Marks a response that is longer than [`SLICE`], and whose bytes `unsent_response_limits` therefore counts until they are sent.
#[derive(Clone, Copy, Debug)]
pub struct Long;

impl<S: Send> IntoResponse for Reply<S> {
    fn into_response(self) -> Response {
        let long = self.bytes.len() > SLICE;
        let mut response = Response::builder().content_type(JSON).body(self.bytes);
        if long {
            response.set_data(Long);
        }
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// The type under which poem-openapi registers the schema of an envelope. `S` describes the envelope's `data`.
struct EnvelopeOf<S>(PhantomData<S>);

impl<S: ReplyShape> ApiResponse for Reply<S> {
    fn meta() -> MetaResponses {
        let mut headers = vec![request_id_header()];
        headers.extend(S::headers());
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Success.",
                status: Some(200),
                status_range: None,
                headers,
                content: vec![MetaMediaType { content_type: JSON, schema: MetaSchemaRef::Reference(S::envelope()) }],
            }],
        }
    }

    fn register(registry: &mut Registry) {
        S::register(registry);
        // The envelope of a list has the same schema with and without pagination; it is registered once.
        let name = S::envelope();
        if registry.schemas.contains_key(&name) {
            return;
        }
        registry.create_schema::<EnvelopeOf<S>, _>(name, |_| {
            envelope("A successful answer.", "The store that owns the key.", ("data", S::DATA, S::data()))
        });
    }
}
