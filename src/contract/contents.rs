//! What goes over the wire in an operation: parameters, bodies, answers, headers, links.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    rules::{self, Direction},
    values::{Object, both_same, canonical, empty, flag, items, keys, members, same, text},
    walk::{At, Walk},
};

/// Things by what tells them apart, with the way in which each document writes that.
type Named<'a> = BTreeMap<String, (String, &'a Value)>;

/// Adds one under its key; what says the same twice is kept apart.
fn name<'a>(named: &mut Named<'a>, key: String, written: &str, value: &'a Value) {
    let (mut unique, mut count) = (key.clone(), 1);
    while named.contains_key(&unique) {
        count += 1;
        unique = format!("{key} ({count})");
    }
    named.insert(unique, (written.to_owned(), value));
}

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
    let ((before, replaced), (after, replaces)) = (parameters(walk, true, old), parameters(walk, false, new));
    if replaced != replaces {
        // Those of the path that the operation replaces have no effect.
        walk.tell_of(&rules::RESTATED, &at.part("path"), "parameters");
    }
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let (was, is) = (before.get(key), after.get(key));
        let (place, rest) = key.split_once(' ').unwrap_or((key, ""));
        let called = match (was, is) {
            (Some((one, _)), Some((other, _))) if one == other && place == "path" => one.clone(),
            (Some((one, _)), None) | (None, Some((one, _))) if place == "path" => one.clone(),
            _ if place == "path" => format!("#{rest}"),
            _ => rest.to_owned(),
        };
        let at = if place == "parameter" { at.part("parameter") } else { at.part(&format!("{place} parameter {called}")) };
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

const PARAMETER: [&str; 11] =
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
fn flags(walk: &mut Walk, at: &At, old: &Object, new: &Object, set: &'static rules::Rule, unset: &'static rules::Rule) {
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
fn written(walk: &mut Walk, at: &At, old: &Object, new: &Object, place: &str) {
    const KEYS: [&str; 3] = ["style", "explode", "allowReserved"];
    let spelled = |object: &Object| {
        let style = object
            .get("style")
            .map(canonical)
            .unwrap_or_else(|| format!("\"{}\"", if matches!(place, "query" | "cookie") { "form" } else { "simple" }));
        let explode = object.get("explode").map(canonical).unwrap_or_else(|| (style == "\"form\"").to_string());
        let reserved = object.get("allowReserved").map(canonical).unwrap_or_else(|| "false".to_owned());
        let by = if object.contains_key("content") { "as its media type".to_owned() } else { format!("style {style}, explode {explode}") };
        format!("{by}{}", if reserved == "false" { "" } else { ", reserved characters allowed" }).replace('"', "`")
    };
    let (before, after) = (spelled(old), spelled(new));
    if before != after {
        walk.tell_values(&rules::SERIALISATION_CHANGED, at, Some(&before.into()), Some(&after.into()));
    } else {
        let differing: Vec<_> = KEYS.into_iter().filter(|key| !both_same(old.get(*key), new.get(*key))).collect();
        if !differing.is_empty() {
            walk.tell_of(&rules::RESTATED, at, &differing.join(", "));
        }
    }
}

/// The `schema` or `content` of a parameter or a header.
fn value<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    if old.contains_key("content") || new.contains_key("content") {
        if old.contains_key("content") && new.contains_key("content") {
            content(walk, at, old, new);
        }
        walk.tell_keyword(at, "schema", old.get("schema"), new.get("schema"));
    } else {
        walk.schema(at, old.get("schema"), new.get("schema"));
    }
}

pub(super) fn compare_body<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let at = at.part("request body");
    let (before, after) = match (old.get("requestBody"), new.get("requestBody")) {
        (None, None) => return,
        (Some(before), Some(after)) => (before, after),
        (Some(gone), None) => {
            let needed = walk.old.follow(gone).is_ok_and(|gone| flag(members(gone), "required"));
            return walk.tell(if needed { &rules::REQUIRED_BODY_REMOVED } else { &rules::BODY_REMOVED }, &at);
        }
        (None, Some(come)) => {
            let needed = walk.new.follow(come).is_ok_and(|come| flag(members(come), "required"));
            return walk.tell(if needed { &rules::REQUIRED_BODY_ADDED } else { &rules::BODY_ADDED }, &at);
        }
    };
    let Some((before, after)) = walk.objects(&at, before, after) else { return };
    flags(walk, &at, before, after, &rules::BODY_BECAME_REQUIRED, &rules::BODY_BECAME_OPTIONAL);
    content(walk, &at, before, after);
    walk.rest(&at, before, after, &["required", "content", "$ref"]);
}

/// Bodies by media type.
fn content<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = walk.maps(at, "content", old, new) else { return };
    let types = |map: &'a Object| {
        let mut named = Named::new();
        map.iter().for_each(|(written, media)| name(&mut named, media_type(written), written, media));
        named
    };
    let (before, after) = (types(before), types(after));
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let (Some((one, was)), Some((other, is))) = (before.get(key), after.get(key)) else {
            walk.tell_either(after.contains_key(key), &rules::MEDIA_TYPE_ADDED, &rules::MEDIA_TYPE_REMOVED, at, Some(key));
            continue;
        };
        // The type that nearly every body has goes without saying.
        let at = if key == "application/json" { at.clone() } else { at.part(&format!("({key})")) };
        if one != other {
            walk.tell_of(&rules::RESTATED, &at, "media type");
        }
        let Some((was, is)) = walk.objects(&at, was, is) else { continue };
        walk.schema(&at, was.get("schema"), is.get("schema"));
        walk.rest(&at, was, is, &["schema", "$ref"]);
    }
}

/// A media type without what means nothing: case, the order of its parameters, and UTF-8, which text is anyway.
fn media_type(written: &str) -> String {
    let mut parts = written.split(';').map(|part| part.trim().to_lowercase());
    let kind = parts.next().unwrap_or_default();
    let mut parameters: Vec<_> =
        parts.map(|part| part.replace([' ', '"'], "")).filter(|part| !part.is_empty() && part != "charset=utf-8").collect();
    parameters.sort();
    [vec![kind], parameters].concat().join("; ")
}

pub(super) fn compare_responses<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = walk.maps(at, "responses", old, new) else { return };
    for key in keys(before, after) {
        let place = at.part(&format!("response {key}"));
        if key.starts_with("x-") || !is_status(key) {
            walk.tell_keyword(&at.part("responses"), key, before.get(key), after.get(key));
            continue;
        }
        match (before.get(key), after.get(key)) {
            (Some(was), Some(is)) => response(walk, &place, was, is),
            (Some(was), None) => match covering(after, key) {
                Some((cover, is)) => {
                    walk.tell_of(&rules::ANSWER_UNLISTED, &place, cover);
                    response(walk, &place, was, is);
                }
                None => walk.tell(answer(key, false), &place),
            },
            (None, Some(is)) => match covering(before, key) {
                Some((cover, was)) => {
                    walk.tell_of(&rules::ANSWER_LISTED, &place, cover);
                    response(walk, &place, was, is);
                }
                None => walk.tell(answer(key, true), &place),
            },
            (None, None) => {}
        }
    }
}

/// How many answers are compared with one of the other document.
pub(super) fn shared_answers(old: &Object, new: &Object) -> usize {
    let [before, after] = [old, new].map(|operation| members(operation.get("responses").unwrap_or(empty())));
    let there = |responses: &Object, key: &str| responses.contains_key(key) || covering(responses, key).is_some();
    keys(before, after).into_iter().filter(|key| is_status(key) && there(before, key) && there(after, key)).count()
}

fn is_status(key: &str) -> bool {
    let bytes = key.as_bytes();
    key == "default"
        || matches!(bytes, [b'1'..=b'5', one, other] if one.is_ascii_digit() && other.is_ascii_digit())
        || matches!(bytes, [b'1'..=b'5', b'x' | b'X', b'x' | b'X'])
}

fn is_success(key: &str) -> bool {
    key.starts_with(['2', '3'])
}

/// What describes a status that is not listed: its range, or the default, which is about failures.
fn covering<'a>(responses: &'a Object, key: &str) -> Option<(&'a str, &'a Value)> {
    if key == "default" {
        return None;
    }
    let range = format!("{}XX", &key[..1]);
    let listed = responses.iter().find(|(listed, _)| !key.eq_ignore_ascii_case(&range) && listed.eq_ignore_ascii_case(&range));
    let default = || responses.get_key_value("default").filter(|_| !is_success(key));
    listed.or_else(default).map(|(cover, response)| (cover.as_str(), response))
}

fn answer(key: &str, is_new: bool) -> &'static rules::Rule {
    match (key, is_new) {
        ("default", true) => &rules::DEFAULT_ANSWER_ADDED,
        ("default", false) => &rules::DEFAULT_ANSWER_REMOVED,
        (key, true) if is_success(key) => &rules::SUCCESS_ADDED,
        (key, false) if is_success(key) => &rules::SUCCESS_REMOVED,
        (_, true) => &rules::FAILURE_ADDED,
        (_, false) => &rules::FAILURE_REMOVED,
    }
}

fn response<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Value, new: &'a Value) {
    let Some((old, new)) = walk.objects(at, old, new) else { return };
    headers(walk, at, old, new);
    content(walk, at, old, new);
    if let Some((before, after)) = walk.maps(at, "links", old, new) {
        for key in keys(before, after) {
            let at = at.part(&format!("link {key}"));
            let (Some(was), Some(is)) = (before.get(key), after.get(key)) else {
                walk.tell_either(after.contains_key(key), &rules::LINK_ADDED, &rules::LINK_REMOVED, &at, None);
                continue;
            };
            if let Some((was, is)) = walk.objects(&at.towards(Direction::Both), was, is) {
                walk.rest(&at.towards(Direction::Both), was, is, &["$ref"]);
            }
        }
    }
    walk.rest(at, old, new, &["headers", "content", "links", "$ref"]);
}

fn headers<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = walk.maps(at, "headers", old, new) else { return };
    let by_name = |map: &'a Object| {
        let mut named = Named::new();
        map.iter().for_each(|(written, header)| name(&mut named, written.to_lowercase(), written, header));
        named
    };
    let (before, after) = (by_name(before), by_name(after));
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let at = at.part(&format!("header {key}"));
        let needed =
            |side: &super::refs::Side<'a>, header: &'a Value| side.follow(header).is_ok_and(|header| flag(members(header), "required"));
        match (before.get(key), after.get(key)) {
            (Some((one, was)), Some((other, is))) => {
                if one != other {
                    walk.tell_of(&rules::RESTATED, &at, "name");
                }
                let Some((was, is)) = walk.objects(&at, was, is) else { continue };
                flags(walk, &at, was, is, &rules::HEADER_BECAME_REQUIRED, &rules::HEADER_BECAME_OPTIONAL);
                written(walk, &at, was, is, "header");
                value(walk, &at, was, is);
                walk.rest(&at, was, is, &PARAMETER[2..]);
            }
            (Some((_, gone)), None) => {
                walk.tell(if needed(&walk.old, gone) { &rules::REQUIRED_HEADER_REMOVED } else { &rules::HEADER_REMOVED }, &at);
            }
            (None, Some((_, come))) => {
                walk.tell(if needed(&walk.new, come) { &rules::REQUIRED_HEADER_ADDED } else { &rules::HEADER_ADDED }, &at);
            }
            (None, None) => {}
        }
    }
}

/// Where an operation is served.
pub(super) fn compare_servers(walk: &mut Walk, at: &At, old: Option<&Value>, new: Option<&Value>) {
    if both_same(old, new) {
        return;
    }
    let told = walk.found.len();
    let by_address = |list: Option<&Value>| -> BTreeMap<String, Value> {
        let named = items(list)
            .iter()
            .map(|server| (text(members(server), "url").map_or_else(|| canonical(server), str::to_owned), server.clone()));
        let named: BTreeMap<_, _> = named.collect();
        // Without any, the document's own address counts.
        if named.is_empty() { BTreeMap::from([("/".to_owned(), empty().clone())]) } else { named }
    };
    if [old, new].into_iter().flatten().any(|list| !list.is_array()) {
        return walk.tell_keyword(at, "servers", old, new);
    }
    let (before, after) = (by_address(old), by_address(new));
    for (address, server) in &before {
        match after.get(address) {
            None => walk.tell_of(&rules::SERVER_REMOVED, at, address),
            Some(other) => walk.rest(&at.part(address), members(server), members(other), &["url"]),
        }
    }
    after.keys().filter(|address| !before.contains_key(*address)).for_each(|address| walk.tell_of(&rules::SERVER_ADDED, at, address));
    let sorted = |list: Option<&Value>| {
        let mut all: Vec<_> = items(list).iter().map(canonical).collect();
        all.sort();
        all
    };
    if walk.found.len() == told && sorted(old) == sorted(new) && !old.zip(new).is_some_and(|(old, new)| same(old, new)) {
        // The first one is what tools take.
        walk.tell_of(&rules::RESTATED, at, "servers");
    }
}
