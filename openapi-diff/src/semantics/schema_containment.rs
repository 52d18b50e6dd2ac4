//! Proves schema containment: each instance of one schema is valid under another one. An instance of a schema is a value that is valid
//! under the schema.
//!
//! A result of false means that no proof was found.

use std::{borrow::Cow, collections::BTreeSet, rc::Rc};

use serde_json::Value;

use super::{
    super::{
        json_values::{Object, both_same, flag, is_annotation, items, members, order},
        references::reference,
        schema_resolution::{Resolved, element},
    },
    DEPTH, DocumentRole, SchemaChecker, SideSchema, Validity, has_no_effect_alone,
    validity::is_of,
};

const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

impl<'a> SchemaChecker<'_, 'a> {
    pub(super) fn fits(&self, sub: &SideSchema<'a>, sup: &SideSchema<'a>, depth: usize) -> bool {
        if depth > DEPTH || !self.step() {
            return false;
        }
        if self.is_same(sub, sup) {
            return true;
        }
        // If both schemas are references, containment of the pair is assumed while it is being proven, so that recursion ends. The
        // assumption is sound because instances are finite: containment of a recursive schema, such as a tree of trees, is proven level by
        // level, and each instance has an innermost level.
        let pair = match (reference(&sub.value), reference(&sup.value)) {
            (Some(one), Some(other)) if members(&sub.value).len() == 1 && members(&sup.value).len() == 1 => {
                let pair = [(sub.which, one.to_owned()), (sup.which, other.to_owned())];
                if self.assumed.borrow().contains(&pair) {
                    return true;
                }
                Some(pair)
            }
            _ => None,
        };
        let assumed = pair.is_some();
        self.assumed.borrow_mut().extend(pair);
        let (one, other) = (self.resolved(sub), self.resolved(sup));
        let proven = [&one, &other].iter().all(|schema| schema.broken.is_none() && !schema.cut && schema.beside.is_empty())
            && self.includes(sub, &one, sup, &other, depth);
        if assumed {
            self.assumed.borrow_mut().pop();
        }
        proven
    }

    /// Whether two schemas are written identically and their references lead to equal values.
    pub(super) fn is_same(&self, one: &SideSchema<'a>, other: &SideSchema<'a>) -> bool {
        one.value == other.value && (one.which == other.which || self.is_unchanged(&one.value))
    }

    fn is_unchanged(&self, value: &Value) -> bool {
        let versions = self.old.document.is_3_1() == self.new.document.is_3_1();
        versions && self.old.references(value).iter().all(|reference| self.unchanged.contains(reference))
    }

    fn includes(&self, sub: &SideSchema<'a>, one: &Rc<Resolved<'a>>, sup: &SideSchema<'a>, other: &Rc<Resolved<'a>>, depth: usize) -> bool {
        let sup_object = match &*other.schema {
            Value::Bool(true) => return true,
            Value::Object(object) => object,
            _ => return *one.schema == Value::Bool(false),
        };
        let sub_object = match &*one.schema {
            Value::Bool(false) => return true,
            Value::Object(object) => Cow::Borrowed(object),
            Value::Bool(true) => Cow::Owned(Object::new()),
            _ => return false,
        };
        if self.restricts_nothing(sup, sup_object) {
            return true;
        }
        // `const` and `enum` list all values, so each value is checked.
        let listed = match (sub_object.get("const"), sub_object.get("enum")) {
            (Some(value), _) => Some(std::slice::from_ref(value)),
            (None, Some(Value::Array(values))) => Some(values.as_slice()),
            _ => None,
        };
        if let Some(values) = listed {
            let accepted = |value: &&Value| self.validity(sub, value, depth) != Validity::Invalid;
            let null = self.accepts_null_beside(sub.which, &sub_object).then_some(&Value::Null);
            let mut values = values.iter().chain(null).filter(accepted).peekable();
            // If the schema accepts none of its own listed values, the list is a mistake and proves nothing.
            return values.peek().is_some() && values.all(|value| self.validity(sup, value, depth) == Validity::Valid);
        }
        if self.same_choice(sub, one, sup, other, depth) {
            return true;
        }
        if let Some(pieces) = self.pieces(sub, one) {
            return !pieces.is_empty() && pieces.iter().all(|piece| self.fits(piece, sup, depth + 1));
        }
        if ["oneOf", "anyOf"].iter().any(|key| sup_object.contains_key(*key)) {
            let types = self.accepted(sub.which, &sub_object);
            if types.len() > 1 {
                return types.iter().all(|name| self.fits(&typed(sub, &sub_object, name), sup, depth + 1));
            }
        }
        let scope = KeywordContainment { semantics: self, sub, one, sub_object: &sub_object, sup, other, sup_object, depth };
        scope.types() && sup_object.keys().all(|key| scope.keyword(key)) && scope.properties()
    }

    /// Whether a schema accepts null because of `nullable`, even if its enumeration does not list null.
    fn accepts_null_beside(&self, which: DocumentRole, schema: &Object) -> bool {
        !self.side(which).document.is_3_1() && flag(schema, "nullable")
    }

    fn restricts_nothing(&self, schema: &SideSchema<'a>, object: &Object) -> bool {
        object.keys().all(|key| is_annotation(key) || key.starts_with("x-"))
            || self.side(schema.which).document.is_3_1() && object.keys().all(|key| has_no_effect_alone(key))
    }

    /// Returns the types that a schema accepts: all types if the schema names none.
    pub(super) fn accepted(&self, which: DocumentRole, schema: &Object) -> BTreeSet<String> {
        self.types(which, schema).unwrap_or_else(|| TYPES.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Whether two choices (`oneOf`, `anyOf`) have equivalent variants in any order. Then each value is accepted by the same number of
    /// variants in both choices.
    fn same_choice(
        &self,
        sub: &SideSchema<'a>,
        one: &Rc<Resolved<'a>>,
        sup: &SideSchema<'a>,
        other: &Rc<Resolved<'a>>,
        depth: usize,
    ) -> bool {
        let (Some(before), Some(after)) = (one.object(), other.object()) else { return false };
        let Some(key) = ["oneOf", "anyOf"].into_iter().find(|key| before.contains_key(*key) && after.contains_key(*key)) else {
            return false;
        };
        let [was, is] = [one, other].map(|resolved| resolved.member(key));
        let (count, other_count) = (items(was.as_deref()).len(), items(is.as_deref()).len());
        let rest = |object: &Object| {
            let mut rest = object.clone();
            rest.retain(|name, _| name != key && name != "discriminator" && !is_annotation(name));
            rest
        };
        if count != other_count || count > 60 || rest(before) != rest(after) {
            return false;
        }
        let mut left: Vec<usize> = (0..count).collect();
        (0..count).all(|position| {
            let Some(variant) = element(&was, position).map(|variant| sub.with(Some(variant))) else { return false };
            let found = left.iter().position(|candidate| {
                let candidate = sup.with(element(&is, *candidate));
                self.fits(&variant, &candidate, depth + 1) && self.fits(&candidate, &variant, depth + 1)
            });
            found.map(|found| left.remove(found)).is_some()
        })
    }

    /// Whether each of two schemas includes the other.
    pub fn equivalent(&self, one: &SideSchema<'a>, other: &SideSchema<'a>) -> bool {
        self.fits(one, other, 0) && self.fits(other, one, 0)
    }
}

/// Returns a schema restricted to one type.
fn typed<'a>(schema: &SideSchema<'a>, object: &Object, name: &str) -> SideSchema<'a> {
    let mut one = object.clone();
    one.insert("type".to_owned(), name.into());
    one.remove("nullable");
    SideSchema::new(schema.which, Cow::Owned(Value::Object(one)))
}

/// Proves keyword by keyword that `sup` includes `sub`. `sub` has neither a list of values (`enum`, `const`) nor a choice (`oneOf`,
/// `anyOf`).
pub(super) struct KeywordContainment<'c, 'd, 'a> {
    pub semantics: &'c SchemaChecker<'d, 'a>,
    pub sub: &'c SideSchema<'a>,
    pub one: &'c Rc<Resolved<'a>>,
    pub sub_object: &'c Object,
    pub sup: &'c SideSchema<'a>,
    pub other: &'c Rc<Resolved<'a>>,
    pub sup_object: &'c Object,
    pub depth: usize,
}

impl<'a> KeywordContainment<'_, '_, 'a> {
    pub fn fits(&self, one: Option<Cow<'a, Value>>, other: Option<Cow<'a, Value>>) -> bool {
        self.semantics.fits(&self.sub.with(one), &self.sup.with(other), self.depth + 1)
    }

    fn types(&self) -> bool {
        let Some(wanted) = self.semantics.types(self.sup.which, self.sup_object) else { return true };
        let types = self.semantics.accepted(self.sub.which, self.sub_object);
        types.iter().all(|name| wanted.contains(name) || name == "integer" && wanted.contains("number"))
    }

    /// Whether an instance of `sub` can be of a type.
    pub fn can_be(&self, name: &str) -> bool {
        let types = self.semantics.accepted(self.sub.which, self.sub_object);
        types.contains(name) || name == "number" && types.contains("integer")
    }

    fn keyword(&self, key: &str) -> bool {
        let (was, is) = (self.sub_object.get(key), self.sup_object.get(key));
        let stricter = |ordering: fn(std::cmp::Ordering) -> bool| was.zip(is).is_some_and(|(was, is)| ordering(order(was, is)));
        match key {
            // The methods `types` and `properties` compare these keywords.
            "type" | "properties" | "required" | "additionalProperties" | "patternProperties" => true,
            "exclusiveMinimum" | "exclusiveMaximum" if is.is_some_and(Value::is_boolean) => true,
            "minimum" | "exclusiveMinimum" => !self.can_be("number") || self.bound("minimum", "exclusiveMinimum", true),
            "maximum" | "exclusiveMaximum" => !self.can_be("number") || self.bound("maximum", "exclusiveMaximum", false),
            "multipleOf" => !self.can_be("number") || self.multiple(was, is),
            "minLength" => !self.can_be("string") || is_zero(is) || stricter(std::cmp::Ordering::is_ge),
            "maxLength" => !self.can_be("string") || stricter(std::cmp::Ordering::is_le),
            "minItems" => !self.can_be("array") || is_zero(is) || stricter(std::cmp::Ordering::is_ge),
            "maxItems" => !self.can_be("array") || stricter(std::cmp::Ordering::is_le),
            "minProperties" => {
                let required = Value::from(items(self.sub_object.get("required")).len());
                !self.can_be("object")
                    || is_zero(is)
                    || stricter(std::cmp::Ordering::is_ge)
                    || is.is_some_and(|least| order(&required, least).is_ge())
            }
            "maxProperties" => !self.can_be("object") || stricter(std::cmp::Ordering::is_le),
            "pattern" => !self.can_be("string") || both_same(was, is),
            "format" => both_same(was, is) || !self.can_be("string") && !self.can_be("number") || self.wider_format(),
            "uniqueItems" => !self.can_be("array") || !flag(self.sup_object, key) || flag(self.sub_object, key),
            "enum" | "const" => self.list(),
            "items" => !self.can_be("array") || self.fits(self.one.member("items"), self.other.member("items")),
            "prefixItems" => !self.can_be("array") || self.prefix(),
            "contains" | "minContains" | "maxContains" => !self.can_be("array") || self.contains(),
            "propertyNames" => {
                !self.can_be("object") || was.is_some() && self.fits(self.one.member(key), self.other.member(key)) || self.names()
            }
            "dependentRequired" => !self.can_be("object") || self.dependent_required(),
            "dependentSchemas" => !self.can_be("object") || self.dependent_schemas(),
            "not" => self.negation(),
            "if" => self.condition(),
            "allOf" => self.parts(),
            "oneOf" => self.one_of(),
            "anyOf" => {
                let list = self.other.member(key);
                (0..items(list.as_deref()).len())
                    .any(|position| self.semantics.fits(self.sub, &self.sup.with(element(&list, position)), self.depth + 1))
            }
            key if has_no_effect_alone(key) => true,
            _ => match (self.one.member(key), self.other.member(key)) {
                (Some(was), Some(is)) => self.semantics.is_same(&self.sub.with(Some(was)), &self.sup.with(Some(is))),
                _ => false,
            },
        }
    }

    fn bound(&self, key: &str, excluding: &str, lower: bool) -> bool {
        let effective = |object: &Object| {
            let plain = object.get(key).filter(|value| value.is_number()).map(|value| (value.clone(), flag(object, excluding)));
            let own = object.get(excluding).filter(|value| value.is_number()).map(|value| (value.clone(), true));
            let strict = |one: &(Value, bool), other: &(Value, bool)| {
                let ordering = order(&one.0, &other.0);
                (if lower { ordering } else { ordering.reverse() }).then(one.1.cmp(&other.1))
            };
            plain.into_iter().chain(own).max_by(strict)
        };
        match (effective(self.sub_object), effective(self.sup_object)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((was, was_excluded)), Some((is, is_excluded))) => {
                let ordering = if lower { order(&was, &is) } else { order(&is, &was) };
                ordering.is_gt() || ordering.is_eq() && (was_excluded || !is_excluded)
            }
        }
    }

    fn multiple(&self, was: Option<&Value>, is: Option<&Value>) -> bool {
        let whole = self.semantics.accepted(self.sub.which, self.sub_object).contains("integer");
        if whole && is.is_some_and(|step| order(step, &1.into()).is_eq()) {
            return true;
        }
        match (was.and_then(Value::as_u64), is.and_then(Value::as_u64)) {
            (Some(was), Some(is)) => is > 0 && was % is == 0,
            _ => both_same(was, is),
        }
    }

    fn wider_format(&self) -> bool {
        let format = |object: &Object| object.get("format").and_then(Value::as_str).map(str::to_owned);
        matches!(
            (format(self.sub_object).as_deref(), format(self.sup_object).as_deref()),
            (Some("int32"), Some("int64")) | (Some("float"), Some("double"))
        )
    }

    /// Whether the `enum` or `const` of `sup` contains all values of the types of `sub`. Only booleans and null are few enough to be listed
    /// in full.
    fn list(&self) -> bool {
        let types = self.semantics.accepted(self.sub.which, self.sub_object);
        let small = types.iter().all(|name| name == "boolean" || name == "null");
        let all = [Value::Null, Value::Bool(true), Value::Bool(false)];
        small
            && all
                .iter()
                .filter(|value| types.iter().any(|name| is_of(value, name)))
                .all(|value| self.semantics.validity(self.sup, value, self.depth) == Validity::Valid)
    }

    fn prefix(&self) -> bool {
        let (was, is) = (self.one.member("prefixItems"), self.other.member("prefixItems"));
        let (before, after) = (items(was.as_deref()).len(), items(is.as_deref()).len());
        (0..before.max(after)).all(|position| {
            let had = element(&was, position).or_else(|| self.one.member("items"));
            let has = element(&is, position).or_else(|| self.other.member("items"));
            self.fits(had, has)
        })
    }

    fn contains(&self) -> bool {
        let (was, is) = (self.one.member("contains"), self.other.member("contains"));
        let (Some(was), Some(is)) = (was, is) else { return false };
        let one = Value::from(1);
        let least = |object: &Object| object.get("minContains").cloned().unwrap_or_else(|| one.clone());
        let (before, after) = (self.sub_object.get("maxContains"), self.sup_object.get("maxContains"));
        let fits = self.fits(Some(was.clone()), Some(is.clone()));
        let at_least = is_zero(Some(&least(self.sup_object))) || fits && order(&least(self.sub_object), &least(self.sup_object)).is_ge();
        let at_most = after.is_none_or(|after| {
            before.is_some_and(|before| order(before, after).is_le())
                && self.semantics.fits(&self.sup.with(Some(is)), &self.sub.with(Some(was)), self.depth + 1)
        });
        at_least && at_most
    }

    fn negation(&self) -> bool {
        let (was, is) = (self.one.member("not"), self.other.member("not"));
        let refused = self.sup.with(is);
        self.semantics.disjoint(self.sub, &refused, self.depth + 1)
            || was.is_some_and(|was| self.semantics.fits(&refused, &self.sub.with(Some(was)), self.depth + 1))
    }

    fn condition(&self) -> bool {
        let branch = |key: &str| self.sup.with(self.other.member(key));
        let (condition, then, otherwise) = (branch("if"), branch("then"), branch("else"));
        let fits = |schema: &SideSchema<'a>| self.semantics.fits(self.sub, schema, self.depth + 1);
        let same = ["if", "then", "else"].iter().all(|key| {
            let [one, other] = [(self.sub, self.one.member(key)), (self.sup, self.other.member(key))].map(|(side, value)| side.with(value));
            self.semantics.is_same(&one, &other)
        });
        same || fits(&then) && fits(&otherwise)
            || self.semantics.disjoint(self.sub, &condition, self.depth + 1) && fits(&otherwise)
            || fits(&condition) && fits(&then)
    }

    fn parts(&self) -> bool {
        let (was, is) = (self.one.member("allOf"), self.other.member("allOf"));
        (0..items(is.as_deref()).len()).all(|position| {
            let part = self.sup.with(element(&is, position));
            let own = (0..items(was.as_deref()).len())
                .any(|position| self.semantics.fits(&self.sub.with(element(&was, position)), &part, self.depth + 1));
            own || self.semantics.fits(self.sub, &part, self.depth + 1)
        })
    }

    /// Whether exactly one variant of `sup` accepts each instance of `sub`: one variant accepts all instances, and the other variants
    /// accept none.
    fn one_of(&self) -> bool {
        let list = self.other.member("oneOf");
        let count = items(list.as_deref()).len();
        let variant = |position: usize| self.sup.with(element(&list, position));
        (0..count).any(|found| {
            self.semantics.fits(self.sub, &variant(found), self.depth + 1)
                && (0..count)
                    .filter(|other| *other != found)
                    .all(|other| self.semantics.disjoint_instances(self.sub, &variant(other), self.depth + 1))
        })
    }
}

fn is_zero(value: Option<&Value>) -> bool {
    value.is_some_and(|value| order(value, &0.into()).is_le())
}

/// Returns a schema with only the given keywords of `object`.
pub(in super::super) fn only(object: Option<&Object>, keys: &[&str]) -> Value {
    let mut kept = object.cloned().unwrap_or_default();
    kept.retain(|key, _| keys.contains(&key.as_str()));
    Value::Object(kept)
}
