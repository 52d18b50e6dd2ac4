//! Classifies a changed schema keyword. Two checks (schema containment) decide the class: whether the new schema accepts all values of the
//! old schema, and whether the old schema accepted all values of the new one. The module also searches for a witness of each breaking
//! change of a schema.
//!
//! A witness (counter-example) is a value that one document accepts and the other refuses. Each check first looks for a proof that all
//! values are accepted. If there is no proof, the check looks for a witness. If it finds none either, the result of the check is unknown.
//! If both checks find a proof, the change is reported as restated (without effect). A finding is a difference between the documents that
//! the comparison has found.

use std::{borrow::Cow, rc::Rc};

use serde_json::Value;

use super::{
    comparison_state::{Differ, Finding, Location, RefusalCause, shown},
    json_values::Object,
    rules::{self, Class, Direction, Rule},
    semantics::{DocumentRole, Inclusion, Instances, RefusingKeywords, SideSchema, Validity, only},
};

/// How many random values of one schema a check generates in its search for a value that the other schema refuses.
const SAMPLES: usize = 60;
/// How many random values of one schema are generated in the search for the witnesses of one pair of schemas.
const WITNESS_SAMPLES: usize = 48;
/// The maximum number of pairs of schemas whose witnesses are cached.
const KEPT: usize = 50_000;

/// The two schemas that are compared at a location, before their references are resolved.
pub(super) struct Pair<'p, 'a> {
    pub old: &'p SideSchema<'a>,
    pub new: &'p SideSchema<'a>,
}

/// The values that one schema accepts and another schema refuses, each with the keywords that refuse it.
pub(super) type Witnesses = Rc<Vec<(RefusingKeywords, Value)>>;

/// The result of comparing the values that a changed keyword accepts before and after the change.
pub(super) struct Classification {
    /// Whether all values of the old schema are accepted by the new keyword.
    pub kept: Inclusion,
    /// Whether all values of the new schema were accepted by the old keyword.
    pub known: Inclusion,
}

impl Classification {
    pub fn rule(&self) -> &'static Rule {
        use Inclusion::{Proven, Refuted, Undecided};
        match (&self.kept, &self.known) {
            (Proven, Proven) => &rules::RESTATED,
            (Proven, Refuted(_)) => &rules::CONSTRAINT_LOOSENED,
            (Refuted(_), Proven) => &rules::CONSTRAINT_TIGHTENED,
            (Refuted(_), Refuted(_)) => &rules::CONSTRAINT_MOVED,
            (Undecided, Refuted(_)) => &rules::CONSTRAINT_ACCEPTS_MORE,
            (Refuted(_), Undecided) => &rules::CONSTRAINT_ACCEPTS_LESS,
            (Proven, Undecided) => &rules::CONSTRAINT_PERHAPS_LOOSENED,
            (Undecided, Proven) => &rules::CONSTRAINT_PERHAPS_TIGHTENED,
            (Undecided, Undecided) => &rules::CONSTRAINT_CHANGED,
        }
    }

    /// Returns a witness: a value that the change breaks if the value is sent in this direction. None if no witness was found.
    pub fn witness(&self, direction: Direction) -> Option<&Value> {
        match (direction, &self.kept, &self.known) {
            (Direction::Request, Inclusion::Refuted(value), _) | (Direction::Response, _, Inclusion::Refuted(value)) => Some(value),
            _ => None,
        }
    }
}

impl<'a> Differ<'a> {
    /// Classifies a change of some keywords of a pair of schemas. `before` is a part of the old schema and `after` a part of the new one:
    /// each contains at least these keywords.
    pub(super) fn decision(&self, at: &Location, pair: &Pair<'_, 'a>, before: Value, after: Value) -> Classification {
        let [before, after] =
            [(DocumentRole::Old, before), (DocumentRole::New, after)].map(|(which, value)| SideSchema::new(which, Cow::Owned(value)));
        Classification { kept: self.inclusion(at, pair.old, &after), known: self.inclusion(at, pair.new, &before) }
    }

    fn inclusion(&self, at: &Location, sub: &SideSchema<'a>, sup: &SideSchema<'a>) -> Inclusion {
        match self.semantics(at.direction).inclusion(sub, sup, SAMPLES) {
            Inclusion::Refuted(_) if at.partial => Inclusion::Undecided,
            inclusion => inclusion,
        }
    }

    /// Reports a change of a keyword under the rule that the classification `decision` gives.
    pub(super) fn report_decision(&mut self, at: &Location, detail: &str, values: [Option<&Value>; 2], decision: &Classification) {
        let rule = decision.rule();
        let [old, new] = if *rule == rules::RESTATED { [None, None] } else { values };
        self.report_full(rule, at, Some(detail), old, new);
        self.add_witness(decision.witness(at.direction));
    }

    /// Revises the findings about a group of keywords: the findings in `found` from index `from` on. Compares which values each of the two
    /// schemas accepts, and replaces the findings if the change has another effect than they state.
    pub(super) fn reclassify_findings(
        &mut self,
        at: &Location,
        pair: &Pair<'_, 'a>,
        [one, other]: [&Object; 2],
        from: usize,
        keys: &[&str],
    ) {
        if from == self.found.len() || at.direction == Direction::Neither {
            return;
        }
        self.blame(from, &RefusalCause::Keywords(keys.iter().map(|key| (*key).to_owned()).collect()));
        let several = |object: &Object| ["enum", "const", "oneOf", "anyOf", "allOf", "not"].iter().any(|key| object.contains_key(*key));
        let closed = several(one) || several(other) || keys == ["dependentRequired"];
        let open = self.found[from..].iter().any(|finding| UNDECIDED.contains(&finding.rule));
        let narrow = self.found[from..].iter().all(|finding| REVISED.contains(&finding.rule));
        if !(open || closed && narrow) {
            return;
        }
        let decision = self.decision(at, pair, only(Some(one), keys), only(Some(other), keys));
        let differing: Vec<_> = keys.iter().filter(|key| one.get(**key) != other.get(**key)).copied().collect();
        let unaffected = |rule: &Rule| match (rule.request, rule.response) {
            (Class::Breaking, Class::Compatible) => decision.kept == Inclusion::Proven,
            (Class::Compatible, Class::Breaking) => decision.known == Inclusion::Proven,
            _ => decision.kept == Inclusion::Proven && decision.known == Inclusion::Proven,
        };
        if open {
            let values = keys.first().map(|key| [one.get(*key).cloned(), other.get(*key).cloned()]).unwrap_or_default();
            self.found.truncate(from);
            self.report_decision(at, &differing.join(", "), [values[0].as_ref(), values[1].as_ref()], &decision);
        } else if self.found[from..].iter().all(|finding| unaffected(finding.rule)) {
            self.found.truncate(from);
            self.report_detail(&rules::RESTATED, at, &differing.join(", "));
        }
    }

    /// Searches for witnesses of the breaking findings about a pair of schemas: the findings in `found` from index `from` on. A finding
    /// that already has a witness keeps it.
    pub(super) fn add_witnesses(&mut self, at: &Location, pair: &Pair<'_, 'a>, from: usize) {
        let wanted = |finding: &Finding| {
            finding.witness.is_none()
                && finding.blame != RefusalCause::Nothing
                && finding.rule.class(finding.at.direction) == Class::Breaking
        };
        if at.partial || !self.found[from..].iter().any(wanted) {
            return;
        }
        let (promise, target) = match at.direction {
            Direction::Request => (pair.old, pair.new),
            Direction::Response => (pair.new, pair.old),
            Direction::Both | Direction::Neither => return,
        };
        let witnesses = self.witnesses_of(at.direction, promise, target);
        for finding in self.found[from..].iter_mut().filter(|finding| wanted(finding)) {
            let fitting = witnesses.iter().filter(|(refusals, value)| finding.blame.explains(refusals, value));
            finding.witness =
                fitting.min_by_key(|(refusals, value)| (refusals.len(), value.to_string().len())).and_then(|(_, value)| shown(value));
        }
    }

    fn witnesses_of(&mut self, direction: Direction, promise: &SideSchema<'a>, target: &SideSchema<'a>) -> Witnesses {
        let address = match (&promise.value, &target.value) {
            (Cow::Borrowed(one), Cow::Borrowed(other)) => {
                Some((std::ptr::from_ref(*one).addr(), std::ptr::from_ref(*other).addr(), direction))
            }
            _ => None,
        };
        if let Some(known) = address.and_then(|address| self.witnesses.get(&address)) {
            return known.clone();
        }
        let mut witnesses = Vec::new();
        let semantics = self.semantics(direction).illustrating();
        let mut instances = Instances::new(&semantics).with_hints(&[promise, target]);
        for _ in 0..WITNESS_SAMPLES {
            let Some(value) = instances.valid(promise) else { continue };
            if semantics.validity(target, &value, 0) == Validity::Invalid {
                witnesses.push((semantics.refusals(target, &value), value));
            }
        }
        let witnesses = Rc::new(witnesses);
        if let Some(address) = address.filter(|_| self.witnesses.len() < KEPT) {
            self.witnesses.insert(address, witnesses.clone());
        }
        witnesses
    }
}

impl RefusalCause {
    /// Whether this cause explains why a schema refuses a value. `refusals` names the keywords that refuse the value.
    fn explains(&self, refusals: &RefusingKeywords, value: &Value) -> bool {
        match self {
            Self::Nothing => false,
            Self::Keywords(keys) => keys.iter().any(|key| refusals.contains(key)),
            Self::Missing(name) => refusals.contains(&format!("required {name}")),
            Self::Surplus(name) => {
                value.get(name).is_some() && ["additionalProperties", "unevaluatedProperties"].iter().any(|key| refusals.contains(*key))
            }
        }
    }
}

/// Rules that only state that a keyword changed. `reclassify_findings` replaces the findings under these rules by one finding that states
/// the effect of the change.
static UNDECIDED: [&Rule; 2] = [&rules::PATTERN_CHANGED, &rules::LIMIT_CHANGED];

/// Rules that concern only which values a keyword accepts. `reclassify_findings` may replace the findings under these rules.
static REVISED: [&Rule; 21] = [
    &rules::TYPE_CHANGED,
    &rules::TYPE_WIDENED,
    &rules::TYPE_NARROWED,
    &rules::NULL_ALLOWED,
    &rules::NULL_REFUSED,
    &rules::PATTERN_ADDED,
    &rules::PATTERN_REMOVED,
    &rules::LIMIT_TIGHTENED,
    &rules::LIMIT_LOOSENED,
    &rules::ENUM_INTRODUCED,
    &rules::ENUM_DROPPED,
    &rules::ENUM_VALUE_ADDED,
    &rules::ENUM_VALUE_REMOVED,
    &rules::CONSTRAINT_ADDED,
    &rules::CONSTRAINT_REMOVED,
    &rules::FORMAT_ADDED,
    &rules::FORMAT_REMOVED,
    &rules::FORMAT_WIDENED,
    &rules::FORMAT_NARROWED,
    &rules::FORMAT_CHANGED,
    &rules::RESTATED,
];
