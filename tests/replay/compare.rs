//! Where two answers to one request differ. Whatever time and chance decide is compared by its form.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};

use crate::client::Answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only the older revision has it.
    Gone,
    /// Only the newer one has it.
    New,
    Other,
}

/// A place where the answers differ: `status`, `header NAME`, `rows` (which records a list holds, and in which order), or
/// a pointer into the body with `[]` for any item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub place: String,
    pub kind: Kind,
    detail: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "differs at {} ({:?}, {})", self.place, self.kind, self.detail)
    }
}

/// Headers that belong to the exchange and not to the answer.
const OF_THE_EXCHANGE: [&str; 4] = ["date", "content-length", "connection", "transfer-encoding"];

pub fn answers([older, newer]: &[Answer; 2]) -> Vec<Difference> {
    let other = |place: &str, detail: String| Difference { place: place.to_owned(), kind: Kind::Other, detail };
    if older.status != newer.status {
        // Everything else follows from that.
        return vec![other("status", format!("{} and {}", older.status, newer.status))];
    }
    let mut found = Vec::new();
    let headers = |answer: &Answer| -> BTreeMap<String, String> {
        let formed = |(name, value): &(String, String)| match name.as_str() {
            "x-request-id" | "x-pagination-next-cursor" => (name.clone(), String::new()),
            _ => (name.clone(), value.clone()),
        };
        answer.headers.iter().filter(|(name, _)| !OF_THE_EXCHANGE.contains(&name.as_str())).map(formed).collect()
    };
    let (one, two) = (headers(older), headers(newer));
    for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
        let place = format!("header {name}");
        match (one.get(name), two.get(name)) {
            (Some(_), None) => found.push(Difference { kind: Kind::Gone, ..other(&place, String::new()) }),
            (None, Some(_)) => found.push(Difference { kind: Kind::New, ..other(&place, String::new()) }),
            (one, two) if one != two => found.push(other(&place, format!("{one:?} and {two:?}"))),
            _ => {}
        }
    }
    match (serde_json::from_str(&older.text), serde_json::from_str(&newer.text)) {
        (Ok(one), Ok(two)) => values("", &one, &two, &mut found),
        _ if older.text == newer.text => {}
        _ => found.push(other("body", "not JSON".to_owned())),
    }
    found.dedup();
    found
}

/// What is compared of a text: all of it, or its form where chance decides.
fn formed(text: &str) -> String {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<_> = text.split('-').collect();
    // A UUIDv7 is one that a server made.
    if let [a, b, c, d, e] = parts[..]
        && [a, b, c, d, e].iter().all(|part| hex(part))
        && text.len() == 36
        && c.starts_with('7')
    {
        return "an id".to_owned();
    }
    let now = crate::corpus::started();
    let instant = chrono::DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.timestamp_millis());
    if text.len() == 24 && instant.is_some_and(|instant| (instant - now).abs() < 3_600_000) {
        return "a recent instant".to_owned();
    }
    if text.len() == 13 && text.parse::<i64>().is_ok_and(|millis| (millis - now).abs() < 3_600_000) {
        return "recent milliseconds".to_owned();
    }
    text.to_owned()
}

fn id(value: &Value) -> Option<String> {
    value.get("id").and_then(Value::as_str).map(formed)
}

fn values(place: &str, one: &Value, two: &Value, found: &mut Vec<Difference>) {
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => objects(place, one, two, found),
        (Value::Array(one), Value::Array(two)) => lists(place, one, two, found),
        (Value::String(one), Value::String(two)) if formed(one) == formed(two) => {}
        _ if one == two => {}
        _ => found.push(Difference { place: place.to_owned(), kind: Kind::Other, detail: format!("{one} and {two}") }),
    }
}

fn objects(place: &str, one: &Map<String, Value>, two: &Map<String, Value>, found: &mut Vec<Difference>) {
    for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
        let place = format!("{place}/{name}");
        let only = |kind, value: &Value| Difference { place: place.clone(), kind, detail: value.to_string().chars().take(80).collect() };
        match (one.get(name), two.get(name)) {
            (Some(one), Some(two)) => values(&place, one, two, found),
            (Some(one), None) => found.push(only(Kind::Gone, one)),
            (None, Some(two)) => found.push(only(Kind::New, two)),
            (None, None) => {}
        }
    }
}

fn lists(place: &str, one: &[Value], two: &[Value], found: &mut Vec<Difference>) {
    let inner = format!("{place}/[]");
    let ids = |list: &[Value]| list.iter().map(id).collect::<Option<Vec<_>>>();
    if let (Some(first), Some(second)) = (ids(one), ids(two)) {
        if first != second {
            found.push(Difference { place: "rows".to_owned(), kind: Kind::Other, detail: format!("{first:?} and {second:?}") });
        }
        // What both lists hold is compared whatever else differs.
        for (key, value) in first.iter().zip(one) {
            if let Some(at) = second.iter().position(|other| other == key) {
                values(&inner, value, &two[at], found);
            }
        }
        return;
    }
    if one.len() != two.len() {
        found.push(Difference { place: place.to_owned(), kind: Kind::Other, detail: format!("{} and {} items", one.len(), two.len()) });
    }
    for (one, two) in one.iter().zip(two) {
        values(&inner, one, two, found);
    }
}
