//! The data of a report: changes in a fixed order, with stable fingerprints. `text_and_markdown`, `html` and `ci_report_formats` render a
//! report.
//!
//! A fingerprint is a hash of the operation, the location, the direction, the rule and the details of a change. Wording, order, class and
//! names of path parameters are not part of the hash. So notes and approvals still match their change after one of these is edited.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    comparison_state::Finding,
    json_values::{canonical, empty, hex, members, sha256},
    operations::pairs,
    parameters::position,
    read::Document,
    rules::{self, Class, Direction, Rule},
};

/// A change from the old document to the new document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub fingerprint: String,
    pub class: Class,
    /// The operation, such as `GET /pets`. Absent for the document as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// The values of `operation` and `operation_id` in the mirror of this change, which is the change from the new to the old document
    /// ([`Report::mirrored`]). Absent if they are the same as here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<OperationName>,
    /// The location of the change within its operation, such as `response 200 /data/[]/id`.
    pub place: String,
    pub direction: Direction,
    #[serde(serialize_with = "rule_id", deserialize_with = "rule_of")]
    pub rule: &'static Rule,
    /// The change in words.
    pub says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// Other keywords that differ and are not reported separately, because they apply only to a type that was added or removed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub covers: BTreeSet<String>,
    /// An example of what breaks: a value at this location that was accepted before and is refused now, or that was not sent before and may
    /// be sent now. For a property that was added, removed or became required: an object with or without that property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Value>,
    /// For the removal of a deprecated part: the sunset of that part, which is the announced day of its removal (`x-sunset`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<String>,
    /// The reason that the team gave for the approval, if the change is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// What an integrator should do about the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// For an added or removed operation: its `summary` and its `x-required-scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

/// The description of an operation: its `summary` and its `x-required-scope`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

fn rule_id<S: Serializer>(rule: &&'static Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.id)
}

fn rule_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Rule, D::Error> {
    let id = String::deserialize(deserializer)?;
    Rule::of(&id).ok_or_else(|| serde::de::Error::custom(format!("no such rule: {id}")))
}

/// The name of an operation, such as `GET /pets`, and its `operationId`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationName {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
}

/// The title and the version of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Title {
    pub title: String,
    pub version: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub breaking: usize,
    pub unknown: usize,
    pub compatible: usize,
}

impl Summary {
    pub fn all(self) -> usize {
        self.breaking + self.unknown + self.compatible
    }

    pub fn of<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Self {
        let mut summary = Self::default();
        for change in changes {
            match change.class {
                Class::Breaking => summary.breaking += 1,
                Class::Unknown => summary.unknown += 1,
                Class::Compatible => summary.compatible += 1,
            }
        }
        summary
    }
}

/// The number of operations and responses that both documents have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    pub operations: usize,
    /// The number of responses that both documents describe, in the operations that both documents have.
    pub answers: usize,
}

/// A difference in behaviour that no document shows. The file of migration notes describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndocumentedDifference {
    pub key: String,
    pub old: String,
    pub new: String,
    /// What an integrator should do about the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub old: Title,
    pub new: Title,
    pub summary: Summary,
    pub shared: Shared,
    /// Faults of the documents, such as broken references.
    pub notices: Vec<String>,
    /// New features that no entry of `changes` shows, from the file of migration notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub news: Vec<String>,
    /// Differences in behaviour that neither document shows, from the file of migration notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown: Vec<UndocumentedDifference>,
    /// The changes, sorted by operation and then by class. The breaking changes of an operation come first.
    pub changes: Vec<Change>,
}

impl Report {
    pub(super) fn new(old: &Document, new: &Document, shared: Shared, found: Vec<Finding>, notices: Vec<String>) -> Self {
        let (old_ids, new_ids) = (operation_ids(old), operation_ids(new));
        let id = |ids: &HashMap<String, String>, label: &str| ids.get(label).or_else(|| ids.get(&unnamed(label))).cloned();
        let paths = |document: &'_ Document| members(document.root.get("paths").unwrap_or(empty())).clone();
        let (old_paths, new_paths) = (paths(old), paths(new));
        let renamed: HashMap<_, _> = pairs(&old_paths, &new_paths)
            .into_iter()
            .filter_map(|(one, other)| one.zip(other))
            .filter(|(one, other)| one != other)
            .collect();
        let changes = found.into_iter().map(|found| {
            let operation = (!found.at.operation.is_empty()).then(|| found.at.operation.to_string());
            let back = operation.as_ref().map(|label| match label.split_once(' ') {
                Some((method, path)) if renamed.contains_key(path) => format!("{method} {}", renamed[path]),
                _ => renamed.get(label.as_str()).map_or_else(|| label.clone(), |path| (*path).to_owned()),
            });
            let was = operation.as_deref().and_then(|label| id(&old_ids, label));
            let is = back.as_deref().and_then(|label| id(&new_ids, label));
            let operation_id = is.clone().or_else(|| was.clone());
            let back = OperationName { operation: back, operation_id: was.or(is) };
            let about = match found.rule {
                rule if *rule == rules::OPERATION_ADDED => operation.as_deref().and_then(|label| about(new, label)),
                rule if *rule == rules::OPERATION_REMOVED => operation.as_deref().and_then(|label| about(old, label)),
                _ => None,
            };
            Change {
                about,
                fingerprint: String::new(),
                class: found.rule.class(found.at.direction),
                back: (back.operation != operation || back.operation_id != operation_id).then_some(back),
                operation_id,
                operation,
                place: found.at.place(),
                direction: found.at.direction,
                rule: found.rule,
                says: String::new(),
                detail: found.detail,
                old: found.old,
                new: found.new,
                covers: found.covers,
                witness: found.witness,
                sunset: found.sunset,
                approved: None,
                note: None,
            }
        });
        let title = |document: &Document| Title { title: document.info("title").to_owned(), version: document.info("version").to_owned() };
        Self::of(title(old), title(new), shared, notices, changes.collect())
    }

    fn of(old: Title, new: Title, shared: Shared, notices: Vec<String>, mut changes: Vec<Change>) -> Self {
        changes.sort_by_cached_key(|change| (change.operation.clone(), change.class, identity(change)));
        changes.dedup_by(|later, first| {
            let same = later.operation == first.operation && identity(later) == identity(first);
            if same {
                first.covers.append(&mut later.covers);
            }
            same
        });
        let mut seen = HashMap::new();
        for change in &mut changes {
            // A fingerprint has sixteen hexadecimal digits. If several changes have the same hash, a number is appended from the second
            // change on.
            let hash = hex(&sha256(&identity(change)))[..16].to_owned();
            let count = seen.entry(hash.clone()).and_modify(|count| *count += 1).or_insert(1);
            change.fingerprint = if *count == 1 { hash } else { format!("{hash}-{count}") };
            change.says = wording(change);
        }
        Self { old, new, summary: Summary::of(&changes), shared, notices, news: Vec::new(), unshown: Vec::new(), changes }
    }

    /// Returns the same changes in the other direction: from the new document to the old document. Witnesses, sunsets, approvals, notes and
    /// news are left out, because they apply to one direction only.
    pub fn mirrored(&self) -> Self {
        let changes = self.changes.iter().cloned().map(|change| Change {
            rule: change.rule.mirror,
            class: change.rule.mirror.class(change.direction),
            old: change.new,
            new: change.old,
            witness: None,
            sunset: None,
            approved: None,
            note: None,
            back: change
                .back
                .is_some()
                .then(|| OperationName { operation: change.operation.clone(), operation_id: change.operation_id.clone() }),
            operation: change.back.as_ref().map_or(change.operation, |back| back.operation.clone()),
            operation_id: change.back.map_or(change.operation_id, |back| back.operation_id),
            ..change
        });
        let swapped = |notice: &String| match (notice.strip_prefix("old: "), notice.strip_prefix("new: ")) {
            (Some(rest), _) => format!("new: {rest}"),
            (_, Some(rest)) => format!("old: {rest}"),
            _ => notice.clone(),
        };
        let notices = self.notices.iter().map(swapped).collect();
        let unshown =
            self.unshown.iter().cloned().map(|row| UndocumentedDifference { old: row.new, new: row.old, note: None, ..row }).collect();
        Self { unshown, ..Self::of(self.new.clone(), self.old.clone(), self.shared, notices, changes.collect()) }
    }

    /// Returns the changes by operation: first the document as a whole, then operations with breaking changes, then the other operations.
    pub fn by_operation(&self) -> Vec<(Option<&str>, Vec<&Change>)> {
        let mut groups: BTreeMap<Option<&str>, Vec<&Change>> = BTreeMap::new();
        for change in &self.changes {
            groups.entry(change.operation.as_deref()).or_default().push(change);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(operation, changes)| (operation.is_some(), changes.first().map(|change| change.class)));
        groups
    }

    pub fn of_class(&self, class: Class) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.class == class)
    }

    /// Returns the report as JSON, in the format that `openapi/contract-diff.schema.json` describes.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Returns the summary and the required scope of an operation under `paths`. None for other operations, such as webhooks.
fn about(document: &Document, label: &str) -> Option<About> {
    let operation = document.described(label)?;
    let text = |key: &str| operation.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(About { summary: text("summary"), scope: text("x-required-scope") })
}

/// Returns the text whose hash is the fingerprint of a change.
fn identity(change: &Change) -> String {
    let value = |value: &Option<Value>| value.as_ref().map(canonical).unwrap_or_default();
    let parts = [
        change.operation.as_deref().map(unnamed).unwrap_or_default(),
        unnamed_place(change.operation.as_deref().unwrap_or_default(), &change.place),
        format!("{:?}", change.direction),
        change.rule.id.to_owned(),
        change.detail.clone().unwrap_or_default(),
        value(&change.old),
        value(&change.new),
    ];
    parts.join("\u{0}")
}

/// Returns a path without the names of its parameters: `/pets/{id}` becomes `/pets/{}`.
pub(super) fn unnamed(path: &str) -> String {
    let mut parts = path.split('{');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('{');
        plain.push_str(part.find('}').map_or(part, |end| &part[end..]));
    }
    plain
}

/// Returns a location in the form that is hashed for a fingerprint. In the location of a path parameter, the position of the parameter
/// replaces its name.
fn unnamed_place(operation: &str, place: &str) -> String {
    const PARAMETER: &str = "path parameter ";
    let unnamed = place.strip_prefix(PARAMETER).and_then(|rest| {
        let (name, path) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        Some(format!("{PARAMETER}#{}{path}", position(operation, name)?))
    });
    unnamed.unwrap_or_else(|| place.to_owned())
}

/// Returns the `operationId`s, with the names of their operations as keys. Each operation has two keys: its name as the document writes it,
/// and its name without the names of path parameters.
fn operation_ids(document: &Document) -> HashMap<String, String> {
    let mut ids = HashMap::new();
    for section in ["paths", "webhooks"] {
        for (name, item) in document.root.get(section).and_then(Value::as_object).into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let Some(id) = operation.get("operationId").and_then(Value::as_str) else { continue };
                let method = method.to_uppercase();
                let label = if section == "paths" { format!("{method} {name}") } else { format!("webhook {name} {method}") };
                ids.insert(unnamed(&label), id.to_owned());
                ids.insert(label, id.to_owned());
            }
        }
    }
    ids
}

/// Returns the text of the rule with the details of the change filled in.
fn wording(change: &Change) -> String {
    let shown = |value: &Option<Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => {
            values.iter().map(|value| value.as_str().map_or_else(|| canonical(value), str::to_owned)).collect::<Vec<_>>().join(", ")
        }
        Some(value) => canonical(value),
        None => "nothing".to_owned(),
    };
    let mut said = String::new();
    let mut rest = change.rule.says;
    while let Some((before, after)) = rest.split_once('{') {
        said.push_str(before);
        let Some((name, after)) = after.split_once('}') else { break };
        said.push_str(&match name {
            "old" => shown(&change.old),
            "new" => shown(&change.new),
            _ => change.detail.clone().unwrap_or_default(),
        });
        rest = after;
    }
    said += rest;
    if !change.covers.is_empty() {
        let covered: Vec<_> = change.covers.iter().map(|key| format!("`{key}`")).collect();
        said += &format!("; what {} {} changes with it", covered.join(", "), if covered.len() == 1 { "says" } else { "say" });
    }
    said
}
