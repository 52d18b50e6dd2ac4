//! The results of tools: their form, their limit, and how long texts are cut.

use serde_json::{Value, json};

use super::{operations::Answer, schemas::size, untrusted};

/// The largest result, in bytes of JSON.
pub const MAX_BYTES: usize = 32 * 1024;

/// The room that the note and the cursor of a list take.
const RESERVED: usize = 1024;

/// The lengths, in characters, to which the texts of a result are cut until it fits.
const CUTS: [usize; 4] = [2_000, 500, 200, 50];

/// Says that a call was not carried out again.
pub const REPLAYED: &str = "This is the answer of an equal call within the last 24 hours; nothing was done again.";

/// The form of a result: a record as it is, records as a list.
pub fn of(answer: Answer) -> Value {
    let mut data = answer.data;
    untrusted::clean(&mut data);
    if !data.is_array() {
        return data;
    }
    let mut result = json!({ "items": data });
    if let Some(cursor) = answer.next_cursor {
        result["nextCursor"] = cursor.into();
    }
    result
}

/// How many items of a list fit into a result, if not all do; at least one.
pub fn fitting(result: &Value) -> Option<usize> {
    if size(result) <= MAX_BYTES {
        return None;
    }
    let items = result["items"].as_array()?;
    let mut room = MAX_BYTES - RESERVED;
    let fits = items.iter().take_while(|item| {
        let bytes = size(item) + 1;
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    });
    Some(fits.count().max(1))
}

/// Cuts the texts of a result until it fits. If texts alone do not suffice, items are left out.
pub fn limited(mut result: Value) -> Value {
    for chars in CUTS {
        if size(&result) <= MAX_BYTES {
            return result;
        }
        cut(&mut result, chars);
    }
    if let Some(fewer) = fitting(&result)
        && let Some(items) = result["items"].as_array_mut()
    {
        let whole = items.len();
        items.truncate(fewer);
        result["note"] = format!("The list holds {fewer} of {whole} records, since a result is at most 32 kB; narrow the input.").into();
    }
    result
}

/// Cuts every text below a value, and says so at its end.
pub fn cut(value: &mut Value, chars: usize) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(chars) {
                let whole = text.chars().count();
                text.truncate(end);
                text.push_str(&format!(" … [cut after {chars} of {whole} characters]"));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut(item, chars)),
        Value::Object(members) => members.values_mut().for_each(|member| cut(member, chars)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cut_to_its_limit() {
        let long = "ก".repeat(9_000);
        let result = limited(json!({ "items": vec![json!({ "id": "m1", "text": long }); 20] }));
        assert!(size(&result) <= MAX_BYTES, "{}", size(&result));
        assert_eq!(result["items"].as_array().unwrap().len(), 20);
        assert!(result["items"][0]["text"].as_str().unwrap().ends_with("characters]"));
        let many = limited(json!({ "items": vec![json!({ "id": "0123456789" }); 9_000] }));
        assert!(size(&many) <= MAX_BYTES && many["note"].is_string());
        let one = limited(json!({ "id": "c1", "note": "x".repeat(60_000) }));
        assert!(size(&one) <= MAX_BYTES);
    }

    #[test]
    fn a_list_says_how_many_items_fit() {
        assert_eq!(fitting(&json!({ "items": ["a"] })), None);
        let result = json!({ "items": vec!["x".repeat(10_000); 10] });
        assert_eq!(fitting(&result), Some(3));
        assert_eq!(fitting(&json!({ "items": vec!["x".repeat(90_000); 10] })), Some(1));
    }
}
