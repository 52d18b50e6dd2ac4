//! Parameters and members that only the settings plane has.

use std::borrow::Cow;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    domain::settings::Subject,
    http::{
        params::{Choice, QueryParam, Scalar},
        values::plain_type,
    },
};

/// How many records of a log or a feed are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Limit(pub i64);

const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 500;

impl QueryParam for Limit {
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
        match Option::<Position>::read(values)? {
            None => Ok(Self(DEFAULT_LIMIT)),
            Some(Position(limit)) if (1..=MAX_LIMIT).contains(&limit) => Ok(Self(limit)),
            Some(_) => Err(format!("must be a whole number from 1 to {MAX_LIMIT}")),
        }
    }
}

/// A place in a log or a feed: a number from 0 on.
#[derive(Debug, Clone, Copy)]
pub struct Position(pub i64);

impl Scalar for Position {
    fn schema() -> MetaSchema {
        MetaSchema { minimum: Some(0.0), ..MetaSchema::new_with_format("integer", "int64") }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().map(Self).ok_or_else(|| "must be a whole number from 0 on".to_owned())
    }
}

/// What the log of changes can be narrowed to.
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

/// A text that stays when it is absent and goes when it is `null`.
#[derive(Debug, Default)]
pub struct Clearable(pub Option<Option<String>>);

impl<'de> Deserialize<'de> for Clearable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Some(Option::deserialize(deserializer)?)))
    }
}

impl Type for Clearable {
    plain_type!();

    fn name() -> Cow<'static, str> {
        "string".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema { nullable: true, ..MetaSchema::new("string") }))
    }
}

impl ToJSON for Clearable {
    fn to_json(&self) -> Option<Value> {
        self.0.clone().map(Value::from)
    }
}

impl ParseFromJSON for Clearable {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            None => Ok(Self(None)),
            Some(value) => serde_json::from_value(value).map_err(ParseError::custom),
        }
    }
}
