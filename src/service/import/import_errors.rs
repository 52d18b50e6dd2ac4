//! Errors of an import: faults of lines, each with its line number and path, and failures of the input and the database.

use std::{fmt, io};

use super::MAX_FAULTS;
use crate::{domain::ids::StoreId, store};

/// Why an import failed. Nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// What is wrong with the records, at most [`MAX_FAULTS`] faults.
    #[error("{}", listed(.0))]
    Faults(Vec<LineFault>),
    #[error("there is no store `{0}`; `counterpart store create --id {0} --name NAME` makes it")]
    NoStore(StoreId),
    #[error("the input cannot be read: {0}")]
    Input(#[from] io::Error),
    /// The file changed during the import. `before` is its size in bytes when the import began, `after` its size in a later pass over it.
    #[error("the input changed while it was read: it had {before} bytes, and now has {after}; import it once nothing writes to it")]
    Changed { before: u64, after: u64 },
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("the reading thread ended early")]
    Reader,
}

impl ImportError {
    pub(super) fn line(line: u64, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Faults(vec![LineFault::new(line, place, reason)])
    }

    /// Makes an error of a fault that belongs to no single line.
    pub(super) fn at(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Faults(vec![LineFault { line: None, place: place.into(), reason: reason.into() }])
    }
}

/// A fault of the input. `place` is the kind of the record and the path of the property, if the fault has them.
#[derive(Debug)]
pub struct LineFault {
    pub line: Option<u64>,
    pub place: String,
    pub reason: String,
}

impl LineFault {
    pub(super) fn new(line: u64, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { line: Some(line), place: place.into(), reason: reason.into() }
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(out, "line {line}: ")?;
        }
        if !self.place.is_empty() {
            write!(out, "{}: ", self.place)?;
        }
        out.write_str(&self.reason)
    }
}

/// Returns the faults as text, one per line.
fn listed(faults: &[LineFault]) -> String {
    let mut lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if faults.len() >= MAX_FAULTS {
        lines.push(format!("these are the first {MAX_FAULTS} faults; there may be more"));
    }
    lines.join("\n")
}
