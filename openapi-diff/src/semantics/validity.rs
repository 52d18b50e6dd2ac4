//! Validity of a value under a schema: valid, invalid, or undecided where a keyword, format or reference is not understood.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::{
        json_values::{Object, flag, items, members, order, same},
        schema::members_of,
        schema_resolution::{Resolved, element, evaluates, inner},
    },
    DEPTH, SchemaChecker, SideSchema,
    format_checking_and_generation::has_format,
    has_no_effect_alone,
    pattern_matching_and_generation::matches_pattern,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Validity {
    Valid,
    Undecided,
    Invalid,
}

use Validity::{Invalid, Undecided, Valid};

impl Validity {
    fn of(holds: bool) -> Self {
        if holds { Valid } else { Invalid }
    }

    fn not(self) -> Self {
        match self {
            Valid => Invalid,
            Undecided => Undecided,
            Invalid => Valid,
        }
    }
}

/// The keywords that refuse a value. For a missing property `NAME` the entry is `required NAME`.
pub(in super::super) type RefusingKeywords = BTreeSet<String>;

/// The result of applying the keywords of a schema to a value, collected keyword by keyword. `refusals` is None if the caller does not need
/// the refusing keywords.
struct Verdict {
    worst: Validity,
    refusals: Option<RefusingKeywords>,
}

impl Verdict {
    fn add(&mut self, keyword: &str, validity: Validity) {
        self.worst = self.worst.max(validity);
        if let (Invalid, Some(refusals)) = (validity, &mut self.refusals) {
            refusals.insert(keyword.to_owned());
        }
    }

    /// Whether the result is final, so that the remaining keywords need not be applied.
    fn settled(&self) -> bool {
        self.worst == Invalid && self.refusals.is_none()
    }
}

impl<'a> SchemaChecker<'_, 'a> {
    pub fn validity(&self, schema: &SideSchema<'a>, value: &Value, depth: usize) -> Validity {
        self.verdict(schema, value, depth, None).worst
    }

    /// Returns those keywords at the top level of a schema that refuse a value. Empty if the value is valid or undecided.
    pub fn refusals(&self, schema: &SideSchema<'a>, value: &Value) -> RefusingKeywords {
        let verdict = self.verdict(schema, value, 0, Some(RefusingKeywords::new()));
        verdict.refusals.filter(|_| verdict.worst == Invalid).unwrap_or_default()
    }

    fn verdict(&self, schema: &SideSchema<'a>, value: &Value, depth: usize, refusals: Option<RefusingKeywords>) -> Verdict {
        let mut verdict = Verdict { worst: Valid, refusals };
        if depth > DEPTH || !self.step() {
            verdict.add("", Undecided);
            return verdict;
        }
        let resolved = self.resolved(schema);
        if resolved.broken.is_some() || resolved.cut || !resolved.beside.is_empty() {
            verdict.add("", Undecided);
        }
        match &*resolved.schema {
            Value::Bool(all) => verdict.add("schema", Validity::of(*all)),
            Value::Object(object) => {
                let scope = AppliedSchema { semantics: self, schema, resolved: &resolved, object, depth };
                scope.keywords(value, &mut verdict);
            }
            _ => verdict.add("", Undecided),
        }
        verdict
    }
}

/// Applies the keywords of a schema to a value.
struct AppliedSchema<'c, 'd, 'a> {
    semantics: &'c SchemaChecker<'d, 'a>,
    schema: &'c SideSchema<'a>,
    resolved: &'c Resolved<'a>,
    object: &'c Object,
    depth: usize,
}

impl<'a> AppliedSchema<'_, '_, 'a> {
    fn member(&self, key: &str) -> SideSchema<'a> {
        self.schema.with(self.resolved.member(key))
    }

    fn valid(&self, schema: &SideSchema<'a>, value: &Value) -> Validity {
        self.semantics.validity(schema, value, self.depth + 1)
    }

    fn keywords(&self, value: &Value, verdict: &mut Verdict) {
        let types = self.semantics.types(self.schema.which, self.object);
        if let Some(types) = &types {
            const KNOWN: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
            let of_type = types.iter().any(|name| is_of(value, name));
            let known = types.iter().all(|name| KNOWN.contains(&name.as_str()));
            verdict.add("type", if of_type || known { Validity::of(of_type) } else { Undecided });
        }
        // By the specification of OpenAPI 3.0, `nullable` without a `type` has no effect. But authors write it next to a choice (`oneOf`,
        // `anyOf`) or a reference to allow null. So a schema with `nullable` accepts null here. If it also has an `enum` that does not list
        // null, the result is undecided.
        let nullable = !self.semantics.side(self.schema.which).document.is_3_1() && flag(self.object, "nullable");
        if value.is_null() && nullable {
            let listed = self.object.get("enum").is_none_or(|values| items(Some(values)).contains(&Value::Null));
            return verdict.add("nullable", if listed { Valid } else { Undecided });
        }
        for (key, keyword) in self.object {
            if verdict.settled() {
                return;
            }
            let validity = match key.as_str() {
                "type" | "required" | "properties" | "patternProperties" | "additionalProperties" => Valid,
                "enum" => match keyword {
                    Value::Array(values) => Validity::of(values.iter().any(|listed| same(listed, value))),
                    _ => Undecided,
                },
                "const" => Validity::of(same(keyword, value)),
                "format" => {
                    let unknown = if self.semantics.trusting.get() { Valid } else { Undecided };
                    keyword.as_str().and_then(|format| has_format(format, value)).map_or(unknown, Validity::of)
                }
                "not" => self.valid(&self.member("not"), value).not(),
                "if" => self.condition(value),
                "allOf" | "anyOf" | "oneOf" => self.composition(key, keyword, value),
                key if has_no_effect_alone(key) => Valid,
                _ => match value {
                    Value::Number(_) => self.number(key, keyword, value),
                    Value::String(content) => string(key, keyword, content),
                    Value::Array(elements) => self.array(key, keyword, elements),
                    Value::Object(properties) => self.object(key, keyword, properties),
                    _ => if_known(key),
                },
            };
            verdict.add(key, validity);
        }
        if let Value::Object(properties) = value
            && !verdict.settled()
        {
            self.properties(properties, verdict);
        }
    }

    fn composition(&self, key: &str, keyword: &Value, value: &Value) -> Validity {
        let Some(count) = keyword.as_array().map(Vec::len) else { return Undecided };
        let list = self.resolved.member(key);
        let results =
            (0..count).filter_map(|position| element(&list, position)).map(|part| self.valid(&self.schema.with(Some(part)), value));
        match key {
            "allOf" => results.max().unwrap_or(Valid),
            "anyOf" => results.min().unwrap_or(Undecided),
            _ => {
                let (mut valid, mut undecided) = (0, 0);
                for result in results {
                    valid += usize::from(result == Valid);
                    undecided += usize::from(result == Undecided);
                }
                match (valid, undecided) {
                    (2.., _) | (0, 0) => Invalid,
                    (1, 0) => Valid,
                    _ => Undecided,
                }
            }
        }
    }

    fn condition(&self, value: &Value) -> Validity {
        let branch = |key: &str| if self.object.contains_key(key) { self.valid(&self.member(key), value) } else { Valid };
        match self.valid(&self.member("if"), value) {
            Valid => branch("then"),
            Invalid => branch("else"),
            Undecided => {
                let (then, otherwise) = (branch("then"), branch("else"));
                if then == otherwise { then } else { Undecided }
            }
        }
    }

    fn number(&self, key: &str, keyword: &Value, value: &Value) -> Validity {
        let excluded = |flag_of: &str| self.object.get(flag_of) == Some(&Value::Bool(true));
        match (key, keyword) {
            ("minimum", Value::Number(_)) => {
                let order = order(value, keyword);
                Validity::of(order.is_gt() || order.is_eq() && !excluded("exclusiveMinimum"))
            }
            ("maximum", Value::Number(_)) => {
                let order = order(value, keyword);
                Validity::of(order.is_lt() || order.is_eq() && !excluded("exclusiveMaximum"))
            }
            ("exclusiveMinimum", Value::Number(_)) => Validity::of(order(value, keyword).is_gt()),
            ("exclusiveMaximum", Value::Number(_)) => Validity::of(order(value, keyword).is_lt()),
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => Valid,
            ("multipleOf", Value::Number(_)) => multiple_of(value, keyword),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", _) => Undecided,
            _ => if_known(key),
        }
    }

    fn array(&self, key: &str, keyword: &Value, elements: &[Value]) -> Validity {
        let count = |keyword: &Value| keyword.as_u64().and_then(|count| usize::try_from(count).ok());
        match key {
            "minItems" => count(keyword).map_or(Undecided, |least| Validity::of(elements.len() >= least)),
            "maxItems" => count(keyword).map_or(Undecided, |most| Validity::of(elements.len() <= most)),
            "uniqueItems" => match keyword {
                Value::Bool(true) => {
                    Validity::of((1..elements.len()).all(|end| !elements[..end].iter().any(|one| same(one, &elements[end]))))
                }
                Value::Bool(false) => Valid,
                _ => Undecided,
            },
            "items" => {
                let (listed, schema) = (items(self.object.get("prefixItems")).len(), self.member("items"));
                elements.iter().skip(listed).map(|element| self.valid(&schema, element)).max().unwrap_or(Valid)
            }
            "prefixItems" => {
                let list = self.resolved.member("prefixItems");
                let pairs = elements.iter().enumerate().filter_map(|(position, value)| Some((element(&list, position)?, value)));
                pairs.map(|(schema, value)| self.valid(&self.schema.with(Some(schema)), value)).max().unwrap_or(Valid)
            }
            "contains" => {
                let schema = self.member("contains");
                let results: Vec<_> = elements.iter().map(|element| self.valid(&schema, element)).collect();
                let valid = results.iter().filter(|result| **result == Valid).count();
                let possible = results.iter().filter(|result| **result != Invalid).count();
                let limit = |key: &str| self.object.get(key).map(count);
                let (least, most) = (limit("minContains").unwrap_or(Some(1)), limit("maxContains").unwrap_or(Some(usize::MAX)));
                match (least, most) {
                    (Some(least), Some(most)) if valid > most || possible < least => Invalid,
                    (Some(least), Some(most)) if valid >= least && possible <= most => Valid,
                    _ => Undecided,
                }
            }
            "minContains" | "maxContains" => Valid,
            "unevaluatedItems" if self.object.contains_key("items") => Valid,
            "unevaluatedItems" => self.unevaluated(key, elements.iter().skip(items(self.object.get("prefixItems")).len())),
            "additionalItems" => Undecided,
            _ => if_known(key),
        }
    }

    fn object(&self, key: &str, keyword: &Value, properties: &Object) -> Validity {
        let count = |keyword: &Value| keyword.as_u64().and_then(|count| usize::try_from(count).ok());
        match key {
            "minProperties" => count(keyword).map_or(Undecided, |least| Validity::of(properties.len() >= least)),
            "maxProperties" => count(keyword).map_or(Undecided, |most| Validity::of(properties.len() <= most)),
            "propertyNames" => {
                let schema = self.member("propertyNames");
                properties.keys().map(|name| self.valid(&schema, &Value::from(name.as_str()))).max().unwrap_or(Valid)
            }
            "dependentRequired" => {
                let present = members(keyword).iter().filter(|(name, _)| properties.contains_key(*name));
                Validity::of(
                    present.flat_map(|(_, needed)| items(Some(needed))).filter_map(Value::as_str).all(|name| properties.contains_key(name)),
                )
            }
            "dependentSchemas" => {
                let schemas = self.resolved.member("dependentSchemas");
                let present = members(keyword).keys().filter(|name| properties.contains_key(*name));
                let value = Value::Object(properties.clone());
                present.map(|name| self.valid(&self.schema.with(inner(&schemas, name)), &value)).max().unwrap_or(Valid)
            }
            "unevaluatedProperties" if self.object.contains_key("additionalProperties") => Valid,
            "unevaluatedProperties" => {
                let patterns: Vec<_> = members_of(&self.resolved.member("patternProperties")).keys().cloned().collect();
                let listed = self.object.get("properties").map(members);
                let declared = |name: &str| {
                    let matching = |pattern: &String| matches_pattern(pattern, name) != Some(false);
                    listed.is_some_and(|listed| listed.contains_key(name)) || patterns.iter().any(matching)
                };
                self.unevaluated(key, properties.iter().filter(|(name, _)| !declared(name)).map(|(_, value)| value))
            }
            _ => if_known(key),
        }
    }

    /// Returns the result for the items or properties that only `key` evaluates. `key` is `unevaluatedItems` or `unevaluatedProperties`. An
    /// invalid result becomes undecided if a subschema may evaluate the items or properties.
    fn unevaluated<'v>(&self, key: &str, values: impl Iterator<Item = &'v Value>) -> Validity {
        let perhaps = evaluates(&self.resolved.schema, key);
        let schema = self.member(key);
        let worst = values.map(|value| self.valid(&schema, value)).max().unwrap_or(Valid);
        if perhaps { worst.min(Undecided) } else { worst }
    }

    fn properties(&self, properties: &Object, verdict: &mut Verdict) {
        let listed = self.resolved.member("properties");
        let patterns = self.resolved.member("patternProperties");
        let hidden = |name: &str| inner(&listed, name).is_some_and(|schema| self.semantics.hidden(&self.schema.with(Some(schema))));
        for name in items(self.object.get("required")).iter().filter_map(Value::as_str) {
            if !properties.contains_key(name) && !hidden(name) {
                verdict.add(&format!("required {name}"), Invalid);
            }
        }
        for (name, value) in properties {
            if verdict.settled() {
                return;
            }
            let mut declared = false;
            if let Some(schema) = inner(&listed, name) {
                declared = true;
                if !hidden(name) {
                    verdict.add("properties", self.valid(&self.schema.with(Some(schema)), value));
                }
            }
            for pattern in members_of(&patterns).keys() {
                match matches_pattern(pattern, name) {
                    Some(true) => {
                        declared = true;
                        verdict.add("patternProperties", self.valid(&self.schema.with(inner(&patterns, pattern)), value));
                    }
                    Some(false) => {}
                    None => verdict.add("patternProperties", Undecided),
                }
            }
            if !declared && self.object.contains_key("additionalProperties") {
                verdict.add("additionalProperties", self.valid(&self.member("additionalProperties"), value));
            }
        }
    }
}

/// Returns the result of a keyword that does not apply to the type of the value: valid if the keyword is known, else undecided.
fn if_known(key: &str) -> Validity {
    const KNOWN: [&str; 29] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "format",
    ];
    if KNOWN.contains(&key) { Valid } else { Undecided }
}

fn string(key: &str, keyword: &Value, content: &str) -> Validity {
    let count = |keyword: &Value| keyword.as_u64().and_then(|count| usize::try_from(count).ok());
    match key {
        "minLength" => count(keyword).map_or(Undecided, |least| Validity::of(content.chars().count() >= least)),
        "maxLength" => count(keyword).map_or(Undecided, |most| Validity::of(content.chars().count() <= most)),
        "pattern" => keyword.as_str().and_then(|pattern| matches_pattern(pattern, content)).map_or(Undecided, Validity::of),
        _ => if_known(key),
    }
}

fn multiple_of(value: &Value, step: &Value) -> Validity {
    if let (Some(value), Some(step)) = (value.as_i64(), step.as_i64()) {
        return if step > 0 { Validity::of(value % step == 0) } else { Undecided };
    }
    let (Some(value), Some(step)) = (value.as_f64(), step.as_f64()) else { return Undecided };
    if step <= 0.0 || !(value / step).is_finite() {
        return Undecided;
    }
    let steps = value / step;
    let distance = (steps - steps.round()).abs();
    // `distance` is the difference between the quotient and the nearest integer. Between 1e-12 and 1e-6, it may be a rounding error of the
    // division, so the result is undecided.
    if distance < 1e-12 {
        Valid
    } else if distance > 1e-6 {
        Invalid
    } else {
        Undecided
    }
}

/// Whether a value is of the type with this name, such as `integer`.
pub(in super::super) fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && number.as_f64().is_none_or(|number| number.fract() == 0.0),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Whether `dependentRequired` makes the property `name` required if another property is present. If so, a generated value may contain
/// `name` even if the schema does not declare this property.
pub(in super::super) fn depends_on(schema: &Object, name: &str) -> bool {
    let dependent = schema.get("dependentRequired").map(members);
    dependent.is_some_and(|dependent| dependent.values().any(|names| items(Some(names)).iter().any(|needed| needed == name)))
}

/// Whether a schema requires a property.
pub(in super::super) fn requires(schema: &Object, name: &str) -> bool {
    items(schema.get("required")).iter().any(|item| item == name)
}
