//! Renders a report as one self-contained HTML page with both directions and a filter by class.
//!
//! The switch of the direction and the filters are form controls, and the style sheet hides what they exclude. The page works with
//! keyboards and screen readers, and under a content security policy that forbids all scripts.

use std::fmt::Write;

use super::{
    grouping::{Grouping, Mention, OperationGroup},
    print::{ADDED, CLASSES, NEWS, REMOVED, UNSHOWN, class_name, described, heading, summed_once, titled},
    report::{Change, Report},
    rules::Class,
};

/// The style sheet of the page. A server can allow exactly this style sheet.
pub const STYLE: &str = include_str!("html.css");

impl Report {
    /// Renders the page. `links` are the addresses and names of other pages, for the navigation.
    pub fn html(&self, links: &[(&str, &str)]) -> String {
        let back = self.mirrored();
        let (old, new) = (escaped(&titled(&self.old)), escaped(&titled(&self.new)));
        let mut out = String::with_capacity(400 * self.changes.len() + 8192);
        _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Changes: {old} to {new}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n"
        );
        if !links.is_empty() {
            let links: Vec<_> = links.iter().map(|(to, name)| format!("<a href=\"{}\">{}</a>", escaped(to), escaped(name))).collect();
            _ = writeln!(out, "<nav>{}</nav>", links.join("\n"));
        }
        _ = write!(
            out,
            "<h1>Changes</h1>\n<form autocomplete=\"off\">\n<fieldset>\n<legend>Direction</legend>\n\
             <label><input type=\"radio\" name=\"direction\" id=\"there\" checked> {old} <b>→</b> {new}</label>\n\
             <label><input type=\"radio\" name=\"direction\" id=\"back\"> {new} <b>→</b> {old}</label>\n\
             </fieldset>\n<fieldset>\n<legend>Show</legend>\n"
        );
        for class in CLASSES {
            let name = class_name(class);
            let (one, other) = (self.of_class(class).count(), back.of_class(class).count());
            _ = writeln!(
                out,
                "<label><input type=\"checkbox\" id=\"{name}\" checked> <span class=\"class {name}\">{name}</span> \
                 <span class=\"there\">{one}</span><span class=\"back\">{other}</span></label>"
            );
        }
        out.push_str("</fieldset>\n</form>\n</header>\n");
        for (direction, report) in [("there", self), ("back", &back)] {
            report.body(&mut out, direction);
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    fn body(&self, out: &mut String, direction: &str) {
        let grouping = self.grouping();
        _ = writeln!(out, "<main class=\"{direction}\">\n<p>{}.</p>", escaped(&summed_once(grouping.distinct, self.summary)));
        for notice in &self.notices {
            _ = writeln!(out, "<p class=\"notice\">{}</p>", escaped(notice));
        }
        if !grouping.notes.is_empty() {
            out.push_str("<section class=\"notes\">\n<h2>What to do</h2>\n<ol>\n");
            for (number, note) in (1..).zip(&grouping.notes) {
                _ = writeln!(out, "<li id=\"{direction}-{number}\">{}</li>", spans(note));
            }
            out.push_str("</ol>\n</section>\n");
        }
        self.unshown(out, &grouping, direction);
        let list = |out: &mut String, title: &str, moved: &[&Change]| {
            if moved.is_empty() {
                return;
            }
            open(out, |class| moved.iter().any(|change| change.class == class), title);
            out.push_str("<ul>\n");
            for change in moved {
                let end = format!("{} <span>{}</span>", change.rule.id, change.fingerprint);
                item(out, &grouping, direction, change, ">", &heading(change.operation.as_deref(), &[change]), &end);
            }
            out.push_str("</ul>\n</section>\n");
        };
        list(out, REMOVED, &grouping.removed);
        for extent in &grouping.common {
            let has = |class| extent.entries.iter().any(|entry| entry.change.class == class);
            open(out, has, &extent.title);
            _ = writeln!(out, "<p>{}.</p>\n<ul>", escaped(&extent.reached));
            for entry in &extent.entries {
                let label = format!(" id=\"{direction}-{}\"><b>{}.</b>", entry.label, entry.label);
                let end = format!("{} · {} places", entry.change.rule.id, entry.places);
                item(out, &grouping, direction, entry.change, &label, &entry.place, &end);
            }
            out.push_str("</ul>\n</section>\n");
        }
        for group in &grouping.operations {
            open(out, |class| group.has(class), &group.heading);
            out.push_str("<ul>\n");
            for class in CLASSES {
                see_above(out, direction, group, class);
                for change in group.of_class(class) {
                    let end = format!("{} <span>{}</span>", change.rule.id, change.fingerprint);
                    item(out, &grouping, direction, change, ">", &change.place, &end);
                }
            }
            out.push_str("</ul>\n</section>\n");
        }
        list(out, ADDED, &grouping.added);
        if !self.news.is_empty() {
            _ = write!(out, "<section>\n<h2>{NEWS}</h2>\n<ul>\n");
            self.news.iter().for_each(|new| _ = writeln!(out, "<li>{}</li>", spans(new)));
            out.push_str("</ul>\n</section>\n");
        }
        out.push_str("</main>\n");
    }

    fn unshown(&self, out: &mut String, grouping: &Grouping, direction: &str) {
        if self.unshown.is_empty() {
            return;
        }
        let [old, new] = [&self.old, &self.new].map(|title| escaped(&titled(title)));
        _ = writeln!(out, "<section>\n<h2>{UNSHOWN}</h2>\n<table>\n<tr><th>{old}</th><th>{new}</th></tr>");
        for row in &self.unshown {
            let number = row.note.as_deref().and_then(|note| grouping.number_of(note));
            let link = number.map(|number| format!(" <a href=\"#{direction}-{number}\">what to do: {number}</a>")).unwrap_or_default();
            _ = writeln!(out, "<tr><td>{}</td><td>{}{link}</td></tr>", spans(&row.old), spans(&row.new));
        }
        out.push_str("</table>\n</section>\n");
    }
}

/// Begins a section. Its CSS classes name the classes of its changes, so that it is hidden when all of them are excluded.
fn open(out: &mut String, has: impl Fn(Class) -> bool, heading: &str) {
    let classes: Vec<_> = CLASSES.into_iter().filter(|class| has(*class)).map(|class| format!("has-{}", class_name(class))).collect();
    _ = writeln!(out, "<section class=\"{}\">\n<h2>{}</h2>", classes.join(" "), escaped(heading));
}

/// Writes a change as a list item. `label` completes the opening tag of the item.
fn item(out: &mut String, grouping: &Grouping, direction: &str, change: &Change, label: &str, place: &str, end: &str) {
    let name = class_name(change.class);
    _ = write!(
        out,
        "<li class=\"{name}\"{label} <span class=\"class {name}\">{name}</span> <code>{}</code> {} ",
        escaped(place),
        spans(&Some(described(change)).filter(|about| !about.is_empty()).unwrap_or_else(|| change.says.clone()))
    );
    if let Some(witness) = &change.witness {
        _ = write!(out, "<small>for example <code>{}</code></small> ", escaped(&witness.to_string()));
    }
    if let Some(reason) = &change.approved {
        _ = write!(out, "<small>approved: {}</small> ", escaped(reason));
    }
    if let Some(number) = grouping.number(change) {
        _ = write!(out, "<a href=\"#{direction}-{number}\">what to do: {number}</a> ");
    }
    _ = writeln!(out, "<small>{end}</small></li>");
}

/// Writes links to the entries at the front that affect this operation.
fn see_above(out: &mut String, direction: &str, group: &OperationGroup, class: Class) {
    let link = |mention: &Mention| {
        let link = format!("<a href=\"#{direction}-{0}\">{0}</a>", mention.label);
        if mention.statuses.is_empty() { link } else { format!("{link} ({})", escaped(&mention.statuses.join(", "))) }
    };
    let mention: Vec<_> = group.common.iter().filter(|mention| mention.class == class).map(link).collect();
    if !mention.is_empty() {
        let name = class_name(class);
        _ = writeln!(out, "<li class=\"{name}\"><span class=\"class {name}\">{name}</span> see above: {}</li>", mention.join(", "));
    }
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text and renders its code spans. A text with an unpaired backtick has no code spans.
fn spans(text: &str) -> String {
    let parts: Vec<_> = text.split('`').collect();
    if parts.len() % 2 == 0 {
        return escaped(text);
    }
    let part = |(position, part): (usize, &&str)| if position % 2 == 0 { escaped(part) } else { format!("<code>{}</code>", escaped(part)) };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Document, diff};

    #[test]
    fn the_page_shows_both_directions_and_loads_nothing_else() {
        let document = |path: &str| {
            Document::new(
                json!({ "openapi": "3.0.0", "info": { "title": "<script>", "version": "1" }, "paths": { (path): { "get": {} } } }),
            )
            .expect("a document")
        };
        let page = diff(&document("/a"), &document("/b\"'>")).html(&[("/docs", "Documentation")]);
        for (what, count) in
            [("the operation is gone", 2), ("the operation is new", 2), ("<main", 2), ("<script", 0), ("http", 0), ("src=", 0), ("url(", 0)]
        {
            assert_eq!(page.matches(what).count(), count, "{what}: {page}");
        }
        assert!(page.contains("GET /b&quot;&#39;&gt;") && page.contains("href=\"/docs\""));
    }
}
