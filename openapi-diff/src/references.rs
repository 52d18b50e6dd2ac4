//! Resolves `$ref` references, and finds the references that lead to equal values in both documents.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use serde_json::Value;

use super::{
    json_values::{Object, items, members},
    read::Document,
};

/// The maximum number of references in a chain. A longer chain counts as a loop.
pub(super) const MAX_REFERENCE_CHAIN: usize = 100;

/// One of the two compared documents, with indexes of its references.
#[derive(Debug)]
pub(super) struct DocumentIndex<'a> {
    pub document: &'a Document,
    /// The subtypes of base schemas. The key is the reference to a base schema, the value the references to the schemas that extend it by
    /// `allOf`.
    children: HashMap<&'a str, Vec<String>>,
    /// The schemas that have an anchor, by the name of the anchor: the JSON pointer and the value of each schema. A name that
    /// occurs twice is left out.
    anchors: HashMap<&'a str, (String, &'a Value)>,
    /// Schemas by their `$id`. Each schema has an entry for the whole identifier and one for the last path segment of the identifier.
    /// A key of several schemas is left out.
    ids: HashMap<&'a str, &'a Value>,
    /// Every reference in the document and in the files that it refers to.
    all: BTreeSet<String>,
}

/// Collects the anchors (`$anchor`, `$dynamicAnchor`) within a value: for each name, the JSON pointers and values of all schemas that have
/// an anchor of that name.
fn anchors<'a>(value: &'a Value, way: &mut Vec<Cow<'a, str>>, found: &mut HashMap<&'a str, Vec<(String, &'a Value)>>) {
    for (step, member) in members(value) {
        if let (true, Some(name)) = (["$anchor", "$dynamicAnchor"].contains(&step.as_str()), member.as_str()) {
            let pointer = way.iter().map(|step| format!("/{}", super::json_values::step(step))).collect();
            found.entry(name).or_default().push((pointer, value));
        }
        way.push(Cow::Borrowed(step));
        anchors(member, way, found);
        way.pop();
    }
    for (position, item) in items(Some(value)).iter().enumerate() {
        way.push(Cow::Owned(position.to_string()));
        anchors(item, way, found);
        way.pop();
    }
}

/// Returns the schemas of an OpenAPI 3.1 document by their `$id`. An identifier that occurs twice is ignored. OpenAPI 3.0 has no `$id`.
fn identified(document: &Document) -> HashMap<&str, &Value> {
    fn collect<'v>(value: &'v Value, found: &mut HashMap<&'v str, Vec<&'v Value>>) {
        if let Some(id) = value.get("$id").and_then(Value::as_str) {
            let id = id.trim_end_matches('#');
            found.entry(id).or_default().push(value);
            if let Some((_, last)) = id.rsplit_once('/').filter(|(_, last)| !last.is_empty()) {
                found.entry(last).or_default().push(value);
            }
        }
        members(value).values().chain(items(Some(value))).for_each(|inner| collect(inner, found));
    }
    let mut found = HashMap::new();
    if document.is_3_1() {
        std::iter::once(&document.root).chain(document.files.values()).for_each(|value| collect(value, &mut found));
    }
    found.into_iter().filter_map(|(id, schemas)| if let [schema] = schemas[..] { Some((id, schema)) } else { None }).collect()
}

impl<'a> DocumentIndex<'a> {
    pub fn new(document: &'a Document) -> Self {
        let mut children: HashMap<_, Vec<_>> = HashMap::new();
        let schemas = document.root.pointer("/components/schemas").and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flatten() {
            for parent in items(schema.get("allOf")).iter().filter_map(|part| part.get("$ref")?.as_str()) {
                children.entry(parent).or_default().push(format!("#/components/schemas/{}", super::json_values::step(name)));
            }
        }
        let mut named = HashMap::new();
        // OpenAPI 3.0 has no anchors.
        if document.is_3_1() {
            anchors(&document.root, &mut Vec::new(), &mut named);
        }
        let once = |(name, mut places): (_, Vec<_>)| Some((name, places.pop().filter(|_| places.is_empty())?));
        let anchors = named.into_iter().filter_map(once).collect();
        let mut side = Self { document, children, anchors, ids: identified(document), all: BTreeSet::new() };
        let mut all = BTreeSet::new();
        std::iter::once(&document.root).chain(document.files.values()).for_each(|value| side.within(value, "", &mut all));
        side.all = all;
        side
    }

    pub fn root(&self) -> &'a Object {
        members(&self.document.root)
    }

    pub fn get(&self, key: &str) -> &'a Value {
        self.document.root.get(key).unwrap_or(super::json_values::empty())
    }

    /// Returns the value that a reference leads to. That value may be another reference.
    pub fn target(&self, reference: &str) -> Option<&'a Value> {
        let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let pointer = decoded(fragment)?;
        if !file.is_empty() {
            let root = self.document.files.get(file).or_else(|| self.ids.get(file).copied())?;
            return root.pointer(&pointer);
        }
        self.document.root.pointer(&pointer).or_else(|| self.anchors.get(pointer.as_str()).map(|(_, target)| *target))
    }

    /// Whether a reference leads out of the document to something that was not loaded.
    pub fn is_unfollowed(&self, reference: &str) -> bool {
        !reference.starts_with('#') && self.target(reference).is_none()
    }

    /// Converts a reference by anchor or by `$id` into a reference by JSON pointer. None if no schema has the anchor or the `$id`, or if
    /// the schema with the `$id` is not in `components/schemas`.
    fn pointer(&self, reference: &str) -> Option<String> {
        if let Some(anchor) = reference.strip_prefix('#') {
            return self.anchors.get(anchor).map(|(pointer, _)| format!("#{pointer}"));
        }
        let identified = self.ids.get(reference.split('#').next().unwrap_or_default())?;
        let mut schemas = self.document.root.pointer("/components/schemas")?.as_object()?.iter();
        let (name, _) = schemas.find(|(_, schema)| std::ptr::eq(*schema, *identified))?;
        Some(format!("#/components/schemas/{}", super::json_values::step(name)))
    }

    /// Whether a chain of references and parts of `allOf` leads from a reference back to the same reference.
    pub fn is_cyclic(&self, start: &str) -> bool {
        let (mut seen, mut todo) = (HashSet::new(), Vec::from_iter(self.target(start)));
        while let Some(value) = todo.pop() {
            todo.extend(items(value.get("allOf")));
            let Some(next) = reference(value) else { continue };
            if next == start {
                return true;
            }
            if seen.insert(next) {
                todo.extend(self.target(next));
            }
        }
        false
    }

    /// Follows the chain of references that begins at a value, and returns the value at its end. Fails with the first broken reference.
    pub fn follow(&self, value: &'a Value) -> Result<&'a Value, String> {
        let (mut value, mut left) = (value, MAX_REFERENCE_CHAIN);
        while let Some(reference) = reference(value) {
            value = self.target(reference).filter(|_| left > 0).ok_or_else(|| reference.to_owned())?;
            left -= 1;
        }
        Ok(value)
    }

    /// Returns the variants that a discriminator without `oneOf` selects, as pairs of a discriminator value and a reference. `references`
    /// are the references that lead to `schema`.
    pub fn by_discriminator(&self, schema: &Object, references: &[String]) -> Vec<(String, String)> {
        let Some(discriminator) = schema.get("discriminator") else { return Vec::new() };
        let mut variants: Vec<_> = members(discriminator.get("mapping").unwrap_or(super::json_values::empty()))
            .iter()
            .filter_map(|(value, target)| Some((value.clone(), reference_of_mapping(target.as_str()?))))
            .collect();
        for child in references.iter().filter_map(|parent| self.children.get(parent.as_str())).flatten() {
            if !variants.iter().any(|(_, target)| target == child) {
                variants.push((name_of(child), child.clone()));
            }
        }
        variants.sort();
        variants.dedup_by(|one, other| one.0 == other.0);
        variants
    }

    /// Collects every reference within a value, including the references of discriminators. `own` is the reference that leads to the value:
    /// it selects the subtypes that a discriminator in the value refers to.
    fn within(&self, value: &Value, own: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                found.extend(reference(value).map(str::to_owned));
                if let Some(discriminator) = object.get("discriminator") {
                    let mapping = members(discriminator.get("mapping").unwrap_or(super::json_values::empty()));
                    found.extend(mapping.values().filter_map(Value::as_str).map(reference_of_mapping));
                    found.extend(self.children.get(own).into_iter().flatten().cloned());
                }
                object.values().for_each(|member| self.within(member, own, found));
            }
            Value::Array(items) => items.iter().for_each(|item| self.within(item, own, found)),
            _ => {}
        }
    }

    pub fn references(&self, value: &Value) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.within(value, "", &mut found);
        found
    }

    /// Returns every reference in the document and in the files that it refers to.
    pub fn all_references(&self) -> &BTreeSet<String> {
        &self.all
    }

    /// Returns all references that can be reached from the given values, directly or through other references.
    pub fn reached(&self, from: &[&'a Value]) -> BTreeSet<String> {
        let (mut reached, mut todo) = (BTreeSet::new(), Vec::new());
        from.iter().for_each(|value| todo.extend(self.references(value)));
        while let Some(reference) = todo.pop() {
            if reached.contains(&reference) {
                continue;
            }
            todo.extend(self.pointer(&reference));
            if let Some(target) = self.target(&reference) {
                let mut inner = BTreeSet::new();
                self.within(target, &reference, &mut inner);
                todo.extend(inner);
            }
            reached.insert(reference);
        }
        reached
    }
}

/// Returns the unchanged references: the references that lead to equal values in both documents. The references in these values have to be
/// unchanged, too.
pub(super) fn unchanged(old: &DocumentIndex, new: &DocumentIndex) -> HashSet<String> {
    let mut all: BTreeSet<_> = old.all_references().union(new.all_references()).cloned().collect();
    all.extend([old, new].into_iter().flat_map(|side| side.children.values().flatten().cloned()));
    let (mut users, mut changed, mut same) = (HashMap::<_, Vec<_>>::new(), Vec::new(), HashSet::new());
    for reference in all {
        let (one, other) = (old.target(&reference), new.target(&reference));
        if one != other {
            changed.push(reference);
            continue;
        }
        for (side, target) in [(old, one), (new, other)] {
            let mut inner = BTreeSet::new();
            target.into_iter().for_each(|target| side.within(target, &reference, &mut inner));
            inner.into_iter().for_each(|inner| users.entry(inner).or_default().push(reference.clone()));
        }
        same.insert(reference);
    }
    while let Some(reference) = changed.pop() {
        for user in users.remove(&reference).unwrap_or_default() {
            if same.remove(&user) {
                changed.push(user);
            }
        }
    }
    same
}

pub(super) fn reference(value: &Value) -> Option<&str> {
    value.as_object()?.get("$ref")?.as_str()
}

/// Returns the last path segment of a reference, which code generators use as a type name. For a reference to a whole file, returns the
/// name of the file without its extension.
pub(super) fn name_of(reference: &str) -> String {
    let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    if fragment.is_empty() {
        let name = file.rsplit('/').next().unwrap_or_default();
        return name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    }
    decoded(reference.rsplit('/').next().unwrap_or_default()).unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

/// Converts the target of a discriminator mapping, which may be a plain schema name, into a reference.
pub(super) fn reference_of_mapping(target: &str) -> String {
    if target.contains(['#', '/', '.']) { target.to_owned() } else { format!("#/components/schemas/{target}") }
}

/// Decodes percent-encoding. None if it is invalid.
fn decoded(pointer: &str) -> Option<String> {
    if !pointer.contains('%') {
        return Some(pointer.to_owned());
    }
    let (mut bytes, mut rest) = (Vec::new(), pointer.bytes());
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match byte {
            b'%' => bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}
