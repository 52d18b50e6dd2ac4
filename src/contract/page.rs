//! A report as one HTML page that needs nothing else: both directions, a filter by class, no script.
//!
//! The switch and the filters are form controls, and the style sheet hides what they rule out; so keyboards and screen
//! readers have nothing to be told, and a policy that forbids all scripts is no hindrance.

use std::fmt::Write;

use super::{
    print::{class_name, heading, summed, titled},
    report::Report,
    rules::Class,
};

/// The style sheet of the page: whoever serves it may allow exactly this one.
pub const STYLE: &str = include_str!("page.css");

const CLASSES: [Class; 3] = [Class::Breaking, Class::Unknown, Class::Compatible];

impl Report {
    /// The page. `home` is where it leads back to: an address and what that is called.
    pub fn html(&self, home: Option<(&str, &str)>) -> String {
        let back = self.mirrored();
        let (old, new) = (escaped(&titled(&self.old)), escaped(&titled(&self.new)));
        let mut out = String::with_capacity(400 * self.changes.len() + 8192);
        _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Changes: {old} to {new}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n"
        );
        if let Some((address, name)) = home {
            _ = writeln!(out, "<a class=\"home\" href=\"{}\">{}</a>", escaped(address), escaped(name));
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
        _ = writeln!(out, "<main class=\"{direction}\">\n<p>{}.</p>", escaped(&summed(self.summary)));
        for notice in &self.notices {
            _ = writeln!(out, "<p class=\"notice\">{}</p>", escaped(notice));
        }
        let notes = self.notes();
        if !notes.is_empty() {
            out.push_str("<section class=\"notes\">\n<h2>What to do</h2>\n<ol>\n");
            for (number, note) in (1..).zip(&notes) {
                _ = writeln!(out, "<li id=\"{direction}-{number}\">{}</li>", spans(note));
            }
            out.push_str("</ol>\n</section>\n");
        }
        for (operation, changes) in self.by_operation() {
            // The classes that a section has, so that it goes when all of them are ruled out.
            let classes: Vec<_> = CLASSES
                .iter()
                .filter(|class| changes.iter().any(|change| change.class == **class))
                .map(|class| class_name(*class))
                .collect();
            let heading = escaped(&heading(operation, &changes));
            _ = writeln!(
                out,
                "<section class=\"{}\">\n<h2>{heading}</h2>\n<ul>",
                classes.iter().map(|name| format!("has-{name}")).collect::<Vec<_>>().join(" ")
            );
            for change in changes {
                let name = class_name(change.class);
                _ = write!(
                    out,
                    "<li class=\"{name}\"><span class=\"class {name}\">{name}</span> <code>{}</code> {} ",
                    escaped(&change.place),
                    spans(&change.says)
                );
                if let Some(number) = change.note.as_ref().and_then(|note| notes.iter().position(|one| one == note)) {
                    _ = write!(out, "<a href=\"#{direction}-{0}\">what to do: {0}</a> ", number + 1);
                }
                _ = writeln!(out, "<small>{} <span>{}</span></small></li>", change.rule.id, change.fingerprint);
            }
            out.push_str("</ul>\n</section>\n");
        }
        out.push_str("</main>\n");
    }
}

fn escaped(text: &str) -> String {
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

/// Words with their spans of code.
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

    use crate::contract::{Document, diff};

    #[test]
    fn the_page_shows_both_directions_and_asks_for_nothing_else() {
        let document = |path: &str| {
            Document::new(
                json!({ "openapi": "3.0.0", "info": { "title": "<script>", "version": "1" }, "paths": { (path): { "get": {} } } }),
            )
            .expect("a document")
        };
        let page = diff(&document("/a"), &document("/b\"'>")).html(Some(("/docs", "Documentation")));
        for (what, count) in
            [("the operation is gone", 2), ("the operation is new", 2), ("<main", 2), ("<script", 0), ("http", 0), ("src=", 0), ("url(", 0)]
        {
            assert_eq!(page.matches(what).count(), count, "{what}: {page}");
        }
        assert!(page.contains("GET /b&quot;&#39;&gt;") && page.contains("href=\"/docs\""));
    }
}
