//! Finds values that more than one variant of a `oneOf` accepts, and that the schema therefore refuses.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    super::{json_values::items, schema_resolution::element},
    Instances, SchemaChecker, SideSchema, Validity,
};

/// The number of random values that are tried to find a value that two variants accept.
const SAMPLES: usize = 60;
/// The maximum number of variants that are compared pair by pair. With more variants, the result is undecided.
const VARIANTS: usize = 80;

/// Whether a `oneOf` refuses instances (valid values) of another schema because more than one variant accepts them.
#[derive(Debug, PartialEq)]
pub(in super::super) enum Overlap {
    None,
    Found(Value),
    Undecided,
}

impl<'a> SchemaChecker<'_, 'a> {
    /// Checks whether `target` refuses instances of `promise` because more than one variant of `target` accepts them. `promise` is the
    /// schema whose values are sent, and `target` has to accept them. If `target` has a discriminator, the discriminator selects one
    /// variant, so there is no overlap.
    pub fn overlap(&self, promise: &SideSchema<'a>, target: &SideSchema<'a>) -> Overlap {
        let (source, resolved) = (self.resolved(promise), self.resolved(target));
        let list = resolved.member("oneOf");
        if resolved.object().is_none_or(|object| object.contains_key("discriminator")) {
            return Overlap::None;
        }
        let variants: Vec<_> = (0..items(list.as_deref()).len()).map(|position| target.with(element(&list, position))).collect();
        if variants.len() < 2 {
            return Overlap::None;
        }
        if variants.len() > VARIANTS {
            return Overlap::Undecided;
        }
        let before: Vec<_> = {
            let list = source.member("oneOf");
            (0..items(list.as_deref()).len()).map(|position| promise.with(element(&list, position))).collect()
        };
        // For each variant of `target`, the positions of the variants of `promise` that accept all its values. Suppose that two variants of
        // `target` fit into different variants of `promise`. A value that both variants of `target` accept is then valid under two variants
        // of `promise`, so the `oneOf` of `promise` refuses the value. So these two variants of `target` never accept the same instance of
        // `promise`.
        let within: Vec<Vec<usize>> = variants
            .iter()
            .map(|variant| {
                let same = before.iter().position(|other| self.is_same(variant, other));
                match same {
                    Some(found) => vec![found],
                    None => (0..before.len()).filter(|other| self.fits(variant, &before[*other], 1)).collect(),
                }
            })
            .collect();
        let exclusive = |one: usize, other: usize| within[one].iter().any(|i| within[other].iter().any(|j| i != j));
        let pieces = self.pieces(promise, &source).unwrap_or_else(|| std::rc::Rc::new(vec![promise.clone()]));
        let mut undecided = false;
        for one in 0..variants.len() {
            for other in one + 1..variants.len() {
                if undecided || exclusive(one, other) || self.disjoint(&variants[one], &variants[other], 0) {
                    continue;
                }
                undecided = !pieces
                    .iter()
                    .all(|piece| self.disjoint_instances(piece, &variants[one], 0) || self.disjoint_instances(piece, &variants[other], 0));
            }
        }
        if !undecided {
            return Overlap::None;
        }
        let mut instances = Instances::new(self).with_hints(&[promise, target]);
        for _ in 0..SAMPLES {
            let Some(value) = instances.valid(promise) else { continue };
            let accepting = variants.iter().filter(|variant| self.validity(variant, &value, 0) == Validity::Valid).count();
            if accepting > 1 {
                return Overlap::Found(value);
            }
        }
        Overlap::Undecided
    }

    /// Whether each value is valid under at most one of several schemas. False if there is no proof.
    pub fn exclusive(&self, variants: &[SideSchema<'a>]) -> bool {
        variants.len() <= VARIANTS
            && (0..variants.len()).all(|one| (one + 1..variants.len()).all(|other| self.disjoint(&variants[one], &variants[other], 0)))
    }

    /// Whether at least one of the schemas `others` accepts every value that the schema `one` accepts. False if there is no proof. `side`
    /// is any schema of the document of `others`.
    pub fn fits_any(&self, one: &SideSchema<'a>, others: &[Cow<'a, Value>], side: &SideSchema<'a>) -> bool {
        others.iter().any(|other| self.fits(one, &side.with(Some(other.clone())), 0))
    }
}
