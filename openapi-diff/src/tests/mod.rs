//! Tests of the comparison of two documents, and helper functions that these tests share.

mod base_document;
mod classification;
mod differential;
mod field_coverage;
mod invariants;
mod mutants;
mod robustness;
mod value_mutations;

use serde_json::Value;

use super::{Change, Document, Report, diff};

fn document(value: &Value) -> Document {
    Document::new(value.clone()).expect("a document")
}

fn compared(old: &Value, new: &Value) -> Report {
    diff(&document(old), &document(new))
}

/// Renders a change as one line.
fn line(change: &Change) -> String {
    let operation = change.operation.as_deref().unwrap_or("document");
    let detail = change.detail.as_ref().map(|detail| format!(" {detail}")).unwrap_or_default();
    format!("{operation} | {} | {}{detail}", change.place, change.rule.id)
}

fn lines(report: &Report) -> Vec<String> {
    report.changes.iter().map(line).collect()
}

/// Returns the OpenAPI documents of revisions A and B of the API, which are committed in the repository.
fn committed() -> [Value; 2] {
    [include_str!("../../../openapi/rev-a.json"), include_str!("../../../openapi/rev-b.json")]
        .map(|text| serde_json::from_str(text).expect("the committed document is JSON"))
}
