//! Compares the schema keywords for objects: properties, pattern properties, additional properties, and names of properties.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    classification::Pair,
    comparison_state::{Differ, Location, RefusalCause},
    json_values::{Object, empty, flag, is_annotation, items, keys, members, step},
    not_if_contains::{allows_everything, allows_nothing},
    references::reference,
    rules::{self, Direction},
    schema::{Subschemas, members_of},
    schema_resolution::{Resolved, inner, resolve},
    semantics::depends_on,
    validation_keywords,
};

impl<'a> Differ<'a> {
    pub(super) fn object(
        &mut self,
        at: &Location,
        old: &Resolved<'a>,
        new: &Resolved<'a>,
        [one, other]: [&Object; 2],
        pair: &Pair<'_, 'a>,
        below: &mut Subschemas<'_, 'a>,
    ) {
        if validation_keywords::shaped(self, at, "properties", one, other, Value::is_object)
            & validation_keywords::shaped(self, at, "required", one, other, is_names)
        {
            self.properties(at, old, new, one, other, below);
        }
        let from = self.found.len();
        let (before, after) = (AdditionalProperties::of(one), AdditionalProperties::of(other));
        match (before, after) {
            (AdditionalProperties::Odd, _) | (_, AdditionalProperties::Odd) => {
                self.report_keyword(at, "additionalProperties", one.get("additionalProperties"), other.get("additionalProperties"));
            }
            (AdditionalProperties::Refused, AdditionalProperties::Allowed | AdditionalProperties::Schema) => {
                self.report(&rules::OTHERS_ALLOWED, at)
            }
            (AdditionalProperties::Allowed | AdditionalProperties::Schema, AdditionalProperties::Refused) => {
                self.report(&rules::OTHERS_REFUSED, at)
            }
            (AdditionalProperties::Allowed, AdditionalProperties::Schema) => self.report(&rules::OTHERS_RESTRICTED, at),
            (AdditionalProperties::Schema, AdditionalProperties::Allowed) => self.report(&rules::OTHERS_UNRESTRICTED, at),
            (AdditionalProperties::Schema, AdditionalProperties::Schema) => {
                below.compare(at.step("{}"), old.member("additionalProperties"), new.member("additionalProperties"));
            }
            (AdditionalProperties::Allowed, AdditionalProperties::Allowed)
            | (AdditionalProperties::Refused, AdditionalProperties::Refused) => {
                if one.get("additionalProperties") != other.get("additionalProperties") {
                    self.report_detail(&rules::RESTATED, at, "additionalProperties");
                }
            }
        }
        self.reclassify_findings(at, pair, [one, other], from, &["additionalProperties"]);
        self.dependent_required(at, [one, other], pair);
        if validation_keywords::shaped(self, at, "patternProperties", one, other, Value::is_object) {
            let (before, after) = (old.member("patternProperties"), new.member("patternProperties"));
            for pattern in keys(members_of(&before), members_of(&after)) {
                let (before, after) = (inner(&before, pattern), inner(&after, pattern));
                match (&before, &after) {
                    (Some(_), Some(_)) => below.compare(at.step(&format!("{{{}}}", step(pattern))), before, after),
                    _ => {
                        // An added pattern makes a closed object (one that refuses undeclared properties) accept more properties, but
                        // restricts the properties of an open object.
                        let closed = refuses_others(if after.is_some() { one } else { other });
                        let schema =
                            matches!(AdditionalProperties::of(if after.is_some() { one } else { other }), AdditionalProperties::Schema);
                        let (added, removed) = match (closed, schema) {
                            (true, _) => (&rules::CLOSED_PATTERN_ADDED, &rules::CLOSED_PATTERN_REMOVED),
                            (_, true) => (&rules::CONSTRAINT_CHANGED, &rules::CONSTRAINT_CHANGED),
                            _ => (&rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED),
                        };
                        let from = self.found.len();
                        self.report_either(after.is_some(), added, removed, at, Some(&format!("patternProperties {pattern}")));
                        self.blame(from, &RefusalCause::Keywords(vec!["patternProperties".to_owned(), "additionalProperties".to_owned()]));
                    }
                }
            }
        }
        let (before, after) = (old.member("propertyNames"), new.member("propertyNames"));
        match (&before, &after) {
            (None, None) => {}
            (Some(_), Some(_)) => below.compare(at.step("{name}"), before, after),
            (Some(schema), None) | (None, Some(schema)) if allows_everything(schema) => {
                self.report_detail(&rules::RESTATED, at, "propertyNames")
            }
            _ => {
                let from = self.found.len();
                self.report_either(after.is_some(), &rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED, at, Some("propertyNames"));
                self.reclassify_findings(at, pair, [one, other], from, &["propertyNames"]);
            }
        }
    }

    /// Compares `dependentRequired`: properties that are required if another property is present.
    fn dependent_required(&mut self, at: &Location, [one, other]: [&Object; 2], pair: &Pair<'_, 'a>) {
        const KEY: &str = "dependentRequired";
        if !validation_keywords::shaped(self, at, KEY, one, other, |value| {
            value.as_object().is_some_and(|names| names.values().all(is_names))
        }) {
            return;
        }
        let from = self.found.len();
        let [before, after] = [one, other].map(|object| members(object.get(KEY).unwrap_or(empty())));
        for name in keys(before, after) {
            let (had, has) = (items(before.get(name)), items(after.get(name)));
            let detail = |needed: &Value| format!("{KEY} {name}: {}", needed.as_str().unwrap_or_default());
            had.iter()
                .filter(|needed| !has.contains(needed))
                .for_each(|needed| self.report_detail(&rules::CONSTRAINT_REMOVED, at, &detail(needed)));
            has.iter()
                .filter(|needed| !had.contains(needed))
                .for_each(|needed| self.report_detail(&rules::CONSTRAINT_ADDED, at, &detail(needed)));
        }
        if before != after && self.found.len() == from {
            self.report_detail(&rules::RESTATED, at, KEY);
        }
        self.reclassify_findings(at, pair, [one, other], from, &[KEY]);
    }

    fn properties(
        &mut self,
        at: &Location,
        old: &Resolved<'a>,
        new: &Resolved<'a>,
        one: &Object,
        other: &Object,
        below: &mut Subschemas<'_, 'a>,
    ) {
        let (before, after) = (old.member("properties"), new.member("properties"));
        let required = |object: &Object, name: &str| items(object.get("required")).iter().any(|item| item == name);
        let mut names = keys(members_of(&before), members_of(&after));
        names.extend([one, other].into_iter().flat_map(|object| items(object.get("required"))).filter_map(Value::as_str));
        for name in names {
            let at = at.step(&step(name));
            // Returns the schema of a property that the document does not list: the schema in `additionalProperties`. None if such
            // properties are refused, or are allowed without a schema: the comparison assumes that values do not contain them. But values
            // may contain a property that `dependentRequired` can make required. So this property gets a schema that accepts every value.
            let others = |flat: &Resolved<'a>, object: &Object| match AdditionalProperties::of(object) {
                AdditionalProperties::Schema => flat.member("additionalProperties"),
                AdditionalProperties::Allowed if depends_on(object, name) => Some(Cow::Borrowed(empty())),
                _ => None,
            };
            let (had, has) = (inner(&before, name), inner(&after, name));
            let (needed, needs) = (required(one, name), required(other, name));
            let hidden = [self.unseen(true, &had, at.direction), self.unseen(false, &has, at.direction)];
            let all_hidden = hidden.iter().flatten().all(|hidden| *hidden) && hidden.iter().any(Option::is_some);
            let at = if all_hidden { at.towards(Direction::Neither) } else { at };
            let (there, absent) = (had.is_some(), has.is_none());
            if there == absent && !(if there { needs } else { needed }) {
                // Only one document lists the property, and the other document does not require it. The rule depends on two facts: whether
                // the other document refuses unlisted properties (`closed`), and whether the document that lists the property requires it.
                let closed = refuses_others(if there { other } else { one });
                let (added, removed) = match (closed, needed || needs) {
                    (false, false) => (&rules::PROPERTY_ADDED, &rules::PROPERTY_REMOVED),
                    (false, true) => (&rules::REQUIRED_PROPERTY_ADDED, &rules::REQUIRED_PROPERTY_REMOVED),
                    (true, false) => (&rules::CLOSED_PROPERTY_ADDED, &rules::CLOSED_PROPERTY_REMOVED),
                    (true, true) => (&rules::CLOSED_REQUIRED_PROPERTY_ADDED, &rules::CLOSED_REQUIRED_PROPERTY_REMOVED),
                };
                let from = self.found.len();
                self.report_either(!there, added, removed, &at, None);
                if let Some(gone) = &had {
                    let gone = resolve(&self.old, gone.clone());
                    self.add_sunset(&gone.schema);
                }
                self.blame(
                    from,
                    &if !there && needs { RefusalCause::Missing(name.to_owned()) } else { RefusalCause::Surplus(name.to_owned()) },
                );
                if let Some(was) = if there { others(new, other) } else { others(old, one) } {
                    let (had, has) = if there { (had, Some(was)) } else { (Some(was), has) };
                    below.compare(at, had, has);
                }
                continue;
            }
            if there == absent {
                let (declared, undeclared) = match refuses_others(if there { other } else { one }) {
                    true => (&rules::CLOSED_PROPERTY_DECLARED, &rules::CLOSED_PROPERTY_UNDECLARED),
                    false => (&rules::PROPERTY_DECLARED, &rules::PROPERTY_UNDECLARED),
                };
                let from = self.found.len();
                self.report_either(!there, declared, undeclared, &at, None);
                self.blame(from, &RefusalCause::Surplus(name.to_owned()));
            }
            // `expected` and `expects`: whether the property is required in the old and in the new document. A hidden property is never
            // sent in this direction, so it counts as not required. But if every document that lists the property hides it, `required` is
            // compared as written. Then the direction of `at` is `Neither`, so every change is compatible.
            let [expected, expects] =
                [(needed, hidden[0]), (needs, hidden[1])].map(|(is, hidden)| is && (all_hidden || hidden != Some(true)));
            let from = self.found.len();
            self.report_flag(expected, expects, &rules::PROPERTY_BECAME_REQUIRED, &rules::PROPERTY_BECAME_OPTIONAL, &at);
            self.blame(from, &RefusalCause::Missing(name.to_owned()));
            if needed != needs && expected == expects {
                self.report_detail(&rules::RESTATED, &at, "required");
            }
            if there || !absent {
                let at = at.required([expected, expects]);
                below.compare(at, had.or_else(|| others(old, one)), has.or_else(|| others(new, other)));
            }
        }
    }

    /// Whether a property is never sent in this direction: `readOnly` in a request, `writeOnly` in a response. None if the document does
    /// not list the property.
    fn unseen(&self, is_old: bool, property: &Option<Cow<'a, Value>>, direction: Direction) -> Option<bool> {
        let key = match direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
            _ => return property.as_ref().map(|_| false),
        };
        let property = property.as_ref()?;
        let plain = reference(property).is_none() && property.get("allOf").is_none();
        let side = if is_old { &self.old } else { &self.new };
        Some(if plain { flag(members(property), key) } else { flag(members(&resolve(side, property.clone()).schema), key) })
    }
}

/// How a schema treats properties that it does not list.
#[derive(Clone, Copy)]
pub(super) enum AdditionalProperties {
    Allowed,
    Refused,
    Schema,
    Odd,
}

impl AdditionalProperties {
    pub fn of(schema: &Object) -> Self {
        match schema.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Self::Allowed,
            Some(schema) if allows_nothing(schema) => Self::Refused,
            Some(Value::Object(object)) if object.keys().all(|key| is_annotation(key)) => Self::Allowed,
            Some(Value::Object(_)) => Self::Schema,
            Some(_) => Self::Odd,
        }
    }
}

fn refuses_others(schema: &Object) -> bool {
    ["additionalProperties", "unevaluatedProperties"].iter().any(|key| schema.get(*key).is_some_and(allows_nothing))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}
