//! Marks: what labels and values a ticket has, in so few bits that the index of the list holds them.
//!
//! A filter by a label or a field walks the list and looks each ticket up in another table, which costs ten times what the
//! step to it does. A label, a value, the first character of a folded text and the magnitude of a number each stand for two of 63 bits; a ticket carries
//! those of its conversation's labels and of its values beside its place in the list. Where one of the two is not set, the
//! ticket is passed over without a look. Several things share a bit, so that both being set proves nothing, and every look is
//! still made for the tickets that remain. With one bit for each, two beginnings that many tickets have and that happened to
//! share it let twice as many through; three would fill the 63 of tickets with many values.
//!
//! Called by the rest of `store`. Guarantees: whoever writes labels or values writes their marks in the same transaction, and a
//! ticket never lacks one; it may keep that of a value which it had before. Bounds, parts of texts, that there is a value, and
//! what is denied have no marks. PostgreSQL has the columns and saves the looks, but tests no marks within its index.

use std::ops::RangeInclusive;

use sha2::{Digest, Sha256};

use crate::domain::{
    field_tests::Test,
    fields::Comparable,
    filters::{LabelFilter, LabelOperator},
    ids::{FieldId, LabelId},
};

/// Bits, as both databases store them: as a number that is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(i64);

/// What the marks of a ticket must hold for it to be looked at: all of one of these, of which there is one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sieve(Vec<Marks>);

/// With more to choose from nearly everything passes.
const CHOICES: usize = 20;

impl Marks {
    pub fn bits(self) -> i64 {
        self.0
    }

    pub fn of_labels<'a>(labels: impl IntoIterator<Item = &'a LabelId>) -> Self {
        labels.into_iter().map(|label| one(&["label", label.as_str()])).collect()
    }

    /// Those of the values of one field.
    pub fn of_values<'a>(field: &FieldId, values: impl IntoIterator<Item = &'a Comparable>) -> Self {
        let roughly = |value: &Comparable| match value {
            Comparable::Text(_) => value.folded().and_then(|folded| begins(field, &folded)),
            Comparable::Number(number) => Some(measures(field, magnitude(*number))),
        };
        values.into_iter().flat_map(|value| [Some(is(field, value)), roughly(value)]).flatten().collect()
    }
}

impl FromIterator<Self> for Marks {
    fn from_iter<T: IntoIterator<Item = Self>>(marks: T) -> Self {
        Self(marks.into_iter().fold(0, |all, one| all | one.0))
    }
}

impl Sieve {
    /// `None`: nothing is told by marks.
    fn any(marks: impl IntoIterator<Item = Marks>) -> Option<Self> {
        let marks: Vec<Marks> = marks.into_iter().collect();
        (1..=CHOICES).contains(&marks.len()).then_some(Self(marks))
    }

    fn all(marks: impl IntoIterator<Item = Marks>) -> Self {
        Self(vec![marks.into_iter().collect()])
    }

    pub fn choices(&self) -> &[Marks] {
        &self.0
    }

    /// For a test of a field.
    pub fn of(field: &FieldId, test: &Test) -> Option<Self> {
        let marks = |values: &[Comparable]| values.iter().map(|value| is(field, value)).collect::<Vec<_>>();
        let measure = |magnitudes: RangeInclusive<u64>| Self::any(magnitudes.map(|magnitude| measures(field, magnitude)));
        match test {
            Test::AnyOf(values) => Self::any(marks(values)),
            Test::AllOf(values) => Some(Self::all(marks(values))),
            Test::StartsWith(prefix) => Self::any(begins(field, prefix)),
            Test::Above(bound) => measure(magnitude(*bound)..=LARGEST),
            Test::Below(bound) => measure(0..=magnitude(*bound)),
            Test::Between(min, max) => measure(magnitude(*min)..=magnitude(*max)),
            Test::Present | Test::Absent | Test::NoneOf(_) | Test::Contains(_) => None,
        }
    }

    /// For a test of labels.
    pub fn of_labels(LabelFilter { operator, label_ids }: &LabelFilter) -> Option<Self> {
        let marks = label_ids.iter().map(|label| Marks::of_labels([label]));
        match operator {
            LabelOperator::ContainsAny => Self::any(marks),
            LabelOperator::ContainsAll => Some(Self::all(marks)),
            LabelOperator::DoesNotContainAny => None,
        }
    }
}

/// A value as a whole.
fn is(field: &FieldId, value: &Comparable) -> Marks {
    match value {
        Comparable::Text(text) => one(&["text", field.as_str(), text]),
        // Both zeros are equal.
        Comparable::Number(number) => one(&["number", field.as_str(), &(number + 0.0).to_bits().to_string()]),
    }
}

/// A text that begins with the first character of this one, which is folded.
fn begins(field: &FieldId, folded: &str) -> Option<Marks> {
    let first = folded.chars().next()?;
    Some(one(&["begins", field.as_str(), first.encode_utf8(&mut [0; 4])]))
}

/// A number of this magnitude.
fn measures(field: &FieldId, magnitude: u64) -> Marks {
    one(&["measures", field.as_str(), &magnitude.to_string()])
}

/// That of numbers from a million on.
const LARGEST: u64 = 22;

/// What numbers between the same two powers of two share: 0 below zero, 1 below one, 2 below two, 3 below four. Never less for a
/// larger number.
fn magnitude(number: f64) -> u64 {
    match number {
        _ if number < 0.0 => 0,
        _ if number < 1.0 => 1,
        // The exponent, which stands behind the sign.
        _ => ((number.to_bits() >> 52) - 1023 + 2).min(LARGEST),
    }
}

/// The two bits that something stands for. Stored: another choice takes a migration that marks every ticket anew.
fn one(parts: &[&str]) -> Marks {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let bytes: [u8; 32] = hash.finalize().into();
    let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
    let first = number(0) % 63;
    Marks(1 << first | 1 << ((first + 1 + number(8) % 62) % 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::text::fold;

    impl Sieve {
        fn passes(&self, Marks(has): Marks) -> bool {
            self.choices().iter().any(|Marks(wanted)| has & wanted >= *wanted)
        }
    }

    fn value() -> impl Strategy<Value = Comparable> {
        prop_oneof![".*".prop_map(Comparable::Text), number().prop_map(Comparable::Number)]
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>().prop_filter("not a number", |number| !number.is_nan()), -9.0..9.0, (-3i32..3000).prop_map(f64::from)]
    }

    fn values() -> impl Strategy<Value = Vec<Comparable>> {
        prop::collection::vec(value(), 1..5)
    }

    proptest! {
        #[test]
        fn what_passes_a_test_passes_its_sieve(has in values(), others in values(), also in values(), field in ".*", more in "[a-z]") {
            let field = FieldId::from(field);
            let marks: Marks = [Marks::of_values(&field, &has), Marks::of_values(&more.into(), &also)].into_iter().collect();
            let passes = |test| Sieve::of(&field, &test).is_none_or(|sieve| sieve.passes(marks));
            for one in &has {
                let mut wanted = others.clone();
                wanted.push(one.clone());
                prop_assert!(passes(Test::AnyOf(wanted)));
                if let Comparable::Text(text) = one {
                    let folded = fold(text);
                    for (end, _) in folded.char_indices().chain([(folded.len(), ' ')]) {
                        prop_assert!(passes(Test::StartsWith(folded[..end].to_owned())));
                    }
                }
            }
            prop_assert!(passes(Test::AllOf(has)));
        }

        #[test]
        fn numbers_pass_the_sieves_of_their_bounds(number in number(), least in number(), most in number(), field in ".*") {
            let field = FieldId::from(field);
            let marks = Marks::of_values(&field, [&Comparable::Number(number)]);
            let passes = |test| Sieve::of(&field, &test).is_none_or(|sieve| sieve.passes(marks));
            prop_assert!(passes(Test::Above(least)) || number <= least);
            prop_assert!(passes(Test::Below(most)) || number >= most);
            prop_assert!(passes(Test::Between(least, most)) || number < least || number > most);
            prop_assert!(passes(Test::Between(number, number)));
        }

        #[test]
        fn labels_pass_their_sieve(has in prop::collection::vec(".*", 1..5), others in prop::collection::vec(".*", 0..5)) {
            let has: Vec<LabelId> = has.into_iter().map(LabelId::from).collect();
            let marks = Marks::of_labels(&has);
            let passes = |operator, label_ids| Sieve::of_labels(&LabelFilter { operator, label_ids }).is_none_or(|sieve| sieve.passes(marks));
            prop_assert!(passes(LabelOperator::ContainsAll, has.clone()));
            let others: Vec<LabelId> = others.into_iter().map(LabelId::from).chain(has.first().cloned()).collect();
            prop_assert!(passes(LabelOperator::ContainsAny, others));
        }
    }

    /// What was stored has to mean the same tomorrow.
    #[test]
    fn marks_are_what_they_were() {
        let field = FieldId::from("region");
        let bits = |marks: Marks| (0..63).filter(|bit| marks.bits() & (1 << bit) != 0).collect::<Vec<u32>>();
        assert_eq!(bits(Marks::of_labels([&"vip".into()])), [28, 60]);
        for zero in [0.0, -0.0] {
            assert_eq!(bits(Marks::of_values(&field, [&Comparable::Number(zero)])), [15, 32, 44, 59]);
        }
        assert_eq!(bits(Marks::of_values(&field, [&Comparable::Number(40.0)])), [22, 50, 51, 62]);
        assert_eq!(bits(Marks::of_values(&field, [&Comparable::Text("North".to_owned())])), [24, 32, 51, 58]);
        assert_eq!(begins(&field, "n").map(bits), Some(vec![32, 58]));
        assert_eq!(begins(&field, ""), None);
    }

    #[test]
    fn a_larger_number_is_of_no_lesser_magnitude() {
        let numbers =
            [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 0.99, 1.0, 1.99, 2.0, 4.0, 1023.0, 1024.0, 524_288.0, 1_048_576.0, 1e300, f64::INFINITY];
        assert_eq!(numbers.map(magnitude), [0, 0, 1, 1, 1, 2, 2, 3, 4, 11, 12, 21, 22, LARGEST, LARGEST]);
    }

    #[test]
    fn a_sieve_keeps_most_of_the_others_out() {
        let field = FieldId::from("n");
        let number = |number: u32| Comparable::Number(number.into());
        // Tickets of four values each, of which only the first one's are asked for.
        let tickets: Vec<Marks> = (0..1000).map(|n| Marks::of_values(&field, &[0, 1, 2, 3].map(|i| number(4 * n + i)))).collect();
        let through = |test| {
            let sieve = Sieve::of(&field, &test).unwrap();
            tickets.iter().filter(|marks| sieve.passes(**marks)).count()
        };
        let (one, many) = (through(Test::AnyOf(vec![number(0)])), through(Test::AnyOf((0..20).map(number).collect())));
        assert!((1..60).contains(&one), "{one}");
        assert!((5..500).contains(&many), "{many}");
        let (low, high) = (through(Test::Below(100.0)), through(Test::Above(3000.0)));
        assert!((25..400).contains(&low), "{low}");
        assert!((250..900).contains(&high), "{high}");
        assert_eq!(Sieve::of(&field, &Test::AnyOf((0..21).map(number).collect())), None);
    }
}
