//! Compares the JSON Schema applicators (keywords that contain subschemas) that no other module compares, such as `not`, `if` and
//! `contains`. Also compares the parts of an `allOf` that cannot be merged.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Value, json};

use super::{
    classification::Pair,
    comparison_state::{Differ, Location},
    json_values::{Object, is_annotation, items, keys, members},
    keyword_applicability::Applicability,
    rules,
    schema::{Subschemas, members_of},
    schema_resolution::{Resolved, element, inner},
    semantics::only,
};

/// All keywords that [`Differ::applicators`] compares.
pub(super) const APPLICATORS: [&str; 14] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
    "contentSchema",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// Groups of keywords that take effect together. Without the first keyword of a group, the other keywords of the group have no effect.
const GROUPS: [&[&str]; 6] = [
    &["not"],
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
    &["unevaluatedItems"],
    &["unevaluatedProperties"],
    &["additionalItems"],
];

impl<'a> Differ<'a> {
    /// Compares the parts of an `allOf` that could not be merged. Each part of the old schema is paired with a part of the new schema that
    /// has the same first keyword. Equal parts are paired first, then the remaining parts in their order.
    pub(super) fn compare_unmerged_parts(&mut self, at: &Location, old: &Resolved<'a>, new: &Resolved<'a>, below: &mut Subschemas<'_, 'a>) {
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
            pairs.into_iter().for_each(|(was, is)| below.compare(at.as_part(), was, is));
        }
    }

    pub(super) fn applicators(
        &mut self,
        at: &Location,
        old: &Resolved<'a>,
        new: &Resolved<'a>,
        pair: &Pair<'_, 'a>,
        applicability: &Applicability,
        below: &mut Subschemas<'_, 'a>,
    ) {
        for group in GROUPS.into_iter().filter(|group| group.iter().any(|key| applicability.compares(key))) {
            self.applicator(at, [old, new], pair, group);
        }
        if applicability.compares("contentSchema") && (old.member("contentSchema").is_some() || new.member("contentSchema").is_some()) {
            below.compare(at.step("(content)"), old.member("contentSchema"), new.member("contentSchema"));
        }
        if applicability.compares("dependentSchemas") {
            self.dependent_schemas(at, [old, new], pair);
        }
        // A definition has an effect only where a reference leads to it, and is compared there. Here a changed definition is reported as
        // restated, which means without effect.
        for key in ["$defs", "definitions"] {
            let (before, after) = (old.member(key), new.member(key));
            for name in keys(members_of(&before), members_of(&after)) {
                if inner(&before, name) != inner(&after, name) {
                    self.report_detail(&rules::RESTATED, at, &format!("{key} {name}"));
                }
            }
            if [&before, &after].into_iter().flatten().any(|value| !value.is_object()) {
                self.report_keyword(at, key, before.as_deref(), after.as_deref());
            }
        }
    }

    fn applicator(&mut self, at: &Location, schemas: [&Resolved<'a>; 2], pair: &Pair<'_, 'a>, group: &[&str]) {
        let members = |key: &str| schemas.map(|schema| schema.member(key));
        let differs = |key: &&str| match members(key) {
            [Some(one), Some(other)] => !self.identical(&one, &other),
            [one, other] => one.is_some() != other.is_some(),
        };
        let differing: Vec<&str> = group.iter().copied().filter(differs).collect();
        let Some(first) = group.first().copied().filter(|_| !differing.is_empty()) else { return };
        let is_schema = |value: &Value| value.is_object() || value.is_boolean();
        let fits = |key: &str, value: &Value| if key.ends_with("Contains") { value.is_u64() } else { is_schema(value) };
        let odd: Vec<_> = differing.iter().copied().filter(|key| members(key).iter().flatten().any(|value| !fits(key, value))).collect();
        if !odd.is_empty() {
            for key in differing {
                let [one, other] = members(key);
                self.report_keyword(at, key, one.as_deref(), other.as_deref());
            }
            return;
        }
        let [one, other] = schemas.map(|schema| schema.object().cloned().unwrap_or_default());
        if [&one, &other].iter().all(|object| narrows_nothing(object, first)) {
            return self.report_detail(&rules::RESTATED, at, &differing.join(", "));
        }
        // Which properties and items count as unevaluated or additional depends on the other keywords of the schema. So for these groups
        // the whole schemas are compared, and not only the keywords of the group.
        let whole = first.starts_with("unevaluated") || first == "additionalItems";
        let [before, after] = [&one, &other].map(|object| if whole { Value::Object(object.clone()) } else { only(Some(object), group) });
        let decision = self.decision(at, pair, before, after);
        let added = one.contains_key(first) != other.contains_key(first);
        if added {
            let rule = if *decision.rule() == rules::RESTATED {
                &rules::RESTATED
            } else if other.contains_key(first) {
                &rules::CONSTRAINT_ADDED
            } else {
                &rules::CONSTRAINT_REMOVED
            };
            self.report_detail(rule, at, first);
            self.add_witness(decision.witness(at.direction));
        } else {
            self.report_decision(at, &differing.join(", "), [None, None], &decision);
        }
    }

    fn dependent_schemas(&mut self, at: &Location, schemas: [&Resolved<'a>; 2], pair: &Pair<'_, 'a>) {
        const KEY: &str = "dependentSchemas";
        let [before, after] = schemas.map(|schema| schema.member(KEY));
        if [&before, &after].into_iter().flatten().any(|value| !value.is_object()) {
            return self.report_keyword(at, KEY, before.as_deref(), after.as_deref());
        }
        for name in keys(members_of(&before), members_of(&after)) {
            let (had, has) = (inner(&before, name), inner(&after, name));
            let detail = format!("{KEY} {name}");
            let schema = |schema: &Option<Cow<Value>>| schema.as_deref().map_or(json!({}), |schema| json!({ KEY: { (name): schema } }));
            match (&had, &has) {
                (Some(one), Some(other)) if self.identical(one, other) => continue,
                (Some(one), None) | (None, Some(one)) if allows_everything(one) => self.report_detail(&rules::RESTATED, at, &detail),
                _ => {
                    let decision = self.decision(at, pair, schema(&had), schema(&has));
                    self.report_decision(at, &detail, [None, None], &decision);
                }
            }
        }
    }
}

/// Whether a schema accepts every value: it is `true`, or has only annotations.
pub(super) fn allows_everything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(|schema| schema.keys().all(|key| is_annotation(key)))
}

/// Whether a schema refuses every value: it is `false`, or `not` with a schema that accepts every value.
pub(super) fn allows_nothing(schema: &Value) -> bool {
    let mut said = members(schema).iter().filter(|(key, _)| !is_annotation(key));
    *schema == Value::Bool(false)
        || said.next().is_some_and(|(key, inner)| key == "not" && allows_everything(inner)) && said.next().is_none()
}

/// Whether a group of keywords is absent or has no effect. `first` is the first keyword of the group.
fn narrows_nothing(object: &Object, first: &str) -> bool {
    let Some(schema) = object.get(first) else { return true };
    match first {
        "if" => !object.contains_key("then") && !object.contains_key("else"),
        // In a schema with `items`, no item is unevaluated. In a schema with `additionalProperties`, no property is unevaluated.
        "unevaluatedItems" if object.contains_key("items") => true,
        "unevaluatedProperties" if object.contains_key("additionalProperties") => true,
        // `not` and `contains` restrict values even if their subschema accepts every value.
        "not" | "contains" => false,
        _ => allows_everything(schema),
    }
}
