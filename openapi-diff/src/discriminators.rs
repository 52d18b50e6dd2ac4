//! Compares the discriminators of schemas: the property that they name, the mapping, and the variants that they select without a `oneOf`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Value, json};

use super::{
    comparison_state::{Differ, Location},
    json_values::{Object, empty, items, keys, members, step, text},
    references::{DocumentIndex, name_of, reference, reference_of_mapping},
    rules,
    schema::Subschemas,
    schema_resolution::resolve,
    validation_keywords,
};

pub(super) fn discriminator(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    if !validation_keywords::shaped(differ, at, "discriminator", old, new, Value::is_object) {
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
    if validation_keywords::shaped(differ, at, "mapping", before, after, Value::is_object) {
        let mapping = |object: &Object| members(object.get("mapping").unwrap_or(empty())).clone();
        let (was, is) = (mapping(before), mapping(after));
        for value in keys(&was, &is) {
            match (was.get(value), is.get(value)) {
                (Some(old), Some(new)) if old == new => {}
                (Some(Value::String(old)), Some(Value::String(new))) if reference_of_mapping(old) == reference_of_mapping(new) => {
                    differ.report_detail(&rules::RESTATED, at, &format!("mapping {value}"));
                }
                (Some(Value::String(target)), Some(Value::String(now))) if renamed([old, new], [target, now]) => {
                    differ.report_detail(&rules::RESTATED, at, &format!("mapping {value}"));
                }
                (Some(old), Some(new)) => differ.report_full(&rules::MAPPING_CHANGED, at, Some(value), Some(old), Some(new)),
                // Without a mapping, the name of a variant is its discriminator value. A mapping entry that repeats this has no effect.
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

/// Whether the target of a discriminator value counts as renamed. It does not if the old schema already refers to the new target, or if the
/// new schema still refers to the old target: then the value selects another schema than before. The contents of the two targets are
/// compared elsewhere, as variants.
fn renamed(schemas: [&Object; 2], targets: [&String; 2]) -> bool {
    let knows = |schema: &Object, target: &String| {
        let target = reference_of_mapping(target);
        let listed =
            ["oneOf", "anyOf"].into_iter().flat_map(|key| items(schema.get(key))).filter_map(reference).any(|variant| variant == target);
        let mapping = schema.get("discriminator").and_then(|discriminator| discriminator.get("mapping")).and_then(Value::as_object);
        listed
            || mapping.is_some_and(|mapping| mapping.values().filter_map(Value::as_str).any(|other| reference_of_mapping(other) == target))
    };
    !knows(schemas[0], targets[1]) && !knows(schemas[1], targets[0])
}

/// Whether a schema requires a property: by itself, or by each variant of its `oneOf` or `anyOf`.
fn requires(side: &DocumentIndex, schema: &Object, name: &str, depth: usize) -> bool {
    let all = |key: &str| {
        let variants = items(schema.get(key));
        let required = |variant: &Value| {
            resolve(side, Cow::Owned(variant.clone())).object().is_some_and(|variant| requires(side, variant, name, depth + 1))
        };
        !variants.is_empty() && variants.iter().all(required)
    };
    items(schema.get("required")).iter().any(|item| item == name) || depth < 8 && (all("oneOf") || all("anyOf"))
}

/// Whether a discriminator value needs no mapping, because it is the name of a variant that the schema lists.
fn implied(schema: &Object, value: &str, target: &Value) -> bool {
    let Some(target) = target.as_str().map(reference_of_mapping) else { return false };
    let variants = ["oneOf", "anyOf"].into_iter().flat_map(|key| items(schema.get(key)));
    name_of(&target) == value && variants.filter_map(reference).any(|variant| variant == target)
}

/// Compares the variants that a discriminator selects without a `oneOf`: the schemas that extend the discriminator's schema by `allOf`, and
/// the targets of its mapping.
pub(super) fn by_discriminator<'a>(
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
        let schema = |reference: &String| Some(Cow::Owned(json!({ "$ref": reference })));
        match (was.get(label), is.get(label)) {
            (Some(old), Some(new)) => below.compare(place, schema(old), schema(new)),
            (old, _) => differ.report_either(old.is_none(), &rules::VARIANT_ADDED, &rules::VARIANT_REMOVED, &place, Some("discriminator")),
        }
    }
}
