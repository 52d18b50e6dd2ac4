//! Parses OpenAPI documents, JSON or YAML.
//!
//! The parser refuses text that is no OpenAPI 3.0 or 3.1 document, and YAML beyond the limits of `yaml_options`. Other faults (a repeated
//! key, deeply nested JSON) become notices. A JSON value that is nested too deeply is replaced by its hash, so that a change in it is
//! found. For both formats, the visitor `Bounded` builds the `serde_json::Value`. The deserializer of `Value` itself would drop repeated
//! keys silently and refuse keys that are numbers, which YAML allows.

use std::{cell::RefCell, collections::BTreeMap, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, value::RawValue};

use super::{
    json_values::{hex, sha256},
    referenced_files,
};

/// The nesting depth of JSON beyond which a value is replaced by its hash. Real documents are nested less deeply.
const DEPTH: usize = 100;
/// The maximum number of notices of one document.
pub(super) const NOTICES: usize = 100;

/// A document and its faults.
#[derive(Debug, Clone)]
pub struct Document {
    pub(super) root: Value,
    /// Other files that references lead to, by their path relative to the folder of the document.
    pub(super) files: BTreeMap<String, Value>,
    pub notices: Vec<String>,
}

/// Why a text cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("is empty")]
    Empty,
    #[error("is not JSON: {0}")]
    Json(String),
    #[error("is not YAML: {0}")]
    Yaml(String),
    #[error("is not an OpenAPI document: {0}")]
    Other(&'static str),
    #[error("is written in OpenAPI {0}; 3.0 and 3.1 can be compared")]
    Version(String),
}

impl Document {
    /// Makes each URL in the document's list `servers` relative if it begins with `origin`, so that the documents of two deployments can be
    /// compared. `origin` is a text such as `https://api.example.com`.
    #[must_use]
    pub fn served_by(mut self, origin: &str) -> Self {
        for server in self.root.get_mut("servers").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(Value::String(url)) = server.get_mut("url")
                && let Some(path) = url.strip_prefix(origin).filter(|path| path.is_empty() || path.starts_with('/'))
            {
                *url = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
            }
        }
        self
    }

    /// Reads a document: JSON if the text begins with a brace, else YAML.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Err(Unreadable::Empty);
        }
        let (root, notices) = parsed(text)?;
        let mut document = Self::new(root)?;
        document.notices = notices;
        Ok(document)
    }

    /// Reads a document and the files that its references lead to. `name` is the name of the document in its folder; `load` returns the
    /// text of another file, given its path relative to that folder, with `/` as the separator. No such path leads out of the folder.
    pub fn read_with(text: &str, name: &str, load: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<Self, Unreadable> {
        let mut document = Self::read(text)?;
        referenced_files::load(&mut document, name, load);
        Ok(document)
    }

    /// Creates a document from a parsed value.
    pub fn new(root: Value) -> Result<Self, Unreadable> {
        let Some(object) = root.as_object() else { return Err(Unreadable::Other("it is not an object")) };
        match object.get("openapi") {
            Some(Value::String(version)) if ["3.0", "3.1"].iter().any(|known| is_version(version, known)) => {
                Ok(Self { root, files: BTreeMap::new(), notices: Vec::new() })
            }
            Some(Value::String(version)) => Err(Unreadable::Version(version.chars().take(40).collect())),
            Some(_) => Err(Unreadable::Other("`openapi` is not a text like \"3.0.3\"")),
            None if object.contains_key("swagger") => Err(Unreadable::Version("2.0 (Swagger)".to_owned())),
            None => Err(Unreadable::Other("`openapi` is missing")),
        }
    }

    /// Returns a string property of `info`, such as `title`. Empty if it is absent.
    pub fn info(&self, name: &str) -> &str {
        self.root.pointer("/info").and_then(|info| info.get(name)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the keys of `paths` and of `webhooks`.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let sections = ["paths", "webhooks"].into_iter().filter_map(|key| self.root.get(key)?.as_object());
        sections.flat_map(|section| section.keys().map(String::as_str))
    }

    pub(super) fn is_3_1(&self) -> bool {
        self.root["openapi"].as_str().is_some_and(|version| version.starts_with("3.1"))
    }
}

/// Parses JSON if the text begins with a brace, else YAML. Returns the value and the notices.
pub(super) fn parsed(text: &str) -> Result<(Value, Vec<String>), Unreadable> {
    let notices = RefCell::new(Vec::new());
    let seed = |raw| Bounded { depth: 0, raw, path: String::new(), notices: &notices };
    let root = if text.trim_start().starts_with('{') {
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = seed(true).deserialize(&mut reader).and_then(|root| reader.end().map(|()| root));
        read.map_err(|error| Unreadable::Json(error.to_string()))?
    } else {
        let read = serde_saphyr::with_deserializer_from_str_with_options(text, yaml_options(), |reader| seed(false).deserialize(reader));
        read.map_err(|error| Unreadable::Yaml(error.to_string()))?
    };
    Ok((root, notices.into_inner()))
}

/// Returns the options for YAML 1.2 with merge keys. The budget limits how much aliases and merge keys may expand to.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 200,
            max_events: 20_000_000,
            max_nodes: 10_000_000,
            max_total_scalar_bytes: 256 * 1024 * 1024,
            max_recorded_anchor_events: 10_000_000,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn is_version(version: &str, known: &str) -> bool {
    version.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Reads one value of a document. If the parser can return the text of a value, lists and objects that are nested deeper than [`DEPTH`] are
/// replaced by a hash of their text.
struct Bounded<'a> {
    depth: usize,
    /// Whether the parser can return a value as its source text, unparsed. Only the JSON parser can.
    raw: bool,
    path: String,
    notices: &'a RefCell<Vec<String>>,
}

impl Bounded<'_> {
    fn inner(&self, step: &str) -> Self {
        let path = format!("{}/{}", self.path, step.replace('~', "~0").replace('/', "~1"));
        Self { depth: self.depth + 1, raw: self.raw, path, notices: self.notices }
    }

    fn notice(&self, text: String) {
        let mut notices = self.notices.borrow_mut();
        if notices.len() < NOTICES {
            notices.push(text);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth < DEPTH || !self.raw {
            return deserializer.deserialize_any(self);
        }
        let raw: Box<RawValue> = serde::Deserialize::deserialize(deserializer)?;
        if raw.get().starts_with(['{', '[']) {
            self.notice(format!("{}: nested deeper than {DEPTH}, compared as a whole", self.path));
            return Ok(Value::String(format!("sha256:{}", hex(&sha256(raw.get())))));
        }
        serde_json::from_str(raw.get()).map_err(D::Error::custom)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.inner(&items.len().to_string()))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(Key(name)) = access.next_key_seed(Key(String::new()))? {
            let value = access.next_value_seed(self.inner(&name))?;
            if members.insert(name.clone(), value).is_some() {
                self.notice(format!("{}: the key `{name}` occurs twice; the last value is used", self.path));
            }
        }
        Ok(Value::Object(members))
    }
}

/// A key of an object. A YAML key may be a number or a boolean; it is read as text.
struct Key(String);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Self;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a plain key")
    }

    fn visit_str<E>(self, value: &str) -> Result<Self, E> {
        Ok(Self(value.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self, E> {
        Ok(Self(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self, E> {
        Ok(Self(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self, E> {
        Ok(Self(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self, E> {
        Ok(Self(value.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(Self("null".to_owned()))
    }
}
