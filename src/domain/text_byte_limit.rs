//! Length limit, in bytes of UTF-8, of texts for which the API contract states no limit.

use serde_json::Value;

/// The maximum length of a text in a request or a record, if the contract states no limit for the text. The bodies of e-mails and the texts
/// of inbound messages are exempt: only the size of the request body limits them.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Returns an error text if a text of this length is too long; `None` if the length is permitted.
pub fn too_long(bytes: usize) -> Option<String> {
    (bytes > MAX_TEXT_BYTES).then(|| format!("is {bytes} bytes long in UTF-8; the most is {MAX_TEXT_BYTES}"))
}

/// Returns the total length of all texts in a JSON value, in bytes.
pub fn bytes_of_texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of_texts).sum(),
        Value::Object(members) => members.values().map(bytes_of_texts).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_byte_limit_counts_all_texts_in_a_value() {
        for (value, bytes) in [(json!("ก"), 3), (json!(["a", "bc"]), 3), (json!([1, true, null]), 0), (json!({"a": ["x", {"b": "y"}]}), 2)]
        {
            assert_eq!(bytes_of_texts(&value), bytes, "{value}");
        }
        assert_eq!(too_long(MAX_TEXT_BYTES), None);
        assert!(too_long(MAX_TEXT_BYTES + 1).is_some_and(|reason| reason.contains("65537 bytes")));
    }
}
