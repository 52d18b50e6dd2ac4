//! Differential test on random pairs of schemas, with an independent validator (the crate `jsonschema`) as referee.
//!
//! One schema of a pair is the promise, whose values the other schema has to accept: the old schema in a request, the new schema in a
//! response. If all reported changes of a pair are compatible, each instance (valid value) of the promise must be valid under the other
//! schema. A witness of a breaking change must be valid under the promise and invalid under the other schema.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{compared, document};
use crate::{
    Class, Direction,
    comparison_state::Differ,
    references::DocumentIndex,
    semantics::{Arena, DocumentRole, Instances, SeededRandom, SideSchema},
};

/// The number of instances that are tried for each pair whose changes are all compatible.
const INSTANCES: usize = 1_000;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Generates a random schema of OpenAPI 3.1.
fn schema(dice: &mut SeededRandom, depth: usize) -> Value {
    let kinds = if depth == 0 { 5 } else { 10 };
    match dice.roll(kinds) {
        0 => text(dice),
        1 => number(dice),
        2 => json!({ "type": "boolean" }),
        3 => json!({ "enum": (0..=dice.roll(3)).map(|_| literal(dice)).collect::<Vec<_>>() }),
        4 => json!({ "type": ([["string", "null"], ["integer", "string"], ["number", "boolean"]][dice.roll(3)]) }),
        5 | 6 => object(dice, depth - 1),
        7 => list(dice, depth - 1),
        8 => json!({ (["oneOf", "anyOf"][dice.roll(2)]): (0..=dice.roll(3)).map(|_| schema(dice, depth - 1)).collect::<Vec<_>>() }),
        _ => match dice.roll(4) {
            0 => json!({ "allOf": [schema(dice, depth - 1), schema(dice, depth - 1)] }),
            1 => json!({ "type": ["string", "integer"], "not": schema(dice, 0) }),
            2 => json!({ "type": ["string", "integer"], "if": schema(dice, 0), "then": text(dice), "else": number(dice) }),
            _ => json!({ "$ref": format!("#/components/schemas/{}", ["One", "Two"][dice.roll(2)]) }),
        },
    }
}

fn literal(dice: &mut SeededRandom) -> Value {
    [json!("a"), json!("b"), json!(1), json!(2), json!(null), json!(true)][dice.roll(6)].clone()
}

fn text(dice: &mut SeededRandom) -> Value {
    let mut schema = json!({ "type": "string" });
    match dice.roll(6) {
        0 => schema["minLength"] = dice.roll(4).into(),
        1 => schema["maxLength"] = (dice.roll(4) + 1).into(),
        2 => schema["pattern"] = ["^a", "^[ab]+$", "^[a-c]{1,3}$"][dice.roll(3)].into(),
        3 => schema["enum"] = json!(["a", "b", "c"][..=dice.roll(3)]),
        _ => {}
    }
    schema
}

fn number(dice: &mut SeededRandom) -> Value {
    let mut schema = json!({ "type": (["integer", "number"][dice.roll(2)]) });
    match dice.roll(6) {
        0 => schema["minimum"] = dice.roll(5).into(),
        1 => schema["maximum"] = dice.roll(5).into(),
        2 => schema["exclusiveMinimum"] = dice.roll(5).into(),
        3 => schema["multipleOf"] = (dice.roll(4) + 1).into(),
        _ => {}
    }
    schema
}

fn list(dice: &mut SeededRandom, depth: usize) -> Value {
    let mut list = json!({ "type": "array", "items": schema(dice, depth) });
    match dice.roll(7) {
        0 => list["minItems"] = dice.roll(3).into(),
        1 => list["maxItems"] = (dice.roll(3) + 1).into(),
        2 => list["uniqueItems"] = true.into(),
        3 => {
            list["contains"] = schema(dice, 0);
            list["minContains"] = dice.roll(3).into();
        }
        4 => list["prefixItems"] = json!([schema(dice, 0)]),
        5 => {
            list["prefixItems"] = json!([list["items"].take()]);
            list.as_object_mut().expect("an object").remove("items");
            list["unevaluatedItems"] = [json!(false), text(dice)][dice.roll(2)].clone();
        }
        _ => {}
    }
    list
}

fn object(dice: &mut SeededRandom, depth: usize) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for name in NAMES {
        if dice.roll(2) == 0 {
            properties.insert(name.to_owned(), schema(dice, depth));
            if dice.roll(2) == 0 {
                required.push(name);
            }
        }
    }
    let mut object = json!({ "type": "object", "properties": properties, "required": required });
    match dice.roll(11) {
        0 | 1 => object["additionalProperties"] = false.into(),
        2 => object["additionalProperties"] = schema(dice, 0),
        3 => object["minProperties"] = dice.roll(3).into(),
        4 => object["maxProperties"] = (dice.roll(3) + 1).into(),
        5 => object["dependentRequired"] = json!({ "a": ["b"] }),
        6 => object["propertyNames"] = json!({ "maxLength": dice.roll(6) }),
        7 => object["unevaluatedProperties"] = [json!(false), text(dice)][dice.roll(2)].clone(),
        8 => object["patternProperties"] = json!({ "^[ab]$": schema(dice, 0) }),
        9 => object["dependentSchemas"] = json!({ "a": { "required": ["b"], "properties": { "c": schema(dice, 0) } } }),
        _ => {}
    }
    object
}

/// Returns a schema with one part of it replaced, removed, wrapped, reordered or added.
fn changed(schema_of: &Value, dice: &mut SeededRandom) -> Value {
    let mut new = schema_of.clone();
    let mut place = &mut new;
    loop {
        let inner: Vec<String> = match &*place {
            Value::Object(object) => {
                object.iter().filter(|(_, value)| value.is_object() || value.is_array()).map(|(key, _)| key.clone()).collect()
            }
            Value::Array(items) => (0..items.len()).map(|position| position.to_string()).collect(),
            _ => Vec::new(),
        };
        if inner.is_empty() || dice.roll(2) == 0 {
            break;
        }
        let step = inner[dice.roll(inner.len())].clone();
        if ["required", "enum", "type", "dependentRequired", "patternProperties", "dependentSchemas"].contains(&step.as_str()) {
            break;
        }
        place = match place {
            Value::Object(object) => object.get_mut(&step).expect("a member"),
            other => other.get_mut(step.parse::<usize>().expect("a position")).expect("an item"),
        };
    }
    match place {
        // The value at `place` is a list of schemas, such as that of `oneOf`.
        Value::Array(items) => match dice.roll(3) {
            0 if items.len() > 1 => _ = items.remove(dice.roll(items.len())),
            1 => items.reverse(),
            _ => items.push(schema(dice, 1)),
        },
        Value::Object(object) if object.keys().all(|key| NAMES.contains(&key.as_str())) => match dice.roll(2) {
            0 => _ = object.remove(NAMES[dice.roll(4)]),
            _ => _ = object.insert(NAMES[dice.roll(4)].to_owned(), schema(dice, 1)),
        },
        Value::Object(object) => match dice.roll(5) {
            0 if !object.is_empty() => {
                let key = object.keys().nth(dice.roll(object.len())).cloned().expect("a key");
                object.remove(&key);
            }
            1 => *place = json!({ (["oneOf", "anyOf", "allOf"][dice.roll(3)]): [place.clone()] }),
            2 => *place = json!({ (["oneOf", "anyOf"][dice.roll(2)]): [place.clone(), schema(dice, 1)] }),
            3 => *place = schema(dice, 1),
            _ => {
                for (key, value) in
                    [text(dice), number(dice), list(dice, 0), object_of(dice)][dice.roll(4)].as_object().cloned().unwrap_or_default()
                {
                    if key != "type" {
                        object.insert(key, value);
                    }
                }
            }
        },
        other => *other = schema(dice, 1),
    }
    new
}

fn object_of(dice: &mut SeededRandom) -> Value {
    object(dice, 0)
}

fn components() -> Value {
    json!({ "schemas": {
        "One": { "type": "object", "required": ["a"], "properties": { "a": { "type": "string" }, "b": { "$ref": "#/components/schemas/Two" } } },
        "Two": { "type": "string", "maxLength": 3 }
    } })
}

fn wrapped(request: bool, schema: &Value) -> Value {
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    let operation = match request {
        true => json!({ "requestBody": body, "responses": {} }),
        false => json!({ "responses": { "200": body } }),
    };
    json!({ "openapi": "3.1.0", "info": {}, "paths": { "/s": { "post": operation } }, "components": components() })
}

fn validator(schema: &Value) -> jsonschema::Validator {
    let whole = json!({ "allOf": [schema], "components": components() });
    jsonschema::draft202012::new(&whole).expect("a schema that compiles")
}

/// The numbers of pairs, changes, instances and witnesses in a run of the test.
#[derive(Debug, Default)]
struct Found {
    pairs: usize,
    compatible: usize,
    unknown: usize,
    breaking: usize,
    instances: usize,
    breaking_changes: usize,
    witnesses: usize,
}

fn run(seed: u64, pairs: usize) -> Found {
    let mut dice = SeededRandom(seed);
    let mut found = Found::default();
    let mut faults = String::new();
    for _ in 0..pairs {
        let one = schema(&mut dice, 2);
        let other = changed(&one, &mut dice);
        for request in [true, false] {
            found.pairs += 1;
            let (old, new) = (wrapped(request, &one), wrapped(request, &other));
            let report = compared(&old, &new);
            let (promise, target) = if request { (&one, &other) } else { (&other, &one) };
            let (accepts, expects) = (validator(promise), validator(target));
            for change in report.of_class(Class::Breaking) {
                found.breaking_changes += 1;
                found.witnesses += usize::from(change.witness.is_some());
                let root = if request { "request body" } else { "response 200" };
                let whole = change.place == root
                    || change
                        .place
                        .strip_prefix(root)
                        .is_some_and(|rest| rest.matches('/').count() == 1 && change.rule.id.contains("property-"));
                if let Some(witness) = change.witness.as_ref().filter(|_| whole)
                    && (!accepts.is_valid(witness) || expects.is_valid(witness))
                {
                    writeln!(faults, "{} {witness} is no witness, request {request}: {one} -> {other}", change.rule.id).expect("a text");
                }
            }
            match (report.summary.breaking, report.summary.unknown) {
                (1.., _) => found.breaking += 1,
                (0, 1..) => found.unknown += 1,
                (0, 0) => {
                    found.compatible += 1;
                    let counter = counter_example(request, [&old, &new], promise, &accepts, &expects, &mut found);
                    if let Some(value) = counter {
                        let rules: Vec<_> = report.changes.iter().map(|change| format!("{} {}", change.place, change.rule.id)).collect();
                        writeln!(faults, "{value} refutes {rules:?}, request {request}: {one} -> {other}").expect("a text");
                    }
                }
            }
        }
    }
    println!("{found:?}");
    assert!(faults.is_empty(), "{} faults of {found:?}:\n{faults}", faults.lines().count());
    found
}

/// Searches for an instance of the schema `promise` that the validator of the other schema (`expects`) refuses.
fn counter_example(
    request: bool,
    documents: [&Value; 2],
    promise: &Value,
    accepts: &jsonschema::Validator,
    expects: &jsonschema::Validator,
    found: &mut Found,
) -> Option<Value> {
    let [old, new] = documents.map(document);
    let arena = Arena::new();
    let differ = Differ::new(DocumentIndex::new(&old), DocumentIndex::new(&new), &arena);
    let (direction, which) = if request { (Direction::Request, DocumentRole::Old) } else { (Direction::Response, DocumentRole::New) };
    let promise = SideSchema::new(which, std::borrow::Cow::Owned(promise.clone()));
    for round in 0..INSTANCES / 50 {
        let semantics = differ.semantics(direction);
        let mut instances = Instances::with_seed(&semantics, 77 + round as u64);
        for _ in 0..50 {
            let Some(value) = instances.valid(&promise) else { continue };
            if !accepts.is_valid(&value) {
                continue;
            }
            found.instances += 1;
            if !expects.is_valid(&value) {
                return Some(value);
            }
        }
    }
    None
}

#[test]
fn the_referee_validator_confirms_compatible_changes_and_witnesses() {
    let found = run(0xBADC_0FFE, 250);
    assert!(found.compatible > 50 && found.instances > 30_000, "{found:?}");
    assert!(found.witnesses * 2 > found.breaking_changes, "{found:?}");
}

#[test]
#[ignore = "takes minutes"]
fn the_referee_validator_confirms_many_random_schema_pairs() {
    run(0x00C0_FFEE, 10_000);
}
