//! A schema as one object: references followed, and what `allOf` gathers merged into one.
//!
//! So a property that moves into a base schema is no change, and one that changes in there is found where it is used.
//! Merging is what a reader means by `allOf`, not a proof: what two parts say differently and no rule reconciles stays
//! under `allOf`, where it is compared as it is written.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{
    refs::{Side, name_of, reference},
    values::{Object, canonical, is_annotation, items, members, same},
};

/// A schema, flat.
#[derive(Debug)]
pub(super) struct Flat<'a> {
    /// An object, or `true`, `false`, or something that is no schema at all.
    pub schema: Cow<'a, Value>,
    /// What it was called by, directly or in `allOf`.
    pub names: BTreeSet<String>,
    /// One that could not be.
    pub broken: Option<String>,
    /// Those of them that name the whole of it, and not a part of its `allOf`.
    pub outer: Vec<String>,
    /// It tells variants apart itself, and does not merely inherit that.
    pub discriminates: bool,
    /// It has more parts than are looked at.
    pub cut: bool,
}

impl<'a> Flat<'a> {
    pub fn object(&self) -> Option<&Object> {
        self.schema.as_object()
    }

    /// A member, as long-lived as the schema is.
    pub fn member(&self, key: &str) -> Option<Cow<'a, Value>> {
        match &self.schema {
            Cow::Borrowed(schema) => schema.get(key).map(Cow::Borrowed),
            Cow::Owned(schema) => schema.get(key).cloned().map(Cow::Owned),
        }
    }
}

/// A member of a member.
pub(super) fn inner<'a>(value: &Option<Cow<'a, Value>>, key: &str) -> Option<Cow<'a, Value>> {
    match value.as_ref()? {
        Cow::Borrowed(value) => value.get(key).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(key).cloned().map(Cow::Owned),
    }
}

pub(super) fn at<'a>(value: &Option<Cow<'a, Value>>, index: usize) -> Option<Cow<'a, Value>> {
    match value.as_ref()? {
        Cow::Borrowed(value) => value.get(index).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(index).cloned().map(Cow::Owned),
    }
}

/// As many references and parts as one schema may be made of.
const PARTS: usize = 2000;

pub(super) fn flat<'a>(side: &Side<'a>, schema: Cow<'a, Value>) -> Flat<'a> {
    let mut flattening =
        Flattening { side, names: BTreeSet::new(), outer: Vec::new(), broken: None, left: PARTS, inside: 0, discriminates: false };
    let schema = flattening.flatten(schema, &mut Vec::new(), true);
    let Flattening { names, outer, broken, left, discriminates, .. } = flattening;
    Flat { schema, names, outer, discriminates, broken, cut: left == 0 }
}

struct Flattening<'s, 'a> {
    side: &'s Side<'a>,
    names: BTreeSet<String>,
    outer: Vec<String>,
    broken: Option<String>,
    left: usize,
    /// Within how many `allOf`.
    inside: usize,
    discriminates: bool,
}

impl<'a> Flattening<'_, 'a> {
    fn flatten(&mut self, schema: Cow<'a, Value>, followed: &mut Vec<String>, outermost: bool) -> Cow<'a, Value> {
        if self.inside == 0 && schema.get("discriminator").is_some() {
            self.discriminates = true;
        }
        if let Some(target) = reference(&schema).map(str::to_owned) {
            self.followed(schema, target, followed, outermost)
        } else if items(schema.get("allOf")).is_empty() {
            schema
        } else {
            self.gathered(&schema, followed, outermost)
        }
    }

    fn followed(&mut self, schema: Cow<'a, Value>, target: String, followed: &mut Vec<String>, outermost: bool) -> Cow<'a, Value> {
        if outermost {
            self.names.insert(name_of(&target));
        }
        if self.inside == 0 {
            self.outer.push(target.clone());
        }
        let found = self.side.target(&target).filter(|_| !followed.contains(&target));
        let (Some(found), Some(left)) = (found, self.left.checked_sub(1)) else {
            self.broken.get_or_insert(target);
            return Cow::Borrowed(super::values::empty());
        };
        self.left = left;
        followed.push(target);
        let found = self.flatten(Cow::Borrowed(found), followed, false);
        let mut own = members(&schema).clone();
        own.retain(|key, _| key != "$ref" && !is_annotation(key));
        // OpenAPI 3.0 passes over what stands beside a reference.
        if own.is_empty() || !self.side.document.is_3_1() {
            return found;
        }
        let own = self.flatten(Cow::Owned(Value::Object(own)), followed, outermost);
        Cow::Owned(Value::Object(merged(&[&own, &found])))
    }

    fn gathered(&mut self, schema: &Value, followed: &mut Vec<String>, outermost: bool) -> Cow<'a, Value> {
        let mut own = members(schema).clone();
        let parts = own.remove("allOf");
        let mut all = vec![Cow::Owned(Value::Object(own))];
        let before = followed.clone();
        self.inside += 1;
        for part in items(parts.as_ref()) {
            let Some(left) = self.left.checked_sub(1) else { break };
            self.left = left;
            // What two parts both inherit is no loop.
            let mut behind = before.clone();
            all.push(self.flatten(Cow::Owned(part.clone()), &mut behind, outermost));
            followed.extend(behind.drain(before.len()..));
        }
        self.inside -= 1;
        Cow::Owned(Value::Object(merged(&all.iter().map(Cow::as_ref).collect::<Vec<_>>())))
    }
}

/// What all of several schemas say together.
fn merged(parts: &[&Value]) -> Object {
    let (mut all, mut unresolved) = (Object::new(), BTreeSet::new());
    for part in parts {
        let Some(part) = part.as_object() else {
            if **part != Value::Bool(true) {
                unresolved.insert(canonical(part));
            }
            continue;
        };
        for (key, value) in part.iter().filter(|(key, _)| !is_annotation(key)) {
            let Some(known) = all.get_mut(key) else {
                all.insert(key.clone(), value.clone());
                continue;
            };
            if same(known, value) || combine(key, known, value) {
                continue;
            }
            let mut one = Object::new();
            one.insert(key.clone(), value.clone());
            unresolved.insert(canonical(&Value::Object(one)));
        }
    }
    if !unresolved.is_empty() {
        all.insert("allOf".to_owned(), unresolved.into_iter().map(Value::String).collect());
    }
    all
}

/// Adds what another part says under the same keyword; false where they contradict each other.
fn combine(key: &str, known: &mut Value, other: &Value) -> bool {
    match (key, known, other) {
        ("properties" | "patternProperties", Value::Object(known), Value::Object(other)) => {
            for (name, schema) in other {
                match known.get_mut(name) {
                    None => {
                        known.insert(name.clone(), schema.clone());
                    }
                    Some(first) if same(first, schema) => {}
                    Some(first) => *first = serde_json::json!({ "allOf": [first.take(), schema] }),
                }
            }
            true
        }
        ("required", Value::Array(known), Value::Array(other)) => {
            for name in other {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
            true
        }
        ("enum", Value::Array(known), Value::Array(other)) => {
            known.retain(|value| other.iter().any(|other| same(value, other)));
            true
        }
        ("readOnly" | "writeOnly" | "deprecated" | "nullable" | "uniqueItems", Value::Bool(known), Value::Bool(other)) => {
            *known |= *other;
            true
        }
        ("minLength" | "minItems" | "minProperties" | "minimum", known @ Value::Number(_), Value::Number(_)) => {
            if other.as_f64() > known.as_f64() {
                *known = other.clone();
            }
            true
        }
        ("maxLength" | "maxItems" | "maxProperties" | "maximum", known @ Value::Number(_), Value::Number(_)) => {
            if other.as_f64() < known.as_f64() {
                *known = other.clone();
            }
            true
        }
        ("type", known @ Value::String(_), Value::String(_)) if (&*known, other) == (&"number".into(), &"integer".into()) => {
            *known = other.clone();
            true
        }
        ("type", known @ Value::String(_), Value::String(_)) => (&*known, other) == (&"integer".into(), &"number".into()),
        ("additionalProperties", known, Value::Bool(other)) => {
            if !other {
                *known = Value::Bool(false);
            }
            true
        }
        ("additionalProperties", Value::Bool(false), _) => true,
        ("additionalProperties", known @ Value::Bool(true), other) => {
            *known = other.clone();
            true
        }
        _ => false,
    }
}
