//! Parser of one input line. An error contains the path of the wrong property, such as `ticket.openedAt`.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::ImportError;
use crate::domain::{ndjson_records::RecordKind, ordered_object::Object};

/// A line whose record has not been parsed yet.
pub struct LineHeader<'a> {
    pub line: u64,
    pub kind: RecordKind,
    /// Set by an export for a record that is older than a validation rule and breaks it. Such a rule is not applied to the record.
    pub as_stored: bool,
    raw: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    record: &'a RawValue,
    // Exports of former builds call this property `oversized`.
    #[serde(default, rename = "asStored", alias = "oversized")]
    as_stored: bool,
}

impl<'a> LineHeader<'a> {
    pub fn of(line: u64, text: &'a str) -> Result<Self, ImportError> {
        let Object(outer): Object<Outer<'a>> = serde_json::from_str(text).map_err(|error| {
            let place = if error.is_data() { "" } else { "JSON" };
            ImportError::line(line, place, format!("{}; a line is {{\"kind\": …, \"record\": {{…}}}}", reason(&error)))
        })?;
        let kind = RecordKind::of(&outer.kind).ok_or_else(|| {
            let kinds: Vec<_> = RecordKind::ALL.iter().map(|kind| kind.name()).collect();
            ImportError::line(line, "kind", format!("`{}` is none of {}", outer.kind, kinds.join(", ")))
        })?;
        if has_nul(text) {
            return Err(ImportError::line(line, kind.name(), "must not contain the character U+0000"));
        }
        Ok(Self { line, kind, as_stored: outer.as_stored, raw: outer.record })
    }

    /// Parses the whole record.
    pub fn record<T: DeserializeOwned>(&self) -> Result<T, ImportError> {
        // The first parse does not track the path of a property, since that is slow. Only an invalid record is parsed again, to find the
        // path of the error.
        serde_json::from_str(self.raw.get()).map(|Object(record)| record).map_err(|_| self.failure::<T>())
    }

    /// Returns a string property of the record, if present.
    pub fn property(&self, name: &str) -> Option<String> {
        let record: serde_json::Value = serde_json::from_str(self.raw.get()).ok()?;
        Some(record.get(name)?.as_str()?.to_owned())
    }

    /// Parses only the id of the record.
    pub fn id(&self) -> Result<Cow<'a, str>, ImportError> {
        #[derive(Deserialize)]
        struct RecordId<'a> {
            #[serde(borrow)]
            id: Cow<'a, str>,
        }
        let Object(id): Object<RecordId<'a>> = serde_json::from_str(self.raw.get())
            .map_err(|error| ImportError::line(self.line, format!("{}.id", self.kind.name()), reason(&error)))?;
        Ok(id.id)
    }

    /// Returns the id of the conversation to which the record belongs, if it names one.
    pub fn conversation(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Belongs {
            conversation_id: String,
        }
        serde_json::from_str(self.raw.get()).ok().map(|Object(Belongs { conversation_id })| conversation_id)
    }

    fn failure<T: DeserializeOwned>(&self) -> ImportError {
        let mut reader = serde_json::Deserializer::from_str(self.raw.get());
        let Err(error) = serde_path_to_error::deserialize::<_, Object<T>>(&mut reader) else {
            return ImportError::line(self.line, self.kind.name(), "cannot be read");
        };
        let path = error.path().to_string();
        let mut place = self.kind.name().to_owned();
        if path != "." {
            place.push('.');
            place.push_str(&path);
        }
        let mut reason = reason(error.inner());
        if let Some(name) = quoted(&reason, "missing field `") {
            place = format!("{place}.{name}");
            reason = "is required".to_owned();
        } else if let Some(name) = quoted(&reason, "unknown field `") {
            if !place.ends_with(&format!(".{name}")) {
                place = format!("{place}.{name}");
            }
            let known = reason
                .split_once(", expected")
                .map_or(String::new(), |(_, known)| format!("; known are{}", known.trim_start_matches(" one of")));
            reason = format!("is not a property of a {}{known}", self.kind.name());
        }
        ImportError::line(self.line, place, reason)
    }
}

/// Returns the text between a prefix and the next backtick.
fn quoted<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    text.strip_prefix(beginning)?.split('`').next()
}

/// Returns the reason of a JSON error without the position that serde_json appends: the position is relative to the record, not to the
/// line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |end| text[..end].to_owned())
}

/// Returns whether a string of the line contains U+0000, which PostgreSQL cannot store.
fn has_nul(text: &str) -> bool {
    text.match_indices("\\u0000").any(|(at, _)| text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ndjson_records::{Message, Team};

    fn failure<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        LineHeader::of(7, text).and_then(|peek| peek.record::<T>()).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_path_and_the_reason() {
        for (text, expected) in [
            (r#"{"kind":"message","record":{"id":"a","sentAt":"yesterday"}}"#, "line 7: message.sentAt: must be an RFC 3339"),
            (r#"{"kind":"message","record":{"id":"a"}}"#, "line 7: message.conversationId: is required"),
            (r#"{"kind":"message","record":{"id":1}}"#, "line 7: message.id: invalid type: integer `1`, expected a string"),
            (r#"{"kind":"message","record":{"id":"a","images":["x",3]}}"#, "line 7: message.images[1]: invalid type"),
            (r#"{"kind":"message","record":{"id":"a","colour":"x"}}"#, "line 7: message.colour: is not a property of a message; known are"),
            (r#"{"kind":"message","record":{"id":"a\u0000"}}"#, "line 7: message: must not contain"),
            (r#"{"kind":"messages","record":{}}"#, "line 7: kind: `messages` is none of role, "),
            (r#"{"kind":"message"}"#, "line 7: missing field `record`; a line is"),
            (r#"["message",{"id":"a"}]"#, "line 7: invalid type: sequence, expected an object; a line is"),
            (r#"{"kind":"message","record":["a"]}"#, "line 7: message: invalid type: sequence, expected an object"),
            (r#"{"kind":"message","record":{}"#, "line 7: JSON: EOF while parsing"),
        ] {
            let failure = failure::<Message>(text);
            assert!(failure.starts_with(expected), "{failure}");
        }
        assert!(
            LineHeader::of(1, r#"{"kind":"team","record":{"id":"a","name":"\\u0000","users":[]}}"#)
                .and_then(|peek| peek.record::<Team>())
                .is_ok()
        );
    }
}
