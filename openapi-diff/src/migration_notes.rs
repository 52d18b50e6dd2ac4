//! Migration notes: what an integrator should do about a change. A note names its changes by their fingerprints and may cover many changes.
//! A file of notes may also list differences in behaviour that no document shows.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{
    report::{Change, Report, UndocumentedDifference},
    rules::Class,
};

/// A note and the changes that it covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub note: String,
    pub fingerprints: Vec<String>,
}

/// A file of migration notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notes {
    #[serde(default)]
    pub notes: Vec<Note>,
    /// New features that the documents describe only in words. Each entry is the text about one feature.
    #[serde(default)]
    pub news: Vec<String>,
    #[serde(default)]
    pub unshown: Vec<UndocumentedDifference>,
}

/// Mismatches between notes and changes.
#[derive(Debug, Default)]
pub struct NoteMismatches {
    /// Breaking changes without a note.
    pub missing: Vec<Change>,
    /// Fingerprints in the notes that no change has, and fingerprints that two notes name.
    pub orphaned: Vec<String>,
}

impl Report {
    /// Adds each note to its changes, and returns the mismatches between notes and changes.
    pub fn annotate(&mut self, notes: &Notes) -> NoteMismatches {
        self.unshown = notes.unshown.clone();
        self.news = notes.news.clone();
        let (mut by_fingerprint, mut orphaned) = (HashMap::new(), Vec::new());
        for (note, fingerprint) in notes.notes.iter().flat_map(|note| note.fingerprints.iter().map(move |fingerprint| (note, fingerprint)))
        {
            if by_fingerprint.insert(fingerprint.as_str(), note).is_some() {
                orphaned.push(fingerprint.clone());
            }
        }
        let known: HashSet<_> = self.changes.iter().map(|change| change.fingerprint.as_str()).collect();
        orphaned.extend(
            by_fingerprint.keys().filter(|fingerprint| !known.contains(**fingerprint)).map(|fingerprint| (*fingerprint).to_owned()),
        );
        orphaned.sort();
        for change in &mut self.changes {
            change.note = by_fingerprint.get(change.fingerprint.as_str()).map(|note| note.note.clone());
        }
        let missing = self.of_class(Class::Breaking).filter(|change| change.note.is_none()).cloned().collect();
        NoteMismatches { missing, orphaned }
    }
}

impl NoteMismatches {
    pub fn is_none(&self) -> bool {
        self.missing.is_empty() && self.orphaned.is_empty()
    }
}

impl std::fmt::Display for NoteMismatches {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        for change in &self.missing {
            let operation = change.operation.as_deref().unwrap_or("document");
            writeln!(formatter, "no note on {}: {operation}, {}: {}", change.fingerprint, change.place, change.says)?;
        }
        for fingerprint in &self.orphaned {
            writeln!(formatter, "a note on {fingerprint}, which no change has, or two notes on it")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Document, diff};

    #[test]
    fn notes_are_added_to_their_changes_and_gaps_are_reported() {
        let document = |paths| Document::new(json!({ "openapi": "3.0.0", "paths": paths })).expect("a document");
        let old = document(json!({ "/a": { "get": {} }, "/b": { "get": {} } }));
        let mut report = diff(&old, &document(json!({})));
        let [first, second] = [0, 1].map(|number| report.changes[number].fingerprint.clone());
        let note = |fingerprints: &[&String]| Note {
            note: "Gone.".to_owned(),
            fingerprints: fingerprints.iter().map(|one| (*one).clone()).collect(),
        };
        let notes = |notes: &[Note]| Notes { notes: notes.to_vec(), ..Notes::default() };
        assert!(report.annotate(&notes(&[note(&[&first, &second])])).is_none());
        assert_eq!(report.grouping().notes, ["Gone."]);
        let gaps = report.annotate(&notes(&[note(&[&first, &"gone".to_owned()])]));
        assert_eq!((gaps.missing[0].fingerprint.clone(), gaps.orphaned.clone()), (second.clone(), vec!["gone".to_owned()]));
        assert!(gaps.to_string().contains(&format!("no note on {second}: GET /b, operation: the operation is gone")), "{gaps}");
        assert_eq!(report.annotate(&notes(&[note(&[&first]), note(&[&first, &second])])).orphaned, [first]);
    }
}
