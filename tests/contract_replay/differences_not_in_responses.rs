//! Exemptions of the replay test: documented differences between the API revisions that need not occur in the responses. Each line of
//! `differences_not_in_responses.jsonl` has a rule of the comparison and some `places`. A place is the end of a path in the OpenAPI
//! document. The line exempts the differences that the rule reports at such paths.

use std::collections::BTreeSet;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exempt {
    rule: String,
    places: Vec<String>,
    reason: String,
}

/// Applies the exemptions to the documented differences: `seen` has those that occurred in the responses, `unseen` the others. Returns the
/// differences in `unseen` that are not exempt, which the test reports as faults. Also returns the places of
/// `differences_not_in_responses.jsonl` that exempt nothing in `unseen`, each with the reason.
pub fn apply(seen: &BTreeSet<String>, unseen: &BTreeSet<String>) -> (BTreeSet<String>, Vec<String>) {
    let (mut missing, mut stale) = (unseen.clone(), Vec::new());
    for line in super::read("tests/contract_replay/differences_not_in_responses.jsonl").lines().filter(|line| !line.trim().is_empty()) {
        let row: Exempt = serde_json::from_str(line).unwrap_or_else(|error| panic!("differences_not_in_responses.jsonl: {error}\n{line}"));
        assert!(!row.reason.is_empty(), "no reason: {line}");
        for place in &row.places {
            // The key of a difference is `METHOD PATH: RULE PLACE DETAIL`.
            let fits = |key: &String| {
                let change = key.split_once(": ").and_then(|(_, change)| change.strip_prefix(&row.rule)?.strip_prefix(' '));
                change.is_some_and(|change| change.ends_with(place.as_str()) || change.contains(&format!("{place} ")))
            };
            let before = missing.len();
            missing.retain(|key| !fits(key));
            if missing.len() == before {
                let why = if seen.iter().any(fits) { "seen" } else { "not documented" };
                stale.push(format!("{place} ({why}) in {line}"));
            }
        }
    }
    (missing, stale)
}
