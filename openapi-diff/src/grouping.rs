//! Groups the changes of a report for display. The changes that are the same at many locations come first, each shown once. The other
//! changes follow, by operation.
//!
//! The renderers in `text_and_markdown` and `html` use this module. Each change is either shown under its operation or covered by an entry
//! at the front of the report. Each operation refers to the entries that affect it, with the statuses of the affected responses.
//!
//! The same change in responses with different statuses counts as one change, because one schema usually describes these responses. An
//! entry covers at least two operations and at least three locations. If an entry covers every response of the documents, the operations do
//! not refer to it. New operations are shown as one list, removed operations as another.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    json_values::canonical,
    report::{Change, Report, Summary},
    rules::{self, Class},
    text_and_markdown::heading,
};

/// A change is shown once at the front of the report if it is the same at this many locations or more.
const MANY: usize = 3;

pub(super) struct Grouping<'r> {
    pub common: Vec<SharedChanges<'r>>,
    /// The changes that add an operation.
    pub added: Vec<&'r Change>,
    /// The changes that remove an operation.
    pub removed: Vec<&'r Change>,
    /// The groups in the order in which they are shown: first the document as a whole, then the operations with breaking changes, then the
    /// other operations.
    pub operations: Vec<OperationGroup<'r>>,
    /// The number of changes by class. A change that is shown at the front of the report counts once.
    pub distinct: Summary,
    /// The texts of the migration notes: first the notes on undocumented differences in behaviour, then the notes on changes. The notes on
    /// changes are in the order in which the changes are shown.
    pub notes: Vec<&'r str>,
}

/// Entries at the front of the report whose changes affect the same operations.
pub(super) struct SharedChanges<'r> {
    pub title: String,
    /// Whether the changes are in every response of the documents. Then no operation refers to the entries.
    pub is_everywhere: bool,
    /// The affected operations, as text: their names, or their number if every operation is affected.
    pub reached: String,
    pub entries: Vec<SharedChange<'r>>,
}

/// An entry at the front of the report: a change that is the same at many locations.
pub(super) struct SharedChange<'r> {
    /// The label, such as `a`. Operations refer to the entry by this label.
    pub label: String,
    pub place: String,
    pub places: usize,
    /// The first of the equal changes that the entry shows.
    pub change: &'r Change,
}

/// An operation, its references to entries at the front of the report, and the changes that are shown under it.
pub(super) struct OperationGroup<'r> {
    pub heading: String,
    /// The `operationId` in the new document, or in the old document if the operation or its `operationId` was removed.
    pub id: Option<&'r str>,
    pub common: Vec<Mention>,
    pub changes: Vec<&'r Change>,
}

/// A reference from an operation to an entry at the front of the report.
pub(super) struct Mention {
    pub label: String,
    pub class: Class,
    /// The statuses of the operation's responses that the entry affects. Empty unless the entry covers several statuses.
    pub statuses: Vec<String>,
}

impl OperationGroup<'_> {
    /// Whether the operation has a change of a class, shown under it or at the front of the report.
    pub fn has(&self, class: Class) -> bool {
        self.of_class(class).next().is_some() || self.common.iter().any(|mention| mention.class == class)
    }

    pub fn of_class(&self, class: Class) -> impl Iterator<Item = &Change> {
        self.changes.iter().copied().filter(move |change| change.class == class)
    }
}

/// Splits the location of a change into the status of its response, if it is in a response, and the remaining location.
fn split(place: &str) -> (Option<&str>, &str) {
    match place.strip_prefix("response ") {
        Some(rest) => (Some(rest.split(' ').next().unwrap_or_default()), rest.split_once(' ').map_or("", |(_, rest)| rest)),
        None => (None, place),
    }
}

/// Equal changes at several locations.
struct SameChange<'r> {
    changes: Vec<&'r Change>,
    operations: BTreeSet<&'r str>,
}

impl SameChange<'_> {
    fn statuses(&self) -> BTreeSet<&str> {
        self.changes.iter().filter_map(|change| split(&change.place).0).collect()
    }
}

fn gathered(changes: &[Change]) -> Vec<SameChange<'_>> {
    let mut all: BTreeMap<_, SameChange> = BTreeMap::new();
    for change in changes {
        // Changes of the document as a whole and of an operation as a whole are skipped: they are never shown at the front of the report.
        let Some(operation) = change.operation.as_deref().filter(|_| change.place != "operation") else { continue };
        let (status, within) = split(&change.place);
        let values = [&change.old, &change.new].map(|value| value.as_ref().map(canonical));
        let key = (
            change.class,
            status.is_some(),
            within,
            change.direction,
            change.rule.id,
            &change.detail,
            values,
            &change.note,
            &change.approved,
        );
        let same = all.entry(key).or_insert_with(|| SameChange { changes: Vec::new(), operations: BTreeSet::new() });
        same.changes.push(change);
        same.operations.insert(operation);
    }
    all.into_values().filter(|same| same.changes.len() >= MANY && same.operations.len() > 1).collect()
}

/// Returns the label of the entry with the number `number`, counted from 0: `a` to `z`, then `aa`, `ab` and so on.
fn label(mut number: usize) -> String {
    let mut label = String::new();
    loop {
        label.insert(0, char::from(b'a' + u8::try_from(number % 26).unwrap_or_default()));
        if number < 26 {
            return label;
        }
        number = number / 26 - 1;
    }
}

impl Report {
    pub(super) fn grouping(&self) -> Grouping<'_> {
        let mut by_extent: BTreeMap<(bool, BTreeSet<&str>), Vec<SameChange>> = BTreeMap::new();
        for same in gathered(&self.changes) {
            let answers = same.changes.iter().filter(|change| split(&change.place).0.is_some()).count();
            let everywhere = answers > 0 && answers == self.shared.answers;
            by_extent.entry((everywhere, same.operations.clone())).or_default().push(same);
        }
        let mut extents: Vec<_> = by_extent.into_iter().collect();
        let places = |all: &[SameChange]| all.iter().map(|same| same.changes.len()).max();
        let worst = |all: &[SameChange]| all.iter().map(|same| same.changes[0].class).min();
        extents.sort_by_key(|(_, all)| (worst(all), std::cmp::Reverse(places(all))));
        // `entered` maps the fingerprint of each change at the front of the report to two values: the label of its entry, and whether the
        // entry covers several statuses. Both are absent (None) if the entry covers every response.
        let (mut common, mut entered, mut count) = (Vec::new(), BTreeMap::new(), 0);
        for ((everywhere, operations), mut all) in extents {
            all.sort_by_key(|same| (same.changes[0].class, split(&same.changes[0].place).1));
            let mut entries = Vec::new();
            for same in all {
                let label = label(count);
                count += 1;
                let several = same.statuses().len() > 1;
                let mention = (!everywhere).then(|| (label.clone(), several));
                entered.extend(same.changes.iter().map(|change| (change.fingerprint.as_str(), mention.clone())));
                let (status, within) = split(&same.changes[0].place);
                let statuses: Vec<_> = if everywhere { Vec::new() } else { same.statuses().into_iter().collect() };
                let place = match status {
                    Some(_) => format!("response {} {within}", statuses.join(", ")).replace("  ", " ").trim().to_owned(),
                    None => within.to_owned(),
                };
                entries.push(SharedChange { label, place, places: same.changes.len(), change: same.changes[0] });
            }
            // If every operation has the change, the number of operations is shown, because a list of their names would be too long.
            let (title, reached) = match operations.len() {
                count if everywhere => ("In every answer".to_owned(), format!("{} answers of {count} operations", self.shared.answers)),
                count if count == self.shared.operations => ("In every operation".to_owned(), format!("{count} operations")),
                count => (format!("In {count} operations"), operations.into_iter().collect::<Vec<_>>().join(", ")),
            };
            common.push(SharedChanges { title, is_everywhere: everywhere, reached, entries });
        }
        let of_rule = |rule: &rules::Rule| self.changes.iter().filter(|change| change.rule == rule).collect::<Vec<_>>();
        let (added, removed) = (of_rule(&rules::OPERATION_ADDED), of_rule(&rules::OPERATION_REMOVED));
        let operations = self.by_operation().into_iter().map(|(operation, changes)| group(operation, changes, &entered));
        let operations: Vec<_> = operations.filter(|group| !group.changes.is_empty() || !group.common.is_empty()).collect();
        let front = common.iter().flat_map(|extent: &SharedChanges| extent.entries.iter().map(|entry| entry.change));
        let own = operations.iter().flat_map(|group| group.changes.iter().copied());
        let distinct = Summary::of(front.chain(own).chain(added.iter().copied()).chain(removed.iter().copied()));
        let mut grouping = Grouping { common, added, removed, operations, distinct, notes: Vec::new() };
        grouping.notes = self.unshown.iter().filter_map(|row| row.note.as_deref()).collect();
        grouping.notes = grouping.noted();
        grouping
    }
}

fn group<'r>(operation: Option<&str>, changes: Vec<&'r Change>, entered: &BTreeMap<&str, Option<(String, bool)>>) -> OperationGroup<'r> {
    let heading = heading(operation, &changes);
    let id = changes.iter().find_map(|change| change.operation_id.as_deref());
    let mut mention: BTreeMap<(usize, &str), Mention> = BTreeMap::new();
    let mut own = Vec::new();
    for change in changes {
        let (label, several) = match entered.get(change.fingerprint.as_str()) {
            Some(Some((label, several))) => (label, several),
            Some(None) => continue,
            None => {
                if ![&rules::OPERATION_ADDED, &rules::OPERATION_REMOVED].contains(&change.rule) {
                    own.push(change);
                }
                continue;
            }
        };
        let entry =
            mention.entry((label.len(), label)).or_insert_with(|| Mention { label: label.clone(), class: change.class, statuses: vec![] });
        entry.statuses.extend(split(&change.place).0.filter(|_| *several).map(str::to_owned));
    }
    OperationGroup { heading, id, common: mention.into_values().collect(), changes: own }
}

impl<'r> Grouping<'r> {
    fn noted(&self) -> Vec<&'r str> {
        let mut notes = self.notes.clone();
        let front = self.common.iter().flat_map(|extent| extent.entries.iter().map(|entry| entry.change));
        let moved = self.removed.iter().chain(&self.added).copied();
        for change in front.chain(moved).chain(self.operations.iter().flat_map(|group| group.changes.iter().copied())) {
            if let Some(note) = change.note.as_deref().filter(|note| !notes.contains(note)) {
                notes.push(note);
            }
        }
        notes
    }

    /// Returns the number of the note on a change: its position in [`Self::notes`], counted from 1.
    pub fn number(&self, change: &Change) -> Option<usize> {
        self.number_of(change.note.as_deref()?)
    }

    pub fn number_of(&self, note: &str) -> Option<usize> {
        self.notes.iter().position(|one| *one == note).map(|position| position + 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Document, diff};

    fn report(old: &[&str], new: &[&str]) -> Report {
        let document = |types: &[&str]| {
            let answer =
                |kind: &str| json!({ "content": { "application/json": { "schema": { "properties": { "at": { "type": kind } } } } } });
            let mut paths = serde_json::Map::new();
            for (number, kind) in types.iter().enumerate() {
                let responses = json!({ "200": answer(kind), "400": answer(kind), "404": answer("string") });
                paths.insert(format!("/{number}"), json!({ "get": { "operationId": format!("get{number}"), "responses": responses } }));
            }
            Document::new(json!({ "openapi": "3.0.0", "paths": Value::Object(paths) })).expect("a document")
        };
        diff(&document(old), &document(new))
    }

    /// Counts the changes that the groups show. An entry at the front counts once for each location that it covers. The result is the
    /// number of all changes of the report if each change is shown exactly once.
    fn shown(report: &Report) -> usize {
        let grouping = report.grouping();
        grouping.common.iter().flat_map(|extent| &extent.entries).map(|entry| entry.places).sum::<usize>()
            + grouping.operations.iter().map(|group| group.changes.len()).sum::<usize>()
            + grouping.added.len()
            + grouping.removed.len()
    }

    #[test]
    fn equal_changes_are_shown_once_at_the_front_and_referred_to_from_operations() {
        let report = report(&["string", "string", "string", "string"], &["integer", "integer", "boolean", "string"]);
        let grouping = report.grouping();
        let [extent] = &grouping.common[..] else { panic!("{} extents", grouping.common.len()) };
        assert_eq!((extent.title.as_str(), extent.reached.as_str()), ("In 2 operations", "GET /0, GET /1"));
        let entry = &extent.entries[0];
        assert_eq!((entry.label.as_str(), entry.place.as_str(), entry.places), ("a", "response 200, 400 /at", 4));
        let groups: Vec<_> = grouping.operations.iter().map(|group| (group.common.len(), group.changes.len())).collect();
        assert_eq!(groups, [(1, 0), (1, 0), (0, 2)]);
        assert_eq!(grouping.operations[0].common[0].statuses, ["200", "400"]);
        assert_eq!(shown(&report), report.changes.len());
        for text in [report.text(), report.markdown()] {
            assert_eq!(text.matches("is integer, was string").count(), 1, "{text}");
            assert_eq!(text.matches("see above: a (200, 400)").count(), 2, "{text}");
        }
        assert_eq!(report.html(&crate::PageContext::default()).matches("see above: <a href=\"#there-a\">a</a> (200, 400)").count(), 2);
    }

    #[test]
    fn a_change_in_all_operations_or_answers_is_titled_accordingly() {
        let mut report = report(&["string", "string"], &["integer", "integer"]);
        assert_eq!((report.shared.operations, report.shared.answers), (2, 6));
        assert_eq!(report.grouping().common[0].title, "In every operation");
        report.shared.answers = 4;
        let grouping = report.grouping();
        assert_eq!((grouping.common[0].title.as_str(), grouping.common[0].entries[0].place.as_str()), ("In every answer", "response /at"));
    }

    #[test]
    fn changes_in_few_places_or_with_other_notes_are_not_grouped() {
        let mut report = report(&["string", "string"], &["integer", "integer"]);
        report.changes[0].note = Some("Another.".to_owned());
        report.changes[1].note = Some("Another.".to_owned());
        assert!(report.grouping().common.is_empty());
        let mut approved = self::report(&["string", "string", "string"], &["integer", "integer", "integer"]);
        let places = approved.grouping().common[0].entries[0].places;
        approved.changes[0].approved = Some("Only the first.".to_owned());
        assert_eq!(approved.grouping().common[0].entries[0].places, places - 1);
        assert_eq!(report.grouping().notes, ["Another."]);
        assert_eq!(report.markdown().matches("is integer, was string").count(), 4);
    }

    #[test]
    fn group_labels_continue_with_aa_after_z() {
        assert_eq!([0, 25, 26, 51, 52, 701, 702].map(label), ["a", "z", "aa", "az", "ba", "zz", "aaa"]);
    }
}
