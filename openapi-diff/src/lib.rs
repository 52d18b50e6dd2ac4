#![doc = include_str!("../README.md")]
//! # How the crate is organised
//!
//! - `read` parses a document, and `referenced_files` loads the files that the document refers to. `references` resolves `$ref`.
//!   `schema_resolution` merges `allOf` into one schema.
//! - `compare` starts the comparison, and `comparison_state` holds its state. `operations`, `parameters`, `security`, `servers`,
//!   `responses`, `headers`, `media_types` and `encodings` compare the parts of an operation.
//! - `schema` compares two schemas. `object_keywords`, `validation_keywords`, `keyword_applicability`, `one_of_any_of`, `variant_pairing`,
//!   `discriminators` and `not_if_contains` compare the parts of a schema. `classification` and `semantics` compare the values that two
//!   schemas accept (validity, schema containment, counter-examples).
//! - `rules` is the table of rules and classes. `report` holds the changes. `migration_notes` adds notes for integrators to the changes.
//!   `ci_gate` applies the decisions of a team.
//! - `response_conformance` checks a response against a document. `replay` compares the responses of two servers.
//! - `grouping` groups the changes for display. `text_and_markdown` and `html` render text, Markdown and HTML. `ci_report_formats` renders
//!   SARIF, JUnit XML and annotations of GitHub Actions.

#![warn(clippy::unwrap_used, clippy::expect_used)]

mod ci_gate;
mod ci_report_formats;
mod classification;
mod compare;
mod comparison_state;
mod discriminators;
mod encodings;
mod grouping;
mod headers;
mod html;
mod json_values;
mod keyword_applicability;
mod media_types;
mod migration_notes;
mod not_if_contains;
mod object_keywords;
mod one_of_any_of;
mod operations;
mod parameters;
mod read;
mod referenced_files;
mod references;
pub mod replay;
mod report;
mod response_conformance;
mod responses;
mod rules;
mod schema;
mod schema_resolution;
mod security;
mod semantics;
mod servers;
mod text_and_markdown;
mod validation_keywords;
mod variant_pairing;

pub use ci_gate::{Approval, Approvals, Gate, Ignored, Severities};
pub use compare::diff;
pub use html::{DocumentedAt, PageContext, STYLE};
pub use migration_notes::{Note, NoteMismatches, Notes};
pub use read::{Document, Unreadable};
pub use report::{Change, OperationName, Report, Shared, Summary, Title, UndocumentedDifference};
pub use rules::{ALL, Class, Direction, Rule};

#[cfg(test)]
mod tests;
