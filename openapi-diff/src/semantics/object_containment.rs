//! Proves schema containment for the keywords of objects: properties, names of properties, and what the presence of a property requires
//! (`dependentRequired`, `dependentSchemas`).
//!
//! The methods of [`KeywordContainment`] return true if they prove that the schema `sup` accepts each value that is valid under the schema
//! `sub`. A result of false means that no proof was found.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    super::{
        json_values::{items, members},
        object_keywords::AdditionalProperties,
        schema::members_of,
        schema_resolution::inner,
    },
    Validity,
    schema_containment::KeywordContainment,
    validity::{depends_on, requires},
};

impl<'a> KeywordContainment<'_, '_, 'a> {
    /// Whether `sub` refuses undeclared properties, and the names of its declared properties are all valid under the `propertyNames` of
    /// `sup`.
    pub fn names(&self) -> bool {
        let listed = self.one.member("properties");
        let names = self.sup.with(self.other.member("propertyNames"));
        let closed = matches!(AdditionalProperties::of(self.sub_object), AdditionalProperties::Refused);
        closed
            && !self.sub_object.contains_key("patternProperties")
            && members_of(&listed).keys().all(|name| self.semantics.validity(&names, &name.as_str().into(), self.depth) == Validity::Valid)
    }

    pub fn dependent_required(&self) -> bool {
        let before = members(self.sub_object.get("dependentRequired").unwrap_or(&Value::Null));
        members(self.sup_object.get("dependentRequired").unwrap_or(&Value::Null)).iter().all(|(name, needed)| {
            let already = items(before.get(name));
            let absent = self.absent(name);
            absent
                || items(Some(needed))
                    .iter()
                    .all(|needed| already.contains(needed) || needed.as_str().is_some_and(|needed| requires(self.sub_object, needed)))
        })
    }

    pub fn dependent_schemas(&self) -> bool {
        let (was, is) = (self.one.member("dependentSchemas"), self.other.member("dependentSchemas"));
        members_of(&is).keys().all(|name| {
            let (had, has) = (inner(&was, name), inner(&is, name));
            self.absent(name)
                || had.is_some() && self.fits(had, has.clone())
                || self.semantics.fits(self.sub, &self.sup.with(has), self.depth + 1)
        })
    }

    /// Whether no instance of `sub` has the property `name`.
    fn absent(&self, name: &str) -> bool {
        let declared = self.one.member("properties").as_deref().is_some_and(|listed| listed.get(name).is_some());
        let open = matches!(AdditionalProperties::of(self.sub_object), AdditionalProperties::Schema | AdditionalProperties::Odd);
        !declared
            && !open
            && !self.sub_object.contains_key("patternProperties")
            && !requires(self.sub_object, name)
            && !depends_on(self.sub_object, name)
    }

    pub fn properties(&self) -> bool {
        if !self.can_be("object") {
            return true;
        }
        let (was, is) = (self.one.member("properties"), self.other.member("properties"));
        let [one, other] = [self.sub_object, self.sup_object].map(AdditionalProperties::of);
        let (more, most) = (self.one.member("additionalProperties"), self.other.member("additionalProperties"));
        let patterns = (self.one.member("patternProperties"), self.other.member("patternProperties"));
        let sup_hidden = |name: &str| inner(&is, name).is_some_and(|property| self.semantics.hidden(&self.sup.with(Some(property))));
        let required = items(self.sup_object.get("required")).iter().filter_map(Value::as_str);
        if !required.clone().all(|name| requires(self.sub_object, name) && !self.hidden(&was, name) || sup_hidden(name)) {
            return false;
        }
        let listed = members_of(&was).keys().all(|name| {
            if self.hidden(&was, name) {
                return true;
            }
            match inner(&is, name) {
                Some(property) => sup_hidden(name) || self.fits(inner(&was, name), Some(property)),
                None => match other {
                    AdditionalProperties::Allowed => !self.semantics.strict,
                    AdditionalProperties::Schema => self.fits(inner(&was, name), most.clone()),
                    AdditionalProperties::Refused => inner(&was, name).as_deref() == Some(&Value::Bool(false)),
                    AdditionalProperties::Odd => false,
                },
            }
        });
        let unlisted = members_of(&is).keys().filter(|name| members_of(&was).get(*name).is_none()).all(|name| match one {
            AdditionalProperties::Schema => sup_hidden(name) || self.fits(more.clone(), inner(&is, name)),
            AdditionalProperties::Odd => false,
            _ => {
                !(requires(self.sub_object, name) || depends_on(self.sub_object, name))
                    || sup_hidden(name)
                    || self.fits(None, inner(&is, name))
            }
        });
        let undeclared = items(self.sub_object.get("required"))
            .iter()
            .filter_map(Value::as_str)
            .all(|name| inner(&was, name).is_some() || inner(&is, name).is_some() || !matches!(other, AdditionalProperties::Refused));
        let others = match (one, other) {
            (_, AdditionalProperties::Allowed) | (AdditionalProperties::Refused, _) => true,
            (AdditionalProperties::Schema, AdditionalProperties::Schema) => self.fits(more.clone(), most.clone()),
            _ => false,
        };
        // Two regular expressions in `patternProperties` count as the same only if their text is equal.
        let by_pattern = match (&patterns.0, &patterns.1) {
            (None, None) => true,
            (None, Some(_)) => matches!(one, AdditionalProperties::Refused) && members_of(&was).is_empty(),
            (_, is) => {
                let covered = members_of(&patterns.0).keys().all(|pattern| match inner(is, pattern) {
                    Some(schema) => self.fits(inner(&patterns.0, pattern), Some(schema)),
                    None => matches!(other, AdditionalProperties::Allowed) && is.is_none(),
                });
                covered && members_of(is).keys().all(|pattern| members_of(&patterns.0).contains_key(pattern))
            }
        };
        listed && unlisted && undeclared && others && by_pattern
    }

    fn hidden(&self, listed: &Option<Cow<'a, Value>>, name: &str) -> bool {
        inner(listed, name).is_some_and(|property| self.semantics.hidden(&self.sub.with(Some(property))))
    }
}
