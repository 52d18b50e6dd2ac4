//! Compares two schemas, breadth first. A change is reported at each location where the schema is used.
//!
//! A pair of references that already occurs on the path to a schema is not followed again, so recursion ends. If a body uses schemas at too
//! many locations, each pair of schemas is reported at its first location only, so that the work is bounded and each change is still
//! reported. If a body is too large even for this, the report says that it was not compared in full.

use std::{
    borrow::Cow,
    collections::{HashSet, VecDeque},
    rc::Rc,
};

use serde_json::Value;

use super::{
    classification::Pair,
    comparison_state::{Differ, Location, RefusalCause},
    json_values::{Object, both_same, canonical, empty, is_annotation, items, keys, members, without_annotations},
    keyword_applicability::Applicability,
    not_if_contains::{APPLICATORS, allows_nothing},
    one_of_any_of,
    references::reference,
    rules,
    schema_resolution::{Resolved, element, resolve},
    semantics::{DocumentRole, SideSchema},
    validation_keywords::{self, GROUPS},
};

/// The maximum number of pairs of schemas of one body that are compared at every location. If a body has more, it is compared again, and
/// each pair is reported only once.
const EVERYWHERE: usize = 3_000;
/// The maximum number of pairs of schemas of one body that are compared if each pair is reported only once.
const ONCE: usize = 20_000;
/// The nesting depth of references beyond which a body is compared again, and each pair of schemas is reported only once.
const DEEP: usize = 64;

/// Two schemas to compare.
pub(super) struct SchemaPairTask<'a> {
    pub at: Location,
    pub old: Cow<'a, Value>,
    pub new: Cow<'a, Value>,
    reference_path: ReferencePath,
}

/// The pairs of references on the path to a schema, as a linked list.
type ReferencePath = Option<Rc<Link>>;

struct Link {
    pair: String,
    depth: usize,
    before: ReferencePath,
}

/// How a body is compared. If each pair of schemas is to be reported only once, `once` holds the pairs that were already compared.
struct Mode {
    once: Option<HashSet<String>>,
    left: usize,
}

/// Adds subschemas to the queue of pairs of schemas that are still to be compared.
pub(super) struct Subschemas<'q, 'a> {
    queue: &'q mut VecDeque<SchemaPairTask<'a>>,
    reference_path: &'q ReferencePath,
}

impl<'a> Subschemas<'_, 'a> {
    /// Queues two schemas. An absent schema accepts everything.
    pub fn compare(&mut self, at: Location, old: Option<Cow<'a, Value>>, new: Option<Cow<'a, Value>>) {
        let [old, new] = [old, new].map(|schema| schema.unwrap_or(Cow::Borrowed(empty())));
        self.queue.push_back(SchemaPairTask { at, old, new, reference_path: self.reference_path.clone() });
    }
}

/// Keywords that are not compared as plain keywords, because a separate function compares each of them.
const OWN: [&str; 13] = [
    "dependentRequired",
    "allOf",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "oneOf",
    "anyOf",
    "$ref",
    "discriminator",
];

/// Keywords that name a schema or its dialect.
const NAMING: [&str; 5] = ["$id", "$schema", "$anchor", "$dynamicAnchor", "$vocabulary"];

impl<'a> Differ<'a> {
    /// Compares two schemas and their subschemas.
    pub fn schema(&mut self, at: &Location, old: Option<&'a Value>, new: Option<&'a Value>) {
        let [old, new] = [old, new].map(|schema| Cow::Borrowed(schema.unwrap_or(empty())));
        let before = self.found.len();
        let everywhere = Mode { once: None, left: EVERYWHERE.min(self.left) };
        if self.breadth_first(at, old.clone(), new.clone(), everywhere) {
            return;
        }
        self.found.truncate(before);
        let once = Mode { once: Some(HashSet::new()), left: ONCE.min(self.left_once) };
        if !self.breadth_first(at, old, new, once) {
            self.report(&rules::NOT_COMPARED, at);
        }
    }

    /// Compares two schemas and their subschemas, breadth first. Returns false if the number of pairs or the nesting depth of references
    /// exceeds its limit.
    fn breadth_first(&mut self, at: &Location, old: Cow<'a, Value>, new: Cow<'a, Value>, mut mode: Mode) -> bool {
        let mut queue = VecDeque::from([SchemaPairTask { at: at.clone(), old, new, reference_path: None }]);
        while let Some(task) = queue.pop_front() {
            if self.identical(&task.old, &task.new) {
                continue;
            }
            if mode.left == 0 {
                return false;
            }
            mode.left -= 1;
            let left = if mode.once.is_some() { &mut self.left_once } else { &mut self.left };
            *left = left.saturating_sub(1);
            let pair = named(&task);
            let written = [&task.old, &task.new].map(one_of_any_of::written);
            let sources = [SideSchema::new(DocumentRole::Old, task.old.clone()), SideSchema::new(DocumentRole::New, task.new.clone())];
            let (old, new) = (resolve(&self.old, task.old), resolve(&self.new, task.new));
            let Some(reference_path) = entered(task.reference_path, pair, &mut mode.once) else { continue };
            if mode.once.is_none() && reference_path.as_ref().is_some_and(|link| link.depth > DEEP) {
                return false;
            }
            let mut below = Subschemas { queue: &mut queue, reference_path: &reference_path };
            let pair = Pair { old: &sources[0], new: &sources[1] };
            let from = self.found.len();
            if !one_of_any_of::compare_with_one(self, &task.at, [&old, &new], written, &pair, &mut below) {
                self.pair(&task.at, &old, &new, &pair, &mut below);
            }
            self.add_witnesses(&task.at, &pair, from);
        }
        true
    }

    /// Reports that a schema which refuses every value took the place of another schema, or the reverse. Any value that the other schema
    /// accepts is an example of this change.
    fn report_any(&mut self, rule: &'static rules::Rule, at: &Location) {
        let from = self.found.len();
        self.report(rule, at);
        self.blame(from, &RefusalCause::Keywords(vec!["schema".to_owned(), "not".to_owned()]));
    }

    fn pair(&mut self, at: &Location, old: &Resolved<'a>, new: &Resolved<'a>, pair: &Pair<'_, 'a>, below: &mut Subschemas<'_, 'a>) {
        if old.cut || new.cut {
            self.report(&rules::NOT_COMPARED, at);
        }
        match (&old.broken, &new.broken) {
            (None, Some(reference)) => return self.report_detail(&rules::REFERENCE_BROKEN, at, reference),
            (Some(reference), None) => return self.report_detail(&rules::REFERENCE_MENDED, at, reference),
            (Some(one), Some(other)) if one != other => {
                self.report_keyword(at, "$ref", Some(&one.as_str().into()), Some(&other.as_str().into()));
            }
            _ => {}
        }
        for key in keys(&old.beside, &new.beside) {
            for position in 0..2000.min(items(old.beside.get(key)).len().max(items(new.beside.get(key)).len())) {
                let value = |flat: &Resolved<'a>| items(flat.beside.get(key)).get(position).cloned();
                self.report_keyword(at, key, value(old).as_ref(), value(new).as_ref());
            }
        }
        let nothing = Value::Bool(false);
        let [was, is] = [old, new].map(|flat| if allows_nothing(&flat.schema) { &nothing } else { flat.schema.as_ref() });
        let (one, other) = match (was, is) {
            (Value::Bool(false), Value::Bool(false)) if old.schema != new.schema => {
                return self.report_detail(&rules::RESTATED, at, "schema");
            }
            (Value::Object(one), Value::Object(other)) => (one, other),
            // `true` equals a schema without keywords.
            (Value::Bool(true), Value::Object(other)) => (members(empty()), other),
            (Value::Object(one), Value::Bool(true)) => (one, members(empty())),
            (Value::Bool(false), Value::Object(_) | Value::Bool(true)) => return self.report_any(&rules::PERMITTED, at),
            (Value::Object(_) | Value::Bool(true), Value::Bool(false)) => return self.report_any(&rules::FORBIDDEN, at),
            (one, other) => return self.report_keyword(at, "schema", Some(one), Some(other)),
        };
        if old.names != new.names {
            let named = |flat: &Resolved| {
                (!flat.names.is_empty()).then(|| Value::from(flat.names.iter().cloned().collect::<Vec<_>>().join(" and ")))
            };
            self.report_values(&rules::TYPE_NAME_CHANGED, at, named(old).as_ref(), named(new).as_ref());
        }
        let from = self.found.len();
        let excluded = validation_keywords::types_exclude(self, at, one, other);
        let reach = Applicability::new(one, other, excluded);
        // If the schemas have no type in common, `types_exclude` has reported that, so the type is not compared again.
        for group in GROUPS.iter().filter(|group| reach.compares(group.keys[0]) && !(excluded && group.keys[0] == "type")) {
            let from = self.found.len();
            group.compare(self, at, one, other);
            self.reclassify_findings(at, pair, [one, other], from, group.keys);
        }
        reach.account(self, at, from);
        if reach.compares("properties") {
            self.object(at, old, new, [one, other], pair, below);
        }
        if reach.compares("items") {
            self.array(at, old, new, below);
        }
        if !excluded {
            one_of_any_of::compare(self, at, old, new, pair, below);
            self.applicators(at, old, new, pair, &reach, below);
            self.compare_unmerged_parts(at, old, new, below);
        }
        if reach.compares("xml")
            && !both_same(one.get("xml").map(without_annotations).as_ref(), other.get("xml").map(without_annotations).as_ref())
        {
            match at.xml {
                true => self.report_values(
                    &rules::XML_CHANGED,
                    at,
                    Some(one.get("xml").unwrap_or(empty())),
                    Some(other.get("xml").unwrap_or(empty())),
                ),
                false => self.report_detail(&rules::RESTATED, at, "xml"),
            }
        }
        // A name of a schema takes effect only where a reference leads to the schema, so a changed name by itself has no effect.
        for key in NAMING.into_iter().filter(|key| !both_same(one.get(*key), other.get(*key))) {
            self.report_detail(&rules::RESTATED, at, key);
        }
        for key in keys(one, other).into_iter().filter(|key| reach.compares(key)) {
            let claimed = OWN.contains(&key) || APPLICATORS.contains(&key) || NAMING.contains(&key) || key == "xml" || is_annotation(key);
            if !claimed && !GROUPS.iter().any(|group| group.keys.contains(&key)) {
                self.report_keyword(at, key, one.get(key), other.get(key));
            }
        }
    }

    fn array(&mut self, at: &Location, old: &Resolved<'a>, new: &Resolved<'a>, below: &mut Subschemas<'_, 'a>) {
        below.compare(at.step("[]"), old.member("items"), new.member("items"));
        let (before, after) = (old.member("prefixItems"), new.member("prefixItems"));
        let list = |value: &Option<Cow<Value>>| value.as_deref().is_none_or(Value::is_array);
        if !list(&before) || !list(&after) {
            return self.report_keyword(at, "prefixItems", before.as_deref(), after.as_deref());
        }
        let length = |value: &Option<Cow<Value>>| items(value.as_deref()).len();
        for position in 0..length(&before).max(length(&after)) {
            // Where `prefixItems` ends, the schema in `items` applies.
            let (had, has) = (element(&before, position), element(&after, position));
            let at = at.step(&format!("[{position}]"));
            below.compare(at, had.or_else(|| old.member("items")), has.or_else(|| new.member("items")));
        }
    }
}

/// Returns a key for a pair of schemas if both have `$ref`, `allOf`, `oneOf` or `anyOf`. None for other pairs, because they cannot be
/// recursive.
fn named(task: &SchemaPairTask) -> Option<String> {
    let name = |schema: &Value| match reference(schema) {
        Some(reference) if members(schema).len() == 1 => Some(reference.to_owned()),
        None if ["allOf", "oneOf", "anyOf"].iter().all(|key| schema.get(*key).is_none()) => None,
        _ => Some(canonical(schema)),
    };
    Some(format!("{:?} {} {}", task.at.direction, name(&task.old)?, name(&task.new)?))
}

/// Adds a pair of references to the path that leads to a schema. None if the pair is already on this path, or if each pair is compared only
/// once and this pair was compared before.
fn entered(reference_path: ReferencePath, pair: Option<String>, once: &mut Option<HashSet<String>>) -> Option<ReferencePath> {
    let Some(pair) = pair else { return Some(reference_path) };
    if let Some(once) = once {
        return once.insert(pair).then_some(reference_path);
    }
    let mut link = &reference_path;
    while let Some(before) = link {
        if before.pair == pair {
            return None;
        }
        link = &before.before;
    }
    let depth = reference_path.as_ref().map_or(0, |link| link.depth) + 1;
    Some(Some(Rc::new(Link { pair, depth, before: reference_path })))
}

pub(super) fn members_of<'v>(value: &'v Option<Cow<Value>>) -> &'v Object {
    value.as_deref().map_or(members(empty()), members)
}
