//! Proves that two schemas have no value in common. A result of false means that no proof was found.

use std::{borrow::Cow, rc::Rc};

use serde_json::Value;

use super::{
    super::{
        json_values::{Object, flag, items, order},
        object_keywords::AdditionalProperties,
        schema_resolution::{Resolved, element, inner},
    },
    DEPTH, SchemaChecker, SideSchema, Validity,
    validity::{depends_on, requires},
};

impl<'a> SchemaChecker<'_, 'a> {
    /// Whether no value is valid under both schemas.
    pub fn disjoint(&self, one: &SideSchema<'a>, other: &SideSchema<'a>, depth: usize) -> bool {
        self.are_disjoint(one, other, false, depth)
    }

    /// Whether no instance (valid value) of the first schema is valid under the second one. An instance holds only properties that its
    /// schema declares.
    pub fn disjoint_instances(&self, one: &SideSchema<'a>, other: &SideSchema<'a>, depth: usize) -> bool {
        self.are_disjoint(one, other, true, depth)
    }

    fn are_disjoint(&self, one: &SideSchema<'a>, other: &SideSchema<'a>, instances: bool, depth: usize) -> bool {
        if depth > DEPTH || !self.step() {
            return false;
        }
        let (left, right) = (self.resolved(one), self.resolved(other));
        if [&left, &right].iter().any(|schema| schema.broken.is_some() || schema.cut || !schema.beside.is_empty()) {
            return false;
        }
        let (a, b) = match (&*left.schema, &*right.schema) {
            (Value::Bool(false), _) | (_, Value::Bool(false)) => return true,
            (Value::Object(a), Value::Object(b)) => (a, b),
            _ => return false,
        };
        for (schema, object, against) in [(one, a, other), (other, b, one)] {
            let listed = match (object.get("const"), object.get("enum")) {
                (Some(value), _) => std::slice::from_ref(value),
                (None, Some(Value::Array(values))) => values.as_slice(),
                _ => continue,
            };
            let null = flag(object, "nullable").then_some(&Value::Null);
            let excluded = |value: &Value| {
                self.validity(against, value, depth) == Validity::Invalid || self.validity(schema, value, depth) == Validity::Invalid
            };
            if listed.iter().chain(null).all(excluded) {
                return true;
            }
        }
        if let Some(pieces) = self.pieces(one, &left) {
            return pieces.iter().all(|piece| self.are_disjoint(piece, other, instances, depth + 1));
        }
        if let Some(pieces) = self.pieces(other, &right) {
            return pieces.iter().all(|piece| self.are_disjoint(one, piece, instances, depth + 1));
        }
        for (schema, resolved, against, swapped) in [(one, &left, other, false), (other, &right, one, true)] {
            let parts = resolved.member("allOf");
            let apart = |position: usize| {
                let part = schema.with(element(&parts, position));
                if swapped {
                    self.are_disjoint(against, &part, instances, depth + 1)
                } else {
                    self.are_disjoint(&part, against, false, depth + 1)
                }
            };
            if (0..items(parts.as_deref()).len()).any(apart) {
                return true;
            }
            // If one schema has `not` with exactly the other schema, no value is valid under both.
            if resolved.member("not").is_some_and(|refused| self.is_same(&schema.with(Some(refused)), against)) {
                return true;
            }
        }
        let (types, others) = (self.accepted(one.which, a), self.accepted(other.which, b));
        let is_common = |name: &&String| others.contains(*name) || *name == "integer" && others.contains("number");
        let mut common: Vec<&str> = types.iter().filter(is_common).map(String::as_str).collect();
        if types.contains("number") && others.contains("integer") {
            common.push("integer");
        }
        let pair = Pair { semantics: self, one, other, left: &left, right: &right, a, b, instances, depth };
        common.into_iter().all(|name| match name {
            "string" => pair.lengths("minLength", "maxLength"),
            "number" | "integer" => pair.bounds(),
            "array" => pair.lengths("minItems", "maxItems") || pair.elements(),
            "object" => pair.lengths("minProperties", "maxProperties") || pair.properties(),
            _ => false,
        })
    }
}

/// Two schemas without `oneOf` and `anyOf`. Each method proves, for values of one JSON type, that no value is valid under both.
struct Pair<'c, 'd, 'a> {
    semantics: &'c SchemaChecker<'d, 'a>,
    one: &'c SideSchema<'a>,
    other: &'c SideSchema<'a>,
    left: &'c Rc<Resolved<'a>>,
    right: &'c Rc<Resolved<'a>>,
    a: &'c Object,
    b: &'c Object,
    instances: bool,
    depth: usize,
}

impl<'a> Pair<'_, '_, 'a> {
    fn lengths(&self, least: &str, most: &str) -> bool {
        let beyond =
            |one: &Object, other: &Object| one.get(least).zip(other.get(most)).is_some_and(|(least, most)| order(least, most).is_gt());
        beyond(self.a, self.b) || beyond(self.b, self.a)
    }

    fn bounds(&self) -> bool {
        let lower = |object: &Object| {
            let plain =
                object.get("minimum").filter(|value| value.is_number()).map(|value| (value.clone(), flag(object, "exclusiveMinimum")));
            plain.or_else(|| object.get("exclusiveMinimum").filter(|value| value.is_number()).map(|value| (value.clone(), true)))
        };
        let upper = |object: &Object| {
            let plain =
                object.get("maximum").filter(|value| value.is_number()).map(|value| (value.clone(), flag(object, "exclusiveMaximum")));
            plain.or_else(|| object.get("exclusiveMaximum").filter(|value| value.is_number()).map(|value| (value.clone(), true)))
        };
        let beyond = |one: &Object, other: &Object| {
            lower(one).zip(upper(other)).is_some_and(|((least, excluded), (most, excludes))| {
                let ordering = order(&least, &most);
                ordering.is_gt() || ordering.is_eq() && (excluded || excludes)
            })
        };
        beyond(self.a, self.b) || beyond(self.b, self.a)
    }

    fn elements(&self) -> bool {
        let one = Value::from(1);
        let filled = [self.a, self.b].iter().any(|object| object.get("minItems").is_some_and(|least| order(least, &one).is_ge()));
        let first = |resolved: &Rc<Resolved<'a>>| element(&resolved.member("prefixItems"), 0).or_else(|| resolved.member("items"));
        filled
            && first(self.left).zip(first(self.right)).is_some_and(|(a, b)| {
                self.semantics.are_disjoint(&self.one.with(Some(a)), &self.other.with(Some(b)), self.instances, self.depth + 1)
            })
    }

    fn properties(&self) -> bool {
        let names = [self.a, self.b].into_iter().flat_map(|object| items(object.get("required"))).filter_map(Value::as_str);
        let mut names: Vec<_> = names.collect();
        names.dedup();
        names.into_iter().any(|name| {
            let property = |resolved: &Rc<Resolved<'a>>| inner(&resolved.member("properties"), name);
            let (p, q) = (property(self.left), property(self.right));
            let hidden = [(self.one, &p), (self.other, &q)]
                .into_iter()
                .any(|(side, property)| property.clone().is_some_and(|property| self.semantics.hidden(&side.with(Some(property)))));
            if hidden {
                return false;
            }
            let patterns = |object: &Object| object.contains_key("patternProperties");
            let refuses = |object: &Object, property: &Option<Cow<Value>>| {
                property.is_none() && !patterns(object) && matches!(AdditionalProperties::of(object), AdditionalProperties::Refused)
            };
            if refuses(self.a, &p) || refuses(self.b, &q) {
                return true;
            }
            // An instance of `a` holds only properties that `a` declares, so it lacks this property, which `b` requires.
            let declares = !matches!(AdditionalProperties::of(self.a), AdditionalProperties::Allowed) || patterns(self.a);
            if self.instances && p.is_none() && !declares && !requires(self.a, name) && !depends_on(self.a, name) {
                return true;
            }
            p.zip(q).is_some_and(|(p, q)| {
                self.semantics.are_disjoint(&self.one.with(Some(p)), &self.other.with(Some(q)), self.instances, self.depth + 1)
            })
        })
    }
}
