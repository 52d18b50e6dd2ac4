//! `counterpart contract diff` compares two OpenAPI documents and reports which changes break clients. `contract replay` sends the same
//! requests to two servers, each with its own document. It reports a difference between two responses unless a difference between the
//! documents explains it.

mod document_source;
mod replay;

use std::{fs, process::ExitCode};

use clap::{Args, Subcommand, ValueEnum};
use openapi_diff::{Class, Document, Gate, Ignored, Notes, Report};
use regex::Regex;
use serde::de::DeserializeOwned;

use self::{
    document_source::{document, text},
    replay::ReplayCommand,
};
use super::{Failed, complain, note, print};
use crate::domain::clock::ClocksAndIds;

#[derive(Subcommand, Debug)]
pub enum ContractCommand {
    /// Compare two OpenAPI documents and class each change
    ///
    /// Takes OpenAPI 3.0 and 3.1, JSON or YAML. Each difference outside of descriptions and examples is reported by operation,
    /// place and direction. Its class is breaking, compatible, or unknown if the documents alone do not show which of the two it is. A
    /// request must not accept less than before, a response must not contain more than before, and names that generated clients use must
    /// not change. Each change has a fingerprint that stays while other parts of the document change.
    ///
    /// Exit code: 0 if each change is approved or milder than the class of `--fail-on`; 1 if a change is neither, or an approval or
    /// severity has a problem; 2 if an argument is wrong or a file cannot be read.
    Diff(Diff),

    /// Send the same requests to two servers and explain each difference between their answers
    ///
    /// The documents of the two servers are compared, as `contract diff` compares them. Each request is sent to both servers.
    /// Each answer must match the document of its server. If two answers differ, the difference must follow from a change between the
    /// documents, or the line of the request in the corpus (the file of requests) must state the cause of the difference. The requests may
    /// write: use stores whose content may change.
    ///
    /// Exit code: 0 if each difference is documented, 1 if one is not, 2 if an argument is wrong, a file cannot be read or a
    /// server does not answer.
    Replay(Box<ReplayCommand>),
}

/// The arguments of `contract diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The old document: a file, `-` for standard input, a URL, or `git:REV:PATH` for a file of a git revision
    ///
    /// Files that it refers to are read from the same place, if they lie below its folder.
    old: String,

    /// The new document
    new: String,

    /// The form of the report
    #[arg(long, env = "COUNTERPART_DIFF_FORMAT", value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,

    /// The output file, instead of standard output
    #[arg(long, env = "COUNTERPART_DIFF_OUTPUT", value_name = "FILE")]
    output: Option<String>,

    /// Notes to print in the report, as JSON: `{"notes": [{"note": TEXT, "fingerprints": [...]}], "unshown": [{"key", "old", "new"}]}`
    ///
    /// `notes` are about changes. `unshown` lists differences in behaviour that no document shows: `key` is the name of a difference, `old`
    /// and `new` describe the behaviour in words. Each of the two lists may be left out.
    #[arg(long, env = "COUNTERPART_NOTES", value_name = "FILE")]
    notes: Option<String>,

    /// The mildest class of changes that make the command fail
    #[arg(long, env = "COUNTERPART_FAIL_ON", value_enum, default_value_t = FailOn::Breaking)]
    fail_on: FailOn,

    /// Approved changes, as JSON: `{"approvals": [{"fingerprint": F, "reason": TEXT, "expires": "2026-12-31"}]}`
    ///
    /// An approved change does not fail until its approval expires. `expires` may be left out. The command also fails if the file contains
    /// an approval that no change needs.
    #[arg(long, env = "COUNTERPART_APPROVED", value_name = "FILE")]
    approved: Option<String>,

    /// Severity classes to use for rules instead of their default classes, as JSON: `{"rules": {"operation-id-renamed": "compatible"}}`
    ///
    /// Reports as text and as JSON name the rule of each change.
    #[arg(long, env = "COUNTERPART_SEVERITY", value_name = "FILE")]
    severity: Option<String>,

    /// Changes to treat as compatible
    #[arg(long, env = "COUNTERPART_IGNORE", value_enum, value_delimiter = ',')]
    ignore: Vec<Ignore>,

    /// A regular expression: changes of operations are reported only if the path matches. Changes of the document as a whole are always
    /// reported
    #[arg(long, env = "COUNTERPART_MATCH_PATH", value_name = "REGEX")]
    match_path: Option<Regex>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReportFormat {
    /// For people: by operation, breaking changes first
    Text,
    /// The text report as Markdown
    Md,
    /// JSON, as `openapi/contract-diff.schema.json` describes it
    Json,
    /// An HTML page, which shows the changes from the old document to the new one, and in the opposite direction
    Html,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// Annotations of a GitHub Actions run
    Github,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Breaking,
    /// Unknown changes, in addition to breaking ones
    Unknown,
    /// Any change at all
    Compatible,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ignore {
    /// Names that only generated clients use: `operationId`, tags, names of path parameters and of schemas
    GeneratedCode,
}

impl ContractCommand {
    pub async fn run(self) -> ExitCode {
        let run = move || match self {
            Self::Diff(command) => command.run(),
            Self::Replay(command) => command.run(),
        };
        let outcome = tokio::task::spawn_blocking(run).await;
        match outcome.unwrap_or_else(|error| Err(Failed(format!("the command was interrupted: {error}")))) {
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
    /// Compares the two documents and writes the report. Returns true if no change has a class that makes the command fail, and all
    /// approvals and severities are valid.
    fn run(self) -> Result<bool, Failed> {
        if self.old == "-" && self.new == "-" {
            return Err(Failed("only one of the documents can come through standard input".to_owned()));
        }
        let (old, new) = (document(&self.old)?, document(&self.new)?);
        if let Some(pattern) = self.match_path.as_ref().filter(|pattern| !old.paths().chain(new.paths()).any(|path| pattern.is_match(path)))
        {
            return Err(Failed(format!("--match-path {pattern} matches no path of the documents, such as {}", example(&old, &new))));
        }
        let mut report = openapi_diff::diff(&old, &new);
        let problems = report.apply(&self.gate()?);
        problems.iter().for_each(|problem| complain(&problem.to_string()));
        if let Some(file) = &self.notes {
            let notes: Notes = json(file, "notes", NOTES)?;
            // Mismatches between notes and changes are only warnings: they do not change the exit code.
            report.annotate(&notes).to_string().lines().for_each(|gap| note(&format!("warning: {gap}")));
        }
        let mildest = self.fail_on.class();
        let shown = match self.format {
            ReportFormat::Text => report.text(),
            ReportFormat::Md => report.markdown(),
            ReportFormat::Json => report.json(),
            ReportFormat::Html => report.html(&openapi_diff::PageContext::default()),
            ReportFormat::Sarif => report.sarif(&self.new),
            ReportFormat::Junit => report.junit(mildest),
            ReportFormat::Github => report.github(&self.new),
        };
        match &self.output {
            Some(file) => fs::write(file, shown).map_err(|error| Failed(format!("{file} cannot be written: {error}")))?,
            None => print(shown.trim_end())?,
        }
        Ok(passes(&report, mildest) && problems.is_empty())
    }

    fn gate(&self) -> Result<Gate, Failed> {
        let approvals = self.approved.as_deref().map(|file| json(file, "approvals", APPROVALS)).transpose()?.unwrap_or_default();
        let severities = self.severity.as_deref().map(|file| json(file, "severities", SEVERITIES)).transpose()?.unwrap_or_default();
        let ignored = self.ignore.iter().map(|Ignore::GeneratedCode| Ignored::GeneratedCode).collect();
        let today = ClocksAndIds::real().now().to_string().chars().take(10).collect();
        Ok(Gate { approvals, severities, ignored, path: self.match_path.clone(), today })
    }
}

impl FailOn {
    fn class(self) -> Class {
        match self {
            Self::Breaking => Class::Breaking,
            Self::Unknown => Class::Unknown,
            Self::Compatible => Class::Compatible,
        }
    }
}

fn passes(report: &Report, mildest: Class) -> bool {
    report.failing(mildest).next().is_none()
}

/// Returns the first path of the documents, as an example for an error message.
fn example<'d>(old: &'d Document, new: &'d Document) -> &'d str {
    old.paths().chain(new.paths()).next().unwrap_or("/pets")
}

const NOTES: &str = r#"{"notes": [{"note": "…", "fingerprints": ["…"]}], "unshown": []}"#;
const APPROVALS: &str = r#"{"approvals": [{"fingerprint": "…", "reason": "…", "expires": "2026-12-31"}]}"#;
const SEVERITIES: &str = r#"{"rules": {"operation-id-renamed": "compatible"}}"#;

/// Parses a JSON file.
fn json<T: DeserializeOwned>(file: &str, what: &str, form: &str) -> Result<T, Failed> {
    serde_json::from_str(&text(file)?).map_err(|error| Failed(format!("{file} holds no {what} such as {form}: {error}")))
}
