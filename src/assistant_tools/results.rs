//! The results of MCP tools: their form, their size limit, and the cutting of long texts and lists.

use serde_json::{Value, json};

use super::{api_operation_calls::Input, prompt_injection, schemas::size};

/// The largest result, in bytes of JSON.
pub const MAX_BYTES: usize = 32 * 1024;

/// The number of bytes of a result that are reserved for the note and the cursors of a list.
const RESERVED: usize = 1024;

/// The limits that are applied in turn until a result is small enough: the characters of a text, and the entries of a list.
const RESULT_CUT_STEPS: [(usize, usize); 5] = [(2_000, 200), (500, 50), (200, 20), (100, 5), (60, 1)];

/// The note on a result that was stored by an earlier, equal call.
pub const REPLAYED: &str = "This is the answer of an equal call within the last 24 hours; nothing was done again.";

/// Removes hidden characters from data, and cuts its texts to `chars` characters.
pub fn cleaned(mut data: Value, chars: usize) -> Value {
    prompt_injection::clean(&mut data);
    cut(&mut data, chars, usize::MAX);
    data
}

/// Makes a page of the records that fit into `bytes` bytes, and the cursor that continues after them.
pub fn page(input: &Input, records: Vec<Value>, next_cursor: Option<String>, bytes: usize) -> Value {
    let whole = records.len();
    let records: Vec<Value> = records.into_iter().skip(input.skip).collect();
    let (fits, left) = (fitting(&records, bytes), records.len());
    let mut result = json!({ "items": records.into_iter().take(fits).collect::<Vec<_>>() });
    if fits < left {
        let goes_on = if input.operation.is_paged() { "`nextCursor` goes on" } else { "narrow the input" };
        result["note"] = format!("These are {fits} of {whole} records of the page, since a result is at most 32 kB; {goes_on}.").into();
    }
    if input.operation.is_paged() {
        let cursor = if fits < left {
            Some(input.cursor(input.skip + fits, input.parameter("cursor").unwrap_or_default()))
        } else {
            next_cursor.map(|next| input.cursor(0, &next))
        };
        if let Some(cursor) = cursor {
            result["nextCursor"] = cursor.into();
        }
    }
    result
}

/// Returns how many of the records fit into `bytes` bytes, but at least 1. If a single record is too large, [`limited`] cuts it.
fn fitting(records: &[Value], bytes: usize) -> usize {
    let mut room = bytes.saturating_sub(RESERVED);
    let fits = records.iter().take_while(|record| {
        let bytes = size(record) + 1;
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    });
    fits.count().max(1)
}

/// Cuts the texts and lists in a result, more in each step of `RESULT_CUT_STEPS`, until the result is small enough or no step is left.
pub fn limited(mut result: Value) -> Value {
    for (chars, entries) in RESULT_CUT_STEPS {
        if size(&result) <= MAX_BYTES {
            return result;
        }
        match result.as_object_mut() {
            // [`page`] has already limited the number of records. So only texts and lists within the records are cut; the cursor and the
            // note stay complete.
            Some(list) if list.contains_key("items") => {
                for name in ["items", "comments"] {
                    let records = list.get_mut(name).and_then(Value::as_array_mut);
                    records.into_iter().flatten().for_each(|record| cut(record, chars, entries));
                }
            }
            _ => cut(&mut result, chars, entries),
        }
    }
    result
}

/// Returns whether a property is an id or a time, which would be useless if it were cut.
fn is_whole(name: &str) -> bool {
    name == "id" || name.ends_with("Id") || name.ends_with("At")
}

/// Cuts the texts and lists within a value, and appends a note to each text and each list of texts that was cut.
fn cut(value: &mut Value, chars: usize, entries: usize) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(chars) {
                let whole = text.chars().count();
                text.truncate(end);
                text.push_str(&format!(" … [cut after {chars} of {whole} characters]"));
            }
        }
        Value::Array(items) => {
            let whole = items.len();
            if whole > entries {
                items.truncate(entries);
                if items.iter().all(Value::is_string) {
                    items.push(format!("… [cut after {entries} of {whole} entries]").into());
                }
            }
            items.iter_mut().for_each(|item| cut(item, chars, entries));
        }
        Value::Object(members) => {
            members.iter_mut().filter(|(name, _)| !is_whole(name)).for_each(|(_, member)| cut(member, chars, entries));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_cut_to_the_limit_but_for_ids_and_times() {
        let urls: Vec<String> = (0..1_500).map(|i| format!("https://example.com/{i:060}")).collect();
        let id = "0".repeat(64);
        let record = json!({ "id": id, "sentAt": "2026-11-02T08:15:30.250Z", "text": "ก".repeat(60_000), "images": urls });
        for result in [json!({ "items": [record], "nextCursor": "c".repeat(200) }), record.clone()] {
            let result = limited(result);
            assert!(size(&result) <= MAX_BYTES, "{}", size(&result));
            let shown = if result["items"].is_array() { &result["items"][0] } else { &result };
            assert_eq!((&shown["id"], &shown["sentAt"]), (&record["id"], &record["sentAt"]));
            assert!(shown["text"].as_str().unwrap().ends_with("of 60000 characters]"), "{}", shown["text"]);
            assert!(result["nextCursor"].is_null() || result["nextCursor"] == "c".repeat(200));
        }
    }

    #[test]
    fn as_many_records_are_taken_as_fit() {
        let records = |bytes: usize| vec![Value::from("x".repeat(bytes)); 10];
        assert_eq!(
            [fitting(&records(10), MAX_BYTES), fitting(&records(10_000), MAX_BYTES), fitting(&records(90_000), MAX_BYTES)],
            [10, 3, 1]
        );
    }
}
