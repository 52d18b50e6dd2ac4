//! The schema of the response envelope, the JSON object around every response (API contract, section 2.1), and the descriptions of response
//! headers, for the OpenAPI documents.

use poem_openapi::registry::{MetaHeader, MetaSchema, MetaSchemaRef};

use crate::{domain::revision_rules::ReceivedAt, revision};

/// The header that carries the request id, in requests and responses.
pub const REQUEST_ID: &str = "x-request-id";

/// The media type of request bodies, and of responses with an envelope.
pub const JSON: &str = "application/json";

/// Makes the schema of an envelope. `store_id` is the description of the property `storeId`. `content` is the name (`data` or `error`), the
/// description and the schema of the envelope's content.
pub fn envelope(description: &'static str, store_id: &'static str, content: (&'static str, &'static str, MetaSchemaRef)) -> MetaSchema {
    let text = |description: &'static str| MetaSchema { description: Some(description), ..MetaSchema::new("string") };
    let (received_at, format, pattern) = match revision::RULES.received_at {
        ReceivedAt::Timestamp => ("When the request arrived, in UTC.", Some("date-time"), None),
        ReceivedAt::UnixMillis => ("When the request arrived: Unix time in milliseconds.", None, Some("^[0-9]+$".to_owned())),
    };
    let (name, about, content) = content;
    let inline = |schema| MetaSchemaRef::Inline(Box::new(schema));
    let properties = vec![
        ("requestId", inline(text("Identifies the request; also sent as the header `x-request-id`."))),
        ("requestReceivedAt", inline(MetaSchema { format, pattern, ..text(received_at) })),
        ("storeId", inline(text(store_id))),
        (name, content.merge(MetaSchema { description: Some(about), ..MetaSchema::ANY })),
    ];
    MetaSchema {
        description: Some(description),
        required: properties.iter().map(|(name, _)| *name).collect(),
        properties,
        ..MetaSchema::new("object")
    }
}

/// Describes `x-request-id`, the header that every response carries, for the OpenAPI document.
pub fn request_id_header() -> MetaHeader {
    header(REQUEST_ID, "The `requestId` of the envelope.", true, MetaSchema::new("string"))
}

/// Describes a header for the OpenAPI document.
pub fn header(name: &str, description: &str, required: bool, schema: MetaSchema) -> MetaHeader {
    MetaHeader {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        required,
        deprecated: false,
        schema: MetaSchemaRef::Inline(Box::new(schema)),
    }
}
