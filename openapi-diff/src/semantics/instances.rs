//! Generates random instances of a schema, which are values that are valid under the schema. The same seed generates the same instances.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    super::{
        json_values::{Object, items},
        schema::members_of,
        schema_resolution::{Resolved, element, inner},
    },
    DEPTH, SchemaChecker, SideSchema, Validity,
    format_checking_and_generation::example_of_format,
    pattern_matching_and_generation::matching,
    validity::is_of,
};

/// From this nesting depth on, optional parts of a generated value are left out.
const DEEP: usize = 6;
/// The maximum length of generated lists, and of generated strings without a `pattern`.
const LONG: usize = 300;
/// Once this many values have been collected from the `enum`s, `const`s, defaults and examples of schemas, no more are searched for.
const HINTS: usize = 20;

/// A small generator of pseudo-random numbers (xorshift64*).
#[derive(Debug, Clone)]
pub(in super::super) struct SeededRandom(pub u64);

impl SeededRandom {
    /// Returns a random number that is less than `sides`, or 0 if `sides` is 0.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap_or_default() % sides.max(1)
    }
}

pub(in super::super) struct Instances<'s, 'd, 'a> {
    semantics: &'s SchemaChecker<'d, 'a>,
    dice: SeededRandom,
    /// Values that the schemas name, such as the values of `enum`. Two schemas often differ in such values.
    hints: Vec<Value>,
    /// The number of attempts so far, and the index of the next hint. While hints are left, an attempt tries a hint, not a random value.
    count: usize,
}

impl<'s, 'd, 'a> Instances<'s, 'd, 'a> {
    pub fn new(semantics: &'s SchemaChecker<'d, 'a>) -> Self {
        Self { semantics, dice: SeededRandom(0x5EED), hints: Vec::new(), count: 0 }
    }

    /// Creates a generator with another seed, which generates other instances.
    #[cfg(test)]
    pub fn with_seed(semantics: &'s SchemaChecker<'d, 'a>, seed: u64) -> Self {
        Self { dice: SeededRandom(seed), ..Self::new(semantics) }
    }

    /// Adds hints: the values that some schemas name. The generator tries these first.
    pub fn with_hints(mut self, schemas: &[&SideSchema<'a>]) -> Self {
        for schema in schemas {
            let resolved = self.semantics.resolved(schema);
            hints(&resolved.schema, 0, &mut self.hints);
            // Instances of the subschemas of negations (`not`) and conditions (`if`, `then`, `else`) are added as hints.
            for key in ["not", "if", "then", "else"] {
                let Some(inner) = resolved.member(key).map(|inner| schema.with(Some(inner))) else { continue };
                let made: Vec<_> = (0..4).filter_map(|_| self.any(&inner, 1)).collect();
                self.hints.extend(made);
            }
        }
        self
    }

    /// Makes one attempt to generate an instance that the schema accepts. None if the attempt fails.
    pub fn valid(&mut self, schema: &SideSchema<'a>) -> Option<Value> {
        let hint = self.hints.get(self.count).cloned();
        self.count += 1;
        let value = hint.or_else(|| self.any(schema, 0))?;
        self.semantics.trusting.set(true);
        let validity = self.semantics.validity(schema, &value, 0);
        self.semantics.trusting.set(false);
        (validity == Validity::Valid).then_some(value)
    }

    fn any(&mut self, schema: &SideSchema<'a>, depth: usize) -> Option<Value> {
        if depth > DEPTH || !self.semantics.step() {
            return None;
        }
        let resolved = self.semantics.resolved(schema);
        if resolved.broken.is_some() || resolved.cut {
            return None;
        }
        let object = match &*resolved.schema {
            Value::Bool(true) => return Some(self.plain()),
            Value::Object(object) => object,
            _ => return None,
        };
        if let Some(value) = object.get("const") {
            return Some(value.clone());
        }
        if let Some(values) = object.get("enum") {
            let values = items(Some(values));
            return values.get(self.dice.roll(values.len())).cloned();
        }
        if let Some(pieces) = self.semantics.pieces(schema, &resolved) {
            let piece = pieces.get(self.dice.roll(pieces.len()))?;
            return self.any(piece, depth + 1);
        }
        if let Some(joined) = self.condition(schema, &resolved, object) {
            return self.any(&joined, depth + 1);
        }
        let types: Vec<String> = match self.semantics.types(schema.which, object) {
            Some(types) => types.into_iter().collect(),
            None => self.probable_types(object),
        };
        let name = types.get(self.dice.roll(types.len()))?;
        if self.dice.roll(4) == 0 {
            let fitting: Vec<_> = self.hints.iter().filter(|hint| is_of(hint, name)).collect();
            if let Some(hint) = fitting.get(self.dice.roll(fitting.len())) {
                return Some((*hint).clone());
            }
        }
        match name.as_str() {
            "null" => Some(Value::Null),
            "boolean" => Some(json!(self.dice.roll(2) == 0)),
            "integer" => self.number(object, true),
            "number" => self.number(object, false),
            "string" => self.text(object),
            "array" => self.list(schema, &resolved, object, depth),
            "object" => self.object(schema, &resolved, object, depth),
            _ => None,
        }
    }

    /// Returns a variant of a schema with a condition, at random: merged with `if` and `then`, merged with `else`, or without its
    /// condition.
    fn condition(&mut self, schema: &SideSchema<'a>, resolved: &Resolved<'a>, object: &Object) -> Option<SideSchema<'a>> {
        let condition = resolved.member("if")?;
        let mut rest = object.clone();
        let [then, otherwise] = ["then", "else"].map(|key| rest.remove(key));
        rest.remove("if");
        let parts = match self.dice.roll(3) {
            0 => vec![Value::Object(rest), condition.into_owned(), then.unwrap_or(Value::Bool(true))],
            1 => vec![Value::Object(rest), otherwise.unwrap_or(Value::Bool(true))],
            _ => vec![Value::Object(rest)],
        };
        Some(schema.with(Some(Cow::Owned(json!({ "allOf": parts })))))
    }

    /// Returns the types that the keywords of a schema apply to, then other types. A type that occurs twice is chosen more often.
    fn probable_types(&self, object: &Object) -> Vec<String> {
        let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
        let mut types = Vec::new();
        if has(&["properties", "required", "additionalProperties", "minProperties", "propertyNames", "dependentRequired"]) {
            types.push("object");
        }
        if has(&["items", "prefixItems", "minItems", "maxItems", "contains"]) {
            types.push("array");
        }
        if has(&["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]) {
            types.push("number");
        }
        if has(&["minLength", "maxLength", "pattern", "format"]) {
            types.push("string");
        }
        types.extend(["string", "integer", "boolean", "null", "object", "array"]);
        types.into_iter().map(str::to_owned).collect()
    }

    fn plain(&mut self) -> Value {
        [json!("a"), json!(1), json!(true), json!({}), json!([])][self.dice.roll(5)].clone()
    }

    fn number(&mut self, object: &Object, whole: bool) -> Option<Value> {
        let bound = |key: &str| object.get(key).filter(|value| value.is_number()).and_then(Value::as_f64);
        let least = bound("minimum").into_iter().chain(bound("exclusiveMinimum")).reduce(f64::max);
        let most = bound("maximum").into_iter().chain(bound("exclusiveMaximum")).reduce(f64::min);
        let unit = if whole { 1.0 } else { 0.5 };
        let step = bound("multipleOf").filter(|step| *step > 0.0);
        let near = match (self.dice.roll(8), least, most) {
            (0, Some(least), _) => least,
            (1, Some(least), _) => least + unit,
            (2, _, Some(most)) => most,
            (3, _, Some(most)) => most - unit,
            (4, Some(least), Some(most)) => least + (most - least) / 2.0,
            (5, Some(least), _) => least + 1_000.0,
            (5, _, Some(most)) => most - 1_000.0,
            (6, None, None) => 1e12,
            (7, None, None) => -1.0,
            (roll, ..) => f64::from(u8::try_from(roll + self.dice.roll(20)).unwrap_or_default()),
        };
        let near = if whole { near.round() } else { near };
        let number = match step {
            Some(step) => {
                let steps = (near / step).ceil() + f64::from(u8::try_from(self.dice.roll(3)).unwrap_or_default());
                steps * step
            }
            None => near,
        };
        let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
        Some(if is_whole { json!(number as i64) } else { json!(number) })
    }

    fn text(&mut self, object: &Object) -> Option<Value> {
        let count = |key: &str| object.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        let (least, most) = (count("minLength").unwrap_or_default(), count("maxLength"));
        if let Some(pattern) = object.get("pattern").and_then(Value::as_str) {
            let mut text = matching(pattern, &mut self.dice)?;
            let open = !pattern.contains('$');
            while open && text.chars().count() < least.min(LONG) {
                text.push('a');
            }
            return Some(text.into());
        }
        if let Some(value) = object.get("format").and_then(Value::as_str).and_then(|format| example_of_format(format, &mut self.dice)) {
            return Some(value);
        }
        let most = most.unwrap_or(least + 12);
        let length = match self.dice.roll(4) {
            0 => least,
            1 => most,
            2 => least + 1,
            _ => least + self.dice.roll(most.saturating_sub(least) + 1),
        };
        if length > LONG {
            return None;
        }
        let letters = ["abc", "xyz", "019"][self.dice.roll(3)].as_bytes();
        Some((0..length).map(|_| char::from(letters[self.dice.roll(letters.len())])).collect::<String>().into())
    }

    fn list(&mut self, schema: &SideSchema<'a>, resolved: &Resolved<'a>, object: &Object, depth: usize) -> Option<Value> {
        let count = |key: &str| object.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        let (least, most) = (count("minItems").unwrap_or_default(), count("maxItems"));
        let length = match self.dice.roll(5) {
            0 => least,
            1 => most.unwrap_or(least + 2).min(least + 8),
            roll if depth < DEEP => least + roll - 1,
            _ => least,
        };
        if length > LONG {
            return None;
        }
        let listed = resolved.member("prefixItems");
        let mut elements = Vec::new();
        for position in 0..length.min(most.unwrap_or(usize::MAX)) {
            let Some(item) = element(&listed, position).or_else(|| resolved.member("items")) else {
                elements.push(self.plain());
                continue;
            };
            match self.any(&schema.with(Some(item)), depth + 1) {
                Some(value) => elements.push(value),
                None if elements.len() >= least => break,
                None => return None,
            }
        }
        if let Some(contained) = resolved.member("contains") {
            let wanted = count("minContains").unwrap_or(1) + self.dice.roll(2);
            for position in 0..wanted.min(8) {
                let value = self.any(&schema.with(Some(contained.clone())), depth + 1)?;
                match elements.get_mut(position) {
                    Some(place) => *place = value,
                    None => elements.push(value),
                }
            }
        }
        Some(elements.into())
    }

    fn object(&mut self, schema: &SideSchema<'a>, resolved: &Resolved<'a>, object: &Object, depth: usize) -> Option<Value> {
        let listed = resolved.member("properties");
        let count = |key: &str| object.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        let required: Vec<&str> = items(object.get("required")).iter().filter_map(Value::as_str).collect();
        let mut made = Object::new();
        // Decides how many optional properties are generated. 0: none, 1: all, 2 and 3: a random half.
        let share = self.dice.roll(4);
        for name in members_of(&listed).keys() {
            let wanted = required.contains(&name.as_str()) || depth < DEEP && (share == 1 || share > 1 && self.dice.roll(2) == 0);
            let Some(property) = inner(&listed, name).filter(|_| wanted) else { continue };
            let property = schema.with(Some(property));
            if self.semantics.hidden(&property) {
                continue;
            }
            match self.any(&property, depth + 1) {
                Some(value) => _ = made.insert(name.clone(), value),
                None if required.contains(&name.as_str()) => return None,
                None => {}
            }
        }
        let others = resolved.member("additionalProperties");
        let refused = others.as_deref() == Some(&Value::Bool(false));
        let undeclared = |name: &&&str| members_of(&listed).get(**name).is_none();
        for name in required.iter().filter(undeclared) {
            let value = self.any(&schema.with(others.clone()), depth + 1)?;
            made.insert((*name).to_owned(), value);
        }
        for needed in object.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            if made.contains_key(needed.0) && self.dice.roll(3) > 0 {
                for name in items(Some(needed.1)).iter().filter_map(Value::as_str) {
                    if !made.contains_key(name) {
                        let value = self.any(&schema.with(inner(&listed, name)), depth + 1)?;
                        made.insert(name.to_owned(), value);
                    }
                }
            }
        }
        let least = count("minProperties").unwrap_or_default();
        let typed = others.as_deref().is_some_and(Value::is_object);
        let more = if !refused && depth < DEEP && (self.dice.roll(4) == 0 || typed && self.dice.roll(2) == 0) { 1 } else { 0 };
        let names = ["extra", "other", "more"];
        for (position, name) in names.into_iter().enumerate() {
            if refused || position >= more && made.len() >= least {
                break;
            }
            let Some(value) = self.any(&schema.with(others.clone()), depth + 1) else { break };
            made.insert(name.to_owned(), value);
        }
        for pattern in members_of(&resolved.member("patternProperties")).keys() {
            if self.dice.roll(2) == 0
                && let Some(name) = matching(pattern, &mut self.dice)
                && let Some(value) = self.any(&schema.with(inner(&resolved.member("patternProperties"), pattern)), depth + 1)
            {
                made.insert(name, value);
            }
        }
        Some(made.into())
    }
}

/// Collects the values of `enum`, `const`, `default` and `example` within a schema.
fn hints(schema: &Value, depth: usize, found: &mut Vec<Value>) {
    if depth > 6 || found.len() >= HINTS {
        return;
    }
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match key.as_str() {
                    "enum" => found.extend(items(Some(value)).iter().take(HINTS).cloned()),
                    "const" | "default" | "example" => found.push(value.clone()),
                    _ => hints(value, depth + 1, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| hints(inner, depth + 1, found)),
        _ => {}
    }
}
