//! Query parameters, parsed strictly: a scalar that is sent twice, an empty number, and a number with a sign or a fraction are refused,
//! never coerced. Error messages begin with the name of the parameter, except for the parameter `expand`.

use std::fmt;

use poem::RequestBody;
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaParamIn, MetaSchema, MetaSchemaRef, Registry},
};

use super::{data_attached_to_requests::RequestData, error_responses::ApiError};
use crate::{
    domain::{
        ids::{MAX_ID_CHARS, UUID_CHARS, UserId},
        revision_rules::DEFAULT_PAGE_SIZE,
        search::MAX_QUERY_CHARS,
    },
    revision,
};

/// A type that a query parameter can be parsed as.
pub trait QueryParam: Sized + Send {
    const REQUIRED: bool;
    /// Whether the parameter accepts several values.
    const IS_LIST: bool = false;

    fn schema() -> MetaSchema;

    /// Registers the schemas that [`Self::schema`] refers to.
    fn register(_: &mut Registry) {}

    /// Parses the values that were sent under one name, in their order. The error is the reason without the parameter's name.
    fn read(values: &[&str]) -> Result<Self, String>;

    /// Makes the error response for an invalid value of the parameter. `Expand` overrides this function, since the API contract requires
    /// that its error message begins with `Invalid expand value:`.
    fn refuse(name: &str, reason: String) -> ApiError {
        ApiError::field(name, reason)
    }
}

/// The extractor of a query parameter.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<'a, T: QueryParam> ApiExtractor<'a> for Query<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    const PARAM_IS_REQUIRED: bool = T::REQUIRED;
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn param_in() -> Option<MetaParamIn> {
        Some(MetaParamIn::Query)
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        Some(MetaSchemaRef::Inline(Box::new(T::schema())))
    }

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, options: ExtractParamOptions<()>) -> poem::Result<Self> {
        Ok(Self(read(request, options.name)?))
    }
}

fn read<T: QueryParam>(request: &poem::Request, name: &str) -> Result<T, ApiError> {
    let query = &RequestData::of(request)?.query;
    if T::IS_LIST {
        query.refuse_brackets(name)?;
    }
    let values: Vec<&str> = query.values(name).collect();
    // The URL decoder replaces invalid UTF-8 by U+FFFD. No client sends this character on purpose, so it is refused as invalid UTF-8.
    if values.iter().any(|value| value.contains('\u{fffd}')) {
        return Err(ApiError::field(name, "must be UTF-8"));
    }
    T::read(&values).map_err(|reason| T::refuse(name, reason))
}

/// A type that a single value of a parameter can be parsed as.
pub trait ScalarParam: Sized + Send {
    fn schema() -> MetaSchema;
    fn parse(text: &str) -> Result<Self, String>;
}

pub fn single<'a>(values: &[&'a str]) -> Result<Option<&'a str>, String> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err("is sent more than once".to_owned()),
    }
}

/// A required parameter.
#[derive(Debug)]
pub struct Required<T>(pub T);

impl<T: ScalarParam> QueryParam for Required<T> {
    const REQUIRED: bool = true;

    fn schema() -> MetaSchema {
        T::schema()
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        T::parse(single(values)?.ok_or("is required")?).map(Self)
    }
}

impl<T: ScalarParam> QueryParam for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        T::schema()
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        single(values)?.map(T::parse).transpose()
    }
}

/// An opaque id. Every text except the empty text is accepted: an unknown id is answered with 404 and not with 400, even if it is longer
/// than a valid id can be.
#[derive(Debug, Clone)]
pub struct Id<T>(pub T);

impl<T: From<String> + Send> ScalarParam for Id<T> {
    fn schema() -> MetaSchema {
        MetaSchema { min_length: Some(1), max_length: Some(MAX_ID_CHARS), ..MetaSchema::new("string") }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Self(text.to_owned().into())) }
    }
}

impl ScalarParam for UserId {
    fn schema() -> MetaSchema {
        MetaSchema { max_length: Some(UUID_CHARS), ..MetaSchema::new_with_format("string", "uuid") }
    }

    fn parse(text: &str) -> Result<Self, String> {
        match uuid::Uuid::try_parse(text) {
            Ok(id) if text.len() == UUID_CHARS => Ok(id.to_string().into()),
            _ => Err("must be a UUID, such as 018f2c7e-5a3b-7c1d-9e2f-0123456789ab".to_owned()),
        }
    }
}

/// Free text: any string is accepted.
impl ScalarParam for String {
    fn schema() -> MetaSchema {
        MetaSchema::new("string")
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

/// Parses a whole number that consists of digits only.
fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn page_size(values: &[&str], default: Option<u32>, max: u32) -> Result<u32, String> {
    let range = || format!("must be a whole number from 1 to {max}");
    match single(values)? {
        None => default.ok_or_else(|| format!("is required: a whole number from 1 to {max}")),
        Some(text) => digits(text).and_then(|size| u32::try_from(size).ok()).filter(|size| (1..=max).contains(size)).ok_or_else(range),
    }
}

fn page_size_schema(default: Option<u32>, max: u32) -> MetaSchema {
    MetaSchema { minimum: Some(1.0), maximum: Some(max.into()), default: default.map(Into::into), ..MetaSchema::new("integer") }
}

/// The parameter `pageSize` of the paginated lists other than GET /messages.
#[derive(Debug, Clone, Copy)]
pub struct PageSize(pub u32);

impl QueryParam for PageSize {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        page_size_schema(Some(DEFAULT_PAGE_SIZE), revision::RULES.max_page_size)
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        page_size(values, Some(DEFAULT_PAGE_SIZE), revision::RULES.max_page_size).map(Self)
    }
}

/// The parameter `pageSize` of GET /messages.
#[derive(Debug, Clone, Copy)]
pub struct MessagesPageSize(pub u32);

impl QueryParam for MessagesPageSize {
    const REQUIRED: bool = revision::RULES.messages_default_page_size.is_none();

    fn schema() -> MetaSchema {
        page_size_schema(revision::RULES.messages_default_page_size, revision::RULES.messages_max_page_size)
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        page_size(values, revision::RULES.messages_default_page_size, revision::RULES.messages_max_page_size).map(Self)
    }
}

/// The largest accepted `page`: far more pages than a list can have, and a number that every JSON parser reads exactly.
const MAX_PAGE: u64 = 999_999_999_999_999;

/// The query parameter `page`, which only one contract revision has. The response repeats the number; the number does not select rows.
#[derive(Debug, Clone, Copy)]
pub struct PageNumber(pub u64);

impl QueryParam for PageNumber {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        MetaSchema { minimum: Some(1.0), maximum: Some(MAX_PAGE as f64), default: Some(1.into()), ..MetaSchema::new("integer") }
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        match single(values)? {
            None => Ok(Self(1)),
            Some(text) => digits(text)
                .filter(|page| (1..=MAX_PAGE).contains(page))
                .map(Self)
                .ok_or_else(|| format!("must be a whole number from 1 to {MAX_PAGE}")),
        }
    }
}

/// The parameter `page` for all revisions: the number to repeat in the response, or `None` in a revision without this parameter.
pub trait EchoedPage: Send {
    fn echo(&self) -> Option<u64>;
}

impl EchoedPage for Query<PageNumber> {
    fn echo(&self) -> Option<u64> {
        Some(self.0.0)
    }
}

/// Stands for a parameter that only the other contract revision has. The OpenAPI document does not list this parameter, and its value is
/// ignored.
#[derive(Debug)]
pub struct IgnoredParam;

impl EchoedPage for IgnoredParam {
    fn echo(&self) -> Option<u64> {
        None
    }
}

impl<'a> poem::FromRequest<'a> for IgnoredParam {
    async fn from_request(_: &'a poem::Request, _: &mut RequestBody) -> poem::Result<Self> {
        Ok(Self)
    }
}

/// The parameter `cursor`. If it is absent or empty, the first page is returned.
#[derive(Debug, Clone)]
pub struct CursorText(pub Option<String>);

impl QueryParam for CursorText {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        MetaSchema::new("string")
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        Ok(Self(single(values)?.filter(|text| !text.is_empty()).map(str::to_owned)))
    }
}

/// A closed set of strings: the only values that a parameter accepts.
pub trait Choice: Send + 'static {
    const VALUES: &'static [&'static str];
}

/// A parameter whose value is one of the closed set `C`.
#[derive(Debug)]
pub struct OneOf<C>(pub String, std::marker::PhantomData<C>);

impl<C: Choice> ScalarParam for OneOf<C> {
    fn schema() -> MetaSchema {
        MetaSchema { enum_items: C::VALUES.iter().map(|value| (*value).into()).collect(), ..MetaSchema::new("string") }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if C::VALUES.contains(&text) {
            Ok(Self(text.to_owned(), std::marker::PhantomData))
        } else {
            Err(format!("must be one of {}", List(C::VALUES)))
        }
    }
}

/// A list of strings that is displayed with commas between them.
#[derive(Debug)]
pub struct List(pub &'static [&'static str]);

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// The query parameter `searchTerm` of the list of labels. Its length is measured in characters after trimming. A blank value counts as
/// absent.
#[derive(Debug)]
pub struct SearchTerm(pub Option<String>);

impl QueryParam for SearchTerm {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        MetaSchema::new("string")
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        let Some(term) = single(values)?.map(str::trim).filter(|term| !term.is_empty()) else { return Ok(Self(None)) };
        if (3..=100).contains(&term.chars().count()) {
            Ok(Self(Some(term.to_owned())))
        } else {
            Err("must be 3 to 100 characters long".to_owned())
        }
    }
}

/// The parameter `query` of the search operations. Its length is measured in characters, without trimming.
#[derive(Debug)]
pub struct SearchText(pub String);

impl ScalarParam for SearchText {
    fn schema() -> MetaSchema {
        MetaSchema { min_length: Some(1), max_length: Some(MAX_QUERY_CHARS), ..MetaSchema::new("string") }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() || text.chars().count() > MAX_QUERY_CHARS {
            return Err(format!("must be 1 to {MAX_QUERY_CHARS} characters long and not blank"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The extractor of operations with a fixed page size: refuses `pageSize`, which the OpenAPI document of these operations does not list.
#[derive(Debug)]
pub struct NoPageSize;

impl<'a> poem::FromRequest<'a> for NoPageSize {
    async fn from_request(request: &'a poem::Request, _: &mut RequestBody) -> poem::Result<Self> {
        match RequestData::of(request)?.query.values("pageSize").next() {
            Some(_) => Err(ApiError::field("pageSize", "cannot be chosen here").into()),
            None => Ok(Self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_in_range() {
        for bad in [&["0"][..], &["-1"], &["+5"], &["10.0"], &[""], &["ten"], &["٣"], &["99999999999"], &["1", "1"], &["101"]] {
            assert!(page_size(bad, Some(20), 100).is_err(), "{bad:?}");
        }
        assert_eq!(page_size(&[], Some(20), 100), Ok(20));
        assert_eq!(page_size(&["100"], None, 100), Ok(100));
        assert!(page_size(&[], None, 15).is_err());
    }

    #[test]
    fn search_terms_are_measured_after_trimming() {
        assert!(SearchTerm::read(&["  ab "]).is_err());
        assert_eq!(SearchTerm::read(&["   "]).map(|term| term.0), Ok(None));
        assert_eq!(SearchTerm::read(&[" คืนเงิน "]).map(|term| term.0), Ok(Some("คืนเงิน".to_owned())));
    }

    #[test]
    fn user_ids_are_hyphenated_uuids() {
        assert!(UserId::parse("018f2c7e5a3b7c1d9e2f0123456789ab").is_err());
        assert_eq!(
            UserId::parse("018F2C7E-5A3B-7C1D-9E2F-0123456789AB").map(UserId::into_string),
            Ok("018f2c7e-5a3b-7c1d-9e2f-0123456789ab".to_owned())
        );
    }
}
