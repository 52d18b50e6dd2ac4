//! Marks: what labels and values a ticket has, in so few bits that the index of the list holds them.
//!
//! A filter by a label or a field walks the list and looks each ticket up in another table, which costs ten times what the
//! step to it does. A label, a value, and the first character of a folded text each stand for one of 63 bits; a ticket carries
//! those of its conversation's labels and of its values beside its place in the list. Where a bit is not set, the ticket is
//! passed over without a look. Several things share a bit, so that one that is set proves nothing, and every look is still made
//! for the tickets that remain.
//!
//! Called by the rest of `store`. Guarantees: whoever writes labels or values writes their marks in the same transaction, and a
//! ticket never lacks one; it may keep that of a value which it had before. Bounds, parts of texts, that there is a value, and
//! what is denied have no marks. PostgreSQL has the columns and saves the looks, but tests no marks within its index.

use sha2::{Digest, Sha256};

use crate::domain::{
    field_tests::Test,
    fields::Comparable,
    ids::{FieldId, LabelId},
};

/// Bits, as both databases store them: as a number that is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(i64);

/// What the marks of a ticket must fulfil for it to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sieve {
    /// One of these at least.
    Any(Marks),
    All(Marks),
}

impl Marks {
    pub fn bits(self) -> i64 {
        self.0
    }

    pub fn of_labels<'a>(labels: impl IntoIterator<Item = &'a LabelId>) -> Self {
        labels.into_iter().map(|label| one(&["label", label.as_str()])).collect()
    }

    /// Those of the values of one field.
    pub fn of_values<'a>(field: &FieldId, values: impl IntoIterator<Item = &'a Comparable>) -> Self {
        let beginning = |value: &Comparable| value.folded().and_then(|folded| begins(field, &folded));
        values.into_iter().flat_map(|value| [Some(is(field, value)), beginning(value)]).flatten().collect()
    }
}

impl FromIterator<Self> for Marks {
    fn from_iter<T: IntoIterator<Item = Self>>(marks: T) -> Self {
        Self(marks.into_iter().fold(0, |all, one| all | one.0))
    }
}

impl Sieve {
    /// For a test of a field; `None` where marks tell nothing of it.
    pub fn of(field: &FieldId, test: &Test) -> Option<Self> {
        let marks = |values: &[Comparable]| values.iter().map(|value| is(field, value)).collect();
        match test {
            Test::AnyOf(values) => Some(Self::Any(marks(values))),
            Test::AllOf(values) => Some(Self::All(marks(values))),
            Test::StartsWith(prefix) => begins(field, prefix).map(Self::Any),
            Test::Present | Test::Absent | Test::NoneOf(_) | Test::Contains(_) | Test::Above(_) | Test::Below(_) | Test::Between(..) => {
                None
            }
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

/// The bit that something stands for. Stored: another choice takes a migration that marks every ticket anew.
fn one(parts: &[&str]) -> Marks {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let bytes: [u8; 32] = hash.finalize().into();
    Marks(1 << (u64::from_be_bytes(std::array::from_fn(|i| bytes[i])) % 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::text::fold;

    impl Sieve {
        fn passes(self, Marks(has): Marks) -> bool {
            match self {
                Self::Any(Marks(wanted)) => has & wanted != 0,
                Self::All(Marks(wanted)) => has & wanted >= wanted,
            }
        }
    }

    fn value() -> impl Strategy<Value = Comparable> {
        prop_oneof![
            ".*".prop_map(Comparable::Text),
            any::<f64>().prop_filter("not a number", |number| !number.is_nan()).prop_map(Comparable::Number)
        ]
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
        fn labels_pass_their_sieve(has in prop::collection::vec(".*", 1..5), others in prop::collection::vec(".*", 0..5)) {
            let has: Vec<LabelId> = has.into_iter().map(LabelId::from).collect();
            let marks = Marks::of_labels(&has);
            prop_assert!(Sieve::All(Marks::of_labels(&has)).passes(marks));
            let others: Vec<LabelId> = others.into_iter().map(LabelId::from).chain(has.first().cloned()).collect();
            prop_assert!(Sieve::Any(Marks::of_labels(&others)).passes(marks));
        }
    }

    /// What was stored has to mean the same tomorrow.
    #[test]
    fn marks_are_what_they_were() {
        let field = FieldId::from("region");
        let bit = |marks: Marks| (marks.bits().count_ones(), marks.bits().trailing_zeros());
        assert_eq!(bit(Marks::of_labels([&"vip".into()])), (1, 28));
        assert_eq!(bit(Marks::of_values(&field, [&Comparable::Number(-0.0)])), (1, 59));
        assert_eq!(Marks::of_values(&field, [&Comparable::Number(0.0)]), Marks::of_values(&field, [&Comparable::Number(-0.0)]));
        assert_eq!(Marks::of_values(&field, [&Comparable::Text("North".to_owned())]).bits(), (1 << 24) | (1 << 32));
        assert_eq!(begins(&field, "n").map(bit), Some((1, 32)));
        assert_eq!(begins(&field, ""), None);
    }

    #[test]
    fn a_sieve_keeps_most_of_the_others_out() {
        let labels: Vec<Marks> = (0..1000).map(|number| Marks::of_labels([&format!("label {number}").into()])).collect();
        let through = labels.iter().filter(|marks| Sieve::Any(labels[0]).passes(**marks)).count();
        assert!(through < 40, "{through}");
    }
}
