//! Renders a report as one self-contained HTML page with a filter by class of change (breaking, unknown, compatible). The page shows the
//! changes from the old document to the new one and the reverse changes, and the reader switches between these directions.
//!
//! Each direction begins with a summary and a table of the operations that changed. A list of what to do about the changes follows. The
//! switch and the filters are form controls, and the style sheet hides what they exclude. So the page works with keyboards and screen
//! readers, and under a content security policy that forbids all scripts.

use std::collections::{BTreeMap, BTreeSet};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    grouping::{Grouping, OperationGroup},
    report::{Change, Report},
    rules::Class,
    text_and_markdown::{ADDED, CLASSES, NEWS, REMOVED, UNSHOWN, class_name, described, heading, summed_once, titled},
};

/// The style sheet of the page. A server can allow exactly this style sheet in its content security policy, by its hash.
pub const STYLE: &str = include_str!("html.css");

/// A function that returns the URL of the documentation of an operation, given its `operationId`.
pub type DocumentedAt<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a server adds to the page.
#[derive(Clone, Copy, Default)]
pub struct PageContext<'a> {
    /// The URLs and names of other pages, for the navigation.
    pub links: &'a [(&'a str, &'a str)],
    pub documented_at: Option<DocumentedAt<'a>>,
    /// The URL of a script that the page loads.
    pub script: Option<&'a str>,
}

impl std::fmt::Debug for PageContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageContext").field("links", &self.links).field("script", &self.script).finish_non_exhaustive()
    }
}

impl Report {
    /// Renders the report as an HTML page.
    pub fn html(&self, around: &PageContext<'_>) -> String {
        let back = self.mirrored();
        let (old, new) = (titled(&self.old), titled(&self.new));
        let counted = |class| (self.of_class(class).count(), back.of_class(class).count());
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { "Changes: " (old) " to " (new) }
                    style { (PreEscaped(STYLE)) }
                    @if let Some(script) = around.script { script type="module" src=(script) {} }
                }
                body {
                    header {
                        @if !around.links.is_empty() { nav { @for (to, name) in around.links { a href=(to) { (name) } "\n" } } }
                        h1 { "Changes" }
                        form autocomplete="off" {
                            fieldset {
                                legend { "Direction" }
                                label { input type="radio" name="direction" id="there" checked; " " (old) " " b { "→" } " " (new) }
                                label { input type="radio" name="direction" id="back"; " " (new) " " b { "→" } " " (old) }
                            }
                            fieldset {
                                legend { "Show" }
                                @for class in CLASSES {
                                    @let (name, (one, other)) = (class_name(class), counted(class));
                                    label {
                                        input type="checkbox" id=(name) checked; " " span class={ "class " (name) } { (name) } " "
                                        span.there { (one) } span.back { (other) }
                                    }
                                }
                            }
                        }
                    }
                    (ReportDirection { report: self, name: "there", grouping: self.grouping(), around }.main())
                    (ReportDirection { report: &back, name: "back", grouping: back.grouping(), around }.main())
                }
            }
        }
        .into_string()
            + "\n"
    }
}

/// One direction of the page: from the old document to the new one, or back.
struct ReportDirection<'r> {
    report: &'r Report,
    /// The CSS class of the direction, and the prefix of the ids of its elements.
    name: &'static str,
    grouping: Grouping<'r>,
    around: &'r PageContext<'r>,
}

impl ReportDirection<'_> {
    fn main(&self) -> Markup {
        let Self { report, name, grouping, .. } = self;
        html! {
            main class=(name) {
                p { (text(&summed_once(grouping.distinct, report.summary))) "." }
                @for notice in &report.notices { p.notice { (text(notice)) } }
                (self.by_operation())
                @if !grouping.notes.is_empty() {
                    section.notes {
                        h2 { "What to do" }
                        ol { @for (number, note) in (1..).zip(&grouping.notes) { li id={ (name) "-" (number) } { (spans(note)) } } }
                    }
                }
                @if !report.news.is_empty() {
                    section { h2 { (NEWS) } ul { @for new in &report.news { li { (spans(new)) } } } }
                }
                (self.unshown())
                (self.list(REMOVED, &grouping.removed))
                (self.list(ADDED, &grouping.added))
                @for extent in &grouping.common {
                    section class=(shown_with(|class| extent.entries.iter().any(|entry| entry.change.class == class))) {
                        h2 { (text(&extent.title)) }
                        p { (text(&extent.reached)) "." }
                        ul {
                            @for entry in &extent.entries {
                                li class=(class_name(entry.change.class)) id={ (name) "-" (entry.label) } {
                                    b { (entry.label) "." } " "
                                    (self.item(entry.change, &entry.place, &html! { (entry.change.rule.id) " · " (entry.places) " places" }))
                                }
                            }
                        }
                    }
                }
                @for (number, group) in grouping.operations.iter().enumerate() {
                    section class=(shown_with(|class| group.has(class))) id={ (name) "-operation-" (number) } {
                        h2 { (text(&group.heading)) @if let Some(to) = self.documented_at(group) { " " a href=(to) { "documentation" } } }
                        ul { @for class in CLASSES { (self.of_operation(group, class)) } }
                    }
                }
            }
        }
    }

    fn documented_at(&self, group: &OperationGroup<'_>) -> Option<String> {
        self.around.documented_at?(group.id?)
    }

    /// Renders a table of the operations. Each row has the number of changes of each class, and links to steps of the list "What to do".
    fn by_operation(&self) -> Markup {
        let Self { name, grouping, .. } = self;
        let entries: BTreeMap<_, _> =
            grouping.common.iter().flat_map(|extent| &extent.entries).map(|entry| (&entry.label, entry.change)).collect();
        let counted = |changes: &[&Change], class| match changes.iter().filter(|change| change.class == class).count() {
            0 => String::new(),
            count => count.to_string(),
        };
        html! {
            @if grouping.operations.len() > 1 {
                section.operations {
                    h2 { "By operation" }
                    @if let Some(extent) = grouping.common.iter().find(|extent| extent.is_everywhere) {
                        p { "Without the changes in every answer: " @for entry in &extent.entries { a href={ "#" (name) "-" (entry.label) } { (entry.label) } " " } }
                    }
                    table {
                        tr { th scope="col" { "Operation" } th scope="col" { "What to do" } @for class in CLASSES { th scope="col" class={ "class " (class_name(class)) } { (class_name(class)) } } }
                        @for (number, group) in grouping.operations.iter().enumerate() {
                            @let changes = changes_of(group, &entries);
                            @let steps: BTreeSet<_> = changes.iter().filter_map(|change| grouping.number(change)).collect();
                            tr {
                                th scope="row" { a href={ "#" (name) "-operation-" (number) } { (text(&group.heading)) } }
                                td { @for (at, step) in steps.iter().enumerate() { @if at > 0 { ", " } a href={ "#" (name) "-" (step) } { (step) } } }
                                @for class in CLASSES { td { (counted(&changes, class)) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn unshown(&self) -> Markup {
        let [old, new] = [&self.report.old, &self.report.new].map(titled);
        html! {
            @if !self.report.unshown.is_empty() {
                section {
                    h2 { (UNSHOWN) }
                    table {
                        tr { th scope="col" { (text(&old)) } th scope="col" { (text(&new)) } }
                        @for row in &self.report.unshown {
                            @let number = row.note.as_deref().and_then(|note| self.grouping.number_of(note));
                            tr { td { (spans(&row.old)) } td { (spans(&row.new)) " " (self.step(number)) } }
                        }
                    }
                }
            }
        }
    }

    /// Renders a list of the operations that were added or removed.
    fn list(&self, title: &str, moved: &[&Change]) -> Markup {
        html! {
            @if !moved.is_empty() {
                section class=(shown_with(|class| moved.iter().any(|change| change.class == class))) {
                    h2 { (title) }
                    ul {
                        @for change in moved {
                            li class=(class_name(change.class)) { (self.item(change, &heading(change.operation.as_deref(), &[change]), &identified(change))) }
                        }
                    }
                }
            }
        }
    }

    /// Renders the changes of a class that are shown under an operation. Before them come links to the entries at the front of the report
    /// (changes that are the same at many locations) that affect the operation.
    fn of_operation(&self, group: &OperationGroup<'_>, class: Class) -> Markup {
        let common: Vec<_> = group.common.iter().filter(|mention| mention.class == class).collect();
        let name = class_name(class);
        html! {
            @if !common.is_empty() {
                li class=(name) {
                    span class={ "class " (name) } { (name) } " see above: "
                    @for (at, mention) in common.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href={ "#" (self.name) "-" (mention.label) } { (mention.label) }
                        @if !mention.statuses.is_empty() { " (" (text(&mention.statuses.join(", "))) ")" }
                    }
                }
            }
            @for change in group.of_class(class) { li class=(name) { (self.item(change, &change.place, &identified(change))) } }
        }
    }

    /// Renders a change. `end` is rendered after the change. It contains the rule and either the fingerprint or the number of locations.
    fn item(&self, change: &Change, place: &str, end: &Markup) -> Markup {
        let name = class_name(change.class);
        let says = Some(described(change)).filter(|about| !about.is_empty()).unwrap_or_else(|| change.says.clone());
        html! {
            span class={ "class " (name) } { (name) } " " code { (text(place)) } " " (spans(&says)) " "
            @if let Some(witness) = &change.witness { small { "for example " code { (text(&witness.to_string())) } } " " }
            @if let Some(reason) = &change.approved { small { "approved: " (text(reason)) } " " }
            (self.step(self.grouping.number(change)))
            small { (end) }
        }
    }

    /// Renders a link to a step of the list "What to do".
    fn step(&self, number: Option<usize>) -> Markup {
        html! { @if let Some(number) = number { a href={ "#" (self.name) "-" (number) } { "what to do: " (number) } " " } }
    }
}

/// Returns the changes that affect an operation: one for each entry at the front of the report (a change that is the same at many
/// locations) to which the operation refers, then the changes that are shown under the operation.
fn changes_of<'r>(group: &'r OperationGroup<'r>, entries: &BTreeMap<&String, &'r Change>) -> Vec<&'r Change> {
    let common = group.common.iter().filter_map(|mention| entries.get(&mention.label).copied());
    common.chain(group.changes.iter().copied()).collect()
}

/// Returns the CSS classes of a section: one for each kind of change in it (breaking, unknown, compatible). The section is hidden if the
/// filters exclude all of these kinds.
fn shown_with(has: impl Fn(Class) -> bool) -> String {
    CLASSES.into_iter().filter(|class| has(*class)).map(|class| format!("has-{}", class_name(class))).collect::<Vec<_>>().join(" ")
}

fn identified(change: &Change) -> Markup {
    html! { (change.rule.id) " " span { (change.fingerprint) } }
}

/// Returns a text with its control characters replaced, because a page must not contain them.
fn text(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Renders a text, with the parts between backticks as code spans. A text with an unpaired backtick is rendered as it is.
fn spans(value: &str) -> Markup {
    let parts: Vec<_> = value.split('`').collect();
    if parts.len() % 2 == 0 {
        return html! { (text(value)) };
    }
    html! { @for (at, part) in parts.iter().enumerate() { @if at % 2 == 0 { (text(part)) } @else { code { (text(part)) } } } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::PageContext;
    use crate::{Document, diff};

    #[test]
    fn the_html_page_shows_both_directions_and_loads_no_external_resources() {
        let document = |path: &str| {
            Document::new(
                json!({ "openapi": "3.0.0", "info": { "title": "<script>", "version": "1" }, "paths": { (path): { "get": {} } } }),
            )
            .expect("a document")
        };
        let page = diff(&document("/a"), &document("/b\"'>"))
            .html(&PageContext { links: &[("/docs", "Documentation")], ..PageContext::default() });
        for (what, count) in
            [("the operation is gone", 2), ("the operation is new", 2), ("<main", 2), ("<script", 0), ("http", 0), ("src=", 0), ("url(", 0)]
        {
            assert_eq!(page.matches(what).count(), count, "{what}: {page}");
        }
        assert!(page.contains("GET /b&quot;'&gt;") && page.contains("href=\"/docs\""));
    }
}
