//! Classifies a changed keyword by whether the new schema accepts the same values as the old one, more or fewer (schema containment in each
//! direction), and finds a witness (counter-example) for each breaking change of a schema.
//!
//! A witness is a value that shows the change: one document accepts it, the other refuses it. In each direction, either a proof that all
//! values are still accepted or a witness decides; without either, the effect is reported as undecided. A change that is proven to refuse
//! no value in either direction is reported as restated.

use std::{borrow::Cow, rc::Rc};

use serde_json::Value;

use super::{
    differ::{Differ, Finding, Location, RefusalCause, shown},
    rules::{self, Class, Direction, Rule},
    semantics::{DocumentRole, Inclusion, Instances, RefusingKeywords, SideSchema, Validity, only},
    values::Object,
};

/// The number of random instances that are tried to refute that one schema includes another.
const SAMPLES: usize = 60;
/// The number of random instances that are tried to find the witnesses for one pair of schemas.
const WITNESS_SAMPLES: usize = 48;
/// The maximum number of pairs of schemas whose witnesses are cached.
const KEPT: usize = 50_000;

/// The two schemas that are compared at a location, before their references are resolved.
pub(super) struct Pair<'p, 'a> {
    pub old: &'p SideSchema<'a>,
    pub new: &'p SideSchema<'a>,
}

/// Values that a schema accepts and another one refuses, with the keywords that refuse them.
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

    /// Returns the witness (counter-example) that shows that the change breaks values sent in this direction. None if there is no such
    /// value.
    pub fn witness(&self, direction: Direction) -> Option<&Value> {
        match (direction, &self.kept, &self.known) {
            (Direction::Request, Inclusion::Refuted(value), _) | (Direction::Response, _, Inclusion::Refuted(value)) => Some(value),
            _ => None,
        }
    }
}

impl<'a> Differ<'a> {
    /// Classifies a change of some keywords of a pair of schemas. `before` and `after` are schemas that contain only these keywords, as the
    /// old and the new document write them.
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

    /// Revises the findings about a group of keywords, which are those from index `from` of `found` on. Compares the values that both
    /// schemas accept, and replaces these findings if the comparison shows another effect.
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

    /// Adds a witness to each breaking finding without one, among the findings about a pair of schemas: those from index `from` of `found`
    /// on.
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
    /// Whether this cause explains why a schema refuses a value. `refusals` names the keywords that refuse it.
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

/// Rules that only state that a keyword changed. `reclassify_findings` replaces their findings by one that states the effect.
static UNDECIDED: [&Rule; 2] = [&rules::PATTERN_CHANGED, &rules::LIMIT_CHANGED];

/// Rules that concern only the values that a keyword accepts. `reclassify_findings` may replace their findings.
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
