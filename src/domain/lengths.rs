//! Length limits of texts for which the contract gives none, in bytes of UTF-8.

use serde_json::Value;

use super::{
    entries::Entries,
    records::{Comment, Contact, Record, Ticket},
};

/// The limit of a text in a request or a record where the contract gives none. E-mails and channel messages may be as long
/// as a request body.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The reason, if a text of this length is too long.
pub fn too_long(bytes: usize) -> Option<String> {
    (bytes > MAX_TEXT_BYTES).then(|| format!("is {bytes} bytes long in UTF-8; the most is {MAX_TEXT_BYTES}"))
}

/// The total length of all texts in a JSON value.
pub fn bytes_of_texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of_texts).sum(),
        Value::Object(members) => members.values().map(bytes_of_texts).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

impl Comment {
    /// The first text that is too long. The record was stored before the limit existed.
    pub fn too_long(&self) -> Option<TooLong> {
        TooLong::of("text", self.text.len())
    }
}

impl Ticket {
    pub fn too_long(&self) -> Option<TooLong> {
        values_too_long("ticketFields", &self.ticket_fields)
    }
}

impl Contact {
    pub fn too_long(&self) -> Option<TooLong> {
        let note = self.note.as_ref().and_then(|note| TooLong::of("note", note.len()));
        let addresses = self.addresses.iter().flatten().enumerate();
        let mut addresses = addresses.filter_map(|(place, address)| TooLong::of(&format!("addresses[{place}]"), address.len()));
        note.or_else(|| addresses.next()).or_else(|| self.custom_fields.as_ref().and_then(|fields| values_too_long("customFields", fields)))
    }
}

/// A text over the limit: its path in the record, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLong {
    pub place: String,
    pub reason: String,
}

impl TooLong {
    fn of(place: &str, bytes: usize) -> Option<Self> {
        too_long(bytes).map(|reason| Self { place: place.to_owned(), reason })
    }
}

fn values_too_long(place: &str, fields: &Entries) -> Option<TooLong> {
    fields.0.iter().find_map(|(key, value)| TooLong::of(&format!("{place}.{key}"), bytes_of_texts(value)))
}

impl Record {
    /// The first text that is too long.
    pub fn too_long(&self) -> Option<TooLong> {
        match self {
            Self::Contact(record) => record.too_long(),
            Self::Ticket(record) => record.too_long(),
            Self::Comment(record) => record.too_long(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_texts_of_a_value_count() {
        for (value, bytes) in [(json!("ก"), 3), (json!(["a", "bc"]), 3), (json!([1, true, null]), 0), (json!({"a": ["x", {"b": "y"}]}), 2)]
        {
            assert_eq!(bytes_of_texts(&value), bytes, "{value}");
        }
        assert_eq!(too_long(MAX_TEXT_BYTES), None);
        assert!(too_long(MAX_TEXT_BYTES + 1).is_some_and(|reason| reason.contains("65537 bytes")));
    }
}
