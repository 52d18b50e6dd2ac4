//! The permitted differences between the revisions: the changes of `openapi/a-to-b.json`, and the rows of `features.md` that no document
//! can show. A key is the row's name, or `METHOD PATH: RULE PLACE` of a change with the detail that tells it from other changes there.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::{
    client::Answer,
    compare::{Difference, RECENT_INSTANT, RECENT_MILLISECONDS},
    corpus::{Cause, Request},
};

pub struct Told {
    changes: Vec<Change>,
    features: BTreeSet<String>,
    /// The operations that both documents have, as each describes them; `None` if only the newer document has it.
    operations: BTreeMap<String, (Option<Value>, Value)>,
    exempt: Vec<Exempt>,
}

struct Change {
    operation: String,
    place: String,
    rule: String,
    detail: Option<String>,
}

impl Change {
    fn key(&self) -> String {
        let detail = self.detail.as_deref().map(|detail| format!(" {detail}")).unwrap_or_default();
        format!("{}: {} {}{detail}", self.operation, self.rule, self.place)
    }
}

/// Changes that no request can show: those by this rule, at places with one of these endings.
struct Exempt {
    rule: String,
    places: Vec<String>,
    line: String,
}

/// A file of the repository.
pub fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn parsed(name: &str) -> Value {
    serde_json::from_str(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn operations(document: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, node) in item.as_object().into_iter().flatten() {
            all.insert(format!("{} {path}", method.to_uppercase()), node.clone());
        }
    }
    all
}

/// The heading of the table in `features.md`.
const HEADING: &str = "## Differences in behaviour that a document can't show";

fn features() -> BTreeSet<String> {
    let text = read("features.md");
    let (_, rest) = text.split_once(HEADING).unwrap_or_else(|| panic!("features.md has no {HEADING}"));
    let section = rest.split("\n## ").next().unwrap_or_default();
    let keys = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned));
    keys.collect()
}

impl Told {
    pub fn read() -> Self {
        let report = parsed("openapi/a-to-b.json");
        let text = |change: &Value, name: &str| change[name].as_str().unwrap_or_default().to_owned();
        let changes = report["changes"].as_array().into_iter().flatten().map(|change| Change {
            operation: text(change, "operation"),
            place: text(change, "place"),
            rule: text(change, "rule"),
            detail: change["detail"].as_str().map(str::to_owned),
        });
        let mut older = operations(&parsed("openapi/rev-a.json"));
        let newer = operations(&parsed("openapi/rev-b.json"));
        let exempt = read("tests/replay/exempt.jsonl");
        let exempt = exempt.lines().filter(|line| !line.trim().is_empty()).map(|line| {
            let row: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("exempt.jsonl: {error}\n{line}"));
            assert!(row["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "no reason: {line}");
            let places = row["places"].as_array().into_iter().flatten().filter_map(|place| place.as_str().map(str::to_owned)).collect();
            Exempt { rule: text(&row, "rule"), places, line: line.to_owned() }
        });
        Self {
            changes: changes.collect(),
            features: features(),
            operations: newer.into_iter().map(|(name, node)| (name.clone(), (older.remove(&name), node))).collect(),
            exempt: exempt.collect(),
        }
    }

    /// Every documented difference.
    pub fn all(&self) -> BTreeSet<String> {
        self.changes.iter().map(Change::key).chain(self.features.iter().cloned()).collect()
    }

    /// The operations that both documents have, as the newer one describes them.
    pub fn shared(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.operations.iter().filter(|(_, (older, _))| older.is_some()).map(|(name, (_, newer))| (name.as_str(), newer))
    }

    /// The operation as each of the documents describes it.
    pub fn shared_as_described(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.operations
            .iter()
            .flat_map(|(name, (older, newer))| older.iter().flat_map(move |older| [(name.as_str(), older), (name.as_str(), newer)]))
    }

    /// The operations that only the newer document has.
    pub fn newer_only(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.operations.iter().filter(|(_, (older, _))| older.is_none()).map(|(name, (_, newer))| (name.as_str(), newer))
    }

    fn of<'a>(&'a self, request: &Request) -> impl Iterator<Item = &'a Change> {
        let operation = request.operation();
        self.changes.iter().filter(move |change| change.operation == operation)
    }

    /// The keys that a cause names, if all of them are documented.
    pub fn known(&self, request: &Request, cause: &Cause) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        for cited in &cause.by {
            if self.features.contains(cited) {
                keys.push(cited.clone());
                continue;
            }
            let before = keys.len();
            let named = |change: &&Change| format!("{} {}", change.rule, change.place) == *cited;
            keys.extend(self.of(request).filter(named).map(Change::key));
            if keys.len() == before {
                return Err(format!("nothing tells of {cited}"));
            }
        }
        Ok(keys)
    }

    /// The changes that explain a difference by themselves. Each explains no more than it states. A change that takes a special request
    /// to be seen must be named by that request, with the values that it shows.
    pub fn explains(&self, request: &Request, answers: &[Answer; 2], difference: &Difference) -> Result<Vec<String>, String> {
        let none = || Err("no change and no row says so".to_owned());
        if difference.place == "status" {
            let [older, newer] = answers.each_ref().map(|answer| answer.status);
            // The newer revision must answer 200 and find something.
            let works = [404, 405].contains(&older) && newer == 200 && difference.sides[1][1] != json!([]);
            let added = self.of(request).filter(|change| works && change.rule == "operation-added");
            let keys: Vec<_> = added.map(Change::key).collect();
            return if keys.is_empty() { none() } else { Ok(keys) };
        }
        let place = format!("response {} {}", self.code(request, answers), difference.place);
        let says = |change: &&Change| match (change.rule.as_str(), &difference.sides) {
            ("property-required-removed" | "property-optional-removed" | "header-required-removed", [_, Value::Null]) => true,
            ("property-required-added" | "property-optional-added", [Value::Null, _]) => true,
            ("format-removed" | "pattern-added", [older, newer]) => older == RECENT_INSTANT && newer == RECENT_MILLISECONDS,
            _ => false,
        };
        let keys: Vec<_> = self.of(request).filter(|change| change.place == place).filter(says).map(Change::key).collect();
        if keys.is_empty() { none() } else { Ok(keys) }
    }

    /// The code under which the newer document lists an answer.
    fn code(&self, request: &Request, answers: &[Answer; 2]) -> String {
        let code = answers[1].status.to_string();
        let listed = self.operations.get(&request.operation()).is_some_and(|(_, node)| node["responses"].get(&code).is_some());
        if listed { code } else { "default".to_owned() }
    }

    /// Values that only the newer document lists, if an answer shows them. The older revision passes them on, so that no two answers
    /// differ by them.
    pub fn values_shown(&self, request: &Request, answers: &[Answer; 2]) -> Vec<String> {
        let Ok(body) = serde_json::from_str::<Value>(&answers[1].text) else { return vec![] };
        let prefix = format!("response {} /", self.code(request, answers));
        let added = self.of(request).filter(|change| change.rule == "open-value-added");
        let shown = |change: &&Change| {
            let Some(path) = change.place.strip_prefix(&prefix) else { return false };
            let Some(value) = change.detail.as_deref().and_then(|detail| serde_json::from_str::<Value>(detail).ok()) else { return false };
            holds(&body, &path.split('/').collect::<Vec<_>>(), &value)
        };
        added.filter(shown).map(Change::key).collect()
    }

    /// The documented differences that need not occur, and the rows of the file that are no longer needed.
    pub fn exempt(&self, exercised: &BTreeSet<String>) -> (BTreeSet<String>, Vec<String>) {
        let (mut exempt, mut stale) = (BTreeSet::new(), Vec::new());
        for row in &self.exempt {
            for place in &row.places {
                let matching = self.changes.iter().filter(|change| change.rule == row.rule && change.place.ends_with(place.as_str()));
                let keys: Vec<_> = matching.map(Change::key).filter(|key| !exercised.contains(key)).collect();
                if keys.is_empty() {
                    stale.push(format!("{place} in {}", row.line));
                }
                exempt.extend(keys);
            }
        }
        (exempt, stale)
    }
}

fn holds(value: &Value, path: &[&str], wanted: &Value) -> bool {
    match path {
        [] => value == wanted,
        ["[]", rest @ ..] => value.as_array().is_some_and(|items| items.iter().any(|item| holds(item, rest, wanted))),
        [name, rest @ ..] => value.get(*name).is_some_and(|inner| holds(inner, rest, wanted)),
    }
}
