//! Parameters of operations, and what they and headers have in common.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{
    contents::{Named, content, name},
    flat::flat,
    keywords,
    refs::{Side, reference},
    rules,
    values::{Object, bare, both_same, canonical, flag, items, members, text},
    walk::{At, Walk},
};

/// The parameters of both sides, the path's own replaced by those of the operation.
pub(super) struct Scope<'a> {
    pub path: &'a Object,
    pub operation: &'a Object,
    pub template: &'a str,
}

fn parameters<'a>(walk: &Walk<'a>, is_old: bool, scope: &Scope<'a>) -> (Named<'a>, Vec<&'a Value>) {
    let side = if is_old { &walk.old } else { &walk.new };
    let mut named = Named::new();
    let (mut own, mut replaced) = (Vec::new(), Vec::new());
    for (level, list) in [items(scope.operation.get("parameters")), items(scope.path.get("parameters"))].into_iter().enumerate() {
        for parameter in list {
            let Some(object) = side.follow(parameter).ok().and_then(Value::as_object) else {
                // Leads nowhere, or is none: compared by how it is written.
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

/// At which place of a path its parameter stands.
pub(super) fn position(template: &str, name: &str) -> Option<usize> {
    template.split('{').skip(1).position(|rest| rest.split('}').next() == Some(name))
}

pub(super) fn compare_parameters<'a>(walk: &mut Walk<'a>, at: &At, old: &Scope<'a>, new: &Scope<'a>) {
    for (before, after) in [(old.path, new.path), (old.operation, new.operation)] {
        walk.lists(&at.part("parameters"), "parameters", before, after);
    }
    let ((mut before, replaced), (mut after, replaces)) = (parameters(walk, true, old), parameters(walk, false, new));
    if replaced != replaces {
        // Those of the path that the operation replaces have no effect.
        walk.tell_of(&rules::RESTATED, &at.part("path"), "parameters");
    }
    unfollowed(walk, at, true, &mut after, &mut before);
    unfollowed(walk, at, false, &mut before, &mut after);
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let (was, is) = (before.get(key), after.get(key));
        let (at, place) = (at.part(&called(key, was, is)), key.split(' ').next().unwrap_or_default());
        if IGNORED.contains(&key.as_str()) {
            let [before, after] = [was, is].map(|parameter| parameter.map(|(_, value)| bare(value)));
            if before != after {
                walk.tell_of(&rules::RESTATED, &at, "parameter");
            }
            continue;
        }
        match (was, is) {
            (Some((one, was)), Some((other, is))) => {
                if one != other && place == "header" {
                    walk.tell_of(&rules::RESTATED, &at, "name");
                }
                parameter(walk, &at, was, is, place);
            }
            (was, is) if place == "parameter" => walk.tell_keyword(&at, "$ref", was.map(|was| was.1), is.map(|is| is.1)),
            (None, None) => {}
            (Some((_, gone)), None) => {
                let needed = walk.old.follow(gone).is_ok_and(|gone| flag(members(gone), "required"));
                walk.tell(if needed { &rules::REQUIRED_PARAMETER_REMOVED } else { &rules::PARAMETER_REMOVED }, &at);
            }
            (None, Some((_, come))) => {
                let needed = walk.new.follow(come).is_ok_and(|come| flag(members(come), "required"));
                walk.tell(if needed { &rules::REQUIRED_PARAMETER_ADDED } else { &rules::PARAMETER_ADDED }, &at);
            }
        }
    }
}

/// Headers that OpenAPI describes in other ways: as parameters they say nothing.
const IGNORED: [&str; 3] = ["header accept", "header content-type", "header authorization"];

/// What a place calls a parameter.
fn called(key: &str, was: Option<&(String, &Value)>, is: Option<&(String, &Value)>) -> String {
    let (place, rest) = key.split_once(' ').unwrap_or((key, ""));
    match (was, is) {
        _ if place == "parameter" => place.to_owned(),
        (Some((one, _)), Some((other, _))) if place == "path" && one != other => format!("path parameter #{rest}"),
        (Some((name, _)), _) | (_, Some((name, _))) if place == "path" => format!("path parameter {name}"),
        _ => format!("{place} parameter {rest}"),
    }
}

/// References to parameters that only the other document can follow: the same words there tell which parameter is meant.
fn unfollowed<'a>(walk: &mut Walk<'a>, at: &At, is_new: bool, own: &mut Named<'a>, other: &mut Named<'a>) {
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
        walk.tell_either(is_new, &rules::REFERENCE_BROKEN, &rules::REFERENCE_MENDED, &at.part(&place), Some(target));
        own.remove(&key);
    }
}

pub(super) const PARAMETER: [&str; 11] =
    ["name", "in", "required", "deprecated", "allowEmptyValue", "allowReserved", "style", "explode", "schema", "content", "$ref"];

fn parameter<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Value, new: &'a Value, place: &str) {
    let Some((old, new)) = walk.objects(at, old, new) else { return };
    flags(walk, at, old, new, &rules::PARAMETER_BECAME_REQUIRED, &rules::PARAMETER_BECAME_OPTIONAL);
    walk.tell_flag(flag(old, "allowEmptyValue"), flag(new, "allowEmptyValue"), &rules::EMPTY_ALLOWED, &rules::EMPTY_REFUSED, at);
    written(walk, at, old, new, place);
    value(walk, at, old, new);
    walk.rest(at, old, new, &PARAMETER);
}

/// `required` and `deprecated`; a flag that is no flag is told as it is.
pub(super) fn flags(walk: &mut Walk, at: &At, old: &Object, new: &Object, set: &'static rules::Rule, unset: &'static rules::Rule) {
    walk.tell_flag(flag(old, "required"), flag(new, "required"), set, unset, at);
    walk.tell_flag(flag(old, "deprecated"), flag(new, "deprecated"), &rules::DEPRECATED, &rules::UNDEPRECATED, at);
    for key in ["required", "deprecated", "allowEmptyValue"] {
        if !both_same(old.get(key), new.get(key)) && flag(old, key) == flag(new, key) {
            let odd = [old, new].iter().any(|object| object.get(key).is_some_and(|value| !value.is_boolean()));
            if odd { walk.tell_keyword(at, key, old.get(key), new.get(key)) } else { walk.tell_of(&rules::RESTATED, at, key) }
        }
    }
}

/// How a parameter or a header is put into text.
pub(super) fn written(walk: &mut Walk, at: &At, old: &Object, new: &Object, place: &str) {
    const KEYS: [&str; 3] = ["style", "explode", "allowReserved"];
    // Of a plain value there is nothing to explode; and no other form of `deepObject` is defined.
    let plain = plain(&walk.old, old) && plain(&walk.new, new);
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
    let told = walk.found.len();
    let (before, after) = (spelled(old), spelled(new));
    if before != after {
        walk.tell_values(&rules::SERIALISATION_CHANGED, at, Some(&before.into()), Some(&after.into()));
    }
    if [old, new].iter().all(|object| object.get("allowReserved").is_none_or(Value::is_boolean)) {
        let reserved = (flag(old, "allowReserved"), flag(new, "allowReserved"));
        walk.tell_flag(reserved.0, reserved.1, &rules::RESERVED_ALLOWED, &rules::RESERVED_REFUSED, at);
    } else {
        walk.tell_keyword(at, "allowReserved", old.get("allowReserved"), new.get("allowReserved"));
    }
    let differing: Vec<_> = KEYS.into_iter().filter(|key| !both_same(old.get(*key), new.get(*key))).collect();
    if walk.found.len() == told && !differing.is_empty() {
        walk.tell_of(&rules::RESTATED, at, &differing.join(", "));
    }
}

/// Whether the values of a parameter are neither lists nor objects.
fn plain(side: &Side, parameter: &Object) -> bool {
    let schema = parameter.get("schema").map(|schema| flat(side, Cow::Owned(schema.clone())).schema.into_owned());
    let types = schema.as_ref().and_then(|schema| keywords::named_types(members(schema)).map(|types| types.into_iter().all(is_plain)));
    types.unwrap_or_default()
}

fn is_plain(name: &str) -> bool {
    ["string", "integer", "number", "boolean", "null"].contains(&name)
}

/// The `schema` or `content` of a parameter or a header.
pub(super) fn value<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    if old.contains_key("content") || new.contains_key("content") {
        if old.contains_key("content") && new.contains_key("content") {
            content(walk, at, old, new);
        }
        walk.tell_keyword(at, "schema", old.get("schema"), new.get("schema"));
    } else {
        walk.schema(at, old.get("schema"), new.get("schema"));
    }
}
