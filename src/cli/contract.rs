//! `counterpart contract diff`: what changed between two OpenAPI documents, and whom it breaks.

use std::{
    fs::{self, File},
    io::{self, Read},
    process::ExitCode,
};

use clap::{Args, Subcommand, ValueEnum};

use super::{Failed, complain, note, print};
use crate::contract::{self, Class, Document, Notes, Report};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Tell what changed between two OpenAPI documents, and whom it breaks
    ///
    /// Takes OpenAPI 3.0 and 3.1, JSON or YAML. Every difference beside descriptions and examples is told by operation,
    /// place and direction, as breaking, compatible, or unknown where the documents alone cannot tell. What an integrator
    /// may send must not shrink, what an integrator is sent must not grow, and names that generated clients are made of
    /// must not go away. Each change has a fingerprint that stays while other things change.
    ///
    /// Exit code: 0 without a breaking change, 1 with one, 2 when it was called wrongly or a file cannot be read.
    Diff(Diff),
}

/// What is compared, and how it is shown.
#[derive(Args, Debug)]
pub struct Diff {
    /// The document as it was: a file, or `-` for standard input
    old: String,

    /// The document as it is
    new: String,

    #[arg(long, env = "COUNTERPART_DIFF_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,

    /// A file to write instead of standard output
    #[arg(long, env = "COUNTERPART_DIFF_OUTPUT", value_name = "FILE")]
    output: Option<String>,

    /// Notes to print too, as JSON: `{"notes": [{"note": TEXT, "fingerprints": [...]}], "unshown": [{"key", "old", "new"}]}`
    ///
    /// `notes` are about changes, `unshown` about behaviour that no document shows; either may be left out.
    #[arg(long, env = "COUNTERPART_NOTES", value_name = "FILE")]
    notes: Option<String>,

    /// The mildest class of change that gives exit code 1
    #[arg(long, env = "COUNTERPART_FAIL_ON", value_enum, default_value_t = FailOn::Breaking)]
    fail_on: FailOn,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For people: by operation, breaking changes first
    Text,
    /// The same as Markdown
    Md,
    /// As `openapi/contract-diff.schema.json` describes it
    Json,
    /// One page, both directions
    Html,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Breaking,
    /// Unknown changes too
    Unknown,
    /// Any change at all
    Compatible,
}

impl Command {
    pub fn run(self) -> ExitCode {
        let Self::Diff(command) = self;
        match command.run() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(Failed(reason)) => {
                complain(&reason.to_string());
                ExitCode::from(2)
            }
        }
    }
}

impl Diff {
    /// Whether there is no change that fails.
    fn run(self) -> Result<bool, Failed> {
        if self.old == "-" && self.new == "-" {
            return Err(Failed("only one of the documents can come through standard input".to_owned()));
        }
        let (old, new) = (document(&self.old)?, document(&self.new)?);
        let mut report = contract::diff(&old, &new);
        if let Some(file) = &self.notes {
            let notes: Notes = serde_json::from_str(&text(file)?).map_err(|error| Failed(format!("{file} holds no notes: {error}")))?;
            // The report is no less true for that, so it changes no exit code.
            report.annotate(&notes).to_string().lines().for_each(|gap| note(&format!("warning: {gap}")));
        }
        let shown = match self.format {
            Format::Text => report.text(),
            Format::Md => report.markdown(),
            Format::Json => report.json(),
            Format::Html => report.html(&[]),
        };
        match &self.output {
            Some(file) => fs::write(file, shown).map_err(|error| Failed(format!("{file} cannot be written: {error}")))?,
            None => print(shown.trim_end())?,
        }
        Ok(!fails(&report, self.fail_on))
    }
}

fn fails(report: &Report, on: FailOn) -> bool {
    let mildest = match on {
        FailOn::Breaking => Class::Breaking,
        FailOn::Unknown => Class::Unknown,
        FailOn::Compatible => Class::Compatible,
    };
    report.changes.iter().any(|change| change.class <= mildest)
}

fn document(file: &str) -> Result<Document, Failed> {
    Document::read(&text(file)?).map_err(|error| Failed(format!("{} {error}", named(file))))
}

fn named(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// The longest document that is read: a device or a pipe may never end.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;

fn text(file: &str) -> Result<String, Failed> {
    let mut bytes = Vec::new();
    let mut read = |from: &mut dyn Read| from.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
    let length = if file == "-" { read(&mut io::stdin().lock()) } else { File::open(file).and_then(|mut file| read(&mut file)) };
    let length = length.map_err(|error| Failed(format!("{} cannot be read: {error}", named(file))))?;
    if length as u64 > MAX_DOCUMENT_BYTES {
        return Err(Failed(format!("{} is longer than {} MiB", named(file), MAX_DOCUMENT_BYTES / 1024 / 1024)));
    }
    String::from_utf8(bytes).map_err(|error| Failed(format!("{} is not UTF-8 text: {error}", named(file))))
}
