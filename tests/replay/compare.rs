//! The places where two answers to one request differ. Values that depend on time or chance are compared by their form.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value, json};

use crate::client::Answer;

/// A place where the answers differ: `status`, `header NAME`, `rows` (the records of a list and their order), or a pointer into the body
/// with `[]` for any item.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub place: String,
    /// The values of the older and the newer revision at this place; null if there is none.
    pub sides: [Value; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "differs at {}: {}", self.place, json!(self.sides))
    }
}

/// Headers that belong to the exchange rather than to the answer.
const OF_THE_EXCHANGE: [&str; 4] = ["date", "content-length", "connection", "transfer-encoding"];

pub fn answers([older, newer]: &[Answer; 2]) -> Vec<Difference> {
    if older.status != newer.status {
        // If the status differs, all other differences follow from that.
        return vec![Difference { place: "status".to_owned(), sides: [summary(older), summary(newer)] }];
    }
    let mut found = Vec::new();
    let (one, two) = (headers(older), headers(newer));
    for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
        let of = |headers: &BTreeMap<String, Value>| headers.get(name).cloned().unwrap_or_default();
        let sides = [of(&one), of(&two)];
        if sides[0] != sides[1] {
            found.push(Difference { place: format!("header {name}"), sides });
        }
    }
    match (serde_json::from_str(&older.text), serde_json::from_str(&newer.text)) {
        (Ok(one), Ok(two)) => values("", &one, &two, &mut found),
        _ if older.text == newer.text => {}
        _ => found.push(Difference { place: "body".to_owned(), sides: [json!(older.text), json!(newer.text)] }),
    }
    let mut once: Vec<Difference> = Vec::new();
    for difference in found {
        if !once.contains(&difference) {
            once.push(difference);
        }
    }
    once
}

/// A short form of an answer: its status, and the reason of a failure or the ids of a success.
fn summary(answer: &Answer) -> Value {
    let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    let said = match (&body["error"]["message"], &body["data"]) {
        (Value::String(message), _) => json!(message),
        (_, Value::Array(rows)) => rows.iter().map(id).collect(),
        (_, data) => id(data).map_or_else(|| data.clone(), Value::from),
    };
    json!([answer.status, said])
}

/// The headers by name, each with all its values.
fn headers(answer: &Answer) -> BTreeMap<String, Value> {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in answer.headers.iter().filter(|(name, _)| !OF_THE_EXCHANGE.contains(&name.as_str())) {
        let chance = ["x-request-id", "x-pagination-next-cursor"].contains(&name.as_str()) && !value.is_empty();
        all.entry(name.clone()).or_default().push(if chance { "chance" } else { value });
    }
    let short = |values: Vec<&str>| if let [one] = values[..] { json!(one) } else { json!(values) };
    all.into_iter().map(|(name, values)| (name, short(values))).collect()
}

/// The form in which a value is compared.
fn shown(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| json!(formed(text)))
}

/// Placeholders for a recent time, one per format.
pub const RECENT_INSTANT: &str = "a recent instant";
pub const RECENT_MILLISECONDS: &str = "recent milliseconds";

/// The form in which a text is compared: the whole text, or a placeholder if it depends on chance.
fn formed(text: &str) -> String {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<_> = text.split('-').collect();
    // A UUIDv7 was made by a server.
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
        return RECENT_INSTANT.to_owned();
    }
    if text.len() == 13 && text.parse::<i64>().is_ok_and(|millis| (millis - now).abs() < 3_600_000) {
        return RECENT_MILLISECONDS.to_owned();
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
        _ if shown(one) == shown(two) => {}
        _ => found.push(Difference { place: place.to_owned(), sides: [shown(one), shown(two)] }),
    }
}

fn objects(place: &str, one: &Map<String, Value>, two: &Map<String, Value>, found: &mut Vec<Difference>) {
    for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
        let of = |object: &Map<String, Value>| object.get(name).cloned().unwrap_or_default();
        values(&format!("{place}/{name}"), &of(one), &of(two), found);
    }
}

fn lists(place: &str, one: &[Value], two: &[Value], found: &mut Vec<Difference>) {
    let inner = format!("{place}/[]");
    let ids = |list: &[Value]| list.iter().map(id).collect::<Option<Vec<_>>>();
    if let (Some(first), Some(second)) = (ids(one), ids(two)) {
        if first != second {
            let place = if place == "/data" { "rows" } else { place };
            found.push(Difference { place: place.to_owned(), sides: [json!(first), json!(second)] });
        }
        // Records that are in both lists are compared in any case. All ids that a server made have the same placeholder, and keep their
        // order.
        let mut rest: Vec<_> = second.iter().zip(two).collect();
        for (key, value) in first.iter().zip(one) {
            if let Some(at) = rest.iter().position(|(other, _)| *other == key) {
                values(&inner, value, rest.remove(at).1, found);
            }
        }
        return;
    }
    if one.len() != two.len() {
        found.push(Difference { place: place.to_owned(), sides: [json!(one), json!(two)] });
    }
    for (one, two) in one.iter().zip(two) {
        values(&inner, one, two, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = body.to_string();
        Answer { request: String::new(), status, headers, length: text.len(), text }
    }

    fn places(older: Answer, newer: Answer) -> Vec<String> {
        answers(&[older, newer]).into_iter().map(|difference| difference.place).collect()
    }

    #[test]
    fn a_doubled_header_is_a_difference() {
        let body = json!({"data": []});
        let (once, twice) = ([("x-a", "1")], [("x-a", "1"), ("x-a", "1")]);
        assert_eq!(places(answer(200, &once, &body), answer(200, &twice, &body)), ["header x-a"]);
        assert_eq!(places(answer(200, &twice, &body), answer(200, &twice, &body)), [""; 0]);
    }

    #[test]
    fn rows_that_a_server_made_are_compared_in_order() {
        let made = |last: u8| format!("01a1fec5-daf8-7403-8f14-4d07efbb590{last}");
        let list = |first: &str, second: &str| json!({"data": [{"id": made(1), "text": first}, {"id": made(2), "text": second}]});
        let told = |older: Value, newer: Value| places(answer(200, &[], &older), answer(200, &[], &newer));
        assert_eq!(told(list("a", "b"), list("a", "b")), [""; 0]);
        assert_eq!(told(list("a", "b"), list("a", "c")), ["/data/[]/text"]);
        assert_eq!(told(list("a", "b"), list("b", "a")), ["/data/[]/text", "/data/[]/text"]);
        assert_eq!(told(list("a", "b"), json!({"data": [{"id": made(1), "text": "a"}]})), ["rows"]);
    }

    #[test]
    fn a_status_stands_with_what_was_answered() {
        let (refused, found) = (json!({"error": {"message": "no"}}), json!({"data": [{"id": "t"}]}));
        let differences = answers(&[answer(400, &[], &refused), answer(200, &[], &found)]);
        assert_eq!(differences, [Difference { place: "status".to_owned(), sides: [json!([400, "no"]), json!([200, ["t"]])] }]);
    }
}
