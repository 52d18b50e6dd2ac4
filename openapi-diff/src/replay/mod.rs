//! Replay: compares the responses of two servers to the same requests, and looks up each difference in the comparison of their documents.
//!
//! `corpus` reads the requests. `compare_responses` finds the locations at which two responses differ. `documented_differences` holds the
//! differences that the documents and the notes permit. A caller sends the requests and passes the responses to [`Replay::add`].

mod compare_responses;
mod corpus;
mod documented_differences;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::json;

pub use self::{
    compare_responses::{Answer, Comparison},
    corpus::{BadLine, Caller, Cause, Credential, Request, corpus, examples},
};
use super::{Document, Report};
use documented_differences::Documented;

/// A request whose responses differ without an explanation, or contradict their documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unexplained {
    /// The request as text: its method, path, query, the name of its API key, and the beginning of its body.
    pub request: String,
    pub faults: Vec<String>,
    /// The responses of the old and the new server, as text: the status and the beginning of the body.
    pub answers: [String; 2],
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    pub requests: usize,
    pub unexplained: Vec<Unexplained>,
    /// The keys of the documented differences that occurred. The key of a change between the documents is `METHOD PATH: RULE PLACE DETAIL`;
    /// a difference in behaviour has the key that the migration notes give it.
    pub seen: BTreeSet<String>,
    /// The keys of documented differences that no response showed.
    pub unseen: BTreeSet<String>,
}

/// A replay in progress.
#[derive(Debug)]
pub struct Replay<'d> {
    documented: Documented<'d>,
    comparison: Comparison,
    found: Replayed,
}

impl<'d> Replay<'d> {
    /// `report` is the comparison of the two documents. The migration notes may list differences in behaviour that no document shows
    /// (`unshown`). To permit these differences, call [`Report::annotate`] with the notes first.
    pub fn new(documents: [&'d Document; 2], report: &Report, comparison: Comparison) -> Self {
        let documented = Documented::new(documents, report);
        let found = Replayed { unseen: documented.keys(), ..Replayed::default() };
        Self { documented, comparison, found }
    }

    /// Compares the responses of the old and the new server to a request, and checks each response against the document of its server.
    pub fn add(&mut self, request: &Request, answers: &[Answer; 2]) {
        self.found.requests += 1;
        let mut faults = Vec::new();
        for ((document, answer), which) in self.documented.documents.iter().zip(answers).zip(["old", "new"]) {
            match document.operation(&request.method, &request.path) {
                None if [404, 405].contains(&answer.status) => {}
                None => faults.push(format!("{which}: the document has no {} {}", request.method, request.path)),
                Some(operation) => faults.extend(document.faults(&operation, answer).into_iter().map(|fault| format!("{which}: {fault}"))),
            }
            if (answer.status >= 500) != request.fails {
                let wanted = if request.fails { "a status from 500" } else { "a status below 500" };
                faults.push(format!("{which}: the answer is {}; it must be {wanted}", answer.status));
            }
        }
        let differences = self.comparison.differences(answers);
        let mut seen = Vec::new();
        for difference in differences.iter().filter(|difference| !request.because.contains_key(&difference.place)) {
            match self.documented.explain(request, answers, difference) {
                Some(keys) => seen.extend(keys),
                None => faults.push(format!("{difference}: neither the documents nor the notes say so")),
            }
        }
        for (place, cause) in &request.because {
            let pairs: Vec<_> = differences.iter().filter(|found| found.place == *place).map(|found| found.sides.clone()).collect();
            match self.documented.named(request, cause) {
                _ if pairs != cause.pairs => faults.push(format!("differs at {place} by {}, not by {}", json!(pairs), json!(cause.pairs))),
                Ok(keys) => seen.extend(keys),
                Err(reason) => faults.push(format!("{place}: {reason}")),
            }
        }
        seen.extend(self.documented.values_shown(request, answers));
        self.found.seen.extend(seen);
        if !faults.is_empty() {
            let shown = |answer: &Answer| format!("{} {}", answer.status, answer.text.chars().take(300).collect::<String>());
            let unexplained = Unexplained { request: request.to_string(), faults, answers: answers.each_ref().map(shown) };
            if self.found.unexplained.last() != Some(&unexplained) {
                self.found.unexplained.push(unexplained);
            }
        }
    }

    pub fn finish(mut self) -> Replayed {
        self.found.unseen = self.found.unseen.difference(&self.found.seen).cloned().collect();
        self.found
    }
}

impl Replayed {
    /// Returns the result as text for people.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for row in &self.unexplained {
            lines.push(row.request.clone());
            lines.extend(row.faults.iter().map(|fault| format!("    {fault}")));
            lines.extend(["old", "new"].iter().zip(&row.answers).map(|(which, answer)| format!("    {which}: {answer}")));
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(format!(
            "{} requests to both servers, {} with differences that are not documented; {} of {} documented differences seen",
            self.requests,
            self.unexplained.len(),
            self.seen.len(),
            self.seen.len() + self.unseen.len(),
        ));
        lines.join("\n")
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
