//! A report as text for a terminal and as Markdown.
//!
//! Names come from documents that anybody may have written: control characters never get through to a terminal, and
//! nothing of a name is taken for markup.

use std::fmt::Write;

use super::{
    report::{Change, Report, Summary, Title},
    rules::Class,
};

/// One word for a class.
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
    let Summary { breaking, unknown, compatible } = summary;
    let all = breaking + unknown + compatible;
    format!("{all} change{}: {breaking} breaking, {unknown} unknown, {compatible} compatible", if all == 1 { "" } else { "s" })
}

/// Without control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// What a group of changes stands under.
pub(super) fn heading(operation: Option<&str>, changes: &[&Change]) -> String {
    let id = changes.iter().find_map(|change| change.operation_id.as_deref());
    match (operation, id) {
        (None, _) => "The document".to_owned(),
        (Some(operation), None) => plain(operation),
        (Some(operation), Some(id)) => plain(&format!("{operation} ({id})")),
    }
}

impl Report {
    /// The report for people at a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{} -> {}\n", titled(&self.old), titled(&self.new));
        for notice in &self.notices {
            _ = writeln!(out, "note: {}", plain(notice));
        }
        for (operation, changes) in self.by_operation() {
            _ = write!(out, "\n{}\n", heading(operation, &changes));
            for change in changes {
                let line = format!("  {:<10} {}: {}", class_name(change.class), change.place, change.says);
                _ = writeln!(out, "{} [{}]", plain(&line), change.fingerprint);
                if let Some(note) = &change.note {
                    _ = writeln!(out, "             {}", plain(note));
                }
            }
        }
        _ = write!(out, "\n{}\n", summed(self.summary));
        out
    }

    /// The report as Markdown, what to do about it first.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {} → {}\n\n{}.\n", marked(&titled(&self.old)), marked(&titled(&self.new)), summed(self.summary));
        if !self.notices.is_empty() {
            out.push('\n');
        }
        for notice in &self.notices {
            _ = writeln!(out, "- Note: {}", marked(notice));
        }
        let notes = self.notes();
        if !notes.is_empty() {
            out.push_str("\n## What to do\n\n");
        }
        for (number, note) in (1..).zip(&notes) {
            _ = writeln!(out, "{number}. {note}");
        }
        for (operation, changes) in self.by_operation() {
            _ = write!(out, "\n## {}\n\n", marked(&heading(operation, &changes)));
            for change in changes {
                let mut class = class_name(change.class).to_owned();
                if change.class == Class::Breaking {
                    class = format!("**{class}**");
                }
                _ = write!(out, "- {class} {}: {}", code(&change.place), marked(&change.says));
                if let Some(number) = change.note.as_ref().and_then(|note| notes.iter().position(|one| one == note)) {
                    _ = write!(out, " → {}", number + 1);
                }
                _ = writeln!(out, " `{}`", change.fingerprint);
            }
        }
        out
    }
}

/// Text in which nothing is markup but the backticks of our own words.
fn marked(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        if ['<', '>', '[', ']', '*', '_', '\\', '#'].contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    // Within backticks a backslash would be seen.
    let parts: Vec<_> = out.split('`').collect();
    if parts.len() % 2 == 0 {
        return out.replace('`', "\\`");
    }
    let unescaped = |(position, part): (usize, &&str)| {
        if position % 2 == 0 { (*part).to_owned() } else { part.replace("\\\\", "\u{0}").replace('\\', "").replace('\u{0}', "\\") }
    };
    parts.iter().enumerate().map(unescaped).collect::<Vec<_>>().join("`")
}

/// A span of code, whatever is in it.
fn code(text: &str) -> String {
    let text = plain(text);
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::{Document, diff};

    fn report() -> Report {
        let document = |paths, version: &str| {
            Document::new(json!({ "openapi": "3.0.0", "info": { "title": "Pets\u{1b}[2J", "version": version }, "paths": paths }))
                .expect("a document")
        };
        let old = document(json!({ "/a": { "get": { "operationId": "a", "tags": ["<b>*\n`x"] } }, "/b": { "get": {} } }), "1");
        diff(&old, &document(json!({ "/a": { "get": { "operationId": "a" } }, "/c": { "get": {} } }), "2"))
    }

    #[test]
    fn text_has_breaking_changes_first_and_a_sum_last() {
        let text = report().text();
        let places: Vec<_> =
            ["GET /b", "GET /a (a)", "GET /c"].iter().map(|what| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"))).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("  breaking   operation: the operation is gone ["), "{text}");
        assert!(text.ends_with("\n4 changes: 1 breaking, 1 unknown, 2 compatible\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn nothing_that_is_quoted_is_markup() {
        let markdown = report().markdown();
        assert!(markdown.contains("## GET /a (a)\n"), "{markdown}");
        assert!(markdown.contains("no longer tagged \\<b\\>\\*\u{fffd}\\`x; some"), "{markdown}");
    }
}
