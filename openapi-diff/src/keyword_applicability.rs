//! Selects which keywords of an old and a new schema are compared. A keyword is compared if it applies to values of a type that both
//! schemas accept.
//!
//! A keyword such as `maxLength` applies to strings. If only one schema accepts strings, the finding (reported difference) about the
//! changed type lists the keyword, and the keyword gets no finding of its own. If neither schema accepts strings, the keyword has no
//! effect.

use std::collections::BTreeSet;

use super::{
    comparison_state::Differ,
    json_values::{Object, is_annotation, keys, text},
    rules::{self, Rule},
    validation_keywords,
};

const NUMBERS: [&str; 2] = ["number", "integer"];
/// The values of `format` that apply to numbers. All other formats apply to strings.
const NUMERIC: [&str; 10] = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"];

/// Returns the types that a keyword applies to. An empty list stands for all types.
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

/// Decides which keywords of two schemas are compared, from the types that the schemas accept.
pub(super) struct Applicability<'o> {
    old: &'o Object,
    new: &'o Object,
    /// Whether the schemas have no type in common.
    excluded: bool,
}

impl<'o> Applicability<'o> {
    pub fn new(old: &'o Object, new: &'o Object, excluded: bool) -> Self {
        Self { old, new, excluded }
    }

    /// Returns whether the old schema, and whether the new schema, accepts values that a keyword applies to.
    fn takes(&self, key: &str) -> [bool; 2] {
        let types = match (about(key), text(self.old, "format").or(text(self.new, "format"))) {
            (_, Some(format)) if key == "format" => {
                // If one format applies to numbers and the other to strings, `format` counts as a keyword for all types.
                let other = text(self.new, "format").unwrap_or(format);
                match (NUMERIC.contains(&format), NUMERIC.contains(&other)) {
                    (true, true) => &NUMBERS[..],
                    (false, false) => &["string"],
                    _ => &[],
                }
            }
            (types, _) => types,
        };
        [self.old, self.new].map(|schema| {
            validation_keywords::named_types(schema).is_none_or(|named| types.is_empty() || types.iter().any(|one| named.contains(one)))
        })
    }

    pub fn compares(&self, key: &str) -> bool {
        if validation_keywords::has_odd_type(self.old) || validation_keywords::has_odd_type(self.new) {
            return true;
        }
        if self.excluded {
            return validation_keywords::is_of_any_type(key) || key.starts_with("x-") && key != "x-extensible-enum";
        }
        self.takes(key) == [true, true]
    }

    /// Reports the keywords that differ but are not compared. If the schemas have no type in common, or if only one of them accepts values
    /// that a keyword applies to, the keyword is added to the finding about the changed type, which is in `differ.found` at index `from` or
    /// later. Otherwise the keyword has no effect in either schema, and is reported under the rule `RESTATED`.
    pub fn account(&self, differ: &mut Differ, at: &super::comparison_state::Location, from: usize) {
        let differs = |key: &&str| match (self.old.get(*key), self.new.get(*key)) {
            (Some(old), Some(new)) => !differ.identical(old, new),
            _ => true,
        };
        let left = keys(self.old, self.new).into_iter().filter(|key| !self.compares(key) && !is_annotation(key));
        let left: Vec<&str> = left.filter(differs).collect();
        let idle = |key: &str| !self.excluded && self.takes(key) == [false, false];
        let covered: BTreeSet<_> = left.iter().filter(|key| !idle(key)).map(|key| (*key).to_owned()).collect();
        const TYPES: [&Rule; 3] = [&rules::TYPE_CHANGED, &rules::TYPE_WIDENED, &rules::TYPE_NARROWED];
        if let Some(change) = differ.found[from..].iter_mut().find(|found| TYPES.contains(&found.rule)) {
            change.covers.extend(covered);
        }
        left.into_iter().filter(|key| idle(key)).for_each(|key| differ.report_detail(&rules::RESTATED, at, key));
    }
}
