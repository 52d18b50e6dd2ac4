//! Mutation tests: each makes one edit in a small document, and checks the report of the comparison in both directions.

mod body_schemas;
mod one_of_any_of;
mod openapi_3_1;
mod operations;
mod parameters_and_responses;
mod references;
mod schema_composition;
mod types;

use serde_json::Value;

use super::{compared, line};
use crate::Class::{self, Breaking as B, Compatible as C, Unknown as U};

/// An edit of the base document, with the JSON pointer of the value that it sets, removes or renames.
enum Done {
    Put(&'static str, Value),
    Gone(&'static str),
    /// Renames the key at the JSON pointer (the first text) to the second text.
    Named(&'static str, &'static str),
}

impl Done {
    fn to(&self, document: &mut Value) {
        fn parent<'d>(document: &'d mut Value, pointer: &str) -> (&'d mut Value, String) {
            let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
            (document.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is not in the base")), last.replace("~1", "/"))
        }
        match self {
            Self::Put(pointer, value) => {
                let (parent, last) = parent(document, pointer);
                match parent {
                    Value::Array(items) if last == "-" => items.push(value.clone()),
                    Value::Array(items) => items[last.parse::<usize>().expect("an index")] = value.clone(),
                    parent => parent[&last] = value.clone(),
                }
            }
            Self::Gone(pointer) => {
                let (parent, last) = parent(document, pointer);
                match parent {
                    Value::Array(items) => _ = items.remove(last.parse().expect("an index")),
                    parent => assert!(parent.as_object_mut().expect("an object").remove(&last).is_some(), "{pointer} is not in the base"),
                }
            }
            Self::Named(pointer, name) => {
                let (parent, last) = parent(document, pointer);
                let object = parent.as_object_mut().expect("an object");
                let value = object.remove(&last).unwrap_or_else(|| panic!("{pointer} is not in the base"));
                object.insert((*name).to_owned(), value);
            }
        }
    }
}

/// An edit, the expected lines of the report, and two classes of the change in the first line: its class in the comparison of the base
/// document with the edited one, and its class in the reverse comparison.
type Mutant = (Done, &'static [&'static str], Class, Class);

/// Asserts that each edit gives the expected report, and its mirror in the other direction. Fails with a list of all faults.
fn hold(base: &Value, mutants: Vec<Mutant>) {
    let mut faults = Vec::new();
    for (number, (done, expected, there, back)) in mutants.iter().enumerate() {
        let mut mutated = base.clone();
        done.to(&mut mutated);
        assert_ne!(*base, mutated, "mutant {number} changes nothing");
        let (forward, backward) = (compared(base, &mutated), compared(&mutated, base));
        let mut found: Vec<_> = forward.changes.iter().map(line).collect();
        let mut wanted: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
        found.sort();
        wanted.sort();
        if found != wanted {
            faults.push(format!("{number}: expected {wanted:#?}\n  found {found:#?}"));
            continue;
        }
        let class = |changes: &[super::Change], is: &dyn Fn(&super::Change) -> bool| {
            changes.iter().find(|change| is(change)).map(|change| change.class)
        };
        super::invariants::hold_mirrored(&forward, &backward);
        let Some(first) = forward.changes.iter().find(|change| Some(&line(change).as_str()) == expected.first()) else { continue };
        let mirror = |change: &super::Change| {
            change.rule == first.rule.mirror
                && change.place == first.place
                && change.detail == first.detail
                && change.operation == first.operation
        };
        let classes = (Some(first.class), class(&backward.changes, &mirror));
        if classes != (Some(*there), Some(*back)) || backward.changes.len() != expected.len() {
            let found: Vec<_> = backward.changes.iter().map(line).collect();
            faults.push(format!("{number}: {} is {classes:?}, expected {there:?} and {back:?}; backwards {found:#?}", expected[0]));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), mutants.len(), faults.join("\n"));
}
