//! `oneOf`, `anyOf` and what a discriminator tells apart: which variants belong together in both documents.
//!
//! Variants are paired by the name that they are referred to by, else by being equal, else by being the only ones left of
//! their type. So their order means nothing. A schema that becomes one of several variants, or the reverse, is compared with
//! them as a choice of one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;

use super::{
    differ::{Differ, Location},
    keywords,
    references::{CHAIN, Side, mapped, name_of, reference},
    resolve::{Resolved, element},
    rules,
    schema::Subschemas,
    values::{Object, bare, canonical, empty, is_annotation, items, keys, members, step, text},
};

pub(super) fn compare<'a>(differ: &mut Differ<'a>, at: &Location, old: &Resolved<'a>, new: &Resolved<'a>, below: &mut Subschemas<'_, 'a>) {
    let list = |flat: &Resolved<'a>, key: &str| flat.member(key).filter(|value| value.is_array());
    let only = |flat: &Resolved<'a>, key: &str, other: &str| list(flat, key).filter(|_| flat.member(other).is_none());
    let swapped = [("oneOf", "anyOf"), ("anyOf", "oneOf")].map(|(one, other)| Some((only(old, one, other)?, only(new, other, one)?)));
    if let Some(position) = swapped.iter().position(Option::is_some) {
        let rule = [&rules::ANY_FOR_ONE, &rules::ONE_FOR_ANY][position];
        differ.report(rule, at);
        let (before, after) = swapped.into_iter().flatten().next().unzip();
        listed(differ, at, "variants", (old, new), &before, &after, below);
    } else {
        for key in ["oneOf", "anyOf"] {
            let (before, after) = (old.member(key), new.member(key));
            match (&before, &after) {
                (None, None) => {}
                (Some(one), Some(other)) if one.is_array() && other.is_array() => {
                    listed(differ, at, key, (old, new), &before, &after, below);
                }
                (Some(one), None) if one.is_array() => differ.report_detail(&rules::CONSTRAINT_REMOVED, at, key),
                (None, Some(other)) if other.is_array() => differ.report_detail(&rules::CONSTRAINT_ADDED, at, key),
                _ => differ.report_keyword(at, key, before.as_deref(), after.as_deref()),
            }
        }
    }
    let (Some(before), Some(after)) = (old.object(), new.object()) else { return };
    discriminator(differ, at, before, after);
    let lists = |schema: &Object| schema.contains_key("oneOf") || schema.contains_key("anyOf");
    if !lists(before) && !lists(after) && old.discriminates && new.discriminates {
        let (was, is) = (differ.old.told_apart(before, &old.outer), differ.new.told_apart(after, &new.outer));
        told_apart(differ, at, was, is, below);
    }
}

/// The list of a schema that is nothing but a choice, and the keyword that holds it. Around a choice, `nullable` means that
/// null is one more.
fn choice<'a>(side: &Side, flat: &Resolved<'a>) -> Option<(&'static str, Cow<'a, Value>)> {
    let object = flat.object()?;
    let key = ["oneOf", "anyOf"].into_iter().find(|key| object.contains_key(*key))?;
    let beside = |other: &str| other == key || other == "discriminator" || other == "nullable" || is_annotation(other);
    let list = flat.member(key).filter(|list| object.keys().all(|other| beside(other)) && !items(Some(list)).is_empty())?;
    match keywords::takes_null(side, object) {
        true => Some((key, Cow::Owned([items(Some(&list)), &[serde_json::json!({ "type": "null" })]].concat().into()))),
        false => Some((key, list)),
    }
}

/// A schema that is of some type as a choice: of itself, or where it lists several types, of one for each.
fn as_choice<'a>(flat: &Resolved<'a>, written: Option<Cow<'a, Value>>) -> Option<Cow<'a, Value>> {
    let object = flat.object().filter(|object| !["oneOf", "anyOf", "allOf"].iter().any(|key| object.contains_key(*key)))?;
    let types = items(object.get("type"));
    if types.len() < 2 {
        let typed = flat.broken.is_some() || object.contains_key("type") || object.contains_key("properties");
        return typed.then(|| Cow::Owned(Value::Array(vec![written.unwrap_or_else(|| flat.schema.clone()).into_owned()])));
    }
    let of = |name: &Value| {
        let mut one = object.clone();
        one.insert("type".to_owned(), name.clone());
        if let Some(values) = one.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(|value| is_of(value, name.as_str().unwrap_or_default()));
        }
        Value::Object(one)
    };
    Some(Cow::Owned(types.iter().map(of).collect()))
}

/// Whether a value may be of a type that a schema names.
fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && number.as_f64().is_none_or(|number| number.fract() == 0.0),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
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
    let (key, before, after) = match (choice(&differ.old, old), choice(&differ.new, new)) {
        (Some((key, list)), None) => (key, Some(list), as_choice(new, is)),
        (None, Some((key, list))) => (key, as_choice(old, was), Some(list)),
        _ => return false,
    };
    if before.is_none() || after.is_none() {
        return false;
    }
    let told = differ.found.len();
    listed(differ, at, key, (old, new), &before, &after, below);
    if let (Some(one), Some(other)) = (old.object(), new.object()) {
        discriminator(differ, at, one, other);
    }
    if differ.found.len() == told {
        differ.report_detail(&rules::RESTATED, at, key);
    }
    true
}

/// Variants in a list: their labels, the same in both documents where they belong together.
fn listed<'a>(
    differ: &mut Differ<'a>,
    at: &Location,
    key: &str,
    of: (&Resolved<'a>, &Resolved<'a>),
    before: &Option<Cow<'a, Value>>,
    after: &Option<Cow<'a, Value>>,
    below: &mut Subschemas<'_, 'a>,
) {
    // A discriminator tells variants apart by their names.
    let named = [of.0, of.1].iter().any(|flat| flat.object().is_some_and(|object| object.contains_key("discriminator")));
    let (one, other) = labels(differ, items(before.as_deref()), items(after.as_deref()), named);
    let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for label in all {
        let place = at.step(&format!("<{}>", step(label)));
        match (one.get(label), other.get(label)) {
            (Some(was), Some(is)) => below.compare(place, element(before, *was), element(after, *is)),
            (was, _) => differ.report_either(was.is_none(), &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, &place, Some(key)),
        }
    }
}

type Labels = BTreeMap<String, usize>;

fn labels(differ: &Differ, before: &[Value], after: &[Value], named: bool) -> (Labels, Labels) {
    let (mut one, mut other) = (Labels::new(), Labels::new());
    let (mut left, mut right): (Vec<usize>, Vec<usize>) = ((0..before.len()).collect(), (0..after.len()).collect());
    let name = |variant: &Value| reference(variant).map(name_of);
    let names = |list: &[Value]| list.iter().filter_map(name).collect::<BTreeSet<_>>();
    let both: BTreeSet<_> = names(before).intersection(&names(after)).cloned().collect();
    // By name; where names count, each for itself.
    for (side, list, labels) in [(&mut left, before, &mut one), (&mut right, after, &mut other)] {
        side.retain(|position| match name(&list[*position]).filter(|name| named || both.contains(name)) {
            Some(name) => {
                insert(labels, name, *position);
                false
            }
            None => true,
        });
    }
    // By being equal, whatever they are called.
    let [was, is] = [(&differ.old, &left, before), (&differ.new, &right, after)]
        .map(|(side, left, list)| left.iter().map(|position| (*position, plain(side, &list[*position]))).collect::<BTreeMap<_, _>>());
    let mut same = Vec::new();
    left.retain(|position| {
        let equal =
            right.iter().position(|candidate| before[*position] == after[*candidate] || differ.identical(&was[position], &is[candidate]));
        equal.map(|found| same.push((*position, right.remove(found)))).is_none()
    });
    for (one_of, other_of) in same {
        let names: BTreeSet<_> = [name(&before[one_of]), name(&after[other_of])].into_iter().flatten().collect();
        let hash = || super::values::hex(&super::values::sha256(&canonical(&was[&one_of])))[..6].to_owned();
        let label = match names.is_empty() {
            true => format!("{} {}", kind(&differ.old, &before[one_of]), hash()),
            false => names.into_iter().collect::<Vec<_>>().join(" or "),
        };
        let label = unique(label, |label| one.contains_key(label) || other.contains_key(label));
        one.insert(label.clone(), one_of);
        other.insert(label, other_of);
    }
    // By type, and what has a name by that.
    for (side, document, list, labels) in [(&left, &differ.old, before, &mut one), (&right, &differ.new, after, &mut other)] {
        for position in side {
            insert(labels, name(&list[*position]).unwrap_or_else(|| kind(document, &list[*position])), *position);
        }
    }
    (one, other)
}

/// A variant, followed, without what only tells people something.
fn plain(side: &Side, variant: &Value) -> Value {
    bare(&super::resolve::resolve(side, Cow::Owned(variant.clone())).schema)
}

fn insert(labels: &mut Labels, label: String, position: usize) {
    let label = unique(label, |label| labels.contains_key(label));
    labels.insert(label, position);
}

fn unique(label: String, taken: impl Fn(&str) -> bool) -> String {
    let (mut unique, mut count) = (label.clone(), 1);
    while taken(&unique) {
        count += 1;
        unique = format!("{label} {count}");
    }
    unique
}

/// The type of an inline variant, as far as it tells one.
fn kind(side: &Side, schema: &Value) -> String {
    let schema = super::resolve::resolve(side, Cow::Owned(schema.clone())).schema.into_owned();
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
            let rule = if after.is_some() { &rules::DISCRIMINATOR_ADDED } else { &rules::DISCRIMINATOR_REMOVED };
            let name = before.or(after).and_then(|value| text(members(value), "propertyName"));
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
