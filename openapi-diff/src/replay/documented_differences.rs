//! The differences that a replay (the same requests to two servers) permits between responses: those that follow from the changes between
//! the documents, and those in behaviour that only the migration notes list, since no document can show them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Answer, Request,
    compare_responses::{Difference, RECENT_MILLISECONDS, RECENT_TIME},
    corpus::Cause,
};
use crate::{Change, Document, Report};

#[derive(Debug)]
pub(super) struct Documented<'d> {
    pub documents: [&'d Document; 2],
    changes: Vec<Change>,
    /// The keys of the differences in behaviour that only the migration notes list.
    unshown: BTreeSet<String>,
}

/// Returns the key of a change: `METHOD PATH: RULE PLACE DETAIL`. The detail distinguishes several changes at one location.
fn key(change: &Change) -> String {
    let operation = change.operation.as_deref().unwrap_or_default();
    let detail = change.detail.as_deref().map(|detail| format!(" {detail}")).unwrap_or_default();
    format!("{operation}: {} {}{detail}", change.rule.id, change.place)
}

impl<'d> Documented<'d> {
    pub fn new(documents: [&'d Document; 2], report: &Report) -> Self {
        Self { documents, changes: report.changes.clone(), unshown: report.unshown.iter().map(|row| row.key.clone()).collect() }
    }

    /// Returns the key of every documented difference.
    pub fn keys(&self) -> BTreeSet<String> {
        self.changes.iter().map(key).chain(self.unshown.iter().cloned()).collect()
    }

    /// Returns the changes of the operation that a request is sent to.
    fn of<'a>(&'a self, request: &Request) -> impl Iterator<Item = &'a Change> {
        let names = self.documents.map(|document| document.operation(&request.method, &request.path));
        self.changes.iter().filter(move |change| change.operation.is_some() && names.contains(&change.operation))
    }

    /// Returns the keys of the documented differences that a cause cites. Fails if the cause cites a difference that is not documented.
    pub fn named(&self, request: &Request, cause: &Cause) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        for cited in &cause.by {
            if self.unshown.contains(cited) {
                keys.push(cited.clone());
                continue;
            }
            let before = keys.len();
            keys.extend(self.of(request).filter(|change| format!("{} {}", change.rule.id, change.place) == *cited).map(key));
            if keys.len() == before {
                return Err(format!("neither a change of the operation nor a note is called {cited}"));
            }
        }
        Ok(keys)
    }

    /// Returns the keys of the changes that by themselves explain a difference, so that the request needs no `because` for it. A change
    /// explains only the difference that it states: a removed or added property or header, a recent time in another format, or a new
    /// operation.
    pub fn explain(&self, request: &Request, answers: &[Answer; 2], difference: &Difference) -> Option<Vec<String>> {
        let keys: Vec<_> = if difference.place == "status" {
            let [old, new] = answers.each_ref().map(|answer| answer.status);
            // A new operation explains that only the new server succeeds. An empty list does not count as success, because it does not show
            // that the operation works.
            let works = [404, 405].contains(&old) && new == 200 && difference.sides[1][1] != json!([]);
            self.of(request).filter(|change| works && change.rule.id == "operation-added").map(key).collect()
        } else {
            let place = format!("response {} {}", self.code(request, answers), difference.place);
            let says = |change: &&Change| match (change.rule.id, &difference.sides) {
                (
                    "property-required-removed" | "property-optional-removed" | "header-required-removed" | "header-optional-removed",
                    [_, Value::Null],
                ) => true,
                (
                    "property-required-added" | "property-optional-added" | "header-required-added" | "header-optional-added",
                    [Value::Null, _],
                ) => true,
                ("format-removed" | "pattern-added", [old, new]) => old == RECENT_TIME && new == RECENT_MILLISECONDS,
                ("format-added" | "pattern-removed", [old, new]) => old == RECENT_MILLISECONDS && new == RECENT_TIME,
                _ => false,
            };
            self.of(request).filter(|change| change.place == place).filter(says).map(key).collect()
        };
        (!keys.is_empty()).then_some(keys)
    }

    /// Returns the key under which the new document describes the new server's response: its status, or `default`.
    fn code(&self, request: &Request, answers: &[Answer; 2]) -> String {
        let code = answers[1].status.to_string();
        let operation = self.documents[1].operation(&request.method, &request.path);
        let described = operation.and_then(|operation| self.documents[1].described(&operation));
        let listed = described.is_some_and(|operation| operation.get("responses").is_some_and(|all| all.get(&code).is_some()));
        if listed { code } else { "default".to_owned() }
    }

    /// Returns the keys of the changes that added a value to an open list (`x-extensible-enum`), if the new server's response contains that
    /// value. The response of the old server may contain the value, too, because the list is open. So only the response of the new
    /// server is examined.
    pub fn values_shown(&self, request: &Request, answers: &[Answer; 2]) -> Vec<String> {
        let body = answers[1].body();
        let prefix = format!("response {} /", self.code(request, answers));
        let shown = |change: &&Change| {
            let Some(path) = change.place.strip_prefix(&prefix) else { return false };
            let Some(value) = change.detail.as_deref().and_then(|detail| serde_json::from_str::<Value>(detail).ok()) else { return false };
            holds(&body, &path.split('/').collect::<Vec<_>>(), &value)
        };
        self.of(request).filter(|change| change.rule.id == "open-value-added").filter(shown).map(key).collect()
    }
}

/// Whether `value` contains the value `wanted` at a path; the step `[]` stands for any item of a list.
fn holds(value: &Value, path: &[&str], wanted: &Value) -> bool {
    match path {
        [] => value == wanted,
        ["[]", rest @ ..] => value.as_array().is_some_and(|items| items.iter().any(|item| holds(item, rest, wanted))),
        [name, rest @ ..] => value.get(*name).is_some_and(|inner| holds(inner, rest, wanted)),
    }
}
