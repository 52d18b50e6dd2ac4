//! Gate for CI: applies the decisions of a team to a report. The decisions approve changes, set the severity of rules and ignore kinds of
//! changes. A removal is compatible if the removed part was deprecated and its sunset (the announced day of its removal, `x-sunset`) has
//! passed.
//!
//! An approval names a change by its fingerprint (a hash that identifies the change), and gives a reason and an optional last day. An
//! approval that matches no change is reported as a problem, so that the team deletes it. The caller passes today's date: the crate reads
//! no clock.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{
    report::{Change, Report, Summary},
    rules::{Class, Rule},
};

/// The acceptance of a change that would otherwise fail the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    pub fingerprint: String,
    pub reason: String,
    /// The last day of the approval, such as `2026-12-31`. An approval without a last day does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A file of approvals: `{"approvals": [{"fingerprint", "reason", "expires"}]}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    pub approvals: Vec<Approval>,
}

/// A file of severities: `{"rules": {"operation-id-renamed": "compatible"}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Severities {
    pub rules: BTreeMap<String, Class>,
}

/// Kinds of changes that a team can ignore. Ignored changes count as compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// Changes that affect the code of generated clients and leave requests and responses as they are.
    GeneratedCode,
}

/// All decisions of a team.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    pub approvals: Approvals,
    pub severities: Severities,
    pub ignored: Vec<Ignored>,
    /// If set, the report keeps only the changes of operations whose path (for a webhook: whose name in the report) matches this pattern,
    /// and the changes of the document as a whole.
    pub path: Option<Regex>,
    /// Today's date, such as `2026-11-26`.
    pub today: String,
}

/// Rules about names that generated clients use and that requests and responses do not contain.
const GENERATED_CODE: [&str; 8] = [
    "operation-id-renamed",
    "operation-id-added",
    "operation-id-removed",
    "operation-tag-added",
    "operation-tag-removed",
    "operation-tags-reordered",
    "path-parameter-renamed",
    "type-name-changed",
];

/// Rules about removed parts. The removal of a deprecated part is compatible once its sunset has been reached.
const REMOVALS: [&str; 11] = [
    "operation-removed",
    "webhook-removed",
    "callback-removed",
    "parameter-optional-removed",
    "parameter-required-removed",
    "header-optional-removed",
    "header-required-removed",
    "property-optional-removed",
    "property-required-removed",
    "closed-property-optional-removed",
    "closed-property-required-removed",
];

impl Severities {
    /// Returns the keys of `rules` that are not the identifier of any rule.
    pub fn unknown(&self) -> Vec<&str> {
        self.rules.keys().map(String::as_str).filter(|id| Rule::of(id).is_none()).collect()
    }
}

impl Report {
    /// Applies the decisions to the changes; returns the problems of the decisions themselves, such as an expired approval.
    pub fn apply(&mut self, gate: &Gate) -> Vec<String> {
        if let Some(path) = &gate.path {
            self.changes.retain(|change| change.operation.as_deref().is_none_or(|operation| path.is_match(path_of(operation))));
        }
        for change in &mut self.changes {
            change.class = class(change, gate);
        }
        let mut problems: Vec<_> = gate
            .severities
            .unknown()
            .into_iter()
            .map(|id| format!("severity of {id}: there is no such rule; reports name the rule of each change"))
            .collect();
        problems.extend(self.approve(gate));
        self.changes.sort_by(|one, other| (&one.operation, one.class).cmp(&(&other.operation, other.class)));
        self.summary = Summary::of(&self.changes);
        problems
    }

    fn approve(&mut self, gate: &Gate) -> Vec<String> {
        let mut problems = Vec::new();
        let mut seen = BTreeMap::new();
        for approval in &gate.approvals.approvals {
            let Approval { fingerprint, reason, expires } = approval;
            if seen.insert(fingerprint, ()).is_some() {
                problems.push(format!("approval of {fingerprint}: the file lists this fingerprint twice; remove one of the entries"));
                continue;
            }
            if reason.trim().is_empty() {
                problems.push(format!("approval of {fingerprint}: it gives no reason"));
                continue;
            }
            if let Some(day) = expires.as_deref().filter(|day| !is_day(day)) {
                problems.push(format!("approval of {fingerprint}: `expires` is {day:?}, not a day such as 2026-12-31"));
                continue;
            }
            let Some(change) = self.changes.iter_mut().find(|change| change.fingerprint == *fingerprint) else {
                problems.push(format!("approval of {fingerprint}: no change has this fingerprint; remove the approval"));
                continue;
            };
            match expires.as_deref().filter(|day| *day < gate.today.as_str()) {
                Some(day) => problems.push(format!("approval of {fingerprint}: it expired on {day}")),
                None => change.approved = Some(reason.clone()),
            }
        }
        problems
    }

    /// Returns the changes that are not approved and whose class is `mildest` or more severe.
    pub fn failing(&self, mildest: Class) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.class <= mildest && change.approved.is_none())
    }
}

fn class(change: &Change, gate: &Gate) -> Class {
    if let Some(class) = gate.severities.rules.get(change.rule.id) {
        return *class;
    }
    if gate.ignored.contains(&Ignored::GeneratedCode) && GENERATED_CODE.contains(&change.rule.id) {
        return Class::Compatible;
    }
    let sunset = change.sunset.as_deref().filter(|day| is_day(day) && REMOVALS.contains(&change.rule.id));
    if sunset.is_some_and(|day| day <= gate.today.as_str()) { Class::Compatible } else { change.class }
}

/// Returns the path in the name of an operation: `/pets` for `GET /pets`. A name without a path, such as that of a webhook, stays whole.
fn path_of(operation: &str) -> &str {
    operation.find('/').map_or(operation, |start| &operation[start..])
}

/// Whether a text has the form of a day, such as `2026-12-31`.
fn is_day(text: &str) -> bool {
    let shape = |(position, byte): (usize, u8)| if position == 4 || position == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    let within =
        |from: usize, most: u32| text.get(from..from + 2).and_then(|part| part.parse().ok()).is_some_and(|part| (1..=most).contains(&part));
    text.len() == 10 && text.bytes().enumerate().all(shape) && within(5, 12) && within(8, 31)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Document, diff};

    fn report() -> Report {
        let document = |paths| Document::new(json!({ "openapi": "3.0.0", "paths": paths })).expect("a document");
        let old = json!({
            "/a": { "get": { "operationId": "a", "deprecated": true, "x-sunset": "2026-06-30" } },
            "/b": { "get": { "operationId": "b" }, "put": {} }
        });
        diff(&document(old), &document(json!({ "/b": { "get": { "operationId": "c" } } })))
    }

    fn gate() -> Gate {
        Gate { today: "2026-07-01".to_owned(), ..Gate::default() }
    }

    fn failing(report: &Report) -> Vec<&str> {
        report.failing(Class::Breaking).map(|change| change.rule.id).collect()
    }

    #[test]
    fn a_removal_after_its_sunset_is_compatible() {
        let mut after = report();
        assert_eq!(after.apply(&gate()), Vec::<String>::new());
        assert_eq!(failing(&after), ["operation-id-renamed", "operation-removed"]);
        let mut before = report();
        before.apply(&Gate { today: "2026-06-29".to_owned(), ..gate() });
        assert_eq!(before.summary.breaking, 3);
    }

    #[test]
    fn generated_code_can_be_ignored_and_a_rule_can_have_another_severity() {
        let mut wire = report();
        wire.apply(&Gate { ignored: vec![Ignored::GeneratedCode], ..gate() });
        assert_eq!(failing(&wire), ["operation-removed"]);
        let rules = BTreeMap::from([("operation-removed".to_owned(), Class::Unknown), ("no-rule".to_owned(), Class::Unknown)]);
        let mut severe = report();
        let problems = severe.apply(&Gate { severities: Severities { rules }, ..gate() });
        assert_eq!(problems, ["severity of no-rule: there is no such rule; reports name the rule of each change"]);
        assert_eq!((failing(&severe), severe.summary.unknown), (vec!["operation-id-renamed"], 2));
    }

    #[test]
    fn the_gate_counts_only_changes_with_a_matching_path() {
        let mut matching = report();
        matching.apply(&Gate { path: Some(Regex::new("^/a").expect("a pattern")), today: "2026-01-01".to_owned(), ..gate() });
        assert_eq!(matching.changes.len(), 1);
    }

    #[test]
    fn approvals_hold_until_they_expire_and_unused_ones_are_problems() {
        let fingerprints: Vec<_> =
            report().changes.iter().filter(|change| change.class == Class::Breaking).map(|change| change.fingerprint.clone()).collect();
        let approval = |fingerprint: &str, expires: Option<&str>| Approval {
            fingerprint: fingerprint.to_owned(),
            reason: "Nothing calls it.".to_owned(),
            expires: expires.map(str::to_owned),
        };
        let approvals = vec![
            approval(&fingerprints[0], None),
            approval(&fingerprints[1], Some("2026-07-01")),
            approval(&fingerprints[2], Some("2026-06-30")),
            approval("0000000000000000", None),
            approval("1111111111111111", Some("soon")),
            approval(&fingerprints[0], None),
            Approval { reason: " ".to_owned(), ..approval("2222222222222222", None) },
            approval("3333333333333333", Some("2026-13-01")),
        ];
        let mut report = report();
        let problems = report.apply(&Gate { approvals: Approvals { approvals }, today: "2026-07-01".to_owned(), ..Gate::default() });
        assert_eq!(problems.len(), 6, "{problems:?}");
        assert!(problems[4].ends_with("it gives no reason") && problems[5].contains("not a day"), "{problems:?}");
        assert!(
            problems[0].ends_with("it expired on 2026-06-30") && problems[1].contains("no change has this fingerprint"),
            "{problems:?}"
        );
        assert!(problems[2].contains("not a day") && problems[3].contains("twice"), "{problems:?}");
        assert_eq!(report.changes.iter().filter(|change| change.approved.is_some()).count(), 2);
        assert!(report.text().contains("approved: Nothing calls it."));
    }
}
