//! Exact numbers in JSON: deserialisation refuses a number whose value would change when it is stored, for example 0.10000000000000000001.
//! A number is stored as a 64-bit integer or, if it is not such an integer, as a double (64-bit floating-point number).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, value::RawValue};

/// A JSON value whose numbers have exactly the values that were sent. A number whose value would change is refused.
#[derive(Debug)]
pub struct ExactJson(pub Value);

impl From<ExactJson> for Value {
    fn from(ExactJson(value): ExactJson) -> Self {
        value
    }
}

impl<'de> Deserialize<'de> for ExactJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let value = serde_json::from_str(raw.get()).map_err(de::Error::custom)?;
        match changed(raw.get()) {
            None => Ok(Self(value)),
            Some(number) => Err(de::Error::custom(format_args!(
                "holds {}, which cannot be kept exactly; the nearest is {}",
                shown(number),
                Value::from(number.parse::<f64>().unwrap_or_default())
            ))),
        }
    }
}

/// An error text shows at most this many characters of a refused number.
const SHOWN: usize = 40;

fn shown(number: &str) -> Cow<'_, str> {
    number.get(..SHOWN).map_or(number.into(), |beginning| format!("{beginning}…").into())
}

/// Returns the first number of a JSON text whose value would change when the text is parsed.
fn changed(json: &str) -> Option<&str> {
    let (mut rest, mut in_text) = (json, false);
    loop {
        if in_text {
            let end = rest.find(['"', '\\'])?;
            let escape = rest.as_bytes().get(end) == Some(&b'\\');
            // The character after a backslash is skipped, since it may be a quote.
            rest = rest.get(end + if escape { 2 } else { 1 }..)?;
            in_text = escape;
            continue;
        }
        let start = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            (rest, in_text) = (text, true);
            continue;
        }
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E')).unwrap_or(rest.len());
        if !is_kept(&rest[..end]) {
            return Some(&rest[..end]);
        }
        rest = &rest[end..];
    }
}

/// Whether a number keeps its value when it is parsed and then written as JSON again. A number is parsed as a 64-bit integer if it is one,
/// and otherwise as a double. This check writes the double with `serde_json`, as the responses do. Rust's standard library may choose other
/// digits: a double can lie in the middle between two decimals of 17 digits.
fn is_kept(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let Ok(double) = number.parse::<f64>() else { return false };
    normal(number).is_some_and(|sent| normal(&Value::from(double).to_string()).is_some_and(|kept| sent == kept))
}

/// Returns the digits of a decimal without leading and trailing zeros, and the exponent of the last digit. The sign is ignored. `None` if
/// the exponent does not fit into 64 bits.
fn normal(number: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole.trim_start_matches('-'), fraction].concat();
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some((String::new(), 0));
    }
    let exponent = exponent.parse::<i64>().ok()?.checked_add((digits.len() - significant.len()) as i64 - fraction.len() as i64)?;
    Some((significant.trim_start_matches('0').to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::Config};

    use super::*;

    fn refused(json: &str) -> Option<String> {
        serde_json::from_str::<ExactJson>(json).err().map(|error| error.to_string())
    }

    #[test]
    fn a_number_whose_value_would_change_when_parsed_is_refused() {
        for kept in [
            "0",
            "-0",
            "-0.0",
            "0.1",
            "0.30000000000000004",
            "1.50",
            "100e-2",
            "1E+2",
            "0e99",
            "-1.6619713713377555e-209",
            "5e-324",
            "9007199254740993",
            "18446744073709551615",
            "1e23",
            "1.7976931348623157e308",
            "763774.6189766944",
            "-1179202666597814.2",
            r#"[1, {"a": 2.5, "0.10000000000000000001": "\"0.10000000000000000001\\"}, "0.10000000000000000001", null, true]"#,
        ] {
            assert_eq!(refused(kept), None, "{kept}");
        }
        for (json, number) in [
            ("0.10000000000000000001", "0.10000000000000000001"),
            ("0.3000000000000000444", "0.3000000000000000444"),
            ("-1234567890123.45678", "-1234567890123.45678"),
            ("1e-400", "1e-400"),
            ("36893488147419103233", "36893488147419103233"),
            ("9007199254740992.5", "9007199254740992.5"),
            (r#"["\"", {"a\\": 0.1}, [2, 1.00000000000000000001]]"#, "1.00000000000000000001"),
        ] {
            let reason = refused(json).unwrap_or_default();
            assert!(reason.starts_with(&format!("holds {number}, which cannot be kept exactly; the nearest is ")), "{json}: {reason}");
        }
        let long = refused(&format!("0.{}1", "3".repeat(100_000))).unwrap_or_default();
        assert!(long.len() < 200 && long.contains('…'), "{long}");
    }

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn numbers_that_the_server_serialises_are_accepted(number in any::<f64>(), whole in any::<i64>()) {
            for value in [Value::from(number), Value::from(whole), Value::from(vec![number, 0.1])] {
                prop_assert_eq!(refused(&value.to_string()), None);
            }
        }

        #[test]
        fn fifteen_digits_are_accepted_and_excess_precision_is_refused(digits in 100_000_000_000_000..=999_999_999_999_999_u64, point in 1..15_usize) {
            let text = digits.to_string();
            let number = format!("{}.{}", &text[..point], &text[point..]);
            prop_assert_eq!(refused(&number), None);
            let longer = format!("{number}000000000001");
            prop_assert!(refused(&longer).is_some());
        }
    }
}
