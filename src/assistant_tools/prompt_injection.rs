//! Protection against prompt injection: a list of the untrusted properties in results, and the removal of hidden characters.
//!
//! A contact (a customer) can write an instruction to the AI assistant into a message, and hide it from the people who read the message.
//! Only the properties in [`MEMBERS`] contain texts that contacts wrote; the server's instructions to assistants repeat this list.
//! Characters that a person cannot see are removed.

use serde_json::{Map, Value};

/// The properties of results whose texts may come from a contact or a channel.
pub const MEMBERS: &[&str] = &[
    "text",
    "snippet",
    "payload",
    "images",
    "sender",
    "displayName",
    "referenceId",
    "emailSubject",
    "firstName",
    "lastName",
    "fullName",
    "email",
    "phone",
    "secondaryEmails",
    "secondaryPhones",
    "addresses",
    "note",
    "customFields",
    "ticketFields",
    "conversation",
    "metadata",
];

/// Returns whether a person cannot see the character. Such characters are, for example, control characters of terminals, characters that
/// change the direction of text, characters without width, and Unicode tag characters, in which a whole text can be hidden.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{2800}' | '\u{16fe4}' | '\u{1d159}' | '\u{13430}'..='\u{1345f}' => true,
        // Private use characters, plane 14 of Unicode, and code points that are not characters.
        '\u{e000}'..='\u{f8ff}' | '\u{e0000}'.. | '\u{fdd0}'..='\u{fdef}' => true,
        _ if u32::from(c) & 0xfffe == 0xfffe => true,
        _ => c.is_control(),
    }
}

/// Removes hidden characters from every string and every property name within a value.
pub fn clean(value: &mut Value) {
    match value {
        Value::String(text) => text.retain(|c| !is_hidden(c)),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(members) => {
            members.values_mut().for_each(clean);
            if members.keys().any(|name| name.contains(is_hidden)) {
                let cleaned: Map<_, _> =
                    std::mem::take(members).into_iter().map(|(name, value)| (name.replace(is_hidden, ""), value)).collect();
                *members = cleaned;
            }
        }
        _ => {}
    }
}

/// Replaces each hidden character by its code point in brackets, for the user who approves the text.
pub fn spelled_out(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) {
            shown.push_str(&format!("[U+{:04X}]", u32::from(c)));
        } else {
            shown.push(c);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_removed_and_visible_ones_stay() {
        let hidden = "a\u{e0041}\u{e0042}b\u{202e}c\u{200b}d\u{2066}e\u{feff}f\u{ad}g\u{fe0f}h\u{7}i";
        let mut value = json!({ "te\u{200b}xt": [hidden, { "x": hidden }], "n": 1 });
        clean(&mut value);
        assert_eq!(value, json!({ "text": ["abcdefghi", { "x": "abcdefghi" }], "n": 1 }));
        for visible in ["สวัสดีค่ะ", "日本語\n\tok", "Zoë 👍", "ไม่เอา"] {
            let mut value = json!(visible);
            clean(&mut value);
            assert_eq!(value, json!(visible));
        }
        assert_eq!(spelled_out("a\u{202e}b"), "a[U+202E]b");
    }
}
