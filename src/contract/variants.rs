//! `oneOf`, `anyOf` and what a discriminator tells apart: which variants belong together in both documents.
//!
//! Variants are paired by the name that they are referred to by, else by being equal, else by being the only ones left of
//! their type. So their order means nothing.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{
    flat::{Flat, at as index},
    keywords,
    refs::{Side, mapped, name_of, reference},
    rules,
    schema::Below,
    values::{Object, canonical, empty, items, keys, members, step, text},
    walk::{At, Walk},
};

pub(super) fn compare<'a>(walk: &mut Walk<'a>, at: &At, old: &Flat<'a>, new: &Flat<'a>, below: &mut Below<'_, 'a>) {
    for key in ["oneOf", "anyOf"] {
        let (before, after) = (old.member(key), new.member(key));
        match (&before, &after) {
            (None, None) => {}
            (Some(one), Some(other)) if one.is_array() && other.is_array() => listed(walk, at, key, &before, &after, below),
            (Some(Cow::Borrowed(Value::Array(_)) | Cow::Owned(Value::Array(_))), None) => walk.tell_of(&rules::CONSTRAINT_REMOVED, at, key),
            (None, Some(Cow::Borrowed(Value::Array(_)) | Cow::Owned(Value::Array(_)))) => walk.tell_of(&rules::CONSTRAINT_ADDED, at, key),
            _ => walk.tell_keyword(at, key, before.as_deref(), after.as_deref()),
        }
    }
    let (Some(before), Some(after)) = (old.object(), new.object()) else { return };
    discriminator(walk, at, before, after);
    let lists = |schema: &Object| schema.contains_key("oneOf") || schema.contains_key("anyOf");
    if !lists(before) && !lists(after) && old.discriminates && new.discriminates {
        let (was, is) = (walk.old.told_apart(before, &old.outer), walk.new.told_apart(after, &new.outer));
        told_apart(walk, at, was, is, below);
    }
}

/// Variants in a list: their labels, the same in both documents where they belong together.
fn listed<'a>(
    walk: &mut Walk<'a>,
    at: &At,
    key: &str,
    before: &Option<Cow<'a, Value>>,
    after: &Option<Cow<'a, Value>>,
    below: &mut Below<'_, 'a>,
) {
    let (one, other) = labels(&walk.old, items(before.as_deref()), &walk.new, items(after.as_deref()));
    let all: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for label in all {
        let place = at.step(&format!("<{}>", step(label)));
        match (one.get(label), other.get(label)) {
            (Some(was), Some(is)) => below.compare(place, index(before, *was), index(after, *is)),
            (was, _) => walk.tell_either(was.is_none(), &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, &place, Some(key)),
        }
    }
}

type Labels = BTreeMap<String, usize>;

fn labels(old: &Side, before: &[Value], new: &Side, after: &[Value]) -> (Labels, Labels) {
    let (mut one, mut other) = (Labels::new(), Labels::new());
    let (mut left, mut right): (Vec<usize>, Vec<usize>) = ((0..before.len()).collect(), (0..after.len()).collect());
    // By name.
    for (side, list, labels) in [(&mut left, before, &mut one), (&mut right, after, &mut other)] {
        side.retain(|position| match reference(&list[*position]) {
            Some(reference) => {
                insert(labels, name_of(reference), *position);
                false
            }
            None => true,
        });
    }
    // By being equal. Those are the same, so what they are called is of no account.
    let mut same = Vec::new();
    left.retain(|position| {
        let equal = right.iter().position(|candidate| before[*position] == after[*candidate]);
        equal.map(|found| same.push((*position, right.remove(found)))).is_none()
    });
    for (was, is) in same {
        let label = format!("{} {}", kind(old, &before[was]), &super::values::hex(&super::values::sha256(&canonical(&before[was])))[..6]);
        insert(&mut one, label.clone(), was);
        insert(&mut other, label, is);
    }
    // By type.
    for (side, document, list, labels) in [(&left, old, before, &mut one), (&right, new, after, &mut other)] {
        for position in side {
            insert(labels, kind(document, &list[*position]), *position);
        }
    }
    (one, other)
}

fn insert(labels: &mut Labels, label: String, position: usize) {
    let mut unique = label.clone();
    let mut count = 1;
    while labels.contains_key(&unique) {
        count += 1;
        unique = format!("{label} {count}");
    }
    labels.insert(unique, position);
}

/// The type of an inline variant, as far as it tells one.
fn kind(side: &Side, schema: &Value) -> String {
    let schema = super::flat::flat(side, Cow::Owned(schema.clone())).schema.into_owned();
    let object = members(&schema);
    match object.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if object.contains_key("properties") => "object".to_owned(),
        _ => "variant".to_owned(),
    }
}

fn discriminator(walk: &mut Walk, at: &At, old: &Object, new: &Object) {
    if !keywords::shaped(walk, at, "discriminator", old, new, Value::is_object) {
        return;
    }
    let (before, after) = match (old.get("discriminator"), new.get("discriminator")) {
        (None, None) => return,
        (Some(before), Some(after)) => (members(before), members(after)),
        (before, after) => {
            let rule = if after.is_some() { &rules::DISCRIMINATOR_ADDED } else { &rules::DISCRIMINATOR_REMOVED };
            return walk.tell_values(rule, at, before, after);
        }
    };
    match (text(before, "propertyName"), text(after, "propertyName")) {
        (Some(was), Some(is)) if was != is => {
            walk.tell_values(&rules::DISCRIMINATOR_CHANGED, at, before.get("propertyName"), after.get("propertyName"));
        }
        (Some(_), Some(_)) => {}
        _ => walk.tell_keyword(at, "propertyName", before.get("propertyName"), after.get("propertyName")),
    }
    if keywords::shaped(walk, at, "mapping", before, after, Value::is_object) {
        let mapping = |object: &Object| members(object.get("mapping").unwrap_or(empty())).clone();
        let (was, is) = (mapping(before), mapping(after));
        for value in keys(&was, &is) {
            match (was.get(value), is.get(value)) {
                (Some(old), Some(new)) if old == new => {}
                (Some(Value::String(old)), Some(Value::String(new))) if mapped(old) == mapped(new) => {
                    walk.tell_of(&rules::RESTATED, at, &format!("mapping {value}"));
                }
                (Some(old), Some(new)) => walk.tell_all(&rules::MAPPING_CHANGED, at, Some(value), Some(old), Some(new)),
                (old, _) => walk.tell_either(old.is_none(), &rules::MAPPING_ADDED, &rules::MAPPING_REMOVED, at, Some(value)),
            }
        }
    }
    walk.rest(at, before, after, &["propertyName", "mapping"]);
}

/// Schemas that say `allOf` of this one, and those that the mapping names: not listed here, and yet what may stand here.
fn told_apart<'a>(walk: &mut Walk<'a>, at: &At, was: Vec<(String, String)>, is: Vec<(String, String)>, below: &mut Below<'_, 'a>) {
    let (was, is): (BTreeMap<_, _>, BTreeMap<_, _>) = (was.into_iter().collect(), is.into_iter().collect());
    let all: std::collections::BTreeSet<_> = was.keys().chain(is.keys()).collect();
    for label in all {
        let place = at.step(&format!("<{}>", step(label)));
        let schema = |reference: &String| Some(Cow::Owned(serde_json::json!({ "$ref": reference })));
        match (was.get(label), is.get(label)) {
            (Some(old), Some(new)) => below.compare(place, schema(old), schema(new)),
            (old, _) => walk.tell_either(old.is_none(), &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, &place, Some("discriminator")),
        }
    }
}
