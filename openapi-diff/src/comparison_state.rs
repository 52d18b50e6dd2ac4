//! The state of a comparison: both documents, and the differences found so far (findings), each with its location.
//!
//! The witness of a finding is an example value that shows the change: one document accepts it, the other refuses it.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
    rc::Rc,
};

use serde_json::Value;

use super::{
    classification::Witnesses,
    json_values::{Object, flag, is_annotation, keys, members, report_form, same},
    references::{DocumentIndex, name_of, reference, unchanged},
    rules::{self, Direction, Rule},
    semantics::{Arena, CheckCaches, SchemaChecker},
};

/// A location in a document.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// The operation, such as `GET /pets`. Empty for the document as a whole.
    pub operation: Rc<str>,
    /// The part of the operation, such as `response 200`.
    part: Rc<str>,
    /// The path inside a value, such as `/data/[]/id`.
    path: Rc<str>,
    pub direction: Direction,
    /// Whether the value at this location has to be present: first for the old document, then for the new document.
    pub required: [bool; 2],
    /// Whether the values at this location are written as plain text, as in a query.
    pub text: bool,
    /// Whether the values at this location may be written as XML.
    pub xml: bool,
    /// Whether the schema at this location is only one part of an `allOf`, whose other parts restrict the same value. Then a value that is
    /// valid under this schema proves nothing, because another part may refuse the value.
    pub partial: bool,
}

impl Location {
    pub fn document(part: &str) -> Self {
        Self {
            operation: "".into(),
            part: part.into(),
            path: "".into(),
            direction: Direction::Both,
            required: [false; 2],
            text: false,
            xml: false,
            partial: false,
        }
    }

    pub fn operation(label: &str, part: &str) -> Self {
        Self { operation: label.into(), ..Self::document(part) }
    }

    /// Returns this location with `name` appended to its `part`, such as `response 200 header etag`. The text of a location is the part,
    /// followed by the path. So call this method before [`Self::step`], which appends to the path.
    pub fn part(&self, name: &str) -> Self {
        let part = if self.part.is_empty() { name.into() } else { format!("{} {name}", self.part).into() };
        Self { part, required: [false; 2], ..self.clone() }
    }

    pub fn step(&self, name: &str) -> Self {
        Self { path: format!("{}/{name}", self.path).into(), required: [false; 2], ..self.clone() }
    }

    pub fn required(&self, required: [bool; 2]) -> Self {
        Self { required, ..self.clone() }
    }

    /// Returns this location, marked as one whose values are written as plain text.
    pub fn as_text(&self) -> Self {
        Self { text: true, ..self.clone() }
    }

    pub fn as_part(&self) -> Self {
        Self { partial: true, ..self.clone() }
    }

    pub fn as_xml(&self, xml: bool) -> Self {
        Self { xml, ..self.clone() }
    }

    pub fn towards(&self, direction: Direction) -> Self {
        Self { direction, ..self.clone() }
    }

    pub fn place(&self) -> String {
        match (&*self.part, &*self.path) {
            ("", "") if self.operation.is_empty() => "document".to_owned(),
            ("", "") => "operation".to_owned(),
            (part, "") => part.to_owned(),
            (part, path) => format!("{part} {path}"),
        }
    }
}

/// A difference between the two documents, which becomes a change of the report.
#[derive(Debug)]
pub(super) struct Finding {
    pub rule: &'static Rule,
    pub at: Location,
    pub detail: Option<String>,
    pub old: Option<Value>,
    pub new: Option<Value>,
    /// Other differing keywords that get no findings of their own, because this finding stands for them.
    pub covers: BTreeSet<String>,
    /// Why one of the two schemas refuses values that the other accepts. A value that is refused for this reason can be the witness.
    pub blame: RefusalCause,
    /// The witness, an example of the change: a value that was accepted before and is refused now, or that was not sent before and may be
    /// sent now.
    pub witness: Option<Value>,
    /// For the removal of a deprecated part: the sunset of that part, which is the announced day of its removal (`x-sunset`).
    pub sunset: Option<String>,
}

/// The reason why a schema refuses a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RefusalCause {
    Nothing,
    Keywords(Vec<String>),
    /// The value lacks a property that the schema requires.
    Missing(String),
    /// The value has a property that the schema refuses.
    Surplus(String),
}

/// The three rules for a key: one if it was added, one if it was removed, one if its value changed.
pub(super) struct PresenceRules {
    pub added: &'static Rule,
    pub removed: &'static Rule,
    pub changed: &'static Rule,
}

pub(super) static KEYWORD: PresenceRules =
    PresenceRules { added: &rules::KEYWORD_ADDED, removed: &rules::KEYWORD_REMOVED, changed: &rules::KEYWORD_CHANGED };
static EXTENSION: PresenceRules =
    PresenceRules { added: &rules::EXTENSION_ADDED, removed: &rules::EXTENSION_REMOVED, changed: &rules::EXTENSION_CHANGED };
pub(super) static INFO: PresenceRules =
    PresenceRules { added: &rules::INFO_ADDED, removed: &rules::INFO_REMOVED, changed: &rules::INFO_CHANGED };

/// The state of a comparison in progress. The comparison is symmetric: if the two documents are exchanged, each change is reported as its
/// opposite, such as a removed property as an added one.
pub(super) struct Differ<'a> {
    pub old: DocumentIndex<'a>,
    pub new: DocumentIndex<'a>,
    unchanged: HashSet<String>,
    pub found: Vec<Finding>,
    /// The remaining number of comparisons in the first mode, which compares a pair of schemas again at every location that uses the pair.
    /// At zero, each further body or parameter is compared in the second mode (`left_once`).
    pub left: usize,
    /// The remaining number of comparisons in the second mode, which compares each pair of schemas only once within a body or parameter.
    pub left_once: usize,
    memory: CheckCaches<'a>,
    /// A cache of witnesses, by the memory addresses of the two schemas and the direction.
    pub witnesses: HashMap<(usize, usize, Direction), Witnesses>,
}

impl<'a> Differ<'a> {
    pub fn new(old: DocumentIndex<'a>, new: DocumentIndex<'a>, arena: &'a Arena) -> Self {
        let unchanged = unchanged(&old, &new);
        Self {
            old,
            new,
            unchanged,
            found: Vec::new(),
            left: 400_000,
            left_once: 1_000_000,
            memory: CheckCaches::new(arena),
            witnesses: HashMap::new(),
        }
    }

    /// Returns a checker that decides which values schemas accept if the values are sent in this direction.
    pub fn semantics(&self, direction: Direction) -> SchemaChecker<'_, 'a> {
        SchemaChecker::new([&self.old, &self.new], &self.unchanged, direction, &self.memory)
    }

    /// Adds the sunset of a removed part to the last finding, if that part was deprecated.
    pub fn add_sunset(&mut self, gone: &Value) {
        let gone = members(gone);
        // The value of `x-sunset` is a date, or a time that begins with a date. Only the date is used.
        let day = gone.get("x-sunset").and_then(Value::as_str).and_then(|time| time.get(..10));
        if let (true, Some(finding)) = (flag(gone, "deprecated"), self.found.last_mut()) {
            finding.sunset = day.map(str::to_owned);
        }
    }

    /// Sets the witness of the last finding, if that finding is breaking and not about a part of an `allOf`.
    pub fn add_witness(&mut self, witness: Option<&Value>) {
        let breaking = |finding: &&mut Finding| !finding.at.partial && finding.rule.class(finding.at.direction) == rules::Class::Breaking;
        if let Some(finding) = self.found.last_mut().filter(breaking) {
            finding.witness = witness.and_then(shown);
        }
    }

    /// Sets the cause (`blame`) of each finding from position `from` on that has no cause yet.
    pub fn blame(&mut self, from: usize, blame: &RefusalCause) {
        self.found[from..]
            .iter_mut()
            .filter(|finding| finding.blame == RefusalCause::Nothing)
            .for_each(|finding| finding.blame = blame.clone());
    }

    pub fn report(&mut self, rule: &'static Rule, at: &Location) {
        self.report_full(rule, at, None, None, None);
    }

    pub fn report_detail(&mut self, rule: &'static Rule, at: &Location, detail: &str) {
        self.report_full(rule, at, Some(detail), None, None);
    }

    pub fn report_values(&mut self, rule: &'static Rule, at: &Location, old: Option<&Value>, new: Option<&Value>) {
        self.report_full(rule, at, None, old, new);
    }

    pub fn report_full(&mut self, rule: &'static Rule, at: &Location, detail: Option<&str>, old: Option<&Value>, new: Option<&Value>) {
        let (detail, old, new) = (detail.map(str::to_owned), old.map(report_form), new.map(report_form));
        self.found.push(Finding {
            rule,
            at: at.clone(),
            detail,
            old,
            new,
            covers: BTreeSet::new(),
            blame: RefusalCause::Nothing,
            witness: None,
            sunset: None,
        });
    }

    /// Reports a part that only one document has: under the rule `added` if only the new document has the part, else under `removed`.
    pub fn report_either(&mut self, is_new: bool, added: &'static Rule, removed: &'static Rule, at: &Location, detail: Option<&str>) {
        self.report_full(if is_new { added } else { removed }, at, detail, None, None);
    }

    /// Reports a broken reference that only one document has: as broken if the reference was added, as mended if it was removed. `value` is
    /// a value that only one document has. If `value` is no broken reference, nothing is reported.
    pub fn report_broken(&mut self, is_new: bool, value: &'a Value, at: &Location) {
        let side = if is_new { &self.new } else { &self.old };
        if let Err(reference) = side.follow(value) {
            self.report_either(is_new, &rules::REFERENCE_BROKEN, &rules::REFERENCE_MENDED, at, Some(&reference));
        }
    }

    /// Reports a flag that only one document sets: under the rule `set` if only the new document sets the flag, else under `unset`.
    pub fn report_flag(&mut self, old: bool, new: bool, set: &'static Rule, unset: &'static Rule, at: &Location) {
        if old != new {
            self.report_either(new, set, unset, at, None);
        }
    }

    /// Reports a key that was added or removed, or whose value changed, under the matching rule of `trio`.
    pub fn report_presence(&mut self, trio: &'static PresenceRules, at: &Location, key: &str, old: Option<&Value>, new: Option<&Value>) {
        let rule = match (old, new) {
            (None, None) => return,
            // Even if both values are equal, their meaning differs if a reference in them leads to a changed value.
            (Some(old), Some(new))
                if same(old, new) && self.old.references(old).iter().all(|reference| self.unchanged.contains(reference)) =>
            {
                return;
            }
            (Some(_), Some(_)) => trio.changed,
            (None, Some(_)) => trio.added,
            (Some(_), None) => trio.removed,
        };
        self.report_full(rule, at, Some(key), old, new);
    }

    /// Reports a changed keyword that has no rule of its own, or a changed extension (`x-`).
    pub fn report_keyword(&mut self, at: &Location, key: &str, old: Option<&Value>, new: Option<&Value>) {
        self.report_presence(if key.starts_with("x-") { &EXTENSION } else { &KEYWORD }, at, key, old, new);
    }

    /// Reports the differences of all keywords except the `known` ones, which are compared elsewhere.
    pub fn rest(&mut self, at: &Location, old: &Object, new: &Object, known: &[&str]) {
        for key in keys(old, new) {
            if !known.contains(&key) && !is_annotation(key) {
                self.report_keyword(at, key, old.get(key), new.get(key));
            }
        }
    }

    /// Whether two values are equal, and all references in them lead to equal values. False if the values contain a discriminator.
    pub fn identical(&self, old: &Value, new: &Value) -> bool {
        old == new && self.all_unchanged(old)
    }

    fn all_unchanged(&self, value: &Value) -> bool {
        match value {
            Value::Object(object) => {
                // A discriminator refers to schemas by name, without `$ref`. So an object with a discriminator counts as changed.
                !object.contains_key("discriminator")
                    && reference(value).is_none_or(|reference| self.unchanged.contains(reference))
                    && object.values().all(|member| self.all_unchanged(member))
            }
            Value::Array(items) => items.iter().all(|item| self.all_unchanged(item)),
            _ => true,
        }
    }

    /// Follows the references of both values, and returns the two objects that they lead to. Returns None if the values are identical, or
    /// if this method has reported their difference.
    pub fn objects(&mut self, at: &Location, old: &'a Value, new: &'a Value) -> Option<(&'a Object, &'a Object)> {
        if self.identical(old, new) {
            return None;
        }
        let (beside_old, beside_new) = (beside(old), beside(new));
        for key in keys(&beside_old, &beside_new) {
            self.report_keyword(at, key, beside_old.get(key), beside_new.get(key));
        }
        let called = (reference(old), reference(new));
        if let (Some(one), Some(other)) = called
            && name_of(one) != name_of(other)
        {
            self.report_values(&rules::TYPE_NAME_CHANGED, at, Some(&name_of(one).into()), Some(&name_of(other).into()));
        }
        let (old, new) = match (self.old.follow(old), self.new.follow(new)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(old), Err(new)) => {
                self.report_keyword(at, "$ref", Some(&old.into()), Some(&new.into()));
                return None;
            }
            (Err(old), Ok(_)) => {
                self.report_detail(&rules::REFERENCE_MENDED, at, &old);
                return None;
            }
            (Ok(_), Err(new)) => {
                self.report_detail(&rules::REFERENCE_BROKEN, at, &new);
                return None;
            }
        };
        if called.0.is_some() != called.1.is_some() {
            self.report_detail(&rules::RESTATED, at, "$ref");
        }
        if !(old.is_object() && new.is_object()) {
            self.report_keyword(at, "value", Some(old), Some(new));
            return None;
        }
        Some((members(old), members(new)))
    }

    /// Returns the objects under a key. If one of the values is no object, reports the difference and returns None.
    pub fn maps(&mut self, at: &Location, key: &str, old: &'a Object, new: &'a Object) -> Option<(&'a Object, &'a Object)> {
        self.shaped(at, key, old, new, Value::is_object)?;
        let get = |object: &'a Object| members(object.get(key).unwrap_or(super::json_values::empty()));
        Some((get(old), get(new)))
    }

    /// Returns the lists under a key. If one of the values is no list, reports the difference and returns None.
    pub fn lists(&mut self, at: &Location, key: &str, old: &'a Object, new: &'a Object) -> Option<(&'a [Value], &'a [Value])> {
        self.shaped(at, key, old, new, Value::is_array)?;
        Some((super::json_values::items(old.get(key)), super::json_values::items(new.get(key))))
    }

    fn shaped(&mut self, at: &Location, key: &str, old: &'a Object, new: &'a Object, fits: fn(&Value) -> bool) -> Option<()> {
        let fit = |object: &'a Object| object.get(key).is_none_or(fits);
        if fit(old) && fit(new) {
            return Some(());
        }
        self.report_keyword(at, key, old.get(key), new.get(key));
        None
    }
}

/// Returns the witness if its JSON has at most 300 bytes. A longer witness is not shown, because it is hard to read.
pub(super) fn shown(witness: &Value) -> Option<Value> {
    (witness.to_string().len() <= 300).then(|| witness.clone())
}

/// Returns the properties next to a `$ref`, without annotations. Empty for an object without a `$ref`.
fn beside(value: &Value) -> Cow<'_, Object> {
    let mut members = Object::new();
    if reference(value).is_some() {
        members = super::json_values::members(value).clone();
        members.retain(|key, _| key != "$ref" && !is_annotation(key));
    }
    Cow::Owned(members)
}
