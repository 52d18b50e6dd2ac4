//! Bloom filters of a ticket's labels and field values, in columns of the covering index of the ticket list.
//!
//! A filter by a label or a field scans the list and looks up each ticket in another table. The look-up costs much more than the step to
//! the next ticket of the list. So the index contains, in addition to a ticket's sort position, three Bloom filters of 63 bits (marks): one
//! of the labels of the ticket's conversation, one of its field values, and one of the pairs of neighbouring characters in its text values.
//! A label, a value, the first character of a folded text (a text without differences of case) and the magnitude of a number (its power of
//! two) set two bits each. A pair of neighbouring characters of a folded text sets one bit.
//!
//! A ticket that lacks a bit of the wanted label or value is skipped without a look-up. Several labels or values may share a bit, so a set
//! bit proves nothing, and the tickets that are not skipped are still looked up.
//!
//! Two bits for a value are a compromise. With one bit, two frequent first characters might share this bit, and twice as many tickets would
//! pass. With three bits, a ticket with many values would have all 63 bits set and would always pass.
//!
//! Guarantees: a write of labels or values writes their bits in the same transaction. A ticket has all bits of its current labels and
//! values, and may keep the bits of former values. Tests for the presence of a value, negations and searches for a single character do not
//! use the bits. On PostgreSQL the columns save look-ups as well, but are not part of the index.

use std::{collections::BTreeSet, ops::RangeInclusive};

use sha2::{Digest, Sha256};

use crate::domain::{
    custom_fields::Comparable,
    ids::{FieldId, LabelId},
    ticket_field_filters::{FieldTest, Test},
    ticket_filters::{LabelFilter, LabelOperator},
};

/// The bits of a Bloom filter. Both databases store them as a non-negative integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct BloomBits(i64);

/// The two Bloom filters of a ticket's field values, named after the columns of `tickets` that hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct FieldBloomBits {
    pub field_marks: BloomBits,
    pub text_marks: BloomBits,
}

/// A Bloom pre-filter, which tests the Bloom filters in one column: a ticket is looked up only if its Bloom filter has all bits of one of
/// `choices`, or of a choice in `rare`. `choices` is never empty.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) struct BloomPreFilter {
    pub column: &'static str,
    pub choices: Vec<BloomBits>,
    pub rare: Vec<RareNumberChoices>,
}

/// Choices of a pre-filter for rare numbers: negative and large numbers. On SQLite these choices apply only if some ticket has such a
/// number, which a subquery tests once per statement. If no ticket has such a number, the choices would only let tickets pass that have
/// other numbers with the same bits.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) struct RareNumberChoices {
    pub such: FieldTest,
    pub choices: Vec<BloomBits>,
}

const LABELS: &str = "label_marks";
const FIELDS: &str = "field_marks";
const TEXTS: &str = "text_marks";

/// The numbers of choices that a pre-filter may have. A pre-filter repeats its last choice up to the next of these numbers, so that there
/// are few SQL texts. A comparison with more choices than the last number would cost as much as the look-up.
const CHOICES: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 20];

/// Up to this number of values, a pre-filter tests the bits of each value, even if a pre-filter by first characters or magnitudes already
/// narrows the list.
const FEW_VALUES: usize = 8;

impl BloomBits {
    pub fn bits(self) -> i64 {
        self.0
    }

    pub fn of_labels<'a>(labels: impl IntoIterator<Item = &'a LabelId>) -> Self {
        labels.into_iter().map(|label| one(&["label", label.as_str()])).collect()
    }
}

impl FieldBloomBits {
    /// Returns the Bloom filters of the values of one field.
    pub fn of<'a>(field: &FieldId, values: impl IntoIterator<Item = &'a Comparable>) -> Self {
        let of = |value: &Comparable| {
            let folded = value.folded();
            let rough = ValueProperty::of(value, folded.as_deref()).map(|alike| alike.marks(field));
            let text_marks = folded.map_or_else(BloomBits::default, |folded| bigram_bits(field, &folded));
            Self { field_marks: [Some(is(field, value)), rough].into_iter().flatten().collect(), text_marks }
        };
        values.into_iter().map(of).collect()
    }
}

impl FromIterator<Self> for FieldBloomBits {
    fn from_iter<T: IntoIterator<Item = Self>>(marks: T) -> Self {
        let (fields, texts): (Vec<_>, Vec<_>) = marks.into_iter().map(|one| (one.field_marks, one.text_marks)).unzip();
        Self { field_marks: fields.into_iter().collect(), text_marks: texts.into_iter().collect() }
    }
}

impl FromIterator<Self> for BloomBits {
    fn from_iter<T: IntoIterator<Item = Self>>(marks: T) -> Self {
        Self(marks.into_iter().fold(0, |all, one| all | one.0))
    }
}

impl BloomPreFilter {
    /// Returns a pre-filter for tickets that have all bits of any of `marks`. `None`: there are no `marks`, or too many.
    fn any(column: &'static str, marks: impl IntoIterator<Item = BloomBits>) -> Option<Self> {
        Some(Self { column, choices: pad_choices(marks)?, rare: Vec::new() })
    }

    /// Returns a pre-filter for tickets that have the bits of all `marks`. `None`: there are no bits.
    fn all(column: &'static str, marks: impl IntoIterator<Item = BloomBits>) -> Option<Self> {
        let all: BloomBits = marks.into_iter().collect();
        Self::any(column, (all != BloomBits::default()).then_some(all))
    }

    /// Returns the pre-filter for numbers of these magnitudes. `None`: there are too many magnitudes.
    fn by_magnitudes(field: &FieldId, magnitudes: RangeInclusive<u64>) -> Option<Self> {
        if magnitudes.clone().count() > MOST_MAGNITUDES {
            return None;
        }
        let within = |least: u64, most: u64| {
            let (least, most) = (least.max(*magnitudes.start()), most.min(*magnitudes.end()));
            let mut choices: Vec<BloomBits> = (least..=most).map(|magnitude| ValueProperty::Magnitude(magnitude).marks(field)).collect();
            if *magnitudes.end() < LARGEST {
                // The greatest magnitude comes first, so that one comparison often suffices: half of the whole numbers that pass have this
                // magnitude.
                choices.reverse();
            }
            pad_choices(choices)
        };
        let Some(choices) = within(1, LARGE - 1) else {
            return Some(Self { column: FIELDS, choices: within(0, LARGEST)?, rare: Vec::new() });
        };
        let rare = [(Test::Below(0.0), within(0, 0)), (Test::Between(LEAST_LARGE, f64::INFINITY), within(LARGE, LARGEST))];
        let rare = rare.into_iter().filter_map(|(test, choices)| {
            let such = FieldTest { field_id: field.clone(), test };
            choices.map(|choices| RareNumberChoices { such, choices })
        });
        Some(Self { column: FIELDS, choices, rare: rare.collect() })
    }

    /// Returns the pre-filters for any of these values:
    ///
    /// - The first tests the bits of each value. It is left out for more than [`FEW_VALUES`] whole numbers, if at least half of the whole
    ///   numbers with their magnitudes are among them. Then the second pre-filter suffices: a comparison with each value would cost more
    ///   than the look-ups that it saves.
    /// - The second tests the bits of the properties (first character or magnitude) of the values. It is left out if there are more than
    ///   half as many properties as values.
    fn values(field: &FieldId, values: &[Comparable]) -> [Option<Self>; 2] {
        // `None` if one of the values is an empty text, which has no first character.
        let alike: Option<BTreeSet<ValueProperty>> =
            values.iter().map(|value| ValueProperty::of(value, value.folded().as_deref())).collect();
        let alike = alike.filter(|alike| 2 * alike.len() <= values.len());
        let numbers: Option<u64> = alike.as_ref().and_then(|alike| alike.iter().map(ValueProperty::numbers).sum());
        let whole = values.iter().all(|value| matches!(value, Comparable::Number(number) if number.fract() == 0.0));
        let most = values.len() > FEW_VALUES && whole && numbers.is_some_and(|numbers| numbers <= 2 * values.len() as u64);
        let alike = alike.and_then(|alike| Self::any(FIELDS, alike.into_iter().rev().map(|alike| alike.marks(field))));
        let each = || Self::any(FIELDS, values.iter().map(|value| is(field, value)));
        [if most { None } else { each() }, alike]
    }

    /// Returns the number of choices that a ticket's Bloom filter is compared with.
    pub fn choice_count(&self) -> usize {
        self.choices.len() + self.rare.iter().map(|rare| rare.choices.len()).sum::<usize>()
    }

    /// Returns the pre-filters for a test of a field.
    pub fn of(field: &FieldId, test: &Test) -> impl Iterator<Item = Self> {
        let in_fields = match test {
            Test::AllOf(all) => [Self::all(FIELDS, all.iter().map(|value| is(field, value))), None],
            Test::AnyOf(any) => Self::values(field, any),
            Test::StartsWith(prefix) => [Self::any(FIELDS, ValueProperty::beginning(prefix).map(|alike| alike.marks(field))), None],
            Test::Above(bound) => [Self::by_magnitudes(field, magnitude(*bound)..=LARGEST), None],
            Test::Below(bound) => [Self::by_magnitudes(field, 0..=magnitude(*bound)), None],
            Test::Between(min, max) => [Self::by_magnitudes(field, magnitude(*min)..=magnitude(*max)), None],
            Test::Present | Test::Absent | Test::NoneOf(_) | Test::Contains(_) => [None, None],
        };
        let in_texts = match test {
            Test::StartsWith(part) | Test::Contains(part) => Self::all(TEXTS, [bigram_bits(field, part)]),
            _ => None,
        };
        in_fields.into_iter().flatten().chain(in_texts)
    }

    /// Returns the pre-filter for a test of labels.
    pub fn of_labels(LabelFilter { operator, label_ids }: &LabelFilter) -> Option<Self> {
        match operator {
            LabelOperator::ContainsAny => Self::any(LABELS, label_ids.iter().map(|label| BloomBits::of_labels([label]))),
            LabelOperator::ContainsAll => Self::all(LABELS, [BloomBits::of_labels(label_ids)]),
            LabelOperator::DoesNotContainAny => None,
        }
    }
}

/// Returns the choices of a pre-filter: `marks`, with the last of them repeated up to the next of the numbers in [`CHOICES`]. `None`: there
/// are no `marks`, or too many.
fn pad_choices(marks: impl IntoIterator<Item = BloomBits>) -> Option<Vec<BloomBits>> {
    let mut choices: Vec<BloomBits> = marks.into_iter().collect();
    let number = CHOICES.into_iter().find(|number| *number >= choices.len())?;
    choices.resize(number, *choices.last()?);
    Some(choices)
}

/// A property that similar values share: the first character of a text or the magnitude of a number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ValueProperty {
    /// The first character of the folded text.
    Beginning(char),
    Magnitude(u64),
}

impl ValueProperty {
    /// Returns the property of a value. `folded` is the folded text, if the value is a text. `None`: the text is empty.
    fn of(value: &Comparable, folded: Option<&str>) -> Option<Self> {
        match value {
            Comparable::Text(_) => folded.and_then(Self::beginning),
            Comparable::Number(number) => Some(Self::Magnitude(magnitude(*number))),
        }
    }

    fn beginning(folded: &str) -> Option<Self> {
        folded.chars().next().map(Self::Beginning)
    }

    /// Returns how many whole numbers have this property. `None`: infinitely many, or it is a property of texts.
    fn numbers(&self) -> Option<u64> {
        match self {
            Self::Beginning(_) | Self::Magnitude(0 | LARGEST) => None,
            Self::Magnitude(1) => Some(1),
            Self::Magnitude(magnitude) => Some(1 << (magnitude - 2)),
        }
    }

    fn marks(self, field: &FieldId) -> BloomBits {
        match self {
            Self::Beginning(first) => one(&["begins", field.as_str(), first.encode_utf8(&mut [0; 4])]),
            Self::Magnitude(magnitude) => one(&["measures", field.as_str(), &magnitude.to_string()]),
        }
    }
}

/// Returns the two bits of a value itself, as opposed to the bits of its [`ValueProperty`].
fn is(field: &FieldId, value: &Comparable) -> BloomBits {
    match value {
        Comparable::Text(text) => one(&["text", field.as_str(), text]),
        // The addition turns -0.0 into 0.0, since both zeros are equal.
        Comparable::Number(number) => one(&["number", field.as_str(), &(number + 0.0).to_bits().to_string()]),
    }
}

/// The greatest magnitude, which all numbers from 2^20 (about a million) on have.
const LARGEST: u64 = 22;

/// A range of more magnitudes than this has no pre-filter: nearly all numbers have one of its magnitudes.
const MOST_MAGNITUDES: usize = 20;

/// The least number that counts as large. Its magnitude is [`LARGE`].
const LEAST_LARGE: f64 = 1024.0;
const LARGE: u64 = 12;

/// Returns the magnitude of a number, which all numbers between the same two powers of two share: 0 for numbers below zero, 1 below one, 2
/// below two, 3 below four. A larger number never has a smaller magnitude.
fn magnitude(number: f64) -> u64 {
    match number {
        _ if number < 0.0 => 0,
        _ if number < 1.0 => 1,
        // The exponent of the floating-point number, which follows the sign bit.
        _ => ((number.to_bits() >> 52) - 1023 + 2).min(LARGEST),
    }
}

/// Returns the bits of all pairs of neighbouring characters (bigrams) in a folded text. A pair sets only one bit: a search for a part of a
/// text usually tests several pairs, and so several bits.
fn bigram_bits(field: &FieldId, folded: &str) -> BloomBits {
    let seed = number(&hashed(&["pairs", field.as_str()]), 0);
    let mut marks = BloomBits::default();
    for (one, next) in folded.chars().zip(folded.chars().skip(1)) {
        marks = BloomBits(marks.0 | 1 << (splitmix_step(seed ^ u64::from(one) << 32 ^ u64::from(next)) % 63));
        if marks == ALL_BITS {
            break;
        }
    }
    marks
}

const ALL_BITS: BloomBits = BloomBits(i64::MAX);

/// Returns the two bits of a label, a value, a first character or a magnitude. These bits and the bits of pairs ([`bigram_bits`]) are
/// stored. So a change of how bits are computed requires a migration that computes the Bloom filters of all tickets again.
fn one(parts: &[&str]) -> BloomBits {
    let hash = hashed(parts);
    let first = number(&hash, 0) % 63;
    BloomBits(1 << first | 1 << ((first + 1 + number(&hash, 8) % 62) % 63))
}

fn hashed(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn number(hash: &[u8; 32], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|i| hash[at + i]))
}

/// Hashes a number with the last step of splitmix64. The hash must be cheap, since a text has many pairs.
fn splitmix_step(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::unicode_text::fold;

    impl BloomPreFilter {
        fn passes(&self, marks: FieldBloomBits) -> bool {
            let BloomBits(has) = if self.column == TEXTS { marks.text_marks } else { marks.field_marks };
            let rare = self.rare.iter().flat_map(|rare| &rare.choices);
            self.choices.iter().chain(rare).any(|BloomBits(wanted)| has & wanted >= *wanted)
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
        fn values_that_pass_a_field_test_pass_its_pre_filter(has in values(), others in values(), also in values(), field in ".*", more in "[a-z]") {
            let field = FieldId::from(field);
            let marks: FieldBloomBits = [FieldBloomBits::of(&field, &has), FieldBloomBits::of(&more.into(), &also)].into_iter().collect();
            let passes = |test| BloomPreFilter::of(&field, &test).all(|pre_filter| pre_filter.passes(marks));
            for one in &has {
                let mut wanted = others.clone();
                wanted.push(one.clone());
                prop_assert!(passes(Test::AnyOf(wanted)));
                if let Comparable::Text(text) = one {
                    let folded = fold(text);
                    for (end, _) in folded.char_indices().chain([(folded.len(), ' ')]) {
                        prop_assert!(passes(Test::StartsWith(folded[..end].to_owned())));
                        prop_assert!(passes(Test::Contains(folded[end..].to_owned())));
                        prop_assert!(passes(Test::Contains(folded[end..].chars().take(3).collect())));
                    }
                }
            }
            prop_assert!(passes(Test::AllOf(has)));
        }

        #[test]
        fn numbers_within_bounds_pass_the_pre_filter_of_these_bounds(number in number(), least in number(), most in number(), field in ".*") {
            let field = FieldId::from(field);
            let marks = FieldBloomBits::of(&field, [&Comparable::Number(number)]);
            let passes = |test| BloomPreFilter::of(&field, &test).all(|pre_filter| pre_filter.passes(marks));
            prop_assert!(passes(Test::Above(least)) || number <= least);
            prop_assert!(passes(Test::Below(most)) || number >= most);
            prop_assert!(passes(Test::Between(least, most)) || number < least || number > most);
            prop_assert!(passes(Test::Between(number, number)));
            // The tests of `RareNumberChoices::such` select exactly the numbers that have the rare magnitudes.
            for number in [number, LEAST_LARGE, LEAST_LARGE.next_down(), -0.0] {
                prop_assert_eq!((number < 0.0, number >= LEAST_LARGE), (magnitude(number) < 1, magnitude(number) >= LARGE));
            }
        }

        #[test]
        fn labels_that_match_a_filter_pass_its_pre_filter(has in prop::collection::vec(".*", 1..5), others in prop::collection::vec(".*", 0..5)) {
            let has: Vec<LabelId> = has.into_iter().map(LabelId::from).collect();
            let marks = FieldBloomBits { field_marks: BloomBits::of_labels(&has), ..FieldBloomBits::default() };
            let passes = |operator, label_ids| BloomPreFilter::of_labels(&LabelFilter { operator, label_ids }).is_none_or(|wanted| wanted.passes(marks));
            prop_assert!(passes(LabelOperator::ContainsAll, has.clone()));
            let others: Vec<LabelId> = others.into_iter().map(LabelId::from).chain(has.first().cloned()).collect();
            prop_assert!(passes(LabelOperator::ContainsAny, others));
        }
    }

    /// Asserts the bits of known values: bits are stored, so their hash must never change.
    #[test]
    fn the_stored_bloom_bits_of_known_values_never_change() {
        let field = FieldId::from("region");
        let bits = |marks: BloomBits| (0..63).filter(|bit| marks.bits() & (1 << bit) != 0).collect::<Vec<u32>>();
        let of = |value| {
            let FieldBloomBits { field_marks, text_marks } = FieldBloomBits::of(&field, [&value]);
            [bits(field_marks), bits(text_marks)]
        };
        assert_eq!(bits(BloomBits::of_labels([&"vip".into()])), [28, 60]);
        for zero in [0.0, -0.0] {
            assert_eq!(of(Comparable::Number(zero)), [vec![15, 32, 44, 59], vec![]]);
        }
        assert_eq!(of(Comparable::Number(40.0)), [vec![22, 50, 51, 62], vec![]]);
        assert_eq!(of(Comparable::Text("North".to_owned())), [vec![24, 32, 51, 58], vec![1, 21, 51, 60]]);
        assert!(of(Comparable::Text("N".to_owned()))[1].is_empty());
        assert!(ValueProperty::beginning("").is_none());
    }

    #[test]
    fn a_larger_number_never_has_a_smaller_magnitude() {
        let numbers =
            [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 0.99, 1.0, 1.99, 2.0, 4.0, 1023.0, 1024.0, 524_288.0, 1_048_576.0, 1e300, f64::INFINITY];
        assert_eq!(numbers.map(magnitude), [0, 0, 1, 1, 1, 2, 2, 3, 4, 11, 12, 21, 22, LARGEST, LARGEST]);
    }

    #[test]
    fn a_pre_filter_rejects_most_tickets_that_do_not_match() {
        let field = FieldId::from("n");
        let number = |number: u32| Comparable::Number(number.into());
        // Tickets of four values each. A test for one value matches only the first ticket, a test for twenty values the first five.
        let tickets: Vec<FieldBloomBits> =
            (0..1000).map(|n| FieldBloomBits::of(&field, &[0, 1, 2, 3].map(|i| number(4 * n + i)))).collect();
        let among = |tickets: &[FieldBloomBits], test| {
            let pre_filters: Vec<BloomPreFilter> = BloomPreFilter::of(&field, &test).collect();
            assert!(!pre_filters.is_empty(), "{test:?}");
            tickets.iter().filter(|marks| pre_filters.iter().all(|pre_filter| pre_filter.passes(**marks))).count()
        };
        let through = |test| among(&tickets, test);
        let (one, many) = (through(Test::AnyOf(vec![number(0)])), through(Test::AnyOf((0..20).map(number).collect())));
        assert!((1..30).contains(&one), "{one}");
        assert!((5..400).contains(&many), "{many}");
        let (low, high) = (through(Test::Below(100.0)), through(Test::Above(3000.0)));
        assert!((25..250).contains(&low), "{low}");
        assert!((250..700).contains(&high), "{high}");
        // More than 20 values of different magnitudes are too many for a pre-filter.
        let spread = |n: u32| Comparable::Number(f64::from(n).exp2());
        assert!(BloomPreFilter::of(&field, &Test::AnyOf((0..21).map(spread).collect())).next().is_none());
        let breadths = |values: Vec<Comparable>| {
            BloomPreFilter::of(&field, &Test::AnyOf(values)).map(|pre_filter| pre_filter.choice_count()).collect::<Vec<_>>()
        };
        let numbers = |least: u32, most: u32| breadths((least..=most).map(number).collect());
        // The expected numbers are the numbers of choices of the pre-filters. Few other whole numbers have the magnitudes of 0 to 99, of 0
        // to 19, or of 16 to 24, so only the pre-filter by magnitude is used. The numbers 1 to 3 have two magnitudes, so only the
        // pre-filter by value is used.
        assert_eq!((numbers(0, 99), numbers(0, 19), numbers(16, 24), numbers(1, 3)), (vec![8], vec![6], vec![1], vec![3]));
        // Eight values are not more than `FEW_VALUES`, so both pre-filters are used. Both are also used for numbers from a million on, for
        // fractions and for texts: many other values share their magnitudes or first characters.
        assert_eq!((numbers(16, 23), numbers(2_000_000, 2_000_008)), (vec![8, 1], vec![12, 1]));
        assert_eq!(breadths((0..9).map(|n| Comparable::Number(f64::from(n) / 10.0)).collect()), [12, 1]);
        assert_eq!(breadths((10..22).map(|n| Comparable::Text(format!("TH-{n}"))).collect()), [12, 1]);
        // The first choice of a pre-filter is the magnitude of the upper bound, or that of the lower bound if there is no upper bound.
        let first = |test| BloomPreFilter::of(&field, &test).next().unwrap().choices[0];
        let measures = |magnitude: u64| ValueProperty::Magnitude(magnitude).marks(&field);
        assert_eq!([Test::Below(20.0), Test::Between(3.0, 20.0), Test::Above(20.0)].map(first), [6, 6, 6].map(measures));
        let orders: Vec<FieldBloomBits> =
            (0..1000).map(|n| FieldBloomBits::of(&field, [&Comparable::Text(format!("Order {}", 1_000_000 + 7919 * n))])).collect();
        let (part, beginning) =
            (among(&orders, Test::Contains("7919".to_owned())), among(&orders, Test::StartsWith("order 13".to_owned())));
        assert!((1..20).contains(&part), "{part}");
        assert!((12..60).contains(&beginning), "{beginning}");
        let labels: Vec<LabelId> = (0..1000).map(|number| format!("label {number}").into()).collect();
        let wanted = LabelFilter { operator: LabelOperator::ContainsAny, label_ids: vec![labels[0].clone()] };
        let pre_filter = BloomPreFilter::of_labels(&wanted).unwrap();
        let of = |label| FieldBloomBits { field_marks: BloomBits::of_labels([label]), ..FieldBloomBits::default() };
        let labelled = labels.iter().filter(|label| pre_filter.passes(of(*label))).count();
        assert!((1..10).contains(&labelled), "{labelled}");
    }
}
