//! Which keywords of two schemas are compared, and which a change of their type takes along.
//!
//! A limit on strings says nothing of numbers: where strings come or go as a whole, what was said of them comes or goes
//! with them, and the change of the type names the keyword. Where neither schema takes the type that a keyword is about,
//! the keyword is without effect.

use std::collections::BTreeSet;

use super::{
    differ::Differ,
    keywords,
    rules::{self, Rule},
    values::{Object, is_annotation, keys, text},
};

const NUMBERS: [&str; 2] = ["number", "integer"];
/// Formats of numbers; all others are of strings.
const NUMERIC: [&str; 10] = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"];

/// The types that a keyword is about; none where it is about values of any type.
fn about(key: &str) -> &'static [&'static str] {
    match key {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => &NUMBERS,
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType" | "contentSchema" => &["string"],
        "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" | "minContains"
        | "maxContains" | "unevaluatedItems" => &["array"],
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "unevaluatedProperties" => &["object"],
        _ => &[],
    }
}

/// What two schemas have in common that a keyword can be about.
pub(super) struct Applicability<'o> {
    old: &'o Object,
    new: &'o Object,
    /// No value is of both types.
    excluded: bool,
}

impl<'o> Applicability<'o> {
    pub fn new(old: &'o Object, new: &'o Object, excluded: bool) -> Self {
        Self { old, new, excluded }
    }

    /// Whether each schema takes a value that a keyword is about.
    fn takes(&self, key: &str) -> [bool; 2] {
        let types = match (about(key), text(self.old, "format").or(text(self.new, "format"))) {
            (_, Some(format)) if key == "format" => {
                // One that turns from numbers to strings is about both.
                let other = text(self.new, "format").unwrap_or(format);
                match (NUMERIC.contains(&format), NUMERIC.contains(&other)) {
                    (true, true) => &NUMBERS[..],
                    (false, false) => &["string"],
                    _ => &[],
                }
            }
            (types, _) => types,
        };
        [self.old, self.new]
            .map(|schema| keywords::named_types(schema).is_none_or(|named| types.is_empty() || types.iter().any(|one| named.contains(one))))
    }

    pub fn compares(&self, key: &str) -> bool {
        if keywords::has_odd_type(self.old) || keywords::has_odd_type(self.new) {
            return true;
        }
        if self.excluded {
            return keywords::is_of_any_type(key) || key.starts_with("x-") && key != "x-extensible-enum";
        }
        self.takes(key) == [true, true]
    }

    /// Tells what is not compared: by the change of the type, told since `told`, or as without effect.
    pub fn account(&self, differ: &mut Differ, at: &super::differ::Location, told: usize) {
        let differs = |key: &&str| match (self.old.get(*key), self.new.get(*key)) {
            (Some(old), Some(new)) => !differ.identical(old, new),
            _ => true,
        };
        let left = keys(self.old, self.new).into_iter().filter(|key| !self.compares(key) && !is_annotation(key));
        let left: Vec<&str> = left.filter(differs).collect();
        let idle = |key: &str| !self.excluded && self.takes(key) == [false, false];
        let covered: BTreeSet<_> = left.iter().filter(|key| !idle(key)).map(|key| (*key).to_owned()).collect();
        const TYPES: [&Rule; 3] = [&rules::TYPE_CHANGED, &rules::TYPE_WIDENED, &rules::TYPE_NARROWED];
        if let Some(change) = differ.found[told..].iter_mut().find(|found| TYPES.contains(&found.rule)) {
            change.covers.extend(covered);
        }
        left.into_iter().filter(|key| idle(key)).for_each(|key| differ.report_detail(&rules::RESTATED, at, key));
    }
}
