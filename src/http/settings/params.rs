//! Query parameters and types of JSON properties that only the settings API has.

use std::{borrow::Cow, marker::PhantomData, time::Duration};

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    domain::{ids::MAX_ID_CHARS, settings_access::Subject},
    http::{
        machinery::{
            long_poll::MAX_WAIT,
            params::{Choice, List, QueryParam, ScalarParam, single},
        },
        schemas::value_types::{EnumValue, ValueSet, plain_type},
    },
};

/// `limit`: the largest number of records to return in one response.
#[derive(Debug, Clone, Copy)]
pub struct LimitParam(pub i64);

const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 500;

impl QueryParam for LimitParam {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        MetaSchema {
            minimum: Some(1.0),
            maximum: Some(MAX_LIMIT as f64),
            default: Some(DEFAULT_LIMIT.into()),
            ..MetaSchema::new("integer")
        }
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        let range = || format!("must be a whole number from 1 to {MAX_LIMIT}");
        match single(values)? {
            None => Ok(Self(DEFAULT_LIMIT)),
            Some(text) => PositionParam::parse(text)
                .ok()
                .filter(|limit| (1..=MAX_LIMIT).contains(&limit.0))
                .map(|limit| Self(limit.0))
                .ok_or_else(range),
        }
    }
}

/// `wait`: for how many seconds the server may wait for a new record before it answers.
#[derive(Debug, Clone, Copy)]
pub struct WaitParam(pub Duration);

impl QueryParam for WaitParam {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchema {
        MetaSchema { minimum: Some(0.0), maximum: Some(MAX_WAIT as f64), default: Some(0.into()), ..MetaSchema::new("integer") }
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        let Some(text) = single(values)? else { return Ok(Self(Duration::ZERO)) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = digits.then(|| text.parse().ok()).flatten().filter(|seconds| *seconds <= MAX_WAIT);
        seconds.map(|seconds| Self(Duration::from_secs(seconds))).ok_or_else(|| format!("must be a whole number from 0 to {MAX_WAIT}"))
    }
}

/// A position in a log or a feed: a whole number from 0 on.
#[derive(Debug, Clone, Copy)]
pub struct PositionParam(pub i64);

impl ScalarParam for PositionParam {
    fn schema() -> MetaSchema {
        MetaSchema { minimum: Some(0.0), ..MetaSchema::new_with_format("integer", "int64") }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().map(Self).ok_or_else(|| "must be a whole number from 0 on".to_owned())
    }
}

/// The kinds of records by which the audit log can be filtered.
#[derive(Debug)]
pub struct SubjectKind;

impl Choice for SubjectKind {
    const VALUES: &'static [&'static str] = &{
        let mut names = [""; Subject::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Subject::ALL[i].name();
            i += 1;
        }
        names
    };
}

/// A list parameter with values from a closed set. The values are separated by commas, or the parameter is repeated. If the parameter is
/// absent or empty, the list is empty, which stands for all values of the set.
#[derive(Debug)]
pub struct EnumListParam<S>(pub Vec<&'static str>, PhantomData<S>);

impl<S: ValueSet> QueryParam for EnumListParam<S> {
    const REQUIRED: bool = false;
    const IS_LIST: bool = true;

    fn schema() -> MetaSchema {
        MetaSchema { items: Some(Box::new(EnumValue::<S>::schema_ref())), ..MetaSchema::new("array") }
    }

    fn register(registry: &mut Registry) {
        <EnumValue<S> as Type>::register(registry);
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        let mut named = Vec::new();
        for value in values.iter().filter(|value| !str::is_empty(value)).flat_map(|value| value.split(',')) {
            let known = S::VALUES.iter().find(|known| **known == value);
            let known = known.ok_or_else(|| format!("names `{}`; there are {}", shortened(value), List(S::VALUES)))?;
            if !named.contains(known) {
                named.push(*known);
            }
        }
        Ok(Self(named, PhantomData))
    }
}

/// Shortens a value that the caller sent, for an error message.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(MAX_ID_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// A property in the body of a request that changes a record: if it is absent, the stored value stays as it is; `null` removes the stored
/// value.
#[derive(Debug)]
pub struct Clearable<T = String>(pub Option<Option<T>>);

impl<T> Default for Clearable<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Clearable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Some(Option::deserialize(deserializer)?)))
    }
}

impl<T: Type> Type for Clearable<T> {
    plain_type!();

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        match T::schema_ref() {
            MetaSchemaRef::Inline(schema) => MetaSchemaRef::Inline(Box::new(MetaSchema { nullable: true, ..*schema })),
            reference => reference,
        }
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: ToJSON> ToJSON for Clearable<T> {
    fn to_json(&self) -> Option<Value> {
        self.0.as_ref()?.as_ref()?.to_json()
    }
}

impl<T: Type + DeserializeOwned> ParseFromJSON for Clearable<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            None => Ok(Self(None)),
            Some(value) => serde_json::from_value(value).map_err(ParseError::custom),
        }
    }
}

/// A list that must not be empty. Parsing accepts an empty list; the service refuses it, with an error that names the property.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AtLeastOne<T>(pub Vec<T>);

impl<T: Type> Type for AtLeastOne<T> {
    plain_type!();

    fn name() -> Cow<'static, str> {
        Vec::<T>::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        let items = Some(Box::new(T::schema_ref()));
        MetaSchemaRef::Inline(Box::new(MetaSchema { items, min_items: Some(1), ..MetaSchema::new("array") }))
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: Type + Serialize> ToJSON for AtLeastOne<T> {
    fn to_json(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }
}

impl<T: Type + DeserializeOwned> ParseFromJSON for AtLeastOne<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        serde_json::from_value(value.unwrap_or_default()).map_err(ParseError::custom)
    }
}
