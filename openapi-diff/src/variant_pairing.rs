//! Pairs the variants of two choices (`oneOf`, `anyOf`), so that each pair can be compared.
//!
//! The pairing takes several steps. Each step pairs variants that the steps before it have left:
//!
//! - variants whose references have the same name
//! - with a discriminator: variants that the same discriminator values select
//! - without a discriminator: equivalent variants, then variants of which one includes the other
//! - variants of the same type, in the order of the lists

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;

use super::{
    comparison_state::Differ,
    json_values::{canonical, hex, members, sha256},
    one_of_any_of::Variants,
    references::{DocumentIndex, name_of, reference, reference_of_mapping},
    rules::Direction,
    schema_resolution::resolve,
    semantics::{DocumentRole, SideSchema},
};

/// Two lists of variants to pair.
pub(super) struct Pairing<'p, 'a> {
    pub differ: &'p Differ<'a>,
    pub direction: Direction,
    pub before: &'p Variants<'a>,
    pub after: &'p Variants<'a>,
    /// The names of the references that occur in both lists.
    pub both: BTreeSet<String>,
    pub discriminators: [Option<&'p Value>; 2],
}

/// The label of a pair of variants, and their positions in the old and in the new list. A variant without a partner has only one position.
pub(super) type VariantMatch = (String, Option<usize>, Option<usize>);

impl<'a> Pairing<'_, 'a> {
    pub fn pairs(&self) -> Vec<VariantMatch> {
        let mut pairs = Vec::new();
        let (mut left, mut right): (Vec<usize>, Vec<usize>) = ((0..self.before.len()).collect(), (0..self.after.len()).collect());
        let name = |variant: &Cow<Value>| reference(variant).map(name_of);
        let take = |pairs: &mut Vec<VariantMatch>,
                    left: &mut Vec<usize>,
                    right: &mut Vec<usize>,
                    belong: &dyn Fn(usize, usize) -> Option<String>| {
            left.retain(|one| match right.iter().position(|other| belong(*one, *other).is_some()) {
                Some(found) => {
                    let other = right.remove(found);
                    pairs.push((belong(*one, other).unwrap_or_default(), Some(*one), Some(other)));
                    false
                }
                None => true,
            });
        };
        let called = |one: usize, other: usize| {
            let names: BTreeSet<_> = [name(&self.before[one]), name(&self.after[other])].into_iter().flatten().collect();
            if names.is_empty() { self.kind(one, other) } else { names.into_iter().collect::<Vec<_>>().join(" or ") }
        };
        take(&mut pairs, &mut left, &mut right, &|one, other| {
            name(&self.before[one])
                .filter(|name| self.both.contains(name) && reference(&self.after[other]).map(name_of).as_ref() == Some(name))
        });
        let same = |one: usize, other: usize| {
            let label = called(one, other);
            let hash = |side: &DocumentIndex, variant: &Value| {
                hex(&sha256(&canonical(&resolve(side, Cow::Owned(variant.clone())).schema)))[..6].to_owned()
            };
            if name(&self.before[one]).or(name(&self.after[other])).is_some() {
                return label;
            }
            // The label of an unchanged variant without a name gets a hash of the variant. Otherwise an unchanged and a changed variant of
            // the same type would get the same label, which the end of this method would number: `string` and `string 2`. These numbers
            // would depend on the other variants of the list, but a label is part of a location, which has to be stable.
            format!("{label} {}", hash(&self.differ.old, &self.before[one]).min(hash(&self.differ.new, &self.after[other])))
        };
        let named = self.discriminators.iter().any(Option::is_some);
        if named {
            let values = |side: usize, variant: &Cow<Value>| self.values(side, variant);
            take(&mut pairs, &mut left, &mut right, &|one, other| {
                let (was, is) = (values(0, &self.before[one]), values(1, &self.after[other]));
                (!was.is_empty() && was == is).then(|| called(one, other))
            });
        } else {
            take(&mut pairs, &mut left, &mut right, &|one, other| self.equal(one, other).then(|| same(one, other)));
            take(&mut pairs, &mut left, &mut right, &|one, other| self.equivalent(one, other).then(|| same(one, other)));
            self.by_inclusion(&mut pairs, &mut left, &mut right, &called);
        }
        // A variant that is still unpaired and has a name gets that name as its label. Unpaired variants without a name are paired by type,
        // in the order of the lists.
        let mut lonely: BTreeMap<String, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, positions, list, document) in [(0, &left, self.before, &self.differ.old), (1, &right, self.after, &self.differ.new)] {
            for position in positions {
                let variant = &list[*position];
                let label = name(variant).unwrap_or_else(|| format!(" {}", kind(document, variant)));
                lonely.entry(label).or_default()[side].push(*position);
            }
        }
        for (label, [one, other]) in lonely {
            for position in 0..one.len().max(other.len()) {
                pairs.push((label.trim().to_owned(), one.get(position).copied(), other.get(position).copied()));
            }
        }
        let mut taken = BTreeSet::new();
        for (label, ..) in &mut pairs {
            let (plain, mut count) = (label.clone(), 1);
            while !taken.insert(label.clone()) {
                count += 1;
                *label = format!("{plain} {count}");
            }
        }
        pairs.sort();
        pairs
    }

    fn schemas(&self, one: usize, other: usize) -> [SideSchema<'a>; 2] {
        [SideSchema::new(DocumentRole::Old, self.before[one].clone()), SideSchema::new(DocumentRole::New, self.after[other].clone())]
    }

    fn equal(&self, one: usize, other: usize) -> bool {
        self.before[one] == self.after[other] && self.differ.identical(&self.before[one], &self.after[other])
    }

    fn equivalent(&self, one: usize, other: usize) -> bool {
        let [one, other] = self.schemas(one, other);
        self.differ.semantics(self.direction).strict().equivalent(&one, &other)
    }

    /// Pairs an old and a new variant if one includes the other. A variant that has several such partners stays unpaired. Two variants that
    /// are both references are not paired. If there are more than 400 possible pairs, this method pairs no variants, since each check costs
    /// time.
    fn by_inclusion(
        &self,
        pairs: &mut Vec<VariantMatch>,
        left: &mut Vec<usize>,
        right: &mut Vec<usize>,
        called: &dyn Fn(usize, usize) -> String,
    ) {
        if left.len() * right.len() > 400 {
            return;
        }
        let related = |one: usize, other: usize| {
            if reference(&self.before[one]).is_some() && reference(&self.after[other]).is_some() {
                return false;
            }
            let [one, other] = self.schemas(one, other);
            let semantics = self.differ.semantics(self.direction).strict();
            semantics.fits_any(&one, std::slice::from_ref(&other.value), &other)
                || semantics.fits_any(&other, std::slice::from_ref(&one.value), &one)
        };
        let related: BTreeSet<(usize, usize)> = left
            .iter()
            .flat_map(|one| right.iter().map(move |other| (*one, *other)))
            .filter(|(one, other)| related(*one, *other))
            .collect();
        let alone = |pair: &&(usize, usize)| related.iter().filter(|other| other.0 == pair.0 || other.1 == pair.1).count() == 1;
        for (one, other) in related.iter().filter(alone) {
            pairs.push((called(*one, *other), Some(*one), Some(*other)));
            left.retain(|position| position != one);
            right.retain(|position| position != other);
        }
    }

    /// Returns the discriminator values that the mapping assigns to a variant.
    fn values(&self, side: usize, variant: &Value) -> BTreeSet<String> {
        let Some(target) = reference(variant) else { return BTreeSet::new() };
        let mapping = self.discriminators[side].and_then(|discriminator| discriminator.get("mapping"));
        let pairs = mapping.and_then(Value::as_object).into_iter().flatten();
        pairs.filter(|(_, to)| to.as_str().is_some_and(|to| reference_of_mapping(to) == target)).map(|(value, _)| value.clone()).collect()
    }

    /// Returns the type of a pair of variants, for its label. If the two types differ, returns the type that comes first in the alphabet.
    fn kind(&self, one: usize, other: usize) -> String {
        kind(&self.differ.old, &self.before[one]).min(kind(&self.differ.new, &self.after[other]))
    }
}

/// Returns the type of a variant in words, or `variant` if it has none.
fn kind(side: &DocumentIndex, schema: &Value) -> String {
    let schema = resolve(side, Cow::Owned(schema.clone())).schema.into_owned();
    let object = members(&schema);
    match object.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if object.contains_key("properties") => "object".to_owned(),
        _ => "variant".to_owned(),
    }
}
