//! Renders a report as text and as Markdown.
//!
//! Documents are untrusted input: control characters are replaced, and markup in names is escaped.

use std::fmt::Write;

use super::{
    grouping::{Mention, OperationGroup},
    report::{Change, Report, Summary, Title},
    rules::Class,
};

pub(super) const CLASSES: [Class; 3] = [Class::Breaking, Class::Unknown, Class::Compatible];

/// The heading of differences in behaviour that no document shows.
pub(super) const UNSHOWN: &str = "Changes of behaviour that no document shows";

/// The headings of the lists of operations that only one of the documents has.
pub(super) const REMOVED: &str = "Removed operations";
pub(super) const ADDED: &str = "New operations";

/// The heading of the new features in the migration notes that no change of the report shows.
pub(super) const NEWS: &str = "What else is new";

/// Returns the name of a class as reports show it.
pub(super) fn class_name(class: Class) -> &'static str {
    match class {
        Class::Breaking => "breaking",
        Class::Unknown => "unknown",
        Class::Compatible => "compatible",
    }
}

pub(super) fn titled(title: &Title) -> String {
    plain(format!("{} {}", title.title, title.version).trim())
}

pub(super) fn summed(summary: Summary) -> String {
    let all = summary.all();
    format!("{all} change{}: {}", if all == 1 { "" } else { "s" }, classed(summary))
}

/// Returns the summary line of the HTML page and of the Markdown report. If some changes are the same at many locations, the line has two
/// counts: the first counts such a change once, the second counts it at each location. Otherwise the line has one count.
pub(super) fn summed_once(distinct: Summary, all: Summary) -> String {
    if distinct == all {
        return summed(all);
    }
    let plural = if distinct.all() == 1 { "" } else { "s" };
    format!("{} distinct change{plural}: {}. Counted at every place: {}", distinct.all(), classed(distinct), summed(all))
}

fn classed(Summary { breaking, unknown, compatible }: Summary) -> String {
    format!("{breaking} breaking, {unknown} unknown, {compatible} compatible")
}

/// Returns the summary of an added or removed operation and the scope that the operation needs. Empty if they are unknown.
pub(super) fn described(change: &Change) -> String {
    let Some(about) = &change.about else { return String::new() };
    let scope = about.scope.as_ref().map(|scope| format!("scope `{scope}`"));
    let said: Vec<String> = about.summary.iter().cloned().chain(scope).collect();
    said.join("; ")
}

/// Replaces the control characters of a text by the Unicode replacement character.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Returns the heading for an operation: its name and, if it has one, its `operationId`. None stands for the document as a whole.
pub(super) fn heading(operation: Option<&str>, changes: &[&Change]) -> String {
    let id = changes.iter().find_map(|change| change.operation_id.as_deref());
    match (operation, id) {
        (None, _) => "The document".to_owned(),
        (Some(operation), None) => plain(operation),
        (Some(operation), Some(id)) => plain(&format!("{operation} ({id})")),
    }
}

/// Returns the rule and the fingerprint of a change. A file of severities names rules, and a file of approvals names fingerprints.
fn marks(change: &Change) -> String {
    format!("{} {}", change.rule.id, change.fingerprint)
}

impl Report {
    /// Returns the report as text.
    pub fn text(&self) -> String {
        let grouping = self.grouping();
        let mut out = format!("{} -> {}\n", titled(&self.old), titled(&self.new));
        for notice in &self.notices {
            _ = writeln!(out, "note: {}", plain(notice));
        }
        if !self.unshown.is_empty() {
            _ = write!(out, "\n{UNSHOWN}\n");
        }
        for row in &self.unshown {
            _ = writeln!(out, "  {}: {} -> {}", plain(&row.key), plain(&row.old), plain(&row.new));
            if let Some(note) = &row.note {
                _ = writeln!(out, "             {}", plain(note));
            }
        }
        let tell = |out: &mut String, change: &Change, what: &str, end: &str| {
            _ = writeln!(out, "  {:<10} {} [{end}]", class_name(change.class), plain(&format!("{what}: {}", change.says)));
            if let Some(witness) = &change.witness {
                _ = writeln!(out, "             for example: {}", plain(&witness.to_string()));
            }
            if let Some(reason) = &change.approved {
                _ = writeln!(out, "             approved: {}", plain(reason));
            }
            if let Some(note) = &change.note {
                _ = writeln!(out, "             {}", plain(note));
            }
        };
        let list = |out: &mut String, title: &str, moved: &[&Change]| {
            if moved.is_empty() {
                return;
            }
            _ = write!(out, "\n{title}\n");
            for change in moved {
                let about = Some(plain(&described(change))).filter(|about| !about.is_empty()).map(|about| format!(": {about}"));
                let what = plain(&heading(change.operation.as_deref(), &[change]));
                _ = writeln!(out, "  {:<10} {what}{} [{}]", class_name(change.class), about.unwrap_or_default(), marks(change));
                if let Some(reason) = &change.approved {
                    _ = writeln!(out, "             approved: {}", plain(reason));
                }
                if let Some(note) = &change.note {
                    _ = writeln!(out, "             {}", plain(note));
                }
            }
        };
        list(&mut out, REMOVED, &grouping.removed);
        for extent in &grouping.common {
            _ = write!(out, "\n{}\n  {}\n", extent.title, plain(&extent.reached));
            for entry in &extent.entries {
                tell(&mut out, entry.change, &format!("{}. {}", entry.label, entry.place), &format!("{} places", entry.places));
            }
        }
        for group in &grouping.operations {
            _ = write!(out, "\n{}\n", group.heading);
            for class in CLASSES {
                if let Some(mention) = group.see_above(class) {
                    _ = writeln!(out, "  {:<10} see above: {mention}", class_name(class));
                }
                group.of_class(class).for_each(|change| tell(&mut out, change, &change.place, &marks(change)));
            }
        }
        list(&mut out, ADDED, &grouping.added);
        if !self.news.is_empty() {
            _ = write!(out, "\n{NEWS}\n");
        }
        for new in &self.news {
            _ = writeln!(out, "  {}", plain(new));
        }
        _ = write!(out, "\n{}\n", summed(self.summary));
        out
    }

    /// Returns the report as Markdown, with the migration notes before the changes.
    pub fn markdown(&self) -> String {
        let grouping = self.grouping();
        let (old, new) = (marked(&titled(&self.old)), marked(&titled(&self.new)));
        let mut out = format!("# {old} → {new}\n\n{}.\n", summed_once(grouping.distinct, self.summary));
        if !self.notices.is_empty() {
            out.push('\n');
        }
        for notice in &self.notices {
            _ = writeln!(out, "- Note: {}", marked(notice));
        }
        if !grouping.notes.is_empty() {
            out.push_str("\n## What to do\n\n");
        }
        for (number, note) in (1..).zip(&grouping.notes) {
            _ = writeln!(out, "{number}. {note}");
        }
        if !self.unshown.is_empty() {
            _ = write!(out, "\n## {UNSHOWN}\n\n| | {old} | {new} |\n|---|---|---|\n");
        }
        for row in &self.unshown {
            let [key, old, new] = [&code(&row.key), &row.old, &row.new].map(|cell| cell.replace('|', "\\|"));
            let number = row.note.as_deref().and_then(|note| grouping.number_of(note)).map(|number| format!(" → {number}"));
            _ = writeln!(out, "| {key} | {old} | {new}{} |", number.unwrap_or_default());
        }
        let list = |out: &mut String, title: &str, moved: &[&Change]| {
            if moved.is_empty() {
                return;
            }
            _ = write!(out, "\n## {title}\n\n");
            for change in moved {
                let about = Some(described(change)).filter(|about| !about.is_empty()).map(|about| format!(": {}", marked(&about)));
                let what = marked(&heading(change.operation.as_deref(), &[change]));
                let approved = change.approved.as_ref().map(|reason| format!(" (approved: {})", marked(reason))).unwrap_or_default();
                let note = grouping.number(change).map(|number| format!("{approved} → {number}")).unwrap_or(approved);
                _ = writeln!(out, "- {} {what}{}{note} {}", emphasised(change.class), about.unwrap_or_default(), code(&change.fingerprint));
            }
        };
        list(&mut out, REMOVED, &grouping.removed);
        let tell = |out: &mut String, change: &Change, label: &str, place: &str, end: &str| {
            _ = write!(out, "- {} {label}{}: {}", emphasised(change.class), code(place), marked(&change.says));
            if let Some(witness) = &change.witness {
                _ = write!(out, ", for example {}", code(&witness.to_string()));
            }
            if let Some(reason) = &change.approved {
                _ = write!(out, " (approved: {})", marked(reason));
            }
            if let Some(number) = grouping.number(change) {
                _ = write!(out, " → {number}");
            }
            _ = writeln!(out, " {end}");
        };
        for extent in &grouping.common {
            _ = write!(out, "\n## {}\n\n{}.\n\n", extent.title, marked(&extent.reached));
            for entry in &extent.entries {
                tell(&mut out, entry.change, &format!("{}. ", entry.label), &entry.place, &format!("({} places)", entry.places));
            }
        }
        for group in &grouping.operations {
            _ = write!(out, "\n## {}\n\n", marked(&group.heading));
            for class in CLASSES {
                if let Some(mention) = group.see_above(class) {
                    _ = writeln!(out, "- {} see above: {mention}", emphasised(class));
                }
                group.of_class(class).for_each(|change| tell(&mut out, change, "", &change.place, &code(&change.fingerprint)));
            }
        }
        list(&mut out, ADDED, &grouping.added);
        if !self.news.is_empty() {
            _ = write!(out, "\n## {NEWS}\n\n");
        }
        for new in &self.news {
            _ = writeln!(out, "- {new}");
        }
        out
    }
}

impl OperationGroup<'_> {
    /// Returns the labels of the entries at the front of the report that affect this operation and have the given class. None if there is
    /// no such entry.
    fn see_above(&self, class: Class) -> Option<String> {
        let one = |mention: &Mention| match mention.statuses.is_empty() {
            true => mention.label.clone(),
            false => format!("{} ({})", mention.label, mention.statuses.join(", ")),
        };
        let mention: Vec<_> = self.common.iter().filter(|mention| mention.class == class).map(one).collect();
        (!mention.is_empty()).then(|| mention.join(", "))
    }
}

fn emphasised(class: Class) -> String {
    if class == Class::Breaking { "**breaking**".to_owned() } else { class_name(class).to_owned() }
}

/// Escapes Markdown. Paired backticks stay, because the texts of rules contain code spans.
fn marked(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        if ['<', '>', '[', ']', '*', '_', '\\', '#'].contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    // Inside a code span a backslash is visible, so the escapes there are removed.
    let parts: Vec<_> = out.split('`').collect();
    if parts.len() % 2 == 0 {
        return out.replace('`', "\\`");
    }
    let unescaped = |(position, part): (usize, &&str)| {
        if position % 2 == 0 { (*part).to_owned() } else { part.replace("\\\\", "\u{0}").replace('\\', "").replace('\u{0}', "\\") }
    };
    parts.iter().enumerate().map(unescaped).collect::<Vec<_>>().join("`")
}

/// Returns a text as a Markdown code span.
fn code(text: &str) -> String {
    let text = plain(text);
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Document, diff};

    fn report() -> Report {
        let document = |paths, version: &str| {
            Document::new(json!({ "openapi": "3.0.0", "info": { "title": "Pets\u{1b}[2J", "version": version }, "paths": paths }))
                .expect("a document")
        };
        let get = json!({ "summary": "Get them all", "x-required-scope": "pets:read" });
        let old = document(json!({ "/a": { "get": { "operationId": "a", "tags": ["<b>*\n`x"] } }, "/b": { "get": {} } }), "1");
        diff(&old, &document(json!({ "/a": { "get": { "operationId": "a" } }, "/c": { "get": get } }), "2"))
    }

    #[test]
    fn text_begins_with_breaking_changes_and_ends_with_a_summary() {
        let text = report().text();
        let places: Vec<_> =
            ["GET /b", "GET /a (a)", "GET /c"].iter().map(|what| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"))).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("\nRemoved operations\n  breaking   GET /b [operation-removed "), "{text}");
        assert!(text.contains("\nNew operations\n  compatible GET /c: Get them all; scope `pets:read` [operation-added "), "{text}");
        assert!(text.ends_with("\n4 changes: 1 breaking, 1 unknown, 2 compatible\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn markup_in_names_is_escaped() {
        let mut report = report();
        report.news.push("Pets have `names`.".to_owned());
        report.changes.iter_mut().for_each(|change| change.approved = Some("Agreed.".to_owned()));
        assert_eq!(report.text().matches("approved: Agreed.").count(), report.changes.len());
        assert_eq!(report.markdown().matches("(approved: Agreed.)").count(), report.changes.len());
        let markdown = report.markdown();
        assert!(markdown.contains("\n## What else is new\n\n- Pets have `names`.\n"), "{markdown}");
        assert!(markdown.contains("## GET /a (a)\n"), "{markdown}");
        assert!(markdown.contains("no longer tagged \\<b\\>\\*\u{fffd}\\`x; some"), "{markdown}");
    }
}
