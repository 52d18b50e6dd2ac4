//! Request bodies: the extractor that reads a body and checks its size and media type, and the parser of its JSON. The extractor runs
//! before the checks of the query parameters, and the parser runs after them. The parser checks the JSON first against the OpenAPI schema,
//! and then with the deserializer of the type.

use std::{
    io::{self, Read},
    marker::PhantomData,
};

use flate2::read::MultiGzDecoder;
use poem::{RequestBody, http::StatusCode};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaMediaType, MetaRequest, Registry},
    types,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{error_responses::ApiError, json_schema_validation};
use crate::domain::unicode_text::whole_characters;

/// The largest accepted request body in bytes, both before and after decompression.
pub const LIMIT: usize = 1024 * 1024;

/// A request body whose size and media type were checked, and whose JSON is not parsed yet. With `EMPTY_IS_OBJECT` an empty body counts as
/// `{}`.
#[derive(Debug)]
pub struct Body<T, const EMPTY_IS_OBJECT: bool = false> {
    bytes: Vec<u8>,
    shape: PhantomData<fn() -> T>,
}

/// The body of a list operation: no body at all counts as `{}`.
pub type FilterBody<T> = Body<T, true>;

impl<T: types::Type + DeserializeOwned + 'static, const EMPTY_IS_OBJECT: bool> Body<T, EMPTY_IS_OBJECT> {
    #[cfg(test)]
    fn of(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), shape: PhantomData }
    }

    /// Makes a body from a JSON value that is not a whole request body, such as the property `body` of a draft, or the input of an
    /// assistant tool.
    pub fn of_value(body: &Value) -> Self {
        Self { bytes: body.to_string().into_bytes(), shape: PhantomData }
    }

    /// Parses the body as `T`. An error names the path of the invalid value.
    pub fn parse(&self) -> Result<T, ApiError> {
        read(self.bytes(), EMPTY_IS_OBJECT).map(|(read, _)| read)
    }

    /// Parses the body as `T`, an inbound message. Channels cut long names and texts after a number of UTF-16 units, which may leave half
    /// of a surrogate pair: that half becomes U+FFFD. Unlike [`Self::parse`], this function accepts U+0000, since not every property with
    /// this character makes the message invalid: the service leaves out a sender's name, for example, and keeps the message.
    pub fn parse_inbound(&self) -> Result<T, ApiError> {
        read(&whole_characters(self.bytes()), true).map(|(read, _)| read)
    }

    /// Parses only those properties of an inbound message that the type `P` has, before the whole message is parsed: for example the id of
    /// the account whose bridge (an external program that connects a channel) signed the request. Returns `None` if the body is not JSON
    /// with these properties.
    pub fn inbound_part<P: DeserializeOwned>(&self) -> Option<P> {
        serde_json::from_slice(&whole_characters(self.bytes())).ok()
    }

    /// Returns the decompressed body without a byte order mark.
    pub fn bytes(&self) -> &[u8] {
        // Some .NET clients write a byte order mark before the JSON.
        self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.bytes)
    }

    /// Returns the decompressed body with its byte order mark, if it has one: the bytes over which a bridge (an external program that
    /// connects a channel) computes its signature.
    pub fn signed_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: types::Type + DeserializeOwned + 'static> FilterBody<T> {
    /// Parses the body as `T`. Also returns the canonical JSON of the body, without null properties. A pagination cursor is bound to this
    /// JSON, so that the server notices a request for the next page with other filters. Strings may contain U+0000: the database layer
    /// replaces this character, so that such a string matches no stored text.
    pub fn filters(&self) -> Result<(T, String), ApiError> {
        fn strip(value: &mut Value) {
            match value {
                Value::Object(members) => {
                    members.retain(|_, member| !member.is_null());
                    members.values_mut().for_each(strip);
                }
                Value::Array(items) => items.iter_mut().for_each(strip),
                _ => {}
            }
        }
        let (read, mut value) = read(self.bytes(), true)?;
        strip(&mut value);
        Ok((read, value.to_string()))
    }
}

/// Parses a body. Returns it as `T`, and as the JSON value that was sent. With `nul`, strings may contain U+0000.
fn read<T: types::Type + DeserializeOwned + 'static>(bytes: &[u8], nul: bool) -> Result<(T, Value), ApiError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| ApiError::field("body", format!("is not valid JSON: {error}")))?;
    json_schema_validation::check::<T>(&value).map_err(|wrong| ApiError::field(&format!("body{}", wrong.place), wrong.reason))?;
    if !nul {
        no_nul(&value, &mut "body".to_owned())?;
    }
    // `T` is parsed from the bytes and not from `value`: a repeated property must be refused, and `value` no longer shows the repetition.
    // After an error the bytes are parsed again, by a parser that tracks the path of the invalid value. That parser is slower, so it runs
    // only after an error.
    let read = serde_json::from_slice(bytes).or_else(|_| {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| refuse(&error.path().to_string(), error.inner()))
    })?;
    Ok((read, value))
}

/// Refuses strings that contain U+0000, since PostgreSQL cannot store this character.
fn no_nul(value: &Value, place: &mut String) -> Result<(), ApiError> {
    let mut inner = |step: String, value: &Value| {
        let length = place.len();
        place.push_str(&step);
        no_nul(value, place)?;
        place.truncate(length);
        Ok(())
    };
    match value {
        Value::String(text) if text.contains('\0') => Err(ApiError::field(place, "must not contain U+0000")),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(i, item)| inner(format!("[{i}]"), item)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| inner(format!(".{name}"), member)),
        _ => Ok(()),
    }
}

/// Converts an error of the deserializer: the message begins with the path of the value in backticks, and leaves out serde's line and
/// column.
fn refuse(path: &str, error: &serde_json::Error) -> ApiError {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let place = match path {
        "." => "body".to_owned(),
        index if index.starts_with('[') => format!("body{index}"),
        name => format!("body.{name}"),
    };
    match reason.strip_prefix("duplicate field `").and_then(|rest| rest.split('`').next()) {
        Some(name) => ApiError::field(&format!("{place}.{name}"), "is sent twice"),
        None => ApiError::field(&place, reason),
    }
}

impl<'a, T: types::Type + DeserializeOwned + 'static, const EMPTY_IS_OBJECT: bool> ApiExtractor<'a> for Body<T, EMPTY_IS_OBJECT> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        Some(MetaRequest {
            description: None,
            content: vec![MetaMediaType { content_type: super::envelope_schema::JSON, schema: T::schema_ref() }],
            required: !EMPTY_IS_OBJECT,
        })
    }

    async fn from_request(request: &'a poem::Request, body: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let too_large = || ApiError::field("body", format!("is larger than {LIMIT} bytes")).with_status(StatusCode::PAYLOAD_TOO_LARGE);
        let declared =
            request.headers().get("content-length").and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<u64>().ok());
        if declared.is_some_and(|length| length > LIMIT as u64) {
            return Err(too_large().into());
        }
        let bytes = match body.take()?.into_bytes_limit(LIMIT).await {
            Ok(bytes) => bytes,
            Err(poem::error::ReadBodyError::PayloadTooLarge) => return Err(too_large().into()),
            Err(error) => return Err(ApiError::field("body", format!("cannot be read: {error}")).into()),
        };
        let mut bytes = Vec::from(bytes);
        if EMPTY_IS_OBJECT && bytes.is_empty() {
            bytes.extend_from_slice(b"{}");
            return Ok(Self { bytes, shape: PhantomData });
        }
        let unsupported = |name, reason| ApiError::field(name, reason).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        for value in request.headers().get_all("content-type") {
            media_type(value.as_bytes()).map_err(|reason| unsupported("content-type", reason))?;
        }
        let sent = request.headers().get_all("content-encoding").iter().map(|value| value.as_bytes().trim_ascii().to_ascii_lowercase());
        // At most one content encoding is accepted: the decompression of a body that was compressed many times would keep a thread busy for
        // long.
        let encoding = sent.reduce(|first, more| [first, more].join(&b", "[..])).unwrap_or_default();
        match encoding.as_slice() {
            b"" | b"identity" => {}
            b"gzip" | b"x-gzip" => {
                bytes =
                    unpacked(&bytes).map_err(|error| ApiError::field("body", format!("is not gzip: {error}")))?.ok_or_else(too_large)?;
            }
            other => {
                let reason = format!("`{}` is not supported; send the body as it is, or with gzip", String::from_utf8_lossy(other));
                return Err(unsupported("content-encoding", reason).into());
            }
        }
        Ok(Self { bytes, shape: PhantomData })
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Decompresses gzip. Returns `None` if the result is larger than [`LIMIT`].
fn unpacked(packed: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed).take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= LIMIT).then_some(bytes))
}

/// Accepts only `application/json`. Parameters are allowed, but a `charset` must be one that JSON permits.
fn media_type(value: &[u8]) -> Result<(), String> {
    let mut parts = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    if !parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case(b"application/json")) {
        return Err("must be application/json".to_owned());
    }
    for parameter in parts {
        let Some(at) = parameter.iter().position(|byte| *byte == b'=') else { continue };
        let (name, charset) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
        let charset = String::from_utf8_lossy(charset).trim_matches('"').to_lowercase();
        if name.eq_ignore_ascii_case(b"charset") && !["utf-8", "utf8", "us-ascii"].contains(&charset.as_str()) {
            return Err(format!("has the charset `{charset}`; JSON is UTF-8"));
        }
    }
    Ok(())
}

impl ApiError {
    fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }
}

#[cfg(test)]
mod tests {
    use poem_openapi::Object;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Object, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        inner: Option<Vec<Inner>>,
        at: Option<crate::domain::time::Timestamp>,
    }

    #[derive(Debug, Object, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        name: String,
    }

    fn refused(text: &str) -> String {
        Body::<Outer>::of(text).parse().map(|outer| format!("{outer:?}")).unwrap_err().message
    }

    #[test]
    fn an_invalid_body_is_refused_with_the_path_of_the_mistake() {
        for (text, start) in [
            ("{\"inner\":[{\"name\":1}]}", "`body.inner[0].name` must be a string"),
            ("{\"inner\":[[\"a\"]]}", "`body.inner[0]` must be an object"),
            ("{\"inner\":[{}]}", "`body.inner[0].name` is required"),
            ("{\"inner\":5}", "`body.inner` must be an array"),
            ("{\"inner\":[{\"name\":\"a\",\"nme\":1}]}", "`body.inner[0].nme` is not a known property; known here: name"),
            ("{\"a.b\":1}", "`body.a.b` is not a known property"),
            ("{\"inner\":[],\"inner\":[]}", "`body.inner` is sent twice"),
            ("{\"at\":\"now\"}", "`body.at` must be an RFC 3339 date-time"),
            ("[]", "`body` must be an object"),
            ("{", "`body` is not valid JSON"),
            ("{} {}", "`body` is not valid JSON"),
            ("", "`body` is not valid JSON"),
        ] {
            assert!(refused(text).starts_with(start), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn a_mistake_in_a_list_body_is_reported_with_the_index_of_its_item() {
        let refused = |text: &str| {
            let body = Body::<crate::http::schemas::value_types::Limited<Inner, 5>>::of(text);
            body.parse().map(|list| format!("{list:?}")).unwrap_err().message
        };
        for (text, start) in [
            ("[{\"name\":\"a\"},{\"name\":\"a\",\"name\":\"b\"}]", "`body[1].name` is sent twice"),
            ("[{\"name\":\"a\"},{\"name\":1}]", "`body[1].name` must be a string"),
        ] {
            assert!(refused(text).starts_with(start), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn null_members_and_member_order_do_not_change_canonical_filters() {
        let spelled = |text: &str| FilterBody::<crate::http::schemas::ticket_filters::TicketFilters>::of(text).filters().unwrap().1;
        let one = spelled("{ \"isSpam\": true, \"advancedFilters\": {\"labels\": null}, \"accountIds\": [\"b\", \"a\"] }");
        let same = "{\"advancedFilters\":{}, \"accountIds\":[\"b\",\"a\"], \"unassigned\":null,\"isSpam\" : true}";
        assert_eq!(one, spelled(same));
        assert_ne!(one, spelled(&same.replace("true", "false")));
        assert_eq!(spelled("{\"isSpam\": null}"), "{}");
    }
}
