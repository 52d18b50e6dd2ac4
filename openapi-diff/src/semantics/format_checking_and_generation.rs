//! Checks values against formats, and generates values of formats. For a format that is not listed here, the result is undecided.

use serde_json::{Value, json};

use super::instances::SeededRandom;

/// Returns whether a value conforms to a format. None if that is undecided. Null, booleans, lists and objects conform to each format,
/// because formats apply to strings and numbers only.
pub(super) fn has_format(format: &str, value: &Value) -> Option<bool> {
    match (format, value) {
        ("int32", Value::Number(number)) => {
            Some(number.as_f64().is_some_and(|number| (-2_147_483_648.0..2_147_483_648.0).contains(&number)))
        }
        ("int64", Value::Number(number)) => Some(number.as_f64().is_some_and(|number| number.abs() < 9.3e18)),
        ("float" | "double", Value::Number(_)) => Some(true),
        ("password" | "binary", Value::String(_)) => Some(true),
        ("byte", Value::String(text)) => {
            let plain = text.trim_end_matches('=');
            let base64 = plain.chars().all(|c| c.is_ascii_alphanumeric() || "+/".contains(c));
            Some(base64 && text.len() % 4 == 0 && text.len() - plain.len() < 3)
        }
        ("uuid", Value::String(text)) => Some(shaped(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")),
        ("date", Value::String(text)) => Some(is_date(text)),
        ("date-time", Value::String(text)) if text.len() == 20 => {
            Some(text.ends_with('Z') && text.get(10..11) == Some("T") && text.get(..10).is_some_and(is_date))
        }
        ("date-time" | "email" | "uri" | "ipv4" | "ipv6", Value::String(text)) if !text.contains(['-', '@', ':', '.']) => Some(false),
        (_, Value::String(_) | Value::Number(_)) => None,
        _ => Some(true),
    }
}

fn shaped(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(c, form)| if form == 'x' { c.is_ascii_hexdigit() } else { c == form })
}

fn is_date(text: &str) -> bool {
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<u32>().ok());
    let dashes = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    dashes
        && number(0, 4).is_some()
        && number(5, 7).is_some_and(|month| (1..=12).contains(&month))
        && number(8, 10).is_some_and(|day| (1..=31).contains(&day))
}

/// Generates a value of a format. None for a format that is not listed here.
pub(super) fn example_of_format(format: &str, dice: &mut SeededRandom) -> Option<Value> {
    let number = dice.roll(28) + 1;
    Some(match format {
        "date" => json!(format!("2020-01-{number:02}")),
        "date-time" => json!(format!("2020-01-{number:02}T00:00:00Z")),
        "uuid" => json!(format!("00000000-0000-4000-8000-0000000000{number:02}")),
        "email" => json!(format!("a{number}@example.com")),
        "uri" | "url" => json!(format!("https://example.com/{number}")),
        "ipv4" => json!(format!("192.0.2.{number}")),
        "ipv6" => json!(format!("2001:db8::{number}")),
        "byte" => json!("YWJj"),
        _ => return None,
    })
}
