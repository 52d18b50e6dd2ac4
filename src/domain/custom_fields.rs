//! Definitions of ticket fields and contact fields (custom fields), and the validation of field values (API contract, sections 2.4 and
//! 2.7).

use std::{borrow::Cow, collections::HashSet};

use chrono::NaiveDate;
use serde_json::Value;
use url::Url;

use super::{
    ids::{AccountId, FieldId},
    regex_cache,
    text_byte_limit::{bytes_of_texts, too_long},
    time::Timestamp,
    unicode_text::fold,
};

/// A ticket field's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketField {
    pub base: Field,
    pub is_required: bool,
    /// The conditions under which the field is shown: the text of a JSON array.
    pub show_conditions: Option<String>,
    /// The accounts for whose tickets the field is shown. Absent: all accounts.
    pub account_ids: Option<Vec<AccountId>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A ticket field, with its accounts if they were requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketFieldView {
    pub field: TicketField,
    pub accounts: Option<Vec<super::stores_and_accounts::ChannelRef>>,
}

/// The properties that ticket fields and contact fields have in common. A contact field has no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub id: FieldId,
    pub name: String,
    pub display_type: String,
    pub data_type: String,
    pub sort_order: i64,
    pub active: bool,
    pub description: Option<String>,
    /// The options of a select field: the text of a JSON array.
    pub select_options: Option<String>,
    pub regex: Option<String>,
    pub max_items: Option<i64>,
}

impl Field {
    pub fn kind(&self) -> FieldKind {
        FieldKind::of(&self.display_type, &self.data_type, self.max_items)
    }
}

/// The operators of the conditions under which a ticket field is shown (API contract, section 2.4).
pub const SHOW_OPERATORS: [&str; 10] = [
    "equals",
    "not_equals",
    "greater_than",
    "less_than",
    "greater_than_or_equals",
    "less_than_or_equals",
    "contains",
    "not_contains",
    "in",
    "not_in",
];

/// The maximum number of values in a multi-valued ticket field, unless the definition of the field states another maximum.
pub const MAX_VALUES: i64 = 100;

/// The maximum number of values in a multi-valued contact field, unless the definition of the field states a smaller maximum (API contract,
/// section 8).
pub const MAX_CONTACT_VALUES: i64 = 10;

/// Validation of a field value before it is written.
impl Field {
    /// Checks a value against the field's type, options and pattern, and returns the value in its stored form. Returns `None` for `null`
    /// and for an empty array, which unset the field.
    pub fn validate(&self, value: Value) -> Result<Option<Value>, ValueError> {
        self.validate_up_to(MAX_VALUES, value)
    }

    /// Checks a value as [`Field::validate`] does. `most` is the maximum number of values if the definition of the field states none.
    pub fn validate_up_to(&self, most: i64, value: Value) -> Result<Option<Value>, ValueError> {
        let kind = self.kind();
        let value = match value {
            Value::Null => return Ok(None),
            Value::Array(items) if kind.multi && items.is_empty() => return Ok(None),
            // The values are counted before any of them is checked: the checks of a huge array would keep the write transaction open for a
            // long time.
            Value::Array(items) if kind.multi && items.len() as i64 > self.max_items.unwrap_or(most) => {
                let most = self.max_items.unwrap_or(most);
                return Err(ValueError(format!("holds {} values; the field allows {most}", items.len()).into()));
            }
            value => kind.canonical(value)?,
        };
        if let Some(reason) = too_long(bytes_of_texts(&value)) {
            return Err(ValueError(reason.into()));
        }
        let items = if kind.multi { value.as_array().map(Vec::as_slice).unwrap_or_default() } else { std::slice::from_ref(&value) };
        if self.display_type == "url" && !items.iter().filter_map(Value::as_str).all(is_web_address) {
            return Err("must be an address that begins with https:// or http://".into());
        }
        let mut seen = HashSet::with_capacity(items.len());
        if !items.iter().all(|item| seen.insert(item)) {
            return Err("must not hold a value twice".into());
        }
        if let Some(options) = self.select_options.as_deref().filter(|_| matches!(self.display_type.as_str(), "select" | "multi_select")) {
            let mut allowed = Vec::new();
            collect_options(serde_json::from_str(options).unwrap_or_default(), kind.scalar, &mut allowed);
            let known: HashSet<&Value> = allowed.iter().collect();
            if let Some(i) = items.iter().position(|item| !known.contains(item)) {
                let options = some_of(&allowed);
                return Err(ValueError(if kind.multi {
                    format!("must hold options of the field alone, which [{i}] is not: {options}").into()
                } else {
                    format!("must be one of the field's options: {options}").into()
                }));
            }
        }
        if let Some(pattern) = &self.regex {
            // A definition whose pattern does not compile is refused when it is created. So a stored pattern that does not compile is
            // damaged.
            let pattern = regex_cache::compile(pattern).map_err(|_| "belongs to a field whose pattern is damaged")?;
            if items.iter().filter_map(Value::as_str).any(|text| !pattern.is_match(text)) {
                return Err(ValueError(format!("does not match the field's pattern, `{pattern}`").into()));
            }
        }
        Ok(Some(value))
    }
}

/// Whether a text is a web address that is safe to open in a browser: an http or https URL. A `javascript:` or `data:` URL, for example, is
/// not safe.
fn is_web_address(text: &str) -> bool {
    let begins = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    // The URL parser would silently drop line breaks, tabs, and spaces at both ends of the text. So a text with any of these is refused.
    // Spaces at the beginning need no check here: the text must begin with a scheme.
    let is_clean = text.trim_end() == text && !text.contains(char::is_control);
    is_clean && (begins("https://") || begins("http://")) && Url::parse(text).is_ok()
}

/// The limit of options that an error text lists.
const NAMED: usize = 10;

/// Returns a text with the first [`NAMED`] of these values as JSON, and the number of the other values.
fn some_of(values: &[Value]) -> String {
    let named: Vec<String> = values.iter().take(NAMED).map(Value::to_string).collect();
    let named = named.join(", ");
    if values.len() > NAMED { format!("{named} and {} more", values.len() - NAMED) } else { named }
}

/// Collects the values of all nodes of an option tree, in order and in their stored form. In that form `1` and `1.0` are the same value,
/// but `1` and `"1"` are not.
fn collect_options(options: Value, scalar: ScalarKind, values: &mut Vec<Value>) {
    let Value::Array(options) = options else { return };
    for mut option in options {
        let mut take = |member: &str| option.get_mut(member).map(Value::take).unwrap_or_default();
        let (value, children) = (take("value"), take("children"));
        values.extend(scalar.canonical(value).ok());
        collect_options(children, scalar, values);
    }
}

/// The display types of ticket fields, each with its data types.
pub const TICKET_DISPLAY_TYPES: [(&str, &[&str]); 11] = [
    ("text", &["string"]),
    ("multiline_text", &["string"]),
    ("integer", &["number"]),
    ("date", &["date"]),
    ("datetime", &["date"]),
    ("select", &["string", "number"]),
    ("file", &["string"]),
    ("yes_no", &["boolean"]),
    ("multi_select", &["string", "number"]),
    ("decimal", &["number"]),
    ("url", &["string"]),
];

/// How many of the [`TICKET_DISPLAY_TYPES`] are permitted for contact fields: the first nine.
pub const CONTACT_DISPLAY_TYPES: usize = 9;

/// The type of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    Text,
    /// A number within ±(2^53 − 1).
    Number,
    /// A whole number within ±(2^53 − 1).
    Integer,
    Boolean,
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A date-time in the form of RFC 3339, with an offset.
    DateTime,
}

/// The value type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldKind {
    pub scalar: ScalarKind,
    /// Whether the field's value is an array of values of the type `scalar`.
    pub multi: bool,
}

/// The reason why a value does not fit its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(Cow<'static, str>);

impl From<&'static str> for ValueError {
    fn from(reason: &'static str) -> Self {
        Self(reason.into())
    }
}

/// A value in the form that filters compare: text (booleans as `true` and `false`), or a number (dates as Unix
/// milliseconds).
#[derive(Clone, Debug, PartialEq)]
pub enum Comparable {
    Text(String),
    Number(f64),
}

impl Comparable {
    /// Returns the folded text, for operators that ignore case and Unicode form.
    pub fn folded(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(fold(text)),
            Self::Number(_) => None,
        }
    }
}

const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

impl FieldKind {
    pub const fn single(scalar: ScalarKind) -> Self {
        Self { scalar, multi: false }
    }

    pub fn of(display_type: &str, data_type: &str, max_items: Option<i64>) -> Self {
        let scalar = match (display_type, data_type) {
            ("integer", _) => ScalarKind::Integer,
            ("datetime", _) => ScalarKind::DateTime,
            (_, "number") => ScalarKind::Number,
            (_, "boolean") => ScalarKind::Boolean,
            (_, "date") => ScalarKind::Date,
            _ => ScalarKind::Text,
        };
        Self { scalar, multi: display_type == "multi_select" || max_items.is_some_and(|max| max > 1) }
    }

    /// Returns the value type of a system key: a key of a ticket's `ticketFields` that needs no field definition. `None` for other keys.
    pub fn of_system_key(key: &str) -> Option<Self> {
        SYSTEM_KEYS.iter().find(|(known, _)| *known == key).map(|(_, scalar)| Self::single(*scalar))
    }

    /// Returns the comparable forms of a stored value: one entry per value, no entry for an empty array.
    pub fn comparables(self, value: &Value) -> Result<Vec<Comparable>, ValueError> {
        match value {
            Value::Array(values) if self.multi => values.iter().map(|value| self.scalar.comparable(value)).collect(),
            _ if self.multi => Err(ValueError::from("must be an array")),
            value => Ok(vec![self.scalar.comparable(value)?]),
        }
    }

    /// Returns the value in its stored and shown form: date-times in UTC with milliseconds, whole numbers without a decimal point, all
    /// other values unchanged.
    pub fn canonical(self, value: Value) -> Result<Value, ValueError> {
        match value {
            Value::Array(values) if self.multi => {
                Ok(Value::Array(values.into_iter().map(|value| self.scalar.canonical(value)).collect::<Result<_, _>>()?))
            }
            _ if self.multi => Err(ValueError::from("must be an array")),
            value => self.scalar.canonical(value),
        }
    }
}

/// The system keys of a ticket's `ticketFields`, which need no field definition, with the types of their values.
pub const SYSTEM_KEYS: [(&str, ScalarKind); 6] = [
    ("isConverted", ScalarKind::Boolean),
    ("salesRevenue", ScalarKind::Number),
    ("salesRevenueCurrency", ScalarKind::Text),
    ("aiCsat", ScalarKind::Text),
    ("aiSummary", ScalarKind::Text),
    (RESOLUTION_STATUS, ScalarKind::Text),
];

/// The system key in `ticketFields` whose value is the ticket's resolution status.
pub const RESOLUTION_STATUS: &str = "resolutionStatus";

impl ScalarKind {
    pub fn comparable(self, value: &Value) -> Result<Comparable, ValueError> {
        let number = |number: Option<f64>, or: &'static str| number.map(Comparable::Number).ok_or(ValueError::from(or));
        match self {
            Self::Text => value.as_str().map(|text| Comparable::Text(text.to_owned())).ok_or(ValueError::from("must be a string")),
            Self::Boolean => value.as_bool().map(|flag| Comparable::Text(flag.to_string())).ok_or(ValueError::from("must be a boolean")),
            // Beyond `MAX_INTEGER`, two different integers may be equal as doubles, which the filters and many JSON clients use.
            Self::Number => number(value.as_f64().filter(|number| number.abs() <= MAX_INTEGER), "must be a number within ±(2^53 − 1)"),
            Self::Integer => number(
                value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MAX_INTEGER),
                "must be a whole number within ±(2^53 − 1)",
            ),
            Self::Date => number(value.as_str().and_then(date_millis), "must be a date, YYYY-MM-DD"),
            Self::DateTime => number(
                value.as_str().and_then(|text| text.parse::<Timestamp>().ok()).map(|at| at.millis() as f64),
                "must be an RFC 3339 date-time with an offset",
            ),
        }
    }

    fn canonical(self, value: Value) -> Result<Value, ValueError> {
        let comparable = self.comparable(&value)?;
        Ok(match (self, comparable) {
            (Self::DateTime, Comparable::Number(millis)) => Value::String(Timestamp::from_millis(millis as i64).to_string()),
            // `3.0` and `-0` are written as whole numbers.
            (Self::Integer | Self::Number, Comparable::Number(number)) if number.fract() == 0.0 => Value::from(number as i64),
            _ => value,
        })
    }
}

/// Returns midnight UTC of a date `YYYY-MM-DD`, in Unix milliseconds; `None` if the text is not such a date.
fn date_millis(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let spelled =
        bytes.len() == 10 && bytes.iter().enumerate().all(|(i, byte)| if i == 4 || i == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    if !spelled || text.starts_with("0000") {
        return None;
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    Some(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis() as f64)
}

/// Returns the depth of a tree of select options. The tree of a contact field has at most four levels (API contract, section 8).
pub fn options_depth(options: &Value) -> usize {
    let Some(options) = options.as_array() else { return 0 };
    options.iter().map(|option| 1 + option.get("children").map_or(0, options_depth)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_fit_their_kind_or_are_refused() {
        let kind = |display, data, max| FieldKind::of(display, data, max);
        for (kind, good, bad) in [
            (kind("text", "string", None), json!("a"), json!(1)),
            (kind("integer", "number", None), json!(3.0), json!(3.5)),
            (kind("integer", "number", None), json!(9_007_199_254_740_991_i64), json!(9_007_199_254_740_992_i64)),
            (kind("decimal", "number", None), json!(3.5), json!("3.5")),
            (kind("yes_no", "boolean", None), json!(true), json!("true")),
            (kind("date", "date", None), json!("2026-01-31"), json!("2026-02-30")),
            (kind("date", "date", None), json!("0001-01-01"), json!("+2026-1-01")),
            (kind("date", "date", None), json!("9999-12-31"), json!(" 2026-1-01")),
            (kind("date", "date", None), json!("2024-02-29"), json!("0000-01-01")),
            (kind("datetime", "date", None), json!("2026-01-31T00:00:00Z"), json!("2026-01-31")),
            (kind("multi_select", "string", None), json!(["a"]), json!("a")),
            (kind("select", "number", Some(2)), json!([1]), json!(["1"])),
            (kind("select", "string", Some(1)), json!("a"), json!(["a"])),
        ] {
            assert!(kind.comparables(&good).is_ok(), "{good}");
            assert!(kind.comparables(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn date_times_are_stored_in_utc() {
        let kind = FieldKind::single(ScalarKind::DateTime);
        assert_eq!(kind.canonical(json!("2026-01-31T07:00:00+07:00")), Ok(json!("2026-01-31T00:00:00.000Z")));
        assert_eq!(kind.comparables(&json!("1970-01-01T00:00:01Z")), Ok(vec![Comparable::Number(1000.0)]));
    }

    fn field(display: &str, data: &str, options: Option<&str>, max_items: Option<i64>) -> Field {
        Field {
            id: "f".into(),
            name: "F".to_owned(),
            display_type: display.to_owned(),
            data_type: data.to_owned(),
            sort_order: 1,
            active: true,
            description: None,
            select_options: options.map(str::to_owned),
            regex: None,
            max_items,
        }
    }

    #[test]
    fn a_url_field_accepts_only_http_and_https_addresses() {
        let one = field("url", "string", None, None);
        for good in ["https://example.com", "HTTP://Example.com/a?b=c#d", "https://ร้าน.example/สินค้า", "http://[::1]:8080/"]
        {
            assert_eq!(one.validate(json!(good)), Ok(Some(json!(good))));
        }
        for bad in [
            "javascript:alert(1)",
            "JavaScript://example.com/%0aalert(1)",
            "java\nscript:alert(1)",
            "data:text/html,x",
            "ftp://example.com/a",
            "file:///etc/passwd",
            "mailto:a@example.com",
            "//example.com/a",
            "/a",
            "example.com",
            "",
            " https://example.com",
            "https://example.com ",
            "ht\ntp://example.com",
            "https://",
            "https:example.com",
            "http://[::1/",
        ] {
            let refused = one.validate(json!(bad)).unwrap_err().to_string();
            assert_eq!(refused, "must be an address that begins with https:// or http://", "{bad:?}");
        }
        assert!(field("url", "string", None, Some(2)).validate(json!(["https://example.com", "ftp://example.com"])).is_err());
        assert!(field("text", "string", None, None).validate(json!("ftp://example.com")).is_ok());
        // A value that was stored before web addresses were checked is still read and imported: `canonical` does not check them.
        assert_eq!(one.kind().canonical(json!("ftp://example.com")), Ok(json!("ftp://example.com")));
    }

    #[test]
    fn the_number_of_values_is_checked_before_duplicates() {
        let numbers = |count: i64| Value::from_iter(std::iter::once(0).chain(0..count - 1));
        for (max_items, most, allowed) in [(None, MAX_VALUES, MAX_VALUES), (None, MAX_CONTACT_VALUES, 10), (Some(3), MAX_VALUES, 3)] {
            let field = field("multi_select", "number", None, max_items);
            let refused = |count| field.validate_up_to(most, numbers(count)).unwrap_err().0;
            assert_eq!(refused(allowed), "must not hold a value twice");
            assert_eq!(refused(allowed + 1), format!("holds {} values; the field allows {allowed}", allowed + 1));
        }
    }

    #[test]
    fn many_values_and_options_take_linear_time() {
        let options = serde_json::to_string(&(0..100_000).map(|i| json!({"value": i})).collect::<Vec<_>>()).unwrap();
        let field = field("multi_select", "number", Some(&options), Some(1_000_000));
        let started = std::time::Instant::now();
        assert!(field.validate((0..100_000).collect()).unwrap().is_some());
        assert!(field.validate((1..100_001).collect()).is_err());
        // A quadratic algorithm would take minutes.
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }

    #[test]
    fn options_are_found_at_any_depth_and_by_their_type() {
        let field = field("select", "number", Some(r#"[{"value":1.0,"children":[{"value":2.5},{"value":9007199254740993}]}]"#), None);
        for (value, is) in [(json!(1), true), (json!(2.5), true), (json!(9_007_199_254_740_992_i64), false), (json!(3), false)] {
            assert_eq!(field.validate(value.clone()).is_ok(), is, "{value}");
        }
        assert_eq!(field.validate(json!(3)).unwrap_err().to_string(), "must be one of the field's options: 1, 2.5");
    }

    #[test]
    fn the_depth_of_options_counts_nested_levels() {
        assert_eq!(options_depth(&json!([{"value": 1, "children": [{"value": 2}]}, {"value": 3}])), 2);
    }
}
