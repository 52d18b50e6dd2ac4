//! Semantics of schemas: validity of a value under a schema, random instances (valid values) of a schema, containment and disjointness of
//! two schemas.
//!
//! The comparison uses this module where keywords alone do not decide a change: choices, negations, conditions, patterns.
//!
//! A witness is a value that one schema accepts and the other refuses, so it refutes containment.
//!
//! Two conventions go beyond JSON Schema. `readOnly` properties count as absent from requests, `writeOnly` properties as absent from
//! responses. When two schemas are compared, an instance of one schema is assumed to hold no property that only the other schema declares.
//! Therefore a new optional property of an open object makes no instance invalid.

mod disjoint;
mod format_checking_and_generation;
mod instances;
mod object_containment;
mod one_of_overlap;
mod pattern_matching_and_generation;
mod schema_containment;
mod validity;

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeSet, HashMap, HashSet},
    rc::Rc,
};

use elsa::FrozenVec;
use serde_json::{Value, json};

#[cfg(test)]
pub(super) use self::instances::SeededRandom;
pub(super) use self::{
    instances::Instances,
    one_of_overlap::Overlap,
    schema_containment::only,
    validity::{RefusingKeywords, Validity, depends_on, is_of},
};
use super::{
    json_values::{Object, empty, flag, is_annotation, items, members},
    references::{DocumentIndex, reference},
    rules::Direction,
    schema_resolution::{Resolved, element, resolve},
};

/// The maximum nesting depth of schemas in a check. Beyond this depth the result is undecided.
const DEPTH: usize = 40;
/// The maximum number of steps (visits to a schema) that one comparison may use for all its checks of schemas.
const COMPARISON_STEPS: usize = 10_000_000;
/// The maximum number of steps that one comparison may use for all its searches for witnesses.
const WITNESS_STEPS: usize = 2_500_000;
/// The maximum number of steps of one check.
const CHECK_STEPS: usize = 20_000;
/// The maximum number of schemas in each cache of a comparison.
const KEPT: usize = 20_000;

/// One of the two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum DocumentRole {
    Old,
    New,
}

/// A schema and the document that its references belong to.
#[derive(Debug, Clone)]
pub(super) struct SideSchema<'a> {
    pub which: DocumentRole,
    pub value: Cow<'a, Value>,
    /// The resolved form of the schema, cached here only if the comparison built the schema. Schemas of the documents are cached in
    /// `CheckCaches`.
    resolved: OnceCell<Rc<Resolved<'a>>>,
}

/// The arena that owns the schemas that a comparison built, such as merged schemas. The schemas live as long as the arena.
pub(super) type Arena = FrozenVec<Box<Value>>;

/// The result of a check for schema containment: whether each instance of one schema is valid under another one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Inclusion {
    Proven,
    /// A value that the first schema accepts and the second one refuses.
    Refuted(Value),
    Undecided,
}

/// State that all checks of a comparison share: the remaining steps, and caches of resolved schemas.
pub(super) struct CheckCaches<'a> {
    work: Cell<usize>,
    /// The remaining steps for searches for witnesses. They are counted separately, because a search for a witness does not affect the
    /// class of a change.
    illustration: Cell<usize>,
    arena: &'a Arena,
    resolved: RefCell<HashMap<(DocumentRole, usize), Rc<Resolved<'a>>>>,
    pieces: RefCell<HashMap<(DocumentRole, usize), Pieces<'a>>>,
}

/// The variants of a choice (`oneOf`, `anyOf`). None for a schema without a choice.
type Pieces<'a> = Option<Rc<Vec<SideSchema<'a>>>>;

impl<'a> CheckCaches<'a> {
    pub fn new(arena: &'a Arena) -> Self {
        let (work, illustration) = (Cell::new(COMPARISON_STEPS), Cell::new(WITNESS_STEPS));
        Self { work, illustration, arena, resolved: RefCell::default(), pieces: RefCell::default() }
    }

    /// Resolves a schema. A schema that is built by merging is stored in the arena, so that its subschemas are borrowed, not copied.
    fn prepared(&self, side: &DocumentIndex<'a>, schema: Cow<'a, Value>) -> Rc<Resolved<'a>> {
        let mut resolved = resolve(side, schema);
        if let Cow::Owned(value) = resolved.schema {
            resolved.schema = Cow::Borrowed(self.arena.push_get(Box::new(value)));
        }
        Rc::new(resolved)
    }

    /// Resolves a schema of a document. Results are cached by the address of the schema.
    fn resolved(&self, side: &DocumentIndex<'a>, which: DocumentRole, schema: &'a Value) -> Rc<Resolved<'a>> {
        let address = (which, std::ptr::from_ref(schema).addr());
        if let Some(resolved) = self.resolved.borrow().get(&address) {
            return resolved.clone();
        }
        let resolved = self.prepared(side, Cow::Borrowed(schema));
        let mut kept = self.resolved.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(address, resolved.clone());
        resolved
    }
}

/// Checks schemas of two documents for validity, containment and disjointness, within a limit of steps.
pub(super) struct SchemaChecker<'d, 'a> {
    old: &'d DocumentIndex<'a>,
    new: &'d DocumentIndex<'a>,
    /// References that lead to equal values in both documents.
    unchanged: &'d HashSet<String>,
    direction: Direction,
    memory: &'d CheckCaches<'a>,
    /// The remaining steps of this check.
    left: Cell<usize>,
    /// Whether the check is a search for a witness, which has a separate limit of steps.
    illustrates: bool,
    /// Whether containment of objects is strict: an open schema that does not declare a property does not include a schema that declares
    /// that property.
    strict: bool,
    /// Whether a value counts as valid under a format that this crate does not check. Otherwise the validity of such a value is undecided.
    trusting: Cell<bool>,
    /// Pairs of references whose containment is being proven. If a proof reaches the same pair again, containment of that pair is assumed.
    assumed: RefCell<Vec<[(DocumentRole, String); 2]>>,
}

impl<'d, 'a> SchemaChecker<'d, 'a> {
    pub fn new(
        sides: [&'d DocumentIndex<'a>; 2],
        unchanged: &'d HashSet<String>,
        direction: Direction,
        memory: &'d CheckCaches<'a>,
    ) -> Self {
        let [old, new] = sides;
        Self {
            old,
            new,
            unchanged,
            direction,
            memory,
            left: Cell::new(CHECK_STEPS),
            illustrates: false,
            strict: false,
            trusting: Cell::new(false),
            assumed: RefCell::default(),
        }
    }

    /// Returns this checker in the mode for searches for witnesses, which have a separate limit of steps.
    pub fn illustrating(mut self) -> Self {
        self.illustrates = true;
        self
    }

    /// Returns this checker in the strict mode: an open schema that does not declare a property does not include a schema that declares
    /// that property.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Resets the remaining steps for the next check, and returns this checker.
    pub fn refreshed(&self) -> &Self {
        self.left.set(CHECK_STEPS);
        self
    }

    /// Counts one step. Returns false once the limit of this check or of the comparison is reached.
    fn step(&self) -> bool {
        let limit = if self.illustrates { &self.memory.illustration } else { &self.memory.work };
        let (own, all) = (self.left.get(), limit.get());
        self.left.set(own.saturating_sub(1));
        limit.set(all.saturating_sub(1));
        own > 0 && all > 0
    }

    fn side(&self, which: DocumentRole) -> &'d DocumentIndex<'a> {
        match which {
            DocumentRole::Old => self.old,
            DocumentRole::New => self.new,
        }
    }

    pub fn resolved(&self, schema: &SideSchema<'a>) -> Rc<Resolved<'a>> {
        let side = self.side(schema.which);
        match &schema.value {
            Cow::Borrowed(value) => self.memory.resolved(side, schema.which, value),
            Cow::Owned(_) => schema.resolved.get_or_init(|| self.memory.prepared(side, schema.value.clone())).clone(),
        }
    }

    /// Checks whether `sup` accepts each instance of `sub`: looks for a proof, then tries random instances of `sub` to refute it.
    pub fn inclusion(&self, sub: &SideSchema<'a>, sup: &SideSchema<'a>, samples: usize) -> Inclusion {
        if self.fits(sub, sup, 0) {
            return Inclusion::Proven;
        }
        self.refutation(sub, sup, samples).map_or(Inclusion::Undecided, Inclusion::Refuted)
    }

    /// Searches for an instance of `sub` that `sup` refuses. None if no such instance is found.
    pub fn witness(&self, sub: &SideSchema<'a>, sup: &SideSchema<'a>) -> Option<Value> {
        self.refutation(sub, sup, 40)
    }

    fn refutation(&self, sub: &SideSchema<'a>, sup: &SideSchema<'a>, samples: usize) -> Option<Value> {
        // The search for a witness may use all steps of a check, however many steps the failed proof used.
        self.left.set(CHECK_STEPS);
        let mut instances = Instances::new(self).with_hints(&[sub, sup]);
        let found = (0..samples).filter_map(|_| instances.valid(sub).filter(|value| self.validity(sup, value, 0) == Validity::Invalid));
        // Of up to three such values, the shortest is the easiest to read.
        found.take(3).min_by_key(|value| value.to_string().len())
    }

    /// Whether a property is never sent in this direction.
    fn hidden(&self, property: &SideSchema<'a>) -> bool {
        let key = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
            Direction::Both | Direction::Neither => return false,
        };
        let plain = reference(&property.value).is_none() && property.value.get("allOf").is_none();
        if plain { flag(members(&property.value), key) } else { self.resolved(property).object().is_some_and(|schema| flag(schema, key)) }
    }

    /// Returns the types that a schema names, without `integer` if the schema also names `number`. None if the schema names no type.
    fn types(&self, which: DocumentRole, schema: &Object) -> Option<BTreeSet<String>> {
        let named = schema.get("type")?;
        let mut types: BTreeSet<_> =
            named.as_str().into_iter().chain(items(Some(named)).iter().filter_map(Value::as_str)).map(str::to_owned).collect();
        if !self.side(which).document.is_3_1() && flag(schema, "nullable") {
            types.insert("null".to_owned());
        }
        if types.contains("number") {
            types.remove("integer");
        }
        Some(types)
    }

    /// Returns the variants of a choice (`oneOf`, `anyOf`), each merged with the keywords next to the choice. None for a schema without a
    /// choice.
    fn pieces(&self, schema: &SideSchema<'a>, resolved: &Resolved<'a>) -> Pieces<'a> {
        let Cow::Borrowed(value) = resolved.schema else { return self.split(schema, resolved).map(Rc::new) };
        let address = (schema.which, std::ptr::from_ref(value).addr());
        if let Some(pieces) = self.memory.pieces.borrow().get(&address) {
            return pieces.clone();
        }
        let pieces = self.split(schema, resolved).map(Rc::new);
        let mut kept = self.memory.pieces.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(address, pieces.clone());
        pieces
    }

    fn split(&self, schema: &SideSchema<'a>, resolved: &Resolved<'a>) -> Option<Vec<SideSchema<'a>>> {
        let object = resolved.object()?;
        let key = ["oneOf", "anyOf"].into_iter().find(|key| object.contains_key(*key))?;
        let list = resolved.member(key)?;
        let variants = list.as_array()?.len();
        let mut rest = object.clone();
        rest.remove(key);
        rest.remove("discriminator");
        let nullable = !self.side(schema.which).document.is_3_1() && flag(&rest, "nullable") && !rest.contains_key("type");
        if nullable {
            rest.remove("nullable");
        }
        let plain = rest.keys().all(|key| is_annotation(key));
        let list = Some(list);
        let mut pieces: Vec<_> = (0..variants)
            .filter_map(|position| element(&list, position))
            .map(|variant| {
                let value = if plain { variant } else { Cow::Owned(json!({ "allOf": [Value::Object(rest.clone()), variant] })) };
                SideSchema::new(schema.which, value)
            })
            .collect();
        // Authors write `nullable` next to `oneOf` or `anyOf` to accept null, so null is added as a variant.
        if nullable {
            pieces.push(SideSchema::new(schema.which, Cow::Owned(json!({ "type": "null" }))));
        }
        Some(pieces)
    }
}

impl<'a> SideSchema<'a> {
    pub fn new(which: DocumentRole, value: Cow<'a, Value>) -> Self {
        Self { which, value, resolved: OnceCell::new() }
    }

    pub fn with(&self, value: Option<Cow<'a, Value>>) -> Self {
        Self::new(self.which, value.unwrap_or(Cow::Borrowed(empty())))
    }
}

/// Whether a keyword restricts no value by itself.
fn has_no_effect_alone(key: &str) -> bool {
    const IDLE: [&str; 19] = [
        "default",
        "deprecated",
        "discriminator",
        "readOnly",
        "writeOnly",
        "xml",
        "nullable",
        "$id",
        "$schema",
        "$anchor",
        "$dynamicAnchor",
        "$vocabulary",
        "$defs",
        "definitions",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "then",
        "else",
    ];
    is_annotation(key) || key.starts_with("x-") || IDLE.contains(&key)
}
