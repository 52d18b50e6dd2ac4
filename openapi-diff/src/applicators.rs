//! Schemas whose effect depends on more than themselves: what several parts of an `allOf` say under one keyword, and
//! keywords such as `not`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;

use super::{
    applicability::Applicability,
    differ::{Differ, Location},
    resolve::{Resolved, element, inner},
    rules,
    schema::{Subschemas, members_of},
    values::{is_annotation, items, keys, members},
};

/// Keywords that hold a schema whose effect depends on others: whatever differs within is told as one change.
pub(super) const OPAQUE: [&str; 9] =
    ["not", "if", "then", "else", "contains", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"];
/// Keywords that hold such schemas by name.
pub(super) const OPAQUE_MAPS: [&str; 3] = ["dependentSchemas", "$defs", "definitions"];
/// Opaque keywords (`not`) within each other.
const NESTED: usize = 8;

impl<'a> Differ<'a> {
    /// What several parts of an `allOf` say under one keyword each, if nothing joins them: paired as they come.
    pub(super) fn unjoined(&mut self, at: &Location, old: &Resolved<'a>, new: &Resolved<'a>, below: &mut Subschemas<'_, 'a>) {
        let (before, after) = (old.member("allOf"), new.member("allOf"));
        let list = |value: &Option<Cow<Value>>| value.as_deref().is_none_or(Value::is_array);
        if !list(&before) || !list(&after) {
            return self.report_keyword(at, "allOf", before.as_deref(), after.as_deref());
        }
        if before.is_some() != after.is_some() && [&before, &after].iter().all(|list| items(list.as_deref()).is_empty()) {
            self.report_detail(&rules::RESTATED, at, "allOf");
        }
        type Kept<'a> = Vec<Cow<'a, Value>>;
        let by_keyword = |value: &Option<Cow<'a, Value>>| {
            let mut kept: BTreeMap<String, Kept<'a>> = BTreeMap::new();
            for position in 0..items(value.as_deref()).len() {
                let Some(schema) = element(value, position) else { continue };
                let key = members(&schema).keys().next().cloned().unwrap_or_default();
                kept.entry(key).or_default().push(schema);
            }
            kept
        };
        let (mut one, mut other) = (by_keyword(&before), by_keyword(&after));
        let all: BTreeSet<_> = one.keys().chain(other.keys()).cloned().collect();
        for key in all {
            let (mut gone, mut come) = (one.remove(&key).unwrap_or_default(), other.remove(&key).unwrap_or_default());
            let mut pairs = Vec::new();
            gone.retain(|was| match come.iter().position(|is| was == is) {
                Some(found) => {
                    pairs.push((Some(was.clone()), Some(come.remove(found))));
                    false
                }
                None => true,
            });
            for position in 0..gone.len().max(come.len()) {
                pairs.push((gone.get(position).cloned(), come.get(position).cloned()));
            }
            pairs.into_iter().for_each(|(was, is)| below.compare(at.clone(), was, is));
        }
    }

    pub(super) fn opaque(&mut self, at: &Location, old: &Resolved<'a>, new: &Resolved<'a>, reach: &Applicability, nested: usize) {
        for key in OPAQUE.into_iter().filter(|key| reach.compares(key)) {
            let (before, after) = (old.member(key), new.member(key));
            if before.is_some() != after.is_some() && [old, new].into_iter().all(|flat| narrows_nothing(flat, key)) {
                self.report_detail(&rules::RESTATED, at, key);
            } else {
                self.opaque_one(at, key, before, after, nested);
            }
        }
        for key in OPAQUE_MAPS.into_iter().filter(|key| reach.compares(key)) {
            let (before, after) = (old.member(key), new.member(key));
            if before.as_deref().is_some_and(|value| !value.is_object()) || after.as_deref().is_some_and(|value| !value.is_object()) {
                self.report_keyword(at, key, before.as_deref(), after.as_deref());
                continue;
            }
            for name in keys(members_of(&before), members_of(&after)) {
                let (had, has) = (inner(&before, name), inner(&after, name));
                // Definitions count where something refers to them.
                let idle = key != "dependentSchemas" || [&had, &has].into_iter().flatten().all(|schema| allows_everything(schema));
                if had.is_some() != has.is_some() && idle {
                    self.report_detail(&rules::RESTATED, at, &format!("{key} {name}"));
                } else {
                    self.opaque_one(at, &format!("{key} {name}"), had, has, nested);
                }
            }
        }
    }

    fn opaque_one(&mut self, at: &Location, detail: &str, old: Option<Cow<'a, Value>>, new: Option<Cow<'a, Value>>, nested: usize) {
        let (old, new) = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) => (old, new),
            (_, new) => {
                return self.report_either(new.is_some(), &rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED, at, Some(detail));
            }
        };
        if nested >= NESTED {
            if old != new {
                self.report_detail(&rules::CONSTRAINT_CHANGED, at, detail);
            }
            return;
        }
        let before = self.found.len();
        self.schemas(at, old, new, nested + 1);
        if self.found.len() > before {
            self.found.truncate(before);
            self.report_detail(&rules::CONSTRAINT_CHANGED, at, detail);
        }
    }
}

/// Whether a schema is one that every value fits.
pub(super) fn allows_everything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(|schema| schema.keys().all(|key| is_annotation(key)))
}

/// Whether a schema is one that no value fits, in either way of saying that.
pub(super) fn allows_nothing(schema: &Value) -> bool {
    let mut said = members(schema).iter().filter(|(key, _)| !is_annotation(key));
    *schema == Value::Bool(false)
        || said.next().is_some_and(|(key, inner)| key == "not" && allows_everything(inner)) && said.next().is_none()
}

/// Whether a keyword that holds a schema is without effect, or absent.
fn narrows_nothing(flat: &Resolved, key: &str) -> bool {
    let Some(schema) = flat.member(key) else { return true };
    match key {
        "then" | "else" if flat.member("if").is_none() => true,
        "if" => flat.member("then").is_none() && flat.member("else").is_none(),
        // These two refuse values by what they allow.
        "not" | "contains" => false,
        _ => allows_everything(&schema),
    }
}
