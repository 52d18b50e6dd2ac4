//! Compares the schema keywords that hold plain values: types, formats, limits, enumerations, flags.
//!
//! Keywords that take effect together form a group. If a group differs but no rule applies to the difference, the difference has no effect
//! and is reported as restated (without effect). A changed keyword whose value has the wrong type is reported as an unknown change.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location, RefusalCause},
    json_values::{Object, both_same, canonical, flag, items, order, same, text},
    references::DocumentIndex,
    rules::{self, Direction, Rule},
};

type Compare = fn(&mut Differ, &Location, &Object, &Object);

/// A group of keywords that take effect together, and the function that compares them.
pub(super) struct KeywordGroup {
    pub keys: &'static [&'static str],
    fits: fn(&Value) -> bool,
    compare: Compare,
}

impl KeywordGroup {
    pub fn compare(&self, differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
        let differing: Vec<_> = self.keys.iter().filter(|key| !both_same(old.get(**key), new.get(**key))).collect();
        if differing.is_empty() {
            return;
        }
        let odd = |object: &Object| self.keys.iter().any(|key| object.get(*key).is_some_and(|value| !(self.fits)(value)));
        if odd(old) || odd(new) {
            return differing.into_iter().for_each(|key| differ.report_keyword(at, key, old.get(*key), new.get(*key)));
        }
        let before = differ.found.len();
        (self.compare)(differ, at, old, new);
        if differ.found.len() == before {
            let keys: Vec<_> = differing.into_iter().copied().collect();
            differ.report_detail(&rules::RESTATED, at, &keys.join(", "));
        }
    }
}

/// Whether a keyword is compared even if the two schemas have no type in common, because it applies to values of all types. `enum` and
/// `const` apply to all types, too, but are not compared in this case.
pub(super) fn is_of_any_type(key: &str) -> bool {
    ["default", "readOnly", "writeOnly", "deprecated", "nullable", "type"].contains(&key)
}

fn is_type(value: &Value) -> bool {
    value.is_boolean() || value.is_string() || value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
}

fn is_limit(value: &Value) -> bool {
    value.is_number() || value.is_boolean()
}

/// Accepts every value, because `const` and `default` may have any value. An `enum` that is no list is not refused here: it becomes
/// [`AllowedValues::Odd`].
fn any(_: &Value) -> bool {
    true
}

#[rustfmt::skip]
pub(super) static GROUPS: [KeywordGroup; 17] = [
    KeywordGroup { keys: &["type", "nullable"], fits: is_type, compare: types },
    KeywordGroup { keys: &["format", "contentEncoding", "contentMediaType"], fits: Value::is_string, compare: format },
    KeywordGroup { keys: &["pattern"], fits: Value::is_string, compare: pattern },
    KeywordGroup { keys: &["enum", "const", "x-extensible-enum"], fits: any, compare: enumerations },
    KeywordGroup { keys: &["minimum", "exclusiveMinimum"], fits: is_limit, compare: |differ, at, old, new| bound(differ, at, "minimum", old, new) },
    KeywordGroup { keys: &["maximum", "exclusiveMaximum"], fits: is_limit, compare: |differ, at, old, new| bound(differ, at, "maximum", old, new) },
    KeywordGroup { keys: &["minLength"], fits: Value::is_number, compare: |differ, at, old, new| at_least(differ, at, "minLength", old, new) },
    KeywordGroup { keys: &["maxLength"], fits: Value::is_number, compare: |differ, at, old, new| at_most(differ, at, "maxLength", old, new) },
    KeywordGroup { keys: &["minItems"], fits: Value::is_number, compare: |differ, at, old, new| at_least(differ, at, "minItems", old, new) },
    KeywordGroup { keys: &["maxItems"], fits: Value::is_number, compare: |differ, at, old, new| at_most(differ, at, "maxItems", old, new) },
    KeywordGroup { keys: &["minProperties"], fits: Value::is_number, compare: |differ, at, old, new| at_least(differ, at, "minProperties", old, new) },
    KeywordGroup { keys: &["maxProperties"], fits: Value::is_number, compare: |differ, at, old, new| at_most(differ, at, "maxProperties", old, new) },
    KeywordGroup { keys: &["multipleOf"], fits: Value::is_number, compare: multiple },
    KeywordGroup { keys: &["default"], fits: any, compare: default },
    KeywordGroup { keys: &["uniqueItems"], fits: Value::is_boolean, compare: |differ, at, old, new| {
        let unique = (flag(old, "uniqueItems"), flag(new, "uniqueItems"));
        if unique.0 != unique.1 {
            differ.report_either(unique.1, &rules::CONSTRAINT_ADDED, &rules::CONSTRAINT_REMOVED, at, Some("uniqueItems"));
        }
    } },
    KeywordGroup { keys: &["readOnly", "writeOnly"], fits: Value::is_boolean, compare: |differ, at, old, new| {
        differ.report_flag(flag(old, "readOnly"), flag(new, "readOnly"), &rules::READ_ONLY_ADDED, &rules::READ_ONLY_REMOVED, at);
        differ.report_flag(flag(old, "writeOnly"), flag(new, "writeOnly"), &rules::WRITE_ONLY_ADDED, &rules::WRITE_ONLY_REMOVED, at);
    } },
    KeywordGroup { keys: &["deprecated"], fits: Value::is_boolean, compare: |differ, at, old, new| {
        differ.report_flag(flag(old, "deprecated"), flag(new, "deprecated"), &rules::DEPRECATED, &rules::UNDEPRECATED, at);
    } },
];

/// Whether a keyword is absent or has the right type in both schemas. If not, reports the difference.
pub(super) fn shaped(differ: &mut Differ, at: &Location, key: &str, old: &Object, new: &Object, fits: fn(&Value) -> bool) -> bool {
    if [old, new].iter().all(|object| object.get(key).is_none_or(fits)) {
        return true;
    }
    differ.report_keyword(at, key, old.get(key), new.get(key));
    false
}

/// Returns the types that a schema names, without `null` if it names several types. None if the schema has no `type`.
pub(super) fn named_types(schema: &Object) -> Option<BTreeSet<&str>> {
    let named = schema.get("type")?;
    let all: BTreeSet<_> = named.as_str().into_iter().chain(items(Some(named)).iter().filter_map(Value::as_str)).collect();
    if all.len() == 1 { Some(all) } else { Some(all.into_iter().filter(|name| *name != "null").collect()) }
}

pub(super) fn takes_null(side: &DocumentIndex, schema: &Object) -> bool {
    // OpenAPI 3.0 has the keyword `nullable`. OpenAPI 3.1 lists `null` among the types instead.
    let listed = items(schema.get("type"));
    !side.document.is_3_1() && flag(schema, "nullable") || listed.iter().any(|name| name == "null") && listed.len() > 1
}

/// Reports whether null became allowed or refused. A schema without a type accepts null anyway. OpenAPI 3.0 does not define `nullable` next
/// to `oneOf` or `anyOf`; this crate takes it to allow null, as the authors of such documents intend.
fn null(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    let typed = |schema: &Object| schema.contains_key("type");
    let varied = |schema: &Object| schema.contains_key("oneOf") || schema.contains_key("anyOf");
    if typed(old) && typed(new) || !typed(old) && !typed(new) && (varied(old) || varied(new)) {
        differ.report_flag(takes_null(&differ.old, old), takes_null(&differ.new, new), &rules::NULL_ALLOWED, &rules::NULL_REFUSED, at);
    }
}

/// Whether all types of `one` are types of `other`. An integer is also a number, and None stands for all types.
fn within(one: Option<&BTreeSet<&str>>, other: Option<&BTreeSet<&str>>) -> bool {
    let Some(other) = other else { return true };
    one.is_some_and(|one| one.iter().all(|name| other.contains(name) || *name == "integer" && other.contains("number")))
}

pub(super) fn has_odd_type(schema: &Object) -> bool {
    schema.get("type").is_some_and(|named| named.is_boolean() || !is_type(named))
        || schema.get("nullable").is_some_and(|flag| !flag.is_boolean())
}

/// Whether both schemas name types, and have no type in common. If so, also reports that the type changed. The caller then leaves out the
/// keywords that apply only to some types.
pub(super) fn types_exclude(differ: &mut Differ, at: &Location, old: &Object, new: &Object) -> bool {
    if has_odd_type(old) || has_odd_type(new) {
        return false;
    }
    let (Some(before), Some(after)) = (named_types(old), named_types(new)) else { return false };
    let overlap = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| one.iter().any(|name| within(Some(&BTreeSet::from([*name])), Some(other)));
    if overlap(&before, &after) || overlap(&after, &before) || before == after {
        return false;
    }
    let rule = match at.text && !takes_null(&differ.old, old) && !takes_null(&differ.new, new) {
        true if is_free_text(&after, new) && before.iter().all(|name| SCALARS.contains(name)) => &rules::TEXT_WIDENED,
        true if is_free_text(&before, old) && after.iter().all(|name| SCALARS.contains(name)) => &rules::TEXT_NARROWED,
        _ => &rules::TYPE_CHANGED,
    };
    let from = differ.found.len();
    differ.report_values(rule, at, Some(&spelled(Some(&before), false)), Some(&spelled(Some(&after), false)));
    null(differ, at, old, new);
    // If values are written as plain text, the same text may be a value of the old type and of the new type: `5` is an integer and a
    // string. So no cause is set, and no witness is searched for.
    if !at.text {
        differ.blame(from, &RefusalCause::Keywords(vec!["type".to_owned(), "nullable".to_owned()]));
    }
    true
}

const SCALARS: [&str; 3] = ["integer", "number", "boolean"];

/// Whether a schema accepts every text: it allows strings, and none of its keywords restricts them.
fn is_free_text(types: &BTreeSet<&str>, schema: &Object) -> bool {
    let free = ["minLength", "maxLength", "pattern", "format", "enum", "const", "not", "oneOf", "anyOf", "allOf"]
        .iter()
        .all(|key| !schema.contains_key(*key));
    types.contains("string") && free
}

/// Returns the names of types in words, such as `string or null`. `null` is appended if the parameter `null` is set.
fn spelled(types: Option<&BTreeSet<&str>>, null: bool) -> Value {
    let null = null.then_some("null");
    types.map_or_else(|| "of any type".to_owned(), |types| types.iter().copied().chain(null).collect::<Vec<_>>().join(" or ")).into()
}

fn types(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    if has_odd_type(old) || has_odd_type(new) {
        for key in ["type", "nullable"] {
            differ.report_keyword(at, key, old.get(key), new.get(key));
        }
        return;
    }
    let (before, after) = (named_types(old), named_types(new));
    if before != after {
        let rule = match (within(before.as_ref(), after.as_ref()), within(after.as_ref(), before.as_ref())) {
            (true, _) => &rules::TYPE_WIDENED,
            (false, true) => &rules::TYPE_NARROWED,
            (false, false) => &rules::TYPE_CHANGED,
        };
        let null = before.is_none() || after.is_none();
        let null = [null && takes_null(&differ.old, old), null && takes_null(&differ.new, new)];
        differ.report_values(rule, at, Some(&spelled(before.as_ref(), null[0])), Some(&spelled(after.as_ref(), null[1])));
    }
    null(differ, at, old, new);
}

/// Compares the format of a value, and the encoding of bytes as text. OpenAPI 3.0 uses `format` for both; 3.1 has separate keywords.
fn format(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    let spelled = |schema: &Object| match ["format", "contentEncoding", "contentMediaType"].map(|key| text(schema, key).map(str::to_owned))
    {
        [None, Some(encoding), media] if encoding == "base64" => [Some("byte".to_owned()), None, media],
        [None, None, Some(media)] if media == "application/octet-stream" => [Some("binary".to_owned()), None, None],
        as_it_is => as_it_is,
    };
    let (before, after) = (spelled(old), spelled(new));
    if before == after {
        return;
    }
    for key in ["contentEncoding", "contentMediaType"] {
        let rule = match (old.get(key), new.get(key)) {
            (None, Some(_)) => &rules::ENCODING_ADDED,
            (Some(_), None) => &rules::ENCODING_REMOVED,
            (one, other) if one != other => &rules::ENCODING_CHANGED,
            _ => continue,
        };
        differ.report_full(rule, at, Some(key), old.get(key), new.get(key));
    }
    if text(old, "format") == text(new, "format") {
        return;
    }
    let rule = match (text(old, "format"), text(new, "format")) {
        (None, _) => &rules::FORMAT_ADDED,
        (_, None) => &rules::FORMAT_REMOVED,
        (Some("int32"), Some("int64")) | (Some("float"), Some("double")) => &rules::FORMAT_WIDENED,
        (Some("int64"), Some("int32")) | (Some("double"), Some("float")) => &rules::FORMAT_NARROWED,
        _ => &rules::FORMAT_CHANGED,
    };
    differ.report_values(rule, at, old.get("format"), new.get("format"));
}

fn pattern(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    let rule = match (old.get("pattern"), new.get("pattern")) {
        (None, _) => &rules::PATTERN_ADDED,
        (_, None) => &rules::PATTERN_REMOVED,
        _ => &rules::PATTERN_CHANGED,
    };
    differ.report_values(rule, at, old.get("pattern"), new.get("pattern"));
}

/// Compares defaults. A default takes effect only where the value may be missing.
fn default(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    if at.direction == Direction::Request && at.required.contains(&true) {
        let none = Value::from("nothing");
        let [before, after] = [old, new].map(|object| object.get("default").unwrap_or(&none));
        return differ.report_values(&rules::DEFAULT_IDLE, at, Some(before), Some(after));
    }
    let rule = match (old.get("default"), new.get("default")) {
        (None, _) => &rules::DEFAULT_ADDED,
        (_, None) => &rules::DEFAULT_REMOVED,
        _ => &rules::DEFAULT_CHANGED,
    };
    differ.report_values(rule, at, old.get("default"), new.get("default"));
}

/// Reports a changed limit. `stricter` is true if the limit became stricter, false if it became looser, and None if that is unknown. For an
/// absent limit, the report shows `unlimited`.
fn limit(differ: &mut Differ, at: &Location, key: &str, values: (Option<&Value>, Option<&Value>), stricter: Option<bool>) {
    let rule: &'static Rule = match stricter {
        Some(true) => &rules::LIMIT_TIGHTENED,
        Some(false) => &rules::LIMIT_LOOSENED,
        None => &rules::LIMIT_CHANGED,
    };
    let none = Value::from("unlimited");
    differ.report_full(rule, at, Some(key), Some(values.0.unwrap_or(&none)), Some(values.1.unwrap_or(&none)));
}

/// Compares a lower limit of a count. An absent limit counts as 0.
fn at_least(differ: &mut Differ, at: &Location, key: &str, old: &Object, new: &Object) {
    let [before, after] = [old, new].map(|object| object.get(key).cloned().unwrap_or_else(|| 0.into()));
    let zero = Value::from(0);
    let least = |value| if order(value, &zero).is_lt() { &zero } else { value };
    let ordering = order(least(&after), least(&before));
    if ordering.is_ne() {
        limit(differ, at, key, (Some(&before), Some(&after)), Some(ordering.is_gt()));
    }
}

fn at_most(differ: &mut Differ, at: &Location, key: &str, old: &Object, new: &Object) {
    let (before, after) = (old.get(key), new.get(key));
    let stricter = match (before, after) {
        (Some(before), Some(after)) if order(after, before).is_eq() => return,
        (Some(before), Some(after)) => order(after, before).is_lt(),
        (None, None) => return,
        (None, _) => true,
        (_, None) => false,
    };
    limit(differ, at, key, (before, after), Some(stricter));
}

/// Compares a lower or an upper bound, which may be inclusive or exclusive. In OpenAPI 3.0 a flag makes a bound exclusive; in 3.1 a
/// separate keyword contains the exclusive bound.
fn bound(differ: &mut Differ, at: &Location, key: &'static str, old: &Object, new: &Object) {
    let lower = key == "minimum";
    // Orders bounds by strictness. A lower bound is stricter if its number is greater, an upper bound if its number is smaller. If the
    // numbers are equal, an exclusive bound is stricter than an inclusive one.
    let strictness = |one: &(&Value, bool), other: &(&Value, bool)| {
        let ordering = order(one.0, other.0);
        (if lower { ordering } else { ordering.reverse() }).then(one.1.cmp(&other.1))
    };
    fn effective<'v>(
        object: &'v Object,
        key: &str,
        excluding: &str,
        strictness: impl Fn(&(&Value, bool), &(&Value, bool)) -> std::cmp::Ordering,
    ) -> Option<(&'v Value, bool)> {
        let (bound, exclusive) = (object.get(key).filter(|value| value.is_number()), object.get(excluding));
        let plain = bound.map(|bound| (bound, exclusive == Some(&Value::Bool(true))));
        let own = exclusive.filter(|value| value.is_number()).map(|bound| (bound, true));
        [plain, own].into_iter().flatten().max_by(strictness)
    }
    let excluding = if lower { "exclusiveMinimum" } else { "exclusiveMaximum" };
    let shown = |bound: Option<(&Value, bool)>| {
        bound.map(|(value, excluded)| if excluded { format!("{} (excluded)", canonical(value)).into() } else { value.clone() })
    };
    let [before, after] = [old, new].map(|object| effective(object, key, excluding, strictness));
    // For integers, an exclusive bound allows the same values as an inclusive bound at the next greater integer (for a lower bound) or the
    // next smaller one (for an upper bound).
    let whole = |(bound, excluded): (&Value, bool)| {
        bound.as_i64().map(|bound| i128::from(bound) + if lower { i128::from(excluded) } else { -i128::from(excluded) })
    };
    let integers = [old, new].iter().all(|object| named_types(object).is_some_and(|types| types.iter().eq(["integer"].iter())));
    if let (true, Some(Some(one)), Some(Some(other))) = (integers, before.map(whole), after.map(whole))
        && one == other
    {
        return;
    }
    let stricter = match (before, after) {
        (None, None) => return,
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (Some(before), Some(after)) => match strictness(&after, &before) {
            std::cmp::Ordering::Equal => return,
            ordering => ordering.is_gt(),
        },
    };
    limit(differ, at, key, (shown(before).as_ref(), shown(after).as_ref()), Some(stricter));
}

fn multiple(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    fn of(object: &Object) -> Option<&Value> {
        let whole = text(object, "type") == Some("integer");
        object.get("multipleOf").filter(|step| order(step, &0.into()).is_gt() && !(whole && order(step, &1.into()).is_eq()))
    }
    let divides = |small: &Value, large: &Value| match (small.as_u64(), large.as_u64()) {
        (Some(small), Some(large)) => large.is_multiple_of(small),
        _ => small.as_f64().zip(large.as_f64()).is_some_and(|(small, large)| (large / small).fract() == 0.0),
    };
    let stricter = match (of(old), of(new)) {
        (None, None) if [old, new].iter().all(|object| object.get("multipleOf").is_none_or(|step| order(step, &1.into()).is_eq())) => {
            return;
        }
        (None, Some(_)) => Some(true),
        (Some(_), None) => Some(false),
        (Some(before), Some(after)) if divides(before, after) => Some(true),
        (Some(before), Some(after)) if divides(after, before) => Some(false),
        _ => None,
    };
    limit(differ, at, "multipleOf", (old.get("multipleOf"), new.get("multipleOf")), stricter);
}

/// The values that a schema allows.
enum AllowedValues<'v> {
    Any,
    Closed(&'v [Value]),
    /// The values of `x-extensible-enum`, a list to which a later version of the document may add values.
    Open(&'v [Value]),
    /// A combination of keywords that no rule covers.
    Odd,
}

impl<'v> AllowedValues<'v> {
    fn of(schema: &'v Object) -> Self {
        let is_boolean = text(schema, "type") == Some("boolean");
        match (schema.get("enum"), schema.get("const"), schema.get("x-extensible-enum")) {
            (None, None, None) => Self::Any,
            // For a boolean, a list of true and false allows every value.
            (Some(Value::Array(values)), None, _) if is_boolean && [true, false].iter().all(|flag| values.contains(&(*flag).into())) => {
                Self::Any
            }
            // An open list (`x-extensible-enum`) next to an `enum` permits no further value.
            (Some(Value::Array(values)), None, _) => Self::Closed(values),
            (None, Some(value), _) => Self::Closed(std::slice::from_ref(value)),
            (None, None, Some(Value::Array(values))) => Self::Open(values),
            _ => Self::Odd,
        }
    }
}

fn enumerations(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    use rules as r;
    let list = |values: &[Value]| Value::Array(values.to_vec());
    let is_closed = |schema: &Object| ["enum", "const"].iter().any(|key| schema.contains_key(*key));
    if is_closed(old) && is_closed(new) && !both_same(old.get("x-extensible-enum"), new.get("x-extensible-enum")) {
        differ.report_detail(&r::RESTATED, at, "x-extensible-enum");
    }
    match (AllowedValues::of(old), AllowedValues::of(new)) {
        (AllowedValues::Odd, _) | (_, AllowedValues::Odd) => {
            for key in ["enum", "const", "x-extensible-enum"] {
                differ.report_keyword(at, key, old.get(key), new.get(key));
            }
        }
        (AllowedValues::Any, AllowedValues::Any) => {}
        (AllowedValues::Any, AllowedValues::Closed(values)) => differ.report_values(&r::ENUM_INTRODUCED, at, None, Some(&list(values))),
        (AllowedValues::Closed(values), AllowedValues::Any) => differ.report_values(&r::ENUM_DROPPED, at, Some(&list(values)), None),
        (AllowedValues::Any, AllowedValues::Open(values)) => differ.report_values(&r::OPEN_LIST_ADDED, at, None, Some(&list(values))),
        (AllowedValues::Open(values), AllowedValues::Any) => differ.report_values(&r::OPEN_LIST_REMOVED, at, Some(&list(values)), None),
        (AllowedValues::Closed(before), AllowedValues::Closed(after)) => {
            values(differ, at, before, after, &r::ENUM_VALUE_ADDED, &r::ENUM_VALUE_REMOVED)
        }
        (AllowedValues::Open(before), AllowedValues::Open(after)) => {
            values(differ, at, before, after, &r::OPEN_VALUE_ADDED, &r::OPEN_VALUE_REMOVED)
        }
        (AllowedValues::Closed(before), AllowedValues::Open(after)) => {
            differ.report(&r::ENUM_OPENED, at);
            values(differ, at, before, after, &r::OPEN_VALUE_ADDED, &r::OPEN_VALUE_REMOVED);
        }
        (AllowedValues::Open(before), AllowedValues::Closed(after)) => {
            differ.report(&r::ENUM_CLOSED, at);
            values(differ, at, before, after, &r::OPEN_VALUE_ADDED, &r::OPEN_VALUE_REMOVED);
        }
    }
}

fn values(differ: &mut Differ, at: &Location, before: &[Value], after: &[Value], added: &'static Rule, removed: &'static Rule) {
    let missing = |from: &[Value], value: &Value| !from.iter().any(|other| same(value, other));
    for value in before.iter().filter(|value| missing(after, value)) {
        differ.report_detail(removed, at, &canonical(value));
    }
    for value in after.iter().filter(|value| missing(before, value)) {
        differ.report_detail(added, at, &canonical(value));
    }
}
