//! Helper functions for JSON values.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub(super) type Object = Map<String, Value>;

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Object::new()));

/// Returns an empty object. As a schema it accepts everything.
pub(super) fn empty() -> &'static Value {
    &EMPTY
}

/// Annotations: properties that document the contract and do not affect requests and responses.
pub(super) const ANNOTATIONS: [&str; 7] = ["description", "summary", "title", "example", "examples", "externalDocs", "$comment"];

pub(super) fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key)
}

/// Returns the properties of an object. A value that is no object has none.
pub(super) fn members(value: &Value) -> &Object {
    static NONE: LazyLock<Object> = LazyLock::new(Object::new);
    value.as_object().unwrap_or(&NONE)
}

pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn text<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// Whether an object has the property `key` with the value true.
pub(super) fn flag(object: &Object, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Compares two numbers. Integers are compared exactly, since a float is inexact beyond 2^53.
pub(super) fn order(one: &Value, other: &Value) -> Ordering {
    let whole = |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
    }
}

/// Returns the keys of both objects, sorted and without duplicates.
pub(super) fn keys<'a>(old: &'a Object, new: &'a Object) -> BTreeSet<&'a str> {
    old.keys().chain(new.keys()).map(String::as_str).collect()
}

/// Whether two values are equal. `1` equals `1.0`, and the order of properties does not matter.
pub(super) fn same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(one), Value::Number(other)) => one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other)),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => old == new,
    }
}

pub(super) fn both_same(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => same(old, new),
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// Returns the canonical JSON text of a value. Equal values have equal texts. The exception is numbers whose absolute value is 9e15 or
/// more: the text of a float differs from the text of the equal integer.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // A float represents each integer in this range exactly.
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => (float as i64).to_string(),
            _ => number.to_string(),
        },
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(object) => {
            let members: BTreeMap<_, _> = object.iter().collect();
            let members: Vec<_> =
                members.into_iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

/// Returns the form of a value in a report: the value itself if its JSON has at most 300 bytes, else the beginning of its SHA-256 hash.
pub(super) fn report_form(value: &Value) -> Value {
    let text = canonical(value);
    if text.len() <= 300 { value.clone() } else { Value::String(format!("sha256:{}", &hex(&sha256(&text))[..16])) }
}

pub(super) fn sha256(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a value without its annotations, which are removed at any depth.
pub(super) fn without_annotations(value: &Value) -> Value {
    /// Keywords whose value is an object with free names as keys, such as names of properties. Such a key is kept even if it is spelled
    /// like an annotation.
    const NAMES: [&str; 13] = [
        "properties",
        "patternProperties",
        "dependentSchemas",
        "$defs",
        "definitions",
        "headers",
        "responses",
        "content",
        "links",
        "callbacks",
        "encoding",
        "variables",
        "mapping",
    ];
    /// Keywords whose values are data, not schemas. A property in the data is kept even if it is named like an annotation.
    const LITERAL: [&str; 3] = ["default", "enum", "const"];
    fn inner(value: &Value, names: bool) -> Value {
        match value {
            Value::Object(object) => {
                let kept = object.iter().filter(|(key, _)| names || !is_annotation(key));
                let member = |(key, member): (&String, &Value)| {
                    let literal = !names && LITERAL.contains(&key.as_str());
                    let member = if literal { member.clone() } else { inner(member, !names && NAMES.contains(&key.as_str())) };
                    (key.clone(), member)
                };
                Value::Object(kept.map(member).collect())
            }
            Value::Array(items) => items.iter().map(|item| inner(item, false)).collect(),
            other => other.clone(),
        }
    }
    inner(value, false)
}

/// Escapes a name for use as one token of a JSON pointer or of a location.
pub(super) fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
