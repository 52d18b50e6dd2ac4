//! `oneOf`, `anyOf` and discriminators: pairs the variants of two choices and compares them.
//!
//! Variants are paired by the name of their reference, by the value of the discriminator, by being equivalent, by one
//! including the other, and last by their type. Their order has no effect. A schema that becomes one of several variants, or
//! the reverse, is compared as a choice of one. A variant without a partner that fits into a variant of the other document
//! brings no new value.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Value, json};

use super::{
    decisions::Pair,
    differ::{Differ, Location},
    keywords,
    references::{CHAIN, Side, mapped, name_of, reference},
    resolve::{Resolved, element, resolve},
    rules::{self, Direction},
    schema::Subschemas,
    semantics::{Overlap, SideSchema, Which, is_of},
    values::{Object, canonical, empty, hex, is_annotation, items, keys, members, sha256, step, text},
};

/// Variants of a nested choice that are taken apart.
const NESTED: usize = 200;

type Variants<'a> = Vec<Cow<'a, Value>>;

pub(super) fn compare<'a>(
    differ: &mut Differ<'a>,
    at: &Location,
    old: &Resolved<'a>,
    new: &Resolved<'a>,
    pair: &Pair<'_, 'a>,
    below: &mut Subschemas<'_, 'a>,
) {
    let list = |flat: &Resolved<'a>, key: &str| flat.member(key).filter(|value| value.is_array());
    let only = |flat: &Resolved<'a>, key: &str, other: &str| list(flat, key).filter(|_| flat.member(other).is_none());
    let swapped = [("oneOf", "anyOf"), ("anyOf", "oneOf")].map(|(one, other)| Some((only(old, one, other)?, only(new, other, one)?)));
    let mut both = false;
    if let Some(position) = swapped.iter().position(Option::is_some) {
        let rule = [&rules::ANY_FOR_ONE, &rules::ONE_FOR_ANY][position];
        differ.report(rule, at);
        let (before, after) = swapped.into_iter().flatten().next().unzip();
        listed(differ, at, "variants", [old, new], [variants(&before), variants(&after)], below);
        both = true;
    } else {
        for key in ["oneOf", "anyOf"] {
            let (before, after) = (old.member(key), new.member(key));
            match (&before, &after) {
                (None, None) => {}
                (Some(one), Some(other)) if one.is_array() && other.is_array() => {
                    listed(differ, at, key, [old, new], [variants(&before), variants(&after)], below);
                    both |= key == "oneOf";
                }
                (Some(one), None) if one.is_array() => restriction(differ, at, [old, new], pair, key),
                (None, Some(other)) if other.is_array() => restriction(differ, at, [old, new], pair, key),
                _ => differ.report_keyword(at, key, before.as_deref(), after.as_deref()),
            }
        }
    }
    if both {
        overlaps(differ, at, pair);
    }
    let (Some(before), Some(after)) = (old.object(), new.object()) else { return };
    discriminator(differ, at, before, after);
    let lists = |schema: &Object| schema.contains_key("oneOf") || schema.contains_key("anyOf");
    if !lists(before) && !lists(after) && old.discriminates && new.discriminates {
        let (was, is) = (differ.old.told_apart(before, &old.outer), differ.new.told_apart(after, &new.outer));
        told_apart(differ, at, was, is, below);
    }
}

/// A choice that came or went beside other keywords.
fn restriction<'a>(differ: &mut Differ<'a>, at: &Location, schemas: [&Resolved<'a>; 2], pair: &Pair<'_, 'a>, key: &str) {
    let [one, other] = schemas.map(|schema| super::semantics::only(schema.object(), &[key]));
    let added = members(&other).contains_key(key);
    let decision = differ.decision(at, pair, one, other);
    if *decision.rule() == rules::RESTATED {
        return differ.report_detail(&rules::RESTATED, at, key);
    }
    differ.report_either(added, &rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED, at, Some(key));
    differ.add_witness(decision.witness(at.direction));
}

/// Values that a `oneOf` refuses because more than one variant accepts them.
fn overlaps<'a>(differ: &mut Differ<'a>, at: &Location, pair: &Pair<'_, 'a>) {
    let semantics = differ.semantics(at.direction);
    let (lost, gained) = (semantics.overlap(pair.old, pair.new), semantics.overlap(pair.new, pair.old));
    for (overlap, direction, found, perhaps) in [
        (lost, Direction::Request, &rules::VARIANTS_OVERLAP, &rules::VARIANTS_MAY_OVERLAP),
        (gained, Direction::Response, &rules::VARIANTS_SEPARATED, &rules::VARIANTS_MAY_SEPARATE),
    ] {
        match overlap {
            Overlap::None => {}
            Overlap::Found(value) => {
                differ.report(found, at);
                differ.add_witness(Some(&value).filter(|_| at.direction == direction));
            }
            Overlap::Undecided => differ.report(perhaps, at),
        }
    }
}

fn variants<'a>(list: &Option<Cow<'a, Value>>) -> Variants<'a> {
    (0..items(list.as_deref()).len()).filter_map(|position| element(list, position)).collect()
}

/// The variants of a schema that is nothing but a choice, and the keyword that holds them. Around a choice, `nullable` means
/// that null is one more; a type beside it holds for each variant.
fn choice<'a>(side: &Side<'a>, flat: &Resolved<'a>) -> Option<(&'static str, Variants<'a>)> {
    let object = flat.object()?;
    let key = ["oneOf", "anyOf"].into_iter().find(|key| object.contains_key(*key))?;
    let beside = |other: &str| other == key || ["discriminator", "nullable", "type"].contains(&other) || is_annotation(other);
    let list = flat.member(key).filter(|list| object.keys().all(|other| beside(other)) && !items(Some(list)).is_empty())?;
    let mut all = variants(&Some(list));
    let null = json!({ "type": "null" });
    match object.get("type") {
        Some(named) => {
            let of_type = |variant: &Cow<Value>| {
                resolve(side, Cow::Owned(variant.as_ref().clone())).object().is_some_and(|schema| schema.get("type") == Some(named))
            };
            if !all.iter().all(of_type) {
                all = all.into_iter().map(|variant| Cow::Owned(json!({ "allOf": [{ "type": named }, variant] }))).collect();
            }
            if !side.document.is_3_1() && keywords::takes_null(side, object) {
                all.push(Cow::Owned(null));
            }
        }
        None if keywords::takes_null(side, object) => all.push(Cow::Owned(null)),
        None => {}
    }
    Some((key, all))
}

/// A schema that is of some type as a choice: of itself, or where it lists several types, of one for each.
fn as_choice<'a>(side: &Side<'a>, flat: &Resolved<'a>, written: Option<Cow<'a, Value>>) -> Option<Variants<'a>> {
    let object = flat.object().filter(|object| !["oneOf", "anyOf", "allOf"].iter().any(|key| object.contains_key(*key)))?;
    let split = by_type(side, object);
    if split.len() < 2 {
        let typed = flat.broken.is_some() || ["type", "properties", "enum", "const"].iter().any(|key| object.contains_key(*key));
        return typed.then(|| vec![written.unwrap_or_else(|| flat.schema.clone())]);
    }
    Some(split)
}

/// A schema that lists several types as one schema for each.
fn by_type<'a>(side: &Side<'a>, object: &Object) -> Variants<'a> {
    let mut types = items(object.get("type")).to_vec();
    types.extend(object.get("type").filter(|named| named.is_string()).cloned());
    if !side.document.is_3_1() && object.contains_key("type") && super::values::flag(object, "nullable") {
        types.push("null".into());
    }
    let of = |name: &Value| {
        if name == "null" {
            return Cow::Owned(json!({ "type": "null" }));
        }
        let mut one = object.clone();
        one.remove("nullable");
        one.insert("type".to_owned(), name.clone());
        if let Some(values) = one.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(|value| is_of(value, name.as_str().unwrap_or_default()));
        }
        Cow::Owned(Value::Object(one))
    };
    types.iter().map(of).collect()
}

/// How a schema is written, where that is worth keeping: of one that was put together, what it comes to is as good.
pub(super) fn written<'a>(schema: &Cow<'a, Value>) -> Option<Cow<'a, Value>> {
    match schema {
        Cow::Borrowed(schema) => Some(Cow::Borrowed(*schema)),
        Cow::Owned(schema) => reference(schema).map(|_| Cow::Owned(schema.clone())),
    }
}

/// Compares a choice with a schema that is none; false where this is not what both are.
pub(super) fn compare_with_one<'a>(
    differ: &mut Differ<'a>,
    at: &Location,
    [old, new]: [&Resolved<'a>; 2],
    [mut was, mut is]: [Option<Cow<'a, Value>>; 2],
    pair: &Pair<'_, 'a>,
    below: &mut Subschemas<'_, 'a>,
) -> bool {
    if old.broken != new.broken || [old, new].iter().any(|flat| flat.cut || !flat.beside.is_empty()) {
        return false;
    }
    // What both call by the same name is called by what that leads to.
    for _ in 0..CHAIN {
        let (Some(one), Some(other)) = (was.as_deref().and_then(reference), is.as_deref().and_then(reference)) else { break };
        if one != other {
            break;
        }
        (was, is) = (differ.old.target(one).map(Cow::Borrowed), differ.new.target(other).map(Cow::Borrowed));
    }
    let is_choice = |flat: &Resolved<'a>| flat.object().is_some_and(|object| object.contains_key("oneOf") || object.contains_key("anyOf"));
    if is_choice(old) == is_choice(new) {
        return false;
    }
    let (key, before, after) = match (choice(&differ.old, old), choice(&differ.new, new)) {
        (Some((key, list)), None) => (key, Some(list), as_choice(&differ.new, new, is)),
        (None, Some((key, list))) => (key, as_choice(&differ.old, old, was), Some(list)),
        _ => return false,
    };
    let (Some(before), Some(after)) = (before, after) else { return false };
    let reported = differ.found.len();
    listed(differ, at, key, [old, new], [before, after], below);
    overlaps(differ, at, pair);
    if let (Some(one), Some(other)) = (old.object(), new.object()) {
        discriminator(differ, at, one, other);
    }
    if differ.found.len() == reported {
        differ.report_detail(&rules::RESTATED, at, key);
    }
    true
}

/// Compares the variants of two lists. Variants that belong together have the same label.
fn listed<'a>(
    differ: &mut Differ<'a>,
    at: &Location,
    key: &str,
    of: [&Resolved<'a>; 2],
    [before, after]: [Variants<'a>; 2],
    below: &mut Subschemas<'_, 'a>,
) {
    let names = |list: &Variants<'a>| list.iter().filter_map(|variant| reference(variant).map(name_of)).collect::<BTreeSet<_>>();
    let both: BTreeSet<_> = names(&before).intersection(&names(&after)).cloned().collect();
    let discriminators = of.map(|flat| flat.object().and_then(|object| object.get("discriminator")));
    let named = discriminators.iter().any(Option::is_some);
    let (before, after) = match named {
        true => (before, after),
        false => (expanded(differ, Which::Old, key, before, &both), expanded(differ, Which::New, key, after, &both)),
    };
    let pairs = Pairing { differ, direction: at.direction, before: &before, after: &after, both, discriminators }.pairs();
    for (label, was, is) in pairs {
        let place = at.step(&format!("<{}>", step(&label)));
        match (was, is) {
            (Some(was), Some(is)) => below.compare(place, Some(before[was].clone()), Some(after[is].clone())),
            (Some(was), None) => lonely(differ, &place, key, false, (Which::Old, &before[was]), &after, named),
            (None, Some(is)) => lonely(differ, &place, key, true, (Which::New, &after[is]), &before, named),
            (None, None) => {}
        }
    }
}

/// A variant that has no partner in the other document.
fn lonely<'a>(
    differ: &mut Differ<'a>,
    place: &Location,
    key: &str,
    is_new: bool,
    (which, variant): (Which, &Cow<'a, Value>),
    others: &Variants<'a>,
    named: bool,
) {
    let variant = SideSchema::new(which, variant.clone());
    let other = SideSchema::new(if is_new { Which::Old } else { Which::New }, Cow::Borrowed(empty()));
    let semantics = differ.semantics(place.direction).illustrating();
    // A discriminator tells variants apart by name.
    if !named && differ.semantics(place.direction).strict().fits_any(&variant, others, &other) {
        return differ.report_either(is_new, &rules::VARIANT_LISTED, &rules::VARIANT_UNLISTED, place, Some(key));
    }
    let breaks = place.direction == if is_new { Direction::Response } else { Direction::Request };
    let all = SideSchema::new(other.which, Cow::Owned(json!({ "anyOf": others })));
    let witness = if breaks { semantics.witness(&variant, &all) } else { None };
    differ.report_either(is_new, &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, place, Some(key));
    differ.add_witness(witness.as_ref());
}

/// The variants with nested choices and lists of types taken apart, where that accepts the same values.
fn expanded<'a>(differ: &Differ<'a>, which: Which, key: &str, list: Variants<'a>, kept: &BTreeSet<String>) -> Variants<'a> {
    let side = if which == Which::Old { &differ.old } else { &differ.new };
    let mut all = Variants::new();
    let mut todo: Vec<_> = list.into_iter().rev().map(|variant| (variant, 0)).collect();
    while let Some((variant, depth)) = todo.pop() {
        let named = reference(&variant).map(name_of);
        if depth > 8 || all.len() + todo.len() > NESTED || named.as_ref().is_some_and(|name| kept.contains(name)) {
            all.push(variant);
            continue;
        }
        let resolved = resolve(side, variant.clone());
        let plain = resolved.broken.is_none() && !resolved.cut && resolved.beside.is_empty();
        let inner = choice(side, &resolved).filter(|_| plain && !resolved.discriminates);
        if let Some((inner_key, inner)) = inner {
            let schemas: Vec<_> = inner.iter().map(|variant| SideSchema::new(which, variant.clone())).collect();
            if key == "anyOf" && inner_key == "anyOf" || differ.semantics(Direction::Both).exclusive(&schemas) {
                todo.extend(inner.into_iter().rev().map(|variant| (variant, depth + 1)));
                continue;
            }
        }
        match resolved.object().filter(|_| plain && named.is_none()).map(|object| by_type(side, object)) {
            Some(types) if types.len() > 1 => all.extend(types),
            _ => all.push(variant),
        }
    }
    all
}

/// Two lists of variants, and what tells which of them belong together.
struct Pairing<'p, 'a> {
    differ: &'p Differ<'a>,
    direction: Direction,
    before: &'p Variants<'a>,
    after: &'p Variants<'a>,
    /// Names of references that both lists hold.
    both: BTreeSet<String>,
    discriminators: [Option<&'p Value>; 2],
}

/// A label, and the positions of its variants in the old and the new list.
type Labelled = (String, Option<usize>, Option<usize>);

impl<'a> Pairing<'_, 'a> {
    fn pairs(&self) -> Vec<Labelled> {
        let mut pairs = Vec::new();
        let (mut left, mut right): (Vec<usize>, Vec<usize>) = ((0..self.before.len()).collect(), (0..self.after.len()).collect());
        let name = |variant: &Cow<Value>| reference(variant).map(name_of);
        let take =
            |pairs: &mut Vec<Labelled>, left: &mut Vec<usize>, right: &mut Vec<usize>, belong: &dyn Fn(usize, usize) -> Option<String>| {
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
            let hash =
                |side: &Side, variant: &Value| hex(&sha256(&canonical(&resolve(side, Cow::Owned(variant.clone())).schema)))[..6].to_owned();
            if name(&self.before[one]).or(name(&self.after[other])).is_some() {
                return label;
            }
            // The hash keeps the variants that changed at their labels.
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
        // What has a name is labelled by it; what has none is paired by its type, in the order of the lists.
        let mut lonely: BTreeMap<String, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, positions, list, document) in [(0, &left, self.before, &self.differ.old), (1, &right, self.after, &self.differ.new)] {
            for position in positions {
                let variant = &list[*position];
                let label = name(variant).map_or_else(|| format!(" {}", kind(document, variant)), |name| name);
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
        [SideSchema::new(Which::Old, self.before[one].clone()), SideSchema::new(Which::New, self.after[other].clone())]
    }

    fn equal(&self, one: usize, other: usize) -> bool {
        self.before[one] == self.after[other] && self.differ.identical(&self.before[one], &self.after[other])
    }

    fn equivalent(&self, one: usize, other: usize) -> bool {
        let [one, other] = self.schemas(one, other);
        self.differ.semantics(self.direction).strict().equivalent(&one, &other)
    }

    /// Pairs variants of which one includes the other, where that leaves no doubt.
    fn by_inclusion(
        &self,
        pairs: &mut Vec<Labelled>,
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

    /// The values of the discriminator that stand for a variant.
    fn values(&self, side: usize, variant: &Cow<Value>) -> BTreeSet<String> {
        let Some(target) = reference(variant) else { return BTreeSet::new() };
        let mapping = self.discriminators[side].and_then(|discriminator| discriminator.get("mapping"));
        let pairs = mapping.and_then(Value::as_object).into_iter().flatten();
        pairs.filter(|(_, to)| to.as_str().is_some_and(|to| mapped(to) == target)).map(|(value, _)| value.clone()).collect()
    }

    /// The type of two inline variants.
    fn kind(&self, one: usize, other: usize) -> String {
        kind(&self.differ.old, &self.before[one]).min(kind(&self.differ.new, &self.after[other]))
    }
}

/// The type of an inline variant, as far as it tells one.
fn kind(side: &Side, schema: &Value) -> String {
    let schema = resolve(side, Cow::Owned(schema.clone())).schema.into_owned();
    let object = members(&schema);
    match object.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if object.contains_key("properties") => "object".to_owned(),
        _ => "variant".to_owned(),
    }
}

fn discriminator(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    if !keywords::shaped(differ, at, "discriminator", old, new, Value::is_object) {
        return;
    }
    let (before, after) = match (old.get("discriminator"), new.get("discriminator")) {
        (None, None) => return,
        (Some(before), Some(after)) => (members(before), members(after)),
        (before, after) => {
            let name = before.or(after).and_then(|value| text(members(value), "propertyName"));
            let (side, schema) = if after.is_some() { (&differ.old, old) } else { (&differ.new, new) };
            let required = name.is_some_and(|name| requires(side, schema, name, 0));
            let rule = match (after.is_some(), required) {
                (true, false) => &rules::DISCRIMINATOR_ADDED,
                (false, false) => &rules::DISCRIMINATOR_REMOVED,
                (true, true) => &rules::DISCRIMINATOR_NAMED,
                (false, true) => &rules::DISCRIMINATOR_UNNAMED,
            };
            return differ.report_full(rule, at, name, before, after);
        }
    };
    match (text(before, "propertyName"), text(after, "propertyName")) {
        (Some(was), Some(is)) if was != is => {
            differ.report_values(&rules::DISCRIMINATOR_CHANGED, at, before.get("propertyName"), after.get("propertyName"));
        }
        (Some(_), Some(_)) => {}
        _ => differ.report_keyword(at, "propertyName", before.get("propertyName"), after.get("propertyName")),
    }
    if keywords::shaped(differ, at, "mapping", before, after, Value::is_object) {
        let mapping = |object: &Object| members(object.get("mapping").unwrap_or(empty())).clone();
        let (was, is) = (mapping(before), mapping(after));
        for value in keys(&was, &is) {
            match (was.get(value), is.get(value)) {
                (Some(old), Some(new)) if old == new => {}
                (Some(Value::String(old)), Some(Value::String(new))) if mapped(old) == mapped(new) => {
                    differ.report_detail(&rules::RESTATED, at, &format!("mapping {value}"));
                }
                (Some(Value::String(target)), Some(Value::String(now))) if renamed([old, new], [target, now]) => {
                    differ.report_detail(&rules::RESTATED, at, &format!("mapping {value}"));
                }
                (Some(old), Some(new)) => differ.report_full(&rules::MAPPING_CHANGED, at, Some(value), Some(old), Some(new)),
                // A variant is told by its name where nothing else is said.
                (Some(target), None) if implied(new, value, target) => {
                    differ.report_detail(&rules::RESTATED, at, &format!("mapping {value}"))
                }
                (None, Some(target)) if implied(old, value, target) => {
                    differ.report_detail(&rules::RESTATED, at, &format!("mapping {value}"))
                }
                (old, _) => differ.report_either(old.is_none(), &rules::MAPPING_ADDED, &rules::MAPPING_REMOVED, at, Some(value)),
            }
        }
    }
    differ.rest(at, before, after, &["propertyName", "mapping"]);
}

/// Whether a discriminator value leads to a schema that only has another name: neither document knows both names. The two
/// schemas are compared as variants.
fn renamed(schemas: [&Object; 2], targets: [&String; 2]) -> bool {
    let knows = |schema: &Object, target: &String| {
        let target = mapped(target);
        let listed =
            ["oneOf", "anyOf"].into_iter().flat_map(|key| items(schema.get(key))).filter_map(reference).any(|variant| variant == target);
        let mapping = schema.get("discriminator").and_then(|discriminator| discriminator.get("mapping")).and_then(Value::as_object);
        listed || mapping.is_some_and(|mapping| mapping.values().filter_map(Value::as_str).any(|other| mapped(other) == target))
    };
    !knows(schemas[0], targets[1]) && !knows(schemas[1], targets[0])
}

/// Whether each value of a schema holds a property.
fn requires(side: &Side, schema: &Object, name: &str, depth: usize) -> bool {
    let all = |key: &str| {
        let variants = items(schema.get(key));
        let required = |variant: &Value| {
            resolve(side, Cow::Owned(variant.clone())).object().is_some_and(|variant| requires(side, variant, name, depth + 1))
        };
        !variants.is_empty() && variants.iter().all(required)
    };
    items(schema.get("required")).iter().any(|item| item == name) || depth < 8 && (all("oneOf") || all("anyOf"))
}

/// Whether a schema has a variant that a value stands for by being its name.
fn implied(schema: &Object, value: &str, target: &Value) -> bool {
    let Some(target) = target.as_str().map(mapped) else { return false };
    let variants = ["oneOf", "anyOf"].into_iter().flat_map(|key| items(schema.get(key)));
    name_of(&target) == value && variants.filter_map(reference).any(|variant| variant == target)
}

/// Schemas that say `allOf` of this one, and those that the mapping names: not listed here, and yet what may stand here.
fn told_apart<'a>(
    differ: &mut Differ<'a>,
    at: &Location,
    was: Vec<(String, String)>,
    is: Vec<(String, String)>,
    below: &mut Subschemas<'_, 'a>,
) {
    let (was, is): (BTreeMap<_, _>, BTreeMap<_, _>) = (was.into_iter().collect(), is.into_iter().collect());
    let all: BTreeSet<_> = was.keys().chain(is.keys()).collect();
    for label in all {
        let place = at.step(&format!("<{}>", step(label)));
        let schema = |reference: &String| Some(Cow::Owned(serde_json::json!({ "$ref": reference })));
        match (was.get(label), is.get(label)) {
            (Some(old), Some(new)) => below.compare(place, schema(old), schema(new)),
            (old, _) => differ.report_either(old.is_none(), &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, &place, Some("discriminator")),
        }
    }
}
