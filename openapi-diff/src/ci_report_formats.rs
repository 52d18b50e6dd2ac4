//! Machine-readable report formats: SARIF 2.1.0, JUnit XML, and annotations of GitHub Actions.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::{Value, json};

use super::{
    report::{Change, Report},
    rules::Class,
    text_and_markdown::{class_name, plain},
};

/// Renders a change as one line of text.
fn line(change: &Change) -> String {
    let operation = change.operation.as_deref().unwrap_or("document");
    let witness = change.witness.as_ref().map(|value| format!(" (for example {value})")).unwrap_or_default();
    plain(&format!("{operation}, {}: {}{witness}", change.place, change.says))
}

impl Report {
    /// Returns the report as SARIF 2.1.0. `file` is the path of the new document.
    pub fn sarif(&self, file: &str) -> String {
        let rules: BTreeMap<&str, &str> = self.changes.iter().map(|change| (change.rule.id, change.rule.says)).collect();
        let rules: Vec<_> = rules.into_iter().map(|(id, says)| json!({ "id": id, "shortDescription": { "text": says } })).collect();
        let results: Vec<_> = self.changes.iter().map(|change| result(change, file)).collect();
        let driver = json!({ "name": "openapi-diff", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{ "tool": { "driver": driver }, "results": results }]
        });
        format!("{log:#}\n")
    }

    /// Returns the report as JUnit XML, with a test case for each change. A test case fails if its change is not approved and is of the
    /// class `mildest` or a more severe one.
    pub fn junit(&self, mildest: Class) -> String {
        let failures = self.failing(mildest).count();
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"openapi-diff\" tests=\"{}\" failures=\"{failures}\">\n",
            self.changes.len().max(1)
        );
        if self.changes.is_empty() {
            out.push_str("<testcase classname=\"document\" name=\"no change\"/>\n");
        }
        for change in &self.changes {
            let class = escaped(change.operation.as_deref().unwrap_or("document"));
            let name = escaped(&format!("{} {} {}", change.place, change.rule.id, change.fingerprint));
            _ = write!(out, "<testcase classname=\"{class}\" name=\"{name}\"");
            if change.class <= mildest && change.approved.is_none() {
                let kind = class_name(change.class);
                _ = writeln!(out, "><failure type=\"{kind}\" message=\"{}\"/></testcase>", escaped(&line(change)));
            } else {
                out.push_str("/>\n");
            }
        }
        out.push_str("</testsuite>\n</testsuites>\n");
        out
    }

    /// Returns the report as annotations of a GitHub Actions run, without compatible changes. `file` is the path of the new document.
    pub fn github(&self, file: &str) -> String {
        let mut out = String::new();
        for change in self.changes.iter().filter(|change| change.class != Class::Compatible) {
            let level = match (&change.approved, change.class) {
                (Some(_), _) => "notice",
                (None, Class::Breaking) => "error",
                (None, _) => "warning",
            };
            let title = property(&format!("{} ({})", change.rule.id, change.fingerprint));
            _ = writeln!(out, "::{level} file={},title={title}::{}", property(file), message(&line(change)));
        }
        out
    }
}

fn result(change: &Change, file: &str) -> Value {
    let level = match change.class {
        Class::Breaking => "error",
        Class::Unknown => "warning",
        Class::Compatible => "note",
    };
    let place = format!("{} {}", change.operation.as_deref().unwrap_or("document"), change.place);
    let mut result = json!({
        "ruleId": change.rule.id,
        "level": level,
        "message": { "text": line(change) },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": file }, "region": { "startLine": 1 } },
            "logicalLocations": [{ "fullyQualifiedName": plain(&place) }]
        }],
        "partialFingerprints": { "openapiDiff/v1": change.fingerprint }
    });
    if let Some(reason) = &change.approved {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

/// Escapes the message of a GitHub annotation.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a GitHub annotation, such as `title`.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Escapes a text for XML.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, diff};

    fn report() -> Report {
        let document = |paths| Document::new(json!({ "openapi": "3.0.0", "paths": paths })).expect("a document");
        let mut report = diff(&document(json!({ "/a": { "get": {} }, "/b<\n": { "get": {} } })), &document(json!({})));
        report.changes[1].approved = Some("Nothing calls it.".to_owned());
        report
    }

    #[test]
    fn sarif_holds_a_result_for_each_change() {
        let log: Value = serde_json::from_str(&report().sarif("new.json")).expect("JSON");
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert_eq!((results.len(), &results[0]["level"], &results[0]["ruleId"]), (2, &json!("error"), &json!("operation-removed")));
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "new.json");
        assert_eq!(results[1]["suppressions"][0]["justification"], "Nothing calls it.");
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn junit_fails_for_changes_that_are_not_approved() {
        let text = report().junit(Class::Breaking);
        assert!(text.contains("tests=\"2\" failures=\"1\"") && text.matches("<failure").count() == 1, "{text}");
        assert!(text.contains("GET /b&lt;"), "{text}");
    }

    #[test]
    fn annotations_are_one_line_each() {
        let text = report().github("a,b.json");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("::error file=a%2Cb.json,title=operation-removed (") && lines[1].starts_with("::notice "), "{text}");
    }
}
