//! Filters on the values of ticket fields. A filter is checked against the field's definition: whether its operator fits the kind of field,
//! and whether its operands fit the operator.

use serde_json::Value;

use super::{
    custom_fields::{Comparable, FieldKind, ScalarKind},
    ids::FieldId,
    ticket_filters::{FieldFilter, FieldOperator},
    time::{Bound, Timestamp},
    unicode_text::fold,
};

/// A test of a ticket's values of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldTest {
    pub field_id: FieldId,
    pub test: Test,
}

/// The primitive tests to which the operators are reduced. If a variant has a list, the list contains at least one value, no duplicates,
/// and only values of the same type.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Present,
    Absent,
    AnyOf(Vec<Comparable>),
    /// No value of the ticket is in the list. This is true for a ticket without a value.
    NoneOf(Vec<Comparable>),
    AllOf(Vec<Comparable>),
    /// The folded value (see [`fold`]) begins with this folded text.
    StartsWith(String),
    /// The folded value (see [`fold`]) contains this folded text.
    Contains(String),
    Above(f64),
    Below(f64),
    /// The least and the greatest value that match. Instants are rounded to milliseconds: the first up, the second down. If the filter
    /// gives two instants between the same two milliseconds, the first number is greater than the second, and no value matches.
    Between(f64, f64),
}

/// The limit of values in a filter whose operator takes several values.
pub const MAX_FILTER_VALUES: usize = 100;

/// The reason why a filter does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(String);

impl FilterError {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl FieldFilter {
    /// Compiles this filter to a test for a field of the given kind.
    pub fn test(self, kind: FieldKind) -> Result<FieldTest, FilterError> {
        use FieldOperator as Op;
        if !self.operator.fits(kind) {
            let fitting: Vec<String> =
                Op::ALL.into_iter().filter(|operator| operator.fits(kind)).map(|operator| format!("`{}`", operator.name())).collect();
            return Err(FilterError::new(format!(
                "has the operator `{}`, which does not fit {}; these do: {}",
                self.operator.name(),
                describe(kind),
                fitting.join(", ")
            )));
        }
        let scalar = kind.scalar;
        let Self { field_id, operator, value, min, max } = self;
        let test = match operator {
            Op::IsEmpty | Op::IsNotEmpty => {
                absent(operator, [("value", &value), ("min", &min), ("max", &max)])?;
                if operator == Op::IsEmpty { Test::Absent } else { Test::Present }
            }
            Op::Between => {
                absent(operator, [("value", &value)])?;
                let (min, max) = (Edge::of(scalar, "min", min)?, Edge::of(scalar, "max", max)?);
                if min > max {
                    return Err(FilterError::new("has a `min` above its `max`"));
                }
                Test::Between(min.rounded(Bound::at_or_after), max.rounded(Bound::at_or_before))
            }
            _ => {
                absent(operator, [("min", &min), ("max", &max)])?;
                match operator {
                    Op::GreaterThan => Test::Above(Edge::of(scalar, "value", value)?.rounded(Bound::after)),
                    Op::LessThan => Test::Below(Edge::of(scalar, "value", value)?.rounded(Bound::before)),
                    Op::StartsWith => Test::StartsWith(needle(value)?),
                    Op::TextContains => Test::Contains(needle(value)?),
                    Op::NotEqual => Test::NoneOf(vec![one(scalar, "value", value)?]),
                    Op::IsOneOf | Op::ContainsAny => Test::AnyOf(many(scalar, value)?),
                    Op::IsNotOneOf | Op::DoesNotContainAny => Test::NoneOf(many(scalar, value)?),
                    Op::ContainsAll => Test::AllOf(many(scalar, value)?),
                    Op::Equal | Op::Between | Op::IsEmpty | Op::IsNotEmpty => Test::AnyOf(vec![one(scalar, "value", value)?]),
                }
            }
        };
        Ok(FieldTest { field_id, test })
    }
}

impl FieldOperator {
    /// Returns the name of the operator in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::NotEqual => "not_equal",
            Self::StartsWith => "starts_with",
            Self::TextContains => "text_contains",
            Self::IsOneOf => "is_one_of",
            Self::IsNotOneOf => "is_not_one_of",
            Self::ContainsAny => "contains_any",
            Self::ContainsAll => "contains_all",
            Self::DoesNotContainAny => "does_not_contain_any",
            Self::GreaterThan => "greater_than",
            Self::LessThan => "less_than",
            Self::Between => "between",
            Self::IsEmpty => "is_empty",
            Self::IsNotEmpty => "is_not_empty",
        }
    }

    /// Whether the operator may test a field of the given kind.
    pub const fn fits(self, kind: FieldKind) -> bool {
        match self {
            Self::IsEmpty | Self::IsNotEmpty => true,
            Self::ContainsAny | Self::ContainsAll | Self::DoesNotContainAny => kind.multi,
            _ if kind.multi => false,
            Self::Equal | Self::NotEqual => true,
            Self::StartsWith | Self::TextContains => matches!(kind.scalar, ScalarKind::Text),
            Self::IsOneOf | Self::IsNotOneOf => matches!(kind.scalar, ScalarKind::Text | ScalarKind::Number | ScalarKind::Integer),
            Self::GreaterThan | Self::LessThan | Self::Between => !matches!(kind.scalar, ScalarKind::Text | ScalarKind::Boolean),
        }
    }
}

const fn describe(kind: FieldKind) -> &'static str {
    match (kind.multi, kind.scalar) {
        (true, _) => "a field of several values",
        (_, ScalarKind::Text) => "a text field",
        (_, ScalarKind::Number | ScalarKind::Integer) => "a number field",
        (_, ScalarKind::Boolean) => "a yes-or-no field",
        (_, ScalarKind::Date | ScalarKind::DateTime) => "a date field",
    }
}

fn absent<const N: usize>(operator: FieldOperator, members: [(&str, &Option<Value>); N]) -> Result<(), FilterError> {
    match members.into_iter().find(|(_, value)| value.is_some()) {
        Some((name, _)) => Err(FilterError::new(format!("has a `{name}`, which the operator `{}` does not take", operator.name()))),
        None => Ok(()),
    }
}

fn one(scalar: ScalarKind, name: &str, value: Option<Value>) -> Result<Comparable, FilterError> {
    let value = value.ok_or_else(|| FilterError::new(format!("needs a `{name}`")))?;
    scalar.comparable(&value).map_err(|reason| FilterError::new(format!("has a `{name}` that {reason}")))
}

/// The value with which an operator such as "greater than" compares a field value.
#[derive(PartialEq, PartialOrd)]
enum Edge {
    Number(f64),
    Instant(Bound),
}

impl Edge {
    fn of(scalar: ScalarKind, name: &str, value: Option<Value>) -> Result<Self, FilterError> {
        if let (ScalarKind::DateTime, Some(Ok(bound))) = (scalar, value.as_ref().and_then(Value::as_str).map(str::parse)) {
            return Ok(Self::Instant(bound));
        }
        match one(scalar, name, value)? {
            Comparable::Number(number) => Ok(Self::Number(number)),
            Comparable::Text(_) => Err(FilterError::new(format!("has a `{name}` that must be a number"))),
        }
    }

    /// Returns the edge as a number; an instant becomes Unix milliseconds, as in stored values. `round` rounds the instant up or down to a
    /// millisecond, as the operator requires.
    fn rounded(self, round: fn(Bound) -> Timestamp) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Instant(bound) => round(bound).millis() as f64,
        }
    }
}

fn many(scalar: ScalarKind, value: Option<Value>) -> Result<Vec<Comparable>, FilterError> {
    let values = match value {
        Some(Value::Array(values)) if (1..=MAX_FILTER_VALUES).contains(&values.len()) => values,
        _ => return Err(FilterError::new(format!("needs a `value` that is an array of 1 to {MAX_FILTER_VALUES} values"))),
    };
    let mut distinct = Vec::with_capacity(values.len());
    for (i, value) in values.into_iter().enumerate() {
        let value = scalar.comparable(&value).map_err(|reason| FilterError::new(format!("has a `value[{i}]` that {reason}")))?;
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    Ok(distinct)
}

fn needle(value: Option<Value>) -> Result<String, FilterError> {
    match value {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(fold(&text)),
        _ => Err(FilterError::new("needs a `value` that is a text and not blank")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(operator: FieldOperator, value: Value) -> FieldFilter {
        FieldFilter { field_id: "f".into(), operator, value: Some(value), min: None, max: None }
    }

    #[test]
    fn operators_fit_their_kinds_only() {
        use FieldOperator::*;
        let all = FieldOperator::ALL;
        let fitting = |scalar, multi| all.into_iter().filter(|op| op.fits(FieldKind { scalar, multi })).collect::<Vec<_>>();
        let numeric = [Equal, NotEqual, IsOneOf, IsNotOneOf, GreaterThan, LessThan, Between, IsEmpty, IsNotEmpty];
        let dates = [Equal, NotEqual, GreaterThan, LessThan, Between, IsEmpty, IsNotEmpty];
        assert_eq!(fitting(ScalarKind::Text, false), [Equal, NotEqual, StartsWith, TextContains, IsOneOf, IsNotOneOf, IsEmpty, IsNotEmpty]);
        assert_eq!(fitting(ScalarKind::Number, false), numeric);
        assert_eq!(fitting(ScalarKind::Integer, false), numeric);
        assert_eq!(fitting(ScalarKind::Date, false), dates);
        assert_eq!(fitting(ScalarKind::DateTime, false), dates);
        assert_eq!(fitting(ScalarKind::Boolean, false), [Equal, NotEqual, IsEmpty, IsNotEmpty]);
        for scalar in [ScalarKind::Text, ScalarKind::Number, ScalarKind::Boolean, ScalarKind::Date] {
            assert_eq!(fitting(scalar, true), [ContainsAny, ContainsAll, DoesNotContainAny, IsEmpty, IsNotEmpty]);
        }
    }

    #[test]
    fn filter_errors_name_the_permitted_operators_and_values() {
        let refused =
            |operator, kind, value| filter(operator, value).test(FieldKind { scalar: kind, multi: false }).unwrap_err().to_string();
        let got = refused(FieldOperator::Between, ScalarKind::Boolean, json!(true));
        let fitting = "these do: `equal`, `not_equal`, `is_empty`, `is_not_empty`";
        assert_eq!(got, format!("has the operator `between`, which does not fit a yes-or-no field; {fitting}"));
        let got = refused(FieldOperator::IsOneOf, ScalarKind::Text, json!(["x", null]));
        assert_eq!(got, "has a `value[1]` that must be a string");
    }

    #[test]
    fn instants_between_two_milliseconds_are_rounded_by_their_operator() {
        use FieldOperator::*;
        let kind = FieldKind::single(ScalarKind::DateTime);
        let at = |digits: &str| json!(format!("1970-01-01T07:00:01.{digits}+07:00"));
        let test = |operator, digits| filter(operator, at(digits)).test(kind).map(|test| test.test);
        assert_eq!(test(GreaterThan, "0019"), Ok(Test::Above(1001.0)));
        assert_eq!(test(GreaterThan, "0010"), Ok(Test::Above(1001.0)));
        assert_eq!(test(LessThan, "0011"), Ok(Test::Below(1002.0)));
        assert_eq!(test(LessThan, "0010"), Ok(Test::Below(1001.0)));
        // The digits beyond the millisecond are cut off, as in a stored field value.
        assert_eq!(test(Equal, "0019"), Ok(Test::AnyOf(vec![Comparable::Number(1001.0)])));
        let between = |min, max| {
            let filter = FieldFilter { value: None, min: Some(at(min)), max: Some(at(max)), ..filter(Between, json!(0)) };
            filter.test(kind).map(|test| test.test).map_err(|error| error.to_string())
        };
        assert_eq!(between("0011", "0049"), Ok(Test::Between(1002.0, 1004.0)));
        assert_eq!(between("0011", "0019"), Ok(Test::Between(1002.0, 1001.0)));
        assert_eq!(between("0019", "0011"), Err("has a `min` above its `max`".to_owned()));
        let refused = filter(LessThan, json!("1970-01-01T00:00:60Z")).test(kind).unwrap_err().to_string();
        assert!(refused.starts_with("has a `value` that must be an RFC 3339"), "{refused}");
    }

    #[test]
    fn operands_fit_their_operator_and_kind() {
        use FieldOperator::*;
        let (text, number) = (FieldKind::single(ScalarKind::Text), FieldKind::single(ScalarKind::Integer));
        for (good, kind, test) in [
            (filter(Equal, json!("A")), text, Test::AnyOf(vec![Comparable::Text("A".into())])),
            (filter(TextContains, json!("ＡB")), text, Test::Contains("ab".into())),
            (filter(IsOneOf, json!([1, 1.0, 2])), number, Test::AnyOf(vec![Comparable::Number(1.0), Comparable::Number(2.0)])),
            (FieldFilter { value: None, ..filter(IsEmpty, json!(0)) }, number, Test::Absent),
            (
                FieldFilter { value: None, min: Some(json!(1)), max: Some(json!(1)), ..filter(Between, json!(0)) },
                number,
                Test::Between(1.0, 1.0),
            ),
        ] {
            assert_eq!(good.clone().test(kind).map(|test| test.test), Ok(test), "{good:?}");
        }
        for (bad, kind) in [
            (filter(Equal, json!(1)), text),
            (filter(Equal, json!("1")), number),
            (filter(Equal, json!(1.5)), number),
            (filter(Equal, json!(null)), text),
            (FieldFilter { value: None, ..filter(Equal, json!(0)) }, text),
            (filter(StartsWith, json!(" ")), text),
            (filter(IsOneOf, json!([])), text),
            (filter(IsOneOf, json!("a")), text),
            (filter(IsOneOf, json!(["a", 1])), text),
            (filter(IsOneOf, json!(vec!["a"; 101])), text),
            (filter(IsEmpty, json!("a")), text),
            (filter(Between, json!(1)), number),
            (FieldFilter { value: None, min: Some(json!(1)), ..filter(Between, json!(0)) }, number),
            (FieldFilter { value: None, min: Some(json!(2)), max: Some(json!(1)), ..filter(Between, json!(0)) }, number),
            (FieldFilter { min: Some(json!(1)), ..filter(Equal, json!(1)) }, number),
        ] {
            assert!(bad.clone().test(kind).is_err(), "{bad:?}");
        }
    }
}
