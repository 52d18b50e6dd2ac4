#![doc = include_str!("../README.md")]
//! # How the crate is organised
//!
//! - `read` parses a document. `references` resolves `$ref`. `resolve` merges `allOf` into one schema.
//! - `compare` starts the comparison. `operations`, `parameters`, `security`, `servers`, `responses`, `headers` and
//!   `media_types` compare the parts of an operation.
//! - `schema` compares two schemas. `objects`, `keywords`, `choices`, `applicators` and `applicability` are its parts.
//! - `rules` is the table of rules and classes. `report` holds the changes, `notes` adds the notes of a file.
//! - `grouping` groups the changes for display. `print` and `html` render text, Markdown and HTML.

#![warn(clippy::unwrap_used, clippy::expect_used)]

mod applicability;
mod applicators;
mod choices;
mod compare;
mod decisions;
mod differ;
mod discriminators;
mod encodings;
mod files;
mod formats;
mod gate;
mod grouping;
mod headers;
mod html;
mod keywords;
mod media_types;
mod notes;
mod objects;
mod operations;
mod pairing;
mod parameters;
mod print;
mod read;
mod references;
mod report;
mod resolve;
mod responses;
mod rules;
mod schema;
mod security;
mod semantics;
mod servers;
mod values;

pub use compare::diff;
pub use gate::{Approval, Approvals, Gate, Ignored, Severities};
pub use html::STYLE;
pub use notes::{Gaps, Note, Notes};
pub use read::{Document, Unreadable};
pub use report::{Change, OperationName, Report, Shared, Summary, Title, Unshown};
pub use rules::{ALL, Class, Direction, Rule};

#[cfg(test)]
mod tests;
