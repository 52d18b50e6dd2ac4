//! Compares the responses of two servers to one request. Recent times and generated ids are compared by their format only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chrono::DateTime;
use regex::Regex;
use serde_json::{Map, Value, json};

/// A response of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// Returns the first value of a header. The case of the name does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the body if it is JSON, else null.
    pub(super) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// A location at which two responses differ: `status`, `header NAME`, `body`, `rows` (the records of a list and their order), or a JSON
/// pointer into the body with `[]` for any item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub place: String,
    /// The values of the old and the new server at this location. Null means that there is no value.
    pub sides: [Value; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "differs at {}: {}", self.place, json!(self.sides))
    }
}

/// The settings of the comparison: which differing values of the two servers count as equal.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The present time, in Unix milliseconds. A time in a response that is within an hour of the present counts as recent. Recent times in
    /// the same format count as equal, because each server generates its own.
    pub now: i64,
    /// Two times that differ by at most this number of milliseconds count as equal, because the two servers are filled with data one after
    /// the other.
    pub times_within: i64,
    /// Patterns of generated texts, such as ids. Two texts that match the same pattern count as equal.
    pub chance: Vec<Regex>,
}

/// Response headers about the HTTP connection and transfer, which are not compared.
const OF_THE_EXCHANGE: [&str; 4] = ["date", "content-length", "connection", "transfer-encoding"];
/// Response headers whose value is generated for each response. The values are not compared, only whether both responses have one.
const BY_CHANCE: [&str; 2] = ["x-request-id", "x-pagination-next-cursor"];

/// Placeholders for a recent time in a response, one for each [`TimeFormat`].
pub(super) const RECENT_TIME: &str = "a recent time";
pub(super) const RECENT_MILLISECONDS: &str = "recent milliseconds";

const HOUR: i64 = 3_600_000;

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeFormat {
    Rfc3339,
    UnixMilliseconds,
}

fn time(text: &str) -> Option<(TimeFormat, i64)> {
    if text.len() == 13 {
        return text.parse().ok().map(|millis| (TimeFormat::UnixMilliseconds, millis));
    }
    DateTime::parse_from_rfc3339(text).ok().map(|time| (TimeFormat::Rfc3339, time.timestamp_millis()))
}

/// Whether a text is a UUID of version 7, such as a server generates for a new record.
fn is_uuid_v7(text: &str) -> bool {
    let form = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'7',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(form)
}

impl Comparison {
    /// Returns the differences between two responses. Equal differences, for example of several items of a list, are returned once.
    pub(super) fn differences(&self, [old, new]: &[Answer; 2]) -> Vec<Difference> {
        if old.status != new.status {
            // If the status differs, only the status is reported, because all other differences follow from it.
            return vec![Difference { place: "status".to_owned(), sides: [self.summary(old), self.summary(new)] }];
        }
        let mut found = Vec::new();
        let (one, two) = (headers(old), headers(new));
        for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
            let of = |headers: &BTreeMap<String, Value>| headers.get(name).cloned().unwrap_or_default();
            self.values(&format!("header {name}"), &of(&one), &of(&two), &mut found);
        }
        match (serde_json::from_str(&old.text), serde_json::from_str(&new.text)) {
            (Ok(one), Ok(two)) => self.values("", &one, &two, &mut found),
            _ if old.text == new.text => {}
            _ => found.push(Difference { place: "body".to_owned(), sides: [json!(old.text), json!(new.text)] }),
        }
        let mut once: Vec<Difference> = Vec::new();
        for difference in found {
            if !once.contains(&difference) {
                once.push(difference);
            }
        }
        once
    }

    /// Returns a short form of a response: its status, and either the error message or the ids of the returned records.
    fn summary(&self, answer: &Answer) -> Value {
        let body = answer.body();
        let content = match (&body["error"]["message"], &body["data"]) {
            (Value::String(message), _) => json!(message),
            (_, Value::Array(rows)) => rows.iter().map(|row| self.id(row)).collect(),
            (_, data) => self.id(data).map_or_else(|| data.clone(), Value::from),
        };
        json!([answer.status, content])
    }

    /// Returns the form in which a text is compared: the text itself, or a placeholder for an id, a recent time or a text that matches a
    /// pattern of `chance`.
    fn form(&self, text: &str) -> String {
        if is_uuid_v7(text) {
            return "an id".to_owned();
        }
        if let Some(pattern) = self.chance.iter().find(|pattern| pattern.is_match(text)) {
            return pattern.to_string();
        }
        match time(text) {
            Some((format, millis)) if (millis - self.now).abs() < HOUR => match format {
                TimeFormat::Rfc3339 => RECENT_TIME.to_owned(),
                TimeFormat::UnixMilliseconds => RECENT_MILLISECONDS.to_owned(),
            },
            _ => text.to_owned(),
        }
    }

    fn shown(&self, value: &Value) -> Value {
        value.as_str().map_or_else(|| value.clone(), |text| json!(self.form(text)))
    }

    fn id(&self, value: &Value) -> Option<String> {
        value.get("id").and_then(Value::as_str).map(|id| self.form(id))
    }

    /// Whether two values are times in the same format that differ by at most `times_within`.
    fn are_near(&self, one: &Value, two: &Value) -> bool {
        let (Some(one), Some(two)) = (one.as_str().and_then(time), two.as_str().and_then(time)) else { return false };
        one.0 == two.0 && one.1.abs_diff(two.1) <= self.times_within.unsigned_abs()
    }

    fn values(&self, place: &str, one: &Value, two: &Value, found: &mut Vec<Difference>) {
        match (one, two) {
            (Value::Object(one), Value::Object(two)) => self.objects(place, one, two, found),
            (Value::Array(one), Value::Array(two)) => self.lists(place, one, two, found),
            _ if self.shown(one) == self.shown(two) || self.are_near(one, two) => {}
            _ => found.push(Difference { place: place.to_owned(), sides: [self.shown(one), self.shown(two)] }),
        }
    }

    fn objects(&self, place: &str, one: &Map<String, Value>, two: &Map<String, Value>, found: &mut Vec<Difference>) {
        for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
            let of = |object: &Map<String, Value>| object.get(name).cloned().unwrap_or_default();
            self.values(&format!("{place}/{name}"), &of(one), &of(two), found);
        }
    }

    fn lists(&self, place: &str, one: &[Value], two: &[Value], found: &mut Vec<Difference>) {
        let inner = format!("{place}/[]");
        let ids = |list: &[Value]| list.iter().map(|row| self.id(row)).collect::<Option<Vec<_>>>();
        if let (Some(first), Some(second)) = (ids(one), ids(two)) {
            if first != second {
                let place = if ["", "/data"].contains(&place) { "rows" } else { place };
                found.push(Difference { place: place.to_owned(), sides: [json!(first), json!(second)] });
            }
            // A record is compared with the record that has the same id in the other list, at any position. All ids that a server
            // generated have the same placeholder, so records with such ids are compared in the order of their lists.
            let mut rest: Vec<_> = second.iter().zip(two).collect();
            for (key, value) in first.iter().zip(one) {
                if let Some(at) = rest.iter().position(|(other, _)| *other == key) {
                    self.values(&inner, value, rest.remove(at).1, found);
                }
            }
            return;
        }
        if one.len() != two.len() {
            found.push(Difference { place: place.to_owned(), sides: [json!(one), json!(two)] });
        }
        for (one, two) in one.iter().zip(two) {
            self.values(&inner, one, two, found);
        }
    }
}

/// Returns the headers that are compared, by name, each with all its values.
fn headers(answer: &Answer) -> BTreeMap<String, Value> {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in &answer.headers {
        let name = name.to_ascii_lowercase();
        if OF_THE_EXCHANGE.contains(&name.as_str()) {
            continue;
        }
        let chance = BY_CHANCE.contains(&name.as_str()) && !value.is_empty();
        all.entry(name).or_default().push(if chance { "chance" } else { value });
    }
    let short = |values: Vec<&str>| if let [one] = values[..] { json!(one) } else { json!(values) };
    all.into_iter().map(|(name, values)| (name, short(values))).collect()
}
