//! Resolves a schema: follows its references and merges its `allOf` into one object.
//!
//! Because of the merging, a property that moves into a base schema is no change, and a change in a base schema is found in each schema
//! that extends it. If two parts of an `allOf` have the same keyword and their values cannot be merged into one, the second keyword stays
//! under `allOf` and is compared there.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;

use super::{
    json_values::{Object, canonical, flag, is_annotation, items, members, order, same},
    references::{DocumentIndex, name_of, reference},
};

/// A resolved schema.
#[derive(Debug)]
pub(super) struct Resolved<'a> {
    /// The merged schema: an object, `true` or `false`. In an invalid document it may be any other value.
    pub schema: Cow<'a, Value>,
    /// The names of the references that led to the schema, directly or in `allOf`.
    pub names: BTreeSet<String>,
    /// The broken references, joined by `and`.
    pub broken: Option<String>,
    /// The keywords next to a `$ref`, which OpenAPI 3.0 ignores. The value of each keyword is the list of its values at all references that
    /// were followed.
    pub beside: Object,
    /// The references that led to the whole schema, and not to a part of its `allOf`.
    pub outer: Vec<String>,
    /// Whether the schema itself has a discriminator, and does not inherit it by `allOf`.
    pub discriminates: bool,
    /// Whether the schema has so many references and parts of `allOf` that the limit [`PARTS`] was reached. Then some may be left out.
    pub cut: bool,
}

impl<'a> Resolved<'a> {
    pub fn object(&self) -> Option<&Object> {
        self.schema.as_object()
    }

    /// Returns the value of a keyword. If the schema is borrowed from the document, so is the value.
    pub fn member(&self, key: &str) -> Option<Cow<'a, Value>> {
        match &self.schema {
            Cow::Borrowed(schema) => schema.get(key).map(Cow::Borrowed),
            Cow::Owned(schema) => schema.get(key).cloned().map(Cow::Owned),
        }
    }
}

/// Returns a property of a value. If the value is borrowed from the document, so is the property.
pub(super) fn inner<'a>(value: &Option<Cow<'a, Value>>, key: &str) -> Option<Cow<'a, Value>> {
    match value.as_ref()? {
        Cow::Borrowed(value) => value.get(key).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(key).cloned().map(Cow::Owned),
    }
}

pub(super) fn element<'a>(value: &Option<Cow<'a, Value>>, index: usize) -> Option<Cow<'a, Value>> {
    match value.as_ref()? {
        Cow::Borrowed(value) => value.get(index).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(index).cloned().map(Cow::Owned),
    }
}

/// The maximum number of references and `allOf` parts that the resolution of one schema may follow.
const PARTS: usize = 2000;

pub(super) fn resolve<'a>(side: &DocumentIndex<'a>, schema: Cow<'a, Value>) -> Resolved<'a> {
    let mut flattening = Resolution {
        side,
        names: BTreeSet::new(),
        outer: Vec::new(),
        broken: Vec::new(),
        beside: Object::new(),
        left: PARTS,
        inside: 0,
        discriminates: false,
    };
    let schema = flattening.flatten(schema, &mut Vec::new(), true);
    let schema = flattening.evaluated(schema);
    let Resolution { names, outer, broken, beside, left, discriminates, .. } = flattening;
    let broken = (!broken.is_empty()).then(|| broken.join(" and "));
    Resolved { schema, names, outer, discriminates, broken, beside, cut: left == 0 }
}

struct Resolution<'s, 'a> {
    side: &'s DocumentIndex<'a>,
    names: BTreeSet<String>,
    outer: Vec<String>,
    broken: Vec<String>,
    beside: Object,
    left: usize,
    /// The current nesting depth of `allOf`.
    inside: usize,
    discriminates: bool,
}

impl<'a> Resolution<'_, 'a> {
    fn flatten(&mut self, schema: Cow<'a, Value>, followed: &mut Vec<String>, outermost: bool) -> Cow<'a, Value> {
        if self.inside == 0 && schema.get("discriminator").is_some() {
            self.discriminates = true;
        }
        if let Some(target) = reference(&schema).map(str::to_owned) {
            self.followed(schema, target, followed, outermost)
        } else if let Some(single) = single(&schema) {
            self.flatten(Cow::Owned(single), followed, outermost)
        } else if items(schema.get("allOf")).is_empty() {
            self.or_null(&schema, followed, outermost)
                .or_else(|| enumerated(&schema))
                .or_else(|| self.open_list(&schema))
                .map_or(schema, Cow::Owned)
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
        let found = if let (Some(found), Some(left)) = (found, self.left.checked_sub(1)) {
            self.left = left;
            followed.push(target);
            self.flatten(Cow::Borrowed(found), followed, false)
        } else {
            if !self.broken.contains(&target) {
                self.broken.push(target);
            }
            Cow::Borrowed(super::json_values::empty())
        };
        let mut own = members(&schema).clone();
        own.retain(|key, _| key != "$ref" && !is_annotation(key));
        if own.is_empty() {
            return found;
        }
        if !self.side.document.is_3_1() {
            for (key, value) in own {
                if let Some(list) = self.beside.entry(key).or_insert_with(|| Value::Array(Vec::new())).as_array_mut() {
                    list.push(value);
                }
            }
            return found;
        }
        let own = self.flatten(Cow::Owned(Value::Object(own)), followed, outermost);
        let found = self.evaluated_part(found);
        Cow::Owned(Value::Object(self.merged(&[&own, &found])))
    }

    /// Renames `unevaluatedItems` to `items` and `unevaluatedProperties` to `additionalProperties` where the renamed keyword has the same
    /// effect: the schema does not have the keyword of the new name, and no subschema evaluates items or properties.
    fn evaluated(&self, schema: Cow<'a, Value>) -> Cow<'a, Value> {
        if !self.side.document.is_3_1() {
            return schema;
        }
        let undeclared = |(key, declared): &(&str, &str)| schema.get(*key).is_some() && schema.get(*declared).is_none();
        let renamed: Vec<_> = UNEVALUATED.into_iter().filter(|pair| undeclared(pair) && !evaluates(&schema, pair.0)).collect();
        if renamed.is_empty() {
            return schema;
        }
        let mut schema = schema.into_owned();
        if let Some(object) = schema.as_object_mut() {
            for (key, declared) in renamed {
                let value = object.remove(key);
                object.extend(value.map(|value| (declared.to_owned(), value)));
            }
        }
        Cow::Owned(schema)
    }

    /// Renames the keywords of one part of an `allOf` as [`Self::evaluated`] does. A part that still has `unevaluatedItems` or
    /// `unevaluatedProperties` afterwards stays a separate schema under `allOf`. Merging would change the effect of the keyword, because the
    /// keyword also applies to items and properties that only the other parts evaluate.
    fn evaluated_part(&self, part: Cow<'a, Value>) -> Cow<'a, Value> {
        let part = self.evaluated(part);
        let open = self.side.document.is_3_1() && UNEVALUATED.iter().any(|(key, _)| part.get(*key).is_some());
        if open { Cow::Owned(serde_json::json!({ "allOf": [part] })) } else { part }
    }

    fn merged(&self, parts: &[&Value]) -> Object {
        merged(parts, !self.side.document.is_3_1())
    }

    /// Turns a choice (`oneOf`, `anyOf`) between null and one other schema into that other schema with null as a further type. None for
    /// other choices. None also if the other schema has no `type`, or has a `const`.
    fn or_null(&mut self, schema: &Value, followed: &mut Vec<String>, outermost: bool) -> Option<Value> {
        let is_null = |variant: &Value| {
            let mut said = members(variant).iter().filter(|(key, _)| !is_annotation(key));
            said.next().is_some_and(|(key, value)| key == "type" && value == "null") && said.next().is_none()
        };
        for key in ["oneOf", "anyOf"] {
            let variant = match items(schema.get(key)) {
                [one, other] if is_null(other) && !is_null(one) => one,
                [one, other] if is_null(one) && !is_null(other) => other,
                _ => continue,
            };
            let (before, names, outer) = (followed.len(), self.names.clone(), self.outer.len());
            let beside = self.beside.clone();
            let flat = self.flatten(Cow::Owned(variant.clone()), followed, outermost);
            let flat = self.evaluated_part(flat);
            let types = match flat.get("type").filter(|_| flat.get("const").is_none()) {
                Some(Value::String(name)) => vec![Value::from(name.as_str()), "null".into()],
                Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => [names.clone(), vec!["null".into()]].concat(),
                _ => {
                    followed.truncate(before);
                    self.outer.truncate(outer);
                    (self.names, self.beside) = (names, beside);
                    continue;
                }
            };
            let (mut flat, mut rest) = (members(&flat).clone(), members(schema).clone());
            flat.insert("type".to_owned(), types.into());
            if let Some(values) = flat.get_mut("enum").and_then(Value::as_array_mut).filter(|values| !values.contains(&Value::Null)) {
                values.push(Value::Null);
            }
            rest.remove(key);
            return Some(Value::Object(self.merged(&[&Value::Object(rest), &Value::Object(flat)])));
        }
        None
    }

    /// Turns an `anyOf` of two variants into an open list (`x-extensible-enum`), if one variant lists values and the other allows any value
    /// of their type. None for other schemas. The list may be in a schema that the `anyOf` refers to.
    fn open_list(&mut self, schema: &Value) -> Option<Value> {
        let mut rest = members(schema).clone();
        let variants = rest.remove("anyOf")?;
        let [one, other] = items(Some(&variants)) else { return None };
        let said = |variant: &Value| -> Object {
            let target = reference(variant).filter(|_| members(variant).len() == 1).and_then(|target| self.side.target(target));
            let said = members(target.unwrap_or(variant)).iter().filter(|(key, _)| !is_annotation(key));
            said.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let (one, other) = (said(one), said(other));
        let (mut listed, any) = if one.contains_key("enum") { (one, other) } else { (other, one) };
        let values = listed.remove("enum").filter(Value::is_array)?;
        let named = any.get("type").filter(|named| named.is_string()).cloned()?;
        let beside = ["type", "enum", "const", "oneOf", "anyOf"].iter().any(|key| rest.contains_key(*key));
        let agree = rest.get("x-extensible-enum").is_none_or(|known| *known == values);
        if beside || any.len() != 1 || listed != any || !agree {
            return None;
        }
        rest.insert("type".to_owned(), named);
        rest.insert("x-extensible-enum".to_owned(), values);
        // If a variant is a `$ref`, generated code names the type of the listed values after that reference. So the name of the reference
        // counts among the names of this schema, and a changed name is reported.
        self.names.extend(items(Some(&variants)).iter().filter_map(reference).map(name_of));
        Some(Value::Object(rest))
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
            // Two parts may refer to the same schema without a loop. So the search for loops in each part begins with the references that
            // were followed before the `allOf`.
            let mut behind = before.clone();
            let part = self.flatten(Cow::Owned(part.clone()), &mut behind, outermost);
            all.push(self.evaluated_part(part));
            followed.extend(behind.drain(before.len()..));
        }
        self.inside -= 1;
        Cow::Owned(Value::Object(self.merged(&all.iter().map(Cow::as_ref).collect::<Vec<_>>())))
    }
}

/// `unevaluatedItems` and `unevaluatedProperties`, each with the keyword into which `Resolution::evaluated` renames it.
const UNEVALUATED: [(&str, &str); 2] = [("unevaluatedItems", "items"), ("unevaluatedProperties", "additionalProperties")];

/// Whether a subschema may evaluate items or properties. `key` is `unevaluatedItems` or `unevaluatedProperties`. Such a keyword does not
/// apply to the items or properties that a subschema evaluates.
pub(super) fn evaluates(schema: &Value, key: &str) -> bool {
    let own = if key == "unevaluatedItems" { "contains" } else { "dependentSchemas" };
    ["oneOf", "anyOf", "allOf", "if", "$dynamicRef", own].iter().any(|key| schema.get(*key).is_some())
}

/// Turns a choice (`oneOf`, `anyOf`) of only one schema into an `allOf`. None for other schemas, and for a choice with a discriminator.
fn single(schema: &Value) -> Option<Value> {
    let key = ["oneOf", "anyOf"].into_iter().find(|key| items(schema.get(*key)).len() == 1)?;
    if schema.get("discriminator").is_some() {
        return None;
    }
    let mut rest = members(schema).clone();
    let mut variant = rest.remove(key)?;
    let parts = rest.entry("allOf").or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?;
    parts.append(variant.as_array_mut()?);
    Some(Value::Object(rest))
}

/// Turns a choice (`oneOf`, `anyOf`) whose variants only list values (`const`, `enum`) into one enumeration. None for other schemas.
fn enumerated(schema: &Value) -> Option<Value> {
    let key = ["oneOf", "anyOf"].into_iter().find(|key| !items(schema.get(*key)).is_empty())?;
    let mut rest = members(schema).clone();
    let variants = rest.remove(key)?;
    let (mut values, mut types) = (Vec::new(), BTreeMap::new());
    for variant in items(Some(&variants)) {
        let said: Object =
            variant.as_object()?.iter().filter(|(key, _)| !is_annotation(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
        match (said.get("const"), said.get("enum")) {
            (Some(value), None) => values.push(value.clone()),
            (None, Some(Value::Array(list))) => values.extend(list.iter().cloned()),
            _ => return None,
        }
        if said.keys().any(|key| !["const", "enum", "type"].contains(&key.as_str())) {
            return None;
        }
        let of = said.get("type").cloned();
        types.insert(of.as_ref().map(canonical), of);
    }
    let said = ["type", "enum", "const", "oneOf", "anyOf"].iter().any(|key| rest.contains_key(*key));
    // `oneOf` refuses a value that two variants list.
    let twice = key == "oneOf" && (1..values.len()).any(|position| values[..position].contains(&values[position]));
    if said || twice || types.len() != 1 {
        return None;
    }
    rest.insert("enum".to_owned(), values.into());
    rest.extend(types.into_values().flatten().map(|of| ("type".to_owned(), of)));
    Some(Value::Object(rest))
}

/// The keywords of bounds, each with the flag of OpenAPI 3.0 that makes the bound exclusive.
const BOUNDS: [(&str, &str); 2] = [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")];

/// Merges schemas. A keyword that cannot be merged stays under `allOf`, as a separate schema.
fn merged(parts: &[&Value], nullable_counts: bool) -> Object {
    let (mut all, mut unresolved) = (Object::new(), BTreeMap::new());
    let mut keep = |schema: Value| _ = unresolved.insert(canonical(&schema), schema);
    for part in parts {
        let Some(part) = part.as_object() else {
            if **part != Value::Bool(true) {
                keep((*part).clone());
            }
            continue;
        };
        for (key, value) in part.iter().filter(|(key, _)| !is_annotation(key)) {
            if let ("allOf", Value::Array(kept)) = (key.as_str(), value) {
                kept.iter().cloned().for_each(&mut keep);
            } else if BOUNDS.iter().any(|(_, excluded)| key == excluded) && value.is_boolean() {
                // A boolean `exclusiveMinimum` or `exclusiveMaximum` is set by the loop over `BOUNDS` below.
            } else if let ("properties", Value::Object(listed), None | Some(Value::Object(_))) = (key.as_str(), value, all.get(key)) {
                properties(parts, part, listed, &mut all);
            } else if let Some(known) = all.get_mut(key) {
                if !same(known, value) && !combine(key, known, value) {
                    keep(Value::Object(Object::from_iter([(key.clone(), value.clone())])));
                }
            } else {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    for (bound, excluded) in BOUNDS {
        let Some(strictest) = all.get(bound) else { continue };
        let objects = || parts.iter().filter_map(|part| part.as_object());
        if objects().any(|part| flag(part, excluded) && part.get(bound).is_some_and(|bound| same(bound, strictest))) {
            all.insert(excluded.to_owned(), true.into());
        }
    }
    let flags = parts.iter().all(|part| part.get("nullable").is_none_or(Value::is_boolean));
    if nullable_counts && flags && all.contains_key("nullable") {
        let objects = || parts.iter().filter_map(|part| part.as_object());
        let typed = || objects().filter(|part| part.contains_key("type"));
        let every = typed().next().is_some() && typed().all(|part| flag(part, "nullable"));
        // By the specification, `nullable` without a type has no effect. Authors write it next to a reference to allow null, so it is
        // counted here.
        let around = objects().any(|part| !part.contains_key("type") && flag(part, "nullable"));
        all.insert("nullable".to_owned(), (every || around).into());
        if every && around {
            keep(serde_json::json!({ "nullable": true }));
        }
    }
    if !unresolved.is_empty() {
        all.insert("allOf".to_owned(), unresolved.into_values().collect());
    }
    all
}

/// Adds the properties of one part of an `allOf` to the merged schema `all`. If another part does not list a property, the
/// `additionalProperties` of that other part applies to the property, too. Other parts with `patternProperties` are left out: if a pattern
/// matches the property, their `additionalProperties` does not apply.
fn properties(parts: &[&Value], part: &Object, listed: &Object, all: &mut Object) {
    let mut own = listed.clone();
    for other in parts.iter().filter_map(|other| other.as_object()).filter(|other| !std::ptr::eq(*other, part)) {
        let Some(others) = other.get("additionalProperties").filter(|others| **others != Value::Bool(true)) else { continue };
        if other.contains_key("patternProperties") {
            continue;
        }
        let listed = members(other.get("properties").unwrap_or(super::json_values::empty()));
        for (_, schema) in own.iter_mut().filter(|(name, _)| !listed.contains_key(*name)) {
            both(schema, others);
        }
    }
    let own = Value::Object(own);
    match all.get_mut("properties") {
        Some(known) => _ = combine("properties", known, &own),
        None => _ = all.insert("properties".to_owned(), own),
    }
}

/// Replaces the schema `known` by an `allOf` of `known` and `other`.
fn both(known: &mut Value, other: &Value) {
    *known = serde_json::json!({ "allOf": [known.take(), other] });
}

/// Merges `other` into `known`, which are two values of the keyword `key`. Returns false if they cannot be merged into one value.
fn combine(key: &str, known: &mut Value, other: &Value) -> bool {
    match (key, &mut *known, other) {
        ("properties" | "patternProperties", Value::Object(known), Value::Object(other)) => {
            for (name, schema) in other {
                match known.get_mut(name) {
                    None => _ = known.insert(name.clone(), schema.clone()),
                    Some(first) if same(first, schema) => {}
                    Some(first) => both(first, schema),
                }
            }
        }
        ("required", Value::Array(known), Value::Array(other)) => {
            for name in other {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
        }
        ("enum", Value::Array(known), Value::Array(other)) => known.retain(|value| other.iter().any(|other| same(value, other))),
        ("readOnly" | "writeOnly" | "deprecated" | "nullable" | "uniqueItems", Value::Bool(known), Value::Bool(other)) => *known |= *other,
        (
            "minLength" | "minItems" | "minProperties" | "minimum" | "exclusiveMinimum" | "minContains",
            Value::Number(_),
            Value::Number(_),
        ) => {
            if order(other, known).is_gt() {
                *known = other.clone();
            }
        }
        (
            "maxLength" | "maxItems" | "maxProperties" | "maximum" | "exclusiveMaximum" | "maxContains",
            Value::Number(_),
            Value::Number(_),
        ) => {
            if order(other, known).is_lt() {
                *known = other.clone();
            }
        }
        ("type", Value::String(_) | Value::Array(_), Value::String(_) | Value::Array(_)) => {
            let Some(common) = common_types(known, other) else { return false };
            *known = common;
        }
        ("additionalProperties", known, Value::Bool(other)) => {
            if !other {
                *known = Value::Bool(false);
            }
        }
        ("additionalProperties", Value::Bool(false), _) => {}
        ("items" | "additionalProperties" | "propertyNames" | "unevaluatedProperties" | "unevaluatedItems", known, other) => {
            both(known, other);
        }
        ("not", known, other) => *known = serde_json::json!({ "anyOf": [known.take(), other] }),
        _ => return false,
    }
    true
}

/// Returns the types that two `type` keywords have in common. None if there is no such type.
fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    let (one, other) = (list(one), list(other));
    let takes = |list: &[Value], name: &Value| list.contains(name) || name == "integer" && list.contains(&"number".into());
    let mut common: Vec<_> = one.iter().filter(|name| takes(&other, name)).cloned().collect();
    common.extend(other.iter().filter(|name| !common.contains(name) && takes(&one, name)).cloned().collect::<Vec<_>>());
    match common.len() {
        0 => None,
        1 => common.pop(),
        _ => Some(Value::Array(common)),
    }
}
