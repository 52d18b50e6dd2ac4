//! Compares the parameters of operations, and the keywords that parameters share with headers, such as `style` and `schema`.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    json_values::{Object, both_same, canonical, empty, flag, is_annotation, items, members, order, text, without_annotations},
    media_types::{Named, content, name},
    references::{DocumentIndex, reference},
    rules,
    schema_resolution::resolve,
    validation_keywords,
};

/// A path item, one of its operations, and the path template. A parameter of the operation replaces the parameter of the path item with the
/// same name and the same `in` (query, header and so on).
pub(super) struct OperationInPath<'a> {
    pub path: &'a Object,
    pub operation: &'a Object,
    pub template: &'a str,
}

fn parameters<'a>(differ: &Differ<'a>, is_old: bool, scope: &OperationInPath<'a>) -> (Named<'a>, Vec<&'a Value>) {
    let side = if is_old { &differ.old } else { &differ.new };
    let mut named = Named::new();
    let (mut own, mut replaced) = (Vec::new(), Vec::new());
    for (level, list) in [items(scope.operation.get("parameters")), items(scope.path.get("parameters"))].into_iter().enumerate() {
        for parameter in list {
            let Some(object) = side.follow(parameter).ok().and_then(Value::as_object) else {
                // A broken reference or an invalid parameter is compared as plain JSON.
                name(&mut named, format!("parameter {}", canonical(parameter)), "", parameter);
                continue;
            };
            let (place, called) = (text(object, "in").unwrap_or("?"), text(object, "name").unwrap_or("?"));
            let key = match place {
                "path" => match position(scope.template, called) {
                    Some(position) => format!("path {position}"),
                    None => format!("path {called}"),
                },
                "header" => format!("header {}", called.to_lowercase()),
                _ => format!("{place} {called}"),
            };
            if level == 0 {
                own.push(key.clone());
            } else if own.contains(&key) {
                replaced.push(parameter);
                continue;
            }
            name(&mut named, key, called, parameter);
        }
    }
    (named, replaced)
}

/// Returns the position of a parameter among the parameters of a path template.
pub(super) fn position(template: &str, name: &str) -> Option<usize> {
    template.split('{').skip(1).position(|rest| rest.split('}').next() == Some(name))
}

pub(super) fn compare_parameters<'a>(differ: &mut Differ<'a>, at: &Location, old: &OperationInPath<'a>, new: &OperationInPath<'a>) {
    for (before, after) in [(old.path, new.path), (old.operation, new.operation)] {
        differ.lists(&at.part("parameters"), "parameters", before, after);
    }
    let ((mut before, replaced), (mut after, replaces)) = (parameters(differ, true, old), parameters(differ, false, new));
    if replaced != replaces {
        // A parameter of the path item that the operation replaces has no effect, so its change is reported as restated.
        differ.report_detail(&rules::RESTATED, &at.part("path"), "parameters");
    }
    unfollowed(differ, at, true, &mut after, &mut before);
    unfollowed(differ, at, false, &mut before, &mut after);
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let (was, is) = (before.get(key), after.get(key));
        let (at, place) = (at.part(&called(key, was, is)), key.split(' ').next().unwrap_or_default());
        if IGNORED.contains(&key.as_str()) {
            let [before, after] = [was, is].map(|parameter| parameter.map(|(_, value)| without_annotations(value)));
            if before != after {
                differ.report_detail(&rules::RESTATED, &at, "parameter");
            }
            continue;
        }
        match (was, is) {
            (Some((one, was)), Some((other, is))) => {
                if one != other && place == "header" {
                    differ.report_detail(&rules::RESTATED, &at, "name");
                }
                parameter(differ, &at, was, is, place);
            }
            (was, is) if place == "parameter" => differ.report_keyword(&at, "$ref", was.map(|was| was.1), is.map(|is| is.1)),
            (None, None) => {}
            (Some((_, gone)), None) => {
                let needed = differ.old.follow(gone).is_ok_and(|gone| flag(members(gone), "required"));
                differ.report(if needed { &rules::REQUIRED_PARAMETER_REMOVED } else { &rules::PARAMETER_REMOVED }, &at);
                if let Ok(gone) = differ.old.follow(gone) {
                    differ.add_sunset(gone);
                }
            }
            (None, Some((_, come))) => {
                let needed = differ.new.follow(come).is_ok_and(|come| flag(members(come), "required"));
                differ.report(if needed { &rules::REQUIRED_PARAMETER_ADDED } else { &rules::PARAMETER_ADDED }, &at);
            }
        }
    }
}

/// Headers that OpenAPI describes elsewhere. OpenAPI ignores parameters with these names.
const IGNORED: [&str; 3] = ["header accept", "header content-type", "header authorization"];

/// Returns the name of a parameter in a location of the report, such as `query parameter limit`.
fn called(key: &str, was: Option<&(String, &Value)>, is: Option<&(String, &Value)>) -> String {
    let (place, rest) = key.split_once(' ').unwrap_or((key, ""));
    match (was, is) {
        _ if place == "parameter" => place.to_owned(),
        (Some((one, _)), Some((other, _))) if place == "path" && one != other => format!("path parameter #{rest}"),
        (Some((name, _)), _) | (_, Some((name, _))) if place == "path" => format!("path parameter {name}"),
        _ => format!("{place} parameter {rest}"),
    }
}

/// Reports each parameter whose reference is broken in one document only. If the same reference leads to a parameter in the other document,
/// the report names that parameter.
fn unfollowed<'a>(differ: &mut Differ<'a>, at: &Location, is_new: bool, own: &mut Named<'a>, other: &mut Named<'a>) {
    let broken = |(key, (_, value)): (&String, &(String, &'a Value))| {
        Some((key.clone(), reference(value).filter(|_| key.starts_with("parameter "))?))
    };
    for (key, target) in own.iter().filter_map(broken).collect::<Vec<_>>() {
        if other.contains_key(&key) {
            continue;
        }
        let same = other.iter().find(|(_, (_, value))| reference(value) == Some(target)).map(|(key, _)| key.clone());
        let meant = same.and_then(|same| Some((other.remove(&same)?, same)));
        let place = meant.map_or_else(|| "parameter".to_owned(), |(parameter, key)| called(&key, Some(&parameter), None));
        differ.report_either(is_new, &rules::REFERENCE_BROKEN, &rules::REFERENCE_MENDED, &at.part(&place), Some(target));
        own.remove(&key);
    }
}

pub(super) const PARAMETER: [&str; 11] =
    ["name", "in", "required", "deprecated", "allowEmptyValue", "allowReserved", "style", "explode", "schema", "content", "$ref"];

fn parameter<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Value, new: &'a Value, place: &str) {
    let Some((old, new)) = differ.objects(at, old, new) else { return };
    flags(differ, at, old, new, &rules::PARAMETER_BECAME_REQUIRED, &rules::PARAMETER_BECAME_OPTIONAL);
    differ.report_flag(flag(old, "allowEmptyValue"), flag(new, "allowEmptyValue"), &rules::EMPTY_ALLOWED, &rules::EMPTY_REFUSED, at);
    written(differ, at, old, new, place);
    let at = &at.required([flag(old, "required"), flag(new, "required")]);
    value(differ, at, old, new, place);
    differ.rest(at, old, new, &PARAMETER);
}

/// Compares the keywords `required` and `deprecated`. For these keywords and `allowEmptyValue`, also reports changes of a value that is no
/// boolean (as unknown) and changes without effect (as restated).
pub(super) fn flags(
    differ: &mut Differ,
    at: &Location,
    old: &Object,
    new: &Object,
    set: &'static rules::Rule,
    unset: &'static rules::Rule,
) {
    differ.report_flag(flag(old, "required"), flag(new, "required"), set, unset, at);
    differ.report_flag(flag(old, "deprecated"), flag(new, "deprecated"), &rules::DEPRECATED, &rules::UNDEPRECATED, at);
    for key in ["required", "deprecated", "allowEmptyValue"] {
        if !both_same(old.get(key), new.get(key)) && flag(old, key) == flag(new, key) {
            let odd = [old, new].iter().any(|object| object.get(key).is_some_and(|value| !value.is_boolean()));
            if odd { differ.report_keyword(at, key, old.get(key), new.get(key)) } else { differ.report_detail(&rules::RESTATED, at, key) }
        }
    }
}

/// Compares how a parameter or a header is serialised: its `style`, `explode` and `allowReserved`.
pub(super) fn written(differ: &mut Differ, at: &Location, old: &Object, new: &Object, place: &str) {
    const KEYS: [&str; 3] = ["style", "explode", "allowReserved"];
    // `explode` has no effect on a plain value (no list, no object), nor on the style `deepObject`. In these cases the description of the
    // serialisation leaves `explode` out.
    let plain = plain(&differ.old, old) && plain(&differ.new, new);
    let spelled = |object: &Object| {
        let style = object
            .get("style")
            .map(canonical)
            .unwrap_or_else(|| format!("\"{}\"", if matches!(place, "query" | "cookie") { "form" } else { "simple" }));
        let explode = object.get("explode").map(canonical).unwrap_or_else(|| (style == "\"form\"").to_string());
        let by = match object.contains_key("content") {
            true => "as its media type".to_owned(),
            false if plain || style == "\"deepObject\"" => format!("style {style}"),
            false => format!("style {style}, explode {explode}"),
        };
        by.replace('"', "`")
    };
    let from = differ.found.len();
    let (before, after) = (spelled(old), spelled(new));
    if before != after {
        differ.report_values(&rules::SERIALISATION_CHANGED, at, Some(&before.into()), Some(&after.into()));
    }
    if [old, new].iter().all(|object| object.get("allowReserved").is_none_or(Value::is_boolean)) {
        let reserved = (flag(old, "allowReserved"), flag(new, "allowReserved"));
        differ.report_flag(reserved.0, reserved.1, &rules::RESERVED_ALLOWED, &rules::RESERVED_REFUSED, at);
    } else {
        differ.report_keyword(at, "allowReserved", old.get("allowReserved"), new.get("allowReserved"));
    }
    let differing: Vec<_> = KEYS.into_iter().filter(|key| !both_same(old.get(*key), new.get(*key))).collect();
    if differ.found.len() == from && !differing.is_empty() {
        differ.report_detail(&rules::RESTATED, at, &differing.join(", "));
    }
}

/// Whether the values of a parameter are neither lists nor objects.
fn plain(side: &DocumentIndex, parameter: &Object) -> bool {
    let schema = parameter.get("schema").map(|schema| resolve(side, Cow::Owned(schema.clone())).schema.into_owned());
    let types =
        schema.as_ref().and_then(|schema| validation_keywords::named_types(members(schema)).map(|types| types.into_iter().all(is_plain)));
    types.unwrap_or_default()
}

fn is_plain(name: &str) -> bool {
    ["string", "integer", "number", "boolean", "null"].contains(&name)
}

/// Compares the `schema` or `content` of a parameter or a header.
pub(super) fn value<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object, place: &str) {
    if old.contains_key("content") || new.contains_key("content") {
        if old.contains_key("content") && new.contains_key("content") {
            content(differ, at, old, new);
        }
        differ.report_keyword(at, "schema", old.get("schema"), new.get("schema"));
        return;
    }
    let (before, after) = (old.get("schema"), new.get("schema"));
    let at = &at.as_text();
    if let (Some(was), Some(is)) = (before, after) {
        // If a list is written as one parameter for each item, a single value is written like a list of one item. So there are separate
        // rules for a change between a single value and such a list.
        let lists = [(&differ.old, old, was), (&differ.new, new, is)].map(|(side, parameter, schema)| list(side, parameter, schema, place));
        let scalars = [(&differ.old, old), (&differ.new, new)].map(|(side, parameter)| plain(side, parameter));
        match lists {
            [None, Some(items)] if scalars[0] => {
                let kind = kind(&differ.old, was);
                differ.report_values(&rules::LIST_ALLOWED, at, Some(&kind), Some(&"array".into()));
                return differ.schema(&at.step("[]"), Some(was), Some(items));
            }
            [Some(items), None] if scalars[1] => {
                let kind = kind(&differ.new, is);
                differ.report_values(&rules::LIST_REFUSED, at, Some(&"array".into()), Some(&kind));
                return differ.schema(&at.step("[]"), Some(items), Some(is));
            }
            _ => {}
        }
    }
    differ.schema(at, before, after);
}

/// Returns the schema of the items of a list, if the list is written as one parameter for each item and a list of one item is valid. None
/// for a list with further keywords such as `enum`, which might refuse a list of one item.
fn list<'a>(side: &DocumentIndex<'a>, parameter: &Object, schema: &'a Value, place: &str) -> Option<&'a Value> {
    let form = text(parameter, "style").is_none_or(|style| style == "form") && ["query", "cookie"].contains(&place);
    let explode = parameter.get("explode").is_none_or(|explode| *explode == Value::Bool(true));
    let schema = members(side.follow(schema).ok()?);
    let one = Value::from(1);
    let single = schema.get("minItems").is_none_or(|least| order(least, &one).is_le());
    let known = ["type", "items", "minItems", "maxItems", "uniqueItems", "default"];
    let bare = schema.keys().all(|key| known.contains(&key.as_str()) || is_annotation(key));
    let several = schema.get("maxItems").is_none_or(|most| order(most, &one).is_ge());
    (form && explode && single && several && bare && text(schema, "type") == Some("array")).then(|| schema.get("items").unwrap_or(empty()))
}

/// Returns the types of a schema in words.
fn kind(side: &DocumentIndex, schema: &Value) -> Value {
    let schema = resolve(side, Cow::Owned(schema.clone())).schema.into_owned();
    let types = validation_keywords::named_types(members(&schema)).unwrap_or_default();
    types.into_iter().collect::<Vec<_>>().join(" or ").into()
}
