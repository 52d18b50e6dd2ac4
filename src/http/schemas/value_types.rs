//! Value types of requests and responses, with their JSON schemas for the OpenAPI document: date-times, open enumerations, stored JSON,
//! ids, amounts, e-mail addresses.

use std::{borrow::Cow, marker::PhantomData};

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::domain::{
    ids::{UUID_CHARS, UserId},
    inbound_messages::RawProperty,
    json_number_precision::ExactJson,
    ordered_object::{self, Entries},
    stores_and_accounts::Channel,
    time::{Bound, Timestamp},
};

/// The `format` that marks the schema of an open enumeration, whose set of values may grow. The module `openapi::document_post_processing`
/// removes this `format`, and rewrites the schema so that it accepts any string.
pub const OPEN_ENUM: &str = "x-open-enum";

/// Implements the members of the trait [`Type`] that are the same for all types that use this macro. `IS_REQUIRED`: a property of such a
/// type is required, unless the property is an `Option` or has a default. The other members are for validators of the framework
/// (poem-openapi), which run on none of these types.
macro_rules! plain_type {
    () => {
        const IS_REQUIRED: bool = true;
        type RawValueType = Self;
        type RawElementValueType = Self;

        fn as_raw_value(&self) -> Option<&Self::RawValueType> {
            Some(self)
        }

        fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self::RawElementValueType> + 'a> {
            Box::new(self.as_raw_value().into_iter())
        }
    };
}
pub(crate) use plain_type;

fn to_json(value: &impl Serialize) -> Option<Value> {
    serde_json::to_value(value).ok()
}

fn from_json<T: Type + serde::de::DeserializeOwned>(value: Option<Value>) -> ParseResult<T> {
    serde_json::from_value(value.unwrap_or_default()).map_err(ParseError::custom)
}

macro_rules! date_time {
    ($type:ident, $written:expr) => {
        impl Type for $type {
            plain_type!();

            fn name() -> Cow<'static, str> {
                "date-time".into()
            }

            fn schema_ref() -> MetaSchemaRef {
                MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "date-time")))
            }
        }

        impl ToJSON for $type {
            fn to_json(&self) -> Option<Value> {
                let written: fn(Self) -> Timestamp = $written;
                to_json(&written(*self))
            }
        }

        impl ParseFromJSON for $type {
            fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                from_json(value)
            }
        }
    };
}

date_time!(Timestamp, |at| at);
date_time!(Bound, Bound::at_or_before);

/// A named enumeration: the name, the description and the values of a string schema.
pub trait ValueSet: Send + Sync + 'static {
    const NAME: &'static str;
    /// The description of the schema in the OpenAPI document.
    const DESCRIPTION: &'static str;
    /// Whether responses may contain values that the OpenAPI document does not list.
    const OPEN: bool = true;
    const VALUES: &'static [&'static str];
}

/// A value of a named enumeration.
#[derive(Debug, Clone)]
pub struct EnumValue<S>(pub String, PhantomData<S>);

impl<S> From<String> for EnumValue<S> {
    fn from(value: String) -> Self {
        Self(value, PhantomData)
    }
}

impl<S> From<Channel> for EnumValue<S> {
    fn from(value: Channel) -> Self {
        Self(value.0, PhantomData)
    }
}

impl<S> Serialize for EnumValue<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de, S> Deserialize<'de> for EnumValue<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl<S: ValueSet> Type for EnumValue<S> {
    plain_type!();

    fn name() -> Cow<'static, str> {
        S::NAME.into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Reference(S::NAME.to_owned())
    }

    fn register(registry: &mut Registry) {
        registry.create_schema::<Self, _>(S::NAME.to_owned(), |_| MetaSchema {
            description: Some(S::DESCRIPTION),
            enum_items: S::VALUES.iter().map(|value| (*value).into()).collect(),
            format: S::OPEN.then_some(OPEN_ENUM),
            ..MetaSchema::new("string")
        });
    }
}

impl<S: ValueSet> ToJSON for EnumValue<S> {
    fn to_json(&self) -> Option<Value> {
        to_json(self)
    }
}

impl<S: ValueSet> ParseFromJSON for EnumValue<S> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        from_json::<String>(value).map(Self::from).map_err(ParseError::propagate)
    }
}

/// The channels that the contract lists in the revision (A or B) for which this program was compiled.
#[derive(Debug, Clone)]
pub struct ChannelSet;

impl ValueSet for ChannelSet {
    const NAME: &'static str = "Channel";
    const DESCRIPTION: &'static str =
        "The service over which messages are exchanged; `gmail` and `outlook` are e-mail, `widget` is this server's own web chat.";
    const VALUES: &'static [&'static str] = crate::revision::CHANNELS;
}

/// A channel in a response.
pub type ChannelName = EnumValue<ChannelSet>;

/// JSON text that is copied unchanged into the response, usually from the database. The OpenAPI document shows the schema of `T`.
#[derive(Debug, Clone)]
pub struct StoredJson<T>(Box<RawValue>, PhantomData<fn() -> T>);

impl<T> StoredJson<T> {
    /// Makes a value from stored text. Returns `None` if the text is not JSON. Every write stores valid JSON, so such a text is damaged.
    pub fn new(text: String) -> Option<Self> {
        match RawValue::from_string(text) {
            Ok(raw) => Some(Self(raw, PhantomData)),
            Err(error) => {
                tracing::error!(%error, "a stored JSON value is damaged and left out");
                None
            }
        }
    }
}

impl<T> From<Box<RawValue>> for StoredJson<T> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw, PhantomData)
    }
}

impl<T> StoredJson<Vec<T>> {
    /// Like [`Self::new`], for a list that the response must contain: a text that is not JSON becomes an empty list.
    pub fn or_empty_list(text: String) -> Self {
        Self::new(text).unwrap_or_else(|| Self(RawValue::from_string("[]".to_owned()).unwrap_or_default(), PhantomData))
    }
}

impl<T> Serialize for StoredJson<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: Type + 'static> Type for StoredJson<T> {
    plain_type!();

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: Type + 'static> ToJSON for StoredJson<T> {
    fn to_json(&self) -> Option<Value> {
        to_json(&self.0)
    }
}

impl<T: Type + 'static> ParseFromJSON for StoredJson<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        from_json::<Any>(value)
            .map_err(ParseError::propagate)
            .and_then(|value| Self::new(value.0.to_string()).ok_or_else(ParseError::expected_input))
    }
}

/// An object whose properties the OpenAPI document does not list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnyObject(pub Value);

/// The properties of an open object, as the OpenAPI document lists them. The object may also have properties that the document does not
/// list.
pub trait Members: Send + Sync + 'static {
    /// The name of the object's schema in the OpenAPI document.
    const NAME: &'static str;
    /// The description of the object's schema in the OpenAPI document.
    const DESCRIPTION: &'static str;

    fn members() -> Vec<(&'static str, MetaSchema)>;
}

/// Makes an entry of [`Members::members`]: the name of a property, and its schema.
pub fn member(name: &'static str, json_type: &'static str, description: &'static str) -> (&'static str, MetaSchema) {
    (name, MetaSchema { description: Some(description), ..MetaSchema::new(json_type) })
}

/// A JSON object with the properties that `M` lists, and possibly with other properties.
#[derive(Debug)]
pub struct OpenObject<M>(Value, PhantomData<fn() -> M>);

impl<M: Members> Type for OpenObject<M> {
    plain_type!();

    fn name() -> Cow<'static, str> {
        M::NAME.into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Reference(M::NAME.to_owned())
    }

    fn register(registry: &mut Registry) {
        registry.create_schema::<Self, _>(M::NAME.to_owned(), |_| MetaSchema {
            description: Some(M::DESCRIPTION),
            properties: M::members().into_iter().map(|(name, schema)| (name, MetaSchemaRef::Inline(Box::new(schema)))).collect(),
            additional_properties: Some(Box::new(MetaSchemaRef::Inline(Box::new(MetaSchema::ANY)))),
            ..MetaSchema::new("object")
        });
    }
}

impl<M: Members> ToJSON for OpenObject<M> {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.clone())
    }
}

impl<M: Members> ParseFromJSON for OpenObject<M> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Ok(Self(value.unwrap_or_default(), PhantomData))
    }
}

/// A JSON value of any type. A number that would not keep its exact value when it is parsed is refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Any(pub Value);

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ExactJson::deserialize(deserializer).map(|ExactJson(value)| Self(value))
    }
}

macro_rules! any {
    ($type:ident, $schema:expr) => {
        impl Type for $type {
            plain_type!();

            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn schema_ref() -> MetaSchemaRef {
                MetaSchemaRef::Inline(Box::new($schema))
            }
        }

        impl ToJSON for $type {
            fn to_json(&self) -> Option<Value> {
                Some(self.0.clone())
            }
        }

        impl ParseFromJSON for $type {
            fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                Ok(Self(value.unwrap_or_default()))
            }
        }
    };
}

any!(Any, MetaSchema::ANY);
// `RawProperty` is a property of an inbound message that should be a string. Its schema accepts any value: the service leaves a value that
// is not a string out of the message, and does not refuse the message.
any!(RawProperty, MetaSchema::ANY);

/// Field values keyed by field id, in the order in which they were sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FieldValues(#[serde(deserialize_with = "ordered_object::exact")] pub Entries);

/// The `userId` of a user, a UUID. This type accepts any text. The code that reads a request body checks that the id is a UUID: the error
/// message names the place of the id in the body, such as `body.userIds[3]`, which only that code knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UserIdText(pub String);

impl From<UserId> for UserIdText {
    fn from(id: UserId) -> Self {
        Self(id.into_string())
    }
}

/// A number that must be 0 or more, kept as the JSON text that was sent, so that no digit is lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Amount(pub Box<RawValue>);

/// The maximum number of characters in the e-mail address of a new contact (contract, section 8).
pub const MAX_EMAIL_CHARS: usize = 100;

/// An e-mail address, of at most [`MAX_EMAIL_CHARS`] characters according to the OpenAPI document. This type accepts any text. The code
/// that reads a request body checks the address: the error message names the property, such as `body.email`, which only that code knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmailText(pub String);

/// An e-mail address like [`EmailText`], but without a limit on its length.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AddressText(pub String);

/// A list of records of type `T`, each converted from a record of the domain.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Many<T>(Vec<T>);

impl<V, T: From<V>> From<Vec<V>> for Many<T> {
    fn from(records: Vec<V>) -> Self {
        Self(records.into_iter().map(T::from).collect())
    }
}

/// A request body that is a list. The OpenAPI document permits 1 to `MAX` items; the code that reads the body checks the number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limited<T, const MAX: usize>(pub Vec<T>);

impl<T: Type + 'static, const MAX: usize> Type for Limited<T, MAX> {
    plain_type!();

    fn name() -> Cow<'static, str> {
        format!("{}List", T::name()).into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let items = Some(Box::new(T::schema_ref()));
        MetaSchemaRef::Inline(Box::new(MetaSchema { items, min_items: Some(1), max_items: Some(MAX), ..MetaSchema::new("array") }))
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

macro_rules! by_serde {
    ($type:ident, $schema:expr) => {
        impl Type for $type {
            plain_type!();

            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn schema_ref() -> MetaSchemaRef {
                MetaSchemaRef::Inline(Box::new($schema))
            }
        }

        impl ToJSON for $type {
            fn to_json(&self) -> Option<Value> {
                to_json(self)
            }
        }

        impl ParseFromJSON for $type {
            fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                from_json(value)
            }
        }
    };
}

by_serde!(
    FieldValues,
    MetaSchema { additional_properties: Some(Box::new(MetaSchemaRef::Inline(Box::new(MetaSchema::ANY)))), ..MetaSchema::new("object") }
);
by_serde!(Amount, MetaSchema { minimum: Some(0.0), ..MetaSchema::new_with_format("number", "double") });
by_serde!(EmailText, MetaSchema { max_length: Some(MAX_EMAIL_CHARS), ..MetaSchema::new_with_format("string", "email") });
by_serde!(AddressText, MetaSchema::new_with_format("string", "email"));
by_serde!(UserIdText, MetaSchema { max_length: Some(UUID_CHARS), ..MetaSchema::new_with_format("string", "uuid") });
any!(
    AnyObject,
    MetaSchema { additional_properties: Some(Box::new(MetaSchemaRef::Inline(Box::new(MetaSchema::ANY)))), ..MetaSchema::new("object") }
);

/// A string or a number: the value of a select option.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TextOrNumber(Value);

any!(
    TextOrNumber,
    MetaSchema { one_of: ["string", "number"].map(|ty| MetaSchemaRef::Inline(Box::new(MetaSchema::new(ty)))).to_vec(), ..MetaSchema::ANY }
);

/// Defines the type of a property that holds the id of a record or, if the query parameter `expand` asks for it, the record as an object.
macro_rules! id_or_object {
    ($(#[$doc:meta])* $name:ident($object:ty)) => {
        $(#[$doc])*
        #[derive(Debug, serde::Serialize)]
        #[serde(untagged)]
        pub enum $name {
            Id(String),
            Object($object),
        }

        impl poem_openapi::types::Type for $name {
            crate::http::schemas::value_types::plain_type!();

            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_ref() -> poem_openapi::registry::MetaSchemaRef {
                use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
                let id = MetaSchemaRef::Inline(Box::new(MetaSchema::new("string")));
                MetaSchemaRef::Inline(Box::new(MetaSchema { one_of: vec![id, <$object as poem_openapi::types::Type>::schema_ref()], ..MetaSchema::ANY }))
            }

            fn register(registry: &mut poem_openapi::registry::Registry) {
                <$object as poem_openapi::types::Type>::register(registry);
            }
        }

        impl poem_openapi::types::ToJSON for $name {
            fn to_json(&self) -> Option<serde_json::Value> {
                serde_json::to_value(self).ok()
            }
        }

        impl poem_openapi::types::ParseFromJSON for $name {
            fn parse_from_json(value: Option<serde_json::Value>) -> poem_openapi::types::ParseResult<Self> {
                match value {
                    Some(serde_json::Value::String(id)) => Ok(Self::Id(id)),
                    other => <$object as poem_openapi::types::ParseFromJSON>::parse_from_json(other)
                        .map(Self::Object)
                        .map_err(poem_openapi::types::ParseError::propagate),
                }
            }
        }
    };
}
pub(crate) use id_or_object;
