//! Compares choices, which are schemas with `oneOf` or `anyOf`, variant by variant.
//!
//! The module `variant_pairing` pairs the variants. If only one document has a choice, the schema of the other document is treated as a
//! list of variants: the schema itself, or one schema for each of its types. An added or removed variant is a compatible change if a
//! variant of the other document accepts all its values.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value, json};

use super::{
    classification::Pair,
    comparison_state::{Differ, Location},
    discriminators::{by_discriminator, discriminator},
    json_values::{Object, empty, is_annotation, items, members, step},
    references::{DocumentIndex, MAX_REFERENCE_CHAIN, name_of, reference},
    rules::{self, Direction},
    schema::Subschemas,
    schema_resolution::{Resolved, element, resolve},
    semantics::{DocumentRole, Overlap, SideSchema, is_of},
    validation_keywords,
    variant_pairing::Pairing,
};

/// Once a list has more variants than this, choices (`oneOf`, `anyOf`) that are nested in the list are not expanded.
const NESTED: usize = 200;

pub(super) type Variants<'a> = Vec<Cow<'a, Value>>;

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
        let (was, is) = (differ.old.by_discriminator(before, &old.outer), differ.new.by_discriminator(after, &new.outer));
        by_discriminator(differ, at, was, is, below);
    }
}

/// Reports a `oneOf` or `anyOf` that only one of the two schemas has: as an added or removed constraint, or as restated if it has no
/// effect.
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

/// Reports changes in the values that a `oneOf` refuses because more than one variant accepts them.
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

/// Returns the variants of a schema that consists of one choice, and the keyword that lists them (`oneOf` or `anyOf`). `nullable` next to
/// the choice adds null as a variant; `type` next to the choice applies to each variant. None for any other schema.
fn choice<'a>(side: &DocumentIndex<'a>, flat: &Resolved<'a>) -> Option<(&'static str, Variants<'a>)> {
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
            if !side.document.is_3_1() && validation_keywords::takes_null(side, object) {
                all.push(Cow::Owned(null));
            }
        }
        None if validation_keywords::takes_null(side, object) => all.push(Cow::Owned(null)),
        None => {}
    }
    Some((key, all))
}

/// Returns a schema without a choice (`oneOf`, `anyOf`) as a list of variants: the schema itself, or one schema for each of its types. None
/// for a schema with a choice or `allOf`, and for a schema that restricts neither its types nor its properties nor its values.
fn as_choice<'a>(side: &DocumentIndex<'a>, flat: &Resolved<'a>, written: Option<Cow<'a, Value>>) -> Option<Variants<'a>> {
    let object = flat.object().filter(|object| !["oneOf", "anyOf", "allOf"].iter().any(|key| object.contains_key(*key)))?;
    let split = by_type(side, object);
    if split.len() < 2 {
        let typed = flat.broken.is_some() || ["type", "properties", "enum", "const"].iter().any(|key| object.contains_key(*key));
        return typed.then(|| vec![written.unwrap_or_else(|| flat.schema.clone())]);
    }
    Some(split)
}

/// Splits a schema that lists several types into one schema for each type.
fn by_type<'a>(side: &DocumentIndex<'a>, object: &Object) -> Variants<'a> {
    let mut types = items(object.get("type")).to_vec();
    types.extend(object.get("type").filter(|named| named.is_string()).cloned());
    if !side.document.is_3_1() && object.contains_key("type") && super::json_values::flag(object, "nullable") {
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

/// Returns the schema if it is a part of the document (borrowed), or a reference to such a part. None for any other schema that the
/// comparison built (owned), such as by merging the parts of an `allOf`.
pub(super) fn written<'a>(schema: &Cow<'a, Value>) -> Option<Cow<'a, Value>> {
    match schema {
        Cow::Borrowed(schema) => Some(Cow::Borrowed(*schema)),
        Cow::Owned(schema) => reference(schema).map(|_| Cow::Owned(schema.clone())),
    }
}

/// Compares a choice (`oneOf`, `anyOf`) with a schema that is no choice, and returns true. Returns false without comparing if both schemas
/// are choices, if neither is a choice, or if one of them cannot be treated as a list of variants.
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
    // If both schemas are the same reference, the two targets are compared instead.
    for _ in 0..MAX_REFERENCE_CHAIN {
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

/// Pairs the variants of two lists, queues each pair for comparison and reports the variants without a partner. The label of a pair is part
/// of its location.
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
        false => (expanded(differ, DocumentRole::Old, key, before, &both), expanded(differ, DocumentRole::New, key, after, &both)),
    };
    let pairs = Pairing { differ, direction: at.direction, before: &before, after: &after, both, discriminators }.pairs();
    for (label, was, is) in pairs {
        let place = at.step(&format!("<{}>", step(&label)));
        match (was, is) {
            (Some(was), Some(is)) => below.compare(place, Some(before[was].clone()), Some(after[is].clone())),
            (Some(was), None) => unmatched_variant(differ, &place, key, false, (DocumentRole::Old, &before[was]), &after, named),
            (None, Some(is)) => unmatched_variant(differ, &place, key, true, (DocumentRole::New, &after[is]), &before, named),
            (None, None) => {}
        }
    }
}

/// Reports a variant that has no partner in the other document.
fn unmatched_variant<'a>(
    differ: &mut Differ<'a>,
    place: &Location,
    key: &str,
    is_new: bool,
    (which, variant): (DocumentRole, &Cow<'a, Value>),
    others: &Variants<'a>,
    named: bool,
) {
    let variant = SideSchema::new(which, variant.clone());
    let other = SideSchema::new(if is_new { DocumentRole::Old } else { DocumentRole::New }, Cow::Borrowed(empty()));
    let semantics = differ.semantics(place.direction).illustrating();
    // With a discriminator, each value names its variant, so no other variant can accept the values of this variant. Therefore this check
    // is left out.
    if !named && differ.semantics(place.direction).strict().fits_any(&variant, others, &other) {
        return differ.report_either(is_new, &rules::VARIANT_LISTED, &rules::VARIANT_UNLISTED, place, Some(key));
    }
    let breaks = place.direction == if is_new { Direction::Response } else { Direction::Request };
    let all = SideSchema::new(other.which, Cow::Owned(json!({ "anyOf": others })));
    let witness = if breaks { semantics.witness(&variant, &all) } else { None };
    differ.report_either(is_new, &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, place, Some(key));
    differ.add_witness(witness.as_ref());
}

/// Expands each variant of `list` that is itself a choice into the variants of that choice, and each inline variant with several types into
/// one variant for each type. A choice is expanded only if the new list provably accepts the same values. A reference whose name is in
/// `kept` is not expanded.
fn expanded<'a>(differ: &Differ<'a>, which: DocumentRole, key: &str, list: Variants<'a>, kept: &BTreeSet<String>) -> Variants<'a> {
    let side = if which == DocumentRole::Old { &differ.old } else { &differ.new };
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
