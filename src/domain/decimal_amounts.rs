//! Decimal amounts of money. An amount is parsed from the text of the JSON number and not from an `f64`, which may be rounded already: for
//! example, the `f64` of `0.1000000000000000000001` is the same as that of `0.1`.

use serde_json::Value;

use super::tickets::is_revenue;

/// Returns the form in which an amount is stored. `text` is a JSON number. A whole amount is stored without a decimal point. Returns `None`
/// if the amount is negative or has too many digits.
pub fn amount(text: &str) -> Option<Value> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let negative = mantissa.starts_with('-');
    let (whole, decimals) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits = format!("{whole}{decimals}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some(Value::from(0));
    }
    let dropped = digits.len() - digits.trim_end_matches('0').len();
    // The power of ten of the last significant digit: 2 for `1500`, -1 for `1.5`. The next check limits it, since a whole number is written
    // with this number of zeros: `1e999999999` would need a billion of them.
    let exponent =
        exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(decimals.len()).ok()?)?.checked_add(i64::try_from(dropped).ok()?)?;
    if negative || significant.len() > 15 || !(-4..15).contains(&exponent) {
        return None;
    }
    let value = match usize::try_from(exponent) {
        Ok(zeros) => Value::from(format!("{significant}{}", "0".repeat(zeros)).parse::<u64>().ok()?),
        // An `f64` keeps up to 15 significant digits unchanged.
        Err(_) => Value::from(format!("{significant}e{exponent}").parse::<f64>().ok()?),
    };
    Some(value).filter(is_revenue)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_exact_or_refused() {
        for (text, stored) in [
            ("0", json!(0)),
            ("-0", json!(0)),
            ("-0.000e7", json!(0)),
            ("0e99999999999999999999", json!(0)),
            ("12.50", json!(12.5)),
            ("1250E-2", json!(12.5)),
            ("3.0", json!(3)),
            ("1e14", json!(100_000_000_000_000_i64)),
            ("1.5e+2", json!(150)),
            ("100000000000000000000000e-20", json!(1000)),
            ("0.0001", json!(0.0001)),
            ("0.00010000000000000000000", json!(0.0001)),
            ("8.1", json!(8.1)),
            ("999999999999999", json!(999_999_999_999_999_i64)),
            ("99999999999.9999", json!(99_999_999_999.999_9)),
        ] {
            assert_eq!(amount(text), Some(stored), "{text}");
        }
        for text in [
            "-1",
            "-0.0001",
            "0.00001",
            "1e-5",
            "1e15",
            "1e300",
            "1e-99999999999999999999",
            "1e99999999999999999999",
            "1000000000000000",
            "123456789012.12345",
            "12345678901234.56",
            "0.1000000000000000000001",
            "1.00000000000000000001",
            "9007199254740993",
        ] {
            assert_eq!(amount(text), None, "{text}");
        }
    }
}
