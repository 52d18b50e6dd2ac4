//! Compares two schemas, breadth first: each place at which a schema is used is told by itself.
//!
//! A reference that leads back to where the walk came from is not followed again. Where a body is so entangled that naming
//! every place would take too long, each pair of schemas is told at the first place alone; so nothing is passed over, and
//! the work stays in proportion to the documents.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    rc::Rc,
};

use serde_json::Value;

use super::{
    flat::{Flat, at as index, flat, inner},
    keywords::{self, GROUPS},
    refs::reference,
    rules::{self, Direction},
    values::{Object, canonical, empty, flag, is_annotation, items, keys, members, step},
    variants,
    walk::{At, Walk},
};

/// Schemas compared at one body before each pair of them is told only once.
const EVERYWHERE: usize = 3_000;
/// And then, before the comparison gives up.
const ONCE: usize = 20_000;
/// References within references before each pair is told only once.
const DEEP: usize = 64;
/// Opaque keywords (`not`) within each other.
const NESTED: usize = 8;

/// Two schemas that still have to be compared.
pub(super) struct Task<'a> {
    pub at: At,
    pub old: Cow<'a, Value>,
    pub new: Cow<'a, Value>,
    trail: Trail,
}

/// The pairs of references that the walk came through.
type Trail = Option<Rc<Link>>;

struct Link {
    pair: String,
    depth: usize,
    before: Trail,
}

/// How a body is walked.
struct Mode {
    once: Option<HashSet<String>>,
    left: usize,
    nested: usize,
}

/// What is found below a schema and still to be compared.
pub(super) struct Below<'q, 'a> {
    queue: &'q mut VecDeque<Task<'a>>,
    trail: &'q Trail,
}

impl<'a> Below<'_, 'a> {
    /// An absent schema allows everything, as an empty one does.
    pub fn compare(&mut self, at: At, old: Option<Cow<'a, Value>>, new: Option<Cow<'a, Value>>) {
        let [old, new] = [old, new].map(|schema| schema.unwrap_or(Cow::Borrowed(empty())));
        self.queue.push_back(Task { at, old, new, trail: self.trail.clone() });
    }
}

/// Keywords that hold a schema whose effect depends on others: whatever differs within is told as one change.
const OPAQUE: [&str; 9] =
    ["not", "if", "then", "else", "contains", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"];
/// Keywords that hold such schemas by name.
const OPAQUE_MAPS: [&str; 3] = ["dependentSchemas", "$defs", "definitions"];
/// Keywords that are compared below.
const OWN: [&str; 12] = [
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

impl<'a> Walk<'a> {
    /// Compares two schemas and all below them.
    pub fn schema(&mut self, at: &At, old: Option<&'a Value>, new: Option<&'a Value>) {
        let [old, new] = [old, new].map(|schema| Cow::Borrowed(schema.unwrap_or(empty())));
        self.schemas(at, old, new, 0);
    }

    fn schemas(&mut self, at: &At, old: Cow<'a, Value>, new: Cow<'a, Value>, nested: usize) {
        let before = self.found.len();
        let everywhere = Mode { once: None, left: EVERYWHERE.min(self.left), nested };
        if self.breadth_first(at, old.clone(), new.clone(), everywhere) {
            return;
        }
        self.found.truncate(before);
        let once = Mode { once: Some(HashSet::new()), left: ONCE.min(self.left_once), nested };
        if !self.breadth_first(at, old, new, once) {
            self.tell(&rules::NOT_COMPARED, at);
        }
    }

    /// False when it took too long.
    fn breadth_first(&mut self, at: &At, old: Cow<'a, Value>, new: Cow<'a, Value>, mut mode: Mode) -> bool {
        let mut queue = VecDeque::from([Task { at: at.clone(), old, new, trail: None }]);
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
            let (old, new) = (flat(&self.old, task.old), flat(&self.new, task.new));
            let Some(trail) = entered(task.trail, pair, &mut mode.once) else { continue };
            if mode.once.is_none() && trail.as_ref().is_some_and(|link| link.depth > DEEP) {
                return false;
            }
            self.pair(&task.at, &old, &new, &mut Below { queue: &mut queue, trail: &trail }, mode.nested);
        }
        true
    }

    fn pair(&mut self, at: &At, old: &Flat<'a>, new: &Flat<'a>, below: &mut Below<'_, 'a>, nested: usize) {
        if old.cut || new.cut {
            self.tell(&rules::NOT_COMPARED, at);
        }
        match (&old.broken, &new.broken) {
            (None, Some(reference)) => return self.tell_of(&rules::REFERENCE_BROKEN, at, reference),
            (Some(reference), None) => return self.tell_of(&rules::REFERENCE_MENDED, at, reference),
            (Some(one), Some(other)) if one != other => {
                self.tell_keyword(at, "$ref", Some(&one.as_str().into()), Some(&other.as_str().into()));
            }
            _ => {}
        }
        for key in keys(&old.beside, &new.beside) {
            for position in 0..2000.min(items(old.beside.get(key)).len().max(items(new.beside.get(key)).len())) {
                let value = |flat: &Flat<'a>| items(flat.beside.get(key)).get(position).cloned();
                self.tell_keyword(at, key, value(old).as_ref(), value(new).as_ref());
            }
        }
        let (one, other) = match (old.schema.as_ref(), new.schema.as_ref()) {
            (Value::Object(one), Value::Object(other)) => (one, other),
            // `true` is a schema without members.
            (Value::Bool(true), Value::Object(other)) => (members(empty()), other),
            (Value::Object(one), Value::Bool(true)) => (one, members(empty())),
            (Value::Bool(false), Value::Object(_) | Value::Bool(true)) => return self.tell(&rules::PERMITTED, at),
            (Value::Object(_) | Value::Bool(true), Value::Bool(false)) => return self.tell(&rules::FORBIDDEN, at),
            (one, other) => return self.tell_keyword(at, "schema", Some(one), Some(other)),
        };
        if old.names != new.names {
            let named =
                |flat: &Flat| (!flat.names.is_empty()).then(|| Value::from(flat.names.iter().cloned().collect::<Vec<_>>().join(" and ")));
            self.tell_values(&rules::TYPE_NAME_CHANGED, at, named(old).as_ref(), named(new).as_ref());
        }
        let excluded = keywords::types_exclude(self, at, one, other);
        if excluded {
            // What is said of the values of either type goes with it.
            for key in keys(one, other).into_iter().filter(|key| key.starts_with("x-") && *key != "x-extensible-enum") {
                self.tell_keyword(at, key, one.get(key), other.get(key));
            }
        }
        for group in GROUPS.iter().filter(|group| !excluded || group.is_of_any_type()) {
            group.compare(self, at, one, other);
        }
        if excluded {
            return;
        }
        self.object(at, old, new, one, other, below);
        self.array(at, old, new, below);
        variants::compare(self, at, old, new, below);
        self.opaque(at, old, new, nested);
        self.unjoined(at, old, new, below);
        for key in keys(one, other) {
            let claimed = OWN.contains(&key) || OPAQUE.contains(&key) || OPAQUE_MAPS.contains(&key) || is_annotation(key);
            if !claimed && !GROUPS.iter().any(|group| group.keys.contains(&key)) {
                self.tell_keyword(at, key, one.get(key), other.get(key));
            }
        }
    }

    fn object(&mut self, at: &At, old: &Flat<'a>, new: &Flat<'a>, one: &Object, other: &Object, below: &mut Below<'_, 'a>) {
        if keywords::shaped(self, at, "properties", one, other, Value::is_object)
            & keywords::shaped(self, at, "required", one, other, is_names)
        {
            self.properties(at, old, new, one, other, below);
        }
        let (before, after) = (Others::of(one), Others::of(other));
        match (before, after) {
            (Others::Odd, _) | (_, Others::Odd) => {
                self.tell_keyword(at, "additionalProperties", one.get("additionalProperties"), other.get("additionalProperties"));
            }
            (Others::Refused, Others::Allowed | Others::Schema) => self.tell(&rules::OTHERS_ALLOWED, at),
            (Others::Allowed | Others::Schema, Others::Refused) => self.tell(&rules::OTHERS_REFUSED, at),
            (Others::Allowed, Others::Schema) => self.tell(&rules::OTHERS_RESTRICTED, at),
            (Others::Schema, Others::Allowed) => self.tell(&rules::OTHERS_UNRESTRICTED, at),
            (Others::Schema, Others::Schema) => {
                below.compare(at.step("{}"), old.member("additionalProperties"), new.member("additionalProperties"));
            }
            (Others::Allowed, Others::Allowed) | (Others::Refused, Others::Refused) => {
                if one.get("additionalProperties") != other.get("additionalProperties") {
                    self.tell_of(&rules::RESTATED, at, "additionalProperties");
                }
            }
        }
        if keywords::shaped(self, at, "patternProperties", one, other, Value::is_object) {
            let (before, after) = (old.member("patternProperties"), new.member("patternProperties"));
            for pattern in keys(members_of(&before), members_of(&after)) {
                let (before, after) = (inner(&before, pattern), inner(&after, pattern));
                match (&before, &after) {
                    (Some(_), Some(_)) => below.compare(at.step(&format!("{{{}}}", step(pattern))), before, after),
                    _ => {
                        // In a closed object a pattern lets in; in another one it narrows.
                        let closed = refuses_others(if after.is_some() { one } else { other });
                        let schema = matches!(Others::of(if after.is_some() { one } else { other }), Others::Schema);
                        let (added, removed) = match (closed, schema) {
                            (true, _) => (&rules::CLOSED_PATTERN_ADDED, &rules::CLOSED_PATTERN_REMOVED),
                            (_, true) => (&rules::CONSTRAINT_CHANGED, &rules::CONSTRAINT_CHANGED),
                            _ => (&rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED),
                        };
                        self.tell_either(after.is_some(), added, removed, at, Some(&format!("patternProperties {pattern}")));
                    }
                }
            }
        }
        let (before, after) = (old.member("propertyNames"), new.member("propertyNames"));
        match (&before, &after) {
            (None, None) => {}
            (Some(_), Some(_)) => below.compare(at.step("{name}"), before, after),
            _ => self.tell_either(after.is_some(), &rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED, at, Some("propertyNames")),
        }
    }

    fn properties(&mut self, at: &At, old: &Flat<'a>, new: &Flat<'a>, one: &Object, other: &Object, below: &mut Below<'_, 'a>) {
        let (before, after) = (old.member("properties"), new.member("properties"));
        let required = |object: &Object, name: &str| items(object.get("required")).iter().any(|item| item == name);
        let mut names = keys(members_of(&before), members_of(&after));
        names.extend([one, other].into_iter().flat_map(|object| items(object.get("required"))).filter_map(Value::as_str));
        for name in names {
            let at = at.step(&step(name));
            let (had, has) = (inner(&before, name), inner(&after, name));
            let (needed, needs) = (required(one, name), required(other, name));
            let hidden = [self.unseen(true, &had, at.direction), self.unseen(false, &has, at.direction)];
            let all_hidden = hidden.iter().flatten().all(|hidden| *hidden) && hidden.iter().any(Option::is_some);
            let at = if all_hidden { at.towards(Direction::Neither) } else { at };
            let (there, absent) = (had.is_some(), has.is_none());
            if there == absent && !(if there { needs } else { needed }) {
                // On one side only, and not even asked for on the other.
                let closed = refuses_others(if there { other } else { one });
                let (added, removed) = match (closed, needed || needs) {
                    (false, false) => (&rules::PROPERTY_ADDED, &rules::PROPERTY_REMOVED),
                    (false, true) => (&rules::REQUIRED_PROPERTY_ADDED, &rules::REQUIRED_PROPERTY_REMOVED),
                    (true, false) => (&rules::CLOSED_PROPERTY_ADDED, &rules::CLOSED_PROPERTY_REMOVED),
                    (true, true) => (&rules::CLOSED_REQUIRED_PROPERTY_ADDED, &rules::CLOSED_REQUIRED_PROPERTY_REMOVED),
                };
                self.tell_either(!there, added, removed, &at, None);
                // Where it was not listed, what was said of all others held for it.
                let others = |flat: &Flat<'a>, object: &Object| {
                    matches!(Others::of(object), Others::Schema).then(|| flat.member("additionalProperties")).flatten()
                };
                if let Some(was) = if there { others(new, other) } else { others(old, one) } {
                    let (had, has) = if there { (had, Some(was)) } else { (Some(was), has) };
                    below.compare(at, had, has);
                }
                continue;
            }
            if there == absent {
                self.tell_either(!there, &rules::PROPERTY_DECLARED, &rules::PROPERTY_UNDECLARED, &at, None);
            }
            // A property that is hidden from one side need not be there on that side.
            let [expected, expects] =
                [(needed, hidden[0]), (needs, hidden[1])].map(|(is, hidden)| is && (all_hidden || hidden != Some(true)));
            self.tell_flag(expected, expects, &rules::PROPERTY_BECAME_REQUIRED, &rules::PROPERTY_BECAME_OPTIONAL, &at);
            if needed != needs && expected == expects {
                self.tell_of(&rules::RESTATED, &at, "required");
            }
            if there || !absent {
                below.compare(at, had, has);
            }
        }
    }

    /// Whether a property never is on the wire in this direction.
    fn unseen(&self, is_old: bool, property: &Option<Cow<'a, Value>>, direction: Direction) -> Option<bool> {
        let key = match direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
            _ => return property.as_ref().map(|_| false),
        };
        let property = property.as_ref()?;
        let plain = reference(property).is_none() && property.get("allOf").is_none();
        let side = if is_old { &self.old } else { &self.new };
        Some(if plain { flag(members(property), key) } else { flag(members(&flat(side, property.clone()).schema), key) })
    }

    fn array(&mut self, at: &At, old: &Flat<'a>, new: &Flat<'a>, below: &mut Below<'_, 'a>) {
        below.compare(at.step("[]"), old.member("items"), new.member("items"));
        let (before, after) = (old.member("prefixItems"), new.member("prefixItems"));
        let list = |value: &Option<Cow<Value>>| value.as_deref().is_none_or(Value::is_array);
        if !list(&before) || !list(&after) {
            return self.tell_keyword(at, "prefixItems", before.as_deref(), after.as_deref());
        }
        let length = |value: &Option<Cow<Value>>| items(value.as_deref()).len();
        for position in 0..length(&before).max(length(&after)) {
            // Behind the listed ones, what is said of all items holds.
            let (had, has) = (index(&before, position), index(&after, position));
            let at = at.step(&format!("[{position}]"));
            below.compare(at, had.or_else(|| old.member("items")), has.or_else(|| new.member("items")));
        }
    }

    /// What several parts of an `allOf` say under one keyword each, if nothing joins them: paired as they come.
    fn unjoined(&mut self, at: &At, old: &Flat<'a>, new: &Flat<'a>, below: &mut Below<'_, 'a>) {
        let (before, after) = (old.member("allOf"), new.member("allOf"));
        let list = |value: &Option<Cow<Value>>| value.as_deref().is_none_or(Value::is_array);
        if !list(&before) || !list(&after) {
            return self.tell_keyword(at, "allOf", before.as_deref(), after.as_deref());
        }
        type Kept<'a> = Vec<Cow<'a, Value>>;
        let by_keyword = |value: &Option<Cow<'a, Value>>| {
            let mut kept: BTreeMap<String, Kept<'a>> = BTreeMap::new();
            for position in 0..items(value.as_deref()).len() {
                let Some(schema) = index(value, position) else { continue };
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
            pairs.into_iter().for_each(|(was, is)| below.compare(at.clone(), was, is));
        }
    }

    fn opaque(&mut self, at: &At, old: &Flat<'a>, new: &Flat<'a>, nested: usize) {
        for key in OPAQUE {
            let (before, after) = (old.member(key), new.member(key));
            if before.is_some() != after.is_some() && [old, new].into_iter().all(|flat| narrows_nothing(flat, key)) {
                self.tell_of(&rules::RESTATED, at, key);
            } else {
                self.opaque_one(at, key, before, after, nested);
            }
        }
        for key in OPAQUE_MAPS {
            let (before, after) = (old.member(key), new.member(key));
            if before.as_deref().is_some_and(|value| !value.is_object()) || after.as_deref().is_some_and(|value| !value.is_object()) {
                self.tell_keyword(at, key, before.as_deref(), after.as_deref());
                continue;
            }
            for name in keys(members_of(&before), members_of(&after)) {
                let (had, has) = (inner(&before, name), inner(&after, name));
                // Definitions count where something refers to them.
                let idle = key != "dependentSchemas" || [&had, &has].into_iter().flatten().all(|schema| allows_everything(schema));
                if had.is_some() != has.is_some() && idle {
                    self.tell_of(&rules::RESTATED, at, &format!("{key} {name}"));
                } else {
                    self.opaque_one(at, &format!("{key} {name}"), had, has, nested);
                }
            }
        }
    }

    fn opaque_one(&mut self, at: &At, detail: &str, old: Option<Cow<'a, Value>>, new: Option<Cow<'a, Value>>, nested: usize) {
        let (old, new) = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) => (old, new),
            (_, new) => {
                return self.tell_either(new.is_some(), &rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED, at, Some(detail));
            }
        };
        if nested >= NESTED {
            if old != new {
                self.tell_of(&rules::CONSTRAINT_CHANGED, at, detail);
            }
            return;
        }
        let before = self.found.len();
        self.schemas(at, old, new, nested + 1);
        if self.found.len() > before {
            self.found.truncate(before);
            self.tell_of(&rules::CONSTRAINT_CHANGED, at, detail);
        }
    }
}

/// What tells this pair of schemas from others, if both are made of references: only those can lead back.
fn named(task: &Task) -> Option<String> {
    let name = |schema: &Value| match reference(schema) {
        Some(reference) if members(schema).len() == 1 => Some(reference.to_owned()),
        None if ["allOf", "oneOf", "anyOf"].iter().all(|key| schema.get(*key).is_none()) => None,
        _ => Some(canonical(schema)),
    };
    Some(format!("{:?} {} {}", task.at.direction, name(&task.old)?, name(&task.new)?))
}

/// The trail with this pair on it; nothing if the walk has been there.
fn entered(trail: Trail, pair: Option<String>, once: &mut Option<HashSet<String>>) -> Option<Trail> {
    let Some(pair) = pair else { return Some(trail) };
    if let Some(once) = once {
        return once.insert(pair).then_some(trail);
    }
    let mut link = &trail;
    while let Some(before) = link {
        if before.pair == pair {
            return None;
        }
        link = &before.before;
    }
    let depth = trail.as_ref().map_or(0, |link| link.depth) + 1;
    Some(Some(Rc::new(Link { pair, depth, before: trail })))
}

/// What an object says of properties that it does not list.
#[derive(Clone, Copy)]
enum Others {
    Allowed,
    Refused,
    Schema,
    Odd,
}

impl Others {
    fn of(schema: &Object) -> Self {
        match schema.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Self::Allowed,
            Some(Value::Bool(false)) => Self::Refused,
            Some(Value::Object(object)) if object.keys().all(|key| is_annotation(key)) => Self::Allowed,
            Some(Value::Object(_)) => Self::Schema,
            Some(_) => Self::Odd,
        }
    }
}

/// Whether a schema is one that every value fits.
fn allows_everything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(|schema| schema.keys().all(|key| is_annotation(key)))
}

/// Whether a keyword that holds a schema is without effect, or absent.
fn narrows_nothing(flat: &Flat, key: &str) -> bool {
    let Some(schema) = flat.member(key) else { return true };
    match key {
        "then" | "else" if flat.member("if").is_none() => true,
        "if" => flat.member("then").is_none() && flat.member("else").is_none(),
        // These two refuse values by what they allow.
        "not" | "contains" => false,
        _ => allows_everything(&schema),
    }
}

fn refuses_others(schema: &Object) -> bool {
    ["additionalProperties", "unevaluatedProperties"].iter().any(|key| schema.get(*key) == Some(&Value::Bool(false)))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

fn members_of<'v>(value: &'v Option<Cow<Value>>) -> &'v Object {
    value.as_deref().map_or(members(empty()), members)
}
